//! What memory keeps of a session's file: never its messages.

use std::sync::Arc;

use super::record::{Op, Record};
use crate::{
    plan::{Limits, Measured},
    session::{Revision, SessionState, Size, View},
    tokens::Tokens,
};

/// What the acknowledged part of a file says.
#[derive(Clone, Debug, Default)]
pub(super) struct Tip {
    /// The session; `None` where the file holds none, or is not there.
    pub(super) held: Option<Held>,
    /// How many bytes are acknowledged. What lies behind them is cut off by
    /// the next write.
    pub(super) len: u64,
    /// Set where the last line still lacks its line break.
    pub(super) unclosed: bool,
}

/// A session in a file.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) state: Arc<SessionState>,
    /// The position that the next message gets.
    pub(super) next: u64,
    /// How many messages the file holds.
    pub(super) messages: u64,
    /// Ids of messages below this position are free again.
    pub(super) ids_from: u64,
    /// Whether the file says whose it is; damage may have cost it that line.
    pub(super) named: bool,
    /// A compaction is due, whatever sizes say.
    pub(super) marked: bool,
    /// Imported, and nothing was appended since.
    pub(super) dormant: bool,
    /// The session's own.
    pub(super) limits: Option<Limits>,
    /// How large what is sent is; `None` until somebody asks.
    pub(super) totals: Option<Totals>,
    /// The number of the newest compaction.
    pub(super) compactions: u64,
    /// The record that set the view; `None` for the first one.
    pub(super) view_at: Option<At>,
}

/// Where a record stands: by its line, and the counter of its revision.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) line: u64,
    pub(super) counter: u64,
}

/// Where a compaction is kept. Views are read when they are asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Past {
    pub(super) number: u64,
    pub(super) at: At,
    /// The record that set the view before.
    pub(super) before: Option<At>,
    /// Whether it came with an import, which holds all of it.
    pub(super) imported: bool,
}

/// A record that cannot follow those before it.
#[derive(Debug)]
pub(super) struct Misplaced;

/// How large what is sent of the messages is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    /// In the window.
    pub(super) messages: u64,
    /// In the window.
    pub(super) chars: u64,
    /// Of the window and of what is carried.
    pub(super) tokens: Tokens,
}

/// Where in a file the messages from a position on begin. One for each block
/// of the file, so that a page of a transcript costs no reading of it all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    pub(super) position: u64,
    pub(super) offset: u64,
}

/// How many bytes of a file share a mark.
const BLOCK: u64 = 32 * 1024;

impl Held {
    pub(super) fn new(revision: Revision) -> Self {
        let state = SessionState { revision, ..SessionState::fresh() };
        Self {
            state: Arc::new(state),
            next: 0,
            messages: 0,
            ids_from: 0,
            named: false,
            marked: false,
            dormant: false,
            limits: None,
            totals: None,
            compactions: 0,
            view_at: None,
        }
    }

    pub(super) fn incarnation(&self) -> u64 {
        self.state.revision.incarnation()
    }
}

impl Tip {
    /// Takes a record of the line at this offset, and returns the compaction
    /// that it is, if it is one; an error where it cannot follow those before
    /// it, as with a block of the file that damage has doubled.
    pub(super) fn apply(
        &mut self,
        record: Record<'_>,
        line: u64,
    ) -> Result<Option<Past>, Misplaced> {
        let held = self.held.get_or_insert_with(|| Held::new(record.rev));
        let (ours, theirs) = (held.state.revision, record.rev);
        if ours.incarnation() != theirs.incarnation() {
            return Err(Misplaced);
        }
        let adds = matches!(record.op, Op::Append | Op::Import | Op::Rewrite);
        if adds && record.at < held.next {
            return Err(Misplaced);
        }
        let changes = matches!(record.op, Op::Commit | Op::Import | Op::Rewrite);
        let rises = record.view.is_some() && record.op != Op::Import;
        if changes && theirs.counter() < ours.counter().saturating_add(u64::from(rises)) {
            return Err(Misplaced);
        }
        if adds {
            held.next = record.at.saturating_add(record.n);
            held.messages = held.messages.saturating_add(record.n);
            held.totals = None;
        }
        held.named |= record.op == Op::Session;
        held.marked |= record.op == Op::Due;
        if adds && record.op != Op::Append {
            held.dormant = record.op == Op::Import;
        }
        held.dormant &= record.op != Op::Append || record.n == 0;
        let at = At { line, counter: theirs.counter() };
        let past = held.compaction(&record, at);
        if !changes && theirs.counter() <= ours.counter() {
            return Ok(past);
        }
        if record.view.is_some() {
            held.set_view(at);
            held.marked &= record.op != Op::Commit;
        }
        let state = Arc::make_mut(&mut held.state);
        state.revision = if theirs.counter() > ours.counter() { theirs } else { ours };
        if changes {
            if record.op == Op::Rewrite {
                held.ids_from = record.at;
            }
            held.limits = record.limits.or(held.limits);
            state.pause = record.pause;
            state.options = record.options.unwrap_or_else(|| std::mem::take(&mut state.options));
            state.view = record.view.unwrap_or_else(|| std::mem::take(&mut state.view));
            // The messages that it speaks of may be lost; their places are not free.
            held.next = held.next.max(first_free(&state.view));
        }
        Ok(past)
    }
}

impl Held {
    /// The compaction that a record is, if it is one.
    fn compaction(&mut self, record: &Record<'_>, at: At) -> Option<Past> {
        let imported = record.op == Op::Compaction;
        let is_one = record.op == Op::Commit && record.view.is_some() && record.has_event();
        if !imported && !is_one {
            return None;
        }
        let number = record.compaction.max(self.compactions.saturating_add(1));
        self.compactions = number;
        Some(Past { number, at, before: self.view_at, imported })
    }

    /// Another view holds, which this record has set.
    pub(super) fn set_view(&mut self, at: At) {
        self.view_at = Some(at);
        self.totals = None;
    }
}

impl Totals {
    pub(super) fn add(&mut self, size: Size) {
        self.messages = self.messages.saturating_add(1);
        self.chars = self.chars.saturating_add(size.chars);
        self.tokens += size.tokens;
    }

    pub(super) fn measured(self) -> Measured {
        let Self { messages, chars, tokens } = self;
        Measured { messages, chars, tokens: tokens.count() }
    }
}

/// The first position that a view does not speak of.
pub(super) fn first_free(view: &View) -> u64 {
    view.rewound.last().map_or(view.cut, |last| last.end.max(view.cut))
}

/// Adds a mark where a new block has begun.
pub(super) fn mark(marks: &mut Vec<Mark>, last: Option<Mark>, position: u64, offset: u64) {
    let due = marks.last().copied().or(last).is_none_or(|last| offset >= last.offset + BLOCK);
    if due {
        marks.push(Mark { position, offset });
    }
}

/// Returns the last mark at or below a position.
pub(super) fn block_of(marks: &[Mark], position: u64) -> Mark {
    let after = marks.partition_point(|mark| mark.position <= position);
    after.checked_sub(1).and_then(|at| marks.get(at)).copied().unwrap_or_default()
}
