//! From messages to items.

use super::{ORIGIN, read::output};
use crate::{
    formats::{accepts, kept, owner, placeholder, write_kept},
    message::{
        Fields, Media, MediaKind, MediaSource, Message, Part, RawJson, Reasoning, Role, Text,
        json::{JsonWriter, Members},
        write::to_data_url,
    },
};

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

/// Returns the item that the reader kept: only a whole one has its type.
fn whole_item(fields: &Fields) -> Option<&RawJson> {
    let raw = fields.get(ORIGIN.as_str())?;
    Members::of(raw.as_str())?.text("type").map(|_| raw)
}

/// Writes an item as it was kept, but for the id and the output where they
/// were changed since.
fn write_whole(item: &RawJson, id: &str, content: Option<&[Part]>, out: &mut JsonWriter) {
    let members = Members::of(item.as_str()).unwrap_or_default();
    let kept = members.get("output").map(output).unwrap_or_default();
    let content = content.filter(|content| **content != *kept);
    if content.is_none() && members.text("call_id").as_deref() == Some(id) {
        return out.raw(item.as_str());
    }
    out.begin(b'{');
    for (name, value) in &members.0 {
        out.key(name);
        match (name.as_str(), content) {
            ("call_id", _) => out.text(id),
            ("output", Some(content)) => write_input_parts(content.iter(), out),
            _ => out.raw(value.get()),
        }
    }
    out.end(b'}');
}

fn write_input(message: &Message, out: &mut JsonWriter) {
    let (items, others): (Vec<_>, Vec<_>) = message.parts().iter().partition(|part| is_item(part));
    for part in &items {
        write_model_item(part, out);
    }
    if others.is_empty() && (!items.is_empty() || message.role() == Role::Tool) {
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

/// Opaque JSON of this API is part of a message's content where its type is
/// that of an input, and else an item of its own, such as a compaction.
fn is_item(part: &Part) -> bool {
    match part {
        Part::ToolResult(_) => true,
        Part::Json(raw) => {
            let kind = Members::of(raw.as_str()).and_then(|members| members.text("type"));
            owner(raw) == Some(ORIGIN) && kind.is_none_or(|kind| !kind.starts_with("input_"))
        }
        _ => false,
    }
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
    let data = match &media.source {
        MediaSource::Base64(data) => to_data_url(media.mime.as_deref(), data),
        MediaSource::Reference(value) | MediaSource::Url(value) => Some(value.clone()),
    };
    let Some(data) = data else { return write_input_text(&placeholder(media), None, out) };
    out.begin(b'{');
    out.text_member(
        "type",
        if media.kind == MediaKind::File { "input_file" } else { "input_image" },
    );
    out.text_member(name, &data);
    write_kept(&ORIGIN, &media.fields, &["type", name], out);
    out.end(b'}');
}

/// Writes an item of the model, or the result of a call.
fn write_model_item(part: &Part, out: &mut JsonWriter) {
    match part {
        Part::Text(text) => write_spoken(text, out),
        Part::Reasoning(reasoning) => write_reasoning(reasoning, out),
        Part::ToolCall(call) => {
            if let Some(item) = whole_item(&call.fields) {
                return write_whole(item, &call.id, None, out);
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
                return write_whole(item, &result.call_id, Some(&result.content), out);
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
        Part::Json(_) => {}
        Part::Media(media) => write_spoken(&Text::new(placeholder(media)), out),
    }
}

/// Writes a thought that this API signed: any other would be refused.
fn write_reasoning(reasoning: &Reasoning, out: &mut JsonWriter) {
    if let Some(item) = whole_item(&reasoning.fields) {
        return out.raw(item.as_str());
    }
    let Some(signature) = reasoning.signature.as_ref().filter(|_| reasoning.origin == ORIGIN)
    else {
        return;
    };
    out.begin(b'{');
    out.text_member("type", "reasoning");
    out.key("summary");
    out.begin(b'[');
    if !reasoning.text.is_empty() {
        out.begin(b'{');
        out.text_member("type", "summary_text");
        out.text_member("text", &reasoning.text);
        out.end(b'}');
    }
    out.end(b']');
    out.text_member("encrypted_content", signature);
    write_kept(&ORIGIN, &reasoning.fields, &["type", "summary", "encrypted_content"], out);
    out.end(b'}');
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
