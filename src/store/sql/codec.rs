//! Between Rust's values and columns.

use serde::{Serialize, de::DeserializeOwned};

use super::error::Failure;
use crate::message::Message;

/// The day that stands for all of them in `usage_sums`.
pub(crate) const ALL_DAYS: i64 = -1;

/// Returns a number as a column holds it.
pub(crate) fn signed(column: &'static str, value: u64) -> Result<i64, Failure> {
    i64::try_from(value).map_err(|_| Failure::Range { column, value })
}

/// Returns a number that a column held.
pub(crate) fn unsigned(column: &'static str, value: i64) -> Result<u64, Failure> {
    u64::try_from(value)
        .map_err(|_| Failure::Column { column, problem: format!("{value} is below zero") })
}

/// Returns the end of a range, or a time: one that no column reaches is as good
/// as the last.
pub(crate) fn bound(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Returns a figure to be added up. It stops short of where sums of a session
/// overflow, which is far beyond what memory holds.
pub(crate) fn full(value: u64) -> i64 {
    const MOST: i64 = 1 << 40;
    bound(value).min(MOST)
}

/// Returns a value as the JSON that a column holds.
pub(crate) fn document<T: Serialize>(column: &'static str, value: &T) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(value)
        .map_err(|error| Failure::Column { column, problem: error.to_string() })
}

/// Reads the JSON of a column.
pub(crate) fn parse<T: DeserializeOwned>(column: &'static str, json: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(json)
        .map_err(|error| Failure::Column { column, problem: error.to_string() })
}

/// Reads a message from its payload.
pub(crate) fn payload(json: &[u8]) -> Result<Message, Failure> {
    let text = std::str::from_utf8(json).map_err(|error| error.to_string());
    text.and_then(Message::from_json)
        .map_err(|problem| Failure::Column { column: "payload", problem })
}
