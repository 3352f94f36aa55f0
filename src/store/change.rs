//! Changes of what a store holds of a session, and what became of them.

use super::leases::Lease;
use super::types::{NewMessage, Receipt};
use crate::{
    plan::Limits,
    session::{Pause, Revision, SessionOptions, StoredSummary, View},
    usage::UsageEvent,
};

/// A change of a session's state.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use std::sync::Arc;
/// use session_compaction::{Commit, CommitResult, MemoryStore, Message, NewMessage, SessionKey, SessionStore, Size, StoredSummary, View};
///
/// let store = MemoryStore::new();
/// let key = SessionKey::new("chat")?;
/// let message = Arc::new(Message::user("hello").with_id("a"));
/// let new = NewMessage::new(message, Size::default(), false);
/// let revision = store.append(&key, &[new]).await?.revision;
/// let mut view = View::default();
/// (view.cut, view.summary) = (1, Some(StoredSummary::new("They said hello.")));
/// let commit = Commit::on(revision).with_view(view);
/// assert_eq!(store.commit(&key, commit.clone()).await?, CommitResult::Committed(revision.next()));
/// // It was made from a state that is no longer there.
/// assert_eq!(store.commit(&key, commit).await?, CommitResult::Stale);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Commit {
    /// The revision that the change was made from.
    pub expected: Revision,
    /// The new view, if it changes; the revision rises with it.
    pub view: Option<View>,
    /// The pause from now on; `None` ends one.
    pub pause: Option<Pause>,
    /// The new options, if they change.
    pub options: Option<SessionOptions>,
    /// What to record in the same step. Beside a view it makes the commit a
    /// compaction, which [`Archive::compactions`](crate::Archive::compactions)
    /// lists.
    pub usage: Option<UsageEvent>,
    /// The lease that must still be valid.
    pub lease: Option<Lease>,
    /// The session's own limits from now on, if they change; they stand in
    /// place of those of [`Leases::claim_due`](crate::Leases::claim_due).
    pub limits: Option<Limits>,
}

impl Commit {
    /// Creates a commit that changes nothing yet but ends a pause.
    #[must_use]
    pub const fn on(expected: Revision) -> Self {
        Self {
            expected,
            view: None,
            pause: None,
            options: None,
            usage: None,
            lease: None,
            limits: None,
        }
    }

    /// Sets the view.
    #[must_use]
    pub fn with_view(mut self, view: View) -> Self {
        self.view = Some(view);
        self
    }

    /// Sets the pause.
    #[must_use]
    pub fn with_pause(mut self, pause: Option<Pause>) -> Self {
        self.pause = pause;
        self
    }

    /// Sets the options.
    #[must_use]
    pub fn with_options(mut self, options: SessionOptions) -> Self {
        self.options = Some(options);
        self
    }

    /// Sets what to record.
    #[must_use]
    pub fn with_usage(mut self, usage: UsageEvent) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Sets the lease that must still be valid.
    #[must_use]
    pub const fn with_lease(mut self, lease: Option<Lease>) -> Self {
        self.lease = lease;
        self
    }

    /// Sets the session's own limits.
    #[must_use]
    pub const fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }
}

/// What became of a [`Commit`].
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use std::sync::Arc;
/// use session_compaction::{Commit, CommitResult, MemoryStore, Message, NewMessage, Revision, SessionKey, SessionStore, Size};
///
/// let store = MemoryStore::new();
/// let key = SessionKey::new("chat")?;
/// let message = Arc::new(Message::user("hello").with_id("a"));
/// let new = NewMessage::new(message, Size::default(), false);
/// store.append(&key, &[new]).await?;
/// let of_another = Commit::on(Revision::fresh());
/// assert_eq!(store.commit(&key, of_another).await?, CommitResult::Stale);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
#[non_exhaustive]
pub enum CommitResult {
    /// It was stored; this is the revision now.
    Committed(Revision),
    /// The session is gone or has another revision, or the lease is no longer
    /// valid: nothing was changed.
    Stale,
}

/// A new history for a session.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use std::sync::Arc;
/// use session_compaction::{MemoryStore, Message, NewMessage, Rewrite, RewriteResult, SessionKey, SessionStore, Size};
///
/// let store = MemoryStore::new();
/// let key = SessionKey::new("chat")?;
/// let message = Arc::new(Message::user("hello").with_id("a"));
/// let new = NewMessage::new(message, Size::default(), false);
/// store.append(&key, &[new]).await?;
/// let rewritten = store.rewrite(&key, Rewrite::new(Vec::new(), None)).await?;
/// assert!(matches!(rewritten, RewriteResult::Rewritten(_)));
/// assert!(store.load(&key).await?.unwrap().window.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rewrite {
    /// Where set, the rewrite is stale if anything was appended or rewritten
    /// since: the revision, and the position that the next message would get.
    pub expected: Option<(Revision, u64)>,
    /// The messages, which get new positions and become the window.
    pub messages: Vec<NewMessage>,
    /// The summary from now on.
    pub summary: Option<StoredSummary>,
}

impl Rewrite {
    /// Creates a rewrite that happens whatever the session holds.
    #[must_use]
    pub const fn new(messages: Vec<NewMessage>, summary: Option<StoredSummary>) -> Self {
        Self { expected: None, messages, summary }
    }
}

/// What became of a [`Rewrite`].
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use std::sync::Arc;
/// use session_compaction::{MemoryStore, Message, NewMessage, Revision, Rewrite, RewriteResult, SessionKey, SessionStore, Size};
///
/// let store = MemoryStore::new();
/// let key = SessionKey::new("chat")?;
/// let message = Arc::new(Message::user("hello").with_id("a"));
/// let new = NewMessage::new(message, Size::default(), false);
/// store.append(&key, &[new]).await?;
/// let mut rewrite = Rewrite::new(Vec::new(), None);
/// rewrite.expected = Some((Revision::fresh(), 7));
/// assert_eq!(store.rewrite(&key, rewrite).await?, RewriteResult::Stale);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[must_use]
#[non_exhaustive]
pub enum RewriteResult {
    /// It was stored: where the messages stand, and the revision now.
    Rewritten(Receipt),
    /// The session was changed in between: nothing was stored.
    Stale,
}
