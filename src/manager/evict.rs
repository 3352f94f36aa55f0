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
        let idle = self.cells.iter().filter(|cell| Arc::strong_count(cell) == 1);
        let mut uses: Vec<u64> = idle.map(|cell| cell.used.load(Ordering::Relaxed)).collect();
        // In one go for many: looking for the oldest each time would cost as much.
        let going = self.max_cells.div_ceil(8).min(uses.len());
        let Some(last) = going.checked_sub(1) else { return };
        let (_, newest, _) = uses.select_nth_unstable(last);
        let newest = *newest;
        // The map's lock is held: nobody can take the cell meanwhile.
        self.cells.retain(|_, cell| {
            cell.used.load(Ordering::Relaxed) > newest || Arc::strong_count(cell) > 1
        });
    }
}
