//! `OpenAI` Responses items (`/v1/responses`).
//!
//! The model's items between two inputs (reasoning, messages, calls, and those
//! of built-in tools) become one assistant message, as other formats have it.
//! Reasoning and compaction items pass through untouched.

mod read;
mod write;

pub use super::reply::openai_responses::parse_reply;

pub(crate) use self::{read::Reader, write::write_message};

use super::{Conversation, body, each, write_body};
use crate::{
    error::Result,
    message::{Message, Origin, Part, json::JsonWriter},
};

pub(super) const NAME: &str = "OpenAI responses";
const ORIGIN: Origin = Origin::OpenAiResponses;

/// Reads a request body.
///
/// # Errors
///
/// [`Error::is_message`](crate::Error::is_message) where the text is not JSON
/// (with line and column), or an item has another shape than the API takes.
pub fn parse(text: &str) -> Result<Conversation> {
    let members = body(NAME, text)?;
    let system = members.text("instructions");
    let known = if system.is_some() { &["input", "instructions"][..] } else { &["input"] };
    let mut reader = Reader::default();
    match members.text("input") {
        Some(text) => reader.add(Message::user(text)),
        None => drop(each(NAME, &members, "input", |item| reader.push(item))?),
    }
    Ok(Conversation {
        system: system.map(Message::system).into_iter().collect(),
        messages: reader.finish(),
        fields: members.others(known),
    })
}

/// Writes a request body: instructions, input items, and the other fields.
#[must_use]
pub fn write(conversation: &Conversation) -> String {
    let write_system = |system: &[Message], out: &mut JsonWriter| out.text(&instructions(system));
    write_body(conversation, ["instructions", "input"], write_system, write_message)
}

/// Returns system messages as one text.
pub(crate) fn instructions(messages: &[Message]) -> String {
    let parts = messages.iter().flat_map(Message::parts);
    parts.flat_map(Part::texts).collect::<Vec<_>>().join("\n\n")
}
