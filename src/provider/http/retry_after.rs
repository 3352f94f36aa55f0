//! How long a provider asks to wait.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// Longer than any provider means: a day.
const LONGEST: Duration = Duration::from_hours(24);

/// Reads `retry-after-ms`, or else `Retry-After` as seconds or as a date.
pub(crate) fn read(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str, unit: f64| {
        let seconds = text.parse::<f64>().ok().filter(|number| *number >= 0.0)? / unit;
        Some(Duration::try_from_secs_f64(seconds).map_or(LONGEST, |wait| wait.min(LONGEST)))
    };
    if let Some(wait) = text("retry-after-ms").and_then(|text| number(text, 1_000.0)) {
        return Some(wait);
    }
    let text = text(RETRY_AFTER.as_str())?;
    number(text, 1.0).or_else(|| {
        let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
        let wait = date.duration_since(now).max(SignedDuration::ZERO);
        Some(wait.unsigned_abs().min(LONGEST))
    })
}
