//! What a SQLite store does beside the contract: its file, its schema, its
//! retention, and several of them on one file.

#![cfg(feature = "sqlite")]
#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use session_compaction::{
    Archive as _, Commit, CommitResult, Counter, Leases as _, Limits, ListPage, Message,
    NewMessage, Pause, PauseUntil, Placed, Retention, Revision, Rewrite, RewriteResult,
    SessionExport, SessionKey, SessionStore, Since, Size, SqliteOptions, SqliteStore,
    StoredSummary, Synchronous, TokenUsage, Tokens, UsageEvent, UsageLog as _, UsagePage, View,
};
use sqlx::{Connection as _, sqlite::SqliteConnection};
use tempfile::TempDir;

fn key(text: &str) -> SessionKey {
    SessionKey::new(text).unwrap()
}

fn named(id: &str, text: &str) -> NewMessage {
    let message = Message::user(text).with_id(id);
    NewMessage::new(Arc::new(message), Size::new(10, Tokens::from_tokens(100)), false)
}

fn numbered(range: std::ops::Range<u64>) -> Vec<NewMessage> {
    range.map(|n| named(&format!("id-{n}"), &format!("text {n}"))).collect()
}

fn cut(cut: u64) -> View {
    let mut view = View::default();
    (view.cut, view.summary) = (cut, Some(StoredSummary::new(format!("up to {cut}"))));
    view
}

fn committed(result: CommitResult) -> Revision {
    match result {
        CommitResult::Committed(revision) => revision,
        other => panic!("{other:?}"),
    }
}

async fn compact(store: &SqliteStore, revision: Revision, at: u64) -> Revision {
    let mut usage = UsageEvent::default();
    (usage.messages_removed, usage.unix_millis) = (at, 1_000);
    let commit = Commit::on(revision).with_view(cut(at)).with_usage(usage);
    committed(store.commit(&key("s"), commit).await.unwrap())
}

/// A clock that stands still until it is set.
#[derive(Clone, Default)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn options(&self) -> SqliteOptions {
        let millis = Arc::clone(&self.0);
        SqliteOptions::new().with_clock(move || -> SystemTime {
            UNIX_EPOCH + Duration::from_millis(millis.load(Ordering::Relaxed))
        })
    }

    fn set(&self, millis: u64) {
        self.0.store(millis, Ordering::Relaxed);
    }
}

fn file(folder: &TempDir) -> std::path::PathBuf {
    folder.path().join("sessions.db")
}

async fn raw(folder: &TempDir) -> SqliteConnection {
    SqliteConnection::connect(&format!("sqlite://{}", file(folder).display())).await.unwrap()
}

#[tokio::test]
async fn what_was_written_is_there_after_opening_again() {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(file(&folder)).await.unwrap();
    let start = store.append(&key("s"), &numbered(0..6)).await.unwrap().revision;
    let revision = compact(&store, start, 4).await;
    store.close().await;
    assert!(store.append(&key("s"), &numbered(6..7)).await.unwrap_err().is_store());
    assert!(!folder.path().join("sessions.db-wal").exists(), "it was emptied and removed");

    let store = SqliteStore::open(file(&folder)).await.unwrap();
    let session = store.load(&key("s")).await.unwrap().unwrap();
    assert_eq!((session.state.revision, session.next), (revision, 6));
    assert_eq!(session.state.view, cut(4));
    assert_eq!(session.window.iter().map(|kept| kept.position).collect::<Vec<_>>(), [4, 5]);
    let again = store.append(&key("s"), &numbered(0..7)).await.unwrap();
    assert_eq!(again.placed[0], Placed::new(0, true));
    assert_eq!(again.placed[6], Placed::new(6, false));
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(file(&folder)).await.unwrap();
    store.append(&key("s"), &numbered(0..1)).await.unwrap();
    let mut files = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", entry.path().display());
        files += 1;
    }
    assert_eq!(files, 3, "the database, its log, and the log's index");
}

#[tokio::test]
async fn no_path_has_a_meaning_of_its_own() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(":memory:");
    let store = SqliteStore::open(&path).await.unwrap();
    store.append(&key("s"), &numbered(0..1)).await.unwrap();
    assert!(store.load(&key("s")).await.unwrap().is_some());
    assert!(path.exists());
}

#[tokio::test]
async fn what_is_no_database_is_refused() {
    let folder = TempDir::new().unwrap();
    std::fs::write(file(&folder), "this is no database ".repeat(100)).unwrap();
    let error = SqliteStore::open(file(&folder)).await.unwrap_err();
    assert!(error.is_store() && error.to_string().contains("sessions.db"), "{error}");
    let error = SqliteStore::open(folder.path().join("missing/x.db")).await.unwrap_err();
    assert!(error.is_store());
}

#[tokio::test]
async fn a_prefix_keeps_stores_in_one_file_apart() {
    let folder = TempDir::new().unwrap();
    let open = async |prefix: &str| {
        SqliteOptions::new().with_table_prefix(prefix).open(file(&folder)).await
    };
    let stores = [open("").await.unwrap(), open("a_").await.unwrap(), open("b_").await.unwrap()];
    for (n, store) in (1..).zip(&stores) {
        store.append(&key("s"), &numbered(0..n)).await.unwrap();
    }
    for (n, store) in (1..).zip(&stores) {
        assert_eq!(store.load(&key("s")).await.unwrap().unwrap().next, n);
    }
    assert!(open("x; DROP TABLE sessions").await.unwrap_err().is_config());
}

#[tokio::test]
async fn nul_comes_back_as_given() {
    let store = SqliteStore::in_memory().await.unwrap();
    let nul = key("a\0b");
    let message = named("i\0d", "t\0t");
    store.append(&nul, std::slice::from_ref(&message)).await.unwrap();
    let mut view = View::default();
    view.summary = Some(StoredSummary::new("s\0s"));
    let revision = store.load(&nul).await.unwrap().unwrap().state.revision;
    let until = PauseUntil::UnixMillis(7);
    let commit = Commit::on(revision).with_view(view.clone());
    committed(store.commit(&nul, commit.with_pause(Some(Pause::new(until, "p\0")))).await.unwrap());
    let session = store.load(&nul).await.unwrap().unwrap();
    assert_eq!(session.state.view, view);
    assert_eq!(session.state.pause.unwrap().reason, "p\0");
    assert_eq!(session.window[0].message, message.message);
    assert_eq!(session.window[0].message.id(), message.message.id());
    assert_eq!(store.list(ListPage::default()).await.unwrap(), [nul]);
}

#[tokio::test]
async fn json_can_be_queried_in_the_file() {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(file(&folder)).await.unwrap();
    let start = store.append(&key("s"), &numbered(0..3)).await.unwrap().revision;
    compact(&store, start, 2).await;
    let mut connection = raw(&folder).await;
    let found: Vec<(String, String, String)> = sqlx::query_as(
        "SELECT CAST(s.key AS TEXT), m.json ->> '$.content', s.view_json ->> '$.summary.text' \
         FROM sessions s JOIN messages m ON m.session = s.incarnation ORDER BY m.position",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    let row = |n: u64| ("s".to_owned(), format!("text {n}"), "up to 2".to_owned());
    assert_eq!(found, [row(0), row(1), row(2)]);
}

#[tokio::test]
async fn removed_text_is_not_in_the_file() {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(file(&folder)).await.unwrap();
    let secret = "the-secret-word".repeat(300);
    store.append(&key("s"), &[named("a", &secret)]).await.unwrap();
    store.append(&key("other"), &[named("a", "kept")]).await.unwrap();
    assert_eq!(store.remove(&key("s")).await.unwrap().messages, 1);
    store.close().await;
    let bytes = std::fs::read(file(&folder)).unwrap();
    let has = |text: &str| bytes.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(has("kept") && !has("the-secret-word"));
}

#[tokio::test]
async fn leases_end_by_the_clock_of_the_store() {
    let clock = Clock::default();
    let store = clock.options().in_memory().await.unwrap();
    let ttl = Duration::from_millis(100);
    assert_eq!(store.claim(&key("s"), "a", ttl).await.unwrap(), None, "there is no session");
    let revision = store.append(&key("s"), &numbered(0..3)).await.unwrap().revision;
    let first = store.claim(&key("s"), "a", ttl).await.unwrap().unwrap();
    assert_eq!(store.claim(&key("s"), "b", ttl).await.unwrap(), None);
    clock.set(99);
    assert!(store.renew(&key("s"), first, ttl).await.unwrap());
    clock.set(198);
    assert_eq!(store.claim(&key("s"), "b", ttl).await.unwrap(), None);
    clock.set(199);
    assert!(!store.renew(&key("s"), first, ttl).await.unwrap(), "it does not come back");
    let commit = Commit::on(revision).with_view(cut(1)).with_lease(Some(first));
    assert_eq!(store.commit(&key("s"), commit).await.unwrap(), CommitResult::Stale);
    let second = store.claim(&key("s"), "b", ttl).await.unwrap().unwrap();
    assert!(second > first);
    store.release(&key("s"), first).await.unwrap();
    assert_eq!(store.claim(&key("s"), "c", ttl).await.unwrap(), None, "it was another's");
    let commit = Commit::on(revision).with_view(cut(1)).with_lease(Some(second));
    committed(store.commit(&key("s"), commit).await.unwrap());
    store.remove(&key("s")).await.unwrap();
    store.append(&key("s"), &numbered(0..3)).await.unwrap();
    let third = store.claim(&key("s"), "c", ttl).await.unwrap().unwrap();
    assert!(third > second, "also across sessions");
    assert!(!store.renew(&key("s"), second, ttl).await.unwrap());
}

#[tokio::test]
async fn what_is_due_is_a_query() {
    let clock = Clock::default();
    clock.set(1_000);
    let store = clock.options().in_memory().await.unwrap();
    let ttl = Duration::from_millis(100);
    let due = async |limits: Limits| {
        let claimed = store.claim_due("worker", ttl, &limits, 10).await.unwrap();
        for (key, lease) in &claimed {
            store.release(key, *lease).await.unwrap();
        }
        claimed.iter().map(|(key, _)| key.to_string()).collect::<Vec<_>>()
    };
    let messages = |limit| Limits { messages: Some(limit), ..Limits::default() };
    let tokens = |limit| Limits { tokens: Some(limit), ..Limits::default() };
    let revision = store.append(&key("s"), &numbered(0..5)).await.unwrap().revision;
    assert!(due(Limits::default()).await.is_empty());
    assert!(due(messages(5)).await.is_empty());
    assert_eq!(due(messages(4)).await, ["s"]);
    assert_eq!(due(tokens(499)).await, ["s"]);
    assert!(due(Limits { chars: Some(50), ..tokens(500) }).await.is_empty());

    // Carried messages are sent, but are not in the window.
    let mut view = cut(3);
    view.carried = vec![0];
    let commit = Commit::on(revision).with_view(view);
    let revision = committed(store.commit(&key("s"), commit).await.unwrap());
    assert!(due(messages(2)).await.is_empty());
    assert_eq!(due(tokens(299)).await, ["s"]);
    assert!(due(tokens(300)).await.is_empty());

    store.mark_due(&key("s")).await.unwrap();
    assert_eq!(due(Limits::default()).await, ["s"]);
    for (until, held) in [
        (PauseUntil::UnixMillis(1_001), true),
        (PauseUntil::UnixMillis(1_000), false),
        (PauseUntil::Tokens(301), true),
        (PauseUntil::Tokens(300), false),
    ] {
        let commit = Commit::on(revision).with_pause(Some(Pause::new(until, "why")));
        committed(store.commit(&key("s"), commit).await.unwrap());
        store.mark_due(&key("s")).await.unwrap();
        assert_eq!(due(Limits::default()).await.is_empty(), held, "{until}");
    }
    let commit = Commit::on(revision).with_view(cut(4)).with_limits(messages(0));
    let revision = committed(store.commit(&key("s"), commit).await.unwrap());
    assert_eq!(due(tokens(1_000)).await, ["s"], "its own limits go before");
    let commit = Commit::on(revision).with_view(cut(4)).with_limits(messages(1));
    committed(store.commit(&key("s"), commit).await.unwrap());
    assert!(due(messages(0)).await.is_empty(), "the mark is gone as well");

    let export = SessionExport::of_messages([Message::user("a"), Message::user("b")]);
    store.import(&key("imported"), &export).await.unwrap();
    store.mark_due(&key("imported")).await.unwrap();
    assert!(due(messages(1)).await.is_empty(), "nothing was appended since");
    store.append(&key("imported"), &numbered(0..1)).await.unwrap();
    assert_eq!(due(messages(2)).await, ["imported"]);
}

#[tokio::test]
async fn two_who_claim_get_different_sessions() {
    let store = Arc::new(SqliteStore::in_memory().await.unwrap());
    for n in 0..40 {
        store.append(&key(&format!("s{n}")), &numbered(0..2)).await.unwrap();
    }
    let limits = Limits { messages: Some(1), ..Limits::default() };
    let claims = (0..8).map(|worker| {
        let store = Arc::clone(&store);
        tokio::spawn(async move {
            let ttl = Duration::from_mins(1);
            store.claim_due(&format!("worker {worker}"), ttl, &limits, 5).await.unwrap()
        })
    });
    let mut keys = Vec::new();
    for claim in claims.collect::<Vec<_>>() {
        keys.extend(claim.await.unwrap().into_iter().map(|(key, _)| key));
    }
    assert_eq!(keys.len(), 40);
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 40);
}

#[tokio::test]
async fn usage_comes_with_its_commit_or_not_at_all() {
    let store = SqliteStore::in_memory().await.unwrap();
    let start = store.append(&key("s"), &numbered(0..9)).await.unwrap().revision;
    let revision = compact(&store, start, 3).await;
    let mut usage = UsageEvent::default();
    usage.messages_removed = 100;
    let stale = Commit::on(start).with_view(cut(4)).with_usage(usage);
    assert_eq!(store.commit(&key("s"), stale).await.unwrap(), CommitResult::Stale);
    compact(&store, revision, 5).await;
    let mut query = UsageEvent::query("gpt-5", TokenUsage::new(900, 40), Duration::from_secs(2));
    query.unix_millis = 2 * 86_400_000;
    store.record(&key("elsewhere"), &query).await.unwrap();

    let totals = store.totals(None).await.unwrap();
    assert_eq!((totals.of(Counter::Summarizations), totals.of(Counter::MessagesRemoved)), (2, 8));
    assert_eq!((totals.of(Counter::InputTokens), totals.events()), (900, 3));
    let own = store.totals(Some(&key("s"))).await.unwrap();
    assert_eq!((own.of(Counter::MessagesRemoved), own.of(Counter::Queries)), (8, 0));
    let days = store.days(10).await.unwrap();
    assert_eq!(
        days.iter().map(|day| (day.day, day.totals.events())).collect::<Vec<_>>(),
        [(0, 2), (2, 1)]
    );
    assert_eq!(store.days(1).await.unwrap()[0].day, 2);
    let events = store.events(UsagePage::newest(2)).await.unwrap();
    assert_eq!(events.iter().map(|it| it.number).collect::<Vec<_>>(), [3, 2]);
    assert_eq!(events[0].event, query);
    let page = UsagePage::newest(9).of(key("s")).before(2);
    assert_eq!(store.events(page).await.unwrap().len(), 1);
    let largest = store.largest(Counter::MessagesRemoved, 5).await.unwrap();
    assert_eq!(largest, [(key("s"), 8)]);
    assert_eq!(store.sessions().await.unwrap(), 1);

    store.remove(&key("s")).await.unwrap();
    assert_eq!(store.totals(None).await.unwrap(), totals, "the store's sums stay");
    assert_eq!(store.totals(Some(&key("s"))).await.unwrap().events(), 0);
    assert_eq!(store.events(UsagePage::newest(9)).await.unwrap().len(), 1);
}

#[tokio::test]
async fn sums_stop_at_the_largest() {
    let store = SqliteStore::in_memory().await.unwrap();
    let query = UsageEvent::query("m", TokenUsage::new(u64::MAX, 1), Duration::ZERO);
    for _ in 0..3 {
        store.record(&key("s"), &query).await.unwrap();
    }
    let most = i64::MAX.cast_unsigned();
    let totals = store.totals(None).await.unwrap();
    assert_eq!((totals.of(Counter::InputTokens), totals.of(Counter::OutputTokens)), (most, 3));
}

#[tokio::test]
async fn compactions_are_listed_and_sessions_move() {
    let store = SqliteStore::in_memory().await.unwrap();
    let mut revision = store.append(&key("s"), &numbered(0..9)).await.unwrap().revision;
    for at in [2, 4, 7] {
        revision = compact(&store, revision, at).await;
    }
    let listed = store.compactions(&key("s"), None, 10).await.unwrap();
    let ranges: Vec<_> = listed.iter().map(|it| (it.number, it.range())).collect();
    assert_eq!(ranges, [(3, 4..7), (2, 2..4), (1, 0..2)]);
    assert_eq!(listed[0].before.summary.as_ref().unwrap().text, "up to 4");
    assert_eq!(listed[0].revision, revision);
    let older = store.compactions(&key("s"), Some(3), 1).await.unwrap();
    assert_eq!(older, listed[1..2]);

    let session = store.load(&key("s")).await.unwrap().unwrap();
    let messages = store.transcript(&key("s"), 0..u64::MAX).await.unwrap();
    let mut export = SessionExport::new(session.state.clone(), session.next, messages.clone());
    export.compactions = listed.iter().rev().cloned().collect();
    export.usage = vec![UsageEvent::default(); 3];
    let error = store.import(&key("s"), &export).await.unwrap_err();
    assert!(error.is_exists(), "{error}");
    let receipt = store.import(&key("copy"), &export).await.unwrap();
    let copy = store.load(&key("copy")).await.unwrap().unwrap();
    assert_ne!(copy.state.revision.incarnation(), revision.incarnation());
    assert_eq!(copy.state.revision, receipt.revision);
    assert_eq!((&copy.state.view, copy.next), (&session.state.view, session.next));
    assert_eq!(copy.window, session.window);
    assert_eq!(store.transcript(&key("copy"), 0..u64::MAX).await.unwrap(), messages);
    assert_eq!(store.compactions(&key("copy"), None, 10).await.unwrap(), listed);
    assert_eq!(store.totals(Some(&key("copy"))).await.unwrap().events(), 3);
    let again = store.append(&key("copy"), &numbered(0..1)).await.unwrap();
    assert_eq!(again.placed, [Placed::new(0, true)], "its ids came with it");
}

#[tokio::test]
async fn load_since_reads_what_came() {
    let store = SqliteStore::in_memory().await.unwrap();
    let unknown = store.load_since(&key("s"), Revision::fresh(), 0).await.unwrap();
    assert!(matches!(unknown, Since::Gone));
    let start = store.append(&key("s"), &numbered(0..3)).await.unwrap().revision;
    let tail = |since: Since| match since {
        Since::Same(tail) => (tail.next, tail.messages.iter().map(|kept| kept.position).collect()),
        other => panic!("{other:?}"),
    };
    assert_eq!(tail(store.load_since(&key("s"), start, 3).await.unwrap()), (3, vec![]));
    assert_eq!(tail(store.load_since(&key("s"), start, 1).await.unwrap()), (3, vec![1, 2]));
    let since = store.load_since(&key("s"), start, 4).await.unwrap();
    assert!(matches!(since, Since::Changed(all) if all.window.len() == 3));
    compact(&store, start, 2).await;
    let since = store.load_since(&key("s"), start, 3).await.unwrap();
    assert!(matches!(since, Since::Changed(all) if all.state.view == cut(2)));
}

#[tokio::test]
async fn retention_keeps_what_is_sent() {
    let clock = Clock::default();
    for (retention, kept, purged) in [
        (Retention::Keep, 12, 0),
        (Retention::Drop, 3, 0),
        (Retention::DropAfter(Duration::from_millis(50)), 12, 8),
    ] {
        clock.set(1_000);
        let store = clock.options().with_retention(retention).in_memory().await.unwrap();
        let start = store.append(&key("s"), &numbered(0..8)).await.unwrap().revision;
        clock.set(1_040);
        store.append(&key("s"), &numbered(8..12)).await.unwrap();
        let mut view = cut(10);
        view.carried = vec![0];
        let mut commit = Commit::on(start).with_view(view);
        commit.usage = Some(UsageEvent::default());
        committed(store.commit(&key("s"), commit).await.unwrap());
        let all = async || store.transcript(&key("s"), 0..u64::MAX).await.unwrap().len();
        assert_eq!(all().await, kept, "{retention:?}");
        assert_eq!(store.purge().await.unwrap(), 0, "nothing is so old");
        clock.set(1_051);
        let expected = if purged > 0 { 7 } else { 0 };
        assert_eq!(store.purge().await.unwrap(), expected, "{retention:?}");
        clock.set(1_091);
        assert_eq!(store.purge().await.unwrap(), if purged > 0 { 2 } else { 0 });
        let session = store.load(&key("s")).await.unwrap().unwrap();
        assert_eq!((session.carried.len(), session.window.len()), (1, 2));
        let compactions = store.compactions(&key("s"), None, 9).await.unwrap().len();
        assert_eq!(compactions, usize::from(retention == Retention::Keep));
        // What was dropped is still known by its id.
        let again = store.append(&key("s"), &numbered(0..12)).await.unwrap();
        assert!(again.placed.iter().all(|placed| placed.duplicate), "{retention:?}");
        let other = store.append(&key("s"), &[named("id-5", "other")]).await.unwrap_err();
        assert!(other.is_duplicate_id());
    }
}

#[tokio::test]
async fn what_is_owed_to_a_summary_is_not_dropped() {
    let options = SqliteOptions::new().with_retention(Retention::Drop);
    let store = options.in_memory().await.unwrap();
    let start = store.append(&key("s"), &numbered(0..6)).await.unwrap().revision;
    let mut forced = View::default();
    (forced.cut, forced.dropped.messages) = (4, 4);
    let commit = Commit::on(start).with_view(forced);
    let revision = committed(store.commit(&key("s"), commit).await.unwrap());
    assert_eq!(store.transcript(&key("s"), 0..4).await.unwrap().len(), 4);
    compact(&store, revision, 4).await;
    assert!(store.transcript(&key("s"), 0..4).await.unwrap().is_empty());
    let rewritten = store.rewrite(&key("s"), Rewrite::new(numbered(9..10), None)).await.unwrap();
    assert!(matches!(rewritten, RewriteResult::Rewritten(_)));
    assert_eq!(store.transcript(&key("s"), 0..u64::MAX).await.unwrap().len(), 1);
}

#[tokio::test]
async fn ids_are_forgotten_below_the_horizon() {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(file(&folder)).await.unwrap();
    let start = store.append(&key("s"), &numbered(0..3_000)).await.unwrap().revision;
    compact(&store, start, 2_990).await;
    let mut connection = raw(&folder).await;
    let ids: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM message_ids")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(ids, 1_024);
    let receipt = store.append(&key("s"), &numbered(1_975..1_977)).await.unwrap();
    assert_eq!(receipt.placed, [Placed::new(3_000, false), Placed::new(1_976, true)]);

    // Undone, those of the window are known again; one has a new owner.
    let revision = receipt.revision;
    committed(store.commit(&key("s"), Commit::on(revision).with_view(cut(1_000))).await.unwrap());
    let known = store.append(&key("s"), &numbered(999..1_977)).await.unwrap();
    assert_eq!(known.placed[..2], [Placed::new(3_001, false), Placed::new(1_000, true)]);
    assert_eq!(known.placed[976..], [Placed::new(3_000, true), Placed::new(1_976, true)]);
}

#[tokio::test]
async fn a_write_that_fails_takes_no_other_with_it() {
    let store = Arc::new(SqliteStore::in_memory().await.unwrap());
    let start = store.append(&key("s"), &numbered(0..1)).await.unwrap().revision;
    let impossible = Commit::on(start).with_view(cut(u64::MAX));
    let commit = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.commit(&key("s"), impossible).await })
    };
    let appends = (1..20).map(|n| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.append(&key("s"), &numbered(n..n + 1)).await })
    });
    for append in appends.collect::<Vec<_>>() {
        append.await.unwrap().unwrap();
    }
    let error = commit.await.unwrap().unwrap_err();
    assert!(error.is_store(), "{error}");
    let session = store.load(&key("s")).await.unwrap().unwrap();
    assert_eq!((session.window.len(), session.state.revision), (20, start));
}

#[tokio::test]
async fn a_busy_file_is_an_error_and_then_none() {
    let folder = TempDir::new().unwrap();
    let options = SqliteOptions::new().with_busy_timeout(Duration::from_millis(20));
    let store = options.open(file(&folder)).await.unwrap();
    store.append(&key("s"), &numbered(0..1)).await.unwrap();
    let mut other = raw(&folder).await;
    let held = other.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let error = store.append(&key("s"), &numbered(1..2)).await.unwrap_err();
    assert!(error.is_store(), "{error}");
    let before = store.load(&key("s")).await.unwrap().unwrap();
    assert_eq!(before.next, 1, "reads go on");
    held.rollback().await.unwrap();
    let receipt = store.append(&key("s"), &numbered(1..2)).await.unwrap();
    assert_eq!(receipt.placed, [Placed::new(1, false)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn several_stores_on_one_file_agree() {
    let folder = TempDir::new().unwrap();
    let open = (0..4).map(|_| {
        let path = file(&folder);
        tokio::spawn(async move {
            let options = SqliteOptions::new().with_busy_timeout(Duration::from_mins(1));
            options.with_synchronous(Synchronous::Normal).with_shared(true).open(path).await
        })
    });
    let mut stores = Vec::new();
    for store in open.collect::<Vec<_>>() {
        stores.push(Arc::new(store.await.unwrap().unwrap()));
    }
    assert!(stores[0].is_shared());
    let appends = (0..4_u64).flat_map(|writer| {
        let store = Arc::clone(&stores[usize::try_from(writer).unwrap()]);
        (0..25_u64).map(move |n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let id = writer * 100 + n;
                store.append(&key("s"), &numbered(id..id + 1)).await.unwrap().placed[0].position
            })
        })
    });
    let mut positions = Vec::new();
    for append in appends.collect::<Vec<_>>() {
        positions.push(append.await.unwrap());
    }
    positions.sort_unstable();
    assert_eq!(positions, (0..100).collect::<Vec<u64>>());
    let revision = stores[0].load(&key("s")).await.unwrap().unwrap().state.revision;
    let mut winners = 0;
    for store in &stores {
        let commit = Commit::on(revision).with_view(cut(50));
        let result = store.commit(&key("s"), commit).await.unwrap();
        winners += usize::from(result != CommitResult::Stale);
    }
    assert_eq!(winners, 1);
}

#[test]
fn a_store_outlives_the_runtime_it_was_opened_in() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let store = first.block_on(SqliteStore::in_memory()).unwrap();
    let store = Arc::new(store);
    for n in 0..5 {
        let store = Arc::clone(&store);
        first.spawn(async move { store.append(&key("s"), &numbered(n..n + 1)).await });
    }
    // Begun, and dropped in the middle.
    first.block_on(tokio::task::yield_now());
    drop(first);
    let second = runtime();
    second.block_on(async {
        store.append(&key("s"), &numbered(0..6)).await.unwrap();
        let session = store.load(&key("s")).await.unwrap().unwrap();
        assert_eq!(session.window.len(), 6, "each is there once");
    });
}

#[tokio::test]
async fn six_hundred_messages_take_at_most_three_times_their_text() {
    let folder = TempDir::new().unwrap();
    let store = SqliteStore::open(file(&folder)).await.unwrap();
    for n in 0..600 {
        let message = Message::user("x".repeat(200)).with_id(format!("01J{n:023}"));
        let new = NewMessage::new(Arc::new(message), Size::default(), true);
        store.append(&key("s"), &[new]).await.unwrap();
    }
    store.close().await;
    let bytes = std::fs::metadata(file(&folder)).unwrap().len();
    assert!(bytes <= 3 * 600 * 200, "{bytes} bytes");
}
