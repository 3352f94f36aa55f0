//! OpenAI Chat Completions, and the strict templates behind endpoints of that
//! form.

use super::{arrange::Arranged, body::Body, request::Request};
use crate::{formats::openai_chat::write_message, message::json::JsonWriter};

pub(crate) fn body(arranged: &Arranged<'_>, request: &Request) -> Body {
    let mut out = JsonWriter::default();
    out.begin(b'[');
    for message in arranged.system.iter().chain(&arranged.messages) {
        write_message(message, &mut out);
    }
    out.end(b']');
    let mut members = request.members("max_completion_tokens");
    members.push(("messages", out.finish()));
    Body::new(members)
}
