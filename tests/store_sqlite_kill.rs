//! A child that writes to a SQLite file is killed over and over: what it had
//! acknowledged is there, once.

#![cfg(feature = "sqlite")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "common/kill.rs"]
mod kill;

use std::sync::Arc;

use session_compaction::{SessionStore, SqliteStore};
use tempfile::TempDir;

#[tokio::test]
#[ignore = "it is started by the other test"]
async fn child() {
    let Some(path) = kill::place() else { return };
    let store = SqliteStore::open(path).await.unwrap();
    kill::live(&store).await;
}

async fn kills(count: u64) {
    let mut folder = TempDir::new().unwrap();
    let fresh = || {
        folder = TempDir::new().unwrap();
        folder.path().join("sessions.db").display().to_string()
    };
    let open = async |path: &str| {
        let store: Arc<dyn SessionStore> = Arc::new(SqliteStore::open(path).await.unwrap());
        store
    };
    let account = kill::kills(count, fresh, open, |_, _| {}).await;
    eprintln!("{account:?}");
    assert_eq!(account.kills, count);
}

#[tokio::test]
async fn what_was_acknowledged_survives_kills() {
    kills(300).await;
}

#[tokio::test]
#[ignore = "takes minutes: cargo test --features sqlite --test store_sqlite_kill -- --ignored two_thousand"]
async fn what_was_acknowledged_survives_two_thousand_kills() {
    kills(2_000).await;
}
