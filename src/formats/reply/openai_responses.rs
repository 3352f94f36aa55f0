use std::collections::HashSet;

use serde_json::value::RawValue;

use super::{Reply, Stop, count, missing, open};
use crate::{
    error::{Error, Result},
    formats::openai_responses::{NAME, Reader},
    message::{
        Message, Role,
        json::{Members, elements},
    },
    usage::TokenUsage,
};

/// Reads the body of an answer. All of its items become one message.
///
/// # Errors
///
/// [`Error::is_refused`] where it is an error or failed, [`Error::is_message`]
/// where it is no answer, or one that is still being made.
pub fn parse_reply(text: &str) -> Result<Reply> {
    let members = open(NAME, text)?;
    let status = members.text("status");
    if let Some(status @ ("in_progress" | "queued")) = status.as_deref() {
        return Err(Error::message(NAME, format!("the reply is {status}; ask for it again later")));
    }
    let output = members.get("output").and_then(elements);
    let output = output.ok_or_else(|| missing(NAME, "output"))?;
    let message = spoken(&output)?;
    let stop = match status.as_deref() {
        None | Some("completed") if output.iter().any(|item| refuses(item)) => Stop::Refusal,
        None | Some("completed") => Stop::ended(&message),
        Some("failed") => return Err(Error::refused(NAME, "failed")),
        Some("incomplete") => incomplete(&members),
        Some(other) => Stop::other(other),
    };
    let usage = members.object("usage").and_then(|usage| read_usage(&usage));
    Ok(Reply { message, usage, stop })
}

fn spoken(output: &[&RawValue]) -> Result<Message> {
    let answered: HashSet<_> = output.iter().filter_map(|item| answers(item)).collect();
    let mut reader = Reader::default();
    for (at, item) in output.iter().enumerate() {
        let call = Members::of(item.get()).and_then(|item| item.text("call_id"));
        if call.is_some_and(|call| answered.contains(&call)) {
            // The API ran this call itself: nobody else is to answer it.
            reader.push_opaque(item);
            continue;
        }
        reader
            .push(item)
            .map_err(|problem| Error::message(NAME, format!("output[{at}]: {problem}")))?;
    }
    match <[Message; 1]>::try_from(reader.finish()) {
        Ok([message]) if message.role() == Role::Assistant => Ok(message),
        Err(none) if none.is_empty() => Ok(Message::new(Role::Assistant, [])),
        _ => Err(Error::message(NAME, "the reply holds messages that are not the assistant's")),
    }
}

/// Returns the call whose result an item is.
fn answers(item: &RawValue) -> Option<String> {
    let members = Members::of(item.get())?;
    members.text("type").filter(|kind| kind.ends_with("_output"))?;
    members.text("call_id")
}

fn refuses(item: &RawValue) -> bool {
    let is_refusal = |part: &&RawValue| {
        Members::of(part.get()).and_then(|part| part.text("type")).as_deref() == Some("refusal")
    };
    Members::of(item.get())
        .and_then(|item| elements(item.get("content")?))
        .is_some_and(|parts| parts.iter().any(is_refusal))
}

fn incomplete(members: &Members<'_>) -> Stop {
    let reason = members.object("incomplete_details").and_then(|it| it.text("reason"));
    match reason.as_deref() {
        Some("max_output_tokens") => Stop::Length,
        Some("content_filter") => Stop::ContentFilter,
        other => Stop::other(other.unwrap_or("incomplete")),
    }
}

fn read_usage(usage: &Members<'_>) -> Option<TokenUsage> {
    let input = count(usage, "input_tokens")?;
    let output = count(usage, "output_tokens")?;
    let details = usage.object("input_tokens_details");
    let cached = details.and_then(|details| count(&details, "cached_tokens")).unwrap_or(0);
    Some(TokenUsage::new(input, output).with_cached(cached.min(input)))
}
