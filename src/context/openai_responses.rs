//! OpenAI Responses: a list of items, which need not alternate.

use super::{
    arrange::Arranged,
    body::Body,
    request::Request,
    wire::{kept, stand_in, write_kept},
};
use crate::message::{
    Fields, Media, MediaKind, MediaSource, Message, Part, RawJson, Reasoning, Role, Text,
    json::{JsonWriter, Members},
    write::to_data_url,
};

const NAME: &str = "openai_responses";

pub(crate) fn body(arranged: &Arranged<'_>, request: &Request) -> Body {
    let mut members = request.members("max_output_tokens");
    if let Some(system) = &arranged.system {
        let texts: Vec<_> = system.parts().iter().flat_map(Part::texts).collect();
        let mut out = JsonWriter::default();
        out.text(&texts.join("\n\n"));
        members.push(("instructions", out.finish()));
    }
    let mut out = JsonWriter::default();
    out.begin(b'[');
    for message in &arranged.messages {
        write_message(message, &mut out);
    }
    out.end(b']');
    members.push(("input", out.finish()));
    Body::new(members)
}

/// Writes a message as one item or, where the model speaks, one for each part.
fn write_message(message: &Message, out: &mut JsonWriter) {
    if message.role() != Role::User {
        return message.parts().iter().for_each(|part| write_item(part, out));
    }
    let (items, content): (Vec<_>, Vec<_>) = message.parts().iter().partition(|part| is_item(part));
    for item in items {
        write_item(item, out);
    }
    if content.is_empty() {
        return;
    }
    out.begin(b'{');
    out.text_member("role", "user");
    write_content("content", &content, out);
    write_kept(NAME, message.fields(), &["role", "content"], out);
    out.end(b'}');
}

/// Opaque JSON within a user message is part of its content where its type is
/// that of an input, and else an item of its own, such as a compaction.
fn is_item(part: &Part) -> bool {
    match part {
        Part::Json(raw) => Members::of(raw.as_str())
            .and_then(|members| members.text("type"))
            .is_none_or(|kind| !kind.starts_with("input_")),
        _ => false,
    }
}

fn write_item(part: &Part, out: &mut JsonWriter) {
    match part {
        Part::Json(raw) => out.raw(raw.as_str()),
        Part::Media(media) => write_spoken(&Text::new(stand_in(media)), out),
        Part::Reasoning(reasoning) => write_reasoning(reasoning, out),
        Part::Text(text) => write_spoken(text, out),
        Part::ToolCall(call) => {
            if let Some(item) = whole_item(&call.fields) {
                return out.raw(item.as_str());
            }
            out.begin(b'{');
            out.text_member("type", "function_call");
            out.text_member("call_id", &call.id);
            out.text_member("name", &call.name);
            out.text_member("arguments", &call.arguments);
            write_kept(NAME, &call.fields, &["type", "call_id", "name", "arguments"], out);
            out.end(b'}');
        }
        Part::ToolResult(result) => {
            if let Some(item) = whole_item(&result.fields) {
                return out.raw(item.as_str());
            }
            out.begin(b'{');
            out.text_member("type", "function_call_output");
            out.text_member("call_id", &result.call_id);
            write_content("output", &result.content.iter().collect::<Vec<_>>(), out);
            write_kept(NAME, &result.fields, &["type", "call_id", "output"], out);
            out.end(b'}');
        }
    }
}

/// Returns the item that was kept as it came: only a whole one has its type.
fn whole_item(fields: &Fields) -> Option<&RawJson> {
    let raw = fields.get(NAME)?;
    Members::of(raw.as_str())?.text("type").map(|_| raw)
}

fn write_reasoning(reasoning: &Reasoning, out: &mut JsonWriter) {
    if let Some(item) = whole_item(&reasoning.fields) {
        return out.raw(item.as_str());
    }
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
    if let Some(signature) = &reasoning.signature {
        out.text_member("encrypted_content", signature);
    }
    write_kept(NAME, &reasoning.fields, &["type", "summary", "encrypted_content"], out);
    out.end(b'}');
}

fn write_spoken(text: &Text, out: &mut JsonWriter) {
    let kept = text.fields.as_deref().and_then(|fields| kept(NAME, fields));
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

fn write_content(name: &str, parts: &[&Part], out: &mut JsonWriter) {
    out.key(name);
    if let [Part::Text(Text { text, fields: None })] = parts {
        return out.text(text);
    }
    out.begin(b'[');
    for part in parts {
        match part {
            Part::Json(raw) => out.raw(raw.as_str()),
            Part::Media(media) => write_media(media, out),
            Part::Text(text) => {
                write_text(&text.text, text.fields.as_deref().unwrap_or(&Fields::EMPTY), out);
            }
            Part::Reasoning(_) | Part::ToolCall(_) | Part::ToolResult(_) => {}
        }
    }
    out.end(b']');
}

fn write_text(text: &str, fields: &Fields, out: &mut JsonWriter) {
    out.begin(b'{');
    out.text_member("type", "input_text");
    out.text_member("text", text);
    write_kept(NAME, fields, &["type", "text", "item"], out);
    out.end(b'}');
}

fn write_media(media: &Media, out: &mut JsonWriter) {
    let (kind, name) = match (media.kind, &media.source) {
        (MediaKind::Audio, _) => return write_text(&stand_in(media), &Fields::EMPTY, out),
        (MediaKind::File, MediaSource::Base64(_)) => ("input_file", "file_data"),
        (MediaKind::File, MediaSource::Reference(_)) => ("input_file", "file_id"),
        (MediaKind::File, MediaSource::Url(_)) => ("input_file", "file_url"),
        (MediaKind::Image, MediaSource::Reference(_)) => ("input_image", "file_id"),
        (MediaKind::Image, _) => ("input_image", "image_url"),
    };
    let data = match &media.source {
        MediaSource::Base64(data) => match to_data_url(media.mime.as_deref(), data) {
            Some(url) => url,
            None => return write_text(&stand_in(media), &Fields::EMPTY, out),
        },
        MediaSource::Reference(value) | MediaSource::Url(value) => value.clone(),
    };
    out.begin(b'{');
    out.text_member("type", kind);
    out.text_member(name, &data);
    write_kept(NAME, &media.fields, &["type", name], out);
    out.end(b'}');
}
