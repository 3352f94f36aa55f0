use super::{Reply, Stop, count, first, missing, open, refused};
use crate::{
    error::{Error, Result},
    formats::openai_chat::{NAME, read_message},
    message::{
        Message,
        json::{JsonWriter, Members, elements},
    },
    usage::TokenUsage,
};

/// Reads the body of an answer; of several choices the first.
///
/// # Errors
///
/// [`Error::is_refused`] where it is an error, [`Error::is_message`] where it is
/// no answer.
pub fn parse_reply(text: &str) -> Result<Reply> {
    let members = open(NAME, text)?;
    let choice = first(&members, "choices").and_then(|choice| Members::of(choice.get()));
    let choice = choice.ok_or_else(|| missing(NAME, "choices"))?;
    if choice.get("error").is_some() {
        return Err(refused(NAME, text));
    }
    let said = choice.object("message").ok_or_else(|| missing(NAME, "message"))?;
    let message = spoken(&said).map_err(|problem| Error::message(NAME, problem))?;
    let refuses = said.text("refusal").is_some_and(|refusal| !refusal.is_empty());
    let stop = match choice.text("finish_reason").as_deref() {
        None | Some("" | "stop" | "eos" | "end_turn") if refuses => Stop::Refusal,
        None | Some("" | "stop" | "eos" | "end_turn") => Stop::ended(&message),
        Some("length" | "max_tokens" | "model_length") => Stop::Length,
        Some("content_filter") => Stop::ContentFilter,
        Some("tool_calls" | "function_call") => Stop::ToolCalls,
        Some(other) => Stop::other(other),
    };
    let usage = members.object("usage").and_then(|usage| read_usage(&usage));
    Ok(Reply { message, usage, stop })
}

/// Reads the message as a request may hold it: several servers refuse what
/// only an answer has, or nulls and empty lists. Of sound it takes the id.
fn spoken(said: &Members<'_>) -> Result<Message, String> {
    let mut out = JsonWriter::default();
    out.begin(b'{');
    out.text_member("role", "assistant");
    for (name, value) in &said.0 {
        let nothing = matches!(value.get(), "null" | "\"\"")
            || elements(value).is_some_and(|list| list.is_empty());
        if nothing || matches!(name.as_str(), "role" | "annotations" | "audio" | "_session") {
            continue;
        }
        out.raw_member(name, value.get());
    }
    if let Some(id) = said.object("audio").and_then(|audio| audio.text("id")) {
        out.key("audio");
        out.begin(b'{');
        out.text_member("id", &id);
        out.end(b'}');
    }
    out.end(b'}');
    read_message(&out.finish())
}

fn read_usage(usage: &Members<'_>) -> Option<TokenUsage> {
    let input = count(usage, "prompt_tokens")?;
    let output = count(usage, "completion_tokens")?;
    let details = usage.object("prompt_tokens_details");
    let cached = details
        .and_then(|details| count(&details, "cached_tokens"))
        // DeepSeek and Moonshot have names of their own.
        .or_else(|| count(usage, "prompt_cache_hit_tokens"))
        .or_else(|| count(usage, "cached_tokens"));
    Some(TokenUsage::new(input, output).with_cached(cached.unwrap_or(0).min(input)))
}
