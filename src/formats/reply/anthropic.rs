use super::{Reply, Stop, count, count_or_zero, missing, open};
use crate::{
    error::{Error, Result},
    formats::anthropic::{NAME, read_spoken},
    message::{Message, Part, Role, Text, json::Members},
    usage::TokenUsage,
};

/// Reads the body of an answer.
///
/// # Errors
///
/// [`Error::is_refused`] where it is an error, [`Error::is_message`] where it is
/// no answer.
pub fn parse_reply(text: &str) -> Result<Reply> {
    let members = open(NAME, text)?;
    if members.get("content").is_none() {
        return Err(missing(NAME, "content"));
    }
    let message = read_spoken(&members).map_err(|problem| Error::message(NAME, problem))?;
    if message.role() != Role::Assistant {
        return Err(Error::message(NAME, "the reply is not the assistant's"));
    }
    // The API gives a text block without text, and takes none.
    let parts = message.parts().iter().filter(|part| !is_blank(part)).cloned();
    let message = Message::new(Role::Assistant, parts);
    let stop = match members.text("stop_reason").as_deref() {
        None | Some("end_turn" | "stop_sequence") => Stop::ended(&message),
        Some("max_tokens" | "model_context_window_exceeded") => Stop::Length,
        Some("refusal") => Stop::Refusal,
        Some("tool_use") => Stop::ToolCalls,
        Some(other) => Stop::other(other),
    };
    let usage = members.object("usage").and_then(|usage| read_usage(&usage));
    Ok(Reply { message, usage, stop })
}

fn is_blank(part: &Part) -> bool {
    matches!(part, Part::Text(Text { text, .. }) if text.is_empty())
}

/// Its input leaves out what was cached: the three counts are one prompt.
fn read_usage(usage: &Members<'_>) -> Option<TokenUsage> {
    let cached = count_or_zero(usage, "cache_read_input_tokens")?;
    let input = count(usage, "input_tokens")?
        .saturating_add(count_or_zero(usage, "cache_creation_input_tokens")?)
        .saturating_add(cached);
    Some(TokenUsage::new(input, count(usage, "output_tokens")?).with_cached(cached))
}
