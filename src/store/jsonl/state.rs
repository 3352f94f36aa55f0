//! What memory keeps of a session's file: never its messages.

use std::sync::Arc;

use super::record::{Op, Record};
use crate::session::{Revision, SessionState, View};

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
        Self { state: Arc::new(state), next: 0, messages: 0, ids_from: 0, named: false }
    }

    pub(super) fn incarnation(&self) -> u64 {
        self.state.revision.incarnation()
    }
}

impl Tip {
    /// Takes a record; false where it cannot follow those before it, as with
    /// a block of the file that damage has doubled.
    pub(super) fn apply(&mut self, record: Record<'_>) -> bool {
        let held = self.held.get_or_insert_with(|| Held::new(record.rev));
        let (ours, theirs) = (held.state.revision, record.rev);
        if ours.incarnation() != theirs.incarnation() {
            return false;
        }
        let adds = matches!(record.op, Op::Append | Op::Rewrite);
        if adds && record.at < held.next {
            return false;
        }
        let changes = record.op == Op::Commit || record.op == Op::Rewrite;
        let least = ours.counter().saturating_add(u64::from(record.view.is_some()));
        if changes && theirs.counter() < least {
            return false;
        }
        if adds {
            held.next = record.at.saturating_add(record.n);
            held.messages = held.messages.saturating_add(record.n);
        }
        held.named |= record.op == Op::Session;
        if !changes && theirs.counter() <= ours.counter() {
            return true;
        }
        let state = Arc::make_mut(&mut held.state);
        state.revision = if theirs.counter() > ours.counter() { theirs } else { ours };
        if changes {
            if record.op == Op::Rewrite {
                held.ids_from = record.at;
            }
            state.pause = record.pause;
            state.options = record.options.unwrap_or_else(|| std::mem::take(&mut state.options));
            state.view = record.view.unwrap_or_else(|| std::mem::take(&mut state.view));
            // The messages that it speaks of may be lost; their places are not free.
            held.next = held.next.max(first_free(&state.view));
        }
        true
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
