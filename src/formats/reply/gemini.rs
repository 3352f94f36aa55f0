use super::{Reply, Stop, count, count_or_zero, first, missing, open};
use crate::{
    error::{Error, Result},
    formats::gemini::{NAME, read_spoken},
    message::{Message, Role, json::Members},
    usage::TokenUsage,
};

/// Reads the body of an answer; of several candidates the first.
///
/// # Errors
///
/// [`Error::is_refused`] where it is an error, or the prompt was blocked;
/// [`Error::is_message`] where it is no answer.
pub fn parse_reply(text: &str) -> Result<Reply> {
    let members = open(NAME, text)?;
    let Some(candidate) = first(&members, "candidates") else {
        let blocked = members.object("promptFeedback").and_then(|it| it.text("blockReason"));
        return Err(match blocked {
            Some(reason) => Error::refused(NAME, reason.chars().take(64).collect::<String>()),
            None => missing(NAME, "candidates"),
        });
    };
    let candidate = Members::of(candidate.get()).ok_or_else(|| missing(NAME, "candidate"))?;
    // There is no content where thinking took all tokens, or a filter all text.
    let message = match candidate.get("content") {
        Some(content) => read_spoken(content).map_err(|problem| Error::message(NAME, problem))?,
        None => Message::new(Role::Assistant, []),
    };
    let stop = match candidate.text("finishReason").as_deref() {
        None | Some("STOP") => Stop::ended(&message),
        Some("MAX_TOKENS") => Stop::Length,
        Some(
            "BLOCKLIST" | "IMAGE_SAFETY" | "LANGUAGE" | "PROHIBITED_CONTENT" | "RECITATION"
            | "SAFETY" | "SPII",
        ) => Stop::ContentFilter,
        Some(other) => Stop::other(other),
    };
    let usage = members.object("usageMetadata").and_then(|usage| read_usage(&usage));
    Ok(Reply { message, usage, stop })
}

/// Counts of nothing are left out. Thoughts stand beside the answer, and what
/// its own tools brought beside the prompt.
fn read_usage(usage: &Members<'_>) -> Option<TokenUsage> {
    let input = count(usage, "promptTokenCount")?
        .saturating_add(count_or_zero(usage, "toolUsePromptTokenCount")?);
    let output = count_or_zero(usage, "candidatesTokenCount")?
        .saturating_add(count_or_zero(usage, "thoughtsTokenCount")?);
    let cached = count_or_zero(usage, "cachedContentTokenCount")?.min(input);
    Some(TokenUsage::new(input, output).with_cached(cached))
}
