//! Bounds what an import holds by what it has read.

use crate::message::json::values;

/// How much more may be held than was read, with some room to work in.
const MORE: usize = 60 << 20;

/// From here on it is looked into what a message may take before it is read.
const CAREFUL: usize = 8 << 20;

/// The most that a value takes while it is read.
const VALUE: usize = 160;

#[derive(Debug, Default)]
pub(super) struct Room {
    read: usize,
    held: usize,
    /// What the items take whose message is not complete.
    open: usize,
}

impl Room {
    /// Counts JSON that was read.
    pub(super) const fn read(&mut self, json: &str) {
        self.read = self.read.saturating_add(json.len());
    }

    /// Forgets what was held.
    pub(super) const fn clear(&mut self) {
        self.held = 0;
    }

    /// Takes what one more item of a message takes, where there is as much.
    pub(super) const fn open(&mut self, json: &str) -> bool {
        // Its part, its source, and the text of all items, which grows by doubling.
        let open = self.open.saturating_add(json.len().saturating_mul(3)).saturating_add(VALUE);
        let is_enough = self.held.saturating_add(open) <= self.read.saturating_add(MORE);
        if is_enough {
            self.open = open;
        }
        is_enough
    }

    /// Forgets the items: their message is complete.
    pub(super) const fn close(&mut self) {
        self.open = 0;
    }

    /// Returns true where a message can be read, of whatever it is made.
    pub(super) fn is_enough_for(&self, json: &str) -> bool {
        let more = self.held.saturating_add(self.open).saturating_sub(self.read);
        if more < CAREFUL {
            return true;
        }
        // Its text, and what is written to compare it with.
        let texts = json.len().saturating_mul(2);
        let values = values(json, usize::MAX).saturating_mul(VALUE);
        more.saturating_add(texts).saturating_add(values) <= MORE
    }

    /// Takes that many bytes, where there are as many.
    pub(super) const fn take(&mut self, bytes: usize) -> bool {
        let held = self.held.saturating_add(bytes);
        let is_enough = held <= self.read.saturating_add(MORE);
        if is_enough {
            self.held = held;
        }
        is_enough
    }
}
