//! Sessions in a SQLite database.

mod archive;
mod group;
mod leases;
mod open;
mod options;
mod purge;
mod query;
mod read;
mod usage;
mod write;
mod writer;

use std::{
    fmt,
    path::Path,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use sqlx::{SqlitePool, sqlite::SqliteConnection};

pub use self::options::{SqliteOptions, Synchronous};
use self::{
    open::Pools,
    purge::Purging,
    query::Sql,
    write::{Append, Committing, Removing, Rewriting},
    writer::Writer,
};
#[cfg(doc)]
use super::Retention;
use super::{
    Archive, Commit, CommitResult, Leases, ListPage, NewMessage, Receipt, Removed, Rewrite,
    RewriteResult, SessionStore, Since, StoredSession, UsageLog, sql::Prefix,
};
use crate::{
    error::Result,
    session::{Revision, SessionKey},
};

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
    pool: SqlitePool,
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
        self.pool.close().await;
    }

    fn new(pools: Pools, prefix: Prefix, options: SqliteOptions) -> Self {
        let Pools { writer: pool, readers, alive } = pools;
        let sql = Sql::new(prefix);
        let SqliteOptions { retention, clock, shared, .. } = options;
        let writer = Arc::new(Writer::new(pool.clone(), sql.clone(), retention, clock));
        Self { readers, pool, sql, writer, shared, _alive: alive.map(Mutex::new) }
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

#[async_trait]
impl SessionStore for SqliteStore {
    async fn append(&self, key: &SessionKey, messages: &[NewMessage]) -> Result<Receipt> {
        let append = Append { key: key.clone(), messages: messages.to_vec() };
        self.writer.submit(append).await
    }

    async fn load(&self, key: &SessionKey) -> Result<Option<StoredSession>> {
        let read = self.read_session(key).await;
        read.map_err(|failure| failure.at(BACKEND, format!("load session {:?}", &**key)))
    }

    async fn load_since(&self, key: &SessionKey, revision: Revision, next: u64) -> Result<Since> {
        let read = self.read_since(key, revision, next).await;
        read.map_err(|failure| failure.at(BACKEND, format!("load session {:?}", &**key)))
    }

    async fn commit(&self, key: &SessionKey, commit: Commit) -> Result<CommitResult> {
        self.writer.submit(Committing { key: key.clone(), commit }).await
    }

    async fn rewrite(&self, key: &SessionKey, rewrite: Rewrite) -> Result<RewriteResult> {
        self.writer.submit(Rewriting { key: key.clone(), rewrite }).await
    }

    async fn remove(&self, key: &SessionKey) -> Result<Removed> {
        self.writer.submit(Removing(key.clone())).await
    }

    async fn list(&self, page: ListPage) -> Result<Vec<SessionKey>> {
        let read = self.read_keys(&page).await;
        read.map_err(|failure| failure.at(BACKEND, "list sessions"))
    }

    async fn purge(&self) -> Result<u64> {
        let (mut messages, mut after) = (0_u64, Vec::new());
        loop {
            let purged = self.writer.submit(Purging { after }).await?;
            messages = messages.saturating_add(purged.messages);
            match purged.last {
                Some(last) => after = last,
                None => return Ok(messages),
            }
        }
    }

    fn is_shared(&self) -> bool {
        self.shared
    }

    fn archive(&self) -> Option<&dyn Archive> {
        Some(self)
    }

    fn leases(&self) -> Option<&dyn Leases> {
        Some(self)
    }

    fn usage(&self) -> Option<&dyn UsageLog> {
        Some(self)
    }
}
