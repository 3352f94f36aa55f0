//! What a message costs, from what its texts cost.

use super::{TokenCounter, Tokens, image::is_image};
use crate::message::{Media, MediaKind, MediaSource, Message, Part};

pub(super) fn count<C: TokenCounter + ?Sized>(counter: &C, message: &Message) -> Tokens {
    let mut total = counter.message_overhead();
    total += message.name().map_or(Tokens::ZERO, |name| counter.text(name));
    // A list in place of recursion: a tool result may hold further results, as
    // deep as a stranger likes. It allocates for tool results only.
    let mut inner: Vec<&Part> = Vec::new();
    for part in message.parts() {
        total += count_part(counter, part, &mut inner);
    }
    while let Some(part) = inner.pop() {
        total += count_part(counter, part, &mut inner);
    }
    total
}

/// Counts a part without the content of a tool result, which goes to `inner`.
fn count_part<'a, C: TokenCounter + ?Sized>(
    counter: &C,
    part: &'a Part,
    inner: &mut Vec<&'a Part>,
) -> Tokens {
    match part {
        Part::Json(raw) => count_json(counter, raw.as_str()),
        Part::Media(media) => counter.media(media),
        Part::Reasoning(reasoning) => counter.text(&reasoning.text),
        Part::Text(text) => counter.text(&text.text),
        Part::ToolCall(call) => {
            counter.text(&call.id) + counter.text(&call.name) + counter.text(&call.arguments)
        }
        Part::ToolResult(result) => {
            inner.extend(&result.content);
            counter.text(&result.call_id)
        }
    }
}

/// A string of base64 this long is a file or an image, and no provider counts
/// it as text.
const EMBEDDED_FILE: usize = 1024;

fn count_json<C: TokenCounter + ?Sized>(counter: &C, json: &str) -> Tokens {
    if json.len() < EMBEDDED_FILE {
        return counter.text(json);
    }
    let mut total = Tokens::ZERO;
    let mut start = 0;
    let mut end = 0;
    // Between quotes stands either a whole string or what is between two; an
    // escaped quote only cuts a string that is no base64 anyway.
    for piece in json.split('"') {
        let next = end + piece.len();
        if piece.len() >= EMBEDDED_FILE && is_base64(piece) {
            total += counter.text(json.get(start..end).unwrap_or_default());
            total += counter.media(&embedded(piece));
            start = next;
        }
        end = next + 1;
    }
    total + counter.text(json.get(start..).unwrap_or_default())
}

/// The file that a string of base64 holds; of an image as much as says how
/// large it is.
fn embedded(text: &str) -> Media {
    let data = text.split_once(";base64,").map_or(text, |(_, data)| data);
    if is_image(data) {
        Media::new(MediaKind::Image, MediaSource::Base64(data.into()))
    } else {
        Media::new(MediaKind::File, MediaSource::Base64(String::new()))
    }
}

fn is_base64(text: &str) -> bool {
    let data = text.split_once(";base64,").map_or(text, |(_, data)| data);
    data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/-_=".contains(&byte))
}
