//! What goes into a store, and what it gives back.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    message::Message,
    session::{Pause, Revision, SessionKey, SessionOptions, SessionState, Size},
};

/// A message on its way into a store. It always has an id.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use std::sync::Arc;
/// use session_compaction::{MemoryStore, Message, NewMessage, SessionKey, SessionStore, Size};
///
/// let store = MemoryStore::new();
/// let key = SessionKey::new("chat")?;
/// let message = Arc::new(Message::user("hello").with_id("a"));
/// let new = NewMessage::new(message, Size::default(), false);
/// assert_eq!(store.append(&key, &[new]).await?.placed.len(), 1);
/// # Ok(())
/// # }
/// ```
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
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use std::sync::Arc;
/// use session_compaction::{MemoryStore, Message, NewMessage, SessionKey, SessionStore, Size};
///
/// let store = MemoryStore::new();
/// let key = SessionKey::new("chat")?;
/// let message = Arc::new(Message::user("hello").with_id("a"));
/// let new = NewMessage::new(message, Size::default(), false);
/// let first = store.append(&key, &[new.clone()]).await?;
/// assert_eq!(store.append(&key, &[new]).await?.revision, first.revision);
/// # Ok(())
/// # }
/// ```
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
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use std::sync::Arc;
/// use session_compaction::{MemoryStore, Message, NewMessage, Placed, SessionKey, SessionStore, Size};
///
/// let store = MemoryStore::new();
/// let key = SessionKey::new("chat")?;
/// let message = Arc::new(Message::user("hello").with_id("a"));
/// let new = NewMessage::new(message, Size::default(), false);
/// assert_eq!(store.append(&key, &[new.clone()]).await?.placed, [Placed::new(0, false)]);
/// assert_eq!(store.append(&key, &[new]).await?.placed, [Placed::new(0, true)]);
/// # Ok(())
/// # }
/// ```
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
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use std::sync::Arc;
/// use session_compaction::{MemoryStore, Message, NewMessage, SessionKey, SessionStore, Size};
///
/// let store = MemoryStore::new();
/// let key = SessionKey::new("chat")?;
/// let message = Arc::new(Message::user("hello").with_id("a"));
/// let new = NewMessage::new(message, Size::default(), false);
/// store.append(&key, &[new]).await?;
/// let session = store.load(&key).await?.unwrap();
/// assert_eq!((session.next, session.window.len(), session.carried.len()), (1, 1, 0));
/// # Ok(())
/// # }
/// ```
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
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use std::sync::Arc;
/// use session_compaction::{MemoryStore, Message, NewMessage, SessionKey, SessionStore, Size};
///
/// let store = MemoryStore::new();
/// let key = SessionKey::new("chat")?;
/// let message = Arc::new(Message::user("hello").with_id("a"));
/// let new = NewMessage::new(message, Size::default(), false);
/// store.append(&key, &[new]).await?;
/// let session = store.load(&key).await?.unwrap();
/// assert_eq!((session.window[0].position, session.window[0].message.text()), (0, "hello".into()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StoredMessage {
    /// The position.
    pub position: u64,
    /// When the store took it, in milliseconds since 1970; 0 where it does not
    /// say.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unix_millis: u64,
    /// The message.
    pub message: Arc<Message>,
}

impl StoredMessage {
    /// Creates one.
    #[must_use]
    pub const fn new(position: u64, message: Arc<Message>) -> Self {
        Self { position, unix_millis: 0, message }
    }

    /// Sets when the store took it, in milliseconds since 1970.
    #[must_use]
    pub const fn at(mut self, unix_millis: u64) -> Self {
        self.unix_millis = unix_millis;
        self
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// What came of a session since a reader last looked.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use std::sync::Arc;
/// use session_compaction::{MemoryStore, Message, NewMessage, SessionKey, SessionStore, Since, Size};
///
/// let store = MemoryStore::new();
/// let key = SessionKey::new("chat")?;
/// let message = Arc::new(Message::user("hello").with_id("a"));
/// let receipt = store.append(&key, &[NewMessage::new(message, Size::default(), false)]).await?;
/// assert!(!matches!(store.load_since(&key, receipt.revision, 1).await?, Since::Gone));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "the usual answer is not to cost an allocation")]
pub enum Since {
    /// The revision is another one, or there are fewer positions than the
    /// reader knew: all of it has to be read again.
    Changed(Box<StoredSession>),
    /// There is no such session.
    Gone,
    /// The revision is the same.
    Same(Tail),
}

/// What was appended to a session, and what can change without a new revision.
///
/// # Example
///
/// ```
/// use session_compaction::{SessionOptions, Tail};
///
/// let tail = Tail::new(SessionOptions::default(), None, 7, Vec::new());
/// assert_eq!((tail.next, tail.messages.len()), (7, 0));
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tail {
    /// The options as they are.
    pub options: SessionOptions,
    /// The pause as it is.
    pub pause: Option<Pause>,
    /// The position that the next message gets.
    pub next: u64,
    /// The messages of the window that were appended, in order.
    pub messages: Vec<StoredMessage>,
}

impl Tail {
    /// Creates one.
    #[must_use]
    pub const fn new(
        options: SessionOptions,
        pause: Option<Pause>,
        next: u64,
        messages: Vec<StoredMessage>,
    ) -> Self {
        Self { options, pause, next, messages }
    }
}

/// What [`SessionStore::remove`](crate::SessionStore::remove) removed.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use std::sync::Arc;
/// use session_compaction::{MemoryStore, Message, NewMessage, Removed, SessionKey, SessionStore, Size};
///
/// let store = MemoryStore::new();
/// let key = SessionKey::new("chat")?;
/// let message = Arc::new(Message::user("hello").with_id("a"));
/// let new = NewMessage::new(message, Size::default(), false);
/// store.append(&key, &[new]).await?;
/// assert_eq!(store.remove(&key).await?, Removed::existing(1));
/// assert_eq!(store.remove(&key).await?, Removed::default());
/// # Ok(())
/// # }
/// ```
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
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use std::sync::Arc;
/// use session_compaction::{ListPage, MemoryStore, Message, NewMessage, SessionKey, SessionStore, Size};
///
/// let store = MemoryStore::new();
/// let key = SessionKey::new("chat")?;
/// let message = Arc::new(Message::user("hello").with_id("a"));
/// let new = NewMessage::new(message, Size::default(), false);
/// store.append(&key, &[new]).await?;
/// assert_eq!(store.list(ListPage::first(10)).await?, [key.clone()]);
/// assert!(store.list(ListPage::first(10).after(key.clone())).await?.is_empty());
/// assert!(ListPage::first(10).within(SessionKey::new("tenant:7")?).has(&SessionKey::new("tenant:7:a")?));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ListPage {
    /// Only keys after this one.
    pub after: Option<SessionKey>,
    /// At most this many.
    pub limit: usize,
    /// Only keys in this scope: the key that is equal to it, and those that
    /// go on after it with `:` or `/`.
    pub scope: Option<SessionKey>,
}

impl ListPage {
    /// The first `limit` sessions.
    #[must_use]
    pub const fn first(limit: usize) -> Self {
        Self { after: None, limit, scope: None }
    }

    /// The sessions in a scope: whole segments of the key, so that `tenant:7`
    /// has `tenant:7` and `tenant:7:chat`, but not `tenant:70`.
    #[must_use]
    pub fn within(mut self, scope: SessionKey) -> Self {
        self.scope = Some(scope);
        self
    }

    /// Returns true for a key that this page is about.
    #[must_use]
    pub fn has(&self, key: &SessionKey) -> bool {
        self.after.as_ref().is_none_or(|after| key > after)
            && self.scope.as_ref().is_none_or(|scope| {
                let rest = key.strip_prefix(scope.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
            })
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
