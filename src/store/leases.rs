//! Leases: one compaction a session at a time, also across processes.

use std::time::Duration;

use async_trait::async_trait;

use crate::{error::Result, plan::Limits, session::SessionKey};

/// Hands out the right to compact a session, for a time.
///
/// A lease is an advice to other workers and a fence for late ones: it keeps
/// two processes from paying for the same summary, and a [`Commit`] that names
/// a lease is stale once that lease has expired or another was given out. It
/// keeps nobody from appending, and no transaction or lock is held meanwhile.
///
/// [`Commit`]: crate::Commit
///
/// # Contract
///
/// - At most one lease of a session is valid at any time, by the clock of the
///   store, whatever the clocks of its clients say.
/// - Tokens of a session rise with every lease that is given out.
/// - A lease that has expired is as good as released.
/// - [`SessionStore::remove`](crate::SessionStore::remove) ends the lease of a
///   session.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use std::{sync::Arc, time::Duration};
/// use session_compaction::{Leases, MemoryStore, Message, NewMessage, SessionKey, SessionStore, Size};
///
/// let store = MemoryStore::new();
/// let key = SessionKey::new("chat")?;
/// let message = Arc::new(Message::user("hello").with_id("a"));
/// store.append(&key, &[NewMessage::new(message, Size::default(), false)]).await?;
///
/// let leases = store.leases().unwrap();
/// let lease = leases.claim(&key, "worker-1", Duration::from_secs(30)).await?.unwrap();
/// assert!(leases.claim(&key, "worker-2", Duration::from_secs(30)).await?.is_none());
/// leases.release(&key, lease).await?;
/// assert!(leases.claim(&key, "worker-2", Duration::from_secs(30)).await?.is_some());
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Leases: Send + Sync {
    /// Claims a session for so long; `None` where it is claimed already or
    /// unknown. The holder is a name for people who look into the store.
    async fn claim(&self, key: &SessionKey, holder: &str, ttl: Duration) -> Result<Option<Lease>>;

    /// Has a lease end so long from now. False where it is no longer valid;
    /// it does not come back then.
    async fn renew(&self, key: &SessionKey, lease: Lease, ttl: Duration) -> Result<bool>;

    /// Ends a lease, and with it the mark that a compaction is due: what can
    /// be done was tried. One that is no longer valid stays so, and the mark
    /// too.
    async fn release(&self, key: &SessionKey, lease: Lease) -> Result<()>;

    /// Says that a compaction of a session is due, whatever its sizes say, for
    /// the next [`Self::claim_due`]. Committing a view ends that.
    async fn mark_due(&self, key: &SessionKey) -> Result<()>;

    /// Claims sessions that are due, at most so many: marked ones, and those
    /// above the limits, or above their own where a commit has set some. Left
    /// out are those that are claimed, paused, or imported and not appended to
    /// since. Two callers at the same time get different sessions.
    async fn claim_due(
        &self,
        holder: &str,
        ttl: Duration,
        limits: &Limits,
        at_most: usize,
    ) -> Result<Vec<(SessionKey, Lease)>>;
}

const _: fn(&dyn Leases) = |_| {};

/// The right to compact one session for a time.
///
/// # Example
///
/// ```
/// use session_compaction::Lease;
///
/// assert!(Lease::new(2) > Lease::new(1), "the newer one counts");
/// ```
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Lease(u64);

impl Lease {
    /// Creates a lease from its token, as a store does.
    #[must_use]
    pub const fn new(token: u64) -> Self {
        Self(token)
    }

    /// Returns the token, which rises with every lease of a session.
    #[must_use]
    pub const fn token(self) -> u64 {
        self.0
    }
}
