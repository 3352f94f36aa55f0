//! What writes a summary: the trait, what it is given, what it gives back.

mod closure;
mod error;
mod excerpt;
mod extractive;
pub(crate) mod guard;
pub(crate) mod parts;

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;

pub(crate) use self::parts::from_join;
pub use self::{
    closure::{SummarizeFn, summarize_fn},
    error::SummarizeError,
    extractive::ExtractiveSummarizer,
};
use crate::{
    message::Message,
    session::{SessionKey, SessionOptions},
    tokens::TokenCounter,
    usage::TokenUsage,
};

/// Writes summaries.
///
/// # Contract
///
/// - The existing summary of the request is an input: what it says is in the
///   answer, or the answer is worth less than what it replaces.
/// - No answer is better than a bad one: an error changes nothing.
/// - Dropping the future cancels the work. It runs in a task of its own, so a
///   panic harms nobody and an answer after the deadline is refused.
///
/// Closures become summarizers through [`summarize_fn`].
///
/// # Example
///
/// ```
/// use session_compaction::{Summarizer, SummarizeError, Summary, SummaryRequest};
///
/// /// Keeps the first line of each message.
/// #[derive(Debug)]
/// struct FirstLines;
///
/// #[async_trait::async_trait]
/// impl Summarizer for FirstLines {
///     async fn summarize(&self, request: SummaryRequest) -> Result<Summary, SummarizeError> {
///         let old = request.existing_summary.iter().map(|text| text.to_string());
///         let new = request.messages.iter().filter_map(|m| Some(m.text().lines().next()?.to_owned()));
///         Ok(old.chain(new).collect::<Vec<_>>().join("\n").into())
///     }
/// }
/// ```
#[async_trait]
pub trait Summarizer: fmt::Debug + Send + Sync + 'static {
    /// Writes a summary of the request's messages and its existing summary.
    async fn summarize(&self, request: SummaryRequest) -> Result<Summary, SummarizeError>;

    /// Returns how it wants its input.
    fn input(&self) -> SummarizerInput {
        SummarizerInput::Parts
    }

    /// Returns the largest input that it takes, in tokens by the session's
    /// counter; `None` where there is no bound.
    fn max_input_tokens(&self) -> Option<u64> {
        None
    }

    /// Returns the name that is stored with its summaries.
    fn name(&self) -> &str {
        "summarizer"
    }
}

const _: fn(&dyn Summarizer) = |_| {};

#[async_trait]
impl<S: Summarizer + ?Sized> Summarizer for Arc<S> {
    async fn summarize(&self, request: SummaryRequest) -> Result<Summary, SummarizeError> {
        (**self).summarize(request).await
    }

    fn input(&self) -> SummarizerInput {
        (**self).input()
    }

    fn max_input_tokens(&self) -> Option<u64> {
        (**self).max_input_tokens()
    }

    fn name(&self) -> &str {
        (**self).name()
    }
}

/// How a summarizer wants long input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SummarizerInput {
    /// In parts that are summarized in parallel and merged, above
    /// `multi_part_batch_threshold` messages.
    Parts,
    /// In one piece, however long.
    Whole,
}

/// What a summarizer is given.
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
    /// The largest answer that is of use, in tokens by `counter`.
    pub max_tokens: u64,
    /// The temperature for a model.
    pub temperature: f64,
    /// How long the whole summarization may still take.
    pub deadline: Duration,
    /// Counts tokens as the session does.
    pub counter: Arc<dyn TokenCounter>,
}

/// Which part of a summarization a request is for.
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

/// What a summarizer gives back.
///
/// # Example
///
/// ```
/// use session_compaction::{Summary, TokenUsage};
///
/// let summary = Summary::from("The user wants metric units.").with_usage(TokenUsage::new(900, 8));
/// assert_eq!(summary.text, "The user wants metric units.");
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// The text.
    pub text: String,
    /// What it cost, where known.
    pub usage: Option<TokenUsage>,
}

impl Summary {
    /// Creates a summary.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), usage: None }
    }

    /// Sets what it cost.
    #[must_use]
    pub const fn with_usage(mut self, usage: TokenUsage) -> Self {
        self.usage = Some(usage);
        self
    }
}

impl From<String> for Summary {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Summary {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}
