//! The summarizer that needs no model.

use async_trait::async_trait;

use super::{Wishes, extract, telegraph::Form};
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
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ExtractiveSummarizer(Wishes);

impl ExtractiveSummarizer {
    /// Sets strings that come out in full wherever they occur in the messages
    /// or the summary before them. A summary whose bound they exceed fails with
    /// an error that says by how many tokens.
    ///
    /// # Example
    ///
    /// ```
    /// use session_compaction::ExtractiveSummarizer;
    ///
    /// let summarizer = ExtractiveSummarizer::default().protecting(["AB-1234", "+49 30 5550"]);
    /// ```
    #[must_use]
    pub fn protecting<S: Into<String>>(mut self, strings: impl IntoIterator<Item = S>) -> Self {
        self.0.protected = strings.into_iter().map(Into::into).collect();
        self
    }

    /// Sets that function words are left out however large the bound. Unless
    /// this or [`whole_sentences`](Self::whole_sentences) is called, the bound
    /// decides.
    #[must_use]
    pub fn telegraphic(mut self) -> Self {
        self.0.form = Some(Form::Tight);
        self
    }

    /// Sets that sentences stay as they are however small the bound, for
    /// summaries that people read.
    #[must_use]
    pub fn whole_sentences(mut self) -> Self {
        self.0.form = Some(Form::Full);
        self
    }
}

#[async_trait]
impl Summarizer for ExtractiveSummarizer {
    async fn summarize(&self, request: SummaryRequest) -> Result<Summary, SummarizeError> {
        let wishes = self.0.clone();
        // It computes for a while: not on a thread that others wait for.
        let work = tokio::task::spawn_blocking(move || {
            extract(
                &request.messages,
                request.existing_summary.as_deref(),
                Tokens::from_tokens(request.max_tokens),
                &*request.counter,
                &wishes,
            )
        });
        work.await.map_err(from_join)?.map(Summary::new)
    }

    fn input(&self) -> SummarizerInput {
        SummarizerInput::Whole
    }

    fn name(&self) -> &'static str {
        "extractive"
    }
}
