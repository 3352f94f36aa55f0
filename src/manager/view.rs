//! From a decision to the view that is committed.

use std::ops::Range;

use crate::{
    plan::Split,
    session::{Dropped, Snapshot, StoredSummary, View},
    store::ID_HORIZON,
};

/// Makes a view of a split.
pub(super) fn view(
    snapshot: &Snapshot,
    split: &Split,
    summary: Option<StoredSummary>,
    dropped: Dropped,
) -> View {
    let position = |index: usize| snapshot.entry(index).map(|entry| entry.position);
    let cut = cut(snapshot, split);
    View {
        cut,
        carried: split.carried.iter().filter_map(|index| position(*index)).collect(),
        summary,
        dropped,
        rewound: rewound(snapshot, cut, dropped),
        pins: snapshot.pins().to_vec(),
        floor: Some(snapshot.floor()),
    }
}

/// The view that a snapshot was taken from, with another summary.
pub(super) fn same_view(snapshot: &Snapshot, summary: Option<StoredSummary>) -> View {
    let carried = snapshot.entries().take(snapshot.carried());
    View {
        cut: snapshot.cut(),
        carried: carried.map(|entry| entry.position).collect(),
        summary,
        dropped: snapshot.dropped_range(),
        rewound: rewound(snapshot, snapshot.cut(), snapshot.dropped_range()),
        pins: snapshot.pins().to_vec(),
        floor: Some(snapshot.floor()),
    }
}

/// What was taken back, as far as that still matters: in the window, among what
/// is owed, and among the messages that are known by their ids.
fn rewound(snapshot: &Snapshot, cut: u64, dropped: Dropped) -> Vec<Range<u64>> {
    let owed = if dropped.messages == 0 { cut } else { dropped.since.min(cut) };
    let from = owed.min(snapshot.next().saturating_sub(ID_HORIZON as u64));
    snapshot.rewound().iter().filter(|range| range.end > from).cloned().collect()
}

/// So many dropped messages that no later compaction can read: all below the
/// new cut is summarized or gone.
pub(super) fn out_of_reach(messages: u64, snapshot: &Snapshot, split: &Split) -> Dropped {
    Dropped { messages, since: if messages == 0 { 0 } else { cut(snapshot, split) } }
}

fn cut(snapshot: &Snapshot, split: &Split) -> u64 {
    // By position: a window has gaps where a store lost messages.
    let first_kept = snapshot.entry(split.cut).map(|entry| entry.position);
    let after = || snapshot.entries().last().map(|last| last.position.saturating_add(1));
    first_kept.or_else(after).unwrap_or_default().max(snapshot.cut())
}
