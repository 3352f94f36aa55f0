//! Records: one line each, with a checksum that covers the rest of the line.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::checksum::crc32;
use crate::{
    error::{Error, Result},
    message::Message,
    session::{Pause, Revision, SessionKey, SessionOptions, View},
    store::{Commit, StoredMessage},
};

/// The version of the format that this crate writes.
pub(super) const VERSION: u32 = 1;

const START: &[u8] = b"{\"crc\":\"";

/// What a record does.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Op {
    Append,
    Commit,
    Rewrite,
    Session,
}

/// A record as it is read. Usage events are for people and for later.
#[derive(Debug, Deserialize)]
pub(super) struct Record<'a> {
    pub(super) rev: Revision,
    pub(super) op: Op,
    pub(super) key: Option<SessionKey>,
    #[serde(default)]
    pub(super) version: u32,
    /// The position of the first message.
    #[serde(default)]
    pub(super) at: u64,
    /// How many messages there are.
    #[serde(default)]
    pub(super) n: u64,
    pub(super) view: Option<View>,
    pub(super) pause: Option<Pause>,
    pub(super) options: Option<SessionOptions>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
}

impl<'a> Record<'a> {
    /// Reads a record that [`find`] has found.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let record: Self = serde_json::from_str(text).ok()?;
        record.at.checked_add(record.n).map(|_| record)
    }

    /// Returns the messages with their positions; `None` in place of one that
    /// cannot be read.
    pub(super) fn messages(&self) -> Vec<Option<StoredMessage>> {
        let texts: Vec<&RawValue> = self
            .messages
            .and_then(|messages| serde_json::from_str(messages.get()).ok())
            .unwrap_or_default();
        let read = |(position, text): (u64, &RawValue)| {
            Some(StoredMessage::new(position, message(text.get())?.into()))
        };
        (self.at..self.at.saturating_add(self.n)).zip(texts).map(read).collect()
    }
}

fn message(text: &str) -> Option<Message> {
    if text.starts_with('"') {
        let text: String = serde_json::from_str(text).ok()?;
        return Message::from_json(&text).ok();
    }
    Message::from_json(text).ok()
}

/// The first line of a file.
pub(super) fn session(rev: Revision, key: &SessionKey) -> Result<String> {
    Ok(line(&format!(r#""rev":"{rev}","op":"session","version":{VERSION},"key":{}"#, json(key)?)))
}

/// Messages at the end, all or none.
pub(super) fn append(rev: Revision, at: u64, messages: &[StoredMessage]) -> String {
    let n = messages.len();
    line(&format!(r#""rev":"{rev}","op":"append","at":{at},"n":{n},{}"#, texts(messages)))
}

/// A new history.
pub(super) fn rewrite(
    rev: Revision,
    at: u64,
    messages: &[StoredMessage],
    view: &View,
) -> Result<String> {
    let (n, view) = (messages.len(), json(view)?);
    let texts = texts(messages);
    Ok(line(&format!(r#""rev":"{rev}","op":"rewrite","at":{at},"n":{n},"view":{view},{texts}"#)))
}

/// A change of the state; `rev` is the revision after it.
pub(super) fn commit(rev: Revision, commit: &Commit) -> Result<String> {
    let mut text = format!(r#""rev":"{rev}","op":"commit""#);
    let mut member = |name: &str, value: Option<Result<String>>| {
        value.transpose().map(|value| {
            if let Some(value) = value {
                // Writing to a string cannot fail.
                let _ = write!(text, r#","{name}":{value}"#);
            }
        })
    };
    member("view", commit.view.as_ref().map(json))?;
    member("pause", commit.pause.as_ref().map(json))?;
    member("options", commit.options.as_ref().map(json))?;
    member("usage", commit.usage.as_ref().map(json))?;
    Ok(line(&text))
}

fn texts(messages: &[StoredMessage]) -> String {
    let mut out = String::from(r#""messages":["#);
    for (index, kept) in messages.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        let text = kept.message.to_json();
        if text.contains(['\n', '\r']) {
            // Line breaks between the members: as a string, to stay one line.
            out.push_str(&serde_json::Value::from(text).to_string());
        } else {
            out.push_str(&text);
        }
    }
    out.push(']');
    out
}

fn json<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::store("JSONL", "write a record", error))
}

fn line(members: &str) -> String {
    let crc = crc32([members.as_bytes(), b"}"].concat().as_slice());
    format!("{{\"crc\":\"{crc:08x}\",{members}}}\n")
}

/// The intact records of a line.
#[derive(Debug)]
pub(super) struct Found<'a> {
    /// Each with the place in the line where it ends.
    pub(super) records: Vec<(usize, &'a str)>,
    /// Whether the line is one record and nothing else.
    pub(super) clean: bool,
}

/// Finds the records of a line, also where zeros were written before one or
/// the line break between two was lost.
pub(super) fn find(line: &[u8]) -> Found<'_> {
    if let Some(text) = verified(line) {
        return Found { records: vec![(line.len(), text)], clean: true };
    }
    let starts = line.windows(START.len()).enumerate();
    let starts = starts.filter(|(_, bytes)| *bytes == START).map(|(at, _)| at);
    let mut starts = starts.peekable();
    let mut records = Vec::new();
    while let Some(start) = starts.next() {
        let end = starts.peek().copied().unwrap_or(line.len());
        let segment = line.get(start..end).unwrap_or_default();
        let ends = segment.iter().enumerate().rev().filter(|(_, byte)| **byte == b'}');
        let whole = ends.take(2).find_map(|(last, _)| {
            let text = verified(segment.get(..=last)?)?;
            Some((start.saturating_add(text.len()), text))
        });
        records.extend(whole);
    }
    Found { records, clean: false }
}

fn verified(line: &[u8]) -> Option<&str> {
    let (crc, rest) = line.strip_prefix(START)?.split_at_checked(8)?;
    let rest = rest.strip_prefix(b"\",")?;
    let crc = u32::from_str_radix(std::str::from_utf8(crc).ok()?, 16).ok()?;
    (crc == crc32(rest)).then(|| std::str::from_utf8(line).ok()).flatten()
}
