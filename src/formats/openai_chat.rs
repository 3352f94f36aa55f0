//! `OpenAI` Chat Completions, and the many endpoints that speak it.
//!
//! Messages have this form in the crate's own serde form too; see
//! [`Message`].

use std::borrow::Cow;

pub use super::reply::openai_chat::parse_reply;

use super::{Conversation, accepts, body, each, placeholder};
use crate::{
    error::Result,
    message::{
        Fields, Media, MediaSource, Message, Origin, Part, Reasoning, Role, ToolCall, ToolResult,
        json::JsonWriter,
        write::{is_plain, openai_media},
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
    let rest = |parts: Vec<Part>| {
        let rest = message.of_parts(parts);
        match own_fields(message.fields()) {
            Some(fields) => rest.with_fields(fields),
            None => rest,
        }
    };
    let (results, others): (Vec<_>, Vec<_>) =
        message.parts().iter().partition(|part| matches!(part, Part::ToolResult(_)));
    for result in &results {
        let parts = native_part(result).map(Cow::into_owned).into_iter().collect();
        let answer = if is_tool { rest(parts) } else { Message::new(Role::Tool, parts) };
        out.raw(&answer.wire_json());
    }
    if is_tool || (others.is_empty() && !results.is_empty()) {
        return;
    }
    let others = others.into_iter().filter_map(native_part).map(Cow::into_owned);
    out.raw(&rest(arranged(others.collect())).wire_json());
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
    let is_own = |part: &Part| match part {
        Part::Json(_) if from_here => true,
        part => matches!(native_part(part), Some(Cow::Borrowed(_))),
    };
    thoughts <= 1
        && parts.is_sorted_by_key(place)
        && parts.iter().all(is_own)
        && own_fields(message.fields()).is_none()
}

/// Returns where a part stands: a thought first, the calls last.
fn place(part: &Part) -> u8 {
    match part {
        Part::Reasoning(_) => 0,
        Part::ToolCall(_) => 2,
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
pub(crate) fn native_part(part: &Part) -> Option<Cow<'_, Part>> {
    let own = match part {
        Part::Json(raw) => return accepts(&ORIGIN, raw).then_some(Cow::Borrowed(part)),
        Part::Media(media) => native_media(media),
        Part::Reasoning(reasoning) if reasoning.origin != ORIGIN => return None,
        Part::Reasoning(reasoning) => {
            (!is_plain(reasoning)).then(|| Reasoning::new(&*reasoning.text, ORIGIN).into())
        }
        Part::Text(text) => {
            let fields = text.fields.as_deref().and_then(own_fields);
            fields.map(|fields| Part::text_with(&*text.text, fields))
        }
        Part::ToolCall(call) => {
            own_fields(&call.fields).map(|fields| ToolCall { fields, ..(**call).clone() }.into())
        }
        Part::ToolResult(result) => {
            let content = result.content.iter().filter_map(native_part).map(Cow::into_owned);
            let content = content.collect();
            Some(ToolResult { content, fields: Fields::EMPTY, ..(**result).clone() }.into())
        }
    };
    Some(own.map_or(Cow::Borrowed(part), Cow::Owned))
}

/// Returns media as a part of `OpenAI`'s, or the text that stands for it, where
/// it is not one already.
fn native_media(media: &Media) -> Option<Part> {
    let fields = own_fields(&media.fields);
    if fields.is_none() && openai_media(media).is_some() {
        return None;
    }
    let fields = fields.unwrap_or_else(|| media.fields.clone());
    let mut known = Media { alt: None, fields, ..media.clone() };
    if !matches!(known.source, MediaSource::Base64(_)) {
        known.mime = None;
    }
    Some(match openai_media(&known) {
        Some(_) => known.into(),
        None => Part::text(placeholder(media)),
    })
}

/// The names under which messages and parts keep what other formats added.
const FOREIGN: [&str; 3] = ["anthropic", "gemini", "openai_responses"];

/// Returns the fields that are not another format's, where that is not all.
fn own_fields(fields: &Fields) -> Option<Fields> {
    if !fields.iter().any(|(name, _)| FOREIGN.contains(&name)) {
        return None;
    }
    let mut own = Fields::EMPTY;
    for (name, value) in fields.iter().filter(|(name, _)| !FOREIGN.contains(name)) {
        own.push(name, value.clone());
    }
    Some(own)
}
