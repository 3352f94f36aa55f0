//! Reading answers whose shape is only promised.

use serde_json::Value;

use super::client::malformed;
use crate::provider::ProviderError;

/// More tokens than any request has. A count above it is nonsense, and would
/// teach the trigger nonsense.
const MOST_TOKENS: u64 = 1 << 40;

/// Says that a field is missing.
pub(crate) fn missing(field: &str) -> ProviderError {
    malformed(format!("it has no {field}; check the base URL and the model's name"))
}

/// Keeps the beginning of a name: names go into logs.
pub(crate) fn short(name: &str) -> String {
    name.chars().take(128).collect()
}

/// Reads a count of tokens, unless it is absurd.
pub(crate) fn count(value: &Value) -> Option<u64> {
    value.as_u64().filter(|count| *count <= MOST_TOKENS)
}

/// Joins what the parts of one type hold in a field; `None` where there is
/// nothing.
pub(crate) fn joined(parts: &[Value], kind: &str, field: &str) -> Option<String> {
    let of_kind = |part: &&Value| part.get("type").and_then(Value::as_str) == Some(kind);
    let text = |part: &Value| part.get(field)?.as_str().map(str::to_owned);
    Some(parts.iter().filter(of_kind).filter_map(text).collect::<String>())
        .filter(|text| !text.is_empty())
}
