//! A second summarizer for when the first one has no answer.

use async_trait::async_trait;
use tokio::time::timeout;

use super::{
    Redactor, SecretPatterns, SummarizeError, Summarizer, SummarizerInput, Summary, SummaryRequest,
    guard,
};

/// Asks a second summarizer where the first one fails: a smaller model, or one
/// that needs no model at all. Which of them wrote a summary is stored with it.
///
/// Nests: `Fallback::new(large, Fallback::new(small, extractive))`.
///
/// An input that was too long for the first is first given to it in smaller
/// parts; the second is asked where the messages cannot be parted any more. The
/// first has three quarters of the time that is left.
///
/// # Example
///
/// ```
/// use session_compaction::{Fallback, SessionManager, SummarizeError, summarize_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// let model = summarize_fn(|_| async { Err::<String, _>(SummarizeError::transient("503")) });
/// let simple = summarize_fn(|request| async move {
///     Ok::<_, SummarizeError>(format!("{} messages about the disk", request.messages.len()))
/// });
/// let sessions = SessionManager::builder().summarizer(Fallback::new(model, simple)).build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Fallback<A, B> {
    primary: A,
    secondary: B,
    name: String,
}

impl<A: Summarizer, B: Summarizer> Fallback<A, B> {
    /// Creates a summarizer that asks `primary`, and `secondary` where that one
    /// fails.
    #[must_use]
    pub fn new(primary: A, secondary: B) -> Self {
        let name = format!("{} or {}", primary.name(), secondary.name());
        Self { primary, secondary, name }
    }
}

#[async_trait]
impl<A: Summarizer, B: Summarizer> Summarizer for Fallback<A, B> {
    async fn summarize(&self, request: SummaryRequest) -> Result<Summary, SummarizeError> {
        let divisible = self.input() == SummarizerInput::Parts && request.messages.len() > 1;
        let patience = request.deadline.mul_f64(0.75);
        let error = match timeout(patience, checked(&self.primary, request.clone())).await {
            Ok(Ok(summary)) => return Ok(summary),
            // Half of it is asked for next.
            Ok(Err(error)) if error.is_too_long() && divisible => return Err(error),
            Ok(Err(error)) => error,
            Err(_) => SummarizeError::timed_out(patience),
        };
        let error = error.redacted(self.redactor().unwrap_or(&SecretPatterns));
        tracing::warn!(%error, "{} gave no summary; {} is asked", self.primary.name(), self.secondary.name());
        checked(&self.secondary, request).await.map_err(|_| error)
    }

    fn input(&self) -> SummarizerInput {
        self.primary.input()
    }

    fn max_input_tokens(&self) -> Option<u64> {
        let bounds = [self.primary.max_input_tokens(), self.secondary.max_input_tokens()];
        bounds.into_iter().flatten().min()
    }

    fn redactor(&self) -> Option<&dyn Redactor> {
        self.primary.redactor().or_else(|| self.secondary.redactor())
    }

    fn facts_heading(&self) -> Option<&str> {
        self.primary.facts_heading().or_else(|| self.secondary.facts_heading())
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// Asks one of the two, and names it as the author.
async fn checked(
    summarizer: &impl Summarizer,
    request: SummaryRequest,
) -> Result<Summary, SummarizeError> {
    let summary = guard::check(summarizer.summarize(request).await?)?;
    let by = summary.by.clone().unwrap_or_else(|| summarizer.name().to_owned());
    Ok(summary.by(by))
}
