//! The summarizer that needs no model.

use async_trait::async_trait;

use super::extract;
use crate::{
    summarize::{SummarizeError, Summarizer, SummarizerInput, Summary, SummaryRequest, from_join},
    tokens::Tokens,
};

/// Writes summaries without a model and without a network: the sentences,
/// snippets and facts that cover the most of a conversation within the bound.
///
/// Deterministic, never above the bound, in the language of the conversation.
/// It takes its input whole, and says nothing where there is no room: that
/// answer is refused as empty.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Compact, ExtractiveSummarizer, Message, SessionManager};
///
/// let sessions =
///     SessionManager::builder().summarizer(ExtractiveSummarizer::default()).build()?;
/// sessions.add_message("chat", Message::user("My order AB-1234 has not arrived in Lisbon.")).await?;
/// for n in 0..12 {
///     sessions.add_message("chat", Message::assistant(format!("I looked at depot {n}: nothing there yet."))).await?;
///     sessions.add_message("chat", Message::user("Then please look at the next one, thank you.")).await?;
/// }
/// assert!(sessions.compact("chat", Compact::now()).await.applied().is_some());
/// assert!(sessions.summary("chat").await?.unwrap().contains("AB-1234"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ExtractiveSummarizer;

#[async_trait]
impl Summarizer for ExtractiveSummarizer {
    async fn summarize(&self, request: SummaryRequest) -> Result<Summary, SummarizeError> {
        // It computes for a while: not on a thread that others wait for.
        let work = tokio::task::spawn_blocking(move || {
            extract(
                &request.messages,
                request.existing_summary.as_deref(),
                Tokens::from_tokens(request.max_tokens),
                &*request.counter,
            )
        });
        work.await.map(Summary::new).map_err(from_join)
    }

    fn input(&self) -> SummarizerInput {
        SummarizerInput::Whole
    }

    fn name(&self) -> &'static str {
        "extractive"
    }
}
