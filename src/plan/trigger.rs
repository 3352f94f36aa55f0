//! Is a compaction due, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How large a window is. Kept up to date as messages come in, so that the
/// check costs the same however long the conversation is.
///
/// # Example
///
/// ```
/// use session_compaction::Measured;
///
/// let mut measured = Measured::default();
/// measured.messages = 21;
/// assert_eq!(measured.to_string(), "21 messages, 0 characters, 0 tokens");
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Measured {
    /// Messages in the window.
    pub messages: u64,
    /// Characters in the window.
    pub chars: u64,
    /// Estimated tokens that a model would be sent.
    pub tokens: u64,
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { messages, chars, tokens } = self;
        write!(f, "{messages} messages, {chars} characters, {tokens} tokens")
    }
}

/// Above which sizes a compaction is due; none: at any size it is not.
///
/// # Example
///
/// ```
/// use session_compaction::{Limits, Measured, Trigger};
///
/// let limits = Limits { messages: Some(20), ..Limits::default() };
/// let mut measured = Measured::default();
/// measured.messages = 21;
/// assert_eq!(limits.exceeded_by(&measured), Some(Trigger::Messages { measured: 21, limit: 20 }));
/// ```
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Limits {
    /// Messages in the window.
    pub messages: Option<u64>,
    /// Characters in the window.
    pub chars: Option<u64>,
    /// Estimated tokens of what is sent.
    pub tokens: Option<u64>,
}

impl Limits {
    /// Returns the first limit that the measured size is strictly above.
    #[must_use]
    pub fn exceeded_by(&self, measured: &Measured) -> Option<Trigger> {
        let above = |measured, limit: Option<u64>| limit.filter(|&limit| measured > limit);
        let Measured { messages, chars, tokens } = *measured;
        above(messages, self.messages)
            .map(|limit| Trigger::Messages { measured: messages, limit })
            .or_else(|| {
                above(tokens, self.tokens).map(|limit| Trigger::Tokens { measured: tokens, limit })
            })
            .or_else(|| {
                above(chars, self.chars).map(|limit| Trigger::Chars { measured: chars, limit })
            })
    }
}

/// Why a compaction is due.
///
/// # Example
///
/// ```
/// use session_compaction::Trigger;
///
/// let trigger = Trigger::Messages { measured: 21, limit: 20 };
/// assert_eq!(trigger.to_string(), "21 messages are above the threshold of 20");
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Trigger {
    /// Too many characters.
    Chars {
        /// Characters in the window.
        measured: u64,
        /// The configured threshold.
        limit: u64,
    },
    /// Too many messages.
    Messages {
        /// Messages in the window.
        measured: u64,
        /// The configured threshold.
        limit: u64,
    },
    /// Too large a share of the model's context window.
    Tokens {
        /// Estimated tokens.
        measured: u64,
        /// The configured share of the context window, in tokens.
        limit: u64,
    },
}

impl Trigger {
    /// Returns the name of the threshold: `chars`, `messages` or `tokens`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chars { .. } => "chars",
            Self::Messages { .. } => "messages",
            Self::Tokens { .. } => "tokens",
        }
    }

    /// Returns what was measured, and the threshold that it is above.
    #[must_use]
    pub const fn values(self) -> (u64, u64) {
        match self {
            Self::Chars { measured, limit }
            | Self::Messages { measured, limit }
            | Self::Tokens { measured, limit } => (measured, limit),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (measured, unit, limit) = match self {
            Self::Chars { measured, limit } => (measured, "characters", limit),
            Self::Messages { measured, limit } => (measured, "messages", limit),
            Self::Tokens { measured, limit } => (measured, "tokens", limit),
        };
        write!(f, "{measured} {unit} are above the threshold of {limit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strictly_above() {
        let limits = Limits { messages: Some(20), chars: None, tokens: Some(100) };
        let at = Measured { messages: 20, chars: u64::MAX, tokens: 100 };
        assert_eq!(limits.exceeded_by(&at), None);
        assert_eq!(
            limits.exceeded_by(&Measured { tokens: 101, ..at }),
            Some(Trigger::Tokens { measured: 101, limit: 100 })
        );
        assert_eq!(
            limits.exceeded_by(&Measured { messages: 21, ..at }),
            Some(Trigger::Messages { measured: 21, limit: 20 })
        );
    }

    #[test]
    fn characters_alone() {
        let limits = Limits { chars: Some(10), ..Limits::default() };
        let measured = Measured { messages: 1_000, chars: 11, tokens: 1_000 };
        assert_eq!(limits.exceeded_by(&measured), Some(Trigger::Chars { measured: 11, limit: 10 }));
        assert_eq!(Limits::default().exceeded_by(&measured), None);
    }
}
