//! From items to messages.

use std::mem;

use serde_json::value::RawValue;

use super::{ORIGIN, write_message};
use crate::{
    formats::{bad_role, keep, media_of, with_source},
    message::{
        Fields, Media, MediaKind, MediaSource, Message, Part, RawJson, Reasoning, Role, ToolCall,
        ToolResult,
        json::{Members, elements, text_of},
        read::{kind, set_url},
        write::object,
    },
};

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
                self.open(parts, json);
                return Ok(());
            }
            Item::Input(message) => message,
        };
        self.add(with_source(message, ORIGIN, json, write_message));
        Ok(())
    }

    /// Takes up an item of the model that is not to be read.
    pub(crate) fn push_opaque(&mut self, value: &RawValue) {
        self.open(vec![Part::Json(Box::new(RawJson::from(value)))], value.get());
    }

    fn open(&mut self, parts: Vec<Part>, json: &str) {
        self.open.extend(parts);
        if !self.source.is_empty() {
            self.source.push(',');
        }
        self.source.push_str(json);
    }

    /// Takes up a message that is no item.
    pub(crate) fn add(&mut self, message: Message) {
        self.close();
        self.messages.push(message);
    }

    /// Takes out the messages to which no further item belongs.
    pub(crate) fn complete(&mut self) -> Vec<Message> {
        mem::take(&mut self.messages)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.source.is_empty()
    }

    /// Ends the assistant message that is being read.
    pub(crate) fn close(&mut self) {
        if !self.source.is_empty() {
            let message = Message::new(Role::Assistant, self.open.drain(..));
            self.messages.push(with_source(message, ORIGIN, &self.source, write_message));
            self.source.clear();
        }
    }

    pub(crate) fn finish(mut self) -> Vec<Message> {
        self.close();
        self.messages
    }
}

enum Item {
    Input(Message),
    Model(Vec<Part>),
}

fn item(value: &RawValue, members: &Members<'_>) -> Result<Item, String> {
    let kind = members.text("type").unwrap_or_else(|| "message".into());
    let call_id = members.text("call_id");
    let opaque = || Item::Model(vec![Part::json(value)]);
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
    texts().unwrap_or_else(|| vec![Part::json(value)])
}

fn text_part(text: String, mut unknown: Fields, item: &Fields) -> Part {
    if let Some(item) = object(item) {
        unknown.push("item", item);
    }
    Part::text_with(text, keep(&ORIGIN, &unknown))
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

pub(super) fn output(value: &RawValue) -> Vec<Part> {
    input_parts(value).unwrap_or_else(|| vec![Part::text(value.get())])
}

fn input_parts(value: &RawValue) -> Option<Vec<Part>> {
    if let Some(text) = text_of(value) {
        return Some(vec![Part::text(text)]);
    }
    Some(elements(value)?.into_iter().map(input_part).collect())
}

fn input_part(value: &RawValue) -> Part {
    known_input_part(value).unwrap_or_else(|| Part::json(value))
}

fn known_input_part(value: &RawValue) -> Option<Part> {
    let members = Members::of(value.get())?;
    let unknown = |known: &[&str]| keep(&ORIGIN, &members.others(known));
    Some(match members.text("type")?.as_str() {
        "input_text" => Part::text_with(members.text("text")?, unknown(&["type", "text"])),
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
