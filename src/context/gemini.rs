//! Gemini contents (`v1beta`).

use std::slice;

use super::{arrange::Arranged, body::Body, request::Request};
use crate::{
    formats::gemini::{CallNames, write_joined, write_system},
    message::{Message, Role, json::JsonWriter},
};

pub(crate) fn body(arranged: &Arranged<'_>, request: &Request) -> Body {
    let mut members = Vec::new();
    for (name, json) in request.members("maxOutputTokens") {
        if name == "maxOutputTokens" {
            members.push(("generationConfig", format!("{{\"{name}\":{json}}}")));
        } else {
            members.push((name, json));
        }
    }
    if let Some(system) = &arranged.system {
        let mut out = JsonWriter::default();
        write_system(slice::from_ref(&**system), &mut out);
        members.push(("systemInstruction", out.finish()));
    }
    members.push(("contents", write_contents(arranged)));
    Body::new(members)
}

/// All results of one content answer the calls of the one before it.
fn write_contents(arranged: &Arranged<'_>) -> String {
    let messages: Vec<&Message> = arranged.messages.iter().map(|message| &**message).collect();
    let mut names = CallNames::default();
    let mut out = JsonWriter::default();
    out.begin(b'[');
    for joined in messages.chunk_by(|a, b| a.role() == Role::Tool && b.role() == Role::Tool) {
        for message in joined {
            names.learn(message);
        }
        write_joined(joined, &names, &mut out);
    }
    out.end(b']');
    out.finish()
}
