//! Closures as summarizers.

use std::{fmt, future::Future, pin::Pin};

use async_trait::async_trait;

use super::{SummarizeError, Summarizer, Summary, SummaryRequest};

type Answer = Pin<Box<dyn Future<Output = Result<Summary, SummarizeError>> + Send>>;

/// A summarizer made of a closure by [`summarize_fn`]. What the closure
/// returns is stored as it is.
///
/// # Example
///
/// ```
/// use session_compaction::{SummarizeError, SummarizeFn, summarize_fn};
///
/// let summarizer: SummarizeFn = summarize_fn(|_| async { Ok::<_, SummarizeError>("All well.") });
/// # let _ = summarizer;
/// ```
pub struct SummarizeFn(Box<dyn Fn(SummaryRequest) -> Answer + Send + Sync>);

/// Makes a summarizer of an async closure.
///
/// # Example
///
/// ```
/// use session_compaction::{SummarizeError, SessionManager, summarize_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// let sessions = SessionManager::builder()
///     .summarizer(summarize_fn(|request| async move {
///         Ok::<_, SummarizeError>(format!("{} messages about the disk", request.messages.len()))
///     }))
///     .build()?;
/// # Ok(())
/// # }
/// ```
pub fn summarize_fn<F, Fut, T>(f: F) -> SummarizeFn
where
    F: Fn(SummaryRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, SummarizeError>> + Send + 'static,
    T: Into<Summary> + 'static,
{
    SummarizeFn(Box::new(move |request| {
        let answer = f(request);
        Box::pin(async move { answer.await.map(Into::into) })
    }))
}

#[async_trait]
impl Summarizer for SummarizeFn {
    async fn summarize(&self, request: SummaryRequest) -> Result<Summary, SummarizeError> {
        (self.0)(request).await
    }

    fn name(&self) -> &'static str {
        "summarize_fn"
    }
}

impl fmt::Debug for SummarizeFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SummarizeFn")
    }
}
