//! Strings that a host wants back in full.

use std::sync::Arc;

use super::{
    draft::SENTENCES,
    language::{Language, Section},
    words::is_dense_char,
};
use crate::{
    message::{Message, Part},
    summarize::SummarizeError,
    tokens::Tokens,
};

/// Those that occur in the input, in the host's order.
pub(super) struct Protected<'a>(Vec<&'a str>);

impl<'a> Protected<'a> {
    pub(super) fn of(
        strings: &'a [String],
        messages: &[Arc<Message>],
        existing: Option<&str>,
    ) -> Self {
        let mut found: Vec<&str> = Vec::new();
        for string in strings.iter().map(String::as_str).filter(|string| !string.is_empty()) {
            let said = existing.is_some_and(|text| text.contains(string))
                || messages.iter().any(|message| says(message, string));
            if said && !found.contains(&string) {
                found.push(string);
            }
        }
        Self(found)
    }

    /// Returns the summary with what it leaves out at its end.
    pub(super) fn complete(&self, summary: String, language: Language) -> String {
        let missing: Vec<&str> =
            self.0.iter().copied().filter(|string| !stands_in(string, &summary)).collect();
        if missing.is_empty() {
            return summary;
        }
        let line = missing.join(SENTENCES);
        if summary.is_empty() {
            return line;
        }
        // The facts are the last section.
        if summary.lines().rev().find_map(Language::section_of) == Some(Section::Facts) {
            return format!("{summary}\n{line}");
        }
        format!("{summary}\n{}\n{line}", language.heading(Section::Facts))
    }

    pub(super) fn too_long(&self, size: Tokens, budget: Tokens) -> SummarizeError {
        let over = (size - budget).count().max(1);
        SummarizeError::from(format!(
            "{} protected strings exceed the summary's bound of {} tokens by {over}; protect \
             fewer or raise `summary_max_tokens`",
            self.0.len(),
            budget.count(),
        ))
    }
}

/// Says whether a message holds a string, in a call's arguments also as JSON
/// spells it. System messages are no input.
fn says(message: &Message, string: &str) -> bool {
    let in_part = |part: &Part| match part {
        Part::ToolCall(call) => {
            let spelled = serde_json::to_string(string).unwrap_or_default();
            let spelled = spelled.trim_matches('"');
            call.name.contains(string)
                || call.arguments.contains(string)
                || !spelled.is_empty() && call.arguments.contains(spelled)
        }
        part => part.texts().iter().any(|text| text.contains(string)),
    };
    !message.role().is_system() && message.parts().iter().any(in_part)
}

/// Says whether a string stands in a text by itself: `AB-12` is not in `AB-123`.
fn stands_in(string: &str, text: &str) -> bool {
    let joins = |one: Option<char>, other: Option<char>| {
        let joins = |c: char| c.is_alphanumeric() && !is_dense_char(c);
        one.is_some_and(joins) && other.is_some_and(joins)
    };
    text.match_indices(string).any(|(at, found)| {
        let (before, rest) = text.split_at(at);
        let behind = rest.get(found.len()..).unwrap_or_default();
        !joins(before.chars().next_back(), string.chars().next())
            && !joins(string.chars().next_back(), behind.chars().next())
    })
}
