//! Where sessions are kept. The trait's docs are the contract that every
//! store keeps.

mod change;
mod jsonl;
mod memory;
mod types;

use std::{fmt, ops::Range};

use async_trait::async_trait;

pub(crate) use self::memory::ID_HORIZON;
pub use self::{
    change::{Commit, CommitResult, Rewrite, RewriteResult},
    jsonl::{JsonlStore, Repaired},
    memory::MemoryStore,
    types::{ListPage, NewMessage, Placed, Receipt, Removed, StoredMessage, StoredSession},
};
#[cfg(doc)]
use crate::session::{Revision, View};
use crate::{error::Result, session::SessionKey};

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
///
/// What not every store can do is an optional capability: [`Self::archive`].
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

    /// Returns how many damaged records were passed over since the store was
    /// opened.
    fn repaired_lines(&self) -> u64 {
        0
    }

    /// Returns the transcripts, where this store keeps them.
    fn archive(&self) -> Option<&dyn Archive> {
        None
    }
}

/// Reads transcripts: also the messages that a summary stands for.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use std::sync::Arc;
/// use session_compaction::{Archive, MemoryStore, Message, NewMessage, SessionKey, SessionStore, Size};
///
/// let store = MemoryStore::new();
/// let key = SessionKey::new("chat")?;
/// let message = Arc::new(Message::user("hello").with_id("a"));
/// let new = NewMessage::new(message, Size::default(), false);
/// store.append(&key, &[new]).await?;
/// assert!(store.archive().is_none(), "it keeps no transcripts");
///
/// let store = MemoryStore::keep_transcripts();
/// assert!(store.archive().unwrap().transcript(&key, 0..10).await?.is_empty());
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Archive: Send + Sync {
    /// Reads the messages at these positions; those that no longer exist are
    /// left out. An unknown session has none.
    async fn transcript(
        &self,
        key: &SessionKey,
        positions: Range<u64>,
    ) -> Result<Vec<StoredMessage>>;
}

const _: fn(&dyn SessionStore, &dyn Archive) = |_, _| {};
