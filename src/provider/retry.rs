//! Tries a provider again where that may help.

use std::time::Duration;

use async_trait::async_trait;
use backon::{ExponentialBuilder, Retryable};
use tokio::time::Instant;

use super::{ChatRequest, ChatResponse, LlmProvider, ProviderError};

/// A provider that is asked again when it failed in a way that may pass: too
/// many requests, overloaded, 408, 5xx, no connection, a broken one.
///
/// There are at most three tries, with growing, random pauses between them. A
/// provider's own wish how long to wait is honoured: a short one is slept on,
/// a longer one ends the call at once, with the wish in
/// [`ProviderError::retry_after`], so that the caller can pause instead of
/// holding on to its work.
///
/// # Default
///
/// - longest wait that is slept on: 2 s
/// - deadline: 120 s
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use session_compaction::{OpenAiCompatible, Retrying};
///
/// let model = OpenAiCompatible::new("http://localhost:11434/v1")?;
/// let model = Retrying::new(model).with_deadline(Duration::from_secs(30));
/// # Ok::<(), session_compaction::ProviderError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Retrying<P> {
    inner: P,
    longest_wait: Duration,
    deadline: Duration,
}

/// Beyond this, no call sleeps, whatever it is told.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

impl<P: LlmProvider> Retrying<P> {
    /// Wraps a provider.
    #[must_use]
    pub fn new(inner: P) -> Self {
        let (longest_wait, deadline) = (Duration::from_secs(2), Duration::from_mins(2));
        Self { inner, longest_wait, deadline }
    }

    /// Sets the longest `Retry-After` that is slept on, at most 60 s.
    #[must_use]
    pub fn with_longest_wait(mut self, wait: Duration) -> Self {
        self.longest_wait = wait.min(LONGEST_WAIT);
        self
    }

    /// Sets how long a call may take in all. No pause goes beyond it; a request
    /// that runs is not cut off.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Returns how long to wait, or `None` to give up.
    fn pause(&self, error: &ProviderError, pause: Duration, spent: Duration) -> Option<Duration> {
        let asked = error.retry_after().unwrap_or_default();
        let wait = pause.max(asked);
        (asked <= self.longest_wait && wait < self.deadline.saturating_sub(spent)).then_some(wait)
    }
}

#[async_trait]
impl<P: LlmProvider> LlmProvider for Retrying<P> {
    async fn chat(&self, request: ChatRequest) -> Result<ChatResponse, ProviderError> {
        let start = Instant::now();
        let backoff = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(500))
            .with_max_times(2)
            .with_jitter();
        (|| self.inner.chat(request.clone()))
            .retry(backoff)
            .when(ProviderError::is_transient)
            .adjust(|error, pause| self.pause(error, pause?, start.elapsed()))
            .await
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}
