//! What writes a summary: the trait, what it is given, what it gives back.

pub(crate) mod breaker;
mod closure;
mod error;
mod excerpt;
mod extractive;
mod facts;
mod fallback;
pub(crate) mod guard;
pub(crate) mod ledger;
mod llm;
mod merge;
pub(crate) mod parts;
mod prompt;
mod redact;
pub(crate) mod request;
mod transcript;

use std::{fmt, sync::Arc};

use async_trait::async_trait;

pub(crate) use self::parts::from_join;
pub use self::{
    closure::{SummarizeFn, summarize_fn},
    error::SummarizeError,
    extractive::ExtractiveSummarizer,
    fallback::Fallback,
    llm::LlmSummarizer,
    prompt::build_summarization_prompt,
    redact::{Redactor, SecretPatterns},
    request::{SummaryPart, SummaryRequest},
};
use crate::usage::TokenUsage;

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

    /// Returns how many tokens a request and its answer may hold together, by
    /// the session's counter; `None` where it is as large as the session's own context window. What is above it
    /// comes in parts.
    fn max_input_tokens(&self) -> Option<u64> {
        None
    }

    /// Returns what its input is redacted with before it is excerpted, parted
    /// and searched for facts; `None` where it gets the messages as they are.
    fn redactor(&self) -> Option<&dyn Redactor> {
        None
    }

    /// Returns the heading of the list of facts that is added to its summaries:
    /// paths, addresses, ids, numbers of the replaced messages that a summary
    /// leaves out. `None`: no list is added.
    fn facts_heading(&self) -> Option<&str> {
        None
    }

    /// Returns the name that is stored with its summaries.
    #[expect(clippy::unnecessary_literal_bound, reason = "others make theirs up")]
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

    fn redactor(&self) -> Option<&dyn Redactor> {
        (**self).redactor()
    }

    fn facts_heading(&self) -> Option<&str> {
        (**self).facts_heading()
    }

    fn name(&self) -> &str {
        (**self).name()
    }
}

/// How a summarizer wants long input.
///
/// # Example
///
/// ```
/// use session_compaction::{ExtractiveSummarizer, Summarizer, SummarizerInput};
///
/// assert_eq!(ExtractiveSummarizer::default().input(), SummarizerInput::Whole);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SummarizerInput {
    /// In parts that are summarized in parallel and merged, above
    /// `multi_part_batch_threshold` messages.
    Parts,
    /// In one piece, however long.
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
    /// Who wrote it, where that is not the summarizer that was asked.
    pub by: Option<String>,
}

impl Summary {
    /// Creates a summary.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), usage: None, by: None }
    }

    /// Sets what it cost.
    #[must_use]
    pub const fn with_usage(mut self, usage: TokenUsage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Sets who wrote it.
    #[must_use]
    pub fn by(mut self, name: impl Into<String>) -> Self {
        self.by = Some(name.into());
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
