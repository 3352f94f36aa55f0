//! Where sessions are kept. The trait's docs are the contract that every
//! store keeps.

mod jsonl;
mod memory;

use std::{fmt, ops::Range, sync::Arc};

use async_trait::async_trait;

pub(crate) use self::memory::ID_HORIZON;
pub use self::{
    jsonl::{JsonlStore, Repaired},
    memory::MemoryStore,
};
use crate::{
    error::Result,
    event::UsageEvent,
    message::Message,
    session::{
        Pause, Revision, SessionKey, SessionOptions, SessionState, Size, StoredSummary, View,
    },
};

/// Keeps sessions: their messages and their state.
///
/// # Contract
///
/// - **Atomic.** Each call happens as a whole or not at all, also where its
///   future is dropped in the middle or the process is killed. Readers see the
///   state before or after.
/// - **Durable.** What a call acknowledged survives what the store's own docs
///   name (a crash of the process, a loss of power, nothing).
/// - **Positions.** A session's messages get the positions 0, 1, 2, .. in the
///   order of their acknowledgement. A position is never used twice within an
///   incarnation, whatever is cut, rewritten or dropped.
/// - **Revisions.** `append` leaves the revision as it is; `commit` of a view
///   and `rewrite` set it to [`Revision::next`]; a session that is created
///   again after `remove` has a new incarnation.
/// - **Unknown sessions** are empty: `load` gives `None`, `append` and
///   `rewrite` create them, `commit` is stale, `remove` removes nothing.
/// - **Idempotent.** A message with an id that the session already holds,
///   among its window or its last 1,024 messages, is not added again: the
///   answer says where it stands. The same id with other content is
///   [`Error::is_duplicate_id`](crate::Error::is_duplicate_id), and nothing of
///   that call is stored.
///
/// - **Taken back.** What a view says is [rewound](View::rewound) is left out
///   of the window that `load` gives, its ids are free, and its positions stay
///   used. A transcript still has it.
///
/// What not every store can do is an optional capability: [`Self::archive`].
#[async_trait]
pub trait SessionStore: fmt::Debug + Send + Sync + 'static {
    /// Adds messages at the end of a session, all or none.
    async fn append(&self, key: &SessionKey, messages: &[NewMessage]) -> Result<Receipt>;

    /// Reads what is sent of a session, and its state.
    async fn load(&self, key: &SessionKey) -> Result<Option<StoredSession>>;

    /// Changes a session's state where its revision is still the expected one.
    async fn commit(&self, key: &SessionKey, commit: Commit) -> Result<CommitResult>;

    /// Puts other messages in place of a session's history, at new positions.
    async fn rewrite(&self, key: &SessionKey, rewrite: Rewrite) -> Result<RewriteResult>;

    /// Removes a session with everything that is kept of it.
    async fn remove(&self, key: &SessionKey) -> Result<Removed>;

    /// Lists sessions in the order of their keys' bytes.
    async fn list(&self, page: ListPage) -> Result<Vec<SessionKey>>;

    /// Returns how many damaged records were passed over since the store was
    /// opened.
    fn repaired_lines(&self) -> u64 {
        0
    }

    /// Returns the transcripts, where this store keeps them.
    fn archive(&self) -> Option<&dyn Archive> {
        None
    }
}

/// Reads transcripts: also the messages that a summary stands for.
#[async_trait]
pub trait Archive: Send + Sync {
    /// Reads the messages at these positions; those that no longer exist are
    /// left out. An unknown session has none.
    async fn transcript(
        &self,
        key: &SessionKey,
        positions: Range<u64>,
    ) -> Result<Vec<StoredMessage>>;
}

const _: fn(&dyn SessionStore, &dyn Archive) = |_, _| {};

/// A message on its way into a store. It always has an id.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewMessage {
    /// The message.
    pub message: Arc<Message>,
    /// How large it is; for stores that keep totals.
    pub size: Size,
    /// True where the id was made for this call, so that no other message of
    /// the session can have it and the store need not look.
    pub fresh_id: bool,
}

impl NewMessage {
    /// Creates one.
    #[must_use]
    pub const fn new(message: Arc<Message>, size: Size, fresh_id: bool) -> Self {
        Self { message, size, fresh_id }
    }
}

/// What an append gives back.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Receipt {
    /// The session's revision.
    pub revision: Revision,
    /// Where each message stands, in the order given.
    pub placed: Vec<Placed>,
}

impl Receipt {
    /// Creates a receipt.
    #[must_use]
    pub const fn new(revision: Revision, placed: Vec<Placed>) -> Self {
        Self { revision, placed }
    }
}

/// Where an appended message stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Placed {
    /// Its position in the transcript.
    pub position: u64,
    /// True where the session held it already.
    pub duplicate: bool,
}

impl Placed {
    /// Creates a place.
    #[must_use]
    pub const fn new(position: u64, duplicate: bool) -> Self {
        Self { position, duplicate }
    }
}

/// What is sent of a session, and its state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredSession {
    /// The state.
    pub state: SessionState,
    /// The position that the next message gets.
    pub next: u64,
    /// The carried messages, in order.
    pub carried: Vec<StoredMessage>,
    /// The messages from the cut on, in order; with gaps where the store lost
    /// some.
    pub window: Vec<StoredMessage>,
}

impl StoredSession {
    /// Creates one.
    #[must_use]
    pub const fn new(
        state: SessionState,
        next: u64,
        carried: Vec<StoredMessage>,
        window: Vec<StoredMessage>,
    ) -> Self {
        Self { state, next, carried, window }
    }
}

/// A message and its position in the transcript.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoredMessage {
    /// The position.
    pub position: u64,
    /// The message.
    pub message: Arc<Message>,
}

impl StoredMessage {
    /// Creates one.
    #[must_use]
    pub const fn new(position: u64, message: Arc<Message>) -> Self {
        Self { position, message }
    }
}

/// A change of a session's state.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Commit {
    /// The revision that the change was made from.
    pub expected: Revision,
    /// The new view, if it changes; the revision rises with it.
    pub view: Option<View>,
    /// The pause from now on; `None` ends one.
    pub pause: Option<Pause>,
    /// The new options, if they change.
    pub options: Option<SessionOptions>,
    /// What to record in the same step.
    pub usage: Option<UsageEvent>,
}

impl Commit {
    /// Creates a commit that changes nothing yet but ends a pause.
    #[must_use]
    pub const fn on(expected: Revision) -> Self {
        Self { expected, view: None, pause: None, options: None, usage: None }
    }

    /// Sets the view.
    #[must_use]
    pub fn with_view(mut self, view: View) -> Self {
        self.view = Some(view);
        self
    }

    /// Sets the pause.
    #[must_use]
    pub fn with_pause(mut self, pause: Option<Pause>) -> Self {
        self.pause = pause;
        self
    }

    /// Sets the options.
    #[must_use]
    pub fn with_options(mut self, options: SessionOptions) -> Self {
        self.options = Some(options);
        self
    }

    /// Sets what to record.
    #[must_use]
    pub fn with_usage(mut self, usage: UsageEvent) -> Self {
        self.usage = Some(usage);
        self
    }
}

/// What became of a [`Commit`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
#[non_exhaustive]
pub enum CommitResult {
    /// It was stored; this is the revision now.
    Committed(Revision),
    /// The session is gone or has another revision: nothing was changed.
    Stale,
}

/// A new history for a session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rewrite {
    /// Where set, the rewrite is stale if anything was appended or rewritten
    /// since: the revision, and the position that the next message would get.
    pub expected: Option<(Revision, u64)>,
    /// The messages, which get new positions and become the window.
    pub messages: Vec<NewMessage>,
    /// The summary from now on.
    pub summary: Option<StoredSummary>,
}

impl Rewrite {
    /// Creates a rewrite that happens whatever the session holds.
    #[must_use]
    pub const fn new(messages: Vec<NewMessage>, summary: Option<StoredSummary>) -> Self {
        Self { expected: None, messages, summary }
    }
}

/// What became of a [`Rewrite`].
#[derive(Clone, Debug, Eq, PartialEq)]
#[must_use]
#[non_exhaustive]
pub enum RewriteResult {
    /// It was stored: where the messages stand, and the revision now.
    Rewritten(Receipt),
    /// The session was changed in between: nothing was stored.
    Stale,
}

/// What [`SessionStore::remove`] removed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Removed {
    /// Whether there was such a session.
    pub existed: bool,
    /// How many messages went with it, the summarized ones included where the
    /// store had kept them.
    pub messages: u64,
}

impl Removed {
    /// Creates the answer for a session that existed.
    #[must_use]
    pub const fn existing(messages: u64) -> Self {
        Self { existed: true, messages }
    }
}

/// Which sessions to list.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ListPage {
    /// Only keys after this one.
    pub after: Option<SessionKey>,
    /// At most this many.
    pub limit: usize,
}

impl ListPage {
    /// The first `limit` sessions.
    #[must_use]
    pub const fn first(limit: usize) -> Self {
        Self { after: None, limit }
    }

    /// The sessions after a key.
    #[must_use]
    pub fn after(mut self, key: SessionKey) -> Self {
        self.after = Some(key);
        self
    }
}

impl Default for ListPage {
    fn default() -> Self {
        Self::first(1_000)
    }
}
