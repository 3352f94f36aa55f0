//! What a check says where a promise is broken.

use std::fmt;

use crate::error::Error;

/// A promise that a store has broken.
///
/// # Example
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use session_compaction::{MemoryStore, Message, NewMessage, SessionKey, SessionStore, Size};
/// use session_compaction::conformance::CHECKS;
///
/// // A store that is not empty breaks the first promise.
/// let store = Arc::new(MemoryStore::new());
/// let message = Arc::new(Message::user("hello").with_id("a"));
/// store.append(&SessionKey::new("s")?, &[NewMessage::new(message, Size::default(), false)]).await?;
/// let broken = CHECKS[0].run(store).await.unwrap_err();
/// assert!(broken.to_string().starts_with("unknown_sessions_are_empty: an unknown session is not there"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Broken(Box<Promise>);

#[derive(Debug)]
struct Promise {
    check: &'static str,
    what: String,
    expected: String,
    saw: String,
    source: Option<Error>,
}

impl Broken {
    fn new(what: impl Into<String>, expected: String, saw: String) -> Self {
        Self(Box::new(Promise { check: "", what: what.into(), expected, saw, source: None }))
    }

    pub(super) fn of(mut self, check: &'static str) -> Self {
        self.0.check = check;
        self
    }

    /// Returns the name of the check that found it.
    #[must_use]
    pub fn check(&self) -> &'static str {
        self.0.check
    }

    /// Returns what was promised.
    #[must_use]
    pub fn promise(&self) -> &str {
        &self.0.what
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Promise { check, what, expected, saw, .. } = &*self.0;
        write!(f, "{check}: {what}: expected {expected}, saw {saw}")
    }
}

impl std::error::Error for Broken {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_ref().map(|error| error as _)
    }
}

/// Why a check ends early.
#[derive(Debug)]
pub(super) enum Stop {
    Broken(Broken),
    NotApplicable(&'static str),
}

pub(super) type Done = Result<(), Stop>;

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        let mut broken =
            Broken::new("a call succeeds", "an answer".into(), format!("an error: {error}"));
        broken.0.source = Some(error);
        Self::Broken(broken)
    }
}

/// Breaks the promise.
pub(super) fn broken(what: impl Into<String>, expected: &str, saw: &impl fmt::Debug) -> Stop {
    Stop::Broken(Broken::new(what, expected.into(), format!("{saw:?}")))
}

/// Checks that something is as it should be.
#[expect(clippy::needless_pass_by_value, reason = "so that checks read without references")]
pub(super) fn same<A, B>(what: impl Into<String>, saw: A, expected: B) -> Done
where
    A: fmt::Debug + PartialEq<B>,
    B: fmt::Debug,
{
    if saw == expected {
        return Ok(());
    }
    Err(Stop::Broken(Broken::new(what, format!("{expected:?}"), format!("{saw:?}"))))
}

/// Checks that something holds of what was seen.
pub(super) fn holds(what: impl Into<String>, it_does: bool, saw: &impl fmt::Debug) -> Done {
    if it_does { Ok(()) } else { Err(broken(what, "it to hold", saw)) }
}

/// Checks that a call was refused, and for this reason.
pub(super) fn refused<T: fmt::Debug>(
    what: impl Into<String>,
    result: Result<T, Error>,
    reason: fn(&Error) -> bool,
) -> Done {
    match result {
        Err(error) if reason(&error) => Ok(()),
        Err(error) => Err(broken(what, "another error", &error)),
        Ok(answer) => Err(broken(what, "an error", &answer)),
    }
}
