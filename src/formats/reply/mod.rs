//! What a model answered, ready for the history.

pub(super) mod anthropic;
pub(super) mod gemini;
pub(super) mod openai_chat;
pub(super) mod openai_responses;

use serde_json::{Value, value::RawValue};

use super::{body, refusal::Refusal};
use crate::{
    error::{Error, Result},
    message::{
        Message,
        json::{Members, elements},
    },
    usage::TokenUsage,
};

/// A model's answer: the message for the history, what it cost, and why it
/// ended.
///
/// Each format has a `parse_reply` that makes one of the JSON of an answer. The
/// message holds what a later request has to bring back, such as signatures of
/// reasoning and items that this crate does not read, and leaves out what a
/// request may not hold.
///
/// # Example
///
/// ```
/// use session_compaction::formats::{Stop, anthropic};
///
/// let json = r#"{"type":"message","role":"assistant","stop_reason":"tool_use",
///     "content":[{"type":"tool_use","id":"c1","name":"df","input":{}}],
///     "usage":{"input_tokens":10,"cache_creation_input_tokens":200,
///         "cache_read_input_tokens":3000,"output_tokens":7}}"#;
/// let reply = anthropic::parse_reply(json)?;
///
/// assert_eq!(reply.message.tool_calls().count(), 1);
/// assert_eq!(reply.stop, Stop::ToolCalls);
/// let usage = reply.usage.unwrap();
/// assert_eq!((usage.input, usage.cached, usage.output), (3_210, 3_000, 7));
/// # Ok::<(), session_compaction::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Reply {
    /// The assistant message, without an id. It has no parts where the model
    /// said nothing.
    pub message: Message,
    /// What it cost, where the provider said so.
    pub usage: Option<TokenUsage>,
    /// Why it ended.
    pub stop: Stop,
}

impl From<Message> for Reply {
    /// An answer that was read elsewhere, without its cost.
    fn from(message: Message) -> Self {
        Self { stop: Stop::ended(&message), message, usage: None }
    }
}

/// Why a model's answer ended.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Stop {
    /// A filter cut it off.
    ContentFilter,
    /// It is complete.
    EndTurn,
    /// It reached a bound of tokens. A tool call at its end may be cut off.
    Length,
    /// Another reason, by the provider's name for it.
    Other(String),
    /// The model refused.
    Refusal,
    /// It wants the results of tool calls.
    ToolCalls,
}

impl Stop {
    /// Makes the reason of an answer that ended by itself.
    fn ended(message: &Message) -> Self {
        if message.tool_calls().next().is_some() { Self::ToolCalls } else { Self::EndTurn }
    }

    /// Names go into logs, so that only their beginning is kept.
    fn other(name: &str) -> Self {
        Self::Other(name.chars().take(128).collect())
    }
}

/// Reads an answer's object, unless it is an error.
fn open<'a>(format: &'static str, text: &'a str) -> Result<Members<'a>> {
    let error = |members: &Members<'_>| {
        let says = |name| members.text(name).as_deref() == Some("error");
        members.get("error").is_some() || says("type") || says("object")
    };
    let listed = || {
        let list: &RawValue = serde_json::from_str(text).ok()?;
        Members::of(elements(list)?.first()?.get()).filter(error)
    };
    if listed().is_some() {
        return Err(refused(format, text));
    }
    let members = body(format, text)?;
    if error(&members) { Err(refused(format, text)) } else { Ok(members) }
}

/// Says by its code what the provider said.
fn refused(format: &'static str, text: &str) -> Error {
    let said = serde_json::from_str::<Value>(text).ok().and_then(|value| Refusal::find(&value));
    let said = said.unwrap_or_default();
    let code = match (said.codes().next(), said.status) {
        (Some(code), _) => code.to_owned(),
        (None, Some(status)) => format!("status {status}"),
        (None, None) => "without a code".to_owned(),
    };
    Error::refused(format, code)
}

fn missing(format: &'static str, field: &str) -> Error {
    Error::message(format, format!("the reply has no {field}"))
}

/// Returns the first element of a list.
fn first<'a>(members: &Members<'a>, name: &str) -> Option<&'a RawValue> {
    elements(members.get(name)?)?.first().copied()
}

/// Reads a count of tokens; one that no request has is nonsense.
fn count(members: &Members<'_>, name: &str) -> Option<u64> {
    const MOST: u64 = 1 << 40;
    members.get(name)?.get().parse().ok().filter(|count| *count <= MOST)
}

/// Reads a count that counts as none where it is missing.
fn count_or_zero(members: &Members<'_>, name: &str) -> Option<u64> {
    if members.get(name).is_none() { Some(0) } else { count(members, name) }
}
