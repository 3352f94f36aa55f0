//! The contract of `SessionStore`, checked on each store of the crate.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

#[path = "common/folder.rs"]
mod folder;

use std::{
    future::Future,
    sync::{Arc, atomic::AtomicU64, atomic::Ordering},
};

use folder::Folder;
use session_compaction::{
    Commit, CommitResult, Dropped, JsonlStore, ListPage, MemoryStore, Message, NewMessage, Pause,
    PauseUntil, Placed, Receipt, Revision, Rewrite, RewriteResult, SessionKey, SessionOptions,
    SessionStore, Size, StoredSession, StoredSummary, UsageEvent, View,
};

/// Runs a check on every store.
macro_rules! contract {
    ($($check:ident),* $(,)?) => {$(
        #[tokio::test]
        async fn $check() {
            checks::$check(Arc::new(MemoryStore::new())).await;
            checks::$check(Arc::new(MemoryStore::keep_transcripts())).await;
            let folder = Folder::new();
            checks::$check(Arc::new(JsonlStore::open(folder.path()).unwrap())).await;
            #[cfg(feature = "sqlite")]
            {
                let file = tempfile::NamedTempFile::new().unwrap();
                let store = session_compaction::SqliteStore::open(file.path()).await.unwrap();
                checks::$check(Arc::new(store)).await;
                let store = session_compaction::SqliteStore::in_memory().await.unwrap();
                checks::$check(Arc::new(store)).await;
            }
        }
    )*};
}

contract!(
    unknown_sessions_are_empty,
    appends_get_dense_positions,
    an_empty_append_creates_the_session,
    the_same_message_again_is_a_duplicate,
    a_duplicate_within_one_call,
    the_same_id_with_other_content_stores_nothing,
    a_refused_first_append_creates_nothing,
    a_refused_first_rewrite_creates_nothing,
    ids_are_recognized_below_the_cut,
    commits_need_the_expected_revision,
    a_commit_sets_the_whole_view,
    a_commit_without_view_keeps_the_revision,
    rewrites_take_new_positions,
    rewrites_can_be_stale,
    rewrites_free_the_old_ids,
    a_refused_rewrite_changes_nothing,
    remove_and_append_is_a_new_incarnation,
    sessions_are_listed_in_byte_order,
    keys_are_kept_apart,
    concurrent_appends_are_dense,
    concurrent_commits_have_one_winner,
    archives_keep_what_was_cut,
    what_was_taken_back_is_left_out,
    messages_come_back_byte_for_byte,
);

type Store = Arc<dyn SessionStore>;

fn key(text: &str) -> SessionKey {
    SessionKey::new(text).unwrap()
}

fn new(message: Message) -> NewMessage {
    NewMessage::new(Arc::new(message), Size::default(), false)
}

fn fresh(text: &str) -> NewMessage {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = format!("fresh-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    NewMessage::new(Arc::new(Message::user(text).with_id(id)), Size::default(), true)
}

fn named(id: &str, text: &str) -> NewMessage {
    new(Message::user(text).with_id(id))
}

async fn add(store: &Store, texts: &[&str]) -> Receipt {
    let messages: Vec<_> = texts.iter().map(|text| fresh(text)).collect();
    store.append(&key("s"), &messages).await.unwrap()
}

async fn load(store: &Store) -> StoredSession {
    store.load(&key("s")).await.unwrap().unwrap()
}

fn texts(session: &StoredSession) -> Vec<(u64, String)> {
    let kept = session.carried.iter().chain(&session.window);
    kept.map(|kept| (kept.position, kept.message.text())).collect()
}

fn at(expected: &[(u64, &str)]) -> Vec<(u64, String)> {
    expected.iter().map(|(position, text)| (*position, (*text).to_owned())).collect()
}

fn view(cut: u64) -> View {
    let mut view = View::default();
    view.cut = cut;
    view
}

fn committed(result: CommitResult) -> Revision {
    match result {
        CommitResult::Committed(revision) => revision,
        other => panic!("{other:?}"),
    }
}

fn rewritten(result: RewriteResult) -> Receipt {
    match result {
        RewriteResult::Rewritten(receipt) => receipt,
        other => panic!("{other:?}"),
    }
}

mod checks {
    use super::*;

    pub(crate) async fn unknown_sessions_are_empty(store: Store) {
        let unknown = key("s");
        assert!(store.load(&unknown).await.unwrap().is_none());
        let commit = Commit::on(Revision::fresh()).with_view(view(0));
        assert_eq!(store.commit(&unknown, commit).await.unwrap(), CommitResult::Stale);
        let removed = store.remove(&unknown).await.unwrap();
        assert_eq!((removed.existed, removed.messages), (false, 0));
        let mut rewrite = Rewrite::new(vec![fresh("x")], None);
        rewrite.expected = Some((Revision::fresh(), 0));
        assert_eq!(store.rewrite(&unknown, rewrite).await.unwrap(), RewriteResult::Stale);
        if let Some(archive) = store.archive() {
            assert!(archive.transcript(&unknown, 0..u64::MAX).await.unwrap().is_empty());
        }
        assert!(store.load(&unknown).await.unwrap().is_none());
        assert!(store.list(ListPage::default()).await.unwrap().is_empty());
    }

    pub(crate) async fn appends_get_dense_positions(store: Store) {
        let first = add(&store, &["a", "b"]).await;
        assert_eq!(first.placed, [Placed::new(0, false), Placed::new(1, false)]);
        let second = add(&store, &["c"]).await;
        assert_eq!(second.placed, [Placed::new(2, false)]);
        assert_eq!(first.revision, second.revision);
        let session = load(&store).await;
        assert_eq!(texts(&session), at(&[(0, "a"), (1, "b"), (2, "c")]));
        assert_eq!(session.state.revision, first.revision);
        assert_eq!(session.state.view, View::default());
    }

    pub(crate) async fn an_empty_append_creates_the_session(store: Store) {
        let receipt = add(&store, &[]).await;
        assert!(receipt.placed.is_empty());
        assert_eq!(load(&store).await.state.revision, receipt.revision);
        assert_eq!(store.list(ListPage::default()).await.unwrap(), [key("s")]);
    }

    pub(crate) async fn the_same_message_again_is_a_duplicate(store: Store) {
        store.append(&key("s"), &[fresh("x"), named("a", "one")]).await.unwrap();
        let again = [named("a", "one"), named("b", "two"), named("a", "one")];
        let receipt = store.append(&key("s"), &again).await.unwrap();
        let expected = [Placed::new(1, true), Placed::new(2, false), Placed::new(1, true)];
        assert_eq!(receipt.placed, expected);
        assert_eq!(texts(&load(&store).await), at(&[(0, "x"), (1, "one"), (2, "two")]));
    }

    pub(crate) async fn a_duplicate_within_one_call(store: Store) {
        let batch = [named("a", "one"), named("a", "one"), fresh("x")];
        let receipt = store.append(&key("s"), &batch).await.unwrap();
        let expected = [Placed::new(0, false), Placed::new(0, true), Placed::new(1, false)];
        assert_eq!(receipt.placed, expected);
        assert_eq!(texts(&load(&store).await), at(&[(0, "one"), (1, "x")]));
    }

    pub(crate) async fn the_same_id_with_other_content_stores_nothing(store: Store) {
        store.append(&key("s"), &[named("a", "one")]).await.unwrap();
        for batch in [
            vec![named("b", "two"), named("a", "other")],
            vec![named("c", "three"), named("c", "four")],
        ] {
            let error = store.append(&key("s"), &batch).await.unwrap_err();
            assert!(error.is_duplicate_id(), "{error}");
        }
        assert_eq!(texts(&load(&store).await), at(&[(0, "one")]));
        let receipt = store.append(&key("s"), &[named("b", "another two")]).await.unwrap();
        assert_eq!(receipt.placed, [Placed::new(1, false)]);
    }

    pub(crate) async fn a_refused_first_append_creates_nothing(store: Store) {
        let batch = [named("a", "one"), named("a", "other")];
        assert!(store.append(&key("s"), &batch).await.unwrap_err().is_duplicate_id());
        assert!(store.load(&key("s")).await.unwrap().is_none());
        assert!(store.list(ListPage::default()).await.unwrap().is_empty());
    }

    pub(crate) async fn a_refused_first_rewrite_creates_nothing(store: Store) {
        let rewrite = Rewrite::new(vec![named("a", "one"), named("a", "other")], None);
        assert!(store.rewrite(&key("s"), rewrite).await.unwrap_err().is_duplicate_id());
        assert!(store.load(&key("s")).await.unwrap().is_none());
    }

    pub(crate) async fn ids_are_recognized_below_the_cut(store: Store) {
        let batch: Vec<_> = (0..20).map(|n| named(&format!("id-{n}"), &n.to_string())).collect();
        let receipt = store.append(&key("s"), &batch).await.unwrap();
        let commit = Commit::on(receipt.revision).with_view(view(18));
        committed(store.commit(&key("s"), commit).await.unwrap());
        let again = store.append(&key("s"), &batch).await.unwrap();
        assert!(again.placed.iter().all(|placed| placed.duplicate));
        let other = store.append(&key("s"), &[named("id-3", "other")]).await.unwrap_err();
        assert!(other.is_duplicate_id());
        assert_eq!(texts(&load(&store).await), at(&[(18, "18"), (19, "19")]));
    }

    pub(crate) async fn commits_need_the_expected_revision(store: Store) {
        let start = add(&store, &["a", "b"]).await.revision;
        for stale in [start.next(), Revision::fresh()] {
            let commit = Commit::on(stale).with_view(view(1));
            assert_eq!(store.commit(&key("s"), commit).await.unwrap(), CommitResult::Stale);
        }
        let commit = Commit::on(start).with_view(view(1));
        let now = committed(store.commit(&key("s"), commit.clone()).await.unwrap());
        assert_eq!(now, start.next());
        assert_eq!(store.commit(&key("s"), commit).await.unwrap(), CommitResult::Stale);
        assert_eq!(add(&store, &["c"]).await.revision, now);
    }

    pub(crate) async fn a_commit_sets_the_whole_view(store: Store) {
        let start = add(&store, &["a", "b", "c", "d"]).await.revision;
        let mut full = view(3);
        full.carried = vec![0, 2];
        full.summary = Some(StoredSummary::new("b\0 happened"));
        let mut dropped = Dropped::default();
        (dropped.messages, dropped.since) = (1, 1);
        full.dropped = dropped;
        let commit = Commit::on(start).with_view(full.clone()).with_usage(UsageEvent::default());
        let revision = committed(store.commit(&key("s"), commit).await.unwrap());
        add(&store, &["e"]).await;
        let session = load(&store).await;
        assert_eq!(session.state.view, full);
        assert_eq!(session.state.revision, revision);
        assert_eq!(session.carried.len(), 2);
        assert_eq!(texts(&session), at(&[(0, "a"), (2, "c"), (3, "d"), (4, "e")]));
    }

    pub(crate) async fn a_commit_without_view_keeps_the_revision(store: Store) {
        let start = add(&store, &["a"]).await.revision;
        let mut pause = None;
        let until = PauseUntil::Tokens(7);
        // A pause is made by the crate alone; its form is public.
        let json = serde_json::json!({"until": until, "reason": "no gain"});
        pause.replace(serde_json::from_value::<Pause>(json).unwrap());
        let mut options = SessionOptions::default();
        options.model = Some("gpt-5".into());
        let commit = Commit::on(start).with_pause(pause.clone()).with_options(options.clone());
        assert_eq!(committed(store.commit(&key("s"), commit).await.unwrap()), start);
        let state = load(&store).await.state;
        assert_eq!((state.revision, &state.pause, &state.options), (start, &pause, &options));
        let commit = Commit::on(start);
        assert_eq!(committed(store.commit(&key("s"), commit).await.unwrap()), start);
        let state = load(&store).await.state;
        assert_eq!((state.pause, state.options), (None, options));
    }

    pub(crate) async fn rewrites_take_new_positions(store: Store) {
        let start = add(&store, &["a", "b"]).await.revision;
        let summary = Some(StoredSummary::new("before"));
        let rewrite = Rewrite::new(vec![fresh("x"), fresh("y")], summary.clone());
        let receipt = rewritten(store.rewrite(&key("s"), rewrite).await.unwrap());
        assert_eq!(receipt.revision, start.next());
        assert_eq!(receipt.placed, [Placed::new(2, false), Placed::new(3, false)]);
        add(&store, &["z"]).await;
        let session = load(&store).await;
        assert_eq!(texts(&session), at(&[(2, "x"), (3, "y"), (4, "z")]));
        let mut expected = view(2);
        expected.summary = summary;
        assert_eq!(session.state.view, expected);

        let cleared = Rewrite::new(Vec::new(), None);
        let receipt = rewritten(store.rewrite(&key("s"), cleared).await.unwrap());
        assert!(receipt.placed.is_empty());
        assert_eq!(load(&store).await.state.view, view(5));
        assert_eq!(add(&store, &["new"]).await.placed, [Placed::new(5, false)]);
    }

    pub(crate) async fn rewrites_can_be_stale(store: Store) {
        let start = add(&store, &["a", "b"]).await.revision;
        let mut rewrite = Rewrite::new(vec![fresh("x")], None);
        for stale in [(start, 1), (start, 3), (start.next(), 2)] {
            rewrite.expected = Some(stale);
            let result = store.rewrite(&key("s"), rewrite.clone()).await.unwrap();
            assert_eq!(result, RewriteResult::Stale);
        }
        assert_eq!(texts(&load(&store).await), at(&[(0, "a"), (1, "b")]));
        rewrite.expected = Some((start, 2));
        rewritten(store.rewrite(&key("s"), rewrite).await.unwrap());
        assert_eq!(texts(&load(&store).await), at(&[(2, "x")]));
    }

    pub(crate) async fn rewrites_free_the_old_ids(store: Store) {
        store.append(&key("s"), &[named("a", "one"), named("b", "two")]).await.unwrap();
        let rewrite = Rewrite::new(vec![named("a", "one, edited")], None);
        rewritten(store.rewrite(&key("s"), rewrite).await.unwrap());
        let batch = [named("a", "one, edited"), named("b", "two, edited")];
        let receipt = store.append(&key("s"), &batch).await.unwrap();
        assert_eq!(receipt.placed, [Placed::new(2, true), Placed::new(3, false)]);
    }

    pub(crate) async fn a_refused_rewrite_changes_nothing(store: Store) {
        store.append(&key("s"), &[named("a", "one")]).await.unwrap();
        let rewrite = Rewrite::new(vec![named("b", "two"), named("b", "three")], None);
        assert!(store.rewrite(&key("s"), rewrite).await.unwrap_err().is_duplicate_id());
        let session = load(&store).await;
        assert_eq!(texts(&session), at(&[(0, "one")]));
        assert_eq!(session.state.revision.counter(), 0);
        let receipt = store.append(&key("s"), &[named("a", "one")]).await.unwrap();
        assert_eq!(receipt.placed, [Placed::new(0, true)]);
    }

    pub(crate) async fn remove_and_append_is_a_new_incarnation(store: Store) {
        let before = store.append(&key("s"), &[named("a", "one")]).await.unwrap().revision;
        let removed = store.remove(&key("s")).await.unwrap();
        assert_eq!((removed.existed, removed.messages), (true, 1));
        assert!(store.load(&key("s")).await.unwrap().is_none());
        assert!(store.list(ListPage::default()).await.unwrap().is_empty());
        let after = store.append(&key("s"), &[named("a", "other")]).await.unwrap();
        assert_eq!(after.placed, [Placed::new(0, false)]);
        assert_ne!(after.revision.incarnation(), before.incarnation());
        let commit = Commit::on(before).with_view(view(1));
        assert_eq!(store.commit(&key("s"), commit).await.unwrap(), CommitResult::Stale);
        assert_eq!(texts(&load(&store).await), at(&[(0, "other")]));
    }

    pub(crate) async fn sessions_are_listed_in_byte_order(store: Store) {
        let mut keys: Vec<_> =
            ["b", "a", "B", "a:1", "a:10", "a/1", "ä", "zz", "0"].map(key).to_vec();
        for key in &keys {
            store.append(key, &[fresh("x")]).await.unwrap();
        }
        keys.sort();
        assert_eq!(store.list(ListPage::default()).await.unwrap(), keys);
        let mut paged = Vec::new();
        let mut page = ListPage::first(2);
        loop {
            let some = store.list(page).await.unwrap();
            assert!(some.len() <= 2);
            let Some(last) = some.last().cloned() else { break };
            page = ListPage::first(2).after(last);
            paged.extend(some);
        }
        assert_eq!(paged, keys);
        assert!(store.list(ListPage::first(0)).await.unwrap().is_empty());
        let gap = ListPage::first(1).after(key("a:1"));
        assert_eq!(store.list(gap).await.unwrap(), [key("a:10")]);
    }

    pub(crate) async fn keys_are_kept_apart(store: Store) {
        let long = ["k".repeat(300), "k".repeat(301), "é".repeat(512)];
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
            "nul.txt",
            "x.",
            "x ",
            " ",
            "..",
            ".",
            "\u{202e}a",
            "../../x",
            "\0",
            "\n",
            "~",
            ".lock",
        ]
        .into_iter()
        .chain(long.iter().map(String::as_str))
        .map(key)
        .collect();
        for key in &keys {
            store.append(key, &[fresh(key)]).await.unwrap();
        }
        for key in &keys {
            let session = store.load(key).await.unwrap().unwrap();
            assert_eq!(texts(&session), at(&[(0, key)]));
        }
        let mut sorted = keys.clone();
        sorted.sort();
        assert_eq!(store.list(ListPage::default()).await.unwrap(), sorted);
    }

    pub(crate) async fn concurrent_appends_are_dense(store: Store) {
        let receipts = all((0..64).map(|n| {
            let store = Arc::clone(&store);
            async move {
                let batch = [fresh(&format!("{n}")), fresh(&format!("{n}!"))];
                store.append(&key("s"), &batch).await.unwrap()
            }
        }))
        .await;
        let mut positions = Vec::new();
        for receipt in &receipts {
            let [first, second] = receipt.placed.as_slice() else { panic!("{receipt:?}") };
            assert_eq!(second.position, first.position + 1, "a batch stands together");
            positions.extend([first.position, second.position]);
        }
        positions.sort_unstable();
        assert_eq!(positions, (0..128).collect::<Vec<u64>>());
        let window = load(&store).await.window;
        assert_eq!(window.len(), 128);
        for (n, receipt) in receipts.iter().enumerate() {
            let at = usize::try_from(receipt.placed[0].position).unwrap();
            assert_eq!(window[at].message.text(), n.to_string());
            assert_eq!(window[at].position, receipt.placed[0].position);
        }
    }

    pub(crate) async fn concurrent_commits_have_one_winner(store: Store) {
        let start = add(&store, &["a", "b", "c"]).await.revision;
        let results = all((1..4).map(|cut| {
            let store = Arc::clone(&store);
            async move {
                let commit = Commit::on(start).with_view(view(cut));
                (cut, store.commit(&key("s"), commit).await.unwrap())
            }
        }))
        .await;
        let winners: Vec<_> = results
            .iter()
            .filter(|(_, result)| *result == CommitResult::Committed(start.next()))
            .collect();
        assert_eq!(winners.len(), 1, "{results:?}");
        assert_eq!(load(&store).await.state.view, view(winners[0].0));
    }

    pub(crate) async fn archives_keep_what_was_cut(store: Store) {
        let Some(archive) = store.archive() else { return };
        let old = add(&store, &["a", "b", "c", "d", "e", "f"]).await.revision;
        let commit = Commit::on(old).with_view(view(4));
        committed(store.commit(&key("s"), commit).await.unwrap());
        let found = archive.transcript(&key("s"), 0..u64::MAX).await.unwrap();
        assert_eq!(found.len(), 6);
        assert!(found.iter().map(|kept| kept.position).eq(0..6));
        let found = archive.transcript(&key("s"), 1..4).await.unwrap();
        let found: Vec<_> = found.iter().map(|kept| kept.message.text()).collect();
        assert_eq!(found, ["b", "c", "d"]);
        #[expect(clippy::reversed_empty_ranges, reason = "a host may ask for it")]
        for nothing in [6..10, 2..2, 3..1] {
            assert!(archive.transcript(&key("s"), nothing).await.unwrap().is_empty());
        }
        assert_eq!(store.remove(&key("s")).await.unwrap().messages, 6);
        assert_ne!(add(&store, &[]).await.revision.incarnation(), old.incarnation());
        assert!(archive.transcript(&key("s"), 0..u64::MAX).await.unwrap().is_empty());
    }

    pub(crate) async fn what_was_taken_back_is_left_out(store: Store) {
        let named = |id: &str| new(Message::user(id).with_id(id));
        let given: Vec<_> = ["a", "b", "c", "d"].into_iter().map(named).collect();
        let revision = store.append(&key("s"), &given).await.unwrap().revision;
        let mut taken = view(1);
        taken.carried = vec![0];
        taken.rewound.push(2..4);
        let commit = Commit::on(revision).with_view(taken.clone());
        committed(store.commit(&key("s"), commit).await.unwrap());
        let stored = load(&store).await;
        assert_eq!(stored.state.view, taken);
        assert_eq!(stored.next, 4);
        assert_eq!(stored.window.iter().map(|kept| kept.position).collect::<Vec<_>>(), [1]);
        // Their ids are free, those of the others are not.
        let again = store.append(&key("s"), &["d", "a"].map(named)).await.unwrap();
        assert_eq!(again.placed, [Placed::new(4, false), Placed::new(0, true)]);
        let window = load(&store).await.window;
        assert_eq!(window.iter().map(|kept| kept.position).collect::<Vec<_>>(), [1, 4]);
    }

    pub(crate) async fn messages_come_back_byte_for_byte(store: Store) {
        let given = [
            r#"{"role":"user","content":"NUL \u0000, quote \", snow ☃"}"#.to_owned(),
            "{ \"role\" : \"user\",\n \"content\":\r\n\t\"over lines\", \"x\": 1.0 }".to_owned(),
            r#"{"content":null,"role":"assistant","n":12345678901234567890123,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]}"#.to_owned(),
            r#"{"role":"tool","tool_call_id":"c","content":"crc {\"crc\":\"00000000\",","crc":{"crc":"00000000","x":1}}"#.to_owned(),
        ];
        let messages: Vec<NewMessage> = given
            .iter()
            .enumerate()
            .map(|(n, text)| {
                let message: Message = serde_json::from_str(text).unwrap();
                new(message.with_id(format!("id-{n}")).with_time(std::time::UNIX_EPOCH))
            })
            .collect();
        store.append(&key("s"), &messages).await.unwrap();
        let window = load(&store).await.window;
        assert_eq!(window.len(), messages.len());
        for (kept, new) in window.iter().zip(&messages) {
            assert_eq!(kept.message, new.message);
            assert_eq!(kept.message.id(), new.message.id());
            assert_eq!(kept.message.time(), new.message.time());
            let text = |message: &Message| serde_json::to_string(message).unwrap();
            assert_eq!(text(&kept.message), text(&new.message));
        }
        // Read back, they are still the same messages.
        let again = store.append(&key("s"), &messages).await.unwrap();
        assert!(again.placed.iter().all(|placed| placed.duplicate));
    }
}

/// Runs futures at once and returns their results in order.
async fn all<T: Send + 'static>(
    futures: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let tasks: Vec<_> = futures.into_iter().map(tokio::spawn).collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}
