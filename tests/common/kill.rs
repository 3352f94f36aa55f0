//! A child that writes is killed over and over: what it had acknowledged is
//! there, once.
//!
//! A test file names its own child, which opens a store and calls [`live`],
//! and a parent, which calls [`kills`].

use std::{
    collections::BTreeSet,
    env,
    io::{BufRead, BufReader, Read, Write},
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use session_compaction::{
    Commit, CommitResult, Counter, Message, NewMessage, SessionKey, SessionStore, Size, UsageEvent,
    View,
};

/// Tells the child where its store is.
const PLACE: &str = "KILLED_STORE";

fn key() -> SessionKey {
    SessionKey::new("s").unwrap()
}

fn numbered(n: u64) -> NewMessage {
    let text = format!("{n} {}", "text ".repeat(usize::try_from(n % 97).unwrap()));
    let message = Message::user(text).with_id(format!("id-{n}"));
    NewMessage::new(Arc::new(message), Size::default(), false)
}

/// Where the child's store is; `None` where it was not started by [`kills`].
pub(crate) fn place() -> Option<String> {
    env::var(PLACE).ok()
}

/// The child: appends numbered messages and compacts, says when it begins and
/// when it was acknowledged. Ends when its output does.
pub(crate) async fn live(store: &dyn SessionStore) {
    let mut next = store.load(&key()).await.unwrap().map_or(0, |session| session.next);
    let mut out = std::io::stdout();
    let mut say = |line: String| writeln!(out, "{line}").and_then(|()| out.flush()).is_ok();
    for step in 1_u64.. {
        let batch: Vec<_> = (next..next + 1 + step % 3).map(numbered).collect();
        if !say("begin".to_owned()) {
            return;
        }
        let receipt = store.append(&key(), &batch).await.unwrap();
        next += batch.len() as u64;
        if !say(format!("appended {next}")) {
            return;
        }
        if step.is_multiple_of(3) {
            let cut = next - 2;
            let view = serde_json::json!({"cut": cut, "summary": {"text": cut.to_string()}});
            let view: View = serde_json::from_value(view).unwrap();
            let commit = Commit::on(receipt.revision).with_view(view);
            let commit = commit.with_usage(UsageEvent::default());
            say("begin".to_owned());
            let result = store.commit(&key(), commit).await.unwrap();
            assert!(matches!(result, CommitResult::Committed(_)));
            say(format!("committed {cut}"));
        }
    }
}

/// What was acknowledged: messages below the one, a cut at or above the other,
/// and at least so many commits.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    next: u64,
    cut: u64,
    commits: u64,
    /// Whether something was begun and not acknowledged.
    pending: bool,
}

impl Acknowledged {
    fn read(&mut self, line: &str) {
        let number = |name| line.strip_prefix(name).and_then(|n| n.trim().parse::<u64>().ok());
        if line.starts_with("begin") {
            self.pending = true;
        } else if let Some(next) = number("appended ") {
            (self.next, self.pending) = (self.next.max(next), false);
        } else if let Some(cut) = number("committed ") {
            (self.cut, self.pending) = (self.cut.max(cut), false);
            self.commits += 1;
        }
    }
}

/// Starts the test `child`, kills it so long after some lines, and reads what
/// it said.
fn kill_after(place: &str, lines: u64, delay: Duration, acknowledged: &mut Acknowledged) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["child", "--exact", "--ignored", "--nocapture"])
        .env(PLACE, place)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    let mut said = 0;
    acknowledged.pending = false;
    while said < lines {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "the child ended by itself");
        let own = ["begin", "appended ", "committed "];
        said += u64::from(own.iter().any(|word| line.starts_with(word)));
        acknowledged.read(&line);
    }
    // Without, each kill would find the child in the same few steps.
    let line_read = Instant::now();
    while line_read.elapsed() < delay {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    // A line that was torn says nothing.
    let whole = rest.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().for_each(|line| acknowledged.read(line));
    child.wait().unwrap();
}

/// Checks that a store holds what was acknowledged, once.
async fn check(store: &dyn SessionStore, acknowledged: &Acknowledged) {
    let Some(session) = store.load(&key()).await.unwrap() else {
        assert_eq!(acknowledged.next, 0, "{acknowledged:?}");
        return;
    };
    let view = &session.state.view;
    assert!(view.cut >= acknowledged.cut, "{acknowledged:?}");
    let summary = view.summary.as_ref().map(|summary| summary.text.clone());
    assert_eq!(summary, (view.cut > 0).then(|| view.cut.to_string()));
    let archive = store.archive().unwrap();
    let kept = archive.transcript(&key(), 0..u64::MAX).await.unwrap();
    assert!(kept.len() as u64 >= acknowledged.next, "{acknowledged:?}");
    for (n, kept) in (0..).zip(&kept) {
        assert_eq!((kept.position, &kept.message), (n, &numbered(n).message));
    }
    let ids: BTreeSet<_> = kept.iter().map(|kept| kept.message.id()).collect();
    assert_eq!(ids.len(), kept.len());
    assert_eq!(session.window.len() as u64, kept.len() as u64 - view.cut);
    if let Some(usage) = store.usage() {
        let events = usage.totals(Some(&key())).await.unwrap().of(Counter::Summarizations);
        let compactions = archive.compactions(&key(), None, usize::MAX).await.unwrap();
        assert_eq!(compactions.len() as u64, events, "{acknowledged:?}");
        assert_eq!(session.state.revision.counter(), events);
        assert!(events >= acknowledged.commits, "{acknowledged:?}");
    }
}

/// What was killed, all in all.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) kills: u64,
    /// Kills that came between the beginning of a write and its answer.
    pub(crate) in_writes: u64,
    /// Compactions that were acknowledged.
    pub(crate) commits: u64,
}

/// How many kills share a store.
const IN_A_ROW: u64 = 25;

/// Kills the child so many times. `fresh` gives the place of a new store,
/// `open` opens one, and `damage` may do more harm after a kill.
pub(crate) async fn kills(
    count: u64,
    mut fresh: impl FnMut() -> String,
    open: impl AsyncFn(&str) -> Arc<dyn SessionStore>,
    damage: impl Fn(&str, u64),
) -> Account {
    let (mut place, mut acknowledged) = (String::new(), Acknowledged::default());
    let mut account = Account::default();
    for round in 0..count {
        if round % IN_A_ROW == 0 {
            account.commits += acknowledged.commits;
            (place, acknowledged) = (fresh(), Acknowledged::default());
        }
        let delay = Duration::from_micros(round * 7_919 % 2_000);
        kill_after(&place, 1 + round * 7 % 23, delay, &mut acknowledged);
        account.kills += 1;
        account.in_writes += u64::from(acknowledged.pending);
        damage(&place, round);
        let store = open(&place).await;
        check(&*store, &acknowledged).await;
    }
    account.commits += acknowledged.commits;
    assert!(account.in_writes * 10 >= account.kills * 3, "{account:?}");
    assert!(account.commits >= 50.min(count / 4), "{account:?}");
    account
}
