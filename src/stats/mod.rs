//! What all compactions and model calls came to, for operators. Read from what
//! the store keeps, so it holds across processes and restarts. Names and
//! figures only, never the text of a message or a summary.

mod json;
mod timeline;

pub use self::timeline::{SessionTimeline, TimelinePoint, TimelinePointKind};
use crate::{
    session::SessionKey,
    store::{DayTotals, UsageRecord},
    usage::UsageTotals,
};

/// What was done in all sessions of a store, and what it cost.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Compact, Counter, ExtractiveSummarizer, Message, SessionManager};
///
/// let sessions = SessionManager::builder().summarizer(ExtractiveSummarizer::default()).build()?;
/// for n in 0..30 {
///     sessions.add_message("chat", Message::user(format!("Order {n} was shipped on Monday."))).await?;
/// }
/// let _ = sessions.compact("chat", Compact::now()).await;
///
/// let stats = sessions.stats().await?;
/// assert_eq!((stats.sessions, stats.totals.of(Counter::Summarizations)), (1, 1));
/// assert!(stats.to_json().starts_with(r#"{"summary":{"total_sessions":1,"#));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// How many sessions the store holds.
    pub sessions: u64,
    /// The sums of all events, those of removed sessions included.
    pub totals: UsageTotals,
    /// The sums of the newest 30 days on which there was anything, in the order
    /// of time. Days are those of UTC.
    pub days: Vec<DayTotals>,
    /// The newest 50 events, the newest first.
    pub recent: Vec<UsageRecord>,
    /// The ten sessions from which most tokens were removed, and how many.
    pub largest: Vec<(SessionKey, u64)>,
    /// The ten sessions whose calls took longest, in milliseconds all in all.
    pub slowest: Vec<(SessionKey, u64)>,
}

impl Stats {
    /// How many days, recent events and sessions of a ranking are read.
    pub(crate) const DAYS: usize = 30;
    pub(crate) const RECENT: usize = 50;
    pub(crate) const RANKED: usize = 10;

    /// Writes a JSON object:
    ///
    /// - `summary`: `total_sessions`, `total_queries`, `total_tool_calls`,
    ///   `total_tool_errors`, `total_input_tokens`, `total_output_tokens`,
    ///   `total_cached_tokens`, `total_cost_usd`, `avg_latency_ms`,
    ///   `total_summarizations`, `total_messages_compacted`,
    ///   `total_chars_compacted`, `total_tokens_saved`,
    ///   `total_summarizer_tokens`
    /// - `activity`: an object for each day, with its `date` and sums
    /// - `outcomes`: how many summarizations ended how
    /// - `recent`: the newest events
    /// - `largest`, `slowest`: sessions, by tokens saved and by time
    ///
    /// Fields may be added; none is renamed or changes its meaning.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::stats(self)
    }
}

/// The sums of one session.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Counter, Message, SessionManager};
///
/// let sessions = SessionManager::builder().build()?;
/// sessions.add_message("chat", Message::user("hello")).await?;
/// let page = sessions.stats_sessions(None, 20).await?;
/// assert_eq!((&*page[0].session, page[0].totals.of(Counter::Queries)), ("chat", 0));
/// assert!(page[0].to_json().starts_with(r#"{"key":"chat","queries":0,"#));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionTotals {
    /// The session.
    pub session: SessionKey,
    /// The sums of its events.
    pub totals: UsageTotals,
}

impl SessionTotals {
    pub(crate) const fn new(session: SessionKey, totals: UsageTotals) -> Self {
        Self { session, totals }
    }

    /// Writes a JSON object: `key`, and the sums as in [`Stats::to_json`]'s
    /// `activity`.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::session(self)
    }
}
