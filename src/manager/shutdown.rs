//! Ends a manager's work.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::SessionManager;
use crate::session::SessionKey;

/// What [`SessionManager::shutdown`] found running.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{SessionManager, Shutdown};
///
/// let sessions = SessionManager::builder().build()?;
/// assert_eq!(sessions.shutdown(std::time::Duration::ZERO).await, Shutdown::default());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Shutdown {
    /// Sessions whose compaction ended by itself.
    pub finished: Vec<SessionKey>,
    /// Sessions whose compaction was cut off; nothing of it was applied.
    pub cut_off: Vec<SessionKey>,
}

impl SessionManager {
    /// Starts no more compactions, waits for those that run, and cuts off what
    /// still runs after `deadline`. Messages can still be added and read.
    ///
    /// # Example
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> session_compaction::Result<()> {
    /// use std::time::Duration;
    /// use session_compaction::SessionManager;
    ///
    /// let sessions = SessionManager::builder().build()?;
    /// let shutdown = sessions.shutdown(Duration::from_secs(5)).await;
    /// assert!(shutdown.cut_off.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn shutdown(&self, deadline: Duration) -> Shutdown {
        self.0.claims.close();
        let end = Instant::now() + deadline;
        let mut shutdown = Shutdown::default();
        for (key, handle) in self.0.claims.running() {
            if timeout_at(end, handle.clone().into_future()).await.is_ok() {
                shutdown.finished.push(key);
            } else {
                handle.cancel();
                shutdown.cut_off.push(key);
            }
        }
        shutdown
    }
}
