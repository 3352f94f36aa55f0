//! A limit that can be switched off.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::{node::Node, rule::Rule};

/// A limit above which something becomes due, or none.
///
/// In JSON it is a whole number or the text `"off"`; in code a `u64` turns
/// into one.
///
/// # Example
///
/// ```
/// use session_compaction::Threshold;
///
/// let messages = Threshold::from(20);
/// assert!(!messages.is_exceeded_by(20));
/// assert!(messages.is_exceeded_by(21));
/// assert!(!Threshold::Off.is_exceeded_by(u64::MAX));
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Threshold {
    /// Due strictly above this value. `Above(0)` stands for "not set" until
    /// [`SummarizationConfig::with_defaults`](crate::SummarizationConfig::with_defaults)
    /// puts the default in its place.
    Above(u64),
    /// Never due.
    Off,
}

impl Threshold {
    /// Returns true when the measured value lies strictly above the limit.
    #[must_use]
    pub const fn is_exceeded_by(self, measured: u64) -> bool {
        match self {
            Self::Above(limit) => measured > limit,
            Self::Off => false,
        }
    }

    /// Returns the limit, or `None` where it is off.
    #[must_use]
    pub const fn limit(self) -> Option<u64> {
        match self {
            Self::Above(limit) => Some(limit),
            Self::Off => None,
        }
    }

    pub(super) fn or_default(self, default: Self) -> Self {
        if self == Self::Above(0) { default } else { self }
    }
}

impl From<u64> for Threshold {
    fn from(limit: u64) -> Self {
        Self::Above(limit)
    }
}

impl Serialize for Threshold {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Above(limit) => serializer.serialize_u64(*limit),
            Self::Off => serializer.serialize_str("off"),
        }
    }
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let node = Node::deserialize(deserializer)?;
        let read = Rule::ANY_THRESHOLD.threshold(&node).map_err(D::Error::custom)?;
        Ok(read.unwrap_or(Self::Above(0)))
    }
}
