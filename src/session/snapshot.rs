//! A history as it was at one moment.

use std::{ops::Range, sync::Arc};

use super::{
    log::Log,
    revision::{Revision, SnapshotMark},
    state::{Dropped, StoredSummary, is_rewound},
};
use crate::{
    message::Message,
    tokens::{ByteEstimate, TokenCounter as _, Tokens},
};

/// How large a message is, counted once when it is added.
///
/// # Example
///
/// ```
/// use session_compaction::{Size, Tokens};
///
/// assert_eq!(Size::new(11, Tokens::from_tokens(3)).tokens.count(), 3);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Size {
    /// Characters.
    pub chars: u64,
    /// Estimated tokens, the constant overhead of a message included.
    pub tokens: Tokens,
}

impl Size {
    /// Creates a size.
    #[must_use]
    pub const fn new(chars: u64, tokens: Tokens) -> Self {
        Self { chars, tokens }
    }

    /// Returns the size of a message by the crate's own estimate: for stores
    /// that are given a message without its size.
    #[must_use]
    pub fn estimated(message: &Message) -> Self {
        Self::new(message.chars() as u64, ByteEstimate::default().message(message))
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self { chars: self.chars.saturating_add(other.chars), tokens: self.tokens + other.tokens }
    }
}

/// A message of a session: where it stands, and how large it is.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) position: u64,
    pub(crate) message: Arc<Message>,
    pub(crate) size: Size,
}

/// The messages that a session sends, as they were at one moment: carried
/// ones first, then the window.
///
/// Cheap to take and to clone however long the history is, and unaffected by
/// what is appended later.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Message, SessionManager};
///
/// let sessions = SessionManager::builder().build()?;
/// sessions.add_message("chat", Message::user("hello")).await?;
/// let before = sessions.history("chat").await?;
/// sessions.add_message("chat", Message::assistant("hi")).await?;
///
/// assert_eq!(before.len(), 1);
/// assert_eq!(sessions.history("chat").await?.len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(super) revision: Revision,
    pub(super) cut: u64,
    pub(super) carried: Arc<[Entry]>,
    pub(super) window: Log<Entry>,
    pub(super) summary: Option<Arc<StoredSummary>>,
    pub(super) dropped: Dropped,
    pub(super) rewound: Arc<[Range<u64>]>,
    pub(super) pins: Arc<[u64]>,
    pub(super) floor: Option<u64>,
}

impl Snapshot {
    /// What an unknown key reads as.
    pub(crate) fn empty() -> Self {
        Self {
            revision: Revision::fresh(),
            cut: 0,
            carried: Arc::default(),
            window: Log::new(),
            summary: None,
            dropped: Dropped::default(),
            rewound: Arc::default(),
            pins: Arc::default(),
            floor: None,
        }
    }

    /// Returns the mark that names this snapshot.
    #[must_use]
    pub fn mark(&self) -> SnapshotMark {
        SnapshotMark::new(self.revision, self.len())
    }

    /// Returns how many messages there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.carried.len() + self.window.len()
    }

    /// Returns true when there are no messages.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the messages in order.
    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.entries().map(|entry| &entry.message)
    }

    /// Returns the message at an index, counted from the first carried one.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Arc<Message>> {
        self.entry(index).map(|entry| &entry.message)
    }

    /// Returns the messages as a list.
    #[must_use]
    pub fn to_vec(&self) -> Vec<Arc<Message>> {
        self.iter().cloned().collect()
    }

    /// Returns how many of the messages are carried: below the cut, and sent
    /// word for word all the same.
    #[must_use]
    pub fn carried(&self) -> usize {
        self.carried.len()
    }

    /// Returns the position of the window's first message in the transcript.
    #[must_use]
    pub const fn cut(&self) -> u64 {
        self.cut
    }

    /// Returns the summary of what came before.
    #[must_use]
    pub fn summary(&self) -> Option<&StoredSummary> {
        self.summary.as_deref()
    }

    /// Returns how many messages were dropped without a summary.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped.messages
    }

    /// The same history with other messages at some indexes, ascending.
    pub(crate) fn replacing(
        &self,
        messages: Vec<(usize, Arc<Message>)>,
        size: impl Fn(&Message) -> Size,
    ) -> Self {
        let mut messages = messages.into_iter().peekable();
        let mut replaced = self.entries().enumerate().map(|(index, entry)| {
            match messages.next_if(|(at, _)| *at == index) {
                Some((_, message)) => {
                    Entry { position: entry.position, size: size(&message), message }
                }
                None => entry.clone(),
            }
        });
        let carried = replaced.by_ref().take(self.carried.len()).collect();
        Self { carried, window: replaced.collect(), ..self.clone() }
    }

    /// The messages as decisions see them: those that the host has pinned since
    /// they came carry the flag.
    pub(crate) fn marked(&self) -> Vec<Arc<Message>> {
        let mark = |entry: &Entry| {
            if self.is_pinned_here(entry) {
                Arc::new(Message::clone(&entry.message).pinned())
            } else {
                Arc::clone(&entry.message)
            }
        };
        self.entries().map(mark).collect()
    }

    /// True where the message is pinned, from the start or since.
    pub(crate) fn is_pinned(&self, entry: &Entry) -> bool {
        entry.message.is_pinned() || self.is_pinned_here(entry)
    }

    fn is_pinned_here(&self, entry: &Entry) -> bool {
        self.pins.binary_search(&entry.position).is_ok()
    }

    pub(crate) fn pins(&self) -> &[u64] {
        &self.pins
    }

    /// Where the history begins, the summarized part included.
    pub(crate) fn floor(&self) -> u64 {
        self.floor.unwrap_or(self.cut)
    }

    pub(crate) const fn dropped_range(&self) -> Dropped {
        self.dropped
    }

    /// The same history with what was appended since, as long as nothing but
    /// compactions came in between: `steady` is the counter of the last other
    /// rewrite. None where it cannot be told what was appended.
    pub(crate) fn carried_on(&self, now: &Self, steady: u64) -> Option<Self> {
        if self.revision == now.revision {
            return Some(now.clone());
        }
        let same = self.revision.incarnation() == now.revision.incarnation();
        let next = self.next();
        if !same || self.revision.counter() < steady || now.cut > next {
            return None;
        }
        let mut window = self.window.clone();
        for entry in now.window.iter().filter(|entry| entry.position >= next) {
            window.push(entry.clone());
        }
        Some(Self { window, ..self.clone() })
    }

    /// The position after the last message.
    pub(crate) fn next(&self) -> u64 {
        let last = self.window.len().checked_sub(1).and_then(|last| self.window.get(last));
        let after = last.map_or(0, |last| last.position.saturating_add(1));
        after.max(self.cut).max(self.rewound.last().map_or(0, |range| range.end))
    }

    pub(crate) fn rewound(&self) -> &[Range<u64>] {
        &self.rewound
    }

    pub(crate) fn is_rewound(&self, position: u64) -> bool {
        is_rewound(&self.rewound, position)
    }

    pub(crate) const fn revision(&self) -> Revision {
        self.revision
    }

    pub(crate) fn entry(&self, index: usize) -> Option<&Entry> {
        match index.checked_sub(self.carried.len()) {
            None => self.carried.get(index),
            Some(index) => self.window.get(index),
        }
    }

    pub(crate) fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.carried.iter().chain(self.window.iter())
    }
}
