//! A session outside of a store: to move it, to keep it, to hand it over.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{StoredCompaction, StoredMessage, StoredSession};
use crate::{
    message::Message,
    session::{SessionState, StoredSummary},
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
}
