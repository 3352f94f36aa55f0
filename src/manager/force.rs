//! Emergency compression: what goes when there is no time for a model.

use std::sync::Arc;

use super::{
    Inner, Report, SessionManager,
    cell::Cell,
    detached,
    view::{out_of_reach, view},
};
use crate::{
    error::Result,
    plan::{self, Skip, Split},
    session::{Change, Dropped, Pause, SessionKey, Snapshot, SnapshotRef, StoredSummary, View},
    store::{Commit, CommitResult},
    summarize::{SummarizeError, guard},
    tokens::Tokens,
};

/// What [`SessionManager::force_compression`] did.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Forced, Message, SessionManager, Skip};
///
/// let sessions = SessionManager::builder().build()?;
/// sessions.add_message("chat", Message::user("hello")).await?;
/// let forced = sessions.force_compression("chat").await?;
/// assert_eq!(forced, Forced::Skipped(Skip::TooFewMessages { messages: 1, min: 4 }));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[must_use]
#[non_exhaustive]
pub enum Forced {
    /// The older half of the conversation is no longer sent.
    Dropped {
        /// How many messages were dropped now.
        messages: u64,
        /// How many have been dropped since the last summary.
        total: u64,
        /// Estimated tokens of history and summary before.
        tokens_before: u64,
        /// And after.
        tokens_after: u64,
    },
    /// Nothing could be dropped.
    Skipped(Skip),
}

impl SessionManager {
    /// Drops the older half of a session's conversation, without a model: for
    /// a host whose provider has just refused a context as too long.
    ///
    /// System and pinned messages and the newest user message stay, no tool
    /// call is parted from its result, and the summary is kept. The context
    /// says in one line how many messages were dropped. Where the store keeps
    /// transcripts they are owed: the next compaction reads them from there.
    /// A compaction that is running is cancelled, since it would be stale.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`].
    ///
    /// # Example
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> session_compaction::Result<()> {
    /// use session_compaction::{Forced, Message, SessionManager};
    ///
    /// let sessions = SessionManager::builder().build()?;
    /// for n in 0..5 {
    ///     sessions.add_message("chat", Message::user(format!("question {n}"))).await?;
    ///     sessions.add_message("chat", Message::assistant(format!("answer {n}"))).await?;
    /// }
    /// let forced = sessions.force_compression("chat").await?;
    /// assert!(matches!(forced, Forced::Dropped { messages: 5, .. }));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn force_compression(&self, key: &str) -> Result<Forced> {
        let cell = self.0.cell(&SessionKey::new(key)?);
        let forced = async {
            let options = self.0.with(&cell, |session| session.options()).await?;
            let min = self.0.config_of(&options).force_compression_min_messages;
            self.0.force(&cell, min, true).await
        };
        let forced = forced.await;
        self.0.release(cell);
        forced
    }

    /// Applies a summary that the host wrote itself: the result is the last
    /// `keep_last` messages of the snapshot and everything appended since, with
    /// the summary for the rest.
    ///
    /// The cut is moved back where it would part a tool call from its results;
    /// system and pinned messages are carried. `summary` replaces the one so
    /// far, so it should say what that said. `snapshot` is what
    /// [`SessionManager::snapshot`] returned when the host began to write, or
    /// the length that the history had then (checked as a length alone; the
    /// mark is safer).
    ///
    /// The report is [`Report::Stale`] where the session is gone, is shorter
    /// than the snapshot or, with a mark, was rewritten since, and
    /// [`Report::Rejected`] where the summary is blank.
    ///
    /// # Example
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> session_compaction::Result<()> {
    /// use session_compaction::{Message, SessionManager};
    ///
    /// let sessions = SessionManager::builder().build()?;
    /// for n in 0..5 {
    ///     sessions.add_message("chat", Message::user(format!("question {n}"))).await?;
    ///     sessions.add_message("chat", Message::assistant(format!("answer {n}"))).await?;
    /// }
    /// let mark = sessions.snapshot("chat").await?;
    /// sessions.add_message("chat", Message::user("one more")).await?;
    /// let report = sessions.apply_summarization("chat", "Questions 0 to 2.", mark, 4).await;
    ///
    /// assert!(report.applied().is_some());
    /// assert_eq!(sessions.history("chat").await?.len(), 5);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn apply_summarization(
        &self,
        key: &str,
        summary: impl Into<String>,
        snapshot: impl Into<SnapshotRef>,
        keep_last: usize,
    ) -> Report {
        let (summary, wanted) = (summary.into(), snapshot.into());
        let report = self.0.apply(key, summary, wanted, keep_last).await;
        let report = report.map_or_else(|report| report, Report::Applied);
        self.0.events.applied_by_host(key, &report);
        report
    }
}

impl Inner {
    /// Drops the older half where the session has more than `min` messages;
    /// `all`: also where that leaves nothing but carried messages.
    pub(super) async fn force(
        self: &Arc<Self>,
        cell: &Arc<Cell>,
        min: usize,
        all: bool,
    ) -> Result<Forced> {
        loop {
            let snapshot = self.with(cell, |session| session.snapshot()).await?;
            let messages = snapshot.marked();
            let sizes: Vec<_> = snapshot.entries().map(|entry| entry.size).collect();
            let split = match plan::force(&messages, snapshot.carried(), &sizes, min) {
                Ok(split) if all || split.cut < messages.len() => split,
                Ok(_) => return Ok(Forced::Skipped(Skip::NothingToCut)),
                Err(skip) => return Ok(Forced::Skipped(skip)),
            };
            let before = snapshot.dropped_range();
            let dropped = Dropped {
                messages: before.messages.saturating_add(split.replaced.len() as u64),
                since: if before.messages == 0 { snapshot.cut() } else { before.since },
            };
            let view = view(&snapshot, &split, snapshot.summary().cloned(), dropped);
            let (tokens_before, removed) = self.weigh(&snapshot, &split);
            let sent = self.sent_of(&view);
            if self.put(cell, &snapshot, view, sent, Change::Forced).await? {
                self.claims.supersede(&cell.key);
                let forced = Forced::Dropped {
                    messages: split.replaced.len() as u64,
                    total: dropped.messages,
                    tokens_before: tokens_before.count(),
                    tokens_after: (tokens_before - removed - self.sent(&snapshot) + sent).count(),
                };
                self.events.forced(&cell.key, &forced);
                return Ok(forced);
            }
        }
    }

    async fn apply(
        self: &Arc<Self>,
        key: &str,
        summary: String,
        wanted: SnapshotRef,
        keep_last: usize,
    ) -> Result<super::Compaction, Report> {
        if guard::is_blank(&summary) {
            return Err(Report::Rejected { why: SummarizeError::empty() });
        }
        let key = SessionKey::new(key).map_err(Report::Unavailable)?;
        let cell = self.cell(&key);
        let now = self.with(&cell, |session| session.snapshot()).await;
        let now = now.map_err(Report::Unavailable)?;
        if now.is_empty() || !wanted.is_of(now.revision()) || wanted.len() > now.len() {
            self.release(cell);
            return Err(Report::Stale);
        }
        let messages = now.marked();
        let cut = plan::keep_last(&messages, now.carried(), wanted.len(), keep_last);
        let split = plan::cut_at(&messages, now.carried(), cut).map_err(Report::Skipped)?;
        let (before, removed) = self.weigh(&now, &split);
        let dropped = out_of_reach(now.dropped(), &now, &split);
        let summary = StoredSummary::new(self.redacted(summary));
        let view = view(&now, &split, Some(summary), dropped);
        let sent = self.sent_of(&view);
        let done = super::Compaction {
            range: now.cut()..view.cut,
            messages_removed: split.replaced.len() as u64,
            chars_removed: chars(&now, &split),
            messages_kept: (now.len() - split.replaced.len()) as u64,
            tokens_before: before.count(),
            tokens_after: (before - removed - self.sent(&now) + sent).count(),
            summary_chars: view.summary.as_ref().map_or(0, |s| s.text.chars().count() as u64),
            summary_tokens: sent.count(),
            excerpted: 0,
            usage: None,
            latency: std::time::Duration::ZERO,
        };
        if self
            .put(&cell, &now, view, sent, Change::Rewritten)
            .await
            .map_err(Report::Unavailable)?
        {
            self.claims.supersede(&key);
            Ok(done)
        } else {
            Err(Report::Stale)
        }
    }

    /// Commits a view where the snapshot's revision still holds.
    pub(super) async fn put(
        self: &Arc<Self>,
        cell: &Arc<Cell>,
        snapshot: &Snapshot,
        view: View,
        sent: Tokens,
        change: Change,
    ) -> Result<bool> {
        self.put_paused(cell, snapshot, view, sent, change, None).await
    }

    /// The same, and no compaction is tried until the pause ends.
    pub(super) async fn put_paused(
        self: &Arc<Self>,
        cell: &Arc<Cell>,
        snapshot: &Snapshot,
        view: View,
        sent: Tokens,
        change: Change,
        pause: Option<Pause>,
    ) -> Result<bool> {
        let (inner, cell, before) = (Arc::clone(self), Arc::clone(cell), snapshot.revision());
        detached::run(&self.runtime, async move {
            let commit = Commit::on(before).with_view(view.clone()).with_pause(pause);
            let done = inner.commit(&cell, commit, &view, sent, change).await;
            inner.tell_pause(&cell);
            done
        })
        .await
    }

    /// Commits a view, then has memory take it.
    pub(super) async fn commit(
        &self,
        cell: &Cell,
        commit: Commit,
        view: &View,
        sent: Tokens,
        change: Change,
    ) -> Result<bool> {
        let (before, pause) = (commit.expected, commit.pause.clone());
        match self.store.commit(&cell.key, commit).await {
            Ok(CommitResult::Committed(_)) => {
                // Freed here, where no lock is held.
                let _retired = cell.lock().commit(before, view, sent, pause, change);
                Ok(true)
            }
            Ok(CommitResult::Stale) => {
                cell.lock().mark_dirty();
                Ok(false)
            }
            Err(error) => {
                // Whether the store has it is not known.
                cell.lock().mark_dirty();
                Err(error)
            }
        }
    }

    pub(super) fn sent_of(&self, view: &View) -> Tokens {
        guard::sent_tokens(view.summary.as_ref(), view.dropped.messages, &*self.counter)
    }

    /// Tokens of history and summary, and of what a split replaces.
    fn weigh(&self, snapshot: &Snapshot, split: &Split) -> (Tokens, Tokens) {
        let all = snapshot.entries().map(|entry| entry.size.tokens).sum::<Tokens>();
        let replaced = split.replaced.iter().filter_map(|index| snapshot.entry(*index));
        (all + self.sent(snapshot), replaced.map(|entry| entry.size.tokens).sum())
    }
}

fn chars(snapshot: &Snapshot, split: &Split) -> u64 {
    let replaced = split.replaced.iter().filter_map(|index| snapshot.entry(*index));
    replaced.map(|entry| entry.size.chars).fold(0, u64::saturating_add)
}
