//! One session in memory.

use std::{collections::VecDeque, iter, ops::Range};

use super::ids::{ID_HORIZON, IdIndex};
use crate::{
    error::Result,
    plan::{Limits, Measured},
    session::{SessionKey, SessionState, Size, View},
    store::{
        Commit, Lease, NewMessage, Receipt, Rewrite, SessionExport, StoredCompaction,
        StoredMessage, StoredSession, Tail,
    },
    tokens::Tokens,
};

#[derive(Debug)]
pub(super) struct Stored {
    pub(super) state: SessionState,
    /// Messages by position; with gaps where retired ones were dropped.
    messages: VecDeque<Kept>,
    pub(super) next: u64,
    ids: IdIndex,
    totals: Totals,
    /// Where transcripts are kept: all of them, in order.
    pub(super) compactions: Vec<StoredCompaction>,
    pub(super) due: Due,
    /// The newest lease, and when it ends, in milliseconds since 1970.
    lease: Option<(Lease, u64)>,
}

#[derive(Debug)]
struct Kept {
    message: StoredMessage,
    size: Size,
}

/// How large what is sent of the messages is.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    /// In the window.
    messages: u64,
    /// In the window.
    chars: u64,
    /// Of the window and of what is carried.
    tokens: Tokens,
}

/// What decides whether a compaction is due, beside sizes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    /// Whatever the sizes say.
    pub(super) marked: bool,
    /// Imported, and nothing was appended since.
    dormant: bool,
    /// The session's own.
    limits: Option<Limits>,
}

impl Stored {
    pub(super) fn new() -> Self {
        Self {
            state: SessionState::fresh(),
            messages: VecDeque::new(),
            next: 0,
            ids: IdIndex::default(),
            totals: Totals::default(),
            compactions: Vec::new(),
            due: Due::default(),
            lease: None,
        }
    }

    /// Creates a session from an export that was prepared.
    pub(super) fn imported(session: SessionExport) -> Self {
        let kept = session.messages.into_iter().map(|message| {
            let size = Size::estimated(&message.message);
            Kept { message, size }
        });
        let mut stored = Self {
            state: session.state,
            messages: kept.collect(),
            next: session.next,
            compactions: session.compactions,
            due: Due { dormant: true, ..Due::default() },
            ..Self::new()
        };
        stored.measure();
        stored
    }

    pub(super) fn append(
        &mut self,
        key: &SessionKey,
        messages: &[NewMessage],
        now: u64,
    ) -> Result<Receipt> {
        if messages.iter().any(|new| !new.fresh_id) {
            let Self { state, ids, messages, .. } = self;
            ids.build(held(messages).filter(|kept| !state.view.is_rewound(kept.position)));
        }
        let (placed, added) = self.ids.place(key, self.next, messages, now)?;
        self.next = self.next.saturating_add(added.len() as u64);
        self.due.dormant &= added.is_empty();
        self.ids.add(&added);
        let sizes = iter::zip(messages, &placed).filter(|(_, placed)| !placed.duplicate);
        for ((new, _), message) in iter::zip(sizes, added) {
            self.totals.add(new.size);
            self.messages.push_back(Kept { message, size: new.size });
        }
        Ok(Receipt::new(self.state.revision, placed))
    }

    /// Takes a commit that was made from this state.
    pub(super) fn apply(&mut self, commit: Commit, keep: bool) {
        self.state.pause = commit.pause;
        if let Some(options) = commit.options {
            self.state.options = options;
        }
        self.due.limits = commit.limits.or(self.due.limits);
        let Some(view) = commit.view else { return };
        let before = std::mem::replace(&mut self.state.view, view);
        self.state.revision = self.state.revision.next();
        self.due.marked = false;
        if let (true, Some(usage)) = (keep, commit.usage) {
            let number = self.compactions.last().map_or(1, |last| last.number.saturating_add(1));
            let (revision, after) = (self.state.revision, self.state.view.clone());
            self.compactions.push(StoredCompaction::new(number, revision, before, after, usage));
        }
        self.ids.forget_rewound(&self.state.view);
        self.retire(keep);
    }

    pub(super) fn replace(
        &mut self,
        key: &SessionKey,
        rewrite: Rewrite,
        now: u64,
        keep: bool,
    ) -> Result<Receipt> {
        let cut = self.next;
        // The old messages' ids are free again: a host gives back what it took.
        let ids = std::mem::replace(&mut self.ids, IdIndex::starting_at(cut));
        let mut receipt = match self.append(key, &rewrite.messages, now) {
            Ok(receipt) => receipt,
            Err(error) => {
                self.ids = ids;
                return Err(error);
            }
        };
        self.state.revision = self.state.revision.next();
        self.state.view = View { cut, summary: rewrite.summary, ..View::default() };
        self.state.pause = None;
        self.due.dormant = false;
        receipt.revision = self.state.revision;
        self.retire(keep);
        Ok(receipt)
    }

    fn retire(&mut self, keep: bool) {
        if !keep {
            let Self { state, messages, next, ids, .. } = self;
            // A message that is dropped here is still recognized by its id.
            ids.build(held(messages).filter(|kept| !state.view.is_rewound(kept.position)));
            messages.retain(|kept| state.view.shows(kept.message.position));
            messages.shrink_to_fit();
            ids.forget_below(state.view.cut.min(next.saturating_sub(ID_HORIZON as u64)));
        }
        self.measure();
    }

    fn measure(&mut self) {
        let mut totals = Totals::default();
        let view = &self.state.view;
        for Kept { message, size } in &self.messages {
            if !view.shows(message.position) {
                continue;
            }
            if message.position < view.cut {
                totals.tokens += size.tokens;
            } else {
                totals.add(*size);
            }
        }
        self.totals = totals;
    }

    pub(super) fn read(&self) -> StoredSession {
        let view = &self.state.view;
        let shown = self.between(0..u64::MAX).filter(|kept| view.shows(kept.position)).cloned();
        let (carried, window) = shown.partition(|kept| kept.position < view.cut);
        StoredSession::new(self.state.clone(), self.next, carried, window)
    }

    /// What came since a reader knew this many positions.
    pub(super) fn tail(&self, next: u64) -> Tail {
        let state = &self.state;
        let from = next.max(state.view.cut);
        let came = self.between(from..u64::MAX).filter(|kept| state.view.shows(kept.position));
        Tail::new(state.options.clone(), state.pause.clone(), self.next, came.cloned().collect())
    }

    pub(super) fn between(&self, positions: Range<u64>) -> impl Iterator<Item = &StoredMessage> {
        let from = self.messages.partition_point(|kept| kept.message.position < positions.start);
        let messages = self.messages.range(from..).map(|kept| &kept.message);
        messages.take_while(move |kept| kept.position < positions.end)
    }

    pub(super) fn messages(&self) -> u64 {
        self.messages.len() as u64
    }

    /// Returns true where a compaction is due at this time, and nobody is at
    /// work on it.
    pub(super) fn is_due(&self, limits: &Limits, now: u64) -> bool {
        let Totals { messages, chars, tokens } = self.totals;
        let measured = Measured { messages, chars, tokens: tokens.count() };
        let limits = self.due.limits.as_ref().unwrap_or(limits);
        !self.due.dormant
            && (self.due.marked || limits.exceeded_by(&measured).is_some())
            && !self.is_leased(now)
            && !self
                .state
                .pause
                .as_ref()
                .is_some_and(|pause| pause.holds(measured.tokens, super::time(now)))
    }

    pub(super) fn is_leased(&self, now: u64) -> bool {
        self.lease.is_some_and(|(_, end)| now < end)
    }

    pub(super) fn is_held_by(&self, lease: Lease, now: u64) -> bool {
        self.lease.is_some_and(|(held, end)| held == lease && now < end)
    }

    pub(super) fn lease(&mut self, lease: Lease, end: u64) {
        self.lease = Some((lease, end));
    }

    pub(super) fn end_lease(&mut self) {
        self.lease = None;
    }
}

impl Totals {
    fn add(&mut self, size: Size) {
        self.messages = self.messages.saturating_add(1);
        self.chars = self.chars.saturating_add(size.chars);
        self.tokens += size.tokens;
    }
}

fn held(messages: &VecDeque<Kept>) -> impl Iterator<Item = &StoredMessage> {
    messages.iter().map(|kept| &kept.message)
}
