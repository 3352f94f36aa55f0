//! The crate's error: opaque, cheap to clone, with predicates.

use std::{error::Error as StdError, fmt, sync::Arc};

/// A result whose error is this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Says what went wrong, where, and what to do about it.
///
/// # Design
///
/// The kinds are private, so that new ones can be added without breaking a
/// host. A host that must react to a kind asks with a predicate such as
/// [`Error::is_config`]; everyone else prints it. The cause, where there is
/// one, is in the [source chain](StdError::source) and not in the text, so a
/// printed chain says nothing twice.
///
/// # Example
///
/// ```
/// use session_compaction::SessionKey;
///
/// let error = SessionKey::new("").unwrap_err();
/// assert!(error.is_key());
/// assert_eq!(error.to_string(), "a session key is 1 to 1024 bytes long, this one has 0");
/// ```
#[derive(Clone)]
pub struct Error(Arc<Kind>);

type Cause = Box<dyn StdError + Send + Sync + 'static>;

#[derive(Debug, thiserror::Error)]
enum Kind {
    #[error("{origin}: {path}: {problem}")]
    Config { origin: String, path: String, problem: String },
    #[error(
        "message id {id:?} in session {session:?} already names other content; use a new id, or none"
    )]
    DuplicateId { session: String, id: String },
    #[error(
        "session {session:?} exists already, so nothing was imported; remove it first, or use another key"
    )]
    Exists { session: String },
    #[error(
        "what must be sent of session {session:?} takes {tokens} tokens, and {reserve} more are kept for the answer: its context window has {window}; the largest message takes {largest}, so shorten it, send fewer tools, or use a larger window"
    )]
    Irreducible { session: String, tokens: u64, reserve: u64, window: u64, largest: u64 },
    #[error("a session key is 1 to {max} bytes long, this one has {len}")]
    Key { len: usize, max: usize },
    #[error(
        "{path} is in use by another process or manager; one writer a folder, close the other one"
    )]
    Locked { path: String },
    #[error(
        "session {session:?} was there and is lost: the {backend} store no longer holds it; remove it to begin anew"
    )]
    Lost { backend: &'static str, session: String },
    #[error("{format} message: {problem}")]
    Message { format: &'static str, problem: String },
    #[error(
        "no tokio runtime here: call build() inside one, or pass a handle with runtime(handle)"
    )]
    NoRuntime,
    #[error("message {id:?} of session {session:?} stays as it is: {problem}")]
    Pin { session: String, id: String, problem: &'static str },
    #[error("{format}: the provider answered with an error ({code}) in place of a reply")]
    Refused { format: &'static str, code: String },
    #[error("session {session:?} cannot be taken back that far: {problem}")]
    Rewind { session: String, problem: &'static str },
    #[error("the {backend} store could not {action}")]
    Store { backend: &'static str, action: String, source: Option<Cause> },
    #[error("the {backend} store does not keep {what}; {remedy}")]
    Unsupported { backend: &'static str, what: &'static str, remedy: &'static str },
}

impl Error {
    /// A value in a configuration that is not allowed: `origin` is a file name
    /// or `environment`, `path` the field in it.
    pub(crate) fn config(
        origin: impl Into<String>,
        path: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Kind::Config { origin: origin.into(), path: path.into(), problem: problem.into() }.into()
    }

    /// The same id with other content.
    pub(crate) fn duplicate_id(session: &str, id: &str) -> Self {
        Kind::DuplicateId { session: session.into(), id: id.into() }.into()
    }

    /// What cannot be made smaller is still too large. All sizes in tokens.
    /// Creates the error of an import into a session that exists; for stores.
    #[must_use]
    pub fn exists(session: &str) -> Self {
        Kind::Exists { session: session.into() }.into()
    }

    pub(crate) fn irreducible(
        session: &str,
        tokens: u64,
        reserve: u64,
        window: u64,
        largest: u64,
    ) -> Self {
        Kind::Irreducible { session: session.into(), tokens, reserve, window, largest }.into()
    }

    pub(crate) fn key(len: usize, max: usize) -> Self {
        Kind::Key { len, max }.into()
    }

    pub(crate) fn locked(path: impl Into<String>) -> Self {
        Kind::Locked { path: path.into() }.into()
    }

    /// A message that could not be read, in the named format.
    /// Creates the error of a session that a store knows it has lost, as where
    /// an engine evicted it; for stores.
    #[must_use]
    pub fn lost(backend: &'static str, session: &str) -> Self {
        Kind::Lost { backend, session: session.into() }.into()
    }

    pub(crate) fn message(format: &'static str, problem: impl Into<String>) -> Self {
        Kind::Message { format, problem: problem.into() }.into()
    }

    pub(crate) fn no_runtime() -> Self {
        Kind::NoRuntime.into()
    }

    /// A pin that cannot be set or taken off.
    pub(crate) fn pin(session: &str, id: &impl fmt::Display, problem: &'static str) -> Self {
        Kind::Pin { session: session.into(), id: id.to_string(), problem }.into()
    }

    /// An error where a reply was expected, by the provider's code for it.
    pub(crate) fn refused(format: &'static str, code: impl Into<String>) -> Self {
        Kind::Refused { format, code: code.into() }.into()
    }

    /// A rewind that cannot be done.
    pub(crate) fn rewind(session: &str, problem: &'static str) -> Self {
        Kind::Rewind { session: session.into(), problem }.into()
    }

    /// A store's failure, for implementors of
    /// [`SessionStore`](crate::SessionStore): the backend's name, what it
    /// could not do (`"append to session.jsonl"`), and why.
    pub fn store(
        backend: &'static str,
        action: impl Into<String>,
        source: impl Into<Box<dyn StdError + Send + Sync + 'static>>,
    ) -> Self {
        Kind::Store { backend, action: action.into(), source: Some(source.into()) }.into()
    }

    /// Something that the store was not built to keep.
    pub(crate) fn unsupported(
        backend: &'static str,
        what: &'static str,
        remedy: &'static str,
    ) -> Self {
        Kind::Unsupported { backend, what, remedy }.into()
    }

    /// Returns true when a configuration value was refused.
    #[must_use]
    pub fn is_config(&self) -> bool {
        matches!(*self.0, Kind::Config { .. })
    }

    /// Returns true when a message id was used again with other content.
    #[must_use]
    pub fn is_duplicate_id(&self) -> bool {
        matches!(*self.0, Kind::DuplicateId { .. })
    }

    /// Returns true where a session that was to be imported exists already.
    #[must_use]
    pub fn is_exists(&self) -> bool {
        matches!(*self.0, Kind::Exists { .. })
    }

    /// Returns true where the store knows that it held this session and lost
    /// it.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(*self.0, Kind::Lost { .. })
    }

    /// Returns true when a context cannot be made to fit: what must be sent is
    /// larger than the context window. The text has the sizes.
    #[must_use]
    pub fn is_irreducible(&self) -> bool {
        matches!(*self.0, Kind::Irreducible { .. })
    }

    /// Returns true when a session key is empty or too long.
    #[must_use]
    pub fn is_key(&self) -> bool {
        matches!(*self.0, Kind::Key { .. })
    }

    /// Returns true when another process or manager holds the store's folder.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        matches!(*self.0, Kind::Locked { .. })
    }

    /// Returns true when a message could not be read.
    #[must_use]
    pub fn is_message(&self) -> bool {
        matches!(*self.0, Kind::Message { .. })
    }

    /// Returns true when there was no tokio runtime to run on.
    #[must_use]
    pub fn is_no_runtime(&self) -> bool {
        matches!(*self.0, Kind::NoRuntime)
    }

    /// Returns true when a message could not be pinned, or its pin not taken
    /// off. The text says why.
    #[must_use]
    pub fn is_pin(&self) -> bool {
        matches!(*self.0, Kind::Pin { .. })
    }

    /// Returns true when a provider answered with an error in place of a reply.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(*self.0, Kind::Refused { .. })
    }

    /// Returns true when messages could not be taken back: they are not in the
    /// history, or a summary stands for them.
    #[must_use]
    pub fn is_rewind(&self) -> bool {
        matches!(*self.0, Kind::Rewind { .. })
    }

    /// Returns true when the store failed; nothing was acknowledged.
    #[must_use]
    pub fn is_store(&self) -> bool {
        matches!(*self.0, Kind::Store { .. })
    }

    /// Returns true when the store does not keep what was asked for.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(*self.0, Kind::Unsupported { .. })
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

impl From<Kind> for Error {
    fn from(kind: Kind) -> Self {
        Self(Arc::new(kind))
    }
}
