//! One compaction a session at a time.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use dashmap::{DashMap, Entry};
use tokio::{sync::watch, task::AbortHandle};

use super::{events::Events, outcome::Report};
use crate::{plan::Trigger, session::SessionKey, summarize::SummarizeError};

/// The compactions that are running in this process.
#[derive(Clone, Debug)]
pub(super) struct Claims {
    in_flight: Arc<DashMap<SessionKey, InFlight>>,
    next: Arc<AtomicU64>,
    closed: Arc<AtomicBool>,
    events: Events,
}

#[derive(Clone, Debug)]
struct InFlight {
    id: u64,
    handle: CompactionHandle,
    /// What a task that is ended from outside reports.
    superseded: Arc<AtomicBool>,
}

impl Claims {
    pub(super) fn new(events: Events) -> Self {
        Self { in_flight: Arc::default(), next: Arc::default(), closed: Arc::default(), events }
    }

    /// Claims a session; the other side where it is claimed already.
    pub(super) fn claim(
        &self,
        key: &SessionKey,
        trigger: Option<Trigger>,
    ) -> Result<(Claim, CompactionHandle), CompactionHandle> {
        match self.in_flight.entry(key.clone()) {
            Entry::Occupied(held) => Err(held.get().handle.clone()),
            Entry::Vacant(free) => {
                let id = self.next.fetch_add(1, Ordering::Relaxed);
                let (report, reported) = watch::channel(None);
                let abort = Arc::new(OnceLock::new());
                let handle = CompactionHandle { trigger, reported, abort };
                let superseded = Arc::new(AtomicBool::new(false));
                free.insert(InFlight {
                    id,
                    handle: handle.clone(),
                    superseded: Arc::clone(&superseded),
                });
                let claims = self.clone();
                Ok((Claim { claims, key: key.clone(), id, report, superseded }, handle))
            }
        }
    }

    /// The compaction of a session that is running.
    pub(super) fn held(&self, key: &SessionKey) -> Option<CompactionHandle> {
        self.in_flight.get(key).map(|held| held.handle.clone())
    }

    /// Ends a session's compaction, whose mark is stale by now.
    pub(super) fn supersede(&self, key: &SessionKey) {
        let held = self.in_flight.get(key).map(|held| held.clone());
        if let Some(held) = held {
            held.superseded.store(true, Ordering::SeqCst);
            held.handle.cancel();
        }
    }

    /// From here on nothing more is started.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    pub(super) fn are_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    pub(super) fn running(&self) -> Vec<(SessionKey, CompactionHandle)> {
        let running = self.in_flight.iter();
        running.map(|held| (held.key().clone(), held.handle.clone())).collect()
    }
}

/// The right to compact a session, owned by the task that does it. Dropping it
/// frees the session, so success, error, panic and cancellation all do.
#[derive(Debug)]
pub(super) struct Claim {
    claims: Claims,
    key: SessionKey,
    id: u64,
    report: watch::Sender<Option<Report>>,
    superseded: Arc<AtomicBool>,
}

impl Claim {
    /// Frees the session, then tells those who wait: who acts on the report
    /// finds the session free.
    pub(super) fn finish(self, report: Report) {
        self.free();
        self.report.send_replace(Some(report));
    }

    fn free(&self) {
        self.claims.in_flight.remove_if(&self.key, |_, held| held.id == self.id);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let unreported = self.report.borrow().is_none().then(|| {
            if self.superseded.load(Ordering::SeqCst) {
                Report::Stale
            } else {
                Report::Failed(SummarizeError::cancelled())
            }
        });
        if let Some(report) = &unreported {
            self.claims.events.reported(&self.key, report);
        }
        self.free();
        if unreported.is_some() {
            self.report.send_replace(unreported);
        }
    }
}

/// A compaction that is running in the background.
///
/// Await it to get its [`Report`]; drop it to let it run on; [`cancel`] it to
/// end it. Clones are handles to the same compaction.
///
/// [`cancel`]: CompactionHandle::cancel
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{ExtractiveSummarizer, Message, Outcome, SessionManager};
///
/// let sessions =
///     SessionManager::builder().summarizer(ExtractiveSummarizer::default()).build()?;
/// for n in 0..30 {
///     sessions.add_message("chat", Message::user(format!("Order {n} was shipped on Monday."))).await?;
/// }
/// if let Outcome::Started(handle) = sessions.maybe_summarize("chat").await {
///     println!("{}", handle.await);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct CompactionHandle {
    trigger: Option<Trigger>,
    reported: watch::Receiver<Option<Report>>,
    abort: Arc<OnceLock<AbortHandle>>,
}

impl CompactionHandle {
    /// Returns what made the compaction due; `None` where the host asked.
    #[must_use]
    pub const fn trigger(&self) -> Option<Trigger> {
        self.trigger
    }

    /// Ends the compaction. Nothing changes, unless it was just being
    /// committed; the report says which.
    pub fn cancel(&self) {
        if let Some(abort) = self.abort.get() {
            abort.abort();
        }
    }

    pub(super) fn runs_as(&self, abort: AbortHandle) {
        let _ = self.abort.set(abort);
    }
}

impl IntoFuture for CompactionHandle {
    type Output = Report;
    type IntoFuture = Pin<Box<dyn Future<Output = Report> + Send>>;

    fn into_future(mut self) -> Self::IntoFuture {
        Box::pin(async move {
            let report = self.reported.wait_for(Option::is_some).await;
            let report = report.ok().and_then(|report| report.clone());
            report.unwrap_or_else(|| Report::Failed(SummarizeError::cancelled()))
        })
    }
}
