//! Compactions for a whole store: who does them, and a loop that does.

use std::{fmt, future::Future, time::Duration};

use tokio::time::sleep;

use super::{
    Compact, Inner, Outcome, Report, SessionManager, Shutdown, lease::Held, trigger::limits,
};
use crate::{
    error::{Error, Result},
    session::SessionKey,
    store::{Lease, Leases},
};

/// Where due compactions run.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{ExtractiveSummarizer, Message, Outcome, RunIn, SessionManager};
///
/// let web = SessionManager::builder()
///     .summarizer(ExtractiveSummarizer::default())
///     .run_in(RunIn::Elsewhere)
///     .build()?;
/// for n in 0..30 {
///     web.add_message("chat", Message::user(format!("Order {n} was shipped on Monday."))).await?;
/// }
/// assert!(matches!(web.maybe_summarize("chat").await, Outcome::Deferred));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum RunIn {
    /// In another process, by [`Worker`] or [`SessionManager::run_due`]:
    /// [`SessionManager::maybe_summarize`] says to the store that the session
    /// is due. What the host asks for by name, as
    /// [`SessionManager::compact`] with [`Compact::now`], runs here all the
    /// same.
    ///
    /// [`Compact::now`]: crate::Compact::now
    Elsewhere,
    /// In this process.
    #[default]
    Here,
}

impl SessionManager {
    /// Compacts sessions of the whole store that are due, at most so many,
    /// side by side, and waits for their reports. Several processes may call
    /// it at the same time: each session goes to one of them.
    ///
    /// # Errors
    ///
    /// [`Error::is_unsupported`](crate::Error::is_unsupported) where the store
    /// hands out no leases, and [`Error::is_store`](crate::Error::is_store)
    /// where it fails.
    ///
    /// # Cancel safety
    ///
    /// A dropped future leaves the compactions running in the background.
    ///
    /// # Example
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> session_compaction::Result<()> {
    /// use session_compaction::{ExtractiveSummarizer, Message, SessionManager};
    ///
    /// let sessions =
    ///     SessionManager::builder().summarizer(ExtractiveSummarizer::default()).build()?;
    /// for n in 0..30 {
    ///     sessions.add_message("chat", Message::user(format!("Order {n} was shipped on Monday."))).await?;
    /// }
    /// let reports = sessions.run_due(10).await?;
    /// assert!(reports[0].1.applied().is_some());
    /// assert!(sessions.run_due(10).await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn run_due(&self, at_most: usize) -> Result<Vec<(SessionKey, Report)>> {
        let inner = &self.0;
        if inner.claims.are_closed() {
            return Ok(Vec::new());
        }
        let limits = limits(&inner.config, inner.config.context_window);
        let due =
            inner.leases()?.claim_due(&inner.holder, inner.lease_ttl, &limits, at_most).await?;
        let mut begun = Vec::with_capacity(due.len());
        for (key, lease) in due {
            let outcome = self.begin_leased(&key, lease).await;
            begun.push((key, outcome));
        }
        let mut reports = Vec::with_capacity(begun.len());
        for (key, outcome) in begun {
            let report = match outcome {
                Outcome::Started(handle) | Outcome::InFlight(handle) => handle.await,
                outcome => Report::NotStarted(Box::new(outcome)),
            };
            reports.push((key, report));
        }
        Ok(reports)
    }

    async fn begin_leased(&self, key: &SessionKey, lease: Lease) -> Outcome {
        // Whatever comes of it, the lease is given back.
        let held = Held::of(&self.0, key, Some(lease));
        if let Err(error) = self.refresh(key).await {
            return Outcome::Unavailable(error);
        }
        self.start(key, Compact::if_due(), Some(held)).await
    }
}

impl Inner {
    pub(super) fn leases(&self) -> Result<&dyn Leases> {
        self.store.leases().ok_or_else(|| {
            let remedy = "run compactions in this process, or use a store that does";
            Error::unsupported("session", "leases", remedy)
        })
    }

    /// Leaves a due compaction to another process.
    pub(super) async fn defer(&self, key: &SessionKey) -> Outcome {
        let marked = match self.leases() {
            Ok(leases) => leases.mark_due(key).await,
            Err(error) => Err(error),
        };
        marked.map_or_else(Outcome::Unavailable, |()| Outcome::Deferred)
    }
}

/// Runs due compactions of a whole store until it is told to stop.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{ExtractiveSummarizer, SessionManager, Worker};
///
/// let sessions =
///     SessionManager::builder().summarizer(ExtractiveSummarizer::default()).build()?;
/// // In a service: a future that ends with the signal to stop.
/// let stop = async {};
/// let shutdown = Worker::new(sessions).run(stop).await;
/// assert!(shutdown.cut_off.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Worker {
    sessions: SessionManager,
    at_once: usize,
    idle: Duration,
    drain: Duration,
}

impl Worker {
    /// Creates a worker that runs 4 compactions at once, looks again every
    /// second where nothing is due, and waits for 30 seconds for what runs
    /// when it is told to stop.
    #[must_use]
    pub const fn new(sessions: SessionManager) -> Self {
        let (idle, drain) = (Duration::from_secs(1), Duration::from_secs(30));
        Self { sessions, at_once: 4, idle, drain }
    }

    /// Sets how many compactions run at once.
    #[must_use]
    pub fn at_once(mut self, compactions: usize) -> Self {
        self.at_once = compactions.max(1);
        self
    }

    /// Sets how long it waits where nothing is due.
    #[must_use]
    pub const fn idle(mut self, wait: Duration) -> Self {
        self.idle = wait;
        self
    }

    /// Sets how long it waits for what runs when it is told to stop.
    #[must_use]
    pub const fn drain(mut self, wait: Duration) -> Self {
        self.drain = wait;
        self
    }

    /// Works until `stop` ends; then starts nothing more, waits for what runs,
    /// and cuts off what takes too long: nothing of that is applied, and its
    /// leases are given back. A store that fails is asked again later.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Shutdown {
        tokio::pin!(stop);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                () = self.work() => {}
            }
        }
        self.sessions.shutdown(self.drain).await
    }

    /// Takes what is due now, and rests where that is nothing.
    async fn work(&self) {
        match self.sessions.run_due(self.at_once).await {
            Ok(reports) if !reports.is_empty() => {}
            Ok(_) => sleep(self.idle).await,
            Err(error) => {
                tracing::warn!(%error, "summarizer: the store was not asked for due sessions");
                sleep(self.idle).await;
            }
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("at_once", &self.at_once)
            .field("idle", &self.idle)
            .field("drain", &self.drain)
            .finish_non_exhaustive()
    }
}
