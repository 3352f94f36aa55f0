//! How one session grew and was compacted.

use crate::{
    plan::Measured,
    session::SessionKey,
    store::UsageRecord,
    usage::{UsageEvent, UsageKind, UsageOutcome, UsageTotals},
};

use super::json;

/// The size of one session's context over time, with its compactions: what a
/// saw-tooth chart is drawn from.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{
///     Compact, ExtractiveSummarizer, Message, SessionManager, TimelinePointKind,
/// };
///
/// let sessions = SessionManager::builder().summarizer(ExtractiveSummarizer::default()).build()?;
/// for n in 0..30 {
///     sessions.add_message("chat", Message::user(format!("Order {n} was shipped on Monday."))).await?;
/// }
/// let _ = sessions.compact("chat", Compact::now()).await;
///
/// let timeline = sessions.session_timeline("chat").await?;
/// let kinds: Vec<_> = timeline.points.iter().map(|point| point.kind).collect();
/// assert_eq!(kinds, [TimelinePointKind::Before, TimelinePointKind::After]);
/// assert_eq!(timeline.compactions.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct SessionTimeline {
    /// The session.
    pub session: SessionKey,
    /// The context window in tokens.
    pub context_window: u64,
    /// Above how many tokens a compaction is due; none where tokens do not
    /// decide.
    pub trigger: Option<u64>,
    /// How large the session is now.
    pub now: Measured,
    /// Sizes of the context, in the order of time.
    pub points: Vec<TimelinePoint>,
    /// The newest compactions that were applied, in the order of time.
    pub compactions: Vec<UsageEvent>,
    /// The sums of all events of the session.
    pub totals: UsageTotals,
}

/// The size of a context at one moment.
///
/// # Example
///
/// ```
/// use session_compaction::{TimelinePoint, TimelinePointKind};
///
/// fn drop_of(before: &TimelinePoint, after: &TimelinePoint) -> u64 {
///     assert_eq!(after.kind, TimelinePointKind::After);
///     before.tokens.saturating_sub(after.tokens)
/// }
/// # let _ = drop_of;
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct TimelinePoint {
    /// When, in milliseconds since 1970.
    pub unix_millis: u64,
    /// How many tokens.
    pub tokens: u64,
    /// What it was measured for.
    pub kind: TimelinePointKind,
}

/// What a [`TimelinePoint`] was measured for.
///
/// # Example
///
/// ```
/// use session_compaction::TimelinePointKind;
///
/// assert_eq!(TimelinePointKind::After.name(), "after");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum TimelinePointKind {
    /// What a compaction has left, by the estimate.
    After,
    /// What a compaction found, by the estimate.
    Before,
    /// What the provider counted for a call of the host's.
    Reported,
}

impl TimelinePointKind {
    /// Returns the name of the kind.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::After => "after",
            Self::Before => "before",
            Self::Reported => "reported",
        }
    }
}

impl SessionTimeline {
    /// How many of a session's events a timeline is made of.
    pub(crate) const EVENTS: usize = 500;

    pub(crate) fn new(
        session: SessionKey,
        (context_window, trigger): (u64, Option<u64>),
        now: Measured,
        totals: UsageTotals,
        newest_first: Vec<UsageRecord>,
    ) -> Self {
        let events = newest_first.into_iter().rev().map(|record| record.event);
        let (mut points, mut compactions) = (Vec::new(), Vec::new());
        for event in events {
            let mut point = |tokens, kind| {
                points.push(TimelinePoint { unix_millis: event.unix_millis, tokens, kind });
            };
            match (event.kind, event.outcome) {
                (UsageKind::Summarization, UsageOutcome::Applied) => {
                    point(event.tokens_before, TimelinePointKind::Before);
                    point(event.tokens_after, TimelinePointKind::After);
                    compactions.push(event);
                }
                (UsageKind::Query, _) => {
                    if let Some(usage) = event.usage.filter(|usage| usage.input > 0) {
                        point(usage.input, TimelinePointKind::Reported);
                    }
                }
                _ => {}
            }
        }
        Self { session, context_window, trigger, now, points, compactions, totals }
    }

    /// Writes a JSON object: `key`, `context_window`, `trigger`, `now`
    /// (`messages`, `chars`, `tokens`), `points` (`at_ms`, `tokens`, `kind`),
    /// `compactions` and `totals`. Fields may be added; none is renamed or
    /// changes its meaning.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::timeline(self)
    }
}
