//! A compaction that the host asks for, and waits for.

use std::{future::IntoFuture as _, sync::Arc, time::Duration};

use tokio::time::timeout;

use super::{Outcome, Report, SessionManager, trigger::When};

/// How a host asks for a compaction.
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
/// for n in 0..30 {
///     sessions.add_message("chat", Message::user(format!("Order {n} was shipped on Monday."))).await?;
/// }
/// let report = sessions.compact("chat", Compact::if_due()).await;
/// println!("{report}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Compact {
    pub(super) when: When,
    pub(super) target: Option<u64>,
    pub(super) focus: Option<Arc<str>>,
    within: Option<Duration>,
}

impl Compact {
    /// Where the thresholds say so.
    #[must_use]
    pub const fn if_due() -> Self {
        Self { when: When::Due, target: None, focus: None, within: None }
    }

    /// Whatever the thresholds, the pause and `enabled` say, where a cut helps.
    #[must_use]
    pub const fn now() -> Self {
        Self { when: When::Now, target: None, focus: None, within: None }
    }

    /// Until summary and history take at most so many tokens, in place of the
    /// configured number of messages to keep. The newest messages get half
    /// as large a part of them as they are of the whole, at most a quarter; the rest is
    /// for the summary, if `summary_max_tokens` allows. What must be kept
    /// (system and pinned messages, the newest user message, open tool calls
    /// and what follows them) comes first, also where it alone is above the
    /// target: the summary then takes at most a quarter of it.
    #[must_use]
    pub const fn to_tokens(mut self, tokens: u64) -> Self {
        self.target = Some(tokens);
        self
    }

    /// Names what the summary should dwell on, in a few words, as a person
    /// would say it: `"the API design"`. It reaches the summarizer as
    /// [`SummaryRequest::focus`](crate::SummaryRequest::focus).
    /// [`LlmSummarizer`](crate::LlmSummarizer) tells its model;
    /// [`ExtractiveSummarizer`](crate::ExtractiveSummarizer) takes no notice. A
    /// compaction that is running already has its own.
    ///
    /// # Example
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> session_compaction::Result<()> {
    /// use session_compaction::{Compact, Message, SessionManager, SummarizeError, summarize_fn};
    ///
    /// let summarizer = summarize_fn(|request| async move {
    ///     Ok::<_, SummarizeError>(format!("Of {}.", request.focus.as_deref().unwrap_or("all")))
    /// });
    /// let sessions = SessionManager::builder().summarizer(summarizer).build()?;
    /// for n in 0..30 {
    ///     sessions.add_message("chat", Message::user(format!("Order {n} was shipped."))).await?;
    /// }
    /// let _ = sessions.compact("chat", Compact::now().focus("late orders")).await;
    /// assert_eq!(sessions.summary("chat").await?.as_deref(), Some("Of late orders."));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn focus(mut self, on: impl Into<String>) -> Self {
        let on: String = on.into();
        self.focus = Some(on.trim().into()).filter(|on: &Arc<str>| !on.is_empty());
        self
    }

    /// Waits for the end at most so long. After that the report is
    /// [`Report::StillRunning`], and the compaction runs on.
    ///
    /// # Example
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> session_compaction::Result<()> {
    /// use std::time::Duration;
    /// use session_compaction::{Compact, ExtractiveSummarizer, Report, SessionManager};
    ///
    /// let sessions =
    ///     SessionManager::builder().summarizer(ExtractiveSummarizer::default()).build()?;
    /// match sessions.compact("chat", Compact::if_due().within(Duration::from_secs(5))).await {
    ///     Report::StillRunning(handle) => handle.cancel(), // or drop it, to let it run on
    ///     report => println!("{report}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub const fn within(mut self, duration: Duration) -> Self {
        self.within = Some(duration);
        self
    }
}

impl SessionManager {
    /// Compacts a session and waits for the end, or as long as
    /// [`Compact::within`] says. Joins a compaction that is running already.
    ///
    /// # Cancel safety
    ///
    /// A dropped future leaves the compaction running in the background.
    pub async fn compact(&self, key: &str, how: Compact) -> Report {
        let within = how.within;
        let handle = match self.start(key, how, None).await {
            Outcome::Started(handle) | Outcome::InFlight(handle) => handle,
            outcome => return Report::NotStarted(Box::new(outcome)),
        };
        let Some(within) = within else { return handle.await };
        let ended = timeout(within, handle.clone().into_future()).await;
        ended.unwrap_or(Report::StillRunning(handle))
    }
}
