//! OpenAI Responses: a list of items, which need not alternate.

use std::slice;

use super::{arrange::Arranged, body::Body, request::Request};
use crate::{
    formats::openai_responses::{instructions, write_message},
    message::json::JsonWriter,
};

pub(crate) fn body(arranged: &Arranged<'_>, request: &Request) -> Body {
    let mut members = request.members("max_output_tokens");
    if let Some(system) = &arranged.system {
        let mut out = JsonWriter::default();
        out.text(&instructions(slice::from_ref(&**system)));
        members.push(("instructions", out.finish()));
    }
    let mut out = JsonWriter::default();
    out.begin(b'[');
    for message in &arranged.messages {
        write_message(message, &mut out);
    }
    out.end(b']');
    members.push(("input", out.finish()));
    Body::new(members)
}
