//! What a compaction would do, without doing it.

use std::{fmt, sync::Arc};

use super::{Inner, Outcome, Report, SessionManager, cell::Cell, planned::Planned, trigger::When};
use crate::{
    error::Result,
    plan::{Measured, Skip, Trigger},
    session::{SessionKey, Size},
    store::StoredMessage,
};

/// What [`SessionManager::preview`] found.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{ExtractiveSummarizer, Message, SessionManager};
///
/// let sessions =
///     SessionManager::builder().summarizer(ExtractiveSummarizer::default()).build()?;
/// for n in 0..30 {
///     sessions.add_message("chat", Message::user(format!("Order {n} was shipped on Monday."))).await?;
/// }
/// let preview = sessions.preview("chat").await?;
/// assert!(preview.trigger.is_some() && preview.not_started.is_none());
/// let cut = preview.cut.unwrap();
/// assert_eq!((cut.removed.len(), cut.kept_messages, cut.cut), (26, 4, 26));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
#[non_exhaustive]
pub struct Preview {
    /// How large the session is.
    pub measured: Measured,
    /// The threshold that it is above.
    pub trigger: Option<Trigger>,
    /// Why [`SessionManager::maybe_summarize`] would start nothing now; `None`
    /// where it would.
    pub not_started: Option<Outcome>,
    /// What a compaction would replace, or why no cut helps. Where none is due,
    /// it is what [`Compact::now`](crate::Compact::now) would do.
    pub cut: Result<PreviewedCut, Skip>,
}

/// Where a compaction would cut a history.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Message, SessionManager};
///
/// let sessions = SessionManager::builder().build()?;
/// sessions.add_message("chat", Message::system("Be brief.")).await?;
/// for n in 0..9 {
///     sessions.add_message("chat", Message::user(format!("Order {n} was shipped on Monday."))).await?;
/// }
/// let cut = sessions.preview("chat").await?.cut.unwrap();
/// assert_eq!((cut.carried, cut.removed[0].position), (vec![0], 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PreviewedCut {
    /// The position from which on everything would stay as it is.
    pub cut: u64,
    /// Positions below it that would be sent word for word all the same.
    pub carried: Vec<u64>,
    /// The messages that a summary would stand for.
    pub removed: Vec<StoredMessage>,
    /// How large they are.
    pub removed_size: Size,
    /// How many messages would stay, carried ones included.
    pub kept_messages: u64,
    /// How large they are.
    pub kept_size: Size,
    /// The most tokens that the summary may have.
    pub summary_max_tokens: u64,
    /// How many messages that were dropped before would go into the summary.
    pub owed: u64,
}

impl SessionManager {
    /// Says what a compaction would remove and keep right now. Nothing is
    /// changed, and no summarizer is asked.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`].
    pub async fn preview(&self, key: &str) -> Result<Preview> {
        let cell = self.0.cell(&SessionKey::new(key)?);
        let preview = self.0.preview(&cell).await;
        self.0.release(cell);
        preview
    }
}

impl Inner {
    async fn preview(&self, cell: &Cell) -> Result<Preview> {
        let (measured, trigger) = self.with(cell, |session| self.exceeded(session)).await?;
        let not_started = self.not_started(cell).await;
        let cut = match self.plan(cell, trigger.is_some(), None).await {
            Ok(planned) => Ok(previewed(&planned)),
            Err(Report::Skipped(skip)) => Err(skip),
            Err(Report::Unavailable(error)) => return Err(error),
            // A plan has no other reasons.
            Err(_) => Err(Skip::NothingToCut),
        };
        Ok(Preview { measured, trigger, not_started, cut })
    }

    /// Why none would be started by itself, in the order of `maybe_summarize`.
    async fn not_started(&self, cell: &Cell) -> Option<Outcome> {
        if !self.config.enabled {
            return Some(Outcome::Disabled);
        }
        if self.claims.are_closed() {
            return Some(Outcome::ShuttingDown);
        }
        if let Err(outcome) = self.due(cell, When::Due).await {
            return Some(outcome);
        }
        self.claims.held(&cell.key).map(Outcome::InFlight)
    }
}

fn previewed(planned: &Planned) -> PreviewedCut {
    let snapshot = &planned.snapshot;
    let view = planned.view(None);
    let removed = planned.split.replaced.iter().filter_map(|index| snapshot.entry(*index));
    let removed: Vec<_> = removed
        .map(|entry| StoredMessage::new(entry.position, Arc::clone(&entry.message)))
        .collect();
    let all = snapshot.entries().fold(Size::default(), |sum, entry| sum.plus(entry.size));
    let kept_size = Size::new(
        all.chars.saturating_sub(planned.replaced.chars),
        all.tokens - planned.replaced.tokens,
    );
    PreviewedCut {
        cut: view.cut,
        carried: view.carried,
        removed,
        removed_size: planned.replaced,
        kept_messages: planned.kept() as u64,
        kept_size,
        summary_max_tokens: planned.bound,
        owed: planned.owed,
    }
}

impl fmt::Display for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cut {
            Ok(cut) => write!(
                f,
                "{} messages ({} characters, {} tokens) would be summarized in at most {} tokens, {} messages ({} tokens) kept",
                cut.removed.len(),
                cut.removed_size.chars,
                cut.removed_size.tokens.count(),
                cut.summary_max_tokens,
                cut.kept_messages,
                cut.kept_size.tokens.count(),
            )?,
            Err(skip) => write!(f, "nothing to compact: {skip}")?,
        }
        match (&self.not_started, self.trigger) {
            (Some(outcome), _) => write!(f, "; none would start: {outcome}"),
            (None, Some(trigger)) => write!(f, "; one is due: {trigger}"),
            (None, None) => Ok(()),
        }
    }
}
