//! Keeps an AI agent's conversations inside its model's context window without
//! losing what matters.

mod error;
mod message;
#[cfg_attr(not(test), expect(dead_code, reason = "the manager that plans is yet to come"))]
mod plan;
mod session;

pub use crate::{
    error::{Error, Result},
    message::{
        Fields, Media, MediaKind, MediaSource, Message, MessageId, Origin, Part, RawJson,
        Reasoning, Role, Text, ToolCall, ToolResult,
    },
    plan::{Measured, Skip, Trigger},
    session::SessionKey,
};

// So that the random histories in tests/common serve the unit tests as well.
#[cfg(test)]
extern crate self as session_compaction;
