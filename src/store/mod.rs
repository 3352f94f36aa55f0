//! Where sessions are kept. The trait's docs are the contract that every
//! store keeps.

mod archive;
mod change;
#[cfg(feature = "conformance")]
pub mod conformance;
mod export;
mod jsonl;
mod leases;
mod memory;
#[cfg(feature = "postgres")]
mod postgres;
mod retention;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;
mod types;
mod usage_log;

use std::fmt;

use async_trait::async_trait;

pub(crate) use self::memory::ID_HORIZON;
#[cfg(feature = "postgres")]
pub use self::postgres::{PostgresOptions, PostgresStore};
#[cfg(feature = "sqlite")]
pub use self::sqlite::{SqliteOptions, SqliteStore, Synchronous};
pub use self::{
    archive::{Archive, StoredCompaction},
    change::{Commit, CommitResult, Rewrite, RewriteResult},
    export::SessionExport,
    jsonl::{JsonlStore, Repaired},
    leases::{Lease, Leases},
    memory::MemoryStore,
    retention::Retention,
    types::{
        ListPage, NewMessage, Placed, Receipt, Removed, Since, StoredMessage, StoredSession, Tail,
    },
    usage_log::{DayTotals, UsageLog, UsagePage, UsageRecord},
};
#[cfg(doc)]
use crate::session::View;
use crate::{
    error::Result,
    session::{Revision, SessionKey, SessionState},
};

/// Keeps sessions: their messages and their state.
///
/// # Contract
///
/// - **Atomic.** Each call happens as a whole or not at all, also where its
///   future is dropped in the middle or the process is killed. Readers see the
///   state before or after.
/// - **Durable.** What a call acknowledged survives what the store's own docs
///   name (a crash of the process, a loss of power, nothing).
/// - **Positions.** A session's messages get the positions 0, 1, 2, .. in the
///   order of their acknowledgement. A position is never used twice within an
///   incarnation, whatever is cut, rewritten or dropped.
/// - **Revisions.** `append` leaves the revision as it is; `commit` of a view
///   and `rewrite` set it to [`Revision::next`]; a session that is created
///   again after `remove` has a new incarnation.
/// - **Unknown sessions** are empty: `load` gives `None`, `append` and
///   `rewrite` create them, `commit` is stale, `remove` removes nothing.
/// - **Idempotent.** A message with an id that the session already holds,
///   among its window or its last 1,024 messages, is not added again: the
///   answer says where it stands. The same id with other content is
///   [`Error::is_duplicate_id`](crate::Error::is_duplicate_id), and nothing of
///   that call is stored.
///
/// - **Taken back.** What a view says is [rewound](View::rewound) is left out
///   of the window that `load` gives, its ids are free, and its positions stay
///   used. A transcript still has it.
/// - **Leases.** A commit that names a [`Lease`](crate::Lease) is stale where
///   that lease is no longer valid; in a store without leases it is as one
///   without.
///
/// What not every store can do is an optional capability: [`Self::archive`],
/// [`Self::leases`], [`Self::usage`].
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use std::sync::Arc;
/// use session_compaction::{MemoryStore, Message, NewMessage, SessionKey, SessionStore, Size};
///
/// let store = MemoryStore::new();
/// let key = SessionKey::new("chat")?;
/// let message = Arc::new(Message::user("hello").with_id("a"));
/// let new = NewMessage::new(message, Size::default(), false);
/// let receipt = store.append(&key, &[new.clone()]).await?;
/// assert_eq!(receipt.placed[0].position, 0);
/// // A retry after a lost answer adds nothing.
/// assert!(store.append(&key, &[new]).await?.placed[0].duplicate);
/// assert_eq!(store.load(&key).await?.unwrap().window.len(), 1);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait SessionStore: fmt::Debug + Send + Sync + 'static {
    /// Adds messages at the end of a session, all or none.
    async fn append(&self, key: &SessionKey, messages: &[NewMessage]) -> Result<Receipt>;

    /// Reads what is sent of a session, and its state.
    async fn load(&self, key: &SessionKey) -> Result<Option<StoredSession>>;

    /// Changes a session's state where its revision is still the expected one.
    async fn commit(&self, key: &SessionKey, commit: Commit) -> Result<CommitResult>;

    /// Puts other messages in place of a session's history, at new positions.
    async fn rewrite(&self, key: &SessionKey, rewrite: Rewrite) -> Result<RewriteResult>;

    /// Removes a session with everything that is kept of it.
    async fn remove(&self, key: &SessionKey) -> Result<Removed>;

    /// Lists sessions in the order of their keys' bytes.
    async fn list(&self, page: ListPage) -> Result<Vec<SessionKey>>;

    /// Reads what came since a reader knew this revision and this many
    /// positions: at least where nothing did, a single indexed read.
    ///
    /// Given as it is, it loads the whole session.
    async fn load_since(&self, key: &SessionKey, revision: Revision, next: u64) -> Result<Since> {
        let Some(mut stored) = self.load(key).await? else { return Ok(Since::Gone) };
        if stored.state.revision != revision || stored.next < next {
            return Ok(Since::Changed(Box::new(stored)));
        }
        stored.window.retain(|kept| kept.position >= next);
        let SessionState { options, pause, .. } = stored.state;
        Ok(Since::Same(Tail::new(options, pause, stored.next, stored.window)))
    }

    /// Removes for good what the store's retention says is no longer needed,
    /// in all sessions, and returns how many messages that were. What is sent
    /// of a session stays.
    async fn purge(&self) -> Result<u64> {
        Ok(0)
    }

    /// Returns true where several processes may write at the same time, so
    /// that what memory knows of a session may be old.
    fn is_shared(&self) -> bool {
        false
    }

    /// Returns how many damaged records were passed over since the store was
    /// opened.
    fn repaired_lines(&self) -> u64 {
        0
    }

    /// Returns the transcripts, where this store keeps them.
    fn archive(&self) -> Option<&dyn Archive> {
        None
    }

    /// Returns the leases, where this store hands them out.
    fn leases(&self) -> Option<&dyn Leases> {
        None
    }

    /// Returns the usage events, where this store keeps them.
    fn usage(&self) -> Option<&dyn UsageLog> {
        None
    }
}

const _: fn(&dyn SessionStore) = |_| {};
