//! Reads of a session's file, at any time.

use std::ops::Range;

use super::{
    folder::Folder,
    read,
    record::{Op, Record},
    slot::{Known, Slot, lock},
    state::{At, Held, Past, Totals, block_of},
    usage::Noted,
};
use crate::{
    error::Result,
    plan::Limits,
    session::{Revision, View},
    store::{Since, StoredCompaction, StoredMessage, StoredSession, Tail, memory::ID_HORIZON},
    tokens::Tokens,
};

impl Slot {
    /// Reads what is sent of the session, and its state.
    pub(super) fn load(&self, folder: &Folder) -> Result<Option<StoredSession>> {
        self.read(folder, |reader| {
            let mut kept = Vec::new();
            reader.carried(|message| kept.push(message))?;
            let state = reader.held.state.as_ref().clone();
            let window = reader.window(state.view.cut)?;
            Ok(StoredSession::new(state, reader.held.next, kept, window))
        })
    }

    /// Reads what came since; the file is not touched where nothing did.
    pub(super) fn load_since(
        &self,
        folder: &Folder,
        revision: Revision,
        next: u64,
    ) -> Result<Since> {
        let since = self.read(folder, |reader| {
            let state = &reader.held.state;
            if state.revision != revision || reader.held.next < next {
                return Ok(None);
            }
            let messages = reader.window(next.max(state.view.cut))?;
            let (options, pause) = (state.options.clone(), state.pause.clone());
            Ok(Some(Tail::new(options, pause, reader.held.next, messages)))
        })?;
        Ok(match since {
            None => Since::Gone,
            Some(Some(tail)) => Since::Same(tail),
            Some(None) => {
                self.load(folder)?.map_or(Since::Gone, |session| Since::Changed(Box::new(session)))
            }
        })
    }

    /// Reads the messages at some positions.
    pub(super) fn transcript(
        &self,
        folder: &Folder,
        positions: Range<u64>,
    ) -> Result<Vec<StoredMessage>> {
        let read = self.read(folder, |reader| {
            let mut messages = Vec::new();
            reader.messages(positions.clone(), |message| messages.push(message))?;
            Ok(messages)
        });
        read.map(Option::unwrap_or_default)
    }

    /// Reads the newest compactions below a number.
    pub(super) fn compactions(
        &self,
        folder: &Folder,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StoredCompaction>> {
        let read = self.read(folder, |reader| {
            let newest = reader.known.pasts.iter().rev();
            let listed = newest.filter(|past| before.is_none_or(|before| past.number < before));
            listed.take(limit).filter_map(|past| reader.compaction(past).transpose()).collect()
        });
        read.map(Option::unwrap_or_default)
    }

    /// Returns the usage events that the file has.
    pub(super) fn events(&self, folder: &Folder) -> Result<Vec<Noted>> {
        let read = self.read(folder, |reader| {
            let mut events = Vec::new();
            reader.events(|noted| events.push(noted))?;
            Ok(events)
        });
        read.map(Option::unwrap_or_default)
    }

    /// Returns the incarnation of the session where a compaction is due, and
    /// nobody is at work on it.
    pub(super) fn due(&self, folder: &Folder, limits: &Limits, now: u64) -> Result<Option<u64>> {
        let due = self.read(folder, |reader| {
            let held = &reader.held;
            if held.dormant || !folder.leases.is_free(self.key(), held.incarnation(), now) {
                return Ok(None);
            }
            let totals = match held.totals {
                Some(totals) => totals,
                None => reader.measure()?,
            };
            self.keep_totals(held, totals);
            let (measured, limits) = (totals.measured(), held.limits.as_ref().unwrap_or(limits));
            let is_due = held.marked || limits.exceeded_by(&measured).is_some();
            let paused = held.state.pause.as_ref();
            let paused = paused.is_some_and(|it| it.holds(measured.tokens, super::time(now)));
            Ok((is_due && !paused).then_some(held.incarnation()))
        });
        due.map(Option::flatten)
    }

    /// Keeps what was measured, where nothing was written meanwhile.
    fn keep_totals(&self, measured: &Held, totals: Totals) {
        if let Some(held) = lock(self.known_cell()).as_mut().and_then(|it| it.tip.held.as_mut()) {
            let same = held.state.revision == measured.state.revision && held.next == measured.next;
            if same {
                held.totals = Some(totals);
            }
        }
    }

    /// Reads the messages whose ids count.
    pub(super) fn known_by_id(&self, folder: &Folder) -> Result<Vec<StoredMessage>> {
        let read = self.read(folder, |reader| {
            let Held { state, next, ids_from, .. } = &reader.held;
            let from = state.view.cut.min(next.saturating_sub(ID_HORIZON as u64));
            reader.window(from.max(*ids_from))
        });
        read.map(Option::unwrap_or_default)
    }

    fn read<T>(
        &self,
        folder: &Folder,
        read: impl Fn(&Reader<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        loop {
            let known = self.known(folder, Known::clone)?;
            let Some(held) = known.tip.held.clone() else { return Ok(None) };
            let reader = Reader { slot: self, folder, known, held };
            let result = read(&reader);
            // Removed meanwhile, the file may have been another one.
            let now = self.known(folder, |known| known.tip.held.as_ref().map(Held::incarnation))?;
            if now == Some(reader.held.incarnation()) {
                return result.map(Some);
            }
        }
    }
}

/// A session's file as far as it was acknowledged at one moment.
pub(super) struct Reader<'a> {
    slot: &'a Slot,
    folder: &'a Folder,
    known: Known,
    pub(super) held: Held,
}

impl Reader<'_> {
    /// Reads the messages from a position on that were not taken back.
    fn window(&self, from: u64) -> Result<Vec<StoredMessage>> {
        let view = &self.held.state.view;
        let mut window = Vec::new();
        self.messages(from..u64::MAX, |message| {
            if !view.is_rewound(message.position) {
                window.push(message);
            }
        })?;
        Ok(window)
    }

    /// Reads what is carried.
    fn carried(&self, mut take: impl FnMut(StoredMessage)) -> Result<()> {
        self.carried_by(|record, positions, wanted| {
            read::messages(record, positions, |message| {
                if wanted.binary_search(&message.position).is_ok() {
                    take(message);
                }
            });
        })
    }

    /// Reads the records of what is carried. Messages that share a block are
    /// read in one go.
    fn carried_by(&self, mut take: impl FnMut(&Record<'_>, &Range<u64>, &[u64])) -> Result<()> {
        let View { carried, .. } = &self.held.state.view;
        let mut rest = carried.as_slice();
        while let Some((&first, _)) = rest.split_first() {
            let end = self.block_end(first);
            let in_block = rest.partition_point(|position| *position < end).max(1);
            let (wanted, others) = rest.split_at_checked(in_block).unwrap_or((rest, &[]));
            let last = wanted.last().copied().unwrap_or(first);
            let positions = first..last.saturating_add(1);
            self.added(&positions, |record| take(record, &positions, wanted))?;
            rest = others;
        }
        Ok(())
    }

    pub(super) fn messages(
        &self,
        positions: Range<u64>,
        mut take: impl FnMut(StoredMessage),
    ) -> Result<()> {
        self.added(&positions, |record| read::messages(record, &positions, &mut take))
    }

    /// Measures what is sent.
    fn measure(&self) -> Result<Totals> {
        let view = &self.held.state.view;
        let mut totals = Totals::default();
        self.added(&(view.cut..u64::MAX), |record| {
            let sizes = record.sizes().into_iter();
            let window = sizes.filter(|(at, _)| *at >= view.cut && !view.is_rewound(*at));
            window.for_each(|(_, size)| totals.add(size));
        })?;
        let mut carried = Tokens::default();
        self.carried_by(|record, _, wanted| {
            for (at, size) in record.sizes() {
                if wanted.binary_search(&at).is_ok() {
                    carried += size.tokens;
                }
            }
        })?;
        totals.tokens += carried;
        Ok(totals)
    }

    fn added(&self, positions: &Range<u64>, take: impl FnMut(&Record<'_>)) -> Result<()> {
        let positions = positions.start..positions.end.min(self.held.next);
        if positions.is_empty() {
            return Ok(());
        }
        let from = block_of(&self.known.marks, positions.start);
        let file = self.folder.read(&self.slot.path(self.folder));
        let read = file.and_then(|file| {
            let file = file.ok_or(std::io::ErrorKind::NotFound)?;
            let incarnation = self.held.incarnation();
            read::added(file, from, self.known.tip.len, incarnation, &positions, take)
        });
        read.map_err(|error| self.slot.failed("read", self.folder, error))
    }

    fn events(&self, mut take: impl FnMut(Noted)) -> Result<()> {
        let file = self.folder.read(&self.slot.path(self.folder));
        let read = file.and_then(|file| {
            let file = file.ok_or(std::io::ErrorKind::NotFound)?;
            read::records(file, 0, self.known.tip.len, |record, line| {
                let ours = record.rev.incarnation() == self.held.incarnation();
                if ours && matches!(record.op, Op::Commit | Op::Usage) {
                    let noted = Noted::new(Some(record.number), line, record.event().as_ref());
                    noted.into_iter().for_each(&mut take);
                }
                None::<()>
            })
        });
        read.map(drop).map_err(|error| self.slot.failed("read", self.folder, error))
    }

    /// Reads a compaction; `None` where a line of it is lost.
    fn compaction(&self, past: &Past) -> Result<Option<StoredCompaction>> {
        if past.imported {
            return self.record_at(past.at, |record| {
                record.past().filter(|stored| stored.number == past.number)
            });
        }
        let before = match past.before {
            Some(before) => self.record_at(before, |record| record.view.clone())?,
            None => Some(View::default()),
        };
        self.record_at(past.at, |record| {
            let (after, usage) = (record.view.clone()?, record.event()?);
            let before = before.clone()?;
            Some(StoredCompaction::new(past.number, record.rev, before, after, usage))
        })
    }

    fn record_at<T>(&self, at: At, take: impl Fn(&Record<'_>) -> Option<T>) -> Result<Option<T>> {
        let file = self.folder.read(&self.slot.path(self.folder));
        let read = file.and_then(|file| {
            let file = file.ok_or(std::io::ErrorKind::NotFound)?;
            read::record_at(file, at, take)
        });
        read.map_err(|error| self.slot.failed("read", self.folder, error))
    }

    fn block_end(&self, position: u64) -> u64 {
        let marks = &self.known.marks;
        let after = marks.partition_point(|mark| mark.position <= position);
        marks.get(after).map_or(u64::MAX, |mark| mark.position)
    }
}
