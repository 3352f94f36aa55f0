//! Sessions in memory alone.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    ops::Range,
    sync::Arc,
};

use async_trait::async_trait;
use dashmap::{DashMap, Entry};

use super::{
    Archive, Commit, CommitResult, ListPage, NewMessage, Placed, Receipt, Removed, Rewrite,
    RewriteResult, SessionExport, SessionStore, StoredCompaction, StoredMessage, StoredSession,
};
use crate::{
    error::{Error, Result},
    message::{Message, MessageId},
    session::{SessionKey, SessionState, View},
};

/// Keeps sessions in memory; they are gone with the process.
///
/// What a summary stands for is dropped, so that a long conversation stays
/// small. [`MemoryStore::keep_transcripts`] keeps everything instead.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{MemoryStore, Message, SessionManager};
///
/// let sessions = SessionManager::builder().store(MemoryStore::keep_transcripts()).build()?;
/// sessions.add_message("chat", Message::user("hello")).await?;
/// sessions.clear("chat").await?;
/// assert!(sessions.history("chat").await?.is_empty());
/// assert_eq!(sessions.transcript("chat", 0..10).await?.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct MemoryStore {
    sessions: DashMap<SessionKey, Stored>,
    keep_transcripts: bool,
}

// What was said is no affair of a log line.
impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("sessions", &self.sessions.len())
            .field("keep_transcripts", &self.keep_transcripts)
            .finish()
    }
}

/// Ids are recognized among the window and this many of the newest messages.
pub(crate) const ID_HORIZON: usize = 1_024;

#[derive(Debug)]
struct Stored {
    state: SessionState,
    /// Messages by position; with gaps where retired ones were dropped.
    messages: VecDeque<StoredMessage>,
    next: u64,
    ids: IdIndex,
}

impl MemoryStore {
    /// Creates a store that drops what a summary stands for.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a store that keeps every message until its session is removed.
    #[must_use]
    pub fn keep_transcripts() -> Self {
        Self { keep_transcripts: true, ..Self::default() }
    }

    fn replace(&self, stored: &mut Stored, key: &SessionKey, rewrite: Rewrite) -> Result<Receipt> {
        let cut = stored.next;
        // The old messages' ids are free again: a host gives back what it took.
        let ids = std::mem::replace(&mut stored.ids, IdIndex::starting_at(cut));
        let mut receipt = match stored.append(key, &rewrite.messages) {
            Ok(receipt) => receipt,
            Err(error) => {
                stored.ids = ids;
                return Err(error);
            }
        };
        stored.state.revision = stored.state.revision.next();
        stored.state.view = View { cut, summary: rewrite.summary, ..View::default() };
        stored.state.pause = None;
        receipt.revision = stored.state.revision;
        self.retire(stored);
        Ok(receipt)
    }

    fn retire(&self, stored: &mut Stored) {
        if self.keep_transcripts {
            return;
        }
        let Stored { state, messages, next, ids } = stored;
        // A message that is dropped here is still recognized by its id.
        ids.build(messages.iter().filter(|kept| !state.view.is_rewound(kept.position)));
        messages.retain(|kept| state.view.shows(kept.position));
        messages.shrink_to_fit();
        ids.forget_below(state.view.cut.min(next.saturating_sub(ID_HORIZON as u64)));
    }
}

#[async_trait]
impl SessionStore for MemoryStore {
    async fn append(&self, key: &SessionKey, messages: &[NewMessage]) -> Result<Receipt> {
        match self.sessions.entry(key.clone()) {
            Entry::Occupied(mut stored) => stored.get_mut().append(key, messages),
            Entry::Vacant(vacant) => {
                // What is refused creates no session.
                let mut stored = Stored::new();
                let receipt = stored.append(key, messages)?;
                vacant.insert(stored);
                Ok(receipt)
            }
        }
    }

    async fn load(&self, key: &SessionKey) -> Result<Option<StoredSession>> {
        Ok(self.sessions.get(key).map(|stored| stored.read()))
    }

    async fn commit(&self, key: &SessionKey, commit: Commit) -> Result<CommitResult> {
        let Some(mut stored) = self.sessions.get_mut(key) else { return Ok(CommitResult::Stale) };
        if stored.state.revision != commit.expected {
            return Ok(CommitResult::Stale);
        }
        stored.state.pause = commit.pause;
        if let Some(options) = commit.options {
            stored.state.options = options;
        }
        if let Some(view) = commit.view {
            stored.state.view = view;
            stored.state.revision = commit.expected.next();
            let Stored { state, ids, .. } = &mut *stored;
            ids.forget_rewound(&state.view);
            self.retire(&mut stored);
        }
        Ok(CommitResult::Committed(stored.state.revision))
    }

    async fn rewrite(&self, key: &SessionKey, rewrite: Rewrite) -> Result<RewriteResult> {
        match (self.sessions.entry(key.clone()), rewrite.expected) {
            (Entry::Vacant(_), Some(_)) => Ok(RewriteResult::Stale),
            (Entry::Vacant(vacant), None) => {
                let mut stored = Stored::new();
                let receipt = self.replace(&mut stored, key, rewrite)?;
                vacant.insert(stored);
                Ok(RewriteResult::Rewritten(receipt))
            }
            (Entry::Occupied(mut stored), expected) => {
                let stored = stored.get_mut();
                if expected.is_some_and(|expected| expected != (stored.state.revision, stored.next))
                {
                    return Ok(RewriteResult::Stale);
                }
                self.replace(stored, key, rewrite).map(RewriteResult::Rewritten)
            }
        }
    }

    async fn remove(&self, key: &SessionKey) -> Result<Removed> {
        Ok(self.sessions.remove(key).map_or_else(Removed::default, |(_, stored)| {
            Removed::existing(stored.messages.len() as u64)
        }))
    }

    async fn list(&self, page: ListPage) -> Result<Vec<SessionKey>> {
        let listed = self.sessions.iter().map(|entry| entry.key().clone());
        let mut keys: Vec<_> = listed.filter(|key| page.has(key)).collect();
        keys.sort_unstable();
        keys.truncate(page.limit);
        Ok(keys)
    }

    fn archive(&self) -> Option<&dyn Archive> {
        self.keep_transcripts.then_some(self)
    }
}

#[async_trait]
impl Archive for MemoryStore {
    async fn transcript(
        &self,
        key: &SessionKey,
        positions: Range<u64>,
    ) -> Result<Vec<StoredMessage>> {
        Ok(self.sessions.get(key).map_or_else(Vec::new, |stored| {
            let from = stored.messages.partition_point(|kept| kept.position < positions.start);
            let range = stored.messages.range(from..);
            range.take_while(|kept| kept.position < positions.end).cloned().collect()
        }))
    }

    async fn compactions(
        &self,
        _key: &SessionKey,
        _before: Option<u64>,
        _limit: usize,
    ) -> Result<Vec<StoredCompaction>> {
        Err(Error::unsupported("hub", "compactions", "wait"))
    }

    async fn import(&self, _key: &SessionKey, _session: &SessionExport) -> Result<Receipt> {
        Err(Error::unsupported("hub", "imports", "wait"))
    }
}

impl Stored {
    fn new() -> Self {
        Self {
            state: SessionState::fresh(),
            messages: VecDeque::new(),
            next: 0,
            ids: IdIndex::default(),
        }
    }

    fn append(&mut self, key: &SessionKey, messages: &[NewMessage]) -> Result<Receipt> {
        if messages.iter().any(|new| !new.fresh_id) {
            let view = &self.state.view;
            self.ids.build(self.messages.iter().filter(|kept| !view.is_rewound(kept.position)));
        }
        let (placed, added) = self.ids.place(key, self.next, messages)?;
        self.next = self.next.saturating_add(added.len() as u64);
        self.ids.add(&added);
        self.messages.extend(added);
        Ok(Receipt::new(self.state.revision, placed))
    }

    fn read(&self) -> StoredSession {
        let view = &self.state.view;
        let window_from = self.messages.partition_point(|kept| kept.position < view.cut);
        let shown = |kept: &&StoredMessage| view.shows(kept.position);
        StoredSession::new(
            self.state.clone(),
            self.next,
            self.messages.range(..window_from).filter(shown).cloned().collect(),
            self.messages.range(window_from..).filter(shown).cloned().collect(),
        )
    }
}

/// Finds messages by id. Built when the first message comes whose id the host
/// chose: the ids that this crate makes cannot clash.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdIndex {
    built: bool,
    by_id: HashMap<MessageId, (u64, u64)>,
    /// Ids of messages below this position are free again.
    from: u64,
}

impl IdIndex {
    /// An index of the messages from this position on.
    pub(crate) fn starting_at(from: u64) -> Self {
        Self { from, ..Self::default() }
    }

    pub(crate) const fn is_built(&self) -> bool {
        self.built
    }

    pub(crate) fn build<'a>(&mut self, messages: impl IntoIterator<Item = &'a StoredMessage>) {
        if !self.built {
            self.built = true;
            let from = self.from;
            self.add(messages.into_iter().filter(|kept| kept.position >= from));
        }
    }

    /// Gives messages their places from `next` on, and returns those that are
    /// new; an error where an id names other content.
    pub(crate) fn place(
        &self,
        key: &SessionKey,
        next: u64,
        messages: &[NewMessage],
    ) -> Result<(Vec<Placed>, Vec<StoredMessage>)> {
        let mut placed = Vec::with_capacity(messages.len());
        let mut added: Vec<StoredMessage> = Vec::with_capacity(messages.len());
        let mut in_batch: HashMap<&MessageId, (u64, &Message)> = HashMap::new();
        for new in messages {
            let id = new.message.id().filter(|_| !new.fresh_id);
            let known = if id.is_some() { self.find(key, &new.message)? } else { None };
            let position = match (known, id.and_then(|id| in_batch.get(id))) {
                (Some(position), _) => position,
                (None, Some((position, other))) if **other == *new.message => *position,
                (None, Some(_)) => return Err(duplicate(key, &new.message)),
                (None, None) => {
                    let position = next.saturating_add(added.len() as u64);
                    in_batch.extend(id.map(|id| (id, (position, &*new.message))));
                    added.push(StoredMessage::new(position, Arc::clone(&new.message)));
                    placed.push(Placed::new(position, false));
                    continue;
                }
            };
            placed.push(Placed::new(position, true));
        }
        Ok((placed, added))
    }

    pub(crate) fn add<'a>(&mut self, messages: impl IntoIterator<Item = &'a StoredMessage>) {
        if !self.built {
            return;
        }
        for kept in messages {
            if let Some(id) = kept.message.id() {
                self.by_id.insert(id.clone(), (kept.position, kept.message.fingerprint()));
            }
        }
    }

    /// Where the message stands already; an error where its id names another.
    pub(crate) fn find(&self, key: &SessionKey, message: &Message) -> Result<Option<u64>> {
        match message.id().and_then(|id| self.by_id.get(id)) {
            None => Ok(None),
            Some((position, print)) if *print == message.fingerprint() => Ok(Some(*position)),
            Some(_) => Err(duplicate(key, message)),
        }
    }

    /// The ids of messages that were taken back are free again.
    pub(crate) fn forget_rewound(&mut self, view: &View) {
        if !view.rewound.is_empty() {
            self.by_id.retain(|_, (at, _)| !view.is_rewound(*at));
        }
    }

    pub(crate) fn forget_below(&mut self, position: u64) {
        self.by_id.retain(|_, (at, _)| *at >= position);
    }
}

fn duplicate(key: &SessionKey, message: &Message) -> Error {
    Error::duplicate_id(key, &message.id().map(ToString::to_string).unwrap_or_default())
}
