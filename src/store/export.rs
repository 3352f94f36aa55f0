//! A session outside of a store: to move it, to keep it, to hand it over.

use std::{collections::HashSet, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{StoredCompaction, StoredMessage, StoredSession};
use crate::{
    error::{Error, Result},
    message::{Message, MessageId},
    session::{Revision, SessionState, StoredSummary},
    usage::UsageEvent,
};

/// Everything that a store holds of one session. Written and read as JSON, it
/// moves a session from one store to another.
///
/// # Example
///
/// ```
/// use session_compaction::{Message, SessionExport};
///
/// let old = SessionExport::of_messages([Message::user("hi"), Message::assistant("hello")])
///     .with_summary("They met.", 1);
/// let json = serde_json::to_string(&old).unwrap();
/// let read: SessionExport = serde_json::from_str(&json).unwrap();
/// assert_eq!((read.state.view.cut, read.messages.len()), (1, 2));
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionExport {
    /// The version of this form: 1.
    pub version: u32,
    /// The state.
    pub state: SessionState,
    /// The position that the next message gets.
    pub next: u64,
    /// All messages that the store still has, in order of their positions.
    pub messages: Vec<StoredMessage>,
    /// The compactions, in the order of their numbers.
    #[serde(default)]
    pub compactions: Vec<StoredCompaction>,
    /// The usage events, in order, those of compactions included.
    #[serde(default)]
    pub usage: Vec<UsageEvent>,
}

impl SessionExport {
    /// The version that this crate writes.
    pub const VERSION: u32 = 1;

    /// Creates the export of a session that has a state and messages.
    #[must_use]
    pub const fn new(state: SessionState, next: u64, messages: Vec<StoredMessage>) -> Self {
        Self {
            version: Self::VERSION,
            state,
            next,
            messages,
            compactions: Vec::new(),
            usage: Vec::new(),
        }
    }

    /// Creates a session of these messages, at positions from 0 on and at the
    /// times that they carry. One without an id gets one when it is imported.
    #[must_use]
    pub fn of_messages(messages: impl IntoIterator<Item = Message>) -> Self {
        let messages: Vec<_> = (0..)
            .zip(messages)
            .map(|(position, message)| StoredMessage::new(position, Arc::new(message)))
            .collect();
        Self::new(SessionState::fresh(), messages.len() as u64, messages)
    }

    /// Sets a summary that stands for the messages below this position.
    #[must_use]
    pub fn with_summary(mut self, summary: impl Into<String>, cut: u64) -> Self {
        self.state.view.summary = Some(StoredSummary::new(summary));
        self.state.view.cut = cut.min(self.next);
        self
    }

    /// Returns what is sent of the session.
    #[must_use]
    pub fn session(&self) -> StoredSession {
        let view = &self.state.view;
        let shown = self.messages.iter().filter(|kept| view.shows(kept.position)).cloned();
        let (carried, window) = shown.partition(|kept| kept.position < view.cut);
        StoredSession::new(self.state.clone(), self.next, carried, window)
    }

    /// Returns the session as a store takes it in: with a new incarnation, an
    /// id for each message, and a next position above all that are spoken of.
    ///
    /// # Errors
    ///
    /// [`Error::is_message`] where a newer version of this crate wrote it,
    /// where positions do not rise, or where two messages of the window have
    /// the same id.
    pub fn prepared(&self) -> Result<Self> {
        let refused = |problem: String| Err(Error::message("session export", problem));
        if self.version > Self::VERSION {
            return refused(format!(
                "it has version {}, which a newer version of this crate writes",
                self.version
            ));
        }
        let mut session = self.clone();
        session.state.revision = Revision::fresh();
        let view = &session.state.view;
        let spoken_of = view.rewound.last().map_or(view.cut, |last| last.end.max(view.cut));
        session.next = session.next.max(spoken_of);
        let mut ids = HashSet::new();
        let mut least = 0;
        for (index, kept) in session.messages.iter_mut().enumerate() {
            if kept.position < least || kept.position == u64::MAX {
                let position = kept.position;
                return refused(format!("messages[{index}]: position {position} does not rise"));
            }
            least = kept.position.saturating_add(1);
            match kept.message.id() {
                None => {
                    let named = kept.message.as_ref().clone().with_id(MessageId::generate());
                    kept.message = Arc::new(named);
                }
                Some(id) if kept.position >= view.cut && view.shows(kept.position) => {
                    if !ids.insert(id.clone()) {
                        return refused(format!("messages[{index}]: id {id} stands twice"));
                    }
                }
                Some(_) => {}
            }
        }
        session.next = session.next.max(least);
        Ok(session)
    }
}
