//! What a conversation is made of: roles, ordered parts, and whatever else the
//! host or a provider put into a message.

mod footprint;
mod id;
pub(crate) mod json;
mod part;
mod parts;
mod raw;
pub(crate) mod read;
pub(crate) mod structure;
pub(crate) mod write;

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::SystemTime,
};

use self::{json::Style, parts::Parts};

pub use self::{
    id::MessageId,
    part::{Media, MediaKind, MediaSource, Origin, Part, Reasoning, Text, ToolCall, ToolResult},
    raw::{Fields, RawJson},
};

/// Who speaks in a message.
///
/// # Example
///
/// ```
/// use session_compaction::Role;
///
/// assert_eq!(Role::Tool.as_str(), "tool");
/// assert!(Role::Developer.is_system());
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Role {
    /// The model.
    Assistant,
    /// OpenAI's newer name for the system role; treated as [`Role::System`]
    /// everywhere, and written back under its own name.
    Developer,
    /// The host: instructions that are never summarized.
    System,
    /// The results of tool calls.
    Tool,
    /// The person, or the program, that the model works for.
    User,
}

impl Role {
    /// Returns the role's name in OpenAI's chat format.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Assistant => "assistant",
            Self::Developer => "developer",
            Self::System => "system",
            Self::Tool => "tool",
            Self::User => "user",
        }
    }

    /// Returns true for [`Role::System`] and [`Role::Developer`].
    #[must_use]
    pub const fn is_system(self) -> bool {
        matches!(self, Self::Developer | Self::System)
    }
}

/// One message of a conversation.
///
/// A message is a [`Role`] and ordered [`Part`]s; name, time, flags and every
/// field that this crate does not know ride along and come back as they were
/// given. Messages are values: the methods that change one take it and give it
/// back.
///
/// # Serde form
///
/// A message reads and writes as an OpenAI chat message. What that format has
/// no place for stands in one more field, `_session`: `id`, `time` (RFC 3339),
/// `pinned`, `partial`, `error` (of a tool result). Parts that OpenAI does not
/// know are content parts of their own `type` (`reasoning`, `tool_call`,
/// `tool_result`, `media`, `json`). A message that was read is written back with
/// the very text that it was read from, key order, number spelling and white
/// space included. JSON lines therefore need care: that text may hold newlines
/// between its members.
///
/// A tool message is one tool result under its `tool_call_id`; one without it,
/// whose content is a list, holds the parts of that list as they are. Messages
/// of OpenAI's first form of tools (`function_call`, role `function`) read as
/// calls and results whose id is the function's name.
///
/// # Example
///
/// ```
/// use session_compaction::{Message, Role};
///
/// let question = Message::user("Is the disk full?");
/// let call = Message::assistant("Let me look.").with_tool_call("c1", "shell", r#"{"cmd":"df"}"#);
/// let result = Message::tool_result("c1", "42% used");
///
/// assert_eq!(question.role(), Role::User);
/// assert_eq!(call.tool_calls().count(), 1);
/// assert_eq!(result.text(), "42% used");
/// ```
#[derive(Clone, Debug)]
pub struct Message {
    role: Role,
    style: Style,
    parts: Parts,
    // Boxed, since a session and an import hold many messages: those of an
    // import have no id, and most have nothing rare.
    id: Option<Box<MessageId>>,
    rare: Option<Box<Rare>>,
}

#[derive(Clone, Debug, Default)]
struct Rare {
    name: Option<String>,
    time: Option<SystemTime>,
    pinned: bool,
    partial: bool,
    fields: Fields,
    /// The text that the message was read from, where writing it anew in that
    /// format would give another one in any style. A change of the content
    /// clears it.
    source: Option<(Origin, Arc<str>)>,
}

impl Rare {
    fn is_empty(&self) -> bool {
        self.name.is_none()
            && self.time.is_none()
            && !self.pinned
            && !self.partial
            && self.fields.is_empty()
            && self.source.is_none()
    }
}

impl Message {
    /// Creates a message from a role and its parts.
    #[must_use]
    pub fn new(role: Role, parts: impl IntoIterator<Item = Part>) -> Self {
        let parts = parts.into_iter().collect();
        Self { role, style: Style::Compact, parts, id: None, rare: None }
    }

    /// Creates a system message.
    #[must_use]
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, [Part::text(text)])
    }

    /// Creates a user message.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, [Part::text(text)])
    }

    /// Creates an assistant message. An empty text gives a message without
    /// parts, to which tool calls are added.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        let text = text.into();
        let part = (!text.is_empty()).then(|| Part::text(text));
        Self::new(Role::Assistant, part)
    }

    /// Creates the result of the tool call with the given id.
    #[must_use]
    pub fn tool_result(call_id: impl Into<String>, content: impl Into<String>) -> Self {
        Self::new(Role::Tool, [Part::ToolResult(Box::new(ToolResult::new(call_id, content)))])
    }

    /// Creates the result of a tool call that failed.
    #[must_use]
    pub fn tool_error(call_id: impl Into<String>, content: impl Into<String>) -> Self {
        let mut result = ToolResult::new(call_id, content);
        result.is_error = true;
        Self::new(Role::Tool, [Part::ToolResult(Box::new(result))])
    }

    /// Adds a part at the end.
    #[must_use]
    pub fn with_part(mut self, part: Part) -> Self {
        self.forget_source();
        self.parts.push(part);
        self
    }

    /// Puts other parts in place of all parts.
    pub(crate) fn with_parts(mut self, parts: Vec<Part>) -> Self {
        self.forget_source();
        self.parts = parts.into();
        self
    }

    /// Creates a message of other parts that has this one's role, name and
    /// fields, and nothing else of it.
    pub(crate) fn of_parts(&self, parts: impl IntoIterator<Item = Part>) -> Self {
        let other = Self::new(self.role, parts).with_fields(self.fields().clone());
        match self.name() {
            Some(name) => other.with_name(name),
            None => other,
        }
    }

    /// Adds a tool call: its id, the tool's name, and the arguments as JSON
    /// text, which is kept as it is.
    #[must_use]
    pub fn with_tool_call(
        self,
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        self.with_part(Part::ToolCall(Box::new(ToolCall::new(id, name, arguments))))
    }

    /// Sets the message's id, by which adding it again is recognized.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<MessageId>) -> Self {
        self.id = Some(Box::new(id.into()));
        self
    }

    /// Sets the name of the one who speaks.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.forget_source();
        self.rare_mut().name = Some(name.into());
        self
    }

    /// Sets when the message was written. Kept to the microsecond.
    #[must_use]
    pub fn with_time(mut self, time: SystemTime) -> Self {
        self.rare_mut().time = Some(time);
        self
    }

    /// Marks the message as pinned: it is sent word for word for ever.
    #[must_use]
    pub fn pinned(mut self) -> Self {
        self.rare_mut().pinned = true;
        self
    }

    /// Marks the message as partial: its stream ended before it was complete.
    #[must_use]
    pub fn partial(mut self) -> Self {
        self.rare_mut().partial = true;
        self
    }

    /// Sets the fields that this crate does not know. One that takes a name of
    /// the serde form, such as `content`, is not written.
    #[must_use]
    pub fn with_fields(mut self, fields: Fields) -> Self {
        self.forget_source();
        if self.rare.is_some() || !fields.is_empty() {
            self.rare_mut().fields = fields;
        }
        self
    }

    /// Returns who speaks.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Returns the parts in order.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        self.parts.as_slice()
    }

    /// Returns the id, which every message of a session has.
    #[must_use]
    pub const fn id(&self) -> Option<&MessageId> {
        match &self.id {
            Some(id) => Some(id),
            None => None,
        }
    }

    /// Returns the name of the one who speaks.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.rare.as_ref()?.name.as_deref()
    }

    /// Returns when the message was written.
    #[must_use]
    pub fn time(&self) -> Option<SystemTime> {
        self.rare.as_ref()?.time
    }

    /// Returns true when the message is pinned.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.pinned)
    }

    /// Returns true when the message's stream ended before it was complete.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.partial)
    }

    /// Returns the fields that this crate does not know.
    #[must_use]
    pub fn fields(&self) -> &Fields {
        static NONE: Fields = Fields::EMPTY;
        self.rare.as_ref().map_or(&NONE, |rare| &rare.fields)
    }

    /// Returns the text of all parts, tool results included, joined by
    /// newlines. Reasoning and tool calls are left out.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for piece in self.parts().iter().flat_map(Part::texts) {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(piece);
        }
        text
    }

    /// Returns the tool calls in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts().iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(&**call),
            _ => None,
        })
    }

    /// Returns the tool results in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.parts().iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(&**result),
            _ => None,
        })
    }

    /// Returns true when a person speaks: a user message that is not made of
    /// tool results alone (as Anthropic sends them). Turns begin here.
    #[must_use]
    pub fn is_human(&self) -> bool {
        self.role == Role::User
            && (self.parts().is_empty()
                || self.parts().iter().any(|part| !matches!(part, Part::ToolResult(_))))
    }

    /// Returns the number of characters in all parts, tool calls included.
    #[must_use]
    pub fn chars(&self) -> usize {
        self.parts().iter().map(Part::chars).sum()
    }

    /// Tells contents apart without keeping them: equal for equal messages,
    /// within one process.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let flags = (self.is_pinned(), self.is_partial());
        (self.role, self.name(), flags).hash(&mut hasher);
        format!("{:?}{:?}", self.parts(), self.fields()).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the text that the message was read from in that format.
    pub(crate) fn source(&self, format: &Origin) -> Option<&str> {
        let (origin, text) = self.rare.as_ref()?.source.as_ref()?;
        (origin == format).then_some(&**text)
    }

    /// Takes the text that the message was read from out of it, with its format.
    pub(crate) fn take_source(&mut self) -> Option<(Origin, Arc<str>)> {
        let rare = self.rare.as_mut()?;
        let source = rare.source.take();
        if rare.is_empty() {
            self.rare = None;
        }
        source
    }

    pub(crate) fn with_source(mut self, format: Origin, text: impl Into<Arc<str>>) -> Self {
        self.rare_mut().source = Some((format, text.into()));
        self
    }

    fn forget_source(&mut self) {
        self.style = Style::Compact;
        if let Some(rare) = &mut self.rare {
            rare.source = None;
        }
    }

    fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
}

/// Two messages are equal when a model would see no difference and the host
/// would get the same back: role, parts, name, flags and unknown fields. The
/// id and the time are not compared, and neither is the spelling of the JSON.
impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.role == other.role
            && self.parts() == other.parts()
            && self.name() == other.name()
            && self.is_pinned() == other.is_pinned()
            && self.is_partial() == other.is_partial()
            && self.fields() == other.fields()
    }
}

impl Eq for Message {}
