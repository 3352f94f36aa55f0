//! A child that writes to a folder of JSON lines is killed over and over, and
//! the last line torn now and then: what it had acknowledged is there, once.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "common/folder.rs"]
mod folder;
#[path = "common/kill.rs"]
mod kill;

use std::{fs, path::Path, sync::Arc};

use folder::Folder;
use session_compaction::{JsonlStore, SessionStore};

#[tokio::test]
#[ignore = "it is started by the other test"]
async fn child() {
    let Some(folder) = kill::place() else { return };
    kill::live(&JsonlStore::open(folder).unwrap()).await;
}

/// Adds the beginning of a line that was there already: a kill does not tear a
/// write, a loss of power does.
fn tear(folder: &str, round: u64) {
    let file = Path::new(folder).join("s.jsonl");
    let Ok(mut bytes) = fs::read(&file) else { return };
    let lines = bytes.split(|byte| *byte == b'\n').rev().nth(1);
    let Some(line) = lines.map(<[u8]>::to_vec).filter(|line| line.len() > 1) else { return };
    let torn = usize::try_from(round).unwrap() * 31 % (line.len() - 1);
    bytes.extend_from_slice(line.get(..torn).unwrap());
    fs::write(&file, bytes).unwrap();
}

async fn kills(count: u64) {
    let mut folder = Folder::new();
    let fresh = || {
        folder = Folder::new();
        folder.path().display().to_string()
    };
    let open = async |folder: &str| {
        let store: Arc<dyn SessionStore> = Arc::new(JsonlStore::open(folder).unwrap());
        store
    };
    let damage = |folder: &str, round: u64| {
        if round.is_multiple_of(3) {
            tear(folder, round);
        }
    };
    let account = kill::kills(count, fresh, open, damage).await;
    eprintln!("{account:?}");
    assert_eq!(account.kills, count);
}

#[tokio::test]
async fn what_was_acknowledged_survives_kills() {
    kills(200).await;
}

#[tokio::test]
#[ignore = "takes minutes: cargo test --release --test store_jsonl_kill -- --ignored ten_thousand"]
async fn what_was_acknowledged_survives_ten_thousand_kills() {
    kills(10_000).await;
}
