//! A child that writes is killed over and over: what it had acknowledged is
//! there, once.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "common/folder.rs"]
mod folder;

use std::{
    collections::BTreeSet,
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use folder::Folder;
use session_compaction::{
    Archive as _, Commit, JsonlStore, Message, NewMessage, SessionKey, SessionStore, Size, View,
};

const FOLDER: &str = "JSONL_KILL_FOLDER";

fn key() -> SessionKey {
    SessionKey::new("s").unwrap()
}

fn numbered(n: u64) -> NewMessage {
    let text = format!("{n} {}", "text ".repeat(usize::try_from(n % 97).unwrap()));
    let message = Message::user(text).with_id(format!("id-{n}"));
    NewMessage::new(Arc::new(message), Size::default(), false)
}

/// The child: appends numbered messages and compacts, and says so once it is
/// acknowledged. Ends when its output does.
#[tokio::test]
#[ignore = "it is started by the other test"]
async fn child() {
    let Ok(folder) = env::var(FOLDER) else { return };
    let store = JsonlStore::open(folder).unwrap();
    let session = store.load(&key()).await.unwrap();
    let mut next = session.as_ref().map_or(0, |session| {
        session.window.last().map_or(session.state.view.cut, |last| last.position + 1)
    });
    let mut out = std::io::stdout();
    for step in 1_u64.. {
        let batch: Vec<_> = (next..next + 1 + step % 3).map(numbered).collect();
        let receipt = store.append(&key(), &batch).await.unwrap();
        next += batch.len() as u64;
        let mut line = format!("appended {next}");
        if step.is_multiple_of(4) {
            let cut = next - 2;
            let view = serde_json::json!({"cut": cut, "summary": {"text": cut.to_string()}});
            let view: View = serde_json::from_value(view).unwrap();
            let _ = store.commit(&key(), Commit::on(receipt.revision).with_view(view)).await;
            line = format!("committed {cut}");
        }
        if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

/// What was acknowledged: messages below the one, a cut at or above the other.
#[derive(Debug, Default)]
struct Acknowledged {
    next: u64,
    cut: u64,
}

impl Acknowledged {
    fn read(&mut self, line: &str) {
        let number = |name| line.strip_prefix(name).and_then(|n| n.trim().parse().ok());
        self.next = self.next.max(number("appended ").unwrap_or_default());
        self.cut = self.cut.max(number("committed ").unwrap_or_default());
    }
}

/// Starts the child, kills it after some lines, and reads what it said.
fn kill_after(folder: &Path, lines: u64, acknowledged: &mut Acknowledged) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["child", "--exact", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    let mut said = 0;
    while said < lines {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "the child ended by itself");
        said += u64::from(line.starts_with("appended") || line.starts_with("committed"));
        acknowledged.read(&line);
    }
    child.kill().unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    // A line that was torn says nothing.
    let whole = rest.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().for_each(|line| acknowledged.read(line));
    child.wait().unwrap();
}

async fn check(folder: &Path, acknowledged: &Acknowledged) {
    let store = JsonlStore::open(folder).unwrap();
    let session = store.load(&key()).await.unwrap().unwrap();
    let view = &session.state.view;
    assert!(view.cut >= acknowledged.cut, "{acknowledged:?}");
    let summary = view.summary.as_ref().map(|summary| summary.text.clone());
    assert_eq!(summary, (view.cut > 0).then(|| view.cut.to_string()));
    let kept = store.transcript(&key(), 0..u64::MAX).await.unwrap();
    assert!(kept.len() as u64 >= acknowledged.next, "{acknowledged:?}");
    for (n, kept) in (0..).zip(&kept) {
        assert_eq!((kept.position, &kept.message), (n, &numbered(n).message));
    }
    let ids: BTreeSet<_> = kept.iter().map(|kept| kept.message.id()).collect();
    assert_eq!(ids.len(), kept.len());
    assert_eq!(session.window.len() as u64, kept.len() as u64 - view.cut);
}

async fn kills(count: u64) {
    let (mut folder, mut acknowledged) = (Folder::new(), Acknowledged::default());
    let mut commits = 0;
    for round in 0..count {
        if round % 25 == 0 {
            commits += acknowledged.cut;
            (folder, acknowledged) = (Folder::new(), Acknowledged::default());
        }
        kill_after(folder.path(), 1 + round * 7 % 11, &mut acknowledged);
        if round % 3 == 0 {
            // A kill does not tear a write; a loss of power does.
            let file = folder.path().join("s.jsonl");
            let mut bytes = fs::read(&file).unwrap();
            let line = bytes.split(|byte| *byte == b'\n').rev().nth(1).unwrap().to_vec();
            let torn = usize::try_from(round).unwrap() * 31 % (line.len() - 1);
            bytes.extend_from_slice(line.get(..torn).unwrap());
            fs::write(&file, bytes).unwrap();
        }
        check(folder.path(), &acknowledged).await;
    }
    assert!(commits > 0 || count <= 25, "some of it was compacted");
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
