//! What is SQLite's own way.

use std::time::SystemTime;

use sqlx::{SqlitePool, sqlite::SqliteConnection};

pub(super) use super::options::Clock;
use crate::{session::SessionKey, store::sql::bound};

pub(super) type Connection = SqliteConnection;
pub(super) type Pool = SqlitePool;

pub(super) const BEGIN_READ: &str = "BEGIN";

/// Immediate: a transaction that begins as a reader cannot always go on as a
/// writer.
pub(super) const BEGIN_WRITE: &str = "BEGIN IMMEDIATE";

/// A transaction that writes has the whole file.
pub(super) const LOCK: &str = "";
pub(super) const SKIP_LOCKED: &str = "";

pub(super) const NEXT_LEASE: &str = "UPDATE {p}lease_tokens SET last = last + 1 RETURNING last";

/// There is one writer at a time, and so one shard.
pub(super) const fn shard(_: &SessionKey) -> i64 {
    0
}

/// Returns the time in milliseconds since 1970.
#[expect(clippy::unused_async, reason = "other databases are asked")]
pub(super) async fn now(_: &mut Connection, clock: &Clock) -> Result<i64, sqlx::Error> {
    let now = clock().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Ok(bound(u64::try_from(now.as_millis()).unwrap_or(u64::MAX)))
}

/// Whether a transaction that failed may be run again: here it has waited for
/// others already.
pub(super) const fn is_passing(_: &sqlx::Error) -> bool {
    false
}
