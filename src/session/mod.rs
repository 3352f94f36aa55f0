//! One conversation in memory: no I/O, nothing async.

mod key;
mod live;
mod log;
mod revision;
mod snapshot;
mod state;

pub use self::{
    key::SessionKey,
    revision::{Revision, SnapshotMark, SnapshotRef},
    snapshot::{Size, Snapshot},
    state::{Dropped, Pause, PauseUntil, SessionOptions, SessionState, StoredSummary, View},
};
pub(crate) use self::{live::Session, snapshot::Entry};
