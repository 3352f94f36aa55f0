//! What is to stay word for word, as the host finds out later.

use std::sync::Arc;

use super::{Inner, SessionManager, cell::Cell, detached, view::same_view};
use crate::{
    error::{Error, Result},
    message::{MessageId, structure::Structure},
    session::{Change, Pause, PauseUntil, Session, SessionKey, Snapshot, View},
    store::{Commit, ID_HORIZON, StoredMessage},
};

impl SessionManager {
    /// Pins a message of a session: from here on it is sent word for word, as
    /// if it had been added [pinned](crate::Message::pinned). The message as it
    /// is stored stays as it was given; the pin is kept in the session's
    /// [`View`]. Where the message is part of a round of tool calls, the whole
    /// round is sent with it.
    ///
    /// Also one that a summary stands for already, or that was dropped, is sent
    /// again, if the store keeps transcripts and the message is among the last
    /// 1,024. A compaction that is running is cancelled, since it knows nothing
    /// of the pin. A pin goes with its message: by `rewind`, `set_history`,
    /// `clear` and `remove`. Again for a pinned message, nothing is done.
    ///
    /// # Errors
    ///
    /// [`Error::is_pin`](crate::Error::is_pin) where no message in reach has
    /// this id. Nothing is changed then.
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
    /// let rule = Message::user("Never restart the mail server.").with_id("rule");
    /// sessions.add_message("chat", rule).await?;
    /// for n in 0..30 {
    ///     sessions.add_message("chat", Message::user(format!("Order {n} was shipped on Monday."))).await?;
    /// }
    /// sessions.pin("chat", "rule").await?;
    /// let _ = sessions.compact("chat", Compact::now()).await;
    ///
    /// let history = sessions.history("chat").await?;
    /// assert_eq!(history.get(0).unwrap().text(), "Never restart the mail server.");
    /// sessions.unpin("chat", "rule").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn pin(&self, key: &str, id: impl Into<MessageId>) -> Result<()> {
        let cell = self.0.cell(&SessionKey::new(key)?);
        let pinned = self.0.pin(&cell, &id.into()).await;
        self.0.release(cell);
        pinned
    }

    /// Takes the pin off a message. It is sent on until the next compaction,
    /// which may replace it. Where it was not pinned, nothing is done.
    ///
    /// # Errors
    ///
    /// [`Error::is_pin`](crate::Error::is_pin) where no message of the history
    /// has this id, or where it was added as a pinned one: a message stays as it
    /// was given.
    pub async fn unpin(&self, key: &str, id: impl Into<MessageId>) -> Result<()> {
        let cell = self.0.cell(&SessionKey::new(key)?);
        let unpinned = self.0.unpin(&cell, &id.into()).await;
        self.0.release(cell);
        unpinned
    }
}

impl Inner {
    async fn pin(self: &Arc<Self>, cell: &Arc<Cell>, id: &MessageId) -> Result<()> {
        loop {
            let (now, pause) = self.with(cell, look).await?;
            let mut view = same_view(&now, now.summary().cloned());
            let here = now.entries().find(|entry| entry.message.id() == Some(id));
            let (position, change) = if let Some(entry) = here {
                if now.is_pinned(entry) {
                    return Ok(());
                }
                (entry.position, Change::Pinned)
            } else {
                (self.carry_again(cell, id, &now, &mut view).await?, Change::Carried)
            };
            insert(&mut view.pins, position);
            if self.put_pins(cell, &now, view, pause, change).await? {
                return Ok(());
            }
        }
    }

    async fn unpin(self: &Arc<Self>, cell: &Arc<Cell>, id: &MessageId) -> Result<()> {
        loop {
            let (now, pause) = self.with(cell, look).await?;
            let here = now.entries().find(|entry| entry.message.id() == Some(id));
            let Some(entry) = here else {
                return Err(Error::pin(&cell.key, id, "no message of the history has this id"));
            };
            let mut view = same_view(&now, now.summary().cloned());
            view.pins.retain(|position| *position != entry.position);
            if view.pins.len() == now.pins().len() {
                if entry.message.is_pinned() {
                    let problem = "it was added as a pinned one, and is kept as it was given";
                    return Err(Error::pin(&cell.key, id, problem));
                }
                return Ok(());
            }
            // There is more to replace: what could not shrink may by now.
            let pause = pause.filter(|pause| !matches!(pause.until, PauseUntil::Tokens(_)));
            if self.put_pins(cell, &now, view, pause, Change::Pinned).await? {
                return Ok(());
            }
        }
    }

    /// Has a view carry a message from below the cut, with the round that it is
    /// part of; returns its position.
    async fn carry_again(
        &self,
        cell: &Cell,
        id: &MessageId,
        now: &Snapshot,
        view: &mut View,
    ) -> Result<u64> {
        let refused = |problem| Error::pin(&cell.key, id, problem);
        let Some(archive) = self.store.archive() else {
            return Err(refused(
                "no message of the history has this id, and the store keeps no transcript to \
                 look for it in",
            ));
        };
        // Further back it is not known what was taken back.
        let from = now.floor().max(now.next().saturating_sub(ID_HORIZON as u64));
        let mut below = archive.transcript(&cell.key, from..now.cut()).await?;
        below.retain(|kept| !now.is_rewound(kept.position));
        let Some(found) = below.iter().rposition(|kept| kept.message.id() == Some(id)) else {
            return Err(refused(
                "no message of the history has this id, nor one among the last 1,024",
            ));
        };
        let messages: Vec<_> = below.iter().map(|kept| Arc::clone(&kept.message)).collect();
        let structure = Structure::of_history(&messages, messages.len());
        let round = if structure.is_tool(found) { structure.unit(found) } else { found..found + 1 };
        let back = round.filter(|index| *index == found || structure.is_tool(*index));
        for kept in back.filter_map(|index| below.get(index)) {
            if insert(&mut view.carried, kept.position)
                && view.dropped.messages > 0
                && kept.position >= view.dropped.since
            {
                view.dropped.messages -= 1;
            }
        }
        if view.dropped.messages == 0 {
            view.dropped.since = 0;
        }
        let position = |kept: &StoredMessage| kept.position;
        Ok(below.get(found).map(position).unwrap_or_default())
    }

    /// Commits pins. What is running knows nothing of them; a pause holds on.
    async fn put_pins(
        self: &Arc<Self>,
        cell: &Arc<Cell>,
        now: &Snapshot,
        view: View,
        pause: Option<Pause>,
        change: Change,
    ) -> Result<bool> {
        let (inner, cell, before) = (Arc::clone(self), Arc::clone(cell), now.revision());
        detached::run(&self.runtime, async move {
            let sent = inner.sent_of(&view);
            let commit = Commit::on(before).with_view(view.clone()).with_pause(pause);
            let done = inner.commit(&cell, commit, &view, sent, change).await?;
            if done {
                inner.claims.supersede(&cell.key);
            }
            Ok(done)
        })
        .await
    }
}

fn look(session: &mut Session) -> (Snapshot, Option<Pause>) {
    (session.snapshot(), session.pause().cloned())
}

/// Inserts a position where it is not there yet; true where it was not.
fn insert(positions: &mut Vec<u64>, position: u64) -> bool {
    let Err(at) = positions.binary_search(&position) else { return false };
    positions.insert(at, position);
    true
}
