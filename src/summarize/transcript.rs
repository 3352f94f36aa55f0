//! A conversation as plain text: what was said in role-labelled lines, tool
//! traffic included.

use std::{collections::HashMap, fmt::Write as _, sync::Arc};

use super::{SummaryPart, excerpt};
use crate::{
    context::fence,
    message::{Media, MediaKind, Message, Part, Role},
};

/// At most so many characters of a tool call's arguments are shown.
const ARGUMENTS: usize = 1_000;

/// .. and of a tool's result, or another part that is no speech.
const RESULT: usize = 4_000;

/// Writes the messages as lines. System messages are instructions to the
/// session's model and stay out.
pub(super) fn lines(messages: &[Arc<Message>], part: SummaryPart) -> String {
    let mut text = String::new();
    let mut tools: HashMap<&str, &str> = HashMap::new();
    for (index, message) in messages.iter().enumerate() {
        let speaker = match message.role() {
            Role::System | Role::Developer => continue,
            _ if part == SummaryPart::Merge => format!("part {}", index + 1),
            Role::User => "user".into(),
            Role::Assistant => "assistant".into(),
            Role::Tool => "tool".into(),
        };
        for part in message.parts() {
            if let Part::ToolCall(call) = part {
                tools.insert(&call.id, &call.name);
            }
            if let Some((label, words)) = said(part, &speaker, &tools)
                && !words.trim().is_empty()
            {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{label}: {}", words.trim_end());
            }
        }
    }
    text
}

/// Puts the record of a conversation between two tags that nothing in it can
/// forge.
pub(super) fn fenced(existing: Option<&str>, background: Option<&str>, lines: &str) -> String {
    let mut body = String::new();
    for (label, text) in [("instructions of the session", background), ("summary so far", existing)]
    {
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            let _ = writeln!(body, "[{label}]\n{}\n", text.trim_end());
        }
    }
    let _ = writeln!(body, "[conversation]\n{}", lines.trim_end());
    let tag = fence::tag("record", &body);
    format!("<{tag}>\n{body}</{tag}>")
}

fn said(part: &Part, speaker: &str, tools: &HashMap<&str, &str>) -> Option<(String, String)> {
    Some(match part {
        Part::Text(text) => (speaker.to_owned(), text.text.clone()),
        Part::ToolCall(call) => {
            let arguments = excerpt::ends(&call.arguments, ARGUMENTS);
            (format!("{speaker} calls {}", call.name), arguments)
        }
        Part::ToolResult(result) => {
            let name = tools.get(&*result.call_id).copied().unwrap_or("a tool");
            let failed = if result.is_error { " (failed)" } else { "" };
            let content: Vec<String> = result.content.iter().filter_map(shown).collect();
            (format!("result of {name}{failed}"), excerpt::ends(&content.join("\n"), RESULT))
        }
        Part::Media(_) | Part::Json(_) => (speaker.to_owned(), shown(part)?),
        // What a model thought is neither said nor done.
        Part::Reasoning(_) => return None,
    })
}

fn shown(part: &Part) -> Option<String> {
    match part {
        Part::Text(text) => Some(text.text.clone()),
        Part::Media(media) => Some(shown_media(media)),
        Part::Json(raw) => Some(excerpt::ends(raw.as_str(), RESULT)),
        Part::Reasoning(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
    }
}

fn shown_media(media: &Media) -> String {
    let kind = match media.kind {
        MediaKind::Audio => "audio",
        MediaKind::File => "file",
        MediaKind::Image => "image",
    };
    match &media.alt {
        Some(alt) => format!("[{kind}: {alt}]"),
        None => format!("[{kind}]"),
    }
}
