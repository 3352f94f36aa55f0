//! Why there is no summary.

use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};

use super::Redactor;
use crate::provider::{ProviderError, ProviderErrorKind};

/// Says why a summarizer has no summary to give.
///
/// # Design
///
/// A plain text makes one, so that a closure can end in `?` or `.into()`.
/// What a caller may do about it (try again, try less, wait) is asked with
/// predicates.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use session_compaction::SummarizeError;
///
/// let busy = SummarizeError::transient("429 too many requests").retry_after(Duration::from_secs(7));
/// assert!(busy.is_transient());
/// assert_eq!(busy.retry_delay(), Some(Duration::from_secs(7)));
/// ```
#[derive(Clone)]
pub struct SummarizeError(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: Kind,
    message: String,
    advice: Option<&'static str>,
    retry_after: Option<Duration>,
    source: Option<Arc<dyn StdError + Send + Sync + 'static>>,
}

/// What helps against answers that are no summary.
pub(crate) const ANOTHER: &str = "take another model, or put a `Fallback` around it";

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Cancelled,
    Empty,
    Other,
    Panicked,
    Refused,
    TimedOut,
    TooLong,
    Transient,
    Unusable,
}

impl SummarizeError {
    /// Creates an error that may go away by itself.
    #[must_use]
    pub fn transient(message: impl Into<String>) -> Self {
        Self::of(Kind::Transient, message)
    }

    /// Creates an error that says that the input was too long.
    #[must_use]
    pub fn too_long(message: impl Into<String>) -> Self {
        Self::of(Kind::TooLong, message)
    }

    /// Creates an error that says that the model would not do it.
    #[must_use]
    pub fn refused(message: impl Into<String>) -> Self {
        Self::of(Kind::Refused, message)
    }

    /// Creates an error that says that the answer was no summary: a tool call, a
    /// required heading missing, cut off too early.
    #[must_use]
    pub fn unusable(message: impl Into<String>) -> Self {
        Self::of(Kind::Unusable, message)
    }

    pub(crate) fn cancelled() -> Self {
        Self::of(Kind::Cancelled, "the summarization was cancelled")
    }

    pub(crate) fn empty() -> Self {
        Self::of(Kind::Empty, "the summary has no visible text").advising(ANOTHER)
    }

    pub(crate) fn panicked(message: impl Into<String>) -> Self {
        Self::of(Kind::Panicked, message)
    }

    pub(crate) fn timed_out(after: Duration) -> Self {
        Self::of(Kind::TimedOut, format!("no summary within {after:?}; raise `timeout`"))
    }

    /// Adds what a host can do about it.
    pub(crate) fn advising(mut self, advice: &'static str) -> Self {
        self.0.advice = Some(advice);
        self
    }

    /// Returns what happened, without advice.
    pub(crate) fn problem(&self) -> &str {
        &self.0.message
    }

    /// Sets how long to wait before another try.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.0.retry_after = Some(delay);
        self
    }

    /// Sets the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Returns true when the host cancelled it.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.kind == Kind::Cancelled
    }

    /// Returns true when the summary had no visible text.
    #[must_use]
    pub fn is_empty_summary(&self) -> bool {
        self.0.kind == Kind::Empty
    }

    /// Returns true when the summarizer panicked.
    #[must_use]
    pub fn is_panic(&self) -> bool {
        self.0.kind == Kind::Panicked
    }

    /// Returns true when the model would not do it.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.0.kind == Kind::Refused
    }

    /// Returns true when the deadline passed.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.0.kind == Kind::TimedOut
    }

    /// Returns true when the input was too long.
    #[must_use]
    pub fn is_too_long(&self) -> bool {
        self.0.kind == Kind::TooLong
    }

    /// Returns true when another try may help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.0.kind == Kind::Transient
    }

    /// Returns true when the answer was something, but no summary.
    #[must_use]
    pub fn is_unusable(&self) -> bool {
        self.0.kind == Kind::Unusable
    }

    /// Returns true when there was an answer and it was refused: blank, a
    /// refusal, or no summary.
    pub(crate) fn is_bad_answer(&self) -> bool {
        matches!(self.0.kind, Kind::Empty | Kind::Refused | Kind::Unusable)
    }

    /// Returns one word for what went wrong, which quotes nobody.
    pub(crate) const fn name(&self) -> &'static str {
        match self.0.kind {
            Kind::Cancelled => "cancelled",
            Kind::Empty => "empty",
            Kind::Other => "other",
            Kind::Panicked => "panicked",
            Kind::Refused => "refused",
            Kind::TimedOut => "timed_out",
            Kind::TooLong => "too_long",
            Kind::Transient => "transient",
            Kind::Unusable => "unusable",
        }
    }

    /// Takes secrets out of what is printed. A cause whose own words hold one is
    /// dropped.
    pub(crate) fn redacted(mut self, redactor: &dyn Redactor) -> Self {
        self.0.message = redactor.redact(&self.0.message).into_owned();
        let mut cause = self.0.source.as_deref().map(|cause| cause as &dyn StdError);
        while let Some(error) = cause {
            let words = error.to_string();
            if redactor.redact(&words) != words {
                self.0.source = None;
                break;
            }
            cause = error.source();
        }
        self
    }

    /// Returns how long to wait before another try, where that is known.
    #[must_use]
    pub fn retry_delay(&self) -> Option<Duration> {
        self.0.retry_after
    }

    fn of(kind: Kind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self(Box::new(Inner { kind, message, advice: None, retry_after: None, source: None }))
    }
}

impl fmt::Debug for SummarizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for SummarizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.advice {
            Some(advice) => write!(f, "{}; {advice}", self.0.message),
            None => f.pad(&self.0.message),
        }
    }
}

impl StdError for SummarizeError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

/// Takes over what may be done about it. The provider's error is the cause.
impl From<ProviderError> for SummarizeError {
    fn from(error: ProviderError) -> Self {
        let kind = match error.kind() {
            ProviderErrorKind::TimedOut => Kind::TimedOut,
            _ if error.is_too_long() => Kind::TooLong,
            _ if error.is_transient() => Kind::Transient,
            _ => Kind::Other,
        };
        let mut own = Self::of(kind, error.to_string());
        own.0.retry_after = error.retry_after();
        own.with_source(error)
    }
}

impl From<String> for SummarizeError {
    fn from(message: String) -> Self {
        Self::of(Kind::Other, message)
    }
}

impl From<&str> for SummarizeError {
    fn from(message: &str) -> Self {
        Self::of(Kind::Other, message)
    }
}

impl From<Box<dyn StdError + Send + Sync + 'static>> for SummarizeError {
    fn from(source: Box<dyn StdError + Send + Sync + 'static>) -> Self {
        // Its text becomes ours, so the chain goes on below it.
        let mut error = Self::of(Kind::Other, source.to_string());
        if source.source().is_some() {
            error.0.source = Some(Arc::from(source));
        }
        error
    }
}
