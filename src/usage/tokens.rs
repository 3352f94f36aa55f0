//! Tokens.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// Tokens that a model call used. Adding saturates: a provider that reports
/// nonsense breaks nothing.
///
/// # Example
///
/// ```
/// use session_compaction::TokenUsage;
///
/// let sum = TokenUsage::new(1_000, 80) + TokenUsage::new(u64::MAX, 20);
/// assert_eq!((sum.input, sum.output), (u64::MAX, 100));
/// ```
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TokenUsage {
    /// Tokens of the prompt, cached ones included.
    pub input: u64,
    /// Tokens of the answer, reasoning included.
    pub output: u64,
    /// Tokens of the prompt that the provider had cached.
    pub cached: u64,
}

impl TokenUsage {
    /// Creates a usage without cached tokens.
    #[must_use]
    pub const fn new(input: u64, output: u64) -> Self {
        Self { input, output, cached: 0 }
    }

    /// Sets how many of the input tokens the provider had cached.
    #[must_use]
    pub const fn with_cached(mut self, cached: u64) -> Self {
        self.cached = cached;
        self
    }
}

impl Add for TokenUsage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
        }
    }
}

impl AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
