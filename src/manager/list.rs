//! The whole pipeline over a plain list.

use std::sync::Arc;

use super::{Compact, Report, SessionManager};
use crate::{
    config::SummarizationConfig,
    error::Result,
    message::{Message, MessageId},
    summarize::Summarizer,
};

/// What [`compact_messages`] leaves of a list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Compacted {
    /// The messages that are sent word for word, as they were given. All of
    /// them where nothing was applied.
    pub messages: Vec<Message>,
    /// What stands for the others; the existing summary where nothing was
    /// applied.
    pub summary: Option<String>,
    /// What was done, or why nothing was.
    pub report: Report,
}

/// Compacts a list of messages where the configuration says that it is due: for
/// hosts that keep conversations themselves.
///
/// It is the pipeline of [`SessionManager::compact`]: system and pinned
/// messages and the newest user message stay, no tool call is parted from its
/// results, the existing summary goes into the new one, long input is
/// summarized in parts, and an answer that is none changes nothing. Secrets are
/// taken out of the summary by [`SecretPatterns`](crate::SecretPatterns).
///
/// # Errors
///
/// [`Error::is_config`](crate::Error::is_config) where values of the
/// configuration contradict each other,
/// [`Error::is_no_runtime`](crate::Error::is_no_runtime) outside of a tokio
/// runtime. That there is no summary is no error: the report says so.
///
/// # Cancel safety
///
/// A dropped future leaves a summarizer at work until it answers; nobody takes
/// the answer.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use std::sync::Arc;
/// use session_compaction::{
///     ExtractiveSummarizer, Message, SummarizationConfig, Summarizer, compact_messages,
/// };
///
/// let summarizer: Arc<dyn Summarizer> = Arc::new(ExtractiveSummarizer::default());
/// let config = SummarizationConfig::default(); // due above 20 messages, 4 are kept
/// let messages: Vec<_> = (0..30)
///     .map(|n| Message::user(format!("Order {n} was shipped on Monday, and paid on Friday.")))
///     .collect();
/// let compacted = compact_messages(&messages, None, &config, &summarizer).await?;
///
/// assert!(compacted.report.applied().is_some());
/// assert_eq!(compacted.messages, messages[26..]);
/// assert!(compacted.summary.is_some());
/// # Ok(())
/// # }
/// ```
pub async fn compact_messages(
    messages: &[Message],
    existing_summary: Option<&str>,
    config: &SummarizationConfig,
    summarizer: &Arc<dyn Summarizer>,
) -> Result<Compacted> {
    const KEY: &str = "list";
    let sessions = SessionManager::builder()
        .config(config.clone())
        .summarizer(Arc::clone(summarizer))
        .build()?;
    // With ids of their own, equal ones in the list are no duplicates, so that
    // a position is an index.
    let named = messages.iter().map(|message| message.clone().with_id(MessageId::generate()));
    sessions.add_messages(KEY, named).await?;
    if let Some(summary) = existing_summary {
        sessions.set_summary(KEY, summary).await?;
    }
    let report = sessions.compact(KEY, Compact::if_due()).await;
    if report.applied().is_none() {
        let summary = existing_summary.map(str::to_owned);
        return Ok(Compacted { messages: messages.to_vec(), summary, report });
    }
    let history = sessions.history(KEY).await?;
    let kept = history.entries().filter_map(|entry| {
        let index = usize::try_from(entry.position).ok()?;
        messages.get(index).cloned()
    });
    let summary = history.summary().map(|summary| summary.text.clone());
    Ok(Compacted { messages: kept.collect(), summary, report })
}
