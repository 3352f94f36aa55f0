//! The state of a session beside its messages: the same in memory and in
//! every store.

use std::{fmt, ops::Range, time::SystemTime};

use serde::{Deserialize, Serialize};

use super::{options::SessionOptions, revision::Revision};

/// Everything that a store keeps of a session beside its messages.
///
/// # Example
///
/// ```
/// use session_compaction::SessionState;
///
/// let state = SessionState::fresh();
/// assert_eq!((state.revision.counter(), state.view.cut), (0, 0));
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionState {
    /// Which state of the history this is.
    pub revision: Revision,
    /// What of the transcript is sent, and what stands for the rest.
    pub view: View,
    /// What the host configured for this session.
    #[serde(default)]
    pub options: SessionOptions,
    /// Why no compaction is tried for now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Pause>,
}

impl SessionState {
    /// Creates the state of a new, empty session.
    #[must_use]
    pub fn fresh() -> Self {
        Self {
            revision: Revision::fresh(),
            view: View::default(),
            options: SessionOptions::default(),
            pause: None,
        }
    }
}

/// Divides a transcript into what is sent and what is not. Set as a whole, so
/// that a summary is never seen without its cut.
///
/// # Example
///
/// ```
/// use session_compaction::View;
///
/// let view: View = serde_json::from_str(r#"{"cut": 16, "carried": [0]}"#).unwrap();
/// assert!(view.summary.is_none());
/// ```
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct View {
    /// Positions from here on are the window, sent word for word.
    pub cut: u64,
    /// Positions below the cut that are sent word for word all the same, in
    /// order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<u64>,
    /// What stands for the rest below the cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<StoredSummary>,
    /// What of the rest no summary stands for.
    #[serde(default, skip_serializing_if = "Dropped::is_none")]
    pub dropped: Dropped,
    /// Positions whose messages the host took back: no part of the window, and
    /// owed to no summary. Ascending, and apart from each other; those of old
    /// ones are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rewound: Vec<Range<u64>>,
    /// Positions that the host has pinned, in order: always sent word for word.
    /// Those that are pinned from the start are not among them: their messages
    /// say so themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<u64>,
    /// Where the history begins that this divides: what lies below was cleared,
    /// rewritten or taken out by the host, and never comes back. The cut, where
    /// it is not set: nothing was compacted since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<u64>,
}

impl View {
    /// Returns true where the message at this position was taken back.
    #[must_use]
    pub fn is_rewound(&self, position: u64) -> bool {
        is_rewound(&self.rewound, position)
    }

    /// Returns true where the message at this position is sent word for word.
    #[must_use]
    pub fn shows(&self, position: u64) -> bool {
        if position < self.cut {
            self.carried.binary_search(&position).is_ok()
        } else {
            !self.is_rewound(position)
        }
    }

    /// Takes positions back.
    pub(crate) fn rewind(&mut self, positions: Range<u64>) {
        self.carried.retain(|position| !positions.contains(position));
        self.pins.retain(|position| !positions.contains(position));
        self.rewound.push(positions);
        self.rewound.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::with_capacity(self.rewound.len());
        for range in self.rewound.drain(..) {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        self.rewound = merged;
    }
}

pub(super) fn is_rewound(rewound: &[Range<u64>], position: u64) -> bool {
    let after = rewound.partition_point(|range| range.start <= position);
    let range = after.checked_sub(1).and_then(|at| rewound.get(at));
    range.is_some_and(|range| range.contains(&position))
}

/// A summary as it is kept: the text, and how it came to be.
///
/// # Example
///
/// ```
/// use session_compaction::StoredSummary;
///
/// assert_eq!(StoredSummary::new("All well.").by, "", "the host wrote it");
/// ```
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StoredSummary {
    /// The summary.
    pub text: String,
    /// How many messages were so long that the summarizer saw an excerpt only.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub excerpted: u64,
    /// The summarizer that wrote it; empty where the host did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

impl StoredSummary {
    /// Creates a summary that the host wrote.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), excerpted: 0, by: String::new() }
    }
}

/// Messages that `force_compression` removed without a summary.
///
/// # Example
///
/// ```
/// use session_compaction::Dropped;
///
/// assert_eq!(Dropped::default().messages, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Dropped {
    /// How many.
    pub messages: u64,
    /// The position from which on they lie. Up to the cut, all that is not
    /// carried is owed to the next compaction.
    pub since: u64,
}

impl Dropped {
    pub(crate) const fn is_none(&self) -> bool {
        self.messages == 0
    }
}

/// Why, and until when, no compaction of a session is tried.
///
/// Stored with the session, so that no other process repeats what failed here.
///
/// # Example
///
/// ```
/// use std::time::SystemTime;
/// use session_compaction::{Pause, PauseUntil};
///
/// let pause: Pause = serde_json::from_str(r#"{"until": {"tokens": 900}, "reason": "nothing to gain"}"#).unwrap();
/// assert_eq!(pause.until, PauseUntil::Tokens(900));
/// assert!(pause.holds(899, SystemTime::now()) && !pause.holds(900, SystemTime::now()));
/// ```
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Pause {
    /// When it ends.
    pub until: PauseUntil,
    /// What happened, in words.
    pub reason: String,
    /// How many attempts in a row failed. Kept also where that is no reason to
    /// wait yet: the end of the pause has then passed.
    #[serde(default, skip_serializing_if = "is_none")]
    pub failures: u32,
}

/// When a [`Pause`] ends.
///
/// # Example
///
/// ```
/// use session_compaction::PauseUntil;
///
/// assert_eq!(PauseUntil::Tokens(900).to_string(), "until the history holds 900 tokens");
/// ```
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PauseUntil {
    /// Once the history holds this many tokens.
    Tokens(u64),
    /// At this time, in milliseconds since 1970.
    UnixMillis(u64),
}

impl Pause {
    /// Creates a pause that no failure caused.
    #[must_use]
    pub fn new(until: PauseUntil, reason: impl Into<String>) -> Self {
        Self { until, reason: reason.into(), failures: 0 }
    }

    /// Returns true while nothing is to be tried.
    #[must_use]
    pub fn holds(&self, tokens: u64, now: SystemTime) -> bool {
        match self.until {
            PauseUntil::Tokens(limit) => tokens < limit,
            PauseUntil::UnixMillis(end) => {
                let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
                now.as_millis() < u128::from(end)
            }
        }
    }
}

impl fmt::Display for PauseUntil {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tokens(tokens) => write!(f, "until the history holds {tokens} tokens"),
            Self::UnixMillis(millis) => write!(f, "until {millis} ms after 1970"),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_none(n: &u32) -> bool {
    *n == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(n: &u64) -> bool {
    *n == 0
}
