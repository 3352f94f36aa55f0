//! How many tokens a message costs: counts, the trait of what counts them, two
//! counters that need no vocabulary, and one that has it.

mod chars;
mod estimate;
mod image;
mod media;
mod message;
mod model;
#[cfg(feature = "tiktoken")]
mod tiktoken;
mod weights;

use std::{
    fmt,
    iter::Sum,
    ops::{Add, AddAssign, Sub},
    sync::Arc,
};

#[cfg(feature = "tiktoken")]
pub use self::tiktoken::Tiktoken;
pub use self::{chars::CharsPerToken, estimate::ByteEstimate, media::MediaCosts};
use crate::message::{Media, Message};

/// A number of tokens, held in units of 1/1024 token.
///
/// Estimates are fractions; a session adds up thousands of them. They are added
/// as they are and rounded down once, by [`Tokens::count`]. All arithmetic
/// saturates.
///
/// # Example
///
/// ```
/// use session_compaction::Tokens;
///
/// let half = Tokens::from_units(512);
/// assert_eq!(half.count(), 0);
/// assert_eq!((half + half).count(), 1);
/// assert_eq!(half - Tokens::from_tokens(3), Tokens::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Tokens(u64);

impl Tokens {
    /// The most that can be held.
    pub const MAX: Self = Self(u64::MAX);

    /// How many units make a token.
    pub const UNITS: u64 = 1024;

    /// None.
    pub const ZERO: Self = Self(0);

    /// Creates a count from whole tokens.
    #[must_use]
    pub const fn from_tokens(tokens: u64) -> Self {
        Self(tokens.saturating_mul(Self::UNITS))
    }

    /// Creates a count from units of 1/1024 token.
    #[must_use]
    pub const fn from_units(units: u64) -> Self {
        Self(units)
    }

    /// Returns the count in units of 1/1024 token.
    #[must_use]
    pub const fn as_units(self) -> u64 {
        self.0
    }

    /// Returns the whole tokens, rounded down. Add first, round last.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.0 / Self::UNITS
    }
}

impl Add for Tokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Tokens {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::ZERO, Add::add)
    }
}

/// Counts the tokens of texts and messages.
///
/// [`ByteEstimate`] is the default. A host that has its model's vocabulary
/// implements [`TokenCounter::text`] and gets the rest.
///
/// # Contract
///
/// - The same input gives the same count: sessions count a message once and
///   keep the figure.
/// - An empty text costs nothing.
/// - A count is cheap, since every message that is added is counted.
///
/// # Example
///
/// ```
/// use session_compaction::{Message, TokenCounter, Tokens};
///
/// #[derive(Debug)]
/// struct Words;
///
/// impl TokenCounter for Words {
///     fn text(&self, text: &str) -> Tokens {
///         text.split_whitespace().map(|_| Tokens::from_tokens(1)).sum()
///     }
/// }
///
/// let overhead = Words.message_overhead();
/// let message = Words.message(&Message::user("three short words"));
/// assert_eq!(message - overhead, Tokens::from_tokens(3));
/// ```
pub trait TokenCounter: fmt::Debug + Send + Sync + 'static {
    /// Counts a text.
    fn text(&self, text: &str) -> Tokens;

    /// Returns what a message costs beside its content: the marks around it and
    /// its role. 4 tokens unless overridden.
    fn message_overhead(&self) -> Tokens {
        Tokens::from_tokens(4)
    }

    /// Returns what an image, audio or file costs, wherever its bytes are:
    /// [`MediaCosts::default`] unless overridden.
    fn media(&self, media: &Media) -> Tokens {
        MediaCosts::default().of(media)
    }

    /// Counts a message: its overhead, name, texts, reasoning, tool calls and
    /// results with their ids, media, and the text of opaque JSON, in which a
    /// long base64 string counts as an image or a file.
    fn message(&self, message: &Message) -> Tokens {
        message::count(self, message)
    }
}

const _: fn(&dyn TokenCounter) = |_| {};

impl<T: TokenCounter + ?Sized> TokenCounter for Arc<T> {
    fn text(&self, text: &str) -> Tokens {
        (**self).text(text)
    }

    fn message_overhead(&self) -> Tokens {
        (**self).message_overhead()
    }

    fn media(&self, media: &Media) -> Tokens {
        (**self).media(media)
    }

    fn message(&self, message: &Message) -> Tokens {
        (**self).message(message)
    }
}

/// Counts messages, in whole tokens, rounded down once.
///
/// # Example
///
/// ```
/// use session_compaction::{CharsPerToken, Message, estimate_tokens};
///
/// let messages = [Message::user("hello world"), Message::assistant("hi there!")];
/// assert_eq!(estimate_tokens(&messages, &CharsPerToken::default()), 8);
/// ```
#[must_use]
pub fn estimate_tokens<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
    counter: &dyn TokenCounter,
) -> u64 {
    messages.into_iter().map(|message| counter.message(message)).sum::<Tokens>().count()
}
