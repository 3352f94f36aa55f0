//! Keeps an AI agent's conversations inside its model's context window without
//! losing what matters.

mod error;
pub mod formats;
mod message;
mod session;

pub use crate::{
    error::{Error, Result},
    message::{
        Fields, Media, MediaKind, MediaSource, Message, MessageId, Origin, Part, RawJson,
        Reasoning, Role, Text, ToolCall, ToolResult,
    },
    session::SessionKey,
};
