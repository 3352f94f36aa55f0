//! Rows as they are read.

use std::sync::Arc;

use sqlx::FromRow;

use super::{
    codec::{bound, parse, payload, signed, unsigned},
    error::Failure,
    keys::key_of,
    place::New,
};
use crate::{
    session::{Revision, SessionState},
    store::{Lease, StoredCompaction, StoredMessage, UsageRecord},
    usage::Counter,
};

/// What a write has to know of a session: all but its documents.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct Header {
    pub(crate) incarnation: i64,
    pub(crate) counter: i64,
    pub(crate) cut: i64,
    pub(crate) next: i64,
    pub(crate) window_messages: i64,
    pub(crate) window_chars: i64,
    pub(crate) window_tokens: i64,
    pub(crate) carried_tokens: i64,
    pub(crate) dormant: bool,
    pub(crate) lease_token: i64,
    pub(crate) lease_until: Option<i64>,
}

impl Header {
    pub(crate) const COLUMNS: &str = "incarnation, counter, cut, next, window_messages, \
        window_chars, window_tokens, carried_tokens, dormant, lease_token, lease_until";

    /// Returns the header of a session that is created.
    pub(crate) fn new(revision: Revision) -> Result<Self, Failure> {
        Ok(Self {
            incarnation: revision.incarnation().cast_signed(),
            counter: signed("counter", revision.counter())?,
            cut: 0,
            next: 0,
            window_messages: 0,
            window_chars: 0,
            window_tokens: 0,
            carried_tokens: 0,
            dormant: false,
            lease_token: 0,
            lease_until: None,
        })
    }

    /// Takes messages into the window.
    pub(crate) fn grow(&mut self, added: &[New]) {
        let Some(last) = added.last() else { return };
        self.next = last.position.saturating_add(1);
        self.dormant = false;
        self.window_messages = self.window_messages.saturating_add(bound(added.len() as u64));
        for new in added {
            self.window_chars = self.window_chars.saturating_add(new.chars);
            self.window_tokens = self.window_tokens.saturating_add(new.tokens);
        }
    }

    pub(crate) fn revision(&self) -> Result<Revision, Failure> {
        revision(self.incarnation, self.counter)
    }

    pub(crate) fn next(&self) -> Result<u64, Failure> {
        unsigned("next", self.next)
    }

    /// Returns true where this lease is valid.
    pub(crate) fn is_held_by(&self, lease: Lease, now: i64) -> bool {
        u64::try_from(self.lease_token) == Ok(lease.token()) && self.is_leased(now)
    }

    /// Returns true where some lease is valid.
    pub(crate) fn is_leased(&self, now: i64) -> bool {
        self.lease_until.is_some_and(|end| now < end)
    }
}

/// A session's state.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct StateRow {
    pub(crate) incarnation: i64,
    pub(crate) counter: i64,
    pub(crate) next: i64,
    pub(crate) options: Vec<u8>,
    pub(crate) pause: Option<Vec<u8>>,
    pub(crate) view: Vec<u8>,
}

impl StateRow {
    pub(crate) const COLUMNS: &str = "incarnation, counter, next, options, pause, view";

    /// Returns the state, and the position that the next message gets.
    pub(crate) fn read(&self) -> Result<(SessionState, u64), Failure> {
        let mut state = SessionState::fresh();
        state.revision = revision(self.incarnation, self.counter)?;
        state.view = parse("view", &self.view)?;
        state.options = parse("options", &self.options)?;
        state.pause = self.pause.as_ref().map(|pause| parse("pause", pause)).transpose()?;
        Ok((state, unsigned("next", self.next)?))
    }
}

/// A message.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct MessageRow {
    position: i64,
    unix_millis: i64,
    payload: Vec<u8>,
}

impl MessageRow {
    pub(crate) const COLUMNS: &str = "position, unix_millis, payload";

    pub(crate) fn read(self) -> Result<StoredMessage, Failure> {
        let message = StoredMessage::new(
            unsigned("position", self.position)?,
            Arc::new(payload(&self.payload)?),
        );
        Ok(message.at(unsigned("unix_millis", self.unix_millis)?))
    }
}

/// A compaction.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct CompactionRow {
    number: i64,
    revision: String,
    view_before: Vec<u8>,
    view_after: Vec<u8>,
    event: Vec<u8>,
}

impl CompactionRow {
    pub(crate) const COLUMNS: &str = "number, revision, view_before, view_after, event";

    pub(crate) fn read(self) -> Result<StoredCompaction, Failure> {
        let revision: Revision = self.revision.parse().map_err(|error: crate::Error| {
            Failure::Column { column: "revision", problem: error.to_string() }
        })?;
        Ok(StoredCompaction::new(
            unsigned("number", self.number)?,
            revision,
            parse("view_before", &self.view_before)?,
            parse("view_after", &self.view_after)?,
            parse("event", &self.event)?,
        ))
    }
}

/// A usage event.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct EventRow {
    number: i64,
    key: Vec<u8>,
    event: Vec<u8>,
}

impl EventRow {
    pub(crate) const COLUMNS: &str = "number, key, event";

    pub(crate) fn read(self) -> Result<UsageRecord, Failure> {
        let number = unsigned("number", self.number)?;
        Ok(UsageRecord::new(number, key_of(self.key)?, parse("event", &self.event)?))
    }
}

/// A sum.
#[derive(Clone, Debug, FromRow)]
pub(crate) struct SumRow {
    pub(crate) counter: String,
    pub(crate) value: i64,
}

impl SumRow {
    /// Returns the sum; `None` where a newer version of this crate counts
    /// something that this one does not know.
    pub(crate) fn read(&self) -> Result<Option<(Counter, u64)>, Failure> {
        let value = unsigned("value", self.value)?;
        Ok(Counter::named(&self.counter).map(|counter| (counter, value)))
    }
}

fn revision(incarnation: i64, counter: i64) -> Result<Revision, Failure> {
    let counter = unsigned("counter", counter)?;
    format!("{:016x}.{counter}", incarnation.cast_unsigned()).parse().map_err(
        |error: crate::Error| Failure::Column { column: "counter", problem: error.to_string() },
    )
}
