//! One conversation in memory: no I/O, nothing async.

mod key;
mod live;
mod log;
mod options;
mod overhead;
mod revision;
mod snapshot;
mod state;

pub use self::{
    key::SessionKey,
    options::SessionOptions,
    revision::{Revision, SnapshotMark, SnapshotRef},
    snapshot::{Size, Snapshot},
    state::{Dropped, Pause, PauseUntil, SessionState, StoredSummary, View},
};
pub(crate) use self::{
    live::{Change, Session},
    overhead::Overhead,
    snapshot::Entry,
};
