//! `OpenAI` Responses items (`/v1/responses`).
//!
//! The model's items between two inputs (reasoning, messages, calls, and those
//! of built-in tools) become one assistant message, as other formats have it.
//! Reasoning and compaction items pass through untouched.

use serde_json::value::RawValue;

use super::{
    Conversation, accepts, bad_role, body, each, keep, kept, media_of, placeholder, write_kept,
};
use crate::{
    error::Result,
    message::{
        Fields, Media, MediaKind, MediaSource, Message, Origin, Part, RawJson, Reasoning, Role,
        Text, ToolCall, ToolResult,
        json::{JsonWriter, Members, elements, text_of},
        read::{kind, set_url},
        write::{object, to_data_url},
    },
};

const NAME: &str = "OpenAI responses";
const ORIGIN: Origin = Origin::OpenAiResponses;

/// Reads a request body.
///
/// # Errors
///
/// [`Error::is_message`](crate::Error::is_message) where the text is not JSON
/// (with line and column), or an item has another shape than the API takes.
pub fn parse(text: &str) -> Result<Conversation> {
    let members = body(NAME, text)?;
    let system = members.text("instructions");
    let known = if system.is_some() { &["input", "instructions"][..] } else { &["input"] };
    let mut reader = Reader::default();
    match members.text("input") {
        Some(text) => reader.messages.push(Message::user(text)),
        None => drop(each(NAME, &members, "input", |item| reader.push(item))?),
    }
    Ok(Conversation {
        system: system.map(Message::system).into_iter().collect(),
        messages: reader.finish(),
        fields: members.others(known),
    })
}

/// Writes a request body: instructions, input items, and the other fields.
#[must_use]
pub fn write(conversation: &Conversation) -> String {
    let mut out = JsonWriter::default();
    out.begin(b'{');
    if !conversation.system.is_empty() {
        let texts: Vec<_> = conversation.system.iter().map(Message::text).collect();
        out.text_member("instructions", &texts.join("\n\n"));
    }
    out.key("input");
    out.begin(b'[');
    for message in &conversation.messages {
        write_message(message, &mut out);
    }
    out.end(b']');
    out.fields(&conversation.fields, &["input"]);
    out.end(b'}');
    out.finish()
}

/// Makes messages of items.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    messages: Vec<Message>,
    /// The parts of the assistant message that is being read, and the text of
    /// its items.
    open: Vec<Part>,
    source: String,
}

impl Reader {
    /// Takes up one item, or says what is wrong with it.
    pub(crate) fn push(&mut self, value: &RawValue) -> Result<(), String> {
        let json = value.get();
        let members = Members::of(json)
            .ok_or_else(|| format!("an item is a JSON object, this is {}", kind(json)))?;
        let message = match item(value, &members)? {
            Item::Model(parts) => {
                self.open.extend(parts);
                if !self.source.is_empty() {
                    self.source.push(',');
                }
                self.source.push_str(json);
                return Ok(());
            }
            Item::Input(message) => message,
        };
        self.close();
        self.messages.push(with_source(message, json));
        Ok(())
    }

    /// Ends the assistant message that is being read.
    pub(crate) fn close(&mut self) {
        if !self.source.is_empty() {
            let message = Message::new(Role::Assistant, self.open.drain(..));
            self.messages.push(with_source(message, &self.source));
            self.source.clear();
        }
    }

    pub(crate) fn finish(mut self) -> Vec<Message> {
        self.close();
        self.messages
    }
}

fn with_source(message: Message, source: &str) -> Message {
    let mut out = JsonWriter::default();
    write_message(&message, &mut out);
    if out.finish() == source { message } else { message.with_source(ORIGIN, source) }
}

/// Writes a message as one or more items into a list that is open.
pub(crate) fn write_message(message: &Message, out: &mut JsonWriter) {
    if let Some(source) = message.source(&ORIGIN) {
        return out.raw(source);
    }
    if let Some(item) = whole_item(message.fields()) {
        return out.raw(item.as_str());
    }
    match message.role() {
        Role::Assistant => message.parts().iter().for_each(|part| write_model_item(part, out)),
        _ => write_input(message, out),
    }
}

enum Item {
    Input(Message),
    Model(Vec<Part>),
}

fn item(value: &RawValue, members: &Members<'_>) -> Result<Item, String> {
    let kind = members.text("type").unwrap_or_else(|| "message".into());
    let call_id = members.text("call_id");
    let opaque = || Item::Model(vec![Part::Json(Box::new(RawJson::from(value)))]);
    Ok(match (kind.as_str(), call_id) {
        ("message", _) => return message(value, members),
        ("reasoning", _) => Item::Model(vec![reasoning(value, members).into()]),
        ("function_call", Some(id)) => {
            let known = ["type", "call_id", "name", "arguments"];
            let name = members.text("name").unwrap_or_default();
            let mut call = ToolCall::new(id, name, text_or_source(members.get("arguments")));
            call.fields = keep(&ORIGIN, &members.others(&known));
            Item::Model(vec![call.into()])
        }
        (kind, Some(id)) if kind.ends_with("_call") => {
            let input = ["input", "arguments", "action"].iter().find_map(|name| members.get(name));
            let name = members.text("name");
            let name = name.as_deref().or(kind.strip_suffix("_call")).unwrap_or(kind);
            let mut call = ToolCall::new(id, name, text_or_source(input));
            call.fields = keep_whole(value);
            Item::Model(vec![call.into()])
        }
        (kind, Some(id)) if kind.ends_with("_output") => {
            let mut result = ToolResult::new(id, "");
            result.content = members.get("output").map_or_else(Vec::new, output);
            result.fields = match kind {
                "function_call_output" => {
                    keep(&ORIGIN, &members.others(&["type", "call_id", "output"]))
                }
                _ => keep_whole(value),
            };
            Item::Input(Message::new(Role::Tool, [result.into()]))
        }
        // An item of another kind that the host speaks, such as more tools.
        (_, None) if members.text("role").is_some_and(|role| role != "assistant") => {
            let message = Message::new(role(members)?, []);
            Item::Input(message.with_fields(keep_whole(value)))
        }
        _ => opaque(),
    })
}

fn message(value: &RawValue, members: &Members<'_>) -> Result<Item, String> {
    let role = role(members)?;
    let content = members.get("content");
    if role == Role::Assistant {
        return Ok(Item::Model(spoken(value, members)));
    }
    let parts = match content {
        Some(content) => input_parts(content).ok_or_else(|| {
            format!("the content is text or a list of parts, this is {}", kind(content.get()))
        })?,
        None => Vec::new(),
    };
    let unknown = keep(&ORIGIN, &members.others(&["type", "role", "content"]));
    Ok(Item::Input(Message::new(role, parts).with_fields(unknown)))
}

fn role(members: &Members<'_>) -> Result<Role, String> {
    Ok(match members.text("role").as_deref() {
        Some("assistant") => Role::Assistant,
        Some("developer") => Role::Developer,
        Some("system") => Role::System,
        Some("user") => Role::User,
        _ => return Err(bad_role(members.get("role"), "assistant, developer, system or user")),
    })
}

/// Reads what the model said: a text for each part of the item, the first of
/// which keeps the item's own members; or the whole item, where it holds
/// anything but text.
fn spoken(value: &RawValue, members: &Members<'_>) -> Vec<Part> {
    let unknown = members.others(&["role", "content"]);
    let content = members.get("content");
    if let Some(text) = content.and_then(text_of) {
        return vec![text_part(text, Fields::EMPTY, &unknown)];
    }
    let texts = || {
        let list = elements(content?)?;
        let mut texts = Vec::with_capacity(list.len());
        for value in list {
            let part = Members::of(value.get())?;
            if !matches!(part.text("type")?.as_str(), "output_text" | "input_text" | "text") {
                return None;
            }
            let item = if texts.is_empty() { &unknown } else { &Fields::EMPTY };
            texts.push(text_part(part.text("text")?, part.others(&["type", "text"]), item));
        }
        (!texts.is_empty()).then_some(texts)
    };
    texts().unwrap_or_else(|| vec![Part::Json(Box::new(RawJson::from(value)))])
}

fn text_part(text: String, mut unknown: Fields, item: &Fields) -> Part {
    if let Some(item) = object(item) {
        unknown.push("item", item);
    }
    let fields = keep(&ORIGIN, &unknown);
    Part::Text(Text { text, fields: (!fields.is_empty()).then(|| Box::new(fields)) })
}

fn reasoning(value: &RawValue, members: &Members<'_>) -> Reasoning {
    let texts = |name| {
        let list = members.get(name).and_then(elements).unwrap_or_default();
        list.into_iter()
            .filter_map(|part| Members::of(part.get())?.text("text"))
            .collect::<Vec<_>>()
    };
    let mut thoughts = texts("content");
    if thoughts.is_empty() {
        thoughts = texts("summary");
    }
    let mut reasoning = Reasoning::new(thoughts.join("\n\n"), ORIGIN);
    reasoning.signature = members.text("encrypted_content");
    reasoning.fields = keep_whole(value);
    reasoning
}

fn text_or_source(value: Option<&RawValue>) -> String {
    value.map_or_else(String::new, |value| text_of(value).unwrap_or_else(|| value.get().to_owned()))
}

fn output(value: &RawValue) -> Vec<Part> {
    input_parts(value).unwrap_or_else(|| vec![Part::text(value.get())])
}

fn input_parts(value: &RawValue) -> Option<Vec<Part>> {
    if let Some(text) = text_of(value) {
        return Some(vec![Part::text(text)]);
    }
    Some(elements(value)?.into_iter().map(input_part).collect())
}

fn input_part(value: &RawValue) -> Part {
    known_input_part(value).unwrap_or_else(|| Part::Json(Box::new(RawJson::from(value))))
}

fn known_input_part(value: &RawValue) -> Option<Part> {
    let members = Members::of(value.get())?;
    let unknown = |known: &[&str]| keep(&ORIGIN, &members.others(known));
    Some(match members.text("type")?.as_str() {
        "input_text" => {
            let fields = unknown(&["type", "text"]);
            let fields = (!fields.is_empty()).then(|| Box::new(fields));
            Part::Text(Text { text: members.text("text")?, fields })
        }
        "input_image" => {
            let mut media = Media::new(MediaKind::Image, MediaSource::Url(String::new()));
            match members.text("file_id") {
                Some(id) => media.source = MediaSource::Reference(id),
                None => set_url(&mut media, members.text("image_url")?),
            }
            media.fields = unknown(&["type", "image_url", "file_id"]);
            media.into()
        }
        "input_file" => {
            let file = |name: &str| members.text(name);
            let mut media = match (file("file_id"), file("file_url"), file("file_data")) {
                (Some(id), None, None) => media_of(None, MediaSource::Reference(id)),
                (None, Some(url), None) => media_of(None, MediaSource::Url(url)),
                (None, None, Some(data)) => {
                    let mut media = media_of(None, MediaSource::Url(String::new()));
                    set_url(&mut media, data);
                    media
                }
                _ => return None,
            };
            media.fields = unknown(&["type", "file_id", "file_url", "file_data"]);
            media.into()
        }
        _ => return None,
    })
}

/// Keeps an item that has no place in a message.
fn keep_whole(value: &RawValue) -> Fields {
    let mut fields = Fields::EMPTY;
    fields.push(ORIGIN.as_str(), RawJson::from(value));
    fields
}

/// Returns the item that [`keep_whole`] kept: only a whole one has its type.
fn whole_item(fields: &Fields) -> Option<&RawJson> {
    let raw = fields.get(ORIGIN.as_str())?;
    Members::of(raw.as_str())?.text("type").map(|_| raw)
}

fn write_input(message: &Message, out: &mut JsonWriter) {
    let (results, others): (Vec<_>, Vec<_>) =
        message.parts().iter().partition(|part| matches!(part, Part::ToolResult(_)));
    for part in &results {
        write_model_item(part, out);
    }
    if others.is_empty() && (!results.is_empty() || message.role() == Role::Tool) {
        return;
    }
    out.begin(b'{');
    out.text_member(
        "role",
        if message.role() == Role::Tool { "user" } else { message.role().as_str() },
    );
    out.key("content");
    write_input_parts(others.into_iter(), out);
    write_kept(&ORIGIN, message.fields(), &["role", "content"], out);
    out.end(b'}');
}

fn write_input_parts<'a>(parts: impl Iterator<Item = &'a Part> + Clone, out: &mut JsonWriter) {
    let mut plain = parts.clone();
    if let (Some(Part::Text(Text { text, fields: None })), None) = (plain.next(), plain.next()) {
        return out.text(text);
    }
    out.begin(b'[');
    for part in parts {
        match part {
            Part::Text(text) => {
                write_input_text(&text.text, text.fields.as_deref(), out);
            }
            Part::Media(media) => write_media(media, out),
            Part::Json(raw) if accepts(&ORIGIN, raw) => out.raw(raw.as_str()),
            _ => {}
        }
    }
    out.end(b']');
}

fn write_input_text(text: &str, fields: Option<&Fields>, out: &mut JsonWriter) {
    out.begin(b'{');
    out.text_member("type", "input_text");
    out.text_member("text", text);
    write_kept(&ORIGIN, fields.unwrap_or(&Fields::EMPTY), &["type", "text", "item"], out);
    out.end(b'}');
}

fn write_media(media: &Media, out: &mut JsonWriter) {
    let name = match (media.kind, &media.source) {
        (MediaKind::Audio, _) => return write_input_text(&placeholder(media), None, out),
        (_, MediaSource::Reference(_)) => "file_id",
        (MediaKind::File, MediaSource::Base64(_)) => "file_data",
        (MediaKind::File, MediaSource::Url(_)) => "file_url",
        (MediaKind::Image, _) => "image_url",
    };
    out.begin(b'{');
    out.text_member(
        "type",
        if media.kind == MediaKind::File { "input_file" } else { "input_image" },
    );
    match &media.source {
        MediaSource::Base64(data) => {
            out.text_member(name, &to_data_url(media.mime.as_deref(), data).unwrap_or_default());
        }
        MediaSource::Reference(value) | MediaSource::Url(value) => out.text_member(name, value),
    }
    write_kept(&ORIGIN, &media.fields, &["type", name], out);
    out.end(b'}');
}

/// Writes an item of the model, or the result of a call.
fn write_model_item(part: &Part, out: &mut JsonWriter) {
    match part {
        Part::Text(text) => write_spoken(text, out),
        Part::Reasoning(reasoning) => {
            // An item that was not made by this API would be refused.
            if let Some(item) = whole_item(&reasoning.fields) {
                out.raw(item.as_str());
            }
        }
        Part::ToolCall(call) => {
            if let Some(item) = whole_item(&call.fields) {
                return out.raw(item.as_str());
            }
            out.begin(b'{');
            out.text_member("type", "function_call");
            out.text_member("call_id", &call.id);
            out.text_member("name", &call.name);
            out.text_member("arguments", &call.arguments);
            write_kept(&ORIGIN, &call.fields, &["type", "call_id", "name", "arguments"], out);
            out.end(b'}');
        }
        Part::ToolResult(result) => {
            if let Some(item) = whole_item(&result.fields) {
                return out.raw(item.as_str());
            }
            out.begin(b'{');
            out.text_member("type", "function_call_output");
            out.text_member("call_id", &result.call_id);
            out.key("output");
            write_input_parts(result.content.iter(), out);
            write_kept(&ORIGIN, &result.fields, &["type", "call_id", "output"], out);
            out.end(b'}');
        }
        Part::Json(raw) if accepts(&ORIGIN, raw) => out.raw(raw.as_str()),
        Part::Json(_) | Part::Media(_) => {}
    }
}

fn write_spoken(text: &Text, out: &mut JsonWriter) {
    let kept = text.fields.as_deref().and_then(|fields| kept(&ORIGIN, fields));
    let item = kept.as_ref().and_then(|kept| kept.object("item"));
    let inner = kept.map(|kept| kept.others(&["item", "type", "text"])).unwrap_or_default();
    out.begin(b'{');
    if let Some(item) = item {
        out.fields(&item.others(&["role", "content"]), &[]);
    }
    out.text_member("role", "assistant");
    out.key("content");
    if inner.is_empty() {
        out.text(&text.text);
    } else {
        out.begin(b'[');
        out.begin(b'{');
        out.text_member("type", "output_text");
        out.text_member("text", &text.text);
        out.fields(&inner, &[]);
        out.end(b'}');
        out.end(b']');
    }
    out.end(b'}');
}
