//! Records: one line each, with a checksum that covers the rest of the line.

use std::{collections::BTreeMap, fmt::Write as _};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::checksum::crc32;
use crate::{
    error::{Error, Result},
    message::Message,
    plan::Limits,
    session::{Pause, Revision, SessionKey, SessionOptions, SessionState, Size, View},
    store::{Commit, StoredCompaction, StoredMessage},
    tokens::Tokens,
    usage::{Counter, UsageEvent, UsageTotals},
};

/// The version of the format that this crate writes.
pub(super) const VERSION: u32 = 1;

/// What a record does.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(super) enum Op {
    Append,
    Commit,
    Compaction,
    Due,
    Import,
    Removed,
    Rewrite,
    Session,
    Usage,
}

/// A record as it is read.
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
    pub(super) limits: Option<Limits>,
    /// When it was written, in milliseconds since 1970.
    #[serde(default)]
    time: u64,
    /// The number of the usage event within the store.
    #[serde(default)]
    pub(super) number: u64,
    /// The number of the compaction within the session.
    #[serde(default)]
    pub(super) compaction: u64,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    sizes: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    past: Option<&'a RawValue>,
    #[serde(borrow)]
    days: Option<&'a RawValue>,
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
            Some(StoredMessage::new(position, message(text.get())?.into()).at(self.time))
        };
        (self.at..self.at.saturating_add(self.n)).zip(texts).map(read).collect()
    }

    /// Returns the messages' sizes with their positions; estimates where the
    /// record has none.
    pub(super) fn sizes(&self) -> Vec<(u64, Size)> {
        if let Some(sizes) = read::<Vec<(u64, u64)>>(self.sizes) {
            let sizes = sizes.into_iter();
            let sizes = sizes.map(|(chars, units)| Size::new(chars, Tokens::from_units(units)));
            return (self.at..self.at.saturating_add(self.n)).zip(sizes).collect();
        }
        let kept = self.messages().into_iter().flatten();
        kept.map(|kept| (kept.position, Size::estimated(&kept.message))).collect()
    }

    /// Returns the usage event.
    pub(super) fn event(&self) -> Option<UsageEvent> {
        read(self.usage)
    }

    pub(super) const fn has_event(&self) -> bool {
        self.usage.is_some()
    }

    /// Returns a compaction that was imported.
    pub(super) fn past(&self) -> Option<StoredCompaction> {
        read(self.past)
    }

    /// Returns the sums of a session that was removed.
    pub(super) fn days(&self) -> Days {
        let days: BTreeMap<u64, BTreeMap<String, u64>> = read(self.days).unwrap_or_default();
        let totals = |named: BTreeMap<String, u64>| {
            let known = named.into_iter().filter_map(|(name, n)| Some((Counter::named(&name)?, n)));
            known.collect()
        };
        days.into_iter().map(|(day, named)| (day, totals(named))).collect()
    }
}

/// Sums by day.
pub(super) type Days = BTreeMap<u64, UsageTotals>;

fn read<'a, T: Deserialize<'a>>(raw: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(raw?.get()).ok()
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

/// Messages at the end, all or none; taken at the time of the first one.
pub(super) fn append(rev: Revision, at: u64, messages: &[StoredMessage], sizes: &[Size]) -> String {
    let (n, texts) = (messages.len(), texts(messages, sizes));
    line(&format!(r#""rev":"{rev}","op":"append","at":{at},"n":{n},{texts}"#))
}

/// A new history.
pub(super) fn rewrite(
    rev: Revision,
    at: u64,
    messages: &[StoredMessage],
    sizes: &[Size],
    view: &View,
) -> Result<String> {
    let (n, view) = (messages.len(), json(view)?);
    let texts = texts(messages, sizes);
    Ok(line(&format!(r#""rev":"{rev}","op":"rewrite","at":{at},"n":{n},"view":{view},{texts}"#)))
}

/// A change of the state; `rev` is the revision after it, `event` the number
/// of its usage event, `compaction` its own where it is one.
pub(super) fn commit(
    rev: Revision,
    commit: &Commit,
    event: Option<u64>,
    compaction: Option<u64>,
) -> Result<String> {
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
    member("limits", commit.limits.as_ref().map(json))?;
    member("number", event.as_ref().map(json))?;
    member("compaction", compaction.as_ref().map(json))?;
    member("usage", commit.usage.as_ref().map(json))?;
    Ok(line(&text))
}

/// A compaction is due, whatever sizes say.
pub(super) fn due(rev: Revision) -> String {
    line(&format!(r#""rev":"{rev}","op":"due""#))
}

/// What an import says beside messages; it comes after them.
pub(super) fn import(state: &SessionState, next: u64) -> Result<String> {
    let SessionState { revision, view, options, pause } = state;
    let (view, options) = (json(view)?, json(options)?);
    let pause = json(pause)?;
    Ok(line(&format!(
        r#""rev":"{revision}","op":"import","at":{next},"n":0,"view":{view},"options":{options},"pause":{pause}"#
    )))
}

/// A compaction that was imported.
pub(super) fn past(rev: Revision, past: &StoredCompaction) -> Result<String> {
    let (number, past) = (past.number, json(past)?);
    Ok(line(&format!(r#""rev":"{rev}","op":"compaction","compaction":{number},"past":{past}"#)))
}

/// A usage event that belongs to no commit.
pub(super) fn usage(
    rev: Revision,
    key: &SessionKey,
    number: u64,
    event: &UsageEvent,
) -> Result<String> {
    let (key, event) = (json(key)?, json(event)?);
    Ok(line(&format!(
        r#""rev":"{rev}","op":"usage","key":{key},"number":{number},"usage":{event}"#
    )))
}

/// A session that is removed, and the sums of its file.
pub(super) fn removed(rev: Revision, key: &SessionKey, days: &Days) -> Result<String> {
    let named = |totals: &UsageTotals| -> BTreeMap<&str, u64> {
        totals.counters().map(|(counter, n)| (counter.name(), n)).collect()
    };
    let days: BTreeMap<u64, _> = days.iter().map(|(day, totals)| (*day, named(totals))).collect();
    let (key, days) = (json(key)?, json(&days)?);
    Ok(line(&format!(r#""rev":"{rev}","op":"removed","key":{key},"days":{days}"#)))
}

fn texts(messages: &[StoredMessage], sizes: &[Size]) -> String {
    let time = messages.first().map_or(0, |first| first.unix_millis);
    let mut out = format!(r#""time":{time},"sizes":["#);
    for (index, size) in sizes.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(out, "{comma}[{},{}]", size.chars, size.tokens.as_units());
    }
    out.push_str(r#"],"messages":["#);
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
