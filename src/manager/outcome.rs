//! What became of a compaction, in words and figures.

use std::{fmt, ops::Range, time::Duration};

use super::claim::CompactionHandle;
use crate::{
    error::Error,
    plan::{Measured, Skip},
    session::PauseUntil,
    summarize::SummarizeError,
    usage::TokenUsage,
};

/// What [`SessionManager::maybe_summarize`](crate::SessionManager::maybe_summarize)
/// did. Never an error that a host must handle: housekeeping must not cost it
/// its answer.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{ExtractiveSummarizer, Outcome, SessionManager};
///
/// let sessions =
///     SessionManager::builder().summarizer(ExtractiveSummarizer::default()).build()?;
/// match sessions.maybe_summarize("chat").await {
///     Outcome::Started(handle) => println!("{}", handle.await),
///     outcome => assert_eq!(outcome.to_string(), "nothing is due: 0 messages, 0 characters, 0 tokens"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
#[non_exhaustive]
pub enum Outcome {
    /// Nothing is due.
    BelowThreshold {
        /// How large the session is.
        measured: Measured,
    },
    /// One is due, and another process is told, as
    /// [`RunIn::Elsewhere`](crate::RunIn::Elsewhere) says.
    Deferred,
    /// The configuration says `enabled: false`.
    Disabled,
    /// Another process, or another manager, compacts this session.
    HeldElsewhere,
    /// A compaction of this session is running already.
    InFlight(CompactionHandle),
    /// The manager was built without a summarizer.
    NoSummarizer,
    /// One is due, but none is tried for now.
    Paused {
        /// When the pause ends.
        until: PauseUntil,
        /// What happened.
        reason: String,
    },
    /// The manager is shutting down.
    ShuttingDown,
    /// A compaction was started in the background.
    Started(CompactionHandle),
    /// The store could not say how large the session is, or the key is none.
    Unavailable(Error),
    /// The session's options name a summarizer that the manager was not built
    /// with.
    UnknownSummarizer {
        /// The name.
        name: String,
    },
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BelowThreshold { measured } => write!(f, "nothing is due: {measured}"),
            Self::Deferred => f.write_str("a compaction is due and left to another process"),
            Self::Disabled => f.write_str("summarization is disabled"),
            Self::HeldElsewhere => f.write_str("another process compacts this session"),
            Self::InFlight(_) => f.write_str("a compaction is running"),
            Self::NoSummarizer => f.write_str("there is no summarizer"),
            Self::Paused { until, reason } => write!(f, "paused {until}: {reason}"),
            Self::ShuttingDown => f.write_str("the manager is shutting down"),
            Self::Started(handle) => match handle.trigger() {
                Some(trigger) => write!(f, "a compaction was started: {trigger}"),
                None => f.write_str("a compaction was started"),
            },
            Self::Unavailable(error) => write!(f, "the session cannot be read: {error}"),
            Self::UnknownSummarizer { name } => write!(
                f,
                "the session asks for the summarizer {name:?}, which the manager was not built with"
            ),
        }
    }
}

/// How a compaction ended. All but [`Report::Applied`] changed nothing; what
/// is [still running](Report::StillRunning) may yet.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Compact, ExtractiveSummarizer, Report, SessionManager, Skip};
///
/// let sessions =
///     SessionManager::builder().summarizer(ExtractiveSummarizer::default()).build()?;
/// let report = sessions.compact("chat", Compact::now()).await;
/// assert!(matches!(report, Report::Skipped(Skip::NothingToCut)));
/// assert!(report.applied().is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
#[non_exhaustive]
pub enum Report {
    /// The summary stands for the replaced messages.
    Applied(Compaction),
    /// The summarizer gave no answer.
    Failed(SummarizeError),
    /// No compaction was begun.
    NotStarted(Box<Outcome>),
    /// The answer was not smaller than what it would have replaced.
    NothingToGain {
        /// Tokens of the replaced messages and the old summary.
        replaced: u64,
        /// Tokens of the new summary, its fence included.
        summary: u64,
    },
    /// The answer was no summary.
    Rejected {
        /// What was wrong with it.
        why: SummarizeError,
    },
    /// No cut helps; the summarizer was not asked.
    Skipped(Skip),
    /// The session was rewritten, cleared or removed meanwhile.
    Stale,
    /// It did not end [within](crate::Compact::within) the time that the host
    /// gave it, and runs on.
    StillRunning(CompactionHandle),
    /// The store failed.
    Unavailable(Error),
}

impl Report {
    /// Returns what was done, where something was.
    #[must_use]
    pub const fn applied(&self) -> Option<&Compaction> {
        match self {
            Self::Applied(compaction) => Some(compaction),
            _ => None,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied(done) => write!(
                f,
                "{} messages replaced by a summary, {} kept: {} -> {} tokens",
                done.messages_removed, done.messages_kept, done.tokens_before, done.tokens_after
            ),
            Self::Failed(error) => write!(f, "no summary: {error}"),
            Self::NotStarted(outcome) => write!(f, "not started: {outcome}"),
            Self::NothingToGain { replaced, summary } => write!(
                f,
                "the summary takes {summary} tokens, what it would replace {replaced}: nothing to gain"
            ),
            Self::Rejected { why } => write!(f, "the answer was refused: {why}"),
            Self::Skipped(skip) => write!(f, "nothing to compact: {skip}"),
            Self::Stale => f.write_str("the session changed meanwhile; nothing was applied"),
            Self::StillRunning(_) => f.write_str("the compaction is still running"),
            Self::Unavailable(error) => write!(f, "the store failed: {error}"),
        }
    }
}

/// What one compaction did.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{ExtractiveSummarizer, Compact, Message, SessionManager};
///
/// let sessions =
///     SessionManager::builder().summarizer(ExtractiveSummarizer::default()).build()?;
/// for n in 0..30 {
///     sessions.add_message("chat", Message::user(format!("Order {n} was shipped on Monday."))).await?;
/// }
/// let report = sessions.compact("chat", Compact::now()).await;
/// let done = report.applied().unwrap();
/// assert_eq!((done.messages_removed, done.messages_kept), (26, 4));
/// assert!(done.tokens_after < done.tokens_before);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Compaction {
    /// The positions that left the window: those that are not carried are in
    /// the summary.
    pub range: Range<u64>,
    /// How many messages the summary newly stands for.
    pub messages_removed: u64,
    /// How many characters they had.
    pub chars_removed: u64,
    /// How many messages the history has now, carried ones included.
    pub messages_kept: u64,
    /// Estimated tokens of history and summary before.
    pub tokens_before: u64,
    /// And after.
    pub tokens_after: u64,
    /// Characters of the new summary.
    pub summary_chars: u64,
    /// Its tokens, fence included.
    pub summary_tokens: u64,
    /// How many long messages the summarizer saw an excerpt of.
    pub excerpted: u64,
    /// What the summarizer used, where it said so.
    pub usage: Option<TokenUsage>,
    /// How long it took.
    pub latency: Duration,
}
