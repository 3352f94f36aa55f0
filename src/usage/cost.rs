//! Money.

use std::{
    fmt,
    ops::{Add, AddAssign},
};

use serde::{Deserialize, Serialize};

/// An amount of US dollars, in billionths, so that sums are exact. Adding
/// saturates.
///
/// # Example
///
/// ```
/// use session_compaction::Cost;
///
/// // 12,000 tokens at 0.25 dollars a million.
/// let cost = Cost::per_million(12_000, Cost::from_nanos(250_000_000));
/// assert_eq!(cost.to_string(), "$0.003000");
/// assert_eq!((cost + cost).nanos(), 6_000_000);
/// ```
#[derive(
    Clone, Copy, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(transparent)]
pub struct Cost(u64);

impl Cost {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Creates an amount from billionths of a dollar.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Creates an amount from dollars, rounded to a billionth. What is below
    /// zero or no number is zero.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, which is what is wanted"
    )]
    pub fn from_dollars(dollars: f64) -> Self {
        Self((dollars * 1e9).round() as u64)
    }

    /// Returns what so many tokens cost at a price for a million of them.
    #[must_use]
    pub fn per_million(tokens: u64, price: Self) -> Self {
        let nanos = u128::from(tokens) * u128::from(price.0) / 1_000_000;
        Self(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the amount in billionths of a dollar.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Returns the amount in dollars, rounded as a float is.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for people and charts; sums are made exactly")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// In dollars, to a ten-thousandth of a cent.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}.{:06}", self.0 / 1_000_000_000, self.0 % 1_000_000_000 / 1_000)
    }
}
