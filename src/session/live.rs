//! A session in memory: applies what the store acknowledged, by position.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use super::{
    log::Log,
    options::SessionOptions,
    overhead::Overhead,
    revision::{Revision, SnapshotMark},
    snapshot::{Entry, Size, Snapshot},
    state::{Dropped, Pause, SessionState, StoredSummary, View},
};
use crate::tokens::Tokens;

/// What memory knows of a session. Every method takes what the store has
/// already acknowledged; none of them can fail.
#[derive(Debug)]
pub(crate) struct Session {
    revision: Option<Revision>,
    cut: u64,
    carried: Arc<[Entry]>,
    window: Log<Entry>,
    /// The position that the next message gets. The window may have gaps below
    /// it, where a store lost messages.
    next: u64,
    window_size: Size,
    carried_size: Size,
    summary: Option<Arc<StoredSummary>>,
    /// Tokens of the summary as it is sent, fence and notes included.
    sent: Tokens,
    dropped: Dropped,
    rewound: Arc<[Range<u64>]>,
    pins: Arc<[u64]>,
    floor: Option<u64>,
    /// Counters of the last revisions that were no compactions: one that
    /// dropped messages or carried one again, and one that the host made.
    forced: u64,
    rewritten: u64,
    /// What a provider counted for a context, and our estimate of the same.
    reported: Option<(Tokens, Tokens)>,
    overhead: Overhead,
    /// The most that the provider takes, as it has shown by a refusal.
    ceiling: Option<u64>,
    options: Arc<SessionOptions>,
    pause: Option<Pause>,
    /// Acknowledged messages that lie above a gap: another append, which the
    /// store took first, has yet to report.
    early: BTreeMap<u64, Entry>,
    /// Set where memory may lag behind the store: a load is due.
    dirty: bool,
    /// Set where memory has the revision and not what it sends: all has to be
    /// loaded.
    hollow: bool,
    /// Rises with every change, so that a load that was overtaken is noticed.
    version: u64,
    /// The version at which memory was last said to lag behind.
    marked: u64,
}

/// Who made a revision.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Change {
    /// A message is carried again that a summary stood for.
    Carried,
    /// A compaction: what it replaced is in the summary.
    Compacted,
    /// Force compression.
    Forced,
    /// A message of the history was pinned or is no longer: what is sent is the
    /// same.
    Pinned,
    /// The host.
    Rewritten,
}

impl Session {
    /// What memory knows before it has asked the store.
    pub(crate) fn unknown() -> Self {
        Self { dirty: true, ..Self::absent() }
    }

    fn absent() -> Self {
        Self {
            revision: None,
            cut: 0,
            carried: Arc::default(),
            window: Log::new(),
            next: 0,
            window_size: Size::default(),
            carried_size: Size::default(),
            summary: None,
            sent: Tokens::ZERO,
            dropped: Dropped::default(),
            rewound: Arc::default(),
            pins: Arc::default(),
            floor: None,
            forced: 0,
            rewritten: 0,
            reported: None,
            overhead: Overhead::default(),
            ceiling: None,
            options: Arc::default(),
            pause: None,
            early: BTreeMap::new(),
            dirty: false,
            hollow: false,
            version: 0,
            marked: 0,
        }
    }

    pub(crate) const fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// The revision of what memory holds; none where it holds something else.
    pub(crate) fn held_revision(&self) -> Option<Revision> {
        self.revision.filter(|_| !self.hollow)
    }

    /// Has the store asked before the next use, by a load that begins after
    /// this.
    pub(crate) const fn mark_dirty(&mut self) {
        self.version += 1;
        self.marked = self.version;
        self.dirty = true;
    }

    pub(crate) const fn version(&self) -> u64 {
        self.version
    }

    /// The position that the next message gets, as far as memory knows.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    pub(crate) const fn revision(&self) -> Option<Revision> {
        self.revision
    }

    pub(crate) const fn exists(&self) -> bool {
        self.revision.is_some()
    }

    pub(crate) fn options(&self) -> Arc<SessionOptions> {
        Arc::clone(&self.options)
    }

    pub(crate) const fn pause(&self) -> Option<&Pause> {
        self.pause.as_ref()
    }

    pub(crate) fn set_pause(&mut self, pause: Option<Pause>) {
        self.version += 1;
        self.pause = pause;
    }

    /// How many messages the window holds.
    pub(crate) const fn window_len(&self) -> usize {
        self.window.len()
    }

    /// How much the window holds.
    pub(crate) const fn window_size(&self) -> Size {
        self.window_size
    }

    /// How many tokens the next request takes: summary, carried messages and
    /// window, and what the last request added to them. What a provider has
    /// counted goes before our estimate, if it is more.
    pub(crate) fn tokens(&self) -> Tokens {
        self.estimate() + self.excess() + self.overhead.reserve
    }

    /// How many more tokens than our estimate a provider has counted.
    pub(crate) fn excess(&self) -> Tokens {
        self.reported.map(|(counted, of)| counted - of).unwrap_or_default()
    }

    pub(crate) const fn overhead(&self) -> Overhead {
        self.overhead
    }

    /// Takes the sizes of what a request adds.
    pub(crate) const fn remember(&mut self, overhead: Overhead) {
        self.overhead = overhead;
    }

    pub(crate) const fn ceiling(&self) -> Option<u64> {
        self.ceiling
    }

    /// Takes it that the provider accepts no more tokens than this.
    pub(crate) const fn learn(&mut self, ceiling: Option<u64>) {
        self.ceiling = ceiling;
    }

    /// The counter of the last revision that the host made itself.
    pub(crate) const fn rewritten(&self) -> u64 {
        self.rewritten
    }

    /// The counter of the last revision that was no compaction.
    pub(crate) fn steady(&self) -> u64 {
        self.forced.max(self.rewritten)
    }

    /// Where the tokens go; all but the reserve in the order of a request.
    pub(crate) fn sizes(&self) -> (Tokens, Tokens, Tokens) {
        let (carried, window) = (self.carried_size.tokens, self.window_size.tokens);
        let replaced = self.overhead.replaced;
        if carried >= replaced {
            (self.sent, carried - replaced, window)
        } else {
            (self.sent, carried, window - replaced)
        }
    }

    /// Takes a provider's count for a context. One of another revision, or
    /// that cannot be, does not count.
    pub(crate) fn report(&mut self, mark: SnapshotMark, counted: u64) -> bool {
        let Some(in_window) = mark.len.checked_sub(self.carried.len()) else { return false };
        if self.revision != Some(mark.revision) || in_window > self.window.len() || counted == 0 {
            return false;
        }
        let since = (in_window..self.window.len()).filter_map(|index| self.window.get(index));
        let estimate = self.estimate() - since.map(|entry| entry.size.tokens).sum();
        // The estimate may be far off, but not by millions of tokens.
        if counted > estimate.count().saturating_mul(8).saturating_add(1_000_000) {
            return false;
        }
        self.reported = Some((Tokens::from_tokens(counted), estimate));
        true
    }

    fn estimate(&self) -> Tokens {
        self.overhead.with(self.sent + self.carried_size.tokens + self.window_size.tokens)
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let Some(revision) = self.revision else { return Snapshot::empty() };
        Snapshot {
            revision,
            cut: self.cut,
            carried: Arc::clone(&self.carried),
            window: self.window.clone(),
            summary: self.summary.clone(),
            dropped: self.dropped,
            rewound: Arc::clone(&self.rewound),
            pins: Arc::clone(&self.pins),
            floor: self.floor,
        }
    }

    /// Takes messages that the store has appended. One that lies above a gap
    /// waits for the messages in between.
    pub(crate) fn append(&mut self, revision: Revision, entries: Vec<Entry>) {
        self.version += 1;
        if self.revision != Some(revision) {
            self.dirty = true;
            return;
        }
        for entry in entries {
            if entry.position == self.next() {
                self.push(entry);
            } else if entry.position > self.next() {
                self.early.insert(entry.position, entry);
            }
        }
        while let Some(entry) = self.early.remove(&self.next()) {
            self.push(entry);
        }
    }

    /// Takes a view that the store has committed on top of `before`. Gives
    /// back what is no longer sent, to be dropped where no lock is held.
    pub(crate) fn commit(
        &mut self,
        before: Revision,
        view: &View,
        sent: Tokens,
        pause: Option<Pause>,
        change: Change,
    ) -> Option<Snapshot> {
        self.version += 1;
        if self.revision != Some(before) {
            self.dirty = true;
            return None;
        }
        let retired = self.snapshot();
        let revision = before.next();
        self.revision = Some(revision);
        match change {
            Change::Compacted | Change::Pinned => {}
            Change::Carried | Change::Forced => self.forced = revision.counter(),
            Change::Rewritten => self.rewritten = revision.counter(),
        }
        let carried: Vec<Entry> = retired
            .entries()
            .filter(|entry| view.carried.binary_search(&entry.position).is_ok())
            .cloned()
            .collect();
        if carried.len() != view.carried.len() || view.cut > self.next() || view.cut < self.cut {
            // Messages are sent that memory does not hold.
            (self.dirty, self.hollow) = (true, true);
            return None;
        }
        // Only what stays is copied: a handful of pointers as a rule.
        let kept = retired.window.iter().rev().take_while(|entry| entry.position >= view.cut);
        let kept = kept.filter(|entry| !view.is_rewound(entry.position));
        let mut kept: Vec<Entry> = kept.cloned().collect();
        kept.reverse();
        self.window = kept.into_iter().collect();
        self.set_view(view, carried, sent);
        self.pause = pause;
        Some(retired)
    }

    /// Takes a whole state from the store, unless memory is ahead of it.
    /// `version` is the one from before the store was asked.
    pub(crate) fn load(
        &mut self,
        version: u64,
        state: Option<SessionState>,
        next: u64,
        carried: Vec<Entry>,
        window: Vec<Entry>,
        sent: Tokens,
    ) {
        let loaded = state.as_ref().map(|state| state.revision);
        let incarnation = |revision: Option<Revision>| revision.map(Revision::incarnation);
        if version != self.version && incarnation(loaded) != incarnation(self.revision) {
            // Which of the two is newer cannot be told: it stays dirty.
            return;
        }
        let counter = |revision: Option<Revision>| revision.map_or(0, Revision::counter);
        let ours = (counter(self.revision), self.next());
        if version != self.version && (counter(loaded), next) <= ours {
            return;
        }
        let same = incarnation(loaded) == incarnation(self.revision);
        let early = if same { std::mem::take(&mut self.early) } else { BTreeMap::new() };
        let (version, dirty) = (self.version + 1, self.marked > version);
        let Self { marked, overhead, ceiling, forced, rewritten, revision, .. } = *self;
        *self = Self { overhead, ceiling, early, dirty, version, marked, ..Self::absent() };
        let Some(state) = state else { return };
        // What another process has done is not known.
        let known = revision == Some(state.revision);
        let counter = state.revision.counter();
        (self.forced, self.rewritten) =
            if known { (forced, rewritten) } else { (counter, counter) };
        self.revision = Some(state.revision);
        self.window = window.into_iter().collect();
        self.set_view(&state.view, carried, sent);
        self.options = Arc::new(state.options);
        self.pause = state.pause;
        self.next = next;
        self.early = self.early.split_off(&next);
    }

    /// Takes what the store says came since `revision` and the position that
    /// was next. False where that leaves a gap, and all has to be read.
    pub(crate) fn catch_up(
        &mut self,
        version: u64,
        revision: Revision,
        next: u64,
        entries: Vec<Entry>,
        options: SessionOptions,
        pause: Option<Pause>,
    ) -> bool {
        if self.revision != Some(revision) {
            // A commit of ours came between: what was read is older.
            return true;
        }
        if self.version == version {
            self.options = Arc::new(options);
            self.pause = pause;
        }
        self.dirty = self.marked > version;
        self.append(revision, entries);
        self.next >= next
    }

    /// Takes it that the store has removed the session. It may have been
    /// created again since, so the store is asked before the next use.
    pub(crate) fn remove(&mut self) {
        *self = Self { version: self.version + 1, ..Self::unknown() };
    }

    fn set_view(&mut self, view: &View, carried: Vec<Entry>, sent: Tokens) {
        let sum = |size: Size, entry: &Entry| size.plus(entry.size);
        self.cut = view.cut;
        self.window_size = self.window.iter().fold(Size::default(), sum);
        self.carried_size = carried.iter().fold(Size::default(), sum);
        self.carried = carried.into();
        self.summary = view.summary.clone().map(Arc::new);
        self.sent = sent;
        self.reported = None;
        self.dropped = view.dropped;
        self.rewound = view.rewound.clone().into();
        self.pins = view.pins.clone().into();
        self.floor = view.floor;
    }

    fn push(&mut self, entry: Entry) {
        self.window_size = self.window_size.plus(entry.size);
        self.next = entry.position.saturating_add(1);
        self.window.push(entry);
    }
}
