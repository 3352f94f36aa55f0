//! Which call of a store fails, and when.

use std::collections::HashMap;

/// A kind of call to a store.
///
/// # Example
///
/// ```
/// use session_compaction::testing::{Call, Fault};
///
/// let fault = Fault::on(Call::Commit);
/// assert_eq!(fault, Fault::on(Call::Commit).nth(1));
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Call {
    /// Messages are added, or a session is imported.
    Append,
    /// A session's state is changed.
    Commit,
    /// Sessions are listed.
    List,
    /// A session is read.
    Load,
    /// A session is removed.
    Remove,
    /// A history is replaced.
    Rewrite,
    /// A part of a transcript, or compactions, are read.
    Transcript,
}

/// One way in which a [`FaultyStore`](super::FaultyStore) fails.
///
/// # Default
///
/// The next call of the kind, once, before anything is done.
///
/// # Example
///
/// ```
/// use session_compaction::testing::{Call, Fault};
///
/// // The answer to the second append is lost, and to every one after it.
/// let fault = Fault::on(Call::Append).nth(2).for_ever().after_the_work();
/// assert_ne!(fault, Fault::on(Call::Append));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub struct Fault {
    pub(super) call: Call,
    /// How many calls pass before it.
    before: u64,
    for_ever: bool,
    pub(super) after: bool,
}

impl Fault {
    /// Fails calls of this kind.
    pub const fn on(call: Call) -> Self {
        Self { call, before: 0, for_ever: false, after: false }
    }

    /// Fails the n-th one from now on; 1 is the next.
    pub const fn nth(mut self, n: u64) -> Self {
        self.before = n.saturating_sub(1);
        self
    }

    /// Fails all that follow it as well.
    pub const fn for_ever(mut self) -> Self {
        self.for_ever = true;
        self
    }

    /// Fails after the work was done: it is the answer that is lost.
    pub const fn after_the_work(mut self) -> Self {
        self.after = true;
        self
    }
}

/// The faults that are to come, and the calls that came.
#[derive(Debug, Default)]
pub(super) struct Faults {
    pub(super) planned: Vec<Fault>,
    pub(super) calls: HashMap<Call, u64>,
}

impl Faults {
    /// Counts a call, and says how it fails.
    pub(super) fn next(&mut self, call: Call) -> Option<Fault> {
        let count = self.calls.entry(call).or_default();
        *count = count.saturating_add(1);
        let mut hit = None;
        self.planned.retain_mut(|fault| {
            if fault.call != call {
                return true;
            }
            if fault.before > 0 {
                fault.before -= 1;
                return true;
            }
            hit = hit.or(Some(*fault));
            fault.for_ever
        });
        hit
    }
}
