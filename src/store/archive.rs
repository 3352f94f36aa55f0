//! What a store keeps of the past: transcripts, and what compactions replaced.

use std::ops::Range;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Receipt, SessionExport, StoredMessage};
use crate::{
    error::Result,
    session::{Revision, SessionKey, View},
    usage::UsageEvent,
};

/// Reads transcripts, also the messages that a summary stands for, and the
/// compactions of a session.
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

    /// Lists the compactions of a session, the newest first: at most `limit`
    /// of those with a number below `before`, if that is given. Each
    /// [`Commit`](crate::Commit) with a view and a usage event is one. An
    /// unknown session has none.
    async fn compactions(
        &self,
        key: &SessionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StoredCompaction>>;

    /// Creates a session from an export, in one step, as
    /// [`SessionExport::prepared`] gives it. Positions, times, the view and the
    /// compactions are those of the export; the incarnation is new. Its usage
    /// events are added to the store's as if they came now. No compaction is
    /// due by [`Leases::claim_due`](crate::Leases::claim_due) until something
    /// is appended.
    ///
    /// # Errors
    ///
    /// [`Error::is_exists`](crate::Error::is_exists) where there is such a
    /// session already, [`Error::is_message`](crate::Error::is_message) where
    /// the export cannot be one; nothing is changed then.
    async fn import(&self, key: &SessionKey, session: &SessionExport) -> Result<Receipt>;
}

const _: fn(&dyn Archive) = |_| {};

/// One compaction as it is kept: what it replaced, and with what.
///
/// # Example
///
/// ```
/// use session_compaction::{Revision, StoredCompaction, UsageEvent, View};
///
/// let (before, mut after) = (View::default(), View::default());
/// after.cut = 16;
/// let usage = UsageEvent::default();
/// let compaction = StoredCompaction::new(1, Revision::fresh(), before, after, usage);
/// assert_eq!(compaction.range(), 0..16);
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StoredCompaction {
    /// Its number within the session: 1, 2, .. in the order of commits.
    pub number: u64,
    /// The session's revision after it.
    pub revision: Revision,
    /// What was sent before; its summary is the one that was replaced.
    pub before: View,
    /// What is sent since.
    pub after: View,
    /// What it removed and cost.
    pub usage: UsageEvent,
}

impl StoredCompaction {
    /// Creates a record.
    #[must_use]
    pub const fn new(
        number: u64,
        revision: Revision,
        before: View,
        after: View,
        usage: UsageEvent,
    ) -> Self {
        Self { number, revision, before, after, usage }
    }

    /// Returns the positions that left the window.
    #[must_use]
    pub const fn range(&self) -> Range<u64> {
        self.before.cut..self.after.cut
    }
}
