//! The compactions of a session, and taking the last one back.

use std::sync::Arc;

use super::{Inner, SessionManager, To, cell::Cell, compaction::grown, trigger::measured};
use crate::{
    error::{Error, Result},
    event::EventKind,
    message::Message,
    session::{Change, Pause, Session, SessionKey, Snapshot, View},
    store::{StoredCompaction, StoredMessage},
};

impl SessionManager {
    /// Lists the compactions of a session, the newest first: at most so many,
    /// and only those with a number below `before`, if that is given. Those
    /// that were taken back are among them.
    ///
    /// # Errors
    ///
    /// [`Error::is_unsupported`](crate::Error::is_unsupported) where the store
    /// keeps no transcripts.
    pub async fn compactions(
        &self,
        key: &str,
        before: Option<u64>,
        at_most: usize,
    ) -> Result<Vec<StoredCompaction>> {
        let key = SessionKey::new(key)?;
        self.0.archive()?.compactions(&key, before, at_most).await
    }

    /// Takes the last compaction of a session back: its messages are sent word
    /// for word again, and the summary from before it is in force. Calling it
    /// again takes back the one before. No compaction is tried by itself until
    /// the session has grown by a tenth. What was appended since stays.
    ///
    /// Returns the compaction that was taken back.
    ///
    /// # Errors
    ///
    /// [`Error::is_rewind`](crate::Error::is_rewind) where there is none, or
    /// something else was done to the history since (cleared, rewritten,
    /// forced), or the store no longer has the messages, and
    /// [`Error::is_unsupported`](crate::Error::is_unsupported) where the store
    /// keeps no transcripts. Nothing is changed then.
    ///
    /// # Example
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> session_compaction::Result<()> {
    /// use session_compaction::{Compact, ExtractiveSummarizer, MemoryStore, Message, SessionManager};
    ///
    /// let sessions = SessionManager::builder()
    ///     .summarizer(ExtractiveSummarizer::default())
    ///     .store(MemoryStore::keep_transcripts())
    ///     .build()?;
    /// for n in 0..30 {
    ///     sessions.add_message("chat", Message::user(format!("Order {n} was shipped on Monday."))).await?;
    /// }
    /// assert!(sessions.compact("chat", Compact::now()).await.applied().is_some());
    /// assert_eq!(sessions.history("chat").await?.len(), 4);
    ///
    /// let undone = sessions.undo_last_compaction("chat").await?;
    /// assert_eq!(undone.range(), 0..26);
    /// assert_eq!(sessions.history("chat").await?.len(), 30);
    /// assert_eq!(sessions.summary("chat").await?, None);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn undo_last_compaction(&self, key: &str) -> Result<StoredCompaction> {
        let cell = self.0.cell(&SessionKey::new(key)?);
        let undone = self.0.undo(&cell).await;
        self.0.release(cell);
        undone
    }
}

/// How many compactions, and how many messages, are read at a time.
const PAGE: usize = 16;
const READ: u64 = 1_024;

impl Inner {
    async fn undo(self: &Arc<Self>, cell: &Arc<Cell>) -> Result<StoredCompaction> {
        self.archive()?;
        loop {
            self.freshen(cell).await?;
            let look = |session: &mut Session| (session.snapshot(), measured(session).tokens);
            let (now, tokens) = self.with(cell, look).await?;
            let compaction = self.last_compaction(&cell.key, &now).await?;
            self.still_there(&cell.key, &compaction.before, now.cut()).await?;
            let mut view = compaction.before.clone();
            for range in now.rewound() {
                view.rewind(range.clone());
            }
            let until = grown(tokens.saturating_add(compaction.usage.tokens_removed));
            let pause = Pause::new(until, "the last compaction was taken back");
            let sent = self.sent_of(&view);
            if self.put_paused(cell, &now, view, sent, Change::Rewritten, Some(pause)).await? {
                self.claims.supersede(&cell.key);
                let messages = compaction.usage.messages_removed;
                self.events.emit(&cell.key, || EventKind::Undone { messages });
                return Ok(compaction);
            }
        }
    }

    /// The compaction that made what is sent now.
    async fn last_compaction(&self, key: &SessionKey, now: &Snapshot) -> Result<StoredCompaction> {
        let mut before = None;
        loop {
            let page = self.archive()?.compactions(key, before, PAGE).await?;
            let Some(oldest) = page.last() else {
                let problem = "no compaction made what is sent now: there was none, or the \
                               history was rewritten, forced or cleared since";
                return Err(Error::rewind(key, problem));
            };
            before = Some(oldest.number);
            let of_now = |compaction: &StoredCompaction| is_of(&compaction.after, now);
            if let Some(found) = page.into_iter().find(of_now) {
                return Ok(found);
            }
        }
    }

    /// What was sent before the message at `from` was compacted, and the
    /// messages from there on that belong to the conversation.
    pub(super) async fn restored(
        &self,
        key: &SessionKey,
        now: &Snapshot,
        from: u64,
    ) -> Result<(View, Vec<Arc<Message>>)> {
        let view = self.view_before(key, now, from).await?;
        self.still_there(key, &view, now.cut()).await?;
        let kept = self.archive()?.transcript(key, from..now.next()).await?;
        let shown = |kept: &StoredMessage| view.shows(kept.position);
        let messages = kept.into_iter().filter(shown).map(|kept| kept.message).collect();
        Ok((view, messages))
    }

    /// Goes back from what is sent now, compaction by compaction, to one before
    /// which `from` was in the window. Those that were taken back lead nowhere.
    async fn view_before(&self, key: &SessionKey, now: &Snapshot, from: u64) -> Result<View> {
        let Some(archive) = self.store.archive() else {
            let problem = "it was compacted since, and the store keeps no transcript to restore \
                           what was there before";
            return Err(Error::rewind(key, problem));
        };
        let (mut number, mut reached) = (None, None);
        // A view no longer lists what was taken back long before its cut: only
        // all of them together know what never comes back.
        let mut rewound = now.rewound().to_vec();
        loop {
            let page = archive.compactions(key, number, PAGE).await?;
            let Some(oldest) = page.last() else {
                let problem = "it was compacted, and the history was rewritten or forced since: \
                               what was there before cannot be restored";
                return Err(Error::rewind(key, problem));
            };
            number = Some(oldest.number);
            for StoredCompaction { mut before, after, .. } in page {
                let leads_here = match &reached {
                    None => is_of(&after, now),
                    Some(view) => is_same(&after, view),
                };
                if !leads_here {
                    continue;
                }
                rewound.extend(before.rewound.iter().cloned());
                if before.cut <= from {
                    for range in rewound {
                        before.rewind(range);
                    }
                    return Ok(before);
                }
                reached = Some(before);
            }
        }
    }

    /// Where a message stands that is no longer in the history; none where it
    /// is not known by its id.
    pub(super) async fn below(
        &self,
        key: &SessionKey,
        now: &Snapshot,
        to: &To,
    ) -> Result<Option<u64>> {
        let (To::Before(id), Some(archive)) = (to, self.store.archive()) else { return Ok(None) };
        let mut end = now.cut();
        while end > 0 {
            let start = end.saturating_sub(READ);
            let kept = archive.transcript(key, start..end).await?;
            let named = kept
                .iter()
                .rev()
                .find(|kept| kept.message.id() == Some(id) && !now.is_rewound(kept.position));
            if let Some(kept) = named {
                return Ok(Some(kept.position));
            }
            end = start;
        }
        Ok(None)
    }

    /// Fails where the store has removed messages that would be sent again.
    pub(super) async fn still_there(&self, key: &SessionKey, view: &View, cut: u64) -> Result<()> {
        let archive = self.archive()?;
        let mut kept = archive.transcript(key, view.cut..cut).await?;
        for position in &view.carried {
            kept.extend(archive.transcript(key, *position..position.saturating_add(1)).await?);
        }
        let shown = kept.iter().filter(|kept| view.shows(kept.position)).count();
        let wanted = (view.cut..cut).filter(|position| view.shows(*position)).count();
        if shown < wanted.saturating_add(view.carried.len()) {
            let problem = "the store no longer has all messages that would be sent again";
            return Err(Error::rewind(key, problem));
        }
        Ok(())
    }
}

/// True where a view is the one that is sent now. What was appended or taken
/// back since makes no difference.
fn is_of(view: &View, now: &Snapshot) -> bool {
    let carried = now.entries().take(now.carried()).map(|entry| entry.position);
    view.cut == now.cut()
        && view.summary.as_ref() == now.summary()
        && view.dropped == now.dropped_range()
        && view.carried.iter().copied().filter(|at| !now.is_rewound(*at)).eq(carried)
}

/// True where two views send the same, but for what was taken back since.
fn is_same(one: &View, other: &View) -> bool {
    let carried = |view: &View| -> Vec<u64> {
        let taken = |at: &u64| one.is_rewound(*at) || other.is_rewound(*at);
        view.carried.iter().copied().filter(|at| !taken(at)).collect()
    };
    one.cut == other.cut
        && one.summary == other.summary
        && one.dropped == other.dropped
        && carried(one) == carried(other)
}
