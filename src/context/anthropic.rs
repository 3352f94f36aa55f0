//! Anthropic Messages (`anthropic-version: 2023-06-01`).

use super::{
    arrange::Arranged,
    body::Body,
    cache::{CachePoints, marks, takes_mark},
    request::Request,
};
use crate::{
    formats::anthropic::{role, write_joined, write_prompt},
    message::{Message, json::JsonWriter},
};

pub(crate) fn body(arranged: &Arranged<'_>, request: &Request, points: CachePoints) -> Body {
    let mut members = request.members("max_tokens");
    if let Some(system) = &arranged.system {
        let marked = system.parts().iter().rposition(takes_mark).filter(|_| points.system);
        let mut out = JsonWriter::default();
        write_prompt(system, |part| marked == Some(part), &mut out);
        members.push(("system", out.finish()));
    }
    members.push(("messages", write_messages(arranged, points)));
    Body::new(members)
}

/// Results are blocks of a user message, before what the user says.
fn write_messages(arranged: &Arranged<'_>, points: CachePoints) -> String {
    let marks = marks(arranged, points);
    let messages: Vec<&Message> = arranged.messages.iter().map(|message| &**message).collect();
    let mut out = JsonWriter::default();
    let mut start = 0;
    out.begin(b'[');
    for joined in messages.chunk_by(|before, message| role(before) == role(message)) {
        let is_marked = |message, part| marks.contains(&Some((start + message, part)));
        write_joined(joined, is_marked, &mut out);
        start += joined.len();
    }
    out.end(b']');
    out.finish()
}
