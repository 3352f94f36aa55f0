//! Adding messages.

use std::sync::Arc;

use super::{Inner, SessionManager, cell::Cell, detached};
use crate::{
    context::fence,
    error::Result,
    message::{Message, MessageId, Part},
    session::{Entry, SessionKey},
    store::{NewMessage, Receipt},
};

/// Says where an added message stands.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Message, SessionManager};
///
/// let sessions = SessionManager::builder().build()?;
/// let update = Message::user("hello").with_id("update-981");
/// let first = sessions.add_message("chat", update.clone()).await?;
/// let again = sessions.add_message("chat", update).await?;
///
/// assert_eq!((first.position, first.duplicate), (0, false));
/// assert_eq!((again.position, again.duplicate), (0, true));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Appended {
    /// The message's id: its own, or the one it was given.
    pub id: MessageId,
    /// Its position in the transcript, never used again.
    pub position: u64,
    /// True where the session held this message already; nothing was added.
    pub duplicate: bool,
}

impl SessionManager {
    /// Adds a message at the end of a session. When this returns, the message
    /// is kept at the level that the store's docs name.
    ///
    /// A message without an id is given one. To try again after a lost answer,
    /// set the id ([`Message::with_id`]): the same id and content again is a
    /// no-op that says `duplicate`.
    ///
    /// # Errors
    ///
    /// [`Error::is_duplicate_id`](crate::Error::is_duplicate_id) where the id
    /// names other content. After an error nothing was acknowledged; whether
    /// the message is there can be found out by adding it again with its id.
    ///
    /// # Cancel safety
    ///
    /// A dropped future leaves the message added or not added, and memory and
    /// store agree.
    pub async fn add_message(&self, key: &str, message: Message) -> Result<Appended> {
        let added = self.add_messages(key, [message]).await?;
        match added.into_iter().next() {
            Some(added) => Ok(added),
            // It was the summary's block and nothing else.
            None => self.0.place_of_block(key).await,
        }
    }

    /// Adds messages at the end of a session, all or none, next to each other.
    ///
    /// A host that gives back a context gives back the summary's block with it.
    /// Where that is byte for byte the one that was sent it is taken out again;
    /// a message that was nothing else is not added, and has no place in the
    /// answer.
    ///
    /// # Errors
    ///
    /// As for [`SessionManager::add_message`].
    pub async fn add_messages(
        &self,
        key: &str,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<Vec<Appended>> {
        let key = SessionKey::new(key)?;
        let cell = self.0.cell(&key);
        let messages = self.0.without_block(&cell, messages.into_iter().collect()).await?;
        let new = self.0.new_messages(messages);
        if new.is_empty() {
            self.0.release(cell);
            return Ok(Vec::new());
        }
        let ids: Vec<_> = new.iter().filter_map(|new| new.message.id().cloned()).collect();
        let work = write(Arc::clone(&self.0), Arc::clone(&cell), new);
        let receipt = detached::run(&self.0.runtime, work).await?;
        if let Some(last) = receipt.placed.iter().map(|placed| placed.position).max() {
            cell.settle(last).await;
        }
        let added = ids.into_iter().zip(receipt.placed).map(|(id, placed)| Appended {
            id,
            position: placed.position,
            duplicate: placed.duplicate,
        });
        Ok(added.collect())
    }
}

async fn write(inner: Arc<Inner>, cell: Arc<Cell>, new: Vec<NewMessage>) -> Result<Receipt> {
    let _appending = cell.appending();
    let receipt = inner.store.append(&cell.key, &new).await?;
    let added = new.into_iter().zip(&receipt.placed).filter(|(_, placed)| !placed.duplicate);
    let entries = added.map(|(new, placed)| Entry {
        position: placed.position,
        size: new.size,
        message: new.message,
    });
    cell.lock().append(receipt.revision, entries.collect());
    Ok(receipt)
}

impl Inner {
    /// What the block of a summary counts as when it is added: what it stands
    /// for is in the transcript below the cut.
    async fn place_of_block(&self, key: &str) -> Result<Appended> {
        let now = self.snapshot(&SessionKey::new(key)?).await?;
        let position = now.cut().saturating_sub(1);
        Ok(Appended { id: MessageId::generate(), position, duplicate: true })
    }

    /// Takes the block of the session's summary out of messages that hold it.
    async fn without_block(&self, cell: &Cell, messages: Vec<Message>) -> Result<Vec<Message>> {
        let fenced =
            |part: &Part| matches!(part, Part::Text(text) if text.text.contains(fence::START));
        if !messages.iter().any(|message| message.parts().iter().any(fenced)) {
            return Ok(messages);
        }
        let now = self.with(cell, |session| session.snapshot()).await?;
        let Some(block) = fence::block(now.summary(), now.dropped()) else { return Ok(messages) };
        Ok(messages.into_iter().filter_map(|message| fence::without(message, &block)).collect())
    }

    pub(super) fn new_messages(
        &self,
        messages: impl IntoIterator<Item = Message>,
    ) -> Vec<NewMessage> {
        let new = messages.into_iter().map(|message| {
            let fresh = message.id().is_none();
            let message = if fresh { message.with_id(MessageId::generate()) } else { message };
            NewMessage::new(Arc::new(message.clone()), self.size(&message), fresh)
        });
        new.collect()
    }
}
