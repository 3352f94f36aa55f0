//! What a summarizer is given.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::ledger::Ledger;
use crate::{
    config::SummarizationConfig,
    message::Message,
    session::{SessionKey, SessionOptions},
    tokens::TokenCounter,
    usage::TokenUsage,
};

/// What a summarizer is given.
///
/// # Example
///
/// ```
/// use std::sync::Arc;
/// use session_compaction::{ByteEstimate, Message, SessionKey, SummaryRequest};
///
/// let messages = [Message::user("Is the disk full?"), Message::assistant("42% used.")];
/// let key = SessionKey::new("telegram:42")?;
/// let request = SummaryRequest::new(key, messages, Arc::new(ByteEstimate::default()));
/// assert_eq!(request.max_tokens, 1_024);
/// # Ok::<(), session_compaction::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SummaryRequest {
    /// The session.
    pub session: SessionKey,
    /// What the host configured for it.
    pub options: Arc<SessionOptions>,
    /// Which part of the work this is.
    pub part: SummaryPart,
    /// The messages to summarize, in order; in a merge, the parts' summaries
    /// as user messages.
    pub messages: Arc<[Arc<Message>]>,
    /// The summary so far, which the new one replaces.
    pub existing_summary: Option<Arc<str>>,
    /// What the host wants the summary to dwell on, in its own words.
    pub focus: Option<Arc<str>>,
    /// The largest answer that is of use, in tokens by `counter`.
    pub max_tokens: u64,
    /// The temperature for a model.
    pub temperature: f64,
    /// How long the whole summarization may still take.
    pub deadline: Duration,
    /// Counts tokens as the session does.
    pub counter: Arc<dyn TokenCounter>,
    pub(crate) clock: Clock,
    pub(crate) ledger: Arc<Ledger>,
}

impl SummaryRequest {
    /// Creates a request for all of the messages, with the default bounds, for
    /// a host that calls a summarizer itself.
    #[must_use]
    pub fn new(
        session: SessionKey,
        messages: impl IntoIterator<Item = Message>,
        counter: Arc<dyn TokenCounter>,
    ) -> Self {
        let config = SummarizationConfig::default();
        Self {
            session,
            options: Arc::default(),
            part: SummaryPart::Whole,
            messages: messages.into_iter().map(Arc::new).collect(),
            existing_summary: None,
            focus: None,
            max_tokens: config.summary_max_tokens,
            temperature: config.summary_temperature,
            deadline: config.timeout,
            counter,
            clock: Clock::default(),
            ledger: Arc::default(),
        }
    }

    /// Returns true once in a compaction, however many parts it has: an answer
    /// that was no summary may then be asked for again.
    #[must_use]
    pub fn take_retry(&self) -> bool {
        self.ledger.take_retry()
    }

    /// Notes that a model is about to be asked, for the usage event of the
    /// compaction. [`LlmSummarizer`](crate::LlmSummarizer) does so by itself.
    ///
    /// # Example
    ///
    /// ```
    /// use session_compaction::{SummarizeError, SummaryRequest, TokenUsage, summarize_fn};
    ///
    /// let summarizer = summarize_fn(|request: SummaryRequest| async move {
    ///     request.count_attempt("my-model");
    ///     // .. the model is asked, and its answer counted whatever it is ..
    ///     request.count_usage(TokenUsage::new(900, 40));
    ///     Ok::<_, SummarizeError>("All is well.".to_owned())
    /// });
    /// ```
    pub fn count_attempt(&self, model: &str) {
        self.ledger.asked(model);
    }

    /// Notes what a model's answer used, whether it is of use or not: a refused
    /// answer is paid as well. Counts all answers of the compaction together.
    pub fn count_usage(&self, usage: TokenUsage) {
        self.ledger.used(usage);
    }
}

/// Which part of a summarization a request is for.
///
/// # Example
///
/// ```
/// use session_compaction::SummaryPart;
///
/// assert_ne!(SummaryPart::Part { index: 0, of: 2 }, SummaryPart::Merge);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SummaryPart {
    /// The summaries of all parts become one.
    Merge,
    /// One of several parts of the messages: `index` counts from 0.
    Part {
        /// Which one.
        index: usize,
        /// How many there are.
        of: usize,
    },
    /// All of it.
    Whole,
}

/// Tells the time; the host's own in tests.
#[derive(Clone)]
pub(crate) struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    pub(crate) fn new(now: Arc<dyn Fn() -> SystemTime + Send + Sync>) -> Self {
        Self(now)
    }

    pub(crate) fn unix_millis(&self) -> u64 {
        let now = (self.0)().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self(Arc::new(SystemTime::now))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
