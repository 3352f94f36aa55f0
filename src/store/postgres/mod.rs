//! Sessions in a PostgreSQL database.

mod dialect;
mod options;

// What the stores on SQL do alike, on the types of this database.
#[path = "../sql/engine/archive.rs"]
mod archive;
#[path = "../sql/engine/group.rs"]
mod group;
#[path = "../sql/engine/leases.rs"]
mod leases;
#[path = "../sql/engine/purge.rs"]
mod purge;
#[path = "../sql/engine/query.rs"]
mod query;
#[path = "../sql/engine/read.rs"]
mod read;
#[path = "../sql/engine/store.rs"]
mod store;
#[path = "../sql/engine/usage.rs"]
mod usage;
#[path = "../sql/engine/write.rs"]
mod write;
#[path = "../sql/engine/writer.rs"]
mod writer;

use std::{fmt, sync::Arc};

use sqlx::{
    ConnectOptions as _, PgPool,
    migrate::Migrator,
    postgres::{PgConnectOptions, PgPoolOptions},
};

pub use self::options::PostgresOptions;
use self::{PostgresStore as Store, query::Sql, writer::Writer};
use super::sql::{Failure, Prefix, migrator};
use crate::error::Result;

/// The name of the store in errors.
const BACKEND: &str = "PostgreSQL";

static SCRIPTS: Migrator = sqlx::migrate!("migrations/postgres");

/// Keeps sessions in PostgreSQL: for many machines.
///
/// # Durability
///
/// What a call acknowledged is committed at the level of the server's
/// `synchronous_commit`, which is on unless somebody has changed it: it
/// survives a crash of the server and a loss of power. Writers of one process
/// that come at the same time share a transaction. A transaction that meets
/// another one, or whose connection is lost before its commit, is run again.
/// Where the answer to a commit is lost, the call fails: an append can be tried
/// again with its ids, and a manager reads the session anew.
///
/// # Several processes
///
/// Any number of them, on any number of machines. A write locks the rows of its
/// sessions for the time of its own short transaction; nothing is locked while
/// a model is asked. Leases end by the clock of the server. Due sessions are
/// claimed with `FOR UPDATE SKIP LOCKED`. Managers ask for what is new before
/// each context ([`Consistency::Latest`](crate::Consistency::Latest)).
///
/// # Schema
///
/// The tables are created by [`Self::connect`], with a prefix where one is set;
/// the role needs the right to create them once. Keys, ids and documents are
/// `bytea`, and come back as they were given, NUL included. The view
/// `messages_json` has the messages for queries: the key as text, and each
/// document as `jsonb`, in which NUL is replaced by U+FFFD.
///
/// | table | a row is | columns beside documents |
/// |---|---|---|
/// | `sessions` | a session | `key`, `incarnation`, `counter`, `cut`, `next`, sizes, limits, pause, lease, times |
/// | `messages` | a message | `session` (the incarnation), `position`, `chars`, `tokens` (in 1/1024), `unix_millis`, `payload` |
/// | `message_ids` | an id that is taken | `session`, `id`, `position`, `fingerprint` |
/// | `compactions` | a compaction | `session`, `number`, `revision`, `unix_millis` |
/// | `usage_events` | a usage event | `number`, `key`, `unix_millis` |
/// | `usage_sums` | a sum over all sessions | `day` (-1: all), `shard`, `counter`, `value` |
/// | `usage_of_sessions` | a sum of one session | `key`, `counter`, `value` |
///
/// ```sql
/// SELECT key, position, json ->> 'role', json ->> 'content'
/// FROM messages_json ORDER BY key, position;
/// ```
///
/// # Retention
///
/// The transcript is kept until the session is removed, or as
/// [`PostgresOptions::with_retention`] says.
///
/// # Example
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Message, PostgresStore, SessionManager};
///
/// let store = PostgresStore::connect("postgres://localhost/agents").await?;
/// let sessions = SessionManager::builder().store(store).build()?;
/// sessions.add_message("chat", Message::user("hello")).await?;
/// # Ok(())
/// # }
/// ```
pub struct PostgresStore {
    readers: PgPool,
    sql: Sql,
    writer: Arc<Writer>,
    shared: bool,
}

impl PostgresStore {
    /// Connects with the default options, and creates the tables where there
    /// are none.
    ///
    /// # Errors
    ///
    /// [`Error::is_store`](crate::Error::is_store) where the server cannot be
    /// reached or refuses, or its tables were written by a newer version of
    /// this crate.
    pub async fn connect(url: &str) -> Result<Self> {
        PostgresOptions::default().connect(url).await
    }

    /// Closes all connections. A call after that fails.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }
}

impl PostgresOptions {
    /// Connects, and creates the tables where there are none.
    ///
    /// # Errors
    ///
    /// As for [`PostgresStore::connect`];
    /// [`Error::is_config`](crate::Error::is_config) where the table prefix is
    /// not allowed.
    pub async fn connect(self, url: &str) -> Result<PostgresStore> {
        let prefix = Prefix::new(&self.table_prefix)?;
        let pools = self.pools(url, &prefix).await;
        // Not the address: it may hold a password.
        let (readers, writing) = pools.map_err(|failure| failure.at(BACKEND, "connect"))?;
        let sql = Sql::new(prefix);
        let writer = Arc::new(Writer::new(writing, sql.clone(), self.retention, ()));
        Ok(PostgresStore { readers, sql, writer, shared: true })
    }

    async fn pools(&self, url: &str, prefix: &Prefix) -> Result<(PgPool, PgPool), Failure> {
        let connect: PgConnectOptions = url.parse()?;
        let connect = connect.disable_statement_logging();
        let pool = |connections| {
            let options = PgPoolOptions::new().max_connections(connections);
            options.acquire_timeout(self.acquire_timeout).connect_lazy_with(connect.clone())
        };
        let writing = pool(1);
        migrator(&SCRIPTS, prefix).run(&writing).await?;
        Ok((pool(self.max_connections.saturating_sub(1)), writing))
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("writer", &self.writer).finish_non_exhaustive()
    }
}
