//! The parts of a message.

use serde_json::value::RawValue;

use super::raw::{Fields, RawJson};

/// A piece of a message. Parts are kept whole or dropped whole.
///
/// # Example
///
/// ```
/// use session_compaction::{Media, Message, Part, Role};
///
/// let photo = Media::image_url("https://example.org/cat.png").with_alt("a grey cat");
/// let message = Message::new(Role::User, [Part::text("Whose cat is this?"), photo.into()]);
/// assert_eq!(message.parts().len(), 2);
/// assert_eq!(message.text(), "Whose cat is this?\na grey cat");
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Part {
    /// Anything else, as the JSON it came in: a provider's own item, such as
    /// an opaque compaction block or a server tool's result.
    Json(Box<RawJson>),
    /// An image, audio or another file.
    Media(Box<Media>),
    /// What the model thought before it spoke.
    Reasoning(Box<Reasoning>),
    /// Words.
    Text(Text),
    /// The model asks for a tool.
    ToolCall(Box<ToolCall>),
    /// What a tool answered.
    ToolResult(Box<ToolResult>),
}

impl Part {
    /// Creates a text part.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text::new(text))
    }

    /// Creates a text part with the fields that came beside the text.
    pub(crate) fn text_with(text: impl Into<String>, fields: Fields) -> Self {
        let fields = (!fields.is_empty()).then(|| Box::new(fields));
        Self::Text(Text { text: text.into(), fields })
    }

    /// Creates a part of JSON that this crate does not read.
    pub(crate) fn json(value: &RawValue) -> Self {
        Self::Json(Box::new(RawJson::from(value)))
    }

    /// Returns the readable texts of this part: its own, its alt text, or
    /// those of a tool result's content.
    pub(crate) fn texts(&self) -> Vec<&str> {
        match self {
            Self::Text(text) => vec![&text.text],
            Self::Media(media) => media.alt.as_deref().into_iter().collect(),
            Self::ToolResult(result) => result.content.iter().flat_map(Self::texts).collect(),
            Self::Json(_) | Self::Reasoning(_) | Self::ToolCall(_) => Vec::new(),
        }
    }

    pub(crate) fn chars(&self) -> usize {
        match self {
            Self::Text(text) => text.text.chars().count(),
            Self::Media(media) => media.alt.as_ref().map_or(0, |alt| alt.chars().count()),
            Self::Reasoning(reasoning) => reasoning.text.chars().count(),
            Self::ToolCall(call) => call.name.chars().count() + call.arguments.chars().count(),
            Self::ToolResult(result) => result.content.iter().map(Self::chars).sum(),
            Self::Json(raw) => raw.as_str().chars().count(),
        }
    }
}

/// The text of a [`Part`], with the fields that came beside it (annotations,
/// cache marks).
///
/// # Example
///
/// ```
/// use session_compaction::Text;
///
/// assert_eq!(Text::new("hello").text, "hello");
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Text {
    /// The words.
    pub text: String,
    /// Fields that this crate does not know. Boxed, since most texts have none.
    pub fields: Option<Box<Fields>>,
}

impl Text {
    /// Creates a text without further fields.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), fields: None }
    }
}

/// What kind of file a [`Media`] part holds.
///
/// # Example
///
/// ```
/// use session_compaction::{Media, MediaKind};
///
/// assert_eq!(Media::image_url("https://example.org/a.png").kind, MediaKind::Image);
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum MediaKind {
    /// Sound.
    Audio,
    /// Any other file, such as a PDF.
    File,
    /// A picture.
    Image,
}

impl MediaKind {
    /// Returns the kind's name.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Audio => "audio",
            Self::File => "file",
            Self::Image => "image",
        }
    }
}

/// Where the bytes of a [`Media`] part are.
///
/// # Example
///
/// ```
/// use session_compaction::{Media, MediaKind, MediaSource};
///
/// let song = Media::new(MediaKind::Audio, MediaSource::Base64("UklGRg==".into()));
/// assert!(matches!(song.source, MediaSource::Base64(_)));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum MediaSource {
    /// In the message, as base64. Never counted or summarized as text.
    Base64(String),
    /// With the provider, under this id.
    Reference(String),
    /// At this address.
    Url(String),
}

/// An image, audio or another file.
///
/// # Example
///
/// ```
/// use session_compaction::{Media, MediaKind, MediaSource};
///
/// let scan = Media::new(MediaKind::File, MediaSource::Reference("file-123".into()))
///     .with_mime("application/pdf")
///     .with_alt("the signed contract");
/// assert_eq!(scan.alt.as_deref(), Some("the signed contract"));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Media {
    /// Image, audio or file.
    pub kind: MediaKind,
    /// Where the bytes are.
    pub source: MediaSource,
    /// The media type, such as `image/png`.
    pub mime: Option<String>,
    /// What to say in place of it where it cannot be sent or is summarized.
    pub alt: Option<String>,
    /// Fields that this crate does not know.
    pub fields: Fields,
}

impl Media {
    /// Creates a media part.
    #[must_use]
    pub const fn new(kind: MediaKind, source: MediaSource) -> Self {
        Self { kind, source, mime: None, alt: None, fields: Fields::EMPTY }
    }

    /// Creates an image at an address.
    #[must_use]
    pub fn image_url(url: impl Into<String>) -> Self {
        Self::new(MediaKind::Image, MediaSource::Url(url.into()))
    }

    /// Sets the text that stands for it in a summary.
    #[must_use]
    pub fn with_alt(mut self, alt: impl Into<String>) -> Self {
        self.alt = Some(alt.into());
        self
    }

    /// Sets the media type.
    #[must_use]
    pub fn with_mime(mut self, mime: impl Into<String>) -> Self {
        self.mime = Some(mime.into());
        self
    }
}

impl From<Media> for Part {
    fn from(media: Media) -> Self {
        Self::Media(Box::new(media))
    }
}

/// Which provider's format a part came from. Reasoning goes back only to the
/// provider that signed it.
///
/// # Example
///
/// ```
/// use session_compaction::{Origin, Reasoning};
///
/// assert_eq!(Reasoning::new("The disk first.", Origin::Gemini).origin, Origin::Gemini);
/// ```
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Origin {
    /// Anthropic Messages.
    Anthropic,
    /// Gemini contents.
    Gemini,
    /// `reasoning_content` of OpenAI-compatible chat endpoints.
    OpenAiChat,
    /// OpenAI Responses items.
    OpenAiResponses,
    /// Another one, by name.
    Other(Box<str>),
}

impl Origin {
    /// Returns the name that stands in JSON.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::OpenAiChat => "openai_chat",
            Self::OpenAiResponses => "openai_responses",
            Self::Other(name) => name,
        }
    }
}

/// What a model thought before it spoke. Kept with its signature, or not at all.
///
/// # Example
///
/// ```
/// use session_compaction::{Origin, Reasoning};
///
/// let thought = Reasoning::new("The disk first.", Origin::Anthropic).with_signature("EqQB");
/// assert_eq!(thought.signature.as_deref(), Some("EqQB"));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Reasoning {
    /// The thought; empty where the provider redacted it.
    pub text: String,
    /// The provider's proof that the text is its own.
    pub signature: Option<String>,
    /// Who made it.
    pub origin: Origin,
    /// Fields that this crate does not know.
    pub fields: Fields,
}

impl Reasoning {
    /// Creates a thought without a signature.
    #[must_use]
    pub fn new(text: impl Into<String>, origin: Origin) -> Self {
        Self { text: text.into(), signature: None, origin, fields: Fields::EMPTY }
    }

    /// Sets the signature.
    #[must_use]
    pub fn with_signature(mut self, signature: impl Into<String>) -> Self {
        self.signature = Some(signature.into());
        self
    }
}

impl From<Reasoning> for Part {
    fn from(reasoning: Reasoning) -> Self {
        Self::Reasoning(Box::new(reasoning))
    }
}

/// A model's request to run a tool.
///
/// # Example
///
/// ```
/// use session_compaction::ToolCall;
///
/// let call = ToolCall::new("c1", "read_file", r#"{"path": "notes.txt"}"#);
/// assert_eq!(call.name, "read_file");
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ToolCall {
    /// The provider's id, which the result repeats. May be used again in a
    /// later round.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as the model wrote them: JSON as a rule, kept as text.
    pub arguments: String,
    /// Fields that this crate does not know. An object of the name `custom`
    /// marks the call of one of OpenAI's custom tools, whose arguments are text.
    pub fields: Fields,
}

impl ToolCall {
    /// Creates a tool call.
    #[must_use]
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            fields: Fields::EMPTY,
        }
    }
}

impl From<ToolCall> for Part {
    fn from(call: ToolCall) -> Self {
        Self::ToolCall(Box::new(call))
    }
}

/// What a tool answered.
///
/// # Example
///
/// ```
/// use session_compaction::ToolResult;
///
/// let result = ToolResult::new("c1", "no such file").failed();
/// assert!(result.is_error);
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// The id of the call that it answers.
    pub call_id: String,
    /// The answer: texts, and media where the provider allows them.
    pub content: Vec<Part>,
    /// True when the tool failed.
    pub is_error: bool,
    /// Fields that this crate does not know.
    pub fields: Fields,
}

impl ToolResult {
    /// Creates a result of one text.
    #[must_use]
    pub fn new(call_id: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            call_id: call_id.into(),
            content: vec![Part::text(content)],
            is_error: false,
            fields: Fields::EMPTY,
        }
    }

    /// Marks the result as a failure of the tool.
    #[must_use]
    pub fn failed(mut self) -> Self {
        self.is_error = true;
        self
    }
}

impl From<ToolResult> for Part {
    fn from(result: ToolResult) -> Self {
        Self::ToolResult(Box::new(result))
    }
}
