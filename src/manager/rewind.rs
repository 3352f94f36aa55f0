//! Taking back what was said last.

use std::sync::Arc;

use super::{Inner, SessionManager, cell::Cell, view::same_view};
use crate::{
    error::{Error, Result},
    message::{Message, MessageId, structure::Structure},
    session::{Change, Session, SessionKey, Snapshot, View},
};

/// How far [`SessionManager::rewind`] takes a conversation back.
///
/// # Example
///
/// ```
/// use session_compaction::To;
///
/// let edited = To::Before("update-981".into());
/// assert_ne!(edited, To::BeforeLastUser);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum To {
    /// Before the message with this id, which is taken back as well.
    Before(MessageId),
    /// Before the newest message of the user, to ask something else.
    BeforeLastUser,
    /// After the newest message of the user, to have it answered again.
    LastUser,
}

impl SessionManager {
    /// Takes back the end of a conversation, and returns the messages that it
    /// took back: for stop, regenerate and edit.
    ///
    /// Their ids can be used again; their positions are not. Where the store
    /// keeps transcripts they stay in there. What is appended meanwhile stays
    /// in the history. A compaction that is running is cancelled, since it
    /// would be stale.
    ///
    /// Without such a message of the user nothing is done.
    ///
    /// # Errors
    ///
    /// [`Error::is_rewind`](crate::Error::is_rewind) where the message is not
    /// in the window: there is none with this id, or it was compacted, and a
    /// summary cannot forget. Nothing is changed then.
    ///
    /// # Example
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> session_compaction::Result<()> {
    /// use session_compaction::{Message, SessionManager, To};
    ///
    /// let sessions = SessionManager::builder().build()?;
    /// sessions.add_message("chat", Message::user("Is the disk full?")).await?;
    /// sessions.add_message("chat", Message::assistant("Perhaps.")).await?;
    ///
    /// let regenerate = sessions.rewind("chat", To::LastUser).await?;
    /// assert_eq!(regenerate[0].text(), "Perhaps.");
    /// let edit = sessions.rewind("chat", To::BeforeLastUser).await?;
    /// assert_eq!(edit[0].text(), "Is the disk full?");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn rewind(&self, key: &str, to: To) -> Result<Vec<Arc<Message>>> {
        let cell = self.0.cell(&SessionKey::new(key)?);
        let taken = self.0.rewind(&cell, &to).await;
        self.0.release(cell);
        taken
    }
}

impl Inner {
    async fn rewind(self: &Arc<Self>, cell: &Arc<Cell>, to: &To) -> Result<Vec<Arc<Message>>> {
        loop {
            let now = self.with(cell, |session| session.snapshot()).await?;
            let from = match first_taken(&now, to, &cell.key) {
                Ok(None) => return Ok(Vec::new()),
                Ok(Some(from)) => from,
                Err(unknown) => self.below(&cell.key, &now, to).await?.ok_or(unknown)?,
            };
            let (mut view, taken) = if from < now.cut() {
                self.restored(&cell.key, &now, from).await?
            } else {
                let taken = now.entries().filter(|entry| entry.position >= from);
                let taken = taken.map(|entry| Arc::clone(&entry.message)).collect();
                (same_view(&now, now.summary().cloned()), taken)
            };
            if taken.is_empty() {
                return Ok(taken);
            }
            view.rewind(from..now.next());
            let sent = self.sent_of(&view);
            if self.put(cell, &now, view, sent, Change::Rewritten).await? {
                self.claims.supersede(&cell.key);
                return Ok(taken);
            }
        }
    }

    /// Takes back single messages, by position. Where some of them were
    /// compacted since `begun`, the state of then comes back as far as the store
    /// has kept its messages.
    pub(super) async fn take_back(
        self: &Arc<Self>,
        cell: &Arc<Cell>,
        own: &[u64],
        begun: &Snapshot,
    ) -> Result<()> {
        loop {
            let look = |session: &mut Session| (session.snapshot(), session.rewritten());
            let (now, rewritten) = self.with(cell, look).await?;
            let is_same = begun.revision().incarnation() == now.revision().incarnation()
                && rewritten <= begun.revision().counter();
            let is_there = |position: &u64| now.entries().any(|kept| kept.position == *position);
            let all_there = own.iter().all(is_there);
            let mut view = same_view(&now, now.summary().cloned());
            if !is_same {
                // The host has rewritten the history: what it took out is gone.
                if !own.iter().any(is_there) {
                    return Ok(());
                }
            } else if !all_there {
                if self.store.archive().is_none() {
                    let problem = "a part of the turn was compacted, and the store keeps no \
                                   transcript to restore what was there before";
                    return Err(Error::rewind(&cell.key, problem));
                }
                view = same_view(begun, begun.summary().cloned());
                keep_pins(&mut view, &now);
                for range in now.rewound() {
                    view.rewind(range.clone());
                }
            }
            for position in own.iter().filter(|position| is_same || is_there(position)) {
                view.rewind(*position..position.saturating_add(1));
            }
            let sent = self.sent_of(&view);
            if self.put(cell, &now, view, sent, Change::Rewritten).await? {
                self.claims.supersede(&cell.key);
                return Ok(());
            }
        }
    }
}

/// What was pinned since then stays so.
fn keep_pins(view: &mut View, now: &Snapshot) {
    view.pins = now.pins().to_vec();
    let below = now.pins().iter().filter(|position| **position < view.cut);
    view.carried.extend(below);
    view.carried.sort_unstable();
    view.carried.dedup();
}

/// The position from which on everything is taken back; none where there is
/// nothing to take back.
fn first_taken(now: &Snapshot, to: &To, key: &str) -> Result<Option<u64>> {
    let after_user = match to {
        To::Before(id) => {
            let named = now.entries().find(|entry| entry.message.id() == Some(id));
            let named = named.map(|entry| entry.position);
            let problem = "no message in its history has this id";
            return named.map(Some).ok_or_else(|| Error::rewind(key, problem));
        }
        To::BeforeLastUser => 0,
        To::LastUser => 1,
    };
    let structure = Structure::of_history(&now.to_vec(), now.carried());
    let newest = structure.turn_starts().last().and_then(|index| now.entry(*index));
    Ok(newest.map(|entry| entry.position.saturating_add(after_user)))
}
