//! Tells by its members what a record is.

use super::Format;
use crate::message::json::{Members, elements, has_too_many_values, text_of};

/// What a JSON object of a transcript is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Shape {
    /// A body or session with a list of messages.
    Body(Format),
    /// A line of a tool's own log.
    Line(Format),
    /// One message.
    Message(Format),
}

impl Shape {
    pub(super) const fn format(self) -> Format {
        match self {
            Self::Body(format) | Self::Line(format) | Self::Message(format) => format,
        }
    }

    pub(super) fn of(members: &Members<'_>) -> Option<Self> {
        let has = |name: &str| members.get(name).is_some();
        let list = |name: &str| members.get(name).is_some_and(|it| it.get().starts_with('['));
        let kind = members.text("type").unwrap_or_default();
        Some(if list("messages") {
            Self::Body(body(members))
        } else if list("contents") {
            Self::Body(Format::Gemini)
        } else if list("conversations") || list("conversation") {
            Self::Body(Format::ShareGpt)
        } else if has("input") && kind.is_empty() && !has("role") {
            Self::Body(Format::OpenAiResponses)
        } else if members.object("payload").is_some() || has("record_type") {
            Self::Line(Format::Codex)
        } else if !has("role")
            && ["uuid", "sessionId", "leafUuid", "snapshot"].iter().any(|it| has(it))
        {
            Self::Line(Format::ClaudeCode)
        } else if has("lc")
            || (!has("role") && is_langchain(&kind) && (has("data") || has("content")))
        {
            Self::Message(Format::LangChain)
        } else if has("from") && has("value") {
            Self::Message(Format::ShareGpt)
        } else if list("parts") && !has("content") {
            Self::Message(Format::Gemini)
        } else if is_item(members, &kind) {
            Self::Message(Format::OpenAiResponses)
        } else if is_anthropic(members) {
            Self::Message(Format::Anthropic)
        } else if has("role") {
            Self::Message(Format::OpenAiChat)
        } else {
            return None;
        })
    }
}

fn body(members: &Members<'_>) -> Format {
    let list = members.get("messages").and_then(elements).unwrap_or_default();
    let mut messages = list.iter().filter_map(|it| Members::of(it.get()));
    if messages.clone().next().is_some_and(|first| {
        Shape::of(&first).is_some_and(|shape| shape == Shape::Message(Format::LangChain))
    }) {
        return Format::LangChain;
    }
    let has = |name: &str| members.get(name).is_some();
    if members.text("key").is_some() && (has("summary") || has("created") || has("updated")) {
        return Format::PicoClaw;
    }
    if has("system") || has("anthropic_version") || messages.any(|it| is_anthropic(&it)) {
        return Format::Anthropic;
    }
    Format::OpenAiChat
}

fn is_langchain(kind: &str) -> bool {
    matches!(
        kind.trim_end_matches("Chunk").trim_end_matches("Message").to_ascii_lowercase().as_str(),
        "ai" | "chat" | "function" | "generic" | "human" | "system" | "tool"
    )
}

/// Items of OpenAI Responses have a type; so has an answer of Anthropic.
fn is_item(members: &Members<'_>, kind: &str) -> bool {
    match kind {
        "" => false,
        "message" => members.get("stop_reason").is_none() && !is_anthropic(members),
        "compaction" | "item_reference" | "reasoning" => true,
        _ => {
            members.get("call_id").is_some() || kind.ends_with("_call") || kind.ends_with("_output")
        }
    }
}

/// Returns true for a message with a block that only Anthropic has.
fn is_anthropic(members: &Members<'_>) -> bool {
    if !matches!(members.text("role").as_deref(), Some("assistant" | "user")) {
        return false;
    }
    let content = members.get("content").filter(|it| !has_too_many_values(it.get()));
    let blocks = content.and_then(elements).unwrap_or_default();
    blocks.into_iter().filter_map(|block| Members::of(block.get())).any(|block| {
        let has = |name: &str| block.get(name).is_some();
        match block.get("type").and_then(text_of).as_deref() {
            Some("document" | "image") => has("source"),
            Some("redacted_thinking" | "server_tool_use") => true,
            Some("thinking") => has("signature"),
            Some("tool_result") => has("tool_use_id"),
            Some("tool_use") => has("input"),
            _ => false,
        }
    })
}
