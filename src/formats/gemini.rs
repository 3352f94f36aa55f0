//! Gemini contents (`v1beta`).
//!
//! Thought signatures stay with the part that they came with. A call without
//! an id gets one made of the function's name and its place among the calls of
//! that name in its content, and is written without one again.

use std::{collections::HashMap, slice};

use serde_json::value::RawValue;

pub use super::reply::gemini::parse_reply;
use super::{
    Conversation, accepts, arguments_object, bad_role, body, each, keep, kept, media_of,
    placeholder, with_source, write_body, write_kept,
};
use crate::{
    error::{Error, Result},
    message::{
        Fields, Media, MediaKind, MediaSource, Message, Origin, Part, Reasoning, Role, ToolCall,
        ToolResult,
        json::{JsonWriter, Members, elements, text_of},
        read::kind,
        write::object,
    },
};

pub(super) const NAME: &str = "Gemini";
const ORIGIN: Origin = Origin::Gemini;
const SIGNATURE: &str = "thoughtSignature";

/// Reads a request body.
///
/// # Errors
///
/// [`Error::is_message`] where the text is not JSON (with line and column), or
/// a content has another shape than the API takes.
pub fn parse(text: &str) -> Result<Conversation> {
    let members = body(NAME, text)?;
    let system = ["systemInstruction", "system_instruction"];
    let found = system.into_iter().find_map(|name| Some((name, members.get(name)?)));
    let known = found.map_or(vec!["contents"], |(name, _)| vec!["contents", name]);
    let read_system = |(_, value): (_, &RawValue)| {
        read_system(value).map_err(|problem| Error::message(NAME, problem))
    };
    Ok(Conversation {
        system: found.map(read_system).transpose()?.into_iter().collect(),
        messages: each(NAME, &members, "contents", read_message)?,
        fields: members.others(&known),
    })
}

/// Writes a request body: system instruction, contents, and the other fields.
#[must_use]
pub fn write(conversation: &Conversation) -> String {
    let mut names = CallNames::default();
    write_body(conversation, ["systemInstruction", "contents"], write_system, |message, out| {
        names.learn(message);
        write_message(message, &names, out);
    })
}

/// The names of the functions that were called, which a result repeats.
#[derive(Debug, Default)]
pub(crate) struct CallNames(HashMap<String, String>);

impl CallNames {
    /// Takes up the calls of a message.
    pub(crate) fn learn(&mut self, message: &Message) {
        for call in message.tool_calls() {
            self.0.insert(call.id.clone(), call.name.clone());
        }
    }

    fn of(&self, result: &ToolResult) -> String {
        let made = || result.call_id.rsplit_once('#').map(|(name, _)| name.to_owned());
        let known = || self.0.get(&result.call_id).cloned();
        kept(&ORIGIN, &result.fields)
            .and_then(|kept| kept.object("functionResponse")?.text("name"))
            .or_else(known)
            .or_else(made)
            .unwrap_or_else(|| result.call_id.clone())
    }
}

/// Reads one content, or says what is wrong with it.
pub(crate) fn read_message(value: &RawValue) -> Result<Message, String> {
    read_content(value, None)
}

/// Reads what the model said, which does not always name its role.
pub(super) fn read_spoken(value: &RawValue) -> Result<Message, String> {
    let message = read_content(value, Some(Role::Assistant))?;
    let named = Members::of(value.get()).is_some_and(|members| members.get("role").is_some());
    // A request has to name it, so that the text as it was will not do.
    let parts = message.parts().to_vec();
    Ok(if named { message } else { message.with_parts(parts) })
}

/// Reads a system instruction, or says what is wrong with it.
pub(crate) fn read_system(value: &RawValue) -> Result<Message, String> {
    read_content(value, Some(Role::System))
}

fn read_content(value: &RawValue, role: Option<Role>) -> Result<Message, String> {
    let json = value.get();
    if let Some(text) = text_of(value).filter(|_| role == Some(Role::System)) {
        return Ok(Message::system(text));
    }
    let members = Members::of(json)
        .ok_or_else(|| format!("a content is a JSON object, this is {}", kind(json)))?;
    let role = match (role, members.text("role").as_deref()) {
        (Some(role), _) => role,
        (None, Some("model")) => Role::Assistant,
        (None, Some("user" | "function" | "tool")) => Role::User,
        (None, None) if members.get("role").is_none() => Role::User,
        _ => return Err(bad_role(members.get("role"), "model or user")),
    };
    let list = match members.get("parts") {
        Some(value) => elements(value)
            .ok_or_else(|| format!("the parts are a list, this is {}", kind(value.get())))?,
        None => Vec::new(),
    };
    let mut ids = Ids::default();
    let parts: Vec<Part> = list.into_iter().map(|value| part(value, &mut ids)).collect();
    let unknown = keep(&ORIGIN, &members.others(&["role", "parts"]));
    let message = Message::new(role, parts).with_fields(unknown);
    Ok(with_source(message, ORIGIN, json, |message, out| match message.role() {
        Role::System => write_system(slice::from_ref(message), out),
        _ => write_message(message, &CallNames::default(), out),
    }))
}

/// Writes a message as a content; several of one role in a row are allowed.
pub(crate) fn write_message(message: &Message, names: &CallNames, out: &mut JsonWriter) {
    if let Some(source) = message.source(&ORIGIN) {
        return out.raw(source);
    }
    out.begin(b'{');
    out.text_member("role", role(message));
    write_parts([message], names, out);
    write_kept(&ORIGIN, message.fields(), &["role", "parts"], out);
    out.end(b'}');
}

/// Writes messages of one role as one content.
pub(crate) fn write_joined(messages: &[&Message], names: &CallNames, out: &mut JsonWriter) {
    let [first, others @ ..] = messages else { return };
    if others.is_empty() {
        return write_message(first, names, out);
    }
    out.begin(b'{');
    out.text_member("role", role(first));
    write_parts(messages.iter().copied(), names, out);
    out.end(b'}');
}

/// Writes system messages as one instruction, which needs no role.
pub(crate) fn write_system(messages: &[Message], out: &mut JsonWriter) {
    let lone = if let [message] = messages { Some(message) } else { None };
    if let Some(source) = lone.and_then(|message| message.source(&ORIGIN)) {
        return out.raw(source);
    }
    out.begin(b'{');
    write_parts(messages, &CallNames::default(), out);
    if let Some(message) = lone {
        write_kept(&ORIGIN, message.fields(), &["role", "parts"], out);
    }
    out.end(b'}');
}

fn role(message: &Message) -> &'static str {
    if message.role() == Role::Assistant { "model" } else { "user" }
}

fn write_parts<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
    names: &CallNames,
    out: &mut JsonWriter,
) {
    out.key("parts");
    out.begin(b'[');
    for part in messages.into_iter().flat_map(Message::parts) {
        write_part(part, names, out);
    }
    out.end(b']');
}

/// Makes ids where there are none.
#[derive(Default)]
struct Ids(HashMap<String, usize>);

impl Ids {
    fn next(&mut self, name: &str) -> String {
        let count = self.0.entry(name.to_owned()).or_default();
        *count = count.saturating_add(1);
        format!("{name}#{count}")
    }
}

/// Returns true for an id that [`Ids`] made.
fn is_made(id: &str, name: &str) -> bool {
    id.strip_prefix(name)
        .and_then(|rest| rest.strip_prefix('#'))
        .is_some_and(|count| count.parse::<usize>().is_ok())
}

fn part(value: &RawValue, ids: &mut Ids) -> Part {
    known_part(value, ids).unwrap_or_else(|| Part::json(value))
}

fn known_part(value: &RawValue, ids: &mut Ids) -> Option<Part> {
    let members = Members::of(value.get())?;
    let unknown = |known: &[&str]| keep(&ORIGIN, &members.others(known));
    if let Some(text) = members.text("text") {
        if members.is_true("thought") {
            let mut reasoning = Reasoning::new(text, ORIGIN);
            reasoning.signature = members.text(SIGNATURE);
            reasoning.fields = unknown(&["text", "thought", SIGNATURE]);
            return Some(reasoning.into());
        }
        return Some(Part::text_with(text, unknown(&["text"])));
    }
    if let Some(inner) = members.object("functionCall") {
        let name = inner.text("name")?;
        let arguments = inner.get("args").map_or("{}", RawValue::get);
        let id = inner.text("id").unwrap_or_else(|| ids.next(&name));
        let mut call = ToolCall::new(id, name, arguments);
        let more = inner.others(&["id", "name", "args"]);
        call.fields = with_inner(&members, "functionCall", &more);
        return Some(call.into());
    }
    if let Some(inner) = members.object("functionResponse") {
        let name = inner.text("name")?;
        let id = inner.text("id").unwrap_or_else(|| ids.next(&name));
        let (text, is_error) = answer(inner.get("response")?)?;
        let mut result = ToolResult::new(id, text);
        result.is_error = is_error;
        result.fields =
            with_inner(&members, "functionResponse", &inner.others(&["id", "response"]));
        return Some(result.into());
    }
    let (name, data, source): (_, _, fn(String) -> MediaSource) =
        if members.get("inlineData").is_some() {
            ("inlineData", "data", MediaSource::Base64)
        } else {
            ("fileData", "fileUri", MediaSource::Url)
        };
    let inner = members.object(name)?;
    let mut media = media_of(inner.text("mimeType"), source(inner.text(data)?));
    media.fields = with_inner(&members, name, &inner.others(&["mimeType", data]));
    Some(media.into())
}

/// Keeps the unknown members of a part, and those of the object inside it.
fn with_inner(outer: &Members<'_>, name: &str, inner: &Fields) -> Fields {
    let mut unknown = outer.others(&[name]);
    if let Some(inner) = object(inner) {
        unknown.push(name, inner);
    }
    keep(&ORIGIN, &unknown)
}

/// Reads a function's answer: the text of a lone `output` or `error`, or else
/// the whole object as its source text.
fn answer(response: &RawValue) -> Option<(String, bool)> {
    let members = Members::of(response.get())?;
    if members.only(&["error"])
        && let Some(text) = members.text("error")
    {
        return Some((text, true));
    }
    let output = members.text("output").filter(|_| members.only(&["output"]));
    Some((output.unwrap_or_else(|| response.get().to_owned()), false))
}

fn write_part(part: &Part, names: &CallNames, out: &mut JsonWriter) {
    match part {
        Part::Text(text) => {
            out.begin(b'{');
            out.text_member("text", &text.text);
            if let Some(fields) = &text.fields {
                write_kept(&ORIGIN, fields, &["text"], out);
            }
            out.end(b'}');
        }
        Part::Reasoning(reasoning) if reasoning.origin == ORIGIN => {
            out.begin(b'{');
            out.text_member("text", &reasoning.text);
            out.raw_member("thought", "true");
            if let Some(signature) = &reasoning.signature {
                out.text_member(SIGNATURE, signature);
            }
            write_kept(&ORIGIN, &reasoning.fields, &["text", "thought", SIGNATURE], out);
            out.end(b'}');
        }
        Part::ToolCall(call) => write_nested("functionCall", &call.fields, out, |out| {
            write_id(&call.id, &call.name, out);
            out.text_member("name", &call.name);
            out.raw_member("args", &arguments_object(&call.arguments));
            &["id", "name", "args"]
        }),
        Part::ToolResult(result) => {
            let name = names.of(result);
            write_nested("functionResponse", &result.fields, out, |out| {
                write_id(&result.call_id, &name, out);
                out.text_member("name", &name);
                out.key("response");
                write_answer(result, out);
                &["id", "name", "response"]
            });
            // The answer itself is JSON: media follow it as parts.
            for part in result.content.iter().filter(|part| matches!(part, Part::Media(_))) {
                write_part(part, names, out);
            }
        }
        Part::Media(media) => write_media(media, out),
        Part::Json(raw) if accepts(&ORIGIN, raw) => out.raw(raw.as_str()),
        Part::Json(_) | Part::Reasoning(_) => {}
    }
}

fn write_id(id: &str, name: &str, out: &mut JsonWriter) {
    if !id.is_empty() && !is_made(id, name) {
        out.text_member("id", id);
    }
}

fn write_answer(result: &ToolResult, out: &mut JsonWriter) {
    let texts = result.content.iter().flat_map(Part::texts).collect::<Vec<_>>().join("\n");
    if !result.is_error && Members::of(&texts).is_some() {
        return out.raw(texts.trim());
    }
    out.begin(b'{');
    out.text_member(if result.is_error { "error" } else { "output" }, &texts);
    out.end(b'}');
}

fn write_media(media: &Media, out: &mut JsonWriter) {
    let (name, data, value) = match &media.source {
        MediaSource::Base64(value) => ("inlineData", "data", value),
        MediaSource::Url(value) => ("fileData", "fileUri", value),
        MediaSource::Reference(_) => {
            out.begin(b'{');
            out.text_member("text", &placeholder(media));
            return out.end(b'}');
        }
    };
    let mime = media.mime.as_deref().or(match (media.kind, &media.source) {
        (MediaKind::Image, MediaSource::Base64(_)) => Some("image/png"),
        (_, MediaSource::Base64(_)) => Some("application/octet-stream"),
        _ => None,
    });
    write_nested(name, &media.fields, out, |out| {
        if let Some(mime) = mime {
            out.text_member("mimeType", mime);
        }
        out.text_member(data, value);
        &["mimeType", "data", "fileUri"]
    });
}

/// Writes a part of one object, and the members that were kept for both.
fn write_nested(
    name: &str,
    fields: &Fields,
    out: &mut JsonWriter,
    members: impl FnOnce(&mut JsonWriter) -> &'static [&'static str],
) {
    out.begin(b'{');
    out.key(name);
    out.begin(b'{');
    let taken = members(out);
    let kept = kept(&ORIGIN, fields);
    if let Some(inner) = kept.as_ref().and_then(|kept| kept.object(name)) {
        out.fields(&inner.others(taken), &[]);
    }
    out.end(b'}');
    write_kept(&ORIGIN, fields, &[name], out);
    out.end(b'}');
}
