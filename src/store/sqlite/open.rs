//! Opens the database: its file, its connections, its tables.

use std::{path::Path, str::FromStr as _, time::Duration};

use sqlx::{
    ConnectOptions as _, Connection as _, SqlitePool,
    migrate::Migrator,
    sqlite::{
        SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions,
        SqliteSynchronous,
    },
};
use tokio::time::Instant;

use super::options::{SqliteOptions, Synchronous};
use crate::store::sql::{Failure, Prefix, migrator};

static SCRIPTS: Migrator = sqlx::migrate!("migrations/sqlite");

/// Connections: one that writes, and some that read.
pub(super) struct Pools {
    pub(super) writer: SqlitePool,
    pub(super) readers: SqlitePool,
    /// One that does nothing.
    pub(super) alive: Option<SqliteConnection>,
}

pub(super) async fn file(
    path: &Path,
    options: &SqliteOptions,
    prefix: &Prefix,
) -> Result<Pools, Failure> {
    // So that no name has a meaning of its own, as `:memory:` has.
    let path = std::path::absolute(path).map_err(sqlx::Error::Io)?;
    create(&path).map_err(sqlx::Error::Io)?;
    let connect = SqliteConnectOptions::new().filename(path);
    let connect = set(connect, options).journal_mode(SqliteJournalMode::Wal);
    let writer = pool(1).connect_lazy_with(connect.clone());
    prepare(&writer, prefix, options.busy_timeout).await?;
    let readers = pool(options.max_readers).connect_lazy_with(connect);
    Ok(Pools { writer, readers, alive: None })
}

/// In memory, one connection does everything: those of a shared cache would
/// not wait for each other.
pub(super) async fn memory(options: &SqliteOptions, prefix: &Prefix) -> Result<Pools, Failure> {
    // A name that no other database in this process has.
    let connect = set(SqliteConnectOptions::from_str("sqlite::memory:")?, options);
    let alive = Some(connect.connect().await?);
    let writer = pool(1).connect_lazy_with(connect);
    prepare(&writer, prefix, options.busy_timeout).await?;
    Ok(Pools { readers: writer.clone(), writer, alive })
}

fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        // A connection is a thread and a file of this machine: neither grows
        // old, and there is nothing to test.
        .max_lifetime(None)
        .idle_timeout(None)
        .test_before_acquire(false)
}

fn set(connect: SqliteConnectOptions, options: &SqliteOptions) -> SqliteConnectOptions {
    connect
        .busy_timeout(options.busy_timeout)
        .synchronous(match options.synchronous {
            Synchronous::Full => SqliteSynchronous::Full,
            Synchronous::Normal => SqliteSynchronous::Normal,
        })
        // What was removed is to be gone from the file, too.
        .pragma("secure_delete", "ON")
        .disable_statement_logging()
}

/// Creates the file where there is none, readable for its owner alone; SQLite
/// gives the files beside it the same rights.
fn create(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Creates the tables, or brings them up to date. Several processes may do so
/// at once: the switch to the write-ahead log does not wait for others by
/// itself.
async fn prepare(pool: &SqlitePool, prefix: &Prefix, patience: Duration) -> Result<(), Failure> {
    const PAUSE: Duration = Duration::from_millis(5);
    let end = Instant::now() + patience;
    loop {
        match migrate(pool, prefix).await {
            Err(error) if is_busy(&error) && Instant::now() < end => {
                tokio::time::sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}

async fn migrate(pool: &SqlitePool, prefix: &Prefix) -> Result<(), Failure> {
    let mut connection = pool.acquire().await?;
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let within: &mut SqliteConnection = &mut transaction;
    migrator(&SCRIPTS, prefix).run_direct(None, within, false).await?;
    Ok(transaction.commit().await?)
}

fn is_busy(failure: &Failure) -> bool {
    let Failure::Database(sqlx::Error::Database(error)) = failure else { return false };
    // Primary code SQLITE_BUSY, whatever the reason in the higher bytes.
    let code = error.code().and_then(|code| code.parse::<u32>().ok());
    code.is_some_and(|code| code & 0xff == 5)
}
