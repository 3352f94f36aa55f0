//! Durations as people write them: `120s`, `2m`, `1m30s`, `1500ms`.

use std::time::Duration;

use serde::Serializer;

const NANOS_PER_SEC: u64 = 1_000_000_000;
const UNITS: [(&str, u64); 4] = [
    ("ms", 1_000_000),
    ("s", NANOS_PER_SEC),
    ("m", 60 * NANOS_PER_SEC),
    ("h", 3600 * NANOS_PER_SEC),
];

/// Reads one or more numbers, each with its unit. A bare 0 is read as well.
pub(super) fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0_u64;
    while !rest.is_empty() {
        let (number, after) = split(rest, |c| c.is_ascii_digit() || c == '.')?;
        let (unit, after) = split(after, |c| c.is_ascii_alphabetic())?;
        let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(scale(number, *nanos)?)?;
        rest = after;
    }
    Some(Duration::from_nanos(total))
}

/// Writes seconds, with as many decimals as it takes; [`parse`] reads it back
/// unchanged.
pub(super) fn format(duration: Duration) -> String {
    let nanos = format!("{:09}", duration.subsec_nanos());
    match nanos.trim_end_matches('0') {
        "" => format!("{}s", duration.as_secs()),
        decimals => format!("{}.{decimals}s", duration.as_secs()),
    }
}

pub(super) fn serialize<S: Serializer>(duration: &Duration, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(&format(*duration))
}

/// An optional duration as the text that [`format`] writes.
pub(super) mod option {
    use std::time::Duration;

    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    #[expect(clippy::ref_option, reason = "serde calls it with a reference")]
    pub(in super::super) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
        let unreadable = || D::Error::custom(format!("{text:?} is no duration such as \"120s\""));
        super::parse(&text).ok_or_else(unreadable).map(Some)
    }
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> Option<(&str, &str)> {
    text.split_at_checked(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

/// Multiplies a decimal number with a unit, exactly; digits below a nanosecond
/// are dropped.
fn scale(number: &str, unit: u64) -> Option<u64> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let mut total = whole.parse::<u64>().ok()?.checked_mul(unit)?;
    let mut part = unit;
    if decimals.is_empty() {
        return None;
    }
    for digit in decimals.chars() {
        part /= 10;
        total = total.checked_add(part.checked_mul(digit.to_digit(10)?.into())?)?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, millis) in [
            ("120s", 120_000),
            ("2m", 120_000),
            ("1500ms", 1_500),
            ("1m30s", 90_000),
            ("1.5s", 1_500),
            ("0.25h", 900_000),
            (" 2s ", 2_000),
            ("0", 0),
        ] {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn refuses_the_rest() {
        for text in [
            "",
            "s",
            "120",
            "-1s",
            "1.s",
            ".5s",
            "1..5s",
            "2 m",
            "1d",
            "1e3s",
            "9999999999999h",
            "1s2",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn writes_what_it_reads_back() {
        for nanos in [0, 1, 1_000_000, 999_999_999, 1_500_000_000, 86_400_000_000_000] {
            let duration = Duration::from_nanos(nanos);
            assert_eq!(parse(&format(duration)), Some(duration));
        }
        assert_eq!(format(Duration::from_millis(1_500)), "1.5s");
    }
}
