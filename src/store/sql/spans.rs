//! Which positions a view sends, as ranges that an index can be asked for.

use std::ops::Range;

use super::{
    codec::{bound, signed},
    error::Failure,
};
use crate::{session::View, store::ID_HORIZON};

/// Returns the positions that are carried, and those of the window, in order.
pub(crate) fn sent(view: &View) -> (Vec<Range<i64>>, Vec<Range<i64>>) {
    let mut carried: Vec<Range<i64>> = Vec::new();
    for position in view.carried.iter().filter(|position| **position < view.cut) {
        let position = bound(*position);
        match carried.last_mut() {
            Some(last) if last.end == position => last.end = position.saturating_add(1),
            _ => carried.push(position..position.saturating_add(1)),
        }
    }
    (carried, gaps(bound(view.cut), rewound(view)))
}

/// Returns the positions that are neither sent nor owed to a summary.
pub(crate) fn hidden(view: &View) -> Vec<Range<i64>> {
    // What was dropped without a summary is read by the next one.
    let owed = view.dropped.messages > 0 && view.dropped.since < view.cut;
    let owed = owed.then(|| bound(view.dropped.since)..bound(view.cut));
    let (mut shown, window) = sent(view);
    shown.extend(owed.into_iter().chain(window));
    shown.sort_unstable_by_key(|range| range.start);
    let mut hidden = gaps(0, shown);
    // Behind the window there is nothing.
    hidden.retain(|range| range.end < i64::MAX);
    hidden
}

fn rewound(view: &View) -> Vec<Range<i64>> {
    view.rewound.iter().map(|range| bound(range.start)..bound(range.end)).collect()
}

/// Returns what lies from a position on and in none of these ranges, which are
/// ordered by their starts.
fn gaps(from: i64, ranges: Vec<Range<i64>>) -> Vec<Range<i64>> {
    let mut gaps = Vec::with_capacity(ranges.len() + 1);
    let mut at = from;
    for range in ranges {
        if at < range.start {
            gaps.push(at..range.start);
        }
        at = at.max(range.end);
    }
    if at < i64::MAX {
        gaps.push(at..i64::MAX);
    }
    gaps
}

/// Returns the first position that a view does not speak of.
pub(crate) fn first_free(view: &View) -> Result<i64, Failure> {
    let first = view.rewound.last().map_or(view.cut, |last| last.end.max(view.cut));
    signed("cut", first)
}

/// Returns the position from which on ids stay taken.
pub(crate) fn ids_from(cut: i64, next: i64) -> i64 {
    cut.min(next.saturating_sub(bound(ID_HORIZON as u64)))
}
