//! What a message takes in memory.

use super::{Fields, MediaSource, Message, MessageId, Part, Rare};

impl Message {
    /// Returns about how many bytes the message takes, with what an allocator
    /// adds to each of its blocks.
    pub(crate) fn footprint(&self) -> usize {
        let id = self.id.as_ref().map_or(0, |_| block(size_of::<MessageId>()));
        let rare = self.rare.as_ref().map_or(0, |rare| {
            let source = rare.source.as_ref().map_or(0, |(_, text)| shared(text));
            let name = rare.name.as_ref().map_or(0, |name| block(name.len()));
            sum([block(size_of::<Rare>()), source, name, of_fields(&rare.fields)])
        });
        let parts = match self.parts() {
            [part] => of_part(part),
            parts => of_list(parts),
        };
        sum([size_of::<Self>(), id, rare, parts])
    }
}

fn of_list(parts: &[Part]) -> usize {
    sum(parts.iter().map(of_part)).saturating_add(block(size_of_val(parts)))
}

/// What a part takes beside its own size.
fn of_part(part: &Part) -> usize {
    let text = |text: &Option<String>| text.as_ref().map_or(0, |text| block(text.len()));
    match part {
        Part::Json(raw) => block(size_of_val(&**raw)).saturating_add(shared(raw.as_str())),
        Part::Media(media) => {
            let (MediaSource::Base64(source)
            | MediaSource::Reference(source)
            | MediaSource::Url(source)) = &media.source;
            let texts = [block(source.len()), text(&media.mime), text(&media.alt)];
            sum([block(size_of_val(&**media)), sum(texts), of_fields(&media.fields)])
        }
        Part::Reasoning(it) => sum([
            block(size_of_val(&**it)),
            block(it.text.len()),
            text(&it.signature),
            of_fields(&it.fields),
        ]),
        Part::Text(it) => {
            let fields = it.fields.as_ref();
            let fields = fields.map_or(0, |it| block(size_of_val(&**it)) + of_fields(it));
            sum([block(it.text.len()), fields])
        }
        Part::ToolCall(call) => sum([
            block(size_of_val(&**call)),
            block(call.id.len()),
            block(call.name.len()),
            block(call.arguments.len()),
            of_fields(&call.fields),
        ]),
        Part::ToolResult(result) => sum([
            block(size_of_val(&**result)),
            block(result.call_id.len()),
            of_list(&result.content),
            of_fields(&result.fields),
        ]),
    }
}

fn of_fields(fields: &Fields) -> usize {
    // A name and a value, each a pointer and a length.
    const FIELD: usize = 4 * size_of::<usize>();
    sum(fields.iter().map(|(name, value)| sum([FIELD, block(name.len()), shared(value.as_str())])))
}

fn sum(sizes: impl IntoIterator<Item = usize>) -> usize {
    sizes.into_iter().fold(0, usize::saturating_add)
}

/// An `Arc<str>` has two counts before its text.
fn shared(text: &str) -> usize {
    block(text.len().saturating_add(2 * size_of::<usize>()))
}

/// A block of the common allocators: its length beside it, in steps of 16 bytes.
const fn block(len: usize) -> usize {
    match len {
        0 => 0,
        1..=24 => 32,
        _ => len.saturating_add(8).next_multiple_of(16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_takes_more_than_its_text() {
        assert_eq!(Message::user("hi").footprint(), 56 + 32);
        let long = "x".repeat(1000);
        let calls = Message::assistant(long.clone()).with_tool_call("c", "ls", long.clone());
        assert!((2000..2500).contains(&calls.footprint()), "{}", calls.footprint());
        let read = Message::from_json(&format!(r#"{{"content":"{long}","role":"user"}}"#)).unwrap();
        assert!((2000..2300).contains(&read.footprint()), "{}", read.footprint());
        let list = format!(r#"{{"role":"user","content":[{}1]}}"#, "1,".repeat(999));
        let parts = Message::from_json(&list).unwrap().footprint();
        assert!((96_000..97_000).contains(&parts), "{parts}");
    }
}
