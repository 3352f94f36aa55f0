//! A clock that is set by hand.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use super::lock;

/// Tells the time that it was set to. Clones are the same clock.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use std::time::Duration;
/// use session_compaction::{
///     Compact, Message, Outcome, SessionManager, testing::{ManualClock, Stub},
/// };
///
/// let clock = ManualClock::default();
/// let sessions = SessionManager::builder()
///     .summarizer(Stub::failing("no model today"))
///     .clock(clock.reader())
///     .build()?;
/// for n in 0..30 {
///     sessions.add_message("chat", Message::user(format!("Order {n}?"))).await?;
/// }
/// for _ in 0..3 {
///     let _ = sessions.compact("chat", Compact::if_due()).await;
///     clock.advance(Duration::from_secs(1));
/// }
/// assert!(matches!(sessions.maybe_summarize("chat").await, Outcome::Paused { .. }));
/// clock.advance(Duration::from_secs(3_600));
/// assert!(matches!(sessions.maybe_summarize("chat").await, Outcome::Started(_)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Mutex<SystemTime>>);

impl ManualClock {
    /// Creates a clock that stands at this time.
    #[must_use]
    pub fn at(time: SystemTime) -> Self {
        Self(Arc::new(Mutex::new(time)))
    }

    /// Returns the time.
    #[must_use]
    pub fn now(&self) -> SystemTime {
        *lock(&self.0)
    }

    /// Sets the time, also to an earlier one.
    pub fn set(&self, time: SystemTime) {
        *lock(&self.0) = time;
    }

    /// Moves the time on.
    pub fn advance(&self, by: Duration) {
        let mut now = lock(&self.0);
        *now = now.checked_add(by).unwrap_or(*now);
    }

    /// Returns what reads it, for
    /// [`SessionManagerBuilder::clock`](crate::SessionManagerBuilder::clock).
    pub fn reader(&self) -> impl Fn() -> SystemTime + Send + Sync + use<> {
        let clock = self.clone();
        move || clock.now()
    }
}

/// Stands a day after the beginning of 1970.
impl Default for ManualClock {
    fn default() -> Self {
        Self::at(SystemTime::UNIX_EPOCH + Duration::from_hours(24))
    }
}
