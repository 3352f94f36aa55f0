//! Which sessions stay in memory.

use std::sync::{Arc, atomic::Ordering};

use super::Inner;

impl Inner {
    /// Where there are as many sessions in memory as there may be, lets go of
    /// an eighth of them: those that were not used for the longest time. A
    /// session that a task, a turn or a handle holds stays.
    pub(super) fn make_room(&self) {
        if self.cells.len() < self.max_cells {
            return;
        }
        let mut uses: Vec<u64> =
            self.cells.iter().map(|cell| cell.used.load(Ordering::Relaxed)).collect();
        // In one go for many: looking for the oldest each time would cost as much.
        let going = (uses.len() / 8).max(1).min(uses.len().saturating_sub(1));
        let (_, oldest, _) = uses.select_nth_unstable(going);
        let oldest = *oldest;
        // The map's lock is held: nobody can take the cell meanwhile.
        self.cells.retain(|_, cell| {
            cell.used.load(Ordering::Relaxed) >= oldest || Arc::strong_count(cell) > 1
        });
    }
}
