//! Which state of a session something was made from.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ulid::Ulid;

/// Names a state of a session's history.
///
/// The incarnation is random and new whenever a key is created again; the
/// counter rises with every rewrite and never with an append. So neither a
/// history that shrank and grew back nor a session that was removed and
/// created again passes for the one before.
///
/// # Example
///
/// ```
/// use session_compaction::Revision;
///
/// let first = Revision::fresh();
/// assert_ne!(first, Revision::fresh());
/// assert_eq!(first.next().counter(), 1);
/// assert_eq!(first.to_string().parse::<Revision>()?, first);
/// # Ok::<(), session_compaction::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Revision {
    incarnation: u64,
    counter: u64,
}

impl Revision {
    /// Creates the first revision of a new incarnation.
    #[must_use]
    pub fn fresh() -> Self {
        // The low 64 of a ULID's 80 random bits.
        Self { incarnation: u64::try_from(Ulid::new().random() >> 16).unwrap_or(1), counter: 0 }
    }

    /// That of no session.
    pub(crate) const fn none() -> Self {
        Self { incarnation: 0, counter: 0 }
    }

    /// Returns the revision after a rewrite.
    #[must_use]
    pub const fn next(self) -> Self {
        Self { incarnation: self.incarnation, counter: self.counter.saturating_add(1) }
    }

    /// Returns the incarnation: random, new when a key is created again.
    #[must_use]
    pub const fn incarnation(self) -> u64 {
        self.incarnation
    }

    /// Returns how often the history was rewritten in this incarnation.
    #[must_use]
    pub const fn counter(self) -> u64 {
        self.counter
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}.{}", self.incarnation, self.counter)
    }
}

impl FromStr for Revision {
    type Err = crate::Error;

    fn from_str(text: &str) -> crate::Result<Self> {
        text.split_once('.')
            .and_then(|(incarnation, counter)| {
                Some(Self {
                    incarnation: u64::from_str_radix(incarnation, 16).ok()?,
                    counter: counter.parse().ok()?,
                })
            })
            .ok_or_else(|| {
                crate::Error::message("revision", format!("{text:?} is not INCARNATION.COUNTER"))
            })
    }
}

// As text: the incarnation would not survive a reader that takes numbers for
// floating point.
impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Revision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Names a snapshot, or a context that was sent: the revision and how many
/// messages the history had. Costs nothing to keep.
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
/// let mark = sessions.snapshot("chat").await?;
/// sessions.add_message("chat", Message::assistant("hi")).await?;
/// let now = sessions.snapshot("chat").await?;
/// assert_eq!((mark.len, now.len), (1, 2));
/// assert_eq!(mark.revision, now.revision, "an append is no rewrite");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct SnapshotMark {
    /// The state of the history.
    pub revision: Revision,
    /// How many messages it had: carried ones and window.
    pub len: usize,
}

impl SnapshotMark {
    pub(crate) const fn new(revision: Revision, len: usize) -> Self {
        Self { revision, len }
    }
}

/// What `apply_summarization` takes as its snapshot: a [`SnapshotMark`], or a
/// bare length.
///
/// A bare length is the original's form. It is checked as a length alone, so a
/// history that shrank and grew back passes; prefer the mark.
///
/// # Example
///
/// ```
/// use session_compaction::SnapshotRef;
///
/// assert_eq!(SnapshotRef::from(10).len(), 10);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SnapshotRef {
    revision: Option<Revision>,
    len: usize,
}

impl SnapshotRef {
    /// Returns how many messages the history had.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "the length of something else")]
    pub const fn len(self) -> usize {
        self.len
    }

    pub(crate) fn is_of(self, revision: Revision) -> bool {
        self.revision.is_none_or(|own| own == revision)
    }
}

impl From<SnapshotMark> for SnapshotRef {
    fn from(mark: SnapshotMark) -> Self {
        Self { revision: Some(mark.revision), len: mark.len }
    }
}

impl From<usize> for SnapshotRef {
    fn from(len: usize) -> Self {
        Self { revision: None, len }
    }
}
