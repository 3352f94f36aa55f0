//! Why a model gave no answer.

use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};

/// Says why a provider gave no answer, and what may be done about it.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use session_compaction::{ProviderError, ProviderErrorKind};
///
/// let error = ProviderError::new(ProviderErrorKind::RateLimited, "too many requests")
///     .with_status(429)
///     .with_retry_after(Duration::from_secs(7));
/// assert!(error.is_transient());
/// assert_eq!(error.to_string(), "the provider is rate limited (status 429): too many requests");
/// ```
#[derive(Clone)]
pub struct ProviderError(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ProviderErrorKind,
    message: String,
    status: Option<u16>,
    retry_after: Option<Duration>,
    source: Option<Arc<dyn StdError + Send + Sync + 'static>>,
}

/// What kind of failure a [`ProviderError`] is.
///
/// # Example
///
/// ```
/// use session_compaction::ProviderErrorKind;
///
/// assert_eq!(ProviderErrorKind::TooLong.to_string(), "the input is too long for the model");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum ProviderErrorKind {
    /// The key is wrong or may not do this. Another try does not help.
    Auth,
    /// The configuration cannot work: no key, or an address that is refused.
    Config,
    /// The answer was not one: broken JSON, a web page, too large.
    Malformed,
    /// Too many requests, or the provider is overloaded.
    RateLimited,
    /// The provider refused the request for another reason.
    Rejected,
    /// The provider failed (5xx).
    Server,
    /// No answer within the deadline, or none went on for too long.
    TimedOut,
    /// The input is longer than the model takes.
    TooLong,
    /// No connection, or it broke.
    Unreachable,
}

impl ProviderError {
    /// Creates an error. The message goes into logs: no keys, no text of a
    /// conversation.
    #[must_use]
    pub fn new(kind: ProviderErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self(Box::new(Inner { kind, message, status: None, retry_after: None, source: None }))
    }

    /// Sets the HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    /// Sets how long the provider asks to wait.
    #[must_use]
    pub fn with_retry_after(mut self, delay: Duration) -> Self {
        self.0.retry_after = Some(delay);
        self
    }

    /// Sets the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Returns the kind of failure.
    #[must_use]
    pub fn kind(&self) -> ProviderErrorKind {
        self.0.kind
    }

    /// Returns the HTTP status, where there was one.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// Returns how long the provider asks to wait, where it did.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns true when another try of the same request may help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        use ProviderErrorKind::{RateLimited, Server, Unreachable};
        matches!(self.0.kind, RateLimited | Server | Unreachable)
    }

    /// Returns true when the input was too long. A deadline is not that.
    #[must_use]
    pub fn is_too_long(&self) -> bool {
        self.0.kind == ProviderErrorKind::TooLong
    }
}

impl fmt::Display for ProviderErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auth => "the provider refused the key",
            Self::Config => "the provider is not configured",
            Self::Malformed => "the provider's answer cannot be read",
            Self::RateLimited => "the provider is rate limited",
            Self::Rejected => "the provider refused the request",
            Self::Server => "the provider failed",
            Self::TimedOut => "the provider did not answer in time",
            Self::TooLong => "the input is too long for the model",
            Self::Unreachable => "the provider cannot be reached",
        })
    }
}

impl fmt::Debug for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.kind)?;
        if let Some(status) = self.0.status {
            write!(f, " (status {status})")?;
        }
        if self.0.message.is_empty() { Ok(()) } else { write!(f, ": {}", self.0.message) }
    }
}

impl StdError for ProviderError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
