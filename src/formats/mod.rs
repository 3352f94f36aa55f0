//! Conversations in the JSON of providers, and transcripts of other tools.
//!
//! Each provider's module has `parse`, from a request body to a
//! [`Conversation`], and `write`, back again; and `parse_reply`, from an answer
//! to a [`Reply`]. Nothing is lost between: what
//! this crate does not read is kept as its source text, in fields that bear the
//! provider's name (`anthropic`, `gemini`, `openai_responses`), and goes back
//! to that provider only. A message that was not changed is written with the
//! very text that it was read from; one that was stored in between is written
//! anew, with the same meaning.
//!
//! | format | read | write | version |
//! |---|---|---|---|
//! | [OpenAI Chat Completions](openai_chat) | yes | yes | `/v1`, with its first form of tools |
//! | [OpenAI Responses](openai_responses) | yes | yes | `/v1` |
//! | [Anthropic Messages](anthropic) | yes | yes | `2023-06-01` |
//! | [Gemini](gemini) | yes | yes | `v1beta` |
//! | Claude Code | yes | no | session files since 1.0 |
//! | Codex | yes | no | rollout files, both forms |
//! | LangChain | yes | no | `messages_to_dict`, `dumpd`, model dumps |
//! | picoclaw | yes | no | session JSON; JSON lines with a meta file |
//! | ShareGPT | yes | no | |
//!
//! # Example
//!
//! ```
//! use session_compaction::{Role, formats};
//!
//! let body = r#"{"model":"m","system":"Be brief.","messages":[{"role":"user","content":"hi"}]}"#;
//! let conversation = formats::anthropic::parse(body)?;
//! assert_eq!(conversation.system[0].text(), "Be brief.");
//! assert_eq!(conversation.messages[0].role(), Role::User);
//! assert_eq!(formats::anthropic::parse(&formats::anthropic::write(&conversation))?, conversation);
//! # Ok::<(), session_compaction::Error>(())
//! ```

pub mod anthropic;
pub mod gemini;
mod import;
pub mod openai_chat;
pub mod openai_responses;
pub(crate) mod refusal;
mod reply;

pub use self::{
    import::{Import, Importer, SkipReason, Skipped, import},
    reply::{Reply, Stop},
};

use std::{borrow::Cow, fmt, str::FromStr};

use serde_json::value::RawValue;

use crate::{
    error::{Error, Result},
    message::{
        Fields, Media, MediaKind, MediaSource, Message, Origin, Part, RawJson,
        json::{JsonWriter, Members, alike, elements},
        read, write,
    },
};

/// The formats that can be read. Their names, as [`FromStr`] and
/// [`Display`](fmt::Display) have them, are lower case with hyphens.
///
/// # Example
///
/// ```
/// use session_compaction::formats::Format;
///
/// assert_eq!("claude-code".parse(), Ok(Format::ClaudeCode));
/// assert!("word".parse::<Format>().unwrap_err().contains("claude-code"));
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Format {
    /// Request bodies and messages of Anthropic Messages.
    Anthropic,
    /// Session files of Claude Code, JSON lines.
    ClaudeCode,
    /// Rollout files of Codex, JSON lines.
    Codex,
    /// Request bodies and contents of Gemini.
    Gemini,
    /// Message dumps of LangChain, in both of its dialects.
    LangChain,
    /// Request bodies and messages of OpenAI Chat Completions.
    OpenAiChat,
    /// Request bodies and items of OpenAI Responses.
    OpenAiResponses,
    /// Sessions of picoclaw: one JSON file, or JSON lines and a meta file.
    PicoClaw,
    /// `ShareGPT`: `conversations` of `from` and `value`.
    ShareGpt,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 9] = [
        Self::Anthropic,
        Self::ClaudeCode,
        Self::Codex,
        Self::Gemini,
        Self::LangChain,
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::PicoClaw,
        Self::ShareGpt,
    ];

    /// Returns the format's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::LangChain => "langchain",
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::PicoClaw => "picoclaw",
            Self::ShareGpt => "sharegpt",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|format| format.as_str() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            format!("no format is named {name:?}; there are {names}")
        })
    }
}

/// The body of a request to a provider.
///
/// # Example
///
/// ```
/// use session_compaction::{Message, formats::{Conversation, openai_chat}};
///
/// let conversation = Conversation::new([Message::user("hi")]);
/// assert_eq!(openai_chat::write(&conversation), r#"{"messages":[{"role":"user","content":"hi"}]}"#);
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Conversation {
    /// What the format holds outside of its messages: Anthropic's `system`,
    /// Gemini's `systemInstruction`, the `instructions` of OpenAI Responses.
    pub system: Vec<Message>,
    /// The messages in order.
    pub messages: Vec<Message>,
    /// Every other field of the body, such as the model and its tools.
    pub fields: Fields,
}

impl Conversation {
    /// Creates a conversation without system prompt and further fields.
    #[must_use]
    pub fn new(messages: impl IntoIterator<Item = Message>) -> Self {
        Self { messages: messages.into_iter().collect(), ..Self::default() }
    }
}

/// Reads a body's object.
fn body<'a>(format: &'static str, text: &'a str) -> Result<Members<'a>> {
    serde_json::from_str(text).map_err(|error| Error::message(format, error.to_string()))
}

/// Reads each element of a list in a body; an error names the element.
fn each<T>(
    format: &'static str,
    members: &Members<'_>,
    name: &str,
    mut read: impl FnMut(&RawValue) -> Result<T, String>,
) -> Result<Vec<T>> {
    let list = members.get(name).and_then(elements);
    let list =
        list.ok_or_else(|| Error::message(format, format!("{name} is missing or no list")))?;
    let read = |(at, value)| {
        read(value).map_err(|problem| Error::message(format, format!("{name}[{at}]: {problem}")))
    };
    list.into_iter().enumerate().map(read).collect()
}

/// Writes a body: the system prompt and the list of messages under the names
/// that the format has for them, and the other fields.
fn write_body(
    conversation: &Conversation,
    [system, messages]: [&'static str; 2],
    write_system: impl FnOnce(&[Message], &mut JsonWriter),
    mut write_message: impl FnMut(&Message, &mut JsonWriter),
) -> String {
    let mut out = JsonWriter::default();
    out.begin(b'{');
    if !conversation.system.is_empty() {
        out.key(system);
        write_system(&conversation.system, &mut out);
    }
    out.key(messages);
    out.begin(b'[');
    for message in &conversation.messages {
        write_message(message, &mut out);
    }
    out.end(b']');
    out.fields(&conversation.fields, &[messages]);
    out.end(b'}');
    out.finish()
}

/// Keeps the text that a message was read from, where writing it anew gives
/// another one.
fn with_source(
    message: Message,
    format: Origin,
    source: &str,
    write: impl FnOnce(&Message, &mut JsonWriter),
) -> Message {
    let mut out = JsonWriter::default().with_room_for(source);
    write(&message, &mut out);
    if out.finish() == source { message } else { message.with_source(format, source) }
}

/// Lets go of the text that a message was read from, where what would be
/// written in its place differs in nothing but spelling.
fn without_spelling(mut message: Message) -> Message {
    // Whose an opaque part is can only be told by where it was found.
    if message.parts().iter().any(|part| matches!(part, Part::Json(_))) {
        return message;
    }
    let Some((format, source)) = message.take_source() else { return message };
    let mut out = JsonWriter::default().with_room_for(&source);
    out.begin(b'[');
    match format {
        Origin::Anthropic => anthropic::write_message(&message, &mut out),
        Origin::Gemini => gemini::write_message(&message, &gemini::CallNames::default(), &mut out),
        Origin::OpenAiResponses => openai_responses::write_message(&message, &mut out),
        Origin::OpenAiChat => openai_chat::write_message(&message, &mut out),
        Origin::Other(_) => {}
    }
    out.end(b']');
    let written = out.finish();
    let written = written.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or_default();
    let is_alike = if format == Origin::OpenAiResponses {
        // Items in a row.
        alike(&format!("[{written}]"), &format!("[{source}]"))
    } else {
        alike(written, &source)
    };
    if is_alike { message } else { message.with_source(format, source) }
}

/// Returns the members that the format's reader does not know, as one field
/// that bears the format's name.
fn keep(format: &Origin, unknown: &Fields) -> Fields {
    let mut fields = Fields::EMPTY;
    if let Some(object) = write::object(unknown) {
        fields.push(format.as_str(), object);
    }
    fields
}

/// Writes what [`keep`] kept.
fn write_kept(format: &Origin, fields: &Fields, taken: &[&str], out: &mut JsonWriter) {
    if let Some(kept) = kept(format, fields) {
        out.fields(&kept.others(taken), &[]);
    }
}

fn kept<'a>(format: &Origin, fields: &'a Fields) -> Option<Members<'a>> {
    Members::of(fields.get(format.as_str())?.as_str())
}

/// Returns a call's arguments as the object that most providers want.
fn arguments_object(arguments: &str) -> Cow<'_, str> {
    if Members::of(arguments).is_some() {
        return Cow::Borrowed(arguments.trim());
    }
    let mut out = JsonWriter::default();
    out.begin(b'{');
    if !arguments.trim().is_empty() {
        out.text_member("arguments", arguments);
    }
    out.end(b'}');
    Cow::Owned(out.finish())
}

/// Returns what to say in place of media that a provider does not take.
fn placeholder(media: &Media) -> String {
    let kind = media.kind.as_str();
    match (&media.alt, &media.source) {
        (Some(alt), _) => format!("[{kind}: {alt}]"),
        (None, MediaSource::Url(url)) => format!("[{kind}: {url}]"),
        _ => format!("[{kind}]"),
    }
}

/// Returns true where an opaque part may be sent to a provider: it is its own,
/// or of no known provider.
pub(crate) fn accepts(format: &Origin, raw: &RawJson) -> bool {
    owner(raw).is_none_or(|owner| owner == *format)
}

/// Tells by its type whose item an opaque part is.
fn owner(raw: &RawJson) -> Option<Origin> {
    let members = Members::of(raw.as_str())?;
    let Some(kind) = members.text("type") else {
        let gemini = ["executableCode", "codeExecutionResult", "toolCall", "toolResponse"];
        return gemini.iter().any(|name| members.get(name).is_some()).then_some(Origin::Gemini);
    };
    Some(match kind.as_str() {
        "compaction" if members.get("encrypted_content").is_some() => Origin::OpenAiResponses,
        "compaction" | "container_upload" | "document" | "mcp_tool_use" | "redacted_thinking"
        | "search_result" | "server_tool_use" | "thinking" | "tool_addition" | "tool_reference"
        | "tool_result" | "tool_use" => Origin::Anthropic,
        "custom" | "file" | "image_url" | "input_audio" | "refusal" | "video_url" => {
            Origin::OpenAiChat
        }
        "additional_tools"
        | "item_reference"
        | "mcp_approval_request"
        | "mcp_approval_response"
        | "mcp_list_tools"
        | "message"
        | "reasoning" => Origin::OpenAiResponses,
        kind if kind.ends_with("_tool_result") => Origin::Anthropic,
        kind if kind.ends_with("_call") || kind.ends_with("_output") => Origin::OpenAiResponses,
        kind if kind.starts_with("input_") || kind.starts_with("output_") => {
            Origin::OpenAiResponses
        }
        _ => return None,
    })
}

/// Makes an image, audio or file of a media type.
fn media_of(mime: Option<String>, source: MediaSource) -> Media {
    let kind = match mime.as_deref() {
        Some(mime) if mime.starts_with("image/") => MediaKind::Image,
        Some(mime) if mime.starts_with("audio/") => MediaKind::Audio,
        _ => MediaKind::File,
    };
    Media { mime, ..Media::new(kind, source) }
}

/// Says what is wrong with a role.
fn bad_role(value: Option<&RawValue>, allowed: &str) -> String {
    let role = value.map_or("missing", RawValue::get);
    format!("the role is {allowed}, this one is {}", read::excerpt(role))
}
