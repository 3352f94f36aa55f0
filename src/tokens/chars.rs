//! Characters divided by a constant.

use super::{TokenCounter, Tokens};

/// Counts characters and divides by a constant, 2.5 by default; messages have
/// no overhead.
///
/// For those who set `chars_per_token` and want the figures that follow from
/// it. [`ByteEstimate`](crate::ByteEstimate) is eight times as exact on average.
///
/// # Example
///
/// ```
/// use session_compaction::{CharsPerToken, Message, estimate_tokens};
///
/// let counter = CharsPerToken::new(4.0).unwrap();
/// assert_eq!(estimate_tokens(&[Message::user("eight ch")], &counter), 2);
/// assert!(CharsPerToken::new(0.0).is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CharsPerToken(f64);

impl CharsPerToken {
    /// Creates a counter from how many characters make a token; none where that
    /// is not a finite number above zero.
    #[must_use]
    pub fn new(chars: f64) -> Option<Self> {
        (chars.is_finite() && chars > 0.0).then_some(Self(chars))
    }
}

impl Default for CharsPerToken {
    fn default() -> Self {
        Self(2.5)
    }
}

impl TokenCounter for CharsPerToken {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "the quotient is not negative, and a float turns into the nearest integer there is"
    )]
    fn text(&self, text: &str) -> Tokens {
        // Rounded up: with units cut off here, 11 and 9 characters would give 7
        // tokens in place of 8.
        let units = text.chars().count() as f64 * Tokens::UNITS as f64 / self.0;
        Tokens::from_units(units.ceil() as u64)
    }

    fn message_overhead(&self) -> Tokens {
        Tokens::ZERO
    }
}
