//! What is PostgreSQL's own way.

use sqlx::{PgPool, postgres::PgConnection};

use crate::session::SessionKey;

pub(super) type Connection = PgConnection;
pub(super) type Pool = PgPool;

/// The server's clock counts.
pub(super) type Clock = ();

/// A snapshot: what is written meanwhile is not seen.
pub(super) const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
pub(super) const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// A session is changed by one transaction at a time.
pub(super) const LOCK: &str = "FOR UPDATE";
pub(super) const SKIP_LOCKED: &str = "FOR UPDATE SKIP LOCKED";

/// A sequence: nobody waits for it, and numbers are never given twice.
pub(super) const NEXT_LEASE: &str = "SELECT nextval('{p}lease_tokens')";

/// Over how many rows a sum of the whole store is spread.
const SHARDS: u32 = 16;

/// Returns where a session's usage is added up, so that sessions do not wait
/// for each other.
pub(super) fn shard(key: &SessionKey) -> i64 {
    let mixed =
        key.bytes().fold(0_u32, |mixed, byte| mixed.wrapping_mul(31).wrapping_add(u32::from(byte)));
    i64::from(mixed % SHARDS)
}

/// Returns the time in milliseconds since 1970.
pub(super) async fn now(connection: &mut Connection, (): &Clock) -> Result<i64, sqlx::Error> {
    let now =
        sqlx::query_scalar("SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)");
    now.fetch_one(connection).await
}

/// Whether a transaction that failed before its commit may be run again: it
/// met another one, or its connection is gone.
pub(super) fn is_passing(error: &sqlx::Error) -> bool {
    match error {
        // Serialization failure, deadlock, a session that was created at the
        // same time; a server that ends connections as it stops or by command.
        sqlx::Error::Database(error) => error
            .code()
            .is_some_and(|code| ["40001", "40P01", "23505", "57P01", "57P02"].contains(&&*code)),
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        _ => false,
    }
}
