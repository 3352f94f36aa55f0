//! Summarizers that answer as they are told to.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use tokio::sync::Semaphore;

use super::lock;
use crate::summarize::{SummarizeError, Summarizer, Summary, SummaryRequest};

/// A summarizer that answers as it is told to, and keeps what it was asked.
/// Clones are the same one: give one to the manager, and keep one.
///
/// Long input comes in parts and a merge, as for a model: a compaction of more
/// than `multi_part_batch_threshold` messages asks three times.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Compact, Message, Report, SessionManager, testing::Stub};
///
/// let stub = Stub::failing("no model today");
/// let sessions = SessionManager::builder().summarizer(stub.clone()).build()?;
/// for n in 0..12 {
///     sessions.add_message("chat", Message::user(format!("Order {n}?"))).await?;
/// }
/// let report = sessions.compact("chat", Compact::now()).await;
/// assert!(matches!(report, Report::Failed(_)));
/// assert_eq!(stub.requests()[0].messages.len(), 8);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Stub {
    answer: Arc<Answer>,
    gate: Option<Gate>,
    requests: Arc<Mutex<Vec<SummaryRequest>>>,
}

type Answer = dyn Fn(&SummaryRequest) -> Result<Summary, SummarizeError> + Send + Sync;

impl Stub {
    /// Creates one that answers by a function.
    pub fn answering(
        answer: impl Fn(&SummaryRequest) -> Result<Summary, SummarizeError> + Send + Sync + 'static,
    ) -> Self {
        Self { answer: Arc::new(answer), gate: None, requests: Arc::default() }
    }

    /// Creates one with an answer a call, in turn; after the last one it fails.
    pub fn replies<S: Into<Summary>>(replies: impl IntoIterator<Item = S>) -> Self {
        let replies: VecDeque<Summary> = replies.into_iter().map(Into::into).collect();
        let replies = Mutex::new(replies);
        let ended = || SummarizeError::from("the stub has no more replies");
        Self::answering(move |_| lock(&replies).pop_front().ok_or_else(ended))
    }

    /// Creates one with the same answer each time.
    pub fn says(text: impl Into<String>) -> Self {
        let text = text.into();
        Self::answering(move |_| Ok(Summary::new(&*text)))
    }

    /// Creates one that fails each time.
    pub fn failing(error: impl Into<SummarizeError>) -> Self {
        let error = error.into();
        Self::answering(move |_| Err(error.clone()))
    }

    /// Creates one whose calls wait at a gate, and then answer `A summary.`
    #[must_use]
    pub fn held() -> (Self, Gate) {
        Self::says("A summary.").gated()
    }

    /// Has its calls wait at a gate before they answer.
    #[must_use]
    pub fn gated(mut self) -> (Self, Gate) {
        let gate = Gate::default();
        self.gate = Some(gate.clone());
        (self, gate)
    }

    /// Returns what it was asked so far.
    #[must_use]
    pub fn requests(&self) -> Vec<SummaryRequest> {
        lock(&self.requests).clone()
    }
}

#[async_trait]
impl Summarizer for Stub {
    async fn summarize(&self, request: SummaryRequest) -> Result<Summary, SummarizeError> {
        lock(&self.requests).push(request.clone());
        if let Some(gate) = &self.gate {
            gate.pass().await;
        }
        (self.answer)(&request)
    }

    fn name(&self) -> &'static str {
        "stub"
    }
}

impl fmt::Debug for Stub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stub").field("gate", &self.gate).finish_non_exhaustive()
    }
}

/// Where the calls of a [`Stub`] wait. Clones are the same gate.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Message, Outcome, SessionManager, testing::Stub};
///
/// let (stub, gate) = Stub::held();
/// let sessions = SessionManager::builder().summarizer(stub).build()?;
/// for n in 0..30 {
///     sessions.add_message("chat", Message::user(format!("Order {n}?"))).await?;
/// }
/// drop(sessions.maybe_summarize("chat").await);
/// gate.entered().await; // the summarizer is at work, and stays so
/// sessions.add_message("chat", Message::user("And meanwhile?")).await?;
/// assert!(matches!(sessions.maybe_summarize("chat").await, Outcome::InFlight(_)));
///
/// gate.open();
/// sessions.wait_idle("chat").await;
/// assert_eq!(sessions.summary("chat").await?.as_deref(), Some("A summary."));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Gate(Arc<Calls>);

#[derive(Debug)]
struct Calls {
    entered: Semaphore,
    released: Semaphore,
    inside: AtomicUsize,
}

impl Gate {
    /// Waits until a call has come that was not waited for before.
    pub async fn entered(&self) {
        take(&self.0.entered).await;
    }

    /// Lets one call go: one that waits, or the next one.
    pub fn release(&self) {
        self.0.released.add_permits(1);
    }

    /// Lets all calls go, also later ones.
    pub fn open(&self) {
        self.0.released.close();
    }

    /// Returns how many calls wait here. One that was cancelled has left.
    #[must_use]
    pub fn inside(&self) -> usize {
        self.0.inside.load(Ordering::SeqCst)
    }

    async fn pass(&self) {
        self.0.inside.fetch_add(1, Ordering::SeqCst);
        let _inside = Inside(&self.0.inside);
        self.0.entered.add_permits(1);
        take(&self.0.released).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(Calls {
            entered: Semaphore::new(0),
            released: Semaphore::new(0),
            inside: AtomicUsize::new(0),
        }))
    }
}

/// Takes a permit for good; a closed semaphore is passed freely.
async fn take(permits: &Semaphore) {
    if let Ok(permit) = permits.acquire().await {
        permit.forget();
    }
}

/// Counts a call out when its future is dropped.
struct Inside<'a>(&'a AtomicUsize);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
