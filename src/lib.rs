//! Keeps an AI agent's conversations inside its model's context window without
//! losing what matters.

mod error;
mod message;
mod session;
mod summarize;
mod tokens;

pub use crate::{
    error::{Error, Result},
    message::{
        Fields, Media, MediaKind, MediaSource, Message, MessageId, Origin, Part, RawJson,
        Reasoning, Role, Text, ToolCall, ToolResult,
    },
    session::SessionKey,
    tokens::{ByteEstimate, CharsPerToken, TokenCounter, Tokens, estimate_tokens},
};
