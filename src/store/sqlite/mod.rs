//! Sessions in a SQLite database.

mod dialect;
mod open;
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

use std::{
    fmt,
    path::Path,
    sync::{Arc, Mutex},
};

use sqlx::{SqlitePool, sqlite::SqliteConnection};

pub use self::options::{SqliteOptions, Synchronous};
use self::{SqliteStore as Store, open::Pools, query::Sql, writer::Writer};
use super::sql::Prefix;
#[cfg(doc)]
use super::{Retention, SessionStore};
use crate::error::Result;

/// The name of the store in errors.
const BACKEND: &str = "SQLite";

/// Keeps sessions in one SQLite file: for one machine.
///
/// # Durability
///
/// What a call acknowledged survives a crash of the process and a loss of
/// power: the write-ahead log is synced before the call returns. Writers that
/// come at the same time share a transaction, and so a sync. With
/// [`Synchronous::Normal`] it survives a crash of the process; after a loss of
/// power the newest calls may be undone, in the order in which they came.
/// Either way the file opens again by itself, each call happened as a whole or
/// not at all, and no summary is without its cut. After a failed write nothing
/// was acknowledged, and the next one begins anew. A call whose future is
/// dropped has happened or has not.
///
/// What is removed or dropped is overwritten with zeros in the file
/// (`secure_delete`). Until the next checkpoint it can be found in the
/// write-ahead log (`-wal`, which [`Self::close`] empties).
///
/// # Several processes
///
/// May open the same file, on a local disk: each transaction reads what it
/// depends on, so that positions, revisions and leases hold across them. One
/// writes at a time; another waits for it, at most the
/// [busy timeout](SqliteOptions::with_busy_timeout). Managers take it that
/// theirs is the only process and trust their caches until a write says
/// otherwise; with [`SqliteOptions::with_shared`] they look first.
///
/// # Schema
///
/// The tables are created by [`Self::open`], with a prefix where one is set.
/// JSON is kept as the text that was given, as bytes; the columns that end in
/// `json` are computed from it for queries. Whole numbers have 63 bits: what
/// is larger is refused.
///
/// | table | a row is | columns beside those of JSON |
/// |---|---|---|
/// | `sessions` | a session | `key`, `incarnation`, `counter`, `cut`, `next`, sizes, limits, pause, lease, times; `options_json`, `pause_json`, `view_json` |
/// | `lease_tokens` | the newest token of all leases | `last` |
/// | `messages` | a message | `session` (the incarnation), `position`, `chars`, `tokens` (in 1/1024), `unix_millis`; `json` |
/// | `message_ids` | an id that is taken | `session`, `id`, `position`, `fingerprint` |
/// | `compactions` | a compaction | `session`, `number`, `revision`, `unix_millis`; `view_before_json`, `view_after_json`, `event_json` |
/// | `usage_events` | a usage event | `number`, `key`, `unix_millis`; `event_json` |
/// | `usage_sums` | a sum over all sessions | `day` (-1: all), `shard`, `counter`, `value` |
/// | `usage_of_sessions` | a sum of one session | `key`, `counter`, `value` |
///
/// ```sql
/// SELECT CAST(s.key AS TEXT), m.position, m.json ->> '$.role', m.json ->> '$.content'
/// FROM sessions s JOIN messages m ON m.session = s.incarnation
/// ORDER BY s.key, m.position;
/// ```
///
/// # Retention
///
/// The transcript is kept until the session is removed, or as
/// [`SqliteOptions::with_retention`] says. Old compactions go with it: under
/// [`Retention::Drop`] none are kept, under [`Retention::DropAfter`]
/// [`purge`](SessionStore::purge) takes those out that are as old. Usage stays.
/// `purge` goes over the sessions in steps, between which others write. The
/// file does not become smaller; its free room is used again.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Message, SessionManager, SqliteStore};
///
/// let path = std::env::temp_dir().join(format!("example-{}.db", std::process::id()));
/// let sessions = SessionManager::builder().store(SqliteStore::open(&path).await?).build()?;
/// sessions.add_message("chat", Message::user("hello")).await?;
/// drop(sessions);
///
/// let sessions = SessionManager::builder().store(SqliteStore::open(&path).await?).build()?;
/// assert_eq!(sessions.history("chat").await?.len(), 1);
/// # drop(sessions);
/// # for end in ["", "-wal", "-shm"] {
/// #     std::fs::remove_file(format!("{}{end}", path.display())).ok();
/// # }
/// # Ok(())
/// # }
/// ```
pub struct SqliteStore {
    readers: SqlitePool,
    sql: Sql,
    writer: Arc<Writer>,
    shared: bool,
    /// Keeps a database in memory while no other connection does.
    _alive: Option<Mutex<SqliteConnection>>,
}

impl SqliteStore {
    /// Opens a file with the default options. It is created where there is
    /// none, readable for its owner alone (on Unix).
    ///
    /// # Errors
    ///
    /// [`Error::is_store`](crate::Error::is_store) where it cannot be opened,
    /// is no database, or was written by a newer version of this crate.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        SqliteOptions::default().open(path).await
    }

    /// Creates a database in memory with the default options; it is gone with
    /// the store.
    ///
    /// # Errors
    ///
    /// [`Error::is_store`](crate::Error::is_store) where SQLite fails.
    pub async fn in_memory() -> Result<Self> {
        SqliteOptions::default().in_memory().await
    }

    /// Waits for the writes that have begun, and closes the database: what was
    /// in the write-ahead log is then in the file. A call after that fails.
    ///
    /// Dropping the store closes it as well, without waiting for it.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    fn new(pools: Pools, prefix: Prefix, options: SqliteOptions) -> Self {
        let Pools { writer: pool, readers, alive } = pools;
        let sql = Sql::new(prefix);
        let SqliteOptions { retention, clock, shared, .. } = options;
        let writer = Arc::new(Writer::new(pool, sql.clone(), retention, clock));
        Self { readers, sql, writer, shared, _alive: alive.map(Mutex::new) }
    }
}

impl SqliteOptions {
    /// Opens a file. It is created where there is none.
    ///
    /// # Errors
    ///
    /// As for [`SqliteStore::open`]; [`Error::is_config`](crate::Error::is_config)
    /// where the table prefix is not allowed.
    pub async fn open(self, path: impl AsRef<Path>) -> Result<SqliteStore> {
        let (path, prefix) = (path.as_ref(), Prefix::new(&self.table_prefix)?);
        let pools = open::file(path, &self, &prefix).await;
        let action = || format!("open {}", path.display());
        let pools = pools.map_err(|failure| failure.at(BACKEND, action()))?;
        Ok(SqliteStore::new(pools, prefix, self))
    }

    /// Creates a database in memory.
    ///
    /// # Errors
    ///
    /// As for [`SqliteOptions::open`].
    pub async fn in_memory(self) -> Result<SqliteStore> {
        let prefix = Prefix::new(&self.table_prefix)?;
        let pools = open::memory(&self, &prefix).await;
        let pools = pools.map_err(|failure| failure.at(BACKEND, "open a database in memory"))?;
        Ok(SqliteStore::new(pools, prefix, self))
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("writer", &self.writer)
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}
