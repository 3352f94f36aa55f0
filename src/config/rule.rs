//! What each field allows, and how a value is read by it.

use std::time::Duration;

use super::{duration, node::Node, threshold::Threshold};

/// The largest whole number: every JSON reader keeps it exact.
const MAX_WHOLE: u64 = (1 << 53) - 1;
const MIN_TIME: Duration = Duration::from_millis(1);
const MAX_TIME: Duration = Duration::from_hours(24);

/// All fields, in the order of the documentation.
pub(super) const RULES: [(&str, Rule); 15] = [
    ("enabled", Rule::Flag),
    ("message_threshold", Rule::Threshold { min: 2, max: MAX_WHOLE }),
    ("token_percent", Rule::Threshold { min: 1, max: 100 }),
    ("threshold_chars", Rule::ANY_THRESHOLD),
    ("keep_last_messages", Rule::Whole { min: 1 }),
    ("keep_chars", Rule::ANY_THRESHOLD),
    ("context_window", Rule::Whole { min: 2 }),
    ("output_reserve", Rule::Whole { min: 0 }),
    ("summary_max_tokens", Rule::Whole { min: 1 }),
    ("summary_temperature", Rule::Real { min: 0.0, max: 2.0 }),
    ("multi_part_batch_threshold", Rule::Whole { min: 1 }),
    ("timeout", Rule::Time),
    ("max_single_msg_token_ratio", Rule::Real { min: 0.01, max: 1.0 }),
    ("force_compression_min_messages", Rule::Whole { min: 1 }),
    ("chars_per_token", Rule::Real { min: 0.1, max: 100.0 }),
];

/// The kind of value that a field takes. Zero below `min` means "not set".
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    Flag,
    Real { min: f64, max: f64 },
    Threshold { min: u64, max: u64 },
    Time,
    Whole { min: u64 },
}

/// A value, `None` where it is not set, or what is wrong with it.
type Read<T> = Result<Option<T>, String>;

impl Rule {
    pub(super) const ANY_THRESHOLD: Self = Self::Threshold { min: 1, max: MAX_WHOLE };

    pub(super) fn find(field: &str) -> Option<(&'static str, Self)> {
        RULES.into_iter().find(|(name, _)| *name == field)
    }

    pub(super) fn allowed(self) -> String {
        match self {
            Self::Flag => "true or false".into(),
            Self::Real { min, max } => format!("a number from {min} to {max}"),
            Self::Threshold { min, max } => {
                format!("a whole number from {min} to {max}, 0 for the default, or \"off\"")
            }
            Self::Time => "a duration from 1ms to 24h such as \"120s\", or in JSON a whole number of nanoseconds".into(),
            Self::Whole { min: 0 } => format!("a whole number from 0 to {MAX_WHOLE}"),
            Self::Whole { min } => {
                format!("a whole number from {min} to {MAX_WHOLE}, or 0 for the default")
            }
        }
    }

    /// Says that a value is refused; the hint may be empty.
    pub(super) fn refuse(self, value: impl std::fmt::Display, hint: &str) -> String {
        format!("{value} is not allowed{hint}; allowed is {}", self.allowed())
    }

    pub(super) fn flag(self, node: &Node) -> Read<bool> {
        match node {
            Node::Null => Ok(None),
            Node::Flag(flag) => Ok(Some(*flag)),
            _ => Err(self.refuse(node, "")),
        }
    }

    pub(super) fn threshold(self, node: &Node) -> Read<Threshold> {
        match node {
            Node::Text(text) if text == "off" => Ok(Some(Threshold::Off)),
            _ => Ok(self.whole(node)?.map(Threshold::Above)),
        }
    }

    /// Reads a whole number, however it is spelled: 100, 100.0 and 1e2 are one.
    pub(super) fn whole(self, node: &Node) -> Read<u64> {
        let number = match node {
            Node::Null => return Ok(None),
            Node::Whole(number) => u64::try_from(*number).ok(),
            Node::Real(number) => whole_of(*number),
            _ => None,
        };
        match number {
            Some(0) if !self.admits_whole(0) => Ok(None),
            Some(number) if self.admits_whole(number) => Ok(Some(number)),
            _ => Err(self.refuse(node, self.share_hint(node))),
        }
    }

    pub(super) fn real(self, node: &Node) -> Read<f64> {
        let number = match node {
            Node::Null => return Ok(None),
            Node::Whole(number) => i32::try_from(*number).ok().map(f64::from),
            Node::Real(number) => Some(*number),
            _ => None,
        };
        match number {
            Some(0.0) if !self.admits_real(0.0) => Ok(None),
            Some(number) if self.admits_real(number) => Ok(Some(number)),
            _ => Err(self.refuse(node, "")),
        }
    }

    pub(super) fn time(self, node: &Node) -> Read<Duration> {
        let time = match node {
            Node::Null => return Ok(None),
            Node::Text(text) => duration::parse(text),
            Node::Whole(number) => u64::try_from(*number).ok().map(Duration::from_nanos),
            Node::Real(number) => whole_of(*number).map(Duration::from_nanos),
            _ => None,
        };
        match time {
            Some(Duration::ZERO) => Ok(None),
            Some(time) if self.admits_time(time) => Ok(Some(time)),
            Some(time) if time < MIN_TIME && !matches!(node, Node::Text(_)) => {
                Err(self.refuse(node, " since it counts nanoseconds, write the unit"))
            }
            _ => Err(self.refuse(node, "")),
        }
    }

    pub(super) fn admits_real(self, value: f64) -> bool {
        matches!(self, Self::Real { min, max } if (min..=max).contains(&value))
    }

    pub(super) fn admits_time(self, value: Duration) -> bool {
        self == Self::Time && (MIN_TIME..=MAX_TIME).contains(&value)
    }

    pub(super) fn admits_whole(self, value: u64) -> bool {
        match self {
            Self::Threshold { min, max } => (min..=max).contains(&value),
            Self::Whole { min } => (min..=MAX_WHOLE).contains(&value),
            Self::Flag | Self::Real { .. } | Self::Time => false,
        }
    }

    fn share_hint(self, node: &Node) -> &'static str {
        match (self, node) {
            (Self::Threshold { max: 100, .. }, Node::Real(share))
                if *share > 0.0 && *share < 1.0 =>
            {
                " since it counts percents, write 75 for 0.75"
            }
            _ => "",
        }
    }
}

/// Returns a number without decimals as an integer; above [`MAX_WHOLE`] it
/// would no longer be exact.
fn whole_of(number: f64) -> Option<u64> {
    #[expect(clippy::cast_precision_loss, reason = "2^53 - 1 is exact")]
    let exact = number.fract() == 0.0 && (0.0..=MAX_WHOLE as f64).contains(&number);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be whole and in range"
    )]
    exact.then_some(number as u64)
}
