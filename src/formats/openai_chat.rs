//! `OpenAI` Chat Completions, and the many endpoints that speak it.
//!
//! Messages have this form in the crate's own serde form too; see
//! [`Message`].

pub use super::reply::openai_chat::parse_reply;

use super::{Conversation, accepts, body, each, placeholder};
use crate::{
    error::Result,
    message::{
        Fields, Media, MediaSource, Message, Origin, Part, Role,
        json::JsonWriter,
        write::{belongs_to_calls, is_plain, openai_media},
    },
};

pub(super) const NAME: &str = "OpenAI chat";
const ORIGIN: Origin = Origin::OpenAiChat;

/// Reads a request body.
///
/// # Errors
///
/// [`Error::is_message`](crate::Error::is_message) where the text is not JSON
/// (with line and column), or a message has another shape than the API takes.
pub fn parse(text: &str) -> Result<Conversation> {
    let members = body(NAME, text)?;
    Ok(Conversation {
        system: Vec::new(),
        messages: each(NAME, &members, "messages", |value| read_message(value.get()))?,
        fields: members.others(&["messages"]),
    })
}

/// Writes a request body: messages, then the other fields.
#[must_use]
pub fn write(conversation: &Conversation) -> String {
    let mut out = JsonWriter::default();
    out.begin(b'{');
    out.key("messages");
    out.begin(b'[');
    for message in conversation.system.iter().chain(&conversation.messages) {
        write_message(message, &mut out);
    }
    out.end(b']');
    out.fields(&conversation.fields, &["messages"]);
    out.end(b'}');
    out.finish()
}

/// Reads one message, or says what is wrong with it.
pub(crate) fn read_message(json: &str) -> Result<Message, String> {
    let message = Message::from_json(json)?;
    let opaque = message.parts().iter().any(|part| matches!(part, Part::Json(_)));
    // Whose an opaque part is can only be told by where it was found.
    let keep = opaque && message.source(&ORIGIN).is_none() && message.wire_json() == json;
    Ok(if keep { message.with_source(ORIGIN, json) } else { message })
}

/// Writes a message into a list that is open, without what only other
/// providers know. Tool results within a user message become messages of
/// their own before it.
pub(crate) fn write_message(message: &Message, out: &mut JsonWriter) {
    if is_native(message) {
        return out.raw(&message.wire_json());
    }
    let is_tool = message.role() == Role::Tool;
    let (results, others): (Vec<_>, Vec<_>) =
        message.parts().iter().partition(|part| matches!(part, Part::ToolResult(_)));
    for result in &results {
        let answer = Message::new(Role::Tool, [native_part(result)].into_iter().flatten());
        let name = message.name().filter(|_| is_tool);
        let answer = if let Some(name) = name { answer.with_name(name) } else { answer };
        let fields = if is_tool { foreign_out(message.fields()) } else { Fields::EMPTY };
        out.raw(&answer.with_fields(fields).wire_json());
    }
    if is_tool || (others.is_empty() && !results.is_empty()) {
        return;
    }
    let parts = arranged(others.into_iter().filter_map(native_part).collect());
    let mut rest = Message::new(message.role(), parts).with_fields(foreign_out(message.fields()));
    if let Some(name) = message.name() {
        rest = rest.with_name(name);
    }
    out.raw(&rest.wire_json());
}

/// Returns true where the message's own form holds nothing but what `OpenAI`
/// knows.
fn is_native(message: &Message) -> bool {
    let from_here = message.source(&ORIGIN).is_some();
    let parts = match (message.role(), message.parts()) {
        (Role::Tool, [Part::ToolResult(result)]) if result.fields.is_empty() => &result.content,
        (Role::Tool, _) => return false,
        (_, parts) => parts,
    };
    let thoughts = parts.iter().filter(|part| matches!(part, Part::Reasoning(_))).count();
    thoughts <= 1
        && parts.is_sorted_by_key(place)
        && parts.iter().all(|part| is_native_part(part, from_here))
        && !has_foreign(message.fields())
}

fn is_native_part(part: &Part, from_here: bool) -> bool {
    match part {
        Part::Text(text) => text.fields.as_deref().is_none_or(|fields| !has_foreign(fields)),
        Part::ToolCall(call) => !has_foreign(&call.fields),
        Part::Json(raw) => from_here || accepts(&ORIGIN, raw),
        Part::Media(media) => !has_foreign(&media.fields) && openai_media(media).is_some(),
        Part::Reasoning(reasoning) => is_plain(reasoning),
        Part::ToolResult(_) => false,
    }
}

/// Returns where a part stands: a thought first, the calls last.
fn place(part: &Part) -> u8 {
    match part {
        Part::Reasoning(_) => 0,
        part if belongs_to_calls(part) => 2,
        _ => 1,
    }
}

/// Puts the parts where the format has a place for them; it has one for a
/// single thought.
fn arranged(mut parts: Vec<Part>) -> Vec<Part> {
    parts.sort_by_key(place);
    let mut thoughts = 0;
    parts.retain(|part| {
        thoughts += usize::from(matches!(part, Part::Reasoning(_)));
        !matches!(part, Part::Reasoning(_)) || thoughts == 1
    });
    parts
}

/// Returns the part as `OpenAI` knows it, if it does.
fn native_part(part: &Part) -> Option<Part> {
    let mut part = part.clone();
    match &mut part {
        Part::Text(text) => {
            text.fields = text.fields.take().map(|fields| Box::new(foreign_out(&fields)));
            text.fields.take_if(|fields| fields.is_empty());
        }
        Part::ToolCall(call) => call.fields = foreign_out(&call.fields),
        Part::ToolResult(result) => {
            result.fields = Fields::EMPTY;
            result.content = result.content.iter().filter_map(native_part).collect();
        }
        Part::Reasoning(reasoning) if reasoning.origin == ORIGIN => {
            reasoning.fields = Fields::EMPTY;
            reasoning.signature = None;
        }
        Part::Json(raw) if accepts(&ORIGIN, raw) => {}
        Part::Media(media) => return Some(native_media(media)),
        Part::Json(_) | Part::Reasoning(_) => return None,
    }
    Some(part)
}

fn native_media(media: &Media) -> Part {
    let mut known = Media { alt: None, fields: foreign_out(&media.fields), ..media.clone() };
    if !matches!(known.source, MediaSource::Base64(_)) {
        known.mime = None;
    }
    match openai_media(&known) {
        Some(_) => known.into(),
        None => Part::text(placeholder(media)),
    }
}

const FOREIGN: [&str; 3] = ["anthropic", "gemini", "openai_responses"];

fn has_foreign(fields: &Fields) -> bool {
    fields.iter().any(|(name, _)| FOREIGN.contains(&name))
}

fn foreign_out(fields: &Fields) -> Fields {
    let mut own = Fields::EMPTY;
    for (name, value) in fields.iter().filter(|(name, _)| !FOREIGN.contains(name)) {
        own.push(name, value.clone());
    }
    own
}
