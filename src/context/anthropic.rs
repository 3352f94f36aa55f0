//! Anthropic Messages (`anthropic-version: 2023-06-01`).

use super::{
    arrange::Arranged,
    body::Body,
    cache::{CachePoints, Mark, marks, takes_mark},
    request::Request,
    wire::{arguments_object, stand_in, write_kept},
};
use crate::message::{
    Fields, Media, MediaKind, MediaSource, Message, Part, Role, json::JsonWriter,
};

const NAME: &str = "anthropic";

pub(crate) fn body(arranged: &Arranged<'_>, request: &Request, points: CachePoints) -> Body {
    let mut members = request.members("max_tokens");
    if let Some(system) = &arranged.system {
        members.push(("system", write_system(system, points.system)));
    }
    members.push(("messages", write_messages(arranged, points)));
    Body::new(members)
}

fn write_system(system: &Message, mark: bool) -> String {
    let mut out = JsonWriter::default();
    out.begin(b'[');
    let marked = system.parts().iter().rposition(takes_mark).filter(|_| mark);
    for (index, part) in system.parts().iter().enumerate() {
        write_block(part, marked == Some(index), &mut out);
    }
    out.end(b']');
    out.finish()
}

fn write_messages(arranged: &Arranged<'_>, points: CachePoints) -> String {
    let marks = marks(arranged, points);
    let mut out = JsonWriter::default();
    let mut open = None;
    out.begin(b'[');
    for (index, message) in arranged.messages.iter().enumerate() {
        let role = if message.role() == Role::Assistant { "assistant" } else { "user" };
        // Results are blocks of a user message, before what the user says.
        if open != Some(role) {
            if open.is_some() {
                end_message(&mut out);
            }
            out.begin(b'{');
            out.text_member("role", role);
            out.key("content");
            out.begin(b'[');
            open = Some(role);
        }
        for (part, content) in message.parts().iter().enumerate() {
            let here: Option<Mark> = Some((index, part));
            write_block(content, marks.contains(&here), &mut out);
        }
    }
    if open.is_some() {
        end_message(&mut out);
    }
    out.end(b']');
    out.finish()
}

fn end_message(out: &mut JsonWriter) {
    out.end(b']');
    out.end(b'}');
}

fn write_block(part: &Part, mark: bool, out: &mut JsonWriter) {
    match part {
        Part::Json(raw) => out.raw(raw.as_str()),
        Part::Media(media) => write_media(media, mark, out),
        Part::Reasoning(reasoning) => {
            begin("thinking", out);
            out.text_member("thinking", &reasoning.text);
            if let Some(signature) = &reasoning.signature {
                out.text_member("signature", signature);
            }
            end(&reasoning.fields, &["type", "thinking", "signature"], mark, out);
        }
        Part::Text(text) => {
            write_text(&text.text, text.fields.as_deref().unwrap_or(&Fields::EMPTY), mark, out);
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
            out.key("content");
            out.begin(b'[');
            for part in &result.content {
                // A result within a result is no block; none gets here.
                if !matches!(part, Part::ToolResult(_)) {
                    write_block(part, false, out);
                }
            }
            out.end(b']');
            if result.is_error {
                out.raw_member("is_error", "true");
            }
            end(&result.fields, &["type", "tool_use_id", "content", "is_error"], mark, out);
        }
    }
}

fn write_text(text: &str, fields: &Fields, mark: bool, out: &mut JsonWriter) {
    begin("text", out);
    out.text_member("text", text);
    end(fields, &["type", "text"], mark, out);
}

fn write_media(media: &Media, mark: bool, out: &mut JsonWriter) {
    let (name, mime) = match media.kind {
        MediaKind::Audio => return write_text(&stand_in(media), &Fields::EMPTY, mark, out),
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
    let taken: Vec<_> = taken.iter().copied().chain(["cache_control"]).collect();
    write_kept(NAME, fields, &taken, out);
    if mark {
        out.raw_member("cache_control", r#"{"type":"ephemeral"}"#);
    }
    out.end(b'}');
}
