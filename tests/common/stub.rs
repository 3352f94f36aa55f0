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
use session_compaction::{
    Message, SessionManager, SummarizationConfig, SummarizeError, Summarizer, Summary,
    SummaryRequest,
};
use tokio::sync::Semaphore;

type Answer = Box<dyn Fn(&SummaryRequest) -> Result<Summary, SummarizeError> + Send + Sync>;

/// A summarizer whose calls are recorded and, if wanted, held until released.
pub(crate) struct Stub {
    answer: Answer,
    gate: Option<Arc<Gate>>,
    requests: Arc<Mutex<Vec<SummaryRequest>>>,
}

impl fmt::Debug for Stub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stub")
    }
}

/// Holds calls: `entered` says that one waits, `release` lets one go.
#[derive(Debug)]
pub(crate) struct Gate {
    entered: Semaphore,
    released: Semaphore,
    /// How many calls are inside, to see that a cancelled one has left.
    inside: AtomicUsize,
}

impl Gate {
    pub(crate) async fn entered(&self) {
        self.entered.acquire().await.unwrap().forget();
    }

    pub(crate) fn release(&self) {
        self.released.add_permits(1);
    }

    pub(crate) fn inside(&self) -> usize {
        self.inside.load(Ordering::SeqCst)
    }
}

/// Counts a call out when its future is dropped.
struct Inside<'a>(&'a AtomicUsize);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Stub {
    pub(crate) fn new(
        answer: impl Fn(&SummaryRequest) -> Result<Summary, SummarizeError> + Send + Sync + 'static,
    ) -> Self {
        Self { answer: Box::new(answer), gate: None, requests: Arc::default() }
    }

    /// Always the same text.
    pub(crate) fn says(text: &'static str) -> Self {
        Self::new(move |_| Ok(text.into()))
    }

    /// One text a call, in turn; after the last, errors.
    pub(crate) fn replies(texts: impl IntoIterator<Item = &'static str>) -> Self {
        let texts = Mutex::new(texts.into_iter().collect::<VecDeque<_>>());
        Self::new(move |_| {
            texts
                .lock()
                .unwrap()
                .pop_front()
                .map(Into::into)
                .ok_or_else(|| "no more replies".into())
        })
    }

    pub(crate) fn held(mut self) -> (Self, Arc<Gate>) {
        let gate = Arc::new(Gate {
            entered: Semaphore::new(0),
            released: Semaphore::new(0),
            inside: AtomicUsize::new(0),
        });
        self.gate = Some(Arc::clone(&gate));
        (self, gate)
    }

    /// Where the requests are recorded.
    pub(crate) fn requests(&self) -> Arc<Mutex<Vec<SummaryRequest>>> {
        Arc::clone(&self.requests)
    }
}

#[async_trait]
impl Summarizer for Stub {
    async fn summarize(&self, request: SummaryRequest) -> Result<Summary, SummarizeError> {
        self.requests.lock().unwrap().push(request.clone());
        if let Some(gate) = &self.gate {
            gate.inside.fetch_add(1, Ordering::SeqCst);
            let _inside = Inside(&gate.inside);
            gate.entered.add_permits(1);
            gate.released.acquire().await.unwrap().forget();
        }
        (self.answer)(&request)
    }
}

/// A manager in memory; a compaction is due above 20 messages.
pub(crate) fn manager(summarizer: impl Summarizer) -> SessionManager {
    manager_with(summarizer, SummarizationConfig::default())
}

pub(crate) fn manager_with(
    summarizer: impl Summarizer,
    config: SummarizationConfig,
) -> SessionManager {
    SessionManager::builder().summarizer(summarizer).config(config).build().unwrap()
}

/// Message n of a conversation: users and assistants in turn.
pub(crate) fn message(n: usize) -> Message {
    if n.is_multiple_of(2) {
        Message::user(format!("Question {n}: how is part {n} of the machine doing?"))
    } else {
        Message::assistant(format!("Answer {n}: part {n} of the machine does well."))
    }
}

pub(crate) fn messages(range: std::ops::Range<usize>) -> Vec<Message> {
    range.map(message).collect()
}

pub(crate) async fn texts(sessions: &SessionManager, key: &str) -> Vec<String> {
    sessions.history(key).await.unwrap().iter().map(|message| message.text()).collect()
}

pub(crate) fn texts_of(messages: &[Message]) -> Vec<String> {
    messages.iter().map(Message::text).collect()
}
