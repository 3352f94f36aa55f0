//! What `JsonlStore` promises of its files: restarts, damage, names, locks.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "common/folder.rs"]
mod folder;

use std::{fs, path::PathBuf, sync::Arc};

use folder::Folder;
use session_compaction::{
    Archive as _, Commit, Compact, JsonlStore, ListPage, Message, NewMessage, Pause, Rewrite,
    SessionKey, SessionManager, SessionOptions, SessionStore as _, Size, StoredSession,
    StoredSummary, SummarizationConfig, View, summarize_fn,
};

fn key(text: &str) -> SessionKey {
    SessionKey::new(text).unwrap()
}

fn named(text: &str) -> NewMessage {
    NewMessage::new(Arc::new(Message::user(text).with_id(text)), Size::default(), false)
}

fn open(folder: &Folder) -> JsonlStore {
    JsonlStore::open(folder.path()).unwrap()
}

async fn append(store: &JsonlStore, texts: &[&str]) {
    let messages: Vec<_> = texts.iter().map(|text| named(text)).collect();
    store.append(&key("s"), &messages).await.unwrap();
}

async fn load(store: &JsonlStore) -> StoredSession {
    store.load(&key("s")).await.unwrap().unwrap()
}

/// The texts of the whole transcript, each with its position.
async fn texts(store: &JsonlStore) -> Vec<(u64, String)> {
    let kept = store.transcript(&key("s"), 0..u64::MAX).await.unwrap();
    kept.iter().map(|kept| (kept.position, kept.message.text())).collect()
}

fn at(expected: &[(u64, &str)]) -> Vec<(u64, String)> {
    expected.iter().map(|(position, text)| (*position, (*text).to_owned())).collect()
}

fn file(folder: &Folder) -> PathBuf {
    folder.path().join("s.jsonl")
}

fn view(json: serde_json::Value) -> View {
    serde_json::from_value(json).unwrap()
}

/// What two equal sessions have in common, as text.
fn whole(session: &StoredSession) -> String {
    let kept = session.carried.iter().chain(&session.window);
    let kept: Vec<_> =
        kept.map(|kept| (kept.position, serde_json::to_string(&*kept.message).unwrap())).collect();
    format!("{} {kept:?}", serde_json::to_string(&session.state).unwrap())
}

#[tokio::test]
async fn a_session_survives_a_restart_with_all_of_its_state() {
    let folder = Folder::new();
    let store = open(&folder);
    append(&store, &["a", "b\0", "c", "d"]).await;
    let odd: Message =
        serde_json::from_str("{\"content\" : \"e\",\n\"role\":\"user\", \"n\":1.00}").unwrap();
    let odd = NewMessage::new(Arc::new(odd.with_id("e")), Size::default(), false);
    store.append(&key("s"), &[odd]).await.unwrap();
    let revision = load(&store).await.state.revision;
    let pause = serde_json::json!({"until": {"tokens": 7}, "reason": "no gain"});
    let pause: Pause = serde_json::from_value(pause).unwrap();
    let options = serde_json::json!({"model": "gpt-5", "labels": {"tenant": "7"}});
    let options: SessionOptions = serde_json::from_value(options).unwrap();
    let view = view(serde_json::json!({
        "cut": 3, "carried": [0], "summary": {"text": "b \u{0} and c", "by": "model"},
        "dropped": {"messages": 1, "since": 2},
    }));
    let commit = Commit::on(revision).with_view(view).with_options(options);
    let commit = commit.with_pause(Some(pause));
    assert_ne!(format!("{:?}", store.commit(&key("s"), commit).await.unwrap()), "Stale");
    append(&store, &["f"]).await;
    let (before, transcript) = (load(&store).await, texts(&store).await);
    drop(store);

    let store = open(&folder);
    let after = load(&store).await;
    assert_eq!(whole(&after), whole(&before));
    assert_eq!(after.carried.len() + after.window.len(), 4);
    assert_eq!(texts(&store).await, transcript);
    assert_eq!(transcript.len(), 6);
    // Ids are known again, also those below the cut.
    let again = store.append(&key("s"), &[named("f"), named("b\0"), named("g")]).await.unwrap();
    let duplicates: Vec<_> =
        again.placed.iter().map(|placed| (placed.position, placed.duplicate)).collect();
    assert_eq!(duplicates, [(5, true), (1, true), (6, false)]);
    let other = Message::user("other").with_id("d");
    let other = NewMessage::new(Arc::new(other), Size::default(), false);
    assert!(store.append(&key("s"), &[other]).await.unwrap_err().is_duplicate_id());
    assert_eq!(store.repaired().lines, 0);
}

#[tokio::test]
async fn a_rewrite_survives_a_restart() {
    let folder = Folder::new();
    let store = open(&folder);
    append(&store, &["a", "b"]).await;
    let rewrite = Rewrite::new(vec![named("x"), named("a")], Some(StoredSummary::new("sum")));
    let _ = store.rewrite(&key("s"), rewrite).await.unwrap();
    append(&store, &["y"]).await;
    let before = load(&store).await;
    drop(store);
    let store = open(&folder);
    assert_eq!(whole(&load(&store).await), whole(&before));
    let receipt = store.append(&key("s"), &[named("a"), named("b")]).await.unwrap();
    let placed: Vec<_> = receipt.placed.iter().map(|it| (it.position, it.duplicate)).collect();
    assert_eq!(placed, [(3, true), (5, false)], "ids from before the rewrite are free");
}

fn manager(folder: &Folder) -> SessionManager {
    let config = SummarizationConfig { keep_last_messages: 4, ..Default::default() };
    let summarizer = summarize_fn(|_| async { Ok("DELTA summary") });
    let builder = SessionManager::builder().store(open(folder)).config(config);
    builder.summarizer(summarizer).build().unwrap()
}

async fn history(sessions: &SessionManager, name: &str) -> (Vec<String>, Option<String>, u64) {
    let snapshot = sessions.history(name).await.unwrap();
    let messages = snapshot.iter().map(|message| serde_json::to_string(&**message).unwrap());
    (messages.collect(), snapshot.summary().map(|it| it.text.clone()), snapshot.dropped())
}

#[tokio::test]
async fn a_manager_finds_the_same_history_after_a_restart() {
    let folder = Folder::new();
    let sessions = manager(&folder);
    sessions.add_message("forced", Message::system("rules")).await.unwrap();
    for n in 0..11 {
        for name in ["compacted", "forced", "plain"] {
            let question = format!("Turn {n}: please check item {n}. {}", "It is long. ".repeat(9));
            sessions.add_message(name, Message::user(question)).await.unwrap();
            let answer = Message::assistant(format!("Item {n} is checked."));
            sessions.add_message(name, answer).await.unwrap();
        }
    }
    let report = sessions.compact("compacted", Compact::now()).await;
    assert!(report.applied().is_some(), "{report}");
    let _ = sessions.force_compression("forced").await.unwrap();
    let names = ["compacted", "forced", "plain"];
    let mut before = Vec::new();
    for name in names {
        before.push((history(&sessions, name).await, sessions.snapshot(name).await.unwrap()));
    }
    drop(sessions);
    let sessions = manager(&folder);
    for (name, before) in names.iter().zip(before) {
        let after = (history(&sessions, name).await, sessions.snapshot(name).await.unwrap());
        assert_eq!(after, before, "{name}");
    }
    assert_eq!(history(&sessions, "compacted").await.1.as_deref(), Some("DELTA summary"));
    assert!(history(&sessions, "forced").await.2 > 0);
    assert_eq!(sessions.transcript("compacted", 0..100).await.unwrap().len(), 22);
}

/// A small session with a record of each kind, and its file.
async fn sample(folder: &Folder) -> Vec<u8> {
    let store = open(folder);
    append(&store, &["a", "b"]).await;
    append(&store, &["c"]).await;
    let revision = load(&store).await.state.revision;
    let view = view(serde_json::json!({"cut": 1, "summary": {"text": "sum"}}));
    let _ = store.commit(&key("s"), Commit::on(revision).with_view(view)).await.unwrap();
    append(&store, &["d"]).await;
    drop(store);
    fs::read(file(folder)).unwrap()
}

const ALL: &[(u64, &str)] = &[(0, "a"), (1, "b"), (2, "c"), (3, "d")];

#[tokio::test]
async fn every_byte_of_the_last_record_cut() {
    let folder = Folder::new();
    let bytes = sample(&folder).await;
    let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for cut in last..=bytes.len() {
        fs::write(file(&folder), &bytes[..cut]).unwrap();
        let store = open(&folder);
        append(&store, &["after"]).await;
        drop(store);
        let store = open(&folder);
        // Only the line break is missing: the record is whole.
        let expected = if cut + 1 >= bytes.len() {
            at(&[ALL, &[(4, "after")]].concat())
        } else {
            at(&[&ALL[..3], &[(3, "after")]].concat())
        };
        assert_eq!(texts(&store).await, expected, "{cut}");
        assert_eq!(store.repaired().lines, 0, "the end was cut off or closed: {cut}");
    }
}

#[tokio::test]
async fn a_torn_end_is_counted_once() {
    let folder = Folder::new();
    let bytes = sample(&folder).await;
    fs::write(file(&folder), &bytes[..bytes.len() - 5]).unwrap();
    let store = open(&folder);
    for _ in 0..3 {
        assert_eq!(texts(&store).await, at(&ALL[..3]));
        load(&store).await;
    }
    assert_eq!(store.repaired().lines, 1);
}

#[tokio::test]
async fn zeros_between_lines_hide_nothing() {
    let folder = Folder::new();
    let bytes = sample(&folder).await;
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    for place in ends.flat_map(|end| [end, end + 1]).chain([0]) {
        let (head, tail) = bytes.split_at(place);
        fs::write(file(&folder), [head, &[0; 300], tail].concat()).unwrap();
        let store = open(&folder);
        append(&store, &["after"]).await;
        assert_eq!(texts(&store).await, at(&[ALL, &[(4, "after")]].concat()), "{place}");
        assert_eq!(load(&store).await.state.view.cut, 1);
        assert_eq!(store.repaired().lines, 1, "{place}");
        drop(store);
        assert_eq!(texts(&open(&folder)).await.len(), 5, "{place}");
    }
}

#[tokio::test]
async fn every_byte_flipped() {
    let folder = Folder::new();
    let bytes = sample(&folder).await;
    // The texts that a line holds, and whether it is the commit.
    let lines = [&[][..], &["a", "b"], &["c"], &["<commit>"], &["d"]];
    let mut line = 0;
    for (place, byte) in bytes.iter().enumerate() {
        for other in [byte ^ 1, byte ^ 0x80, b'\n', b'}', 0] {
            if other == *byte {
                continue;
            }
            let mut flipped = bytes.clone();
            flipped[place] = other;
            fs::write(file(&folder), flipped).unwrap();
            let store = open(&folder);
            let expected: Vec<_> =
                at(ALL).into_iter().filter(|(_, text)| !lines[line].contains(&&**text)).collect();
            let found = texts(&store).await;
            assert!(
                expected.iter().all(|kept| found.contains(kept)),
                "byte {place} is {other}: {found:?}"
            );
            assert!(found.len() <= ALL.len() && found.is_sorted());
            let session = load(&store).await;
            let committed = session.state.view.cut == 1;
            assert!(committed || lines[line] == ["<commit>"], "byte {place} is {other}");
            assert_eq!(session.state.view.summary.is_some(), committed);
            assert!(store.repaired().lines >= 1, "byte {place} is {other}");
            if other != byte ^ 1 {
                continue;
            }
            // What comes next does not suffer.
            append(&store, &["after"]).await;
            let mut all = found;
            let next = all.last().unwrap().0 + 1;
            all.push((next, "after".into()));
            drop(store);
            assert_eq!(texts(&open(&folder)).await, all, "byte {place} is {other}");
        }
        line += usize::from(*byte == b'\n');
    }
}

#[tokio::test]
async fn a_doubled_block_is_read_once() {
    let folder = Folder::new();
    let bytes = sample(&folder).await;
    fs::write(file(&folder), [&bytes[..], &bytes[..]].concat()).unwrap();
    let store = open(&folder);
    assert_eq!(texts(&store).await, at(ALL));
    assert_eq!(load(&store).await.state.revision.counter(), 1);
    append(&store, &["after"]).await;
    drop(store);
    let store = open(&folder);
    assert_eq!(texts(&store).await, at(&[ALL, &[(4, "after")]].concat()));
    let removed = store.remove(&key("s")).await.unwrap();
    assert_eq!((removed.existed, removed.messages), (true, 5));
}

#[tokio::test]
async fn a_lost_message_leaves_a_gap() {
    let folder = Folder::new();
    let bytes = sample(&folder).await;
    let mut lines: Vec<_> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    lines[2] = b"{\"half\n";
    fs::write(file(&folder), lines.concat()).unwrap();
    let sessions = manager(&folder);
    assert_eq!(history(&sessions, "s").await.0.len(), 2, "b and d");
    for n in 4..7 {
        let added = sessions.add_message("s", Message::user(format!("{n}"))).await.unwrap();
        assert_eq!(added.position, n);
    }
    assert_eq!(history(&sessions, "s").await.0.len(), 5);
    let found = sessions.transcript("s", 0..100).await.unwrap();
    let positions: Vec<_> = found.iter().map(|kept| kept.position).collect();
    assert_eq!(positions, [0, 1, 3, 4, 5, 6]);

    // A cut is a position, not a count: nothing is lost or kept by mistake.
    let mark = sessions.snapshot("s").await.unwrap();
    assert!(sessions.apply_summarization("s", "summary", mark, 2).await.applied().is_some());
    assert_eq!(sessions.history("s").await.unwrap().cut(), 5);
    assert_eq!(history(&sessions, "s").await.0.len(), 2);
    sessions.set_history("s", [Message::user("new")]).await.unwrap();
    assert_eq!(history(&sessions, "s").await.0.len(), 1);
}

#[tokio::test]
async fn garbage_is_no_session_and_can_become_one() {
    let folder = Folder::new();
    drop(open(&folder));
    for garbage in [&b""[..], b"\n", b"not json\nnor this", b"{\"crc\":\"", &[0; 4096], &[0xff; 99]]
    {
        fs::write(file(&folder), garbage).unwrap();
        let store = open(&folder);
        assert!(store.load(&key("s")).await.unwrap().is_none());
        assert!(store.list(ListPage::default()).await.unwrap().is_empty());
        append(&store, &["a"]).await;
        drop(store);
        let store = open(&folder);
        assert_eq!(texts(&store).await, at(&[(0, "a")]));
        assert_eq!(store.list(ListPage::default()).await.unwrap(), [key("s")]);
    }
}

#[tokio::test]
async fn a_damaged_header_is_written_again() {
    for name in ["s".to_owned(), "K".repeat(1024)] {
        let (folder, name) = (Folder::new(), key(&name));
        let store = open(&folder);
        store.append(&name, &[named("a")]).await.unwrap();
        drop(store);
        let entries = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let path = entries.into_iter().find(|path| path.extension().is_some()).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        bytes[20] ^= 1;
        fs::write(&path, bytes).unwrap();
        let store = open(&folder);
        assert_eq!(store.load(&name).await.unwrap().unwrap().window.len(), 1);
        assert_eq!(store.repaired().lines, 1);
        store.append(&name, &[named("b")]).await.unwrap();
        drop(store);
        let store = open(&folder);
        assert_eq!(store.list(ListPage::default()).await.unwrap(), std::slice::from_ref(&name));
        assert_eq!(store.load(&name).await.unwrap().unwrap().window.len(), 2);
    }
}

#[tokio::test]
async fn a_file_of_another_session_is_refused() {
    let folder = Folder::new();
    let bytes = sample(&folder).await;
    fs::copy(file(&folder), folder.path().join("t.jsonl")).unwrap();
    let store = open(&folder);
    let error = store.load(&key("t")).await.unwrap_err();
    assert!(error.is_store() && error.to_string().contains("t.jsonl"), "{error}");
    let error = store.append(&key("t"), &[named("x")]).await.unwrap_err();
    assert!(error.is_store(), "{error}");
    assert_eq!(fs::read(folder.path().join("t.jsonl")).unwrap(), bytes);
    assert_eq!(store.list(ListPage::default()).await.unwrap(), [key("s")]);
}

#[tokio::test]
async fn keys_never_meet_and_never_leave_the_folder() {
    let outer = Folder::new();
    let folder = outer.path().join("inner");
    let long = ["k".repeat(300), format!("{}j", "k".repeat(299)), "é".repeat(512)];
    let keys: Vec<_> = [
        "a:b",
        "a_b",
        "a/b",
        "a\\b",
        "A:B",
        "a%3Ab",
        "\u{e9}",
        "e\u{301}",
        "CON",
        "con",
        "nul.txt",
        "x.",
        "x ",
        " ",
        "..",
        ".",
        "\u{202e}a",
        "../../x",
        "/etc/passwd",
        "\0",
        "~",
        ".lock",
        "s.jsonl",
    ]
    .into_iter()
    .chain(long.iter().map(String::as_str))
    .map(key)
    .collect();
    let store = JsonlStore::open(&folder).unwrap();
    for key in &keys {
        store.append(key, &[named(key)]).await.unwrap();
    }
    drop(store);
    let store = JsonlStore::open(&folder).unwrap();
    for key in &keys {
        let session = store.load(key).await.unwrap().unwrap();
        let texts: Vec<_> = session.window.iter().map(|kept| kept.message.text()).collect();
        assert_eq!(texts, [key.as_str()]);
    }
    let mut sorted = keys.clone();
    sorted.sort();
    assert_eq!(store.list(ListPage::default()).await.unwrap(), sorted);
    assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 1);
    let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<_> = names.map(|name| name.into_string().unwrap().to_lowercase()).collect();
    assert_eq!(names.len(), keys.len() + 1, "a file each, and the lock");
    for key in &keys {
        assert!(store.remove(key).await.unwrap().existed);
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[tokio::test]
async fn one_writer_a_folder() {
    let folder = Folder::new();
    let store = open(&folder);
    append(&store, &["a"]).await;
    let error = JsonlStore::open(folder.path()).unwrap_err();
    assert!(error.is_locked(), "{error}");
    assert!(error.to_string().contains(folder.path().to_str().unwrap()), "{error}");
    drop(store);
    for _ in 0..100 {
        // Free at once, whatever was done last.
        let store = open(&folder);
        append(&store, &["b"]).await;
        texts(&store).await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn planted_files_are_refused_and_modes_are_private() {
    use std::os::unix::{
        fs::{PermissionsExt as _, symlink},
        net::UnixListener,
    };

    let outer = Folder::new();
    let folder = outer.path().join("inner");
    let store = JsonlStore::open(&folder).unwrap();
    let victim = outer.path().join("victim");
    fs::write(&victim, "mine").unwrap();
    symlink(&victim, folder.join("s.jsonl")).unwrap();
    symlink(outer.path().join("nowhere"), folder.join("t.jsonl")).unwrap();
    let _socket = UnixListener::bind(folder.join("u.jsonl")).unwrap();
    fs::create_dir(folder.join("v.jsonl")).unwrap();
    for name in ["s", "t", "u", "v"] {
        let error = store.append(&key(name), &[named("x")]).await.unwrap_err();
        assert!(error.is_store() && error.to_string().contains(name), "{error}");
        assert!(store.load(&key(name)).await.is_err());
    }
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
    assert!(!outer.path().join("nowhere").exists());

    store.append(&key("mine"), &[named("x")]).await.unwrap();
    assert_eq!(store.list(ListPage::default()).await.unwrap(), [key("mine")]);
    assert!(store.file(&key("mine")).ends_with("inner/mine.jsonl"));
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder.join("mine.jsonl")), 0o600);
    assert_eq!(mode(folder.join(".lock")), 0o600);
    assert_eq!(mode(folder.clone()), 0o700);
    drop(store);

    fs::remove_file(folder.join(".lock")).unwrap();
    symlink(&victim, folder.join(".lock")).unwrap();
    assert!(JsonlStore::open(&folder).unwrap_err().is_store());
}

#[tokio::test]
async fn pages_of_a_long_transcript() {
    let folder = Folder::new();
    let store = open(&folder);
    let message = |n: u64| {
        let text = format!("{n} {}", "word ".repeat(usize::try_from(n % 400).unwrap()));
        let message = Message::user(text).with_id(format!("id-{n}"));
        NewMessage::new(Arc::new(message), Size::default(), true)
    };
    for start in (0..600).step_by(3) {
        let batch: Vec<_> = (start..start + 3).map(message).collect();
        store.append(&key("s"), &batch).await.unwrap();
    }
    let revision = load(&store).await.state.revision;
    let carried: Vec<u64> = [0, 1, 7, 8, 250, 251, 300, 550].to_vec();
    let view = view(serde_json::json!({"cut": 590, "carried": carried}));
    let _ = store.commit(&key("s"), Commit::on(revision).with_view(view)).await.unwrap();
    // As it was written, and as it is found again.
    let mut store = Some(store);
    for _ in 0..2 {
        let store = store.take().unwrap_or_else(|| open(&folder));
        for start in (0..600).step_by(37) {
            let page = store.transcript(&key("s"), start..start + 50).await.unwrap();
            let positions: Vec<_> = page.iter().map(|kept| kept.position).collect();
            assert_eq!(positions, (start..(start + 50).min(600)).collect::<Vec<_>>());
            for kept in &page {
                assert_eq!(kept.message, message(kept.position).message);
            }
        }
        let session = load(&store).await;
        let positions: Vec<_> = session.carried.iter().map(|kept| kept.position).collect();
        assert_eq!(positions, carried);
        assert_eq!(session.window.len(), 10);
    }
}

#[tokio::test]
async fn six_hundred_messages_take_three_times_their_text_at_most() {
    let folder = Folder::new();
    let sessions = manager(&folder);
    for _ in 0..600 {
        sessions.add_message("s", Message::user("x".repeat(200))).await.unwrap();
    }
    let size = fs::metadata(file(&folder)).unwrap().len();
    assert!(size <= 3 * 600 * 200, "{size}");
}
