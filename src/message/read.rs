//! From JSON to messages and parts.

use std::time::SystemTime;

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::value::RawValue;

use super::{
    Media, MediaKind, MediaSource, Message, Origin, Part, RawJson, Reasoning, Role, ToolCall,
    ToolResult,
    json::{Members, elements, text_of},
    write,
};

/// The deepest tool result within a tool result; what lies deeper stays JSON.
const MAX_DEPTH: u8 = 8;

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_json(raw.get()).map_err(D::Error::custom)
    }
}

impl Message {
    /// Reads the text of one JSON object, or says what is wrong with it.
    pub(crate) fn from_json(text: &str) -> Result<Self, String> {
        let members = Members::of(text)
            .ok_or_else(|| format!("a message is a JSON object, this is {}", kind(text)))?;
        let name = members.text_or_number("name");
        let (role, call_id) = role_and_call_id(&members, name.as_deref())?;
        let mut parts = Vec::new();
        if let Some(thought) = members.text("reasoning_content") {
            parts.push(Reasoning::new(thought, Origin::OpenAiChat).into());
        }
        parts.extend(content(members.get("content"))?);
        parts.extend(calls(&members)?);

        let session = Session::of(&members)?;
        if let Some(call_id) = call_id {
            let is_error = session.error;
            let mut result = ToolResult { content: parts, ..ToolResult::new(call_id, "") };
            result.is_error = is_error;
            parts = vec![result.into()];
        }
        let mut message = Self::new(role, parts).with_fields(members.others(write::known(role)));
        if let Some(name) = name {
            message = message.with_name(name);
        }
        if let Some(wire) = write::without_session(text, &members) {
            message = message.with_wire_text(&wire);
        }
        Ok(session.put_into(message))
    }
}

/// Reads the part of a content list that this crate knows, and keeps any other
/// as it is.
pub(crate) fn part(value: &RawValue) -> Part {
    part_at(value, 0)
}

fn part_at(value: &RawValue, depth: u8) -> Part {
    known_part(value, depth).unwrap_or_else(|| Part::json(value))
}

fn known_part(value: &RawValue, depth: u8) -> Option<Part> {
    if let Some(text) = text_of(value) {
        return Some(Part::text(text));
    }
    let members = Members::of(value.get())?;
    Some(match members.text("type")?.as_str() {
        "text" => Part::text_with(members.text("text")?, members.others(write::TEXT)),
        "image_url" => image(&members)?.into(),
        "input_audio" => audio(&members)?.into(),
        "file" => file(&members)?.into(),
        "media" => media(&members)?.into(),
        "reasoning" => {
            let mut reasoning = Reasoning::new(members.text("text")?, origin(&members)?);
            reasoning.signature = members.text("signature");
            reasoning.fields = members.others(write::REASONING);
            reasoning.into()
        }
        "tool_call" => {
            let mut call = ToolCall::new(
                members.text("id")?,
                members.text("name")?,
                members.text("arguments")?,
            );
            call.fields = members.others(write::TOOL_CALL);
            call.into()
        }
        "tool_result" if depth < MAX_DEPTH => {
            let content = elements(members.get("content")?)?;
            let mut result = ToolResult::new(members.text("call_id")?, "");
            result.content = content.into_iter().map(|part| part_at(part, depth + 1)).collect();
            result.is_error = members.is_true("is_error");
            result.fields = members.others(write::TOOL_RESULT);
            result.into()
        }
        "json" if members.only(&["type", "value"]) => {
            // Null too is a value here, so not through `get`.
            let (_, value) = members.0.iter().find(|(key, _)| key == "value")?;
            Part::json(value)
        }
        _ => return None,
    })
}

/// Splits `data:MIME;base64,DATA`.
pub(crate) fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

fn image(members: &Members<'_>) -> Option<Media> {
    let inner = members.object("image_url")?;
    let mut media = Media::new(MediaKind::Image, MediaSource::Url(String::new()));
    set_url(&mut media, inner.text("url")?);
    nest(&mut media, members, "image_url", &inner, &["url"]);
    Some(media)
}

fn audio(members: &Members<'_>) -> Option<Media> {
    let inner = members.object("input_audio")?;
    let mut media = Media::new(MediaKind::Audio, MediaSource::Base64(inner.text("data")?))
        .with_mime(format!("audio/{}", inner.text("format")?));
    nest(&mut media, members, "input_audio", &inner, &["data", "format"]);
    Some(media)
}

fn file(members: &Members<'_>) -> Option<Media> {
    let inner = members.object("file")?;
    let mut media = match (inner.text("file_id"), inner.text("file_data")) {
        (Some(id), None) => Media::new(MediaKind::File, MediaSource::Reference(id)),
        (None, Some(data)) => {
            let (mime, data) = data_url(&data)?;
            let source = MediaSource::Base64(data.into());
            Media { mime: some_text(mime), ..Media::new(MediaKind::File, source) }
        }
        _ => return None,
    };
    nest(&mut media, members, "file", &inner, &["file_id", "file_data"]);
    Some(media)
}

/// The crate's own form, for what OpenAI has no part for.
fn media(members: &Members<'_>) -> Option<Media> {
    let kind = match members.text("kind")?.as_str() {
        "audio" => MediaKind::Audio,
        "file" => MediaKind::File,
        "image" => MediaKind::Image,
        _ => return None,
    };
    let source = match (members.text("base64"), members.text("reference"), members.text("url")) {
        (Some(data), None, None) => MediaSource::Base64(data),
        (None, Some(id), None) => MediaSource::Reference(id),
        (None, None, Some(url)) => MediaSource::Url(url),
        _ => return None,
    };
    Some(Media {
        kind,
        source,
        mime: members.text("mime"),
        alt: members.text("alt"),
        fields: members.others(write::MEDIA),
    })
}

pub(crate) fn set_url(media: &mut Media, url: String) {
    match data_url(&url) {
        Some((mime, data)) => {
            media.mime = some_text(mime);
            media.source = MediaSource::Base64(data.into());
        }
        None => media.source = MediaSource::Url(url),
    }
}

fn some_text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.into())
}

/// Keeps the unknown fields of a part and those of the object inside it; the
/// latter as one field, named like that object.
fn nest(media: &mut Media, outer: &Members<'_>, name: &str, inner: &Members<'_>, known: &[&str]) {
    media.fields = outer.others(&["type", name]);
    if let Some(inner) = write::object(&inner.others(known)) {
        media.fields.push(name, inner);
    }
}

fn origin(members: &Members<'_>) -> Option<Origin> {
    let name = members.text("origin")?;
    Some(match name.as_str() {
        "anthropic" => Origin::Anthropic,
        "gemini" => Origin::Gemini,
        "openai_chat" => Origin::OpenAiChat,
        "openai_responses" => Origin::OpenAiResponses,
        _ => Origin::Other(name.into()),
    })
}

/// A tool message without `tool_call_id` holds its parts as they are where
/// they are a list: the form for a message that no OpenAI one can stand for.
fn role_and_call_id(
    members: &Members<'_>,
    name: Option<&str>,
) -> Result<(Role, Option<String>), String> {
    let allowed = "assistant, developer, system, tool or user";
    let value = members.get("role").ok_or_else(|| format!("the role is missing: {allowed}"))?;
    let role = text_of(value).unwrap_or_default();
    Ok(match role.as_str() {
        "assistant" => (Role::Assistant, None),
        "developer" => (Role::Developer, None),
        "system" => (Role::System, None),
        "user" => (Role::User, None),
        "tool" => {
            let listed = members.get("content").is_some_and(|it| it.get().starts_with('['));
            let call_id = members.text_or_number("tool_call_id");
            (Role::Tool, call_id.or_else(|| (!listed).then(String::new)))
        }
        // OpenAI's first form of tools, in which the name was the id.
        "function" => (Role::Tool, Some(name.unwrap_or_default().to_owned())),
        _ => return Err(format!("the role is {allowed}, this one is {}", excerpt(value.get()))),
    })
}

fn content(value: Option<&RawValue>) -> Result<Vec<Part>, String> {
    let Some(value) = value else { return Ok(Vec::new()) };
    if let Some(text) = text_of(value) {
        return Ok(vec![Part::text(text)]);
    }
    elements(value).map(|list| list.into_iter().map(part).collect()).ok_or_else(|| {
        match kind(value.get()) {
            "text" => "the content holds half of a surrogate pair, which is no Unicode text".into(),
            kind => format!("the content is text, a list of parts or null, this is {kind}"),
        }
    })
}

fn calls(members: &Members<'_>) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    if let Some(value) = members.get("tool_calls") {
        let list = elements(value).ok_or_else(|| {
            format!("tool_calls is a list or null, this is {}", kind(value.get()))
        })?;
        parts.extend(list.into_iter().map(tool_call));
    }
    if let Some(function) = members.object("function_call") {
        let name = function.text("name").unwrap_or_default();
        parts.push(ToolCall::new(name.clone(), name, arguments(&function, "arguments")).into());
    }
    Ok(parts)
}

/// Reads a call. One of an unknown shape is a call as well, since it waits for
/// a result: its arguments are all that it holds.
pub(crate) fn tool_call(value: &RawValue) -> Part {
    let members = Members::of(value.get()).unwrap_or_default();
    let id = members.text_or_number("id").unwrap_or_default();
    let kind = members.text("type").unwrap_or_else(|| "function".into());
    let known = || {
        let (kind, input) = match kind.as_str() {
            "function" => ("function", "arguments"),
            write::CUSTOM => (write::CUSTOM, "input"),
            _ => return None,
        };
        let inner = members.object(kind)?;
        let name = inner.text("name").unwrap_or_default();
        let mut call = ToolCall::new(&*id, name, arguments(&inner, input));
        call.fields = members.others(&["id", "type", kind]);
        let unknown = write::object(&inner.others(&["name", input]));
        let mark = || RawJson::parse("{}").ok().filter(|_| kind == write::CUSTOM);
        if let Some(inner) = unknown.or_else(mark) {
            call.fields.push(kind, inner);
        }
        // A function's call may hold what tells a custom one apart.
        (write::is_custom(&call) == (kind == write::CUSTOM)).then_some(call)
    };
    known().unwrap_or_else(|| ToolCall::new(&*id, &*kind, value.get())).into()
}

/// Returns the arguments of a call: a text as it is, an object as its source.
pub(crate) fn arguments(function: &Members<'_>, name: &str) -> String {
    let Some(value) = function.get(name) else { return String::new() };
    text_of(value).unwrap_or_else(|| value.get().to_owned())
}

/// What OpenAI has no place for.
#[derive(Default)]
struct Session {
    id: Option<String>,
    time: Option<SystemTime>,
    pinned: bool,
    partial: bool,
    error: bool,
}

impl Session {
    fn of(members: &Members<'_>) -> Result<Self, String> {
        let Some(value) = members.get("_session") else { return Ok(Self::default()) };
        let members = Members::of(value.get()).ok_or_else(|| {
            let kind = kind(value.get());
            format!("_session is an object of id, time, pinned, partial and error, this is {kind}")
        })?;
        let time = members.text("time").map(|time| {
            time.parse::<jiff::Timestamp>().and_then(SystemTime::try_from).map_err(|error| {
                format!("_session.time is RFC 3339, like 2025-01-31T09:30:00Z: {error}")
            })
        });
        Ok(Self {
            id: members.text("id"),
            time: time.transpose()?,
            pinned: members.is_true("pinned"),
            partial: members.is_true("partial"),
            error: members.is_true("error"),
        })
    }

    fn put_into(self, mut message: Message) -> Message {
        if let Some(id) = self.id {
            message = message.with_id(id);
        }
        if let Some(time) = self.time {
            message = message.with_time(time);
        }
        if self.pinned {
            message = message.pinned();
        }
        if self.partial {
            message = message.partial();
        }
        message
    }
}

/// Names the kind of a JSON value.
pub(crate) fn kind(json: &str) -> &'static str {
    match json.trim_start().chars().next() {
        Some('{') => "an object",
        Some('[') => "a list",
        Some('"') => "text",
        Some('t' | 'f') => "a boolean",
        Some('n') => "null",
        Some(_) => "a number",
        None => "nothing",
    }
}

pub(crate) fn excerpt(text: &str) -> String {
    if text.chars().nth(40).is_none() {
        return text.to_owned();
    }
    text.chars().take(40).chain(['…']).collect()
}
