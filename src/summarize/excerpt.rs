//! Excerpts of messages that are too long to summarize whole.

use std::sync::Arc;

use crate::{
    message::{Message, Part, ToolCall, ToolResult},
    tokens::{TokenCounter, Tokens},
};

/// Returns a shortened message where this one is above `limit`: the beginning
/// and the end of each of its texts, and how much lies between.
pub(crate) fn excerpt(
    message: &Message,
    limit: Tokens,
    counter: &dyn TokenCounter,
) -> Option<Arc<Message>> {
    let mut tokens = counter.message(message);
    if tokens <= limit {
        return None;
    }
    let mut short = message.clone();
    let mut permille: u64 = 1_000;
    // Texts do not shrink evenly, so a few rounds may be needed; the last one
    // keeps nothing but the marks.
    for _ in 0..12 {
        let share = limit.as_units().saturating_mul(900) / tokens.as_units().max(1);
        permille = permille.saturating_mul(share) / 1_000;
        let parts = message.parts().iter().map(|part| shorten(part, permille));
        short = Message::new(message.role(), parts);
        tokens = counter.message(&short);
        if tokens <= limit {
            break;
        }
    }
    Some(Arc::new(short))
}

/// Shortens a text in the same way.
pub(super) fn excerpt_text(text: Arc<str>, limit: Tokens, counter: &dyn TokenCounter) -> Arc<str> {
    if counter.text(&text) <= limit {
        return text;
    }
    excerpt(&Message::user(&*text), limit, counter).map_or(text, |short| short.text().into())
}

fn shorten(part: &Part, permille: u64) -> Part {
    match part {
        Part::Text(text) => Part::text(share(&text.text, permille)),
        Part::Reasoning(reasoning) => Part::text(share(&reasoning.text, permille)),
        Part::Json(raw) => Part::text(share(raw.as_str(), permille)),
        Part::ToolCall(call) => {
            ToolCall::new(&*call.id, &*call.name, share(&call.arguments, permille)).into()
        }
        Part::ToolResult(result) => {
            let text: Vec<&str> = part.texts();
            let mut short = ToolResult::new(&*result.call_id, share(&text.join("\n"), permille));
            short.is_error = result.is_error;
            short.into()
        }
        Part::Media(_) => part.clone(),
    }
}

fn share(text: &str, permille: u64) -> String {
    let len = text.len() as u64;
    let keep = usize::try_from(len.saturating_mul(permille) / 1_000).unwrap_or(usize::MAX);
    ends(text, keep)
}

/// The first two thirds and the last third of the bytes that may stay.
pub(super) fn ends(text: &str, keep: usize) -> String {
    // A short text is worth more than the mark that would replace it.
    if keep >= text.len() || text.len() < 64 {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(keep / 3 * 2);
    let tail = text.ceil_char_boundary(text.len().saturating_sub(keep / 3));
    let (first, rest) = text.split_at_checked(head).unwrap_or((text, ""));
    let last = text.get(tail..).unwrap_or("");
    let left_out = rest.chars().count().saturating_sub(last.chars().count());
    format!("{first}\n[.. {left_out} characters left out ..]\n{last}")
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn every_cut_is_between_characters() {
        let text = "a中é🎉👩‍👩‍👧‍👦".repeat(20);
        for permille in 0..=1_000 {
            let short = share(&text, permille);
            assert!(short == text || short.contains("characters left out"));
        }
    }
}
