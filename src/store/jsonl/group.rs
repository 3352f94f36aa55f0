//! Writes that share one write to the disk.

use std::{iter, sync::Arc};

use tokio::sync::oneshot;

use super::{
    folder::Folder,
    record,
    state::{self, At, Held, Mark, Past, Tip},
    usage::Noted,
};
use crate::{
    error::Result,
    session::{Revision, SessionKey, SessionState, Size, View},
    store::{
        Commit, CommitResult, NewMessage, Placed, Receipt, Removed, Rewrite, RewriteResult,
        SessionExport, StoredMessage,
        memory::{ID_HORIZON, IdIndex},
    },
};

/// One write that waits for its turn, and where its answer goes.
#[derive(Debug)]
pub(super) enum Job {
    Append(Vec<NewMessage>, Reply<Receipt>),
    Commit(Box<Commit>, Reply<CommitResult>),
    Import(Box<SessionExport>, Reply<Receipt>),
    Mark(Reply<()>),
    Remove(Reply<Removed>),
    Rewrite(Rewrite, Reply<RewriteResult>),
}

pub(super) type Reply<T> = oneshot::Sender<Result<T>>;

impl Job {
    /// Returns true where the host chose an id, so that it must be looked up.
    pub(super) fn brings_ids(&self) -> bool {
        match self {
            Self::Append(messages, _) => messages.iter().any(|new| !new.fresh_id),
            Self::Commit(..)
            | Self::Import(..)
            | Self::Mark(_)
            | Self::Remove(_)
            | Self::Rewrite(..) => false,
        }
    }

    /// Gives up the job: its answer is why.
    pub(super) fn refuse(self) -> Answer {
        fn refused<T: Send + 'static>(reply: Reply<T>) -> Answer {
            Box::new(move |written: Result<()>| {
                if let Err(error) = written {
                    drop(reply.send(Err(error)));
                }
            })
        }
        match self {
            Self::Append(_, reply) | Self::Import(_, reply) => refused(reply),
            Self::Commit(_, reply) => refused(reply),
            Self::Mark(reply) => refused(reply),
            Self::Remove(reply) => refused(reply),
            Self::Rewrite(_, reply) => refused(reply),
        }
    }
}

/// Gives an answer, once it is known whether it was written.
pub(super) type Answer = Box<dyn FnOnce(Result<()>) + Send>;

pub(super) fn answer<T: Send + 'static>(reply: Reply<T>, value: Result<T>) -> Answer {
    // Nobody may be waiting any more; the write counts all the same.
    Box::new(move |written| drop(reply.send(written.and(value))))
}

/// What a file will say once `bytes` are written behind `len`.
pub(super) struct Group<'a> {
    pub(super) key: &'a SessionKey,
    pub(super) folder: &'a Folder,
    /// In milliseconds since 1970.
    pub(super) now: u64,
    pub(super) ids: &'a mut IdIndex,
    pub(super) tip: Tip,
    pub(super) bytes: Vec<u8>,
    pub(super) marks: Vec<Mark>,
    pub(super) last_mark: Option<Mark>,
    pub(super) pasts: Vec<Past>,
    pub(super) events: Vec<Noted>,
    pub(super) answers: Vec<Answer>,
}

impl Group<'_> {
    /// Adds a write to the group; a refused one adds nothing.
    pub(super) fn add(&mut self, job: Job) {
        let answer = match job {
            Job::Append(messages, reply) => answer(reply, self.append(&messages)),
            Job::Commit(commit, reply) => answer(reply, self.commit(*commit)),
            Job::Rewrite(rewrite, reply) => answer(reply, self.rewrite(rewrite)),
            Job::Mark(reply) => answer(reply, self.mark_due()),
            // Never in a group.
            job @ (Job::Import(..) | Job::Remove(_)) => job.refuse(),
        };
        self.answers.push(answer);
    }

    fn append(&mut self, messages: &[NewMessage]) -> Result<Receipt> {
        let next = self.tip.held.as_ref().map_or(0, |held| held.next);
        let (placed, added) = self.ids.place(self.key, next, messages, self.now)?;
        let revision = self.create()?;
        if !added.is_empty() {
            let sizes = sizes(messages, &placed);
            self.push(Some(next), &record::append(revision, next, &added, &sizes));
            self.hold(&added, &sizes);
        }
        Ok(Receipt::new(revision, placed))
    }

    fn commit(&mut self, commit: Commit) -> Result<CommitResult> {
        let is_refused = self.tip.held.as_ref().is_none_or(|held| {
            held.state.revision != commit.expected
                || commit.lease.is_some_and(|lease| {
                    !self.folder.leases.is_valid(self.key, held.incarnation(), lease, self.now)
                })
        });
        if is_refused {
            return Ok(CommitResult::Stale);
        }
        let changes_view = commit.view.is_some();
        let revision = if changes_view { commit.expected.next() } else { commit.expected };
        self.create()?;
        let event = commit.usage.as_ref().map(|_| self.folder.usage.number(self.now));
        let number = self.tip.held.as_ref().map_or(1, |held| held.compactions.saturating_add(1));
        let number = (changes_view && event.is_some()).then_some(number);
        let text = record::commit(revision, &commit, event, number)?;
        let line = self.push(None, &text);
        self.events.extend(Noted::new(event, line, commit.usage.as_ref()));
        if let Some(held) = &mut self.tip.held {
            let at = At { line, counter: revision.counter() };
            if let Some(number) = number {
                self.pasts.push(Past { number, at, before: held.view_at, imported: false });
                held.compactions = number;
            }
            if changes_view {
                held.set_view(at);
                held.marked = false;
            }
            held.limits = commit.limits.or(held.limits);
            let state = Arc::make_mut(&mut held.state);
            let Commit { view, pause, options, .. } = commit;
            *state = SessionState {
                revision,
                view: view.unwrap_or_else(|| std::mem::take(&mut state.view)),
                options: options.unwrap_or_else(|| std::mem::take(&mut state.options)),
                pause,
            };
            held.next = held.next.max(state::first_free(&state.view));
            self.ids.forget_rewound(&state.view);
            let horizon = held.next.saturating_sub(ID_HORIZON as u64);
            self.ids.forget_below(state.view.cut.min(horizon));
        }
        Ok(CommitResult::Committed(revision))
    }

    fn rewrite(&mut self, rewrite: Rewrite) -> Result<RewriteResult> {
        let now = self.tip.held.as_ref().map(|held| (held.state.revision, held.next));
        if rewrite.expected.is_some() && rewrite.expected != now {
            return Ok(RewriteResult::Stale);
        }
        let next = now.map_or(0, |(_, next)| next);
        // The old messages' ids are free again: a host gives back what it took.
        let mut ids = IdIndex::starting_at(next);
        ids.build([]);
        let (placed, added) = ids.place(self.key, next, &rewrite.messages, self.now)?;
        let sizes = sizes(&rewrite.messages, &placed);
        let view = View { cut: next, summary: rewrite.summary, ..View::default() };
        let revision = self.create()?.next();
        let text = record::rewrite(revision, next, &added, &sizes, &view)?;
        let line = self.push(Some(next), &text);
        *self.ids = ids;
        self.hold(&added, &sizes);
        if let Some(held) = &mut self.tip.held {
            held.ids_from = next;
            held.dormant = false;
            held.set_view(At { line, counter: revision.counter() });
            let state = Arc::make_mut(&mut held.state);
            (state.revision, state.view, state.pause) = (revision, view, None);
        }
        Ok(RewriteResult::Rewritten(Receipt::new(revision, placed)))
    }

    fn mark_due(&mut self) -> Result<()> {
        let Some(revision) = self.tip.held.as_ref().map(|held| held.state.revision) else {
            return Ok(());
        };
        self.create()?;
        if self.tip.held.as_ref().is_some_and(|held| !held.marked) {
            self.push(None, &record::due(revision));
        }
        if let Some(held) = &mut self.tip.held {
            held.marked = true;
        }
        Ok(())
    }

    /// Returns the session's revision, of a new one where there is none.
    fn create(&mut self) -> Result<Revision> {
        let held = self.tip.held.clone().unwrap_or_else(|| Held::new(Revision::fresh()));
        let revision = held.state.revision;
        if !held.named {
            let header = record::session(revision, self.key)?;
            self.push(None, &header);
        }
        self.tip.held = Some(Held { named: true, ..held });
        Ok(revision)
    }

    /// Adds a line and returns its offset.
    fn push(&mut self, position: Option<u64>, line: &str) -> u64 {
        if std::mem::take(&mut self.tip.unclosed) {
            self.bytes.push(b'\n');
        }
        let offset = self.tip.len.saturating_add(self.bytes.len() as u64);
        if let Some(position) = position {
            state::mark(&mut self.marks, self.last_mark, position, offset);
        }
        self.bytes.extend_from_slice(line.as_bytes());
        offset
    }

    fn hold(&mut self, added: &[StoredMessage], sizes: &[Size]) {
        self.ids.add(added);
        if let Some(held) = &mut self.tip.held {
            held.next = held.next.saturating_add(added.len() as u64);
            held.messages = held.messages.saturating_add(added.len() as u64);
            held.dormant &= added.is_empty();
            if let Some(totals) = &mut held.totals {
                for size in sizes {
                    totals.add(*size);
                }
            }
        }
    }
}

/// The sizes of those messages that are new.
fn sizes(messages: &[NewMessage], placed: &[Placed]) -> Vec<Size> {
    let new = iter::zip(messages, placed).filter(|(_, placed)| !placed.duplicate);
    new.map(|(new, _)| new.size).collect()
}
