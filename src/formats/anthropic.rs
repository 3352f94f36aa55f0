//! Anthropic Messages (`anthropic-version: 2023-06-01`).
//!
//! The results of tools come in user messages and stay there, as parts.
//! Thinking is a [`Reasoning`] part with its signature;
//! redacted thinking, server tools, compaction and MCP blocks pass through as
//! [`Part::Json`].

use std::borrow::Cow;

pub use super::reply::anthropic::parse_reply;

use serde_json::value::RawValue;

use super::{
    Conversation, accepts, arguments_object, bad_role, body, each, keep, kept, placeholder,
    with_source, write_body, write_kept,
};
use crate::{
    error::{Error, Result},
    message::{
        Fields, Media, MediaKind, MediaSource, Message, Origin, Part, Reasoning, Role, Text,
        ToolCall, ToolResult,
        json::{JsonWriter, Members, elements, text_of},
        read::kind,
    },
};

pub(super) const NAME: &str = "Anthropic";
const ORIGIN: Origin = Origin::Anthropic;
const CACHE_MARK: &str = "cache_control";

/// Reads a request body.
///
/// # Errors
///
/// [`Error::is_message`] where the text is not JSON (with line and column), or
/// a message has another shape than the API takes.
pub fn parse(text: &str) -> Result<Conversation> {
    let members = body(NAME, text)?;
    let system = match members.get("system") {
        Some(value) => vec![read_system(value).map_err(|problem| Error::message(NAME, problem))?],
        None => Vec::new(),
    };
    let known = if system.is_empty() { &["messages"][..] } else { &["messages", "system"] };
    Ok(Conversation {
        system,
        messages: each(NAME, &members, "messages", read_message)?,
        fields: members.others(known),
    })
}

/// Writes a request body: system, messages, and the other fields.
#[must_use]
pub fn write(conversation: &Conversation) -> String {
    write_body(conversation, ["system", "messages"], write_system, write_message)
}

/// Reads one message, or says what is wrong with it.
pub(crate) fn read_message(value: &RawValue) -> Result<Message, String> {
    let json = value.get();
    let members = Members::of(json)
        .ok_or_else(|| format!("a message is a JSON object, this is {}", kind(json)))?;
    let unknown = keep(&ORIGIN, &members.others(&["role", "content"]));
    let message = read_spoken(&members)?.with_fields(unknown);
    Ok(with_source(message, ORIGIN, json, write_message))
}

/// Reads role and content alone: an answer holds more, which a request may not.
pub(crate) fn read_spoken(members: &Members<'_>) -> Result<Message, String> {
    let role = match members.text("role").as_deref() {
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        Some("user") => Role::User,
        _ => return Err(bad_role(members.get("role"), "assistant, system or user")),
    };
    Ok(Message::new(role, members.get("content").map_or(Ok(Vec::new()), content)?))
}

/// Writes a message; several of one role in a row are allowed.
pub(crate) fn write_message(message: &Message, out: &mut JsonWriter) {
    // The source of a system prompt is a text or a list.
    if let Some(source) = message.source(&ORIGIN).filter(|source| source.starts_with('{')) {
        return out.raw(source);
    }
    out.begin(b'{');
    out.text_member("role", role(message));
    out.key("content");
    write_content(message.parts(), message.role() != Role::Assistant, out);
    write_kept(&ORIGIN, message.fields(), &["role", "content"], out);
    out.end(b'}');
}

/// Writes messages of one role as one, with a cache mark behind each block
/// (the index of its message, and its own in there) that is to have one.
pub(crate) fn write_joined(
    messages: &[&Message],
    is_marked: impl Fn(usize, usize) -> bool,
    out: &mut JsonWriter,
) {
    let [first, others @ ..] = messages else { return };
    let lone = others.is_empty();
    let marked = (0..first.parts().len()).any(|part| is_marked(0, part));
    if lone && !marked && first.source(&ORIGIN).is_some() {
        return write_message(first, out);
    }
    out.begin(b'{');
    out.text_member("role", role(first));
    out.key("content");
    out.begin(b'[');
    for (at, message) in messages.iter().enumerate() {
        write_blocks(message.parts(), |part| is_marked(at, part), out);
    }
    out.end(b']');
    if lone {
        write_kept(&ORIGIN, first.fields(), &["role", "content"], out);
    }
    out.end(b'}');
}

/// Returns the role that a message has in this format.
pub(crate) fn role(message: &Message) -> &'static str {
    match message.role() {
        Role::Assistant => "assistant",
        Role::Developer | Role::System => "system",
        Role::Tool | Role::User => "user",
    }
}

/// Writes a system prompt: a text, or blocks.
fn write_system(messages: &[Message], out: &mut JsonWriter) {
    if let [message] = messages {
        return write_prompt(message, |_| false, out);
    }
    out.begin(b'[');
    for message in messages {
        write_blocks(message.parts(), |_| false, out);
    }
    out.end(b']');
}

/// Writes a message as a system prompt, with a cache mark behind each block of
/// such an index.
pub(crate) fn write_prompt(
    message: &Message,
    is_marked: impl Fn(usize) -> bool,
    out: &mut JsonWriter,
) {
    if (0..message.parts().len()).any(&is_marked) {
        out.begin(b'[');
        write_blocks(message.parts(), is_marked, out);
        return out.end(b']');
    }
    match message.source(&ORIGIN).filter(|source| !source.starts_with('{')) {
        Some(source) => out.raw(source),
        None => write_content(message.parts(), true, out),
    }
}

fn write_blocks(parts: &[Part], is_marked: impl Fn(usize) -> bool, out: &mut JsonWriter) {
    for (at, part) in parts.iter().enumerate() {
        write_block(part, is_marked(at), out);
    }
}

/// Returns the part without the cache mark that it brought along; the mark is
/// of one request, and a request may have four in all.
pub(crate) fn unmarked(part: &Part) -> Cow<'_, Part> {
    let own =
        match part {
            Part::Media(media) => without_mark(&media.fields)
                .map(|fields| Media { fields, ..(**media).clone() }.into()),
            Part::Text(text) => {
                let fields = text.fields.as_deref().and_then(without_mark);
                fields.map(|fields| Part::text_with(&*text.text, fields))
            }
            Part::ToolCall(call) => without_mark(&call.fields)
                .map(|fields| ToolCall { fields, ..(**call).clone() }.into()),
            Part::ToolResult(result) => without_mark(&result.fields)
                .map(|fields| ToolResult { fields, ..(**result).clone() }.into()),
            Part::Json(_) | Part::Reasoning(_) => None,
        };
    own.map_or(Cow::Borrowed(part), Cow::Owned)
}

fn without_mark(fields: &Fields) -> Option<Fields> {
    let kept = kept(&ORIGIN, fields)?;
    kept.0.iter().find(|(name, _)| name == CACHE_MARK)?;
    let mut own = keep(&ORIGIN, &kept.others(&[CACHE_MARK]));
    for (name, value) in fields.iter().filter(|(name, _)| *name != ORIGIN.as_str()) {
        own.push(name, value.clone());
    }
    Some(own)
}

/// Reads a system prompt: a text, or blocks.
pub(crate) fn read_system(value: &RawValue) -> Result<Message, String> {
    let message = Message::new(Role::System, content(value)?);
    let write = |message: &Message, out: &mut JsonWriter| write_prompt(message, |_| false, out);
    Ok(with_source(message, ORIGIN, value.get(), write))
}

fn content(value: &RawValue) -> Result<Vec<Part>, String> {
    if let Some(text) = text_of(value) {
        return Ok(vec![Part::text(text)]);
    }
    elements(value).map(|list| list.into_iter().map(block).collect()).ok_or_else(|| {
        format!("the content is text or a list of blocks, this is {}", kind(value.get()))
    })
}

pub(crate) fn block(value: &RawValue) -> Part {
    known_block(value).unwrap_or_else(|| Part::json(value))
}

fn known_block(value: &RawValue) -> Option<Part> {
    let members = Members::of(value.get())?;
    let unknown = |known: &[&str]| keep(&ORIGIN, &members.others(known));
    Some(match members.text("type")?.as_str() {
        "text" => Part::text_with(members.text("text")?, unknown(&["type", "text"])),
        "thinking" => {
            let mut reasoning = Reasoning::new(members.text("thinking")?, ORIGIN);
            reasoning.signature = members.text("signature");
            reasoning.fields = unknown(&["type", "thinking", "signature"]);
            reasoning.into()
        }
        "tool_use" => {
            let input = members.get("input")?.get();
            let mut call = ToolCall::new(members.text("id")?, members.text("name")?, input);
            call.fields = unknown(&["type", "id", "name", "input"]);
            call.into()
        }
        "tool_result" => {
            let mut result = ToolResult::new(members.text("tool_use_id")?, "");
            result.content = members.get("content").map_or(Ok(Vec::new()), content).ok()?;
            result.is_error = members.is_true("is_error");
            result.fields = unknown(&["type", "tool_use_id", "content", "is_error"]);
            result.into()
        }
        name @ ("document" | "image") => {
            let fields = unknown(&["type", "source"]);
            Media { fields, ..media(name, &members.object("source")?)? }.into()
        }
        _ => return None,
    })
}

fn media(name: &str, source: &Members<'_>) -> Option<Media> {
    let kind = if name == "image" { MediaKind::Image } else { MediaKind::File };
    let media = match source.text("type")?.as_str() {
        "base64" if source.only(&["type", "media_type", "data"]) => {
            Media::new(kind, MediaSource::Base64(source.text("data")?))
                .with_mime(source.text("media_type")?)
        }
        "file" if source.only(&["type", "file_id"]) => {
            Media::new(kind, MediaSource::Reference(source.text("file_id")?))
        }
        "url" if source.only(&["type", "url"]) => {
            Media::new(kind, MediaSource::Url(source.text("url")?))
        }
        _ => return None,
    };
    Some(media)
}

/// Writes a plain text as text where that is the usual form, and blocks elsewhere.
fn write_content(parts: &[Part], plain: bool, out: &mut JsonWriter) {
    match parts {
        [Part::Text(Text { text, fields: None })] if plain => out.text(text),
        _ => {
            out.begin(b'[');
            write_blocks(parts, |_| false, out);
            out.end(b']');
        }
    }
}

fn write_block(part: &Part, mark: bool, out: &mut JsonWriter) {
    match part {
        Part::Text(text) => write_text(&text.text, text.fields.as_deref(), mark, out),
        Part::Reasoning(reasoning) if reasoning.origin == ORIGIN => {
            begin("thinking", out);
            out.text_member("thinking", &reasoning.text);
            if let Some(signature) = &reasoning.signature {
                out.text_member("signature", signature);
            }
            end(&reasoning.fields, &["type", "thinking", "signature"], mark, out);
        }
        Part::ToolCall(call) => {
            begin("tool_use", out);
            out.text_member("id", &call.id);
            out.text_member("name", &call.name);
            out.raw_member("input", &arguments_object(&call.arguments));
            end(&call.fields, &["type", "id", "name", "input"], mark, out);
        }
        Part::ToolResult(result) => {
            begin("tool_result", out);
            out.text_member("tool_use_id", &result.call_id);
            if !result.content.is_empty() {
                out.key("content");
                write_content(&result.content, true, out);
            }
            if result.is_error {
                out.raw_member("is_error", "true");
            }
            end(&result.fields, &["type", "tool_use_id", "content", "is_error"], mark, out);
        }
        Part::Media(media) => write_media(media, mark, out),
        Part::Json(raw) if accepts(&ORIGIN, raw) => out.raw(raw.as_str()),
        Part::Json(_) | Part::Reasoning(_) => {}
    }
}

fn write_text(text: &str, fields: Option<&Fields>, mark: bool, out: &mut JsonWriter) {
    begin("text", out);
    out.text_member("text", text);
    end(fields.unwrap_or(&Fields::EMPTY), &["type", "text"], mark, out);
}

fn write_media(media: &Media, mark: bool, out: &mut JsonWriter) {
    let (name, mime) = match media.kind {
        MediaKind::Audio => return write_text(&placeholder(media), None, mark, out),
        MediaKind::File => ("document", "application/pdf"),
        MediaKind::Image => ("image", "image/png"),
    };
    begin(name, out);
    out.key("source");
    match &media.source {
        MediaSource::Base64(data) => {
            begin("base64", out);
            out.text_member("media_type", media.mime.as_deref().unwrap_or(mime));
            out.text_member("data", data);
        }
        MediaSource::Reference(id) => {
            begin("file", out);
            out.text_member("file_id", id);
        }
        MediaSource::Url(url) => {
            begin("url", out);
            out.text_member("url", url);
        }
    }
    out.end(b'}');
    end(&media.fields, &["type", "source"], mark, out);
}

fn begin(kind: &str, out: &mut JsonWriter) {
    out.begin(b'{');
    out.text_member("type", kind);
}

fn end(fields: &Fields, taken: &[&str], mark: bool, out: &mut JsonWriter) {
    write_kept(&ORIGIN, fields, taken, out);
    if mark {
        out.raw_member(CACHE_MARK, r#"{"type":"ephemeral"}"#);
    }
    out.end(b'}');
}
