//! From messages and parts to JSON.

use std::{borrow::Cow, time::SystemTime};

use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::value::RawValue;

use super::{
    Fields, Media, MediaKind, MediaSource, Message, Origin, Part, RawJson, Reasoning, Role, Text,
    ToolCall, ToolResult,
    json::{JsonWriter, Members, Style},
    read,
};

pub(crate) const TEXT: &[&str] = &["type", "text"];
pub(crate) const REASONING: &[&str] = &["type", "text", "signature", "origin"];
pub(crate) const TOOL_CALL: &[&str] = &["type", "id", "name", "arguments"];
pub(crate) const TOOL_RESULT: &[&str] = &["type", "call_id", "content", "is_error"];
/// The type of a custom tool's call, and the field that tells it apart.
pub(crate) const CUSTOM: &str = "custom";
/// What the objects inside the media parts of OpenAI hold.
const INNER: &[&str] = &["url", "data", "format", "file_id", "file_data"];
pub(crate) const MEDIA: &[&str] = &["type", "kind", "base64", "reference", "url", "mime", "alt"];

const MESSAGE: &[&str] = &[
    "_session",
    "role",
    "name",
    "content",
    "reasoning_content",
    "tool_calls",
    "function_call",
    "tool_call_id",
];

/// Returns the fields of a message that this crate reads. A call id means
/// something in a tool message only.
pub(crate) fn known(role: Role) -> &'static [&'static str] {
    match MESSAGE {
        [others @ .., _call_id] if role != Role::Tool => others,
        all => all,
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_json()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

impl Message {
    /// Returns the serde form: the wire form and `_session`.
    pub(crate) fn to_json(&self) -> String {
        let mut json = self.wire_json().into_owned();
        if let Some(session) = self.session_json()
            && json.ends_with('}')
        {
            json.pop();
            json.push_str(",\"_session\":");
            json.push_str(&session);
            json.push('}');
        }
        json
    }

    /// Returns the OpenAI chat form without `_session`: the text that the
    /// message was read from, where it was read.
    pub(crate) fn wire_json(&self) -> Cow<'_, str> {
        if let Some(source) = self.source(&Origin::OpenAiChat) {
            return Cow::Borrowed(source);
        }
        let mut out = JsonWriter::with_style(self.style);
        self.write_canonical(&mut out);
        Cow::Owned(out.finish())
    }

    /// Returns the same text for equal messages, whatever text they were read
    /// from. Stores keep what is computed from it: its form is for good.
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    pub(crate) fn content_json(&self) -> String {
        let mut out = JsonWriter::default();
        self.write_canonical(&mut out);
        let mut text = out.finish();
        text.extend(self.flags());
        text
    }

    /// Keeps the text that the message was read from: its style, where that is
    /// all that is needed to write it again.
    pub(super) fn with_wire_text(mut self, wire: &str) -> Self {
        for style in [Style::Compact, Style::Spaced, Style::SpacedAscii] {
            self.style = style;
            let mut out = JsonWriter::with_style(style).with_room_for(wire);
            self.write_canonical(&mut out);
            if out.finish() == wire {
                return self;
            }
            if style == Style::Compact && !wire.starts_with("{\"role\": ") {
                break;
            }
        }
        self.style = Style::Compact;
        self.with_source(Origin::OpenAiChat, wire)
    }

    fn write_canonical(&self, out: &mut JsonWriter) {
        out.begin(b'{');
        out.text_member("role", self.role.as_str());
        match (self.role, self.parts.as_slice()) {
            (Role::Tool, [Part::ToolResult(result)]) if result.fields.is_empty() => {
                out.text_member("tool_call_id", &result.call_id);
                self.write_name(out);
                write_content(&result.content, out);
            }
            (Role::Tool, parts) => {
                self.write_name(out);
                out.key("content");
                write_parts(parts, out);
            }
            (_, parts) => {
                self.write_name(out);
                write_body(parts, out);
            }
        }
        out.fields(self.fields(), known(self.role));
        out.end(b'}');
    }

    fn write_name(&self, out: &mut JsonWriter) {
        if let Some(name) = self.name() {
            out.text_member("name", name);
        }
    }

    fn session_json(&self) -> Option<String> {
        let time = self.time().and_then(rfc3339);
        if self.id.is_none() && time.is_none() && self.flags().next().is_none() {
            return None;
        }
        let mut out = JsonWriter::default();
        out.begin(b'{');
        if let Some(id) = &self.id {
            out.text_member("id", &id.to_string());
        }
        if let Some(time) = time {
            out.text_member("time", &time);
        }
        for name in self.flags() {
            out.raw_member(name, "true");
        }
        out.end(b'}');
        Some(out.finish())
    }

    /// Returns the names of what is set and has no place in the wire form.
    fn flags(&self) -> impl Iterator<Item = &'static str> {
        let failed = self.role == Role::Tool
            && matches!(self.parts.as_slice(), [Part::ToolResult(result)]
                if result.is_error && result.fields.is_empty());
        let flags =
            [("pinned", self.is_pinned()), ("partial", self.is_partial()), ("error", failed)];
        flags.into_iter().filter(|(_, set)| *set).map(|(name, _)| name)
    }
}

/// Returns the text of a message without its `_session`; `None` where that is
/// not the last member, as a host may have written it.
pub(crate) fn without_session<'a>(text: &'a str, members: &Members<'_>) -> Option<Cow<'a, str>> {
    match members.0.iter().filter(|(key, _)| key == "_session").count() {
        0 => return Some(Cow::Borrowed(text)),
        1 => {}
        _ => return None,
    }
    let (_, session) = members.0.last().filter(|(key, _)| key == "_session")?;
    let (head, space) = text.strip_suffix('}').map(|head| {
        let trimmed = head.trim_end();
        (trimmed, head.strip_prefix(trimmed).unwrap_or_default())
    })?;
    let head = head.strip_suffix(session.get())?.trim_end().strip_suffix(':')?;
    let head = head.trim_end().strip_suffix("\"_session\"")?;
    let head = head.trim_end().strip_suffix(',')?;
    Some(Cow::Owned([head, space, "}"].concat()))
}

/// Returns the fields as one object, or `None` where there are none.
pub(crate) fn object(fields: &Fields) -> Option<RawJson> {
    if fields.is_empty() {
        return None;
    }
    let mut out = JsonWriter::default();
    out.begin(b'{');
    out.fields(fields, &[]);
    out.end(b'}');
    RawJson::parse(&out.finish()).ok()
}

/// Writes what is not a tool message: a thought first, content, calls last.
fn write_body(parts: &[Part], out: &mut JsonWriter) {
    let (thought, rest) = match parts {
        [Part::Reasoning(reasoning), rest @ ..] if is_plain(reasoning) => (Some(reasoning), rest),
        _ => (None, parts),
    };
    let calls = rest.iter().rev().take_while(|part| matches!(part, Part::ToolCall(_))).count();
    let (content, calls) = rest.split_at(rest.len().saturating_sub(calls));
    write_content(content, out);
    if let Some(thought) = thought {
        out.text_member("reasoning_content", &thought.text);
    }
    if !calls.is_empty() {
        out.key("tool_calls");
        out.begin(b'[');
        for call in calls {
            write_call(call, out);
        }
        out.end(b']');
    }
}

pub(crate) fn is_plain(reasoning: &Reasoning) -> bool {
    reasoning.origin == Origin::OpenAiChat
        && reasoning.signature.is_none()
        && reasoning.fields.is_empty()
}

/// Returns true for the call of a custom tool, whose arguments are any text.
/// It has a field of that name: what else the object inside it held.
pub(crate) fn is_custom(call: &ToolCall) -> bool {
    call.fields.get(CUSTOM).is_some_and(|inner| inner.as_str().starts_with('{'))
}

fn write_call(part: &Part, out: &mut JsonWriter) {
    let Part::ToolCall(call) = part else { return };
    let (kind, input) = if is_custom(call) { (CUSTOM, "input") } else { ("function", "arguments") };
    out.begin(b'{');
    out.text_member("id", &call.id);
    out.text_member("type", kind);
    out.key(kind);
    out.begin(b'{');
    out.text_member("name", &call.name);
    out.text_member(input, &call.arguments);
    write_nested(&call.fields, kind, &["name", input], out);
    out.end(b'}');
    out.fields(&call.fields, &["id", "type", kind]);
    out.end(b'}');
}

fn write_content(parts: &[Part], out: &mut JsonWriter) {
    out.key("content");
    match parts {
        [] => out.raw("null"),
        [Part::Text(Text { text, fields: None })] => out.text(text),
        _ => write_parts(parts, out),
    }
}

fn write_parts(parts: &[Part], out: &mut JsonWriter) {
    out.begin(b'[');
    for part in parts {
        write_part(part, out);
    }
    out.end(b']');
}

fn write_part(part: &Part, out: &mut JsonWriter) {
    match part {
        Part::Json(raw) => return write_json(raw, out),
        Part::Media(media) => return write_media(media, out),
        _ => out.begin(b'{'),
    }
    match part {
        Part::Text(text) => {
            out.text_member("type", "text");
            out.text_member("text", &text.text);
            if let Some(fields) = &text.fields {
                out.fields(fields, TEXT);
            }
        }
        Part::Reasoning(reasoning) => {
            out.text_member("type", "reasoning");
            out.text_member("text", &reasoning.text);
            if let Some(signature) = &reasoning.signature {
                out.text_member("signature", signature);
            }
            out.text_member("origin", reasoning.origin.as_str());
            out.fields(&reasoning.fields, REASONING);
        }
        Part::ToolCall(call) => {
            let ToolCall { id, name, arguments, fields } = &**call;
            out.text_member("type", "tool_call");
            out.text_member("id", id);
            out.text_member("name", name);
            out.text_member("arguments", arguments);
            out.fields(fields, TOOL_CALL);
        }
        Part::ToolResult(result) => {
            let ToolResult { call_id, content, is_error, fields } = &**result;
            out.text_member("type", "tool_result");
            out.text_member("call_id", call_id);
            out.key("content");
            write_parts(content, out);
            if *is_error {
                out.raw_member("is_error", "true");
            }
            out.fields(fields, TOOL_RESULT);
        }
        Part::Json(_) | Part::Media(_) => {}
    }
    out.end(b'}');
}

/// Writes a raw part bare where reading it gives the same raw part again, and
/// wrapped where it would be taken for something else.
fn write_json(raw: &RawJson, out: &mut JsonWriter) {
    let bare = raw.to::<&RawValue>().is_ok_and(|value| match read::part(value) {
        Part::Json(read) => *read == *raw,
        _ => false,
    });
    if bare {
        return out.raw(raw.as_str());
    }
    out.begin(b'{');
    out.text_member("type", "json");
    out.raw_member("value", raw.as_str());
    out.end(b'}');
}

fn write_media(media: &Media, out: &mut JsonWriter) {
    out.begin(b'{');
    if let Some((name, members)) = openai_media(media) {
        out.text_member("type", name);
        out.key(name);
        out.begin(b'{');
        for (key, value) in &members {
            out.text_member(key, value);
        }
        write_nested(&media.fields, name, INNER, out);
        out.end(b'}');
        out.fields(&media.fields, &["type", name]);
    } else {
        out.text_member("type", "media");
        write_own_media(media, out);
        out.fields(&media.fields, MEDIA);
    }
    out.end(b'}');
}

/// Returns type and members of OpenAI's part for it, if it has one.
pub(crate) fn openai_media(media: &Media) -> Option<(&'static str, Vec<(&'static str, String)>)> {
    if media.alt.is_some() {
        return None;
    }
    let mime = media.mime.as_deref();
    Some(match (media.kind, &media.source) {
        (MediaKind::Image, MediaSource::Url(url))
            if mime.is_none() && read::data_url(url).is_none() =>
        {
            ("image_url", vec![("url", url.clone())])
        }
        (MediaKind::Image, MediaSource::Base64(data)) => {
            ("image_url", vec![("url", to_data_url(mime, data)?)])
        }
        (MediaKind::Audio, MediaSource::Base64(data)) => {
            let format = mime?.strip_prefix("audio/")?.to_owned();
            ("input_audio", vec![("data", data.clone()), ("format", format)])
        }
        (MediaKind::File, MediaSource::Reference(id)) if mime.is_none() => {
            ("file", vec![("file_id", id.clone())])
        }
        (MediaKind::File, MediaSource::Base64(data)) => {
            ("file", vec![("file_data", to_data_url(mime, data)?)])
        }
        _ => return None,
    })
}

pub(crate) fn to_data_url(mime: Option<&str>, data: &str) -> Option<String> {
    if mime.is_some_and(|mime| mime.is_empty() || mime.contains(";base64,")) {
        return None;
    }
    Some(format!("data:{};base64,{data}", mime.unwrap_or_default()))
}

fn write_own_media(media: &Media, out: &mut JsonWriter) {
    let (name, value) = match &media.source {
        MediaSource::Base64(data) => ("base64", data),
        MediaSource::Reference(id) => ("reference", id),
        MediaSource::Url(url) => ("url", url),
    };
    out.text_member("kind", media.kind.as_str());
    out.text_member(name, value);
    for (name, value) in [("mime", &media.mime), ("alt", &media.alt)] {
        if let Some(value) = value {
            out.text_member(name, value);
        }
    }
}

/// Writes the fields that were read from the object inside a part or call.
fn write_nested(fields: &Fields, name: &str, known: &[&str], out: &mut JsonWriter) {
    if let Some(inner) = fields.get(name).and_then(|inner| Members::of(inner.as_str())) {
        out.fields(&inner.others(known), &[]);
    }
}

/// Returns the time to the microsecond, which databases keep as well; `None`
/// beyond the year 9999.
fn rfc3339(time: SystemTime) -> Option<String> {
    let time = jiff::Timestamp::try_from(time).ok()?;
    jiff::Timestamp::from_microsecond(time.as_microsecond()).ok().map(|time| time.to_string())
}
