//! Gemini contents (`v1beta`).

use std::borrow::Cow;

use super::{
    arrange::Arranged,
    body::Body,
    clean::NO_OUTPUT,
    request::Request,
    wire::{arguments_object, kept, stand_in, write_kept},
};
use crate::message::{
    Fields, Media, MediaKind, MediaSource, Message, Part, Role, ToolResult,
    json::{JsonWriter, Members},
};

const NAME: &str = "gemini";
const SIGNATURE: &str = "thoughtSignature";

pub(crate) fn body(arranged: &Arranged<'_>, request: &Request) -> Body {
    let mut members = Vec::new();
    for (name, json) in request.members("maxOutputTokens") {
        if name == "maxOutputTokens" {
            members.push(("generationConfig", format!("{{\"{name}\":{json}}}")));
        } else {
            members.push((name, json));
        }
    }
    if let Some(system) = &arranged.system {
        let mut out = JsonWriter::default();
        out.begin(b'{');
        out.key("parts");
        out.begin(b'[');
        write_parts(system.parts(), &[], &mut out);
        end_content(&mut out);
        members.push(("systemInstruction", out.finish()));
    }
    members.push(("contents", write_contents(&arranged.messages)));
    Body::new(members)
}

fn write_contents(messages: &[Cow<'_, Message>]) -> String {
    let mut out = JsonWriter::default();
    let mut asked: &[Part] = &[];
    let mut before = None;
    out.begin(b'[');
    for message in messages {
        let role = message.role();
        // All results of one content answer the calls of the one before it.
        let joins = role == Role::Tool && before == Some(Role::Tool);
        if before.is_some() && !joins {
            end_content(&mut out);
        }
        if !joins {
            out.begin(b'{');
            out.text_member("role", if role == Role::Assistant { "model" } else { "user" });
            out.key("parts");
            out.begin(b'[');
        }
        write_parts(message.parts(), asked, &mut out);
        if role == Role::Assistant {
            asked = message.parts();
        }
        before = Some(role);
    }
    if before.is_some() {
        end_content(&mut out);
    }
    out.end(b']');
    out.finish()
}

fn end_content(out: &mut JsonWriter) {
    out.end(b']');
    out.end(b'}');
}

/// Writes parts into a list that is open. A result bears the name of its call,
/// which is one of those that were `asked` for.
fn write_parts(parts: &[Part], asked: &[Part], out: &mut JsonWriter) {
    for part in parts {
        match part {
            Part::Json(raw) => out.raw(raw.as_str()),
            Part::Media(media) => write_media(media, out),
            Part::Reasoning(reasoning) => {
                out.begin(b'{');
                out.text_member("text", &reasoning.text);
                out.raw_member("thought", "true");
                if let Some(signature) = &reasoning.signature {
                    out.text_member(SIGNATURE, signature);
                }
                write_kept(NAME, &reasoning.fields, &["text", "thought", SIGNATURE], out);
                out.end(b'}');
            }
            Part::Text(text) => {
                write_text(&text.text, text.fields.as_deref().unwrap_or(&Fields::EMPTY), out);
            }
            Part::ToolCall(call) => write_object("functionCall", &call.fields, out, |out| {
                write_id(&call.id, &call.name, out);
                out.text_member("name", &call.name);
                out.raw_member("args", &arguments_object(&call.arguments));
                &["id", "name", "args"]
            }),
            Part::ToolResult(result) => write_result(result, asked, out),
        }
    }
}

fn write_result(result: &ToolResult, asked: &[Part], out: &mut JsonWriter) {
    let name = asked.iter().find_map(|part| match part {
        Part::ToolCall(call) if call.id == result.call_id => Some(&*call.name),
        _ => None,
    });
    let name = name.unwrap_or(&result.call_id);
    write_object("functionResponse", &result.fields, out, |out| {
        write_id(&result.call_id, name, out);
        out.text_member("name", name);
        out.key("response");
        write_answer(result, out);
        &["id", "name", "response"]
    });
    // The answer is JSON: media follow it as parts of their own.
    for part in &result.content {
        if let Part::Media(media) = part {
            write_media(media, out);
        }
    }
}

/// Writes the answer itself where it is an object, and else in an object.
fn write_answer(result: &ToolResult, out: &mut JsonWriter) {
    let texts: Vec<_> = result.content.iter().flat_map(Part::texts).collect();
    let text = texts.join("\n");
    if !result.is_error && Members::of(&text).is_some() {
        return out.raw(text.trim());
    }
    out.begin(b'{');
    let text = if text.is_empty() { NO_OUTPUT } else { &text };
    out.text_member(if result.is_error { "error" } else { "output" }, text);
    out.end(b'}');
}

/// Writes an id, unless the reader made it of the name for want of one.
fn write_id(id: &str, name: &str, out: &mut JsonWriter) {
    let count = id.strip_prefix(name).and_then(|rest| rest.strip_prefix('#'));
    if count.is_none_or(|count| count.parse::<usize>().is_err()) {
        out.text_member("id", id);
    }
}

fn write_text(text: &str, fields: &Fields, out: &mut JsonWriter) {
    out.begin(b'{');
    out.text_member("text", text);
    write_kept(NAME, fields, &["text"], out);
    out.end(b'}');
}

fn write_media(media: &Media, out: &mut JsonWriter) {
    let (name, data, value) = match &media.source {
        MediaSource::Base64(value) => ("inlineData", "data", value),
        MediaSource::Url(value) => ("fileData", "fileUri", value),
        MediaSource::Reference(_) => return write_text(&stand_in(media), &Fields::EMPTY, out),
    };
    let mime = media.mime.as_deref().or(match (media.kind, &media.source) {
        (MediaKind::Image, MediaSource::Base64(_)) => Some("image/png"),
        (_, MediaSource::Base64(_)) => Some("application/octet-stream"),
        _ => None,
    });
    write_object(name, &media.fields, out, |out| {
        if let Some(mime) = mime {
            out.text_member("mimeType", mime);
        }
        out.text_member(data, value);
        &["mimeType", "data", "fileUri"]
    });
}

/// Writes a part that holds one object, with the members that were kept for
/// the object and for the part around it.
fn write_object(
    name: &str,
    fields: &Fields,
    out: &mut JsonWriter,
    members: impl FnOnce(&mut JsonWriter) -> &'static [&'static str],
) {
    out.begin(b'{');
    out.key(name);
    out.begin(b'{');
    let taken = members(out);
    if let Some(inner) = kept(NAME, fields).and_then(|kept| kept.object(name)) {
        out.fields(&inner.others(taken), &[]);
    }
    out.end(b'}');
    write_kept(NAME, fields, &[name], out);
    out.end(b'}');
}
