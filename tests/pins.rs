//! Pins that come later, and a look at what a compaction would do.

#![expect(
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, and run on one thread"
)]

mod common;
#[path = "common/folder.rs"]
mod folder;

use std::sync::Arc;

use common::stub::{Stub, manager, messages, texts};
use folder::Folder;
use session_compaction::{
    Compact, JsonlStore, MemoryStore, Message, Outcome, Prune, Report, Request, SessionManager,
    SessionStore, Skip, SummarizationConfig,
};

/// The messages, each with an id after its number.
fn named(range: std::ops::Range<usize>) -> Vec<Message> {
    let with_id = |(n, message): (usize, Message)| message.with_id(format!("m{n}"));
    range.clone().zip(messages(range)).map(with_id).collect()
}

fn over(store: Arc<dyn SessionStore>) -> SessionManager {
    SessionManager::builder()
        .shared_store(store)
        .summarizer(Stub::says("All parts do well."))
        .build()
        .unwrap()
}

/// A manager over each store, with whether it keeps transcripts; and a second
/// one over the same, to read it afresh.
fn each(test: impl AsyncFn(SessionManager, bool, &dyn Fn() -> SessionManager)) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = Folder::new();
    runtime.block_on(async {
        let stores: [Arc<dyn SessionStore>; 3] = [
            Arc::new(MemoryStore::new()),
            Arc::new(MemoryStore::keep_transcripts()),
            Arc::new(JsonlStore::open(folder.path()).unwrap()),
        ];
        for store in stores {
            let keeps = store.archive().is_some();
            test(over(Arc::clone(&store)), keeps, &|| over(Arc::clone(&store))).await;
        }
    });
}

async fn ids(sessions: &SessionManager) -> Vec<String> {
    let history = sessions.history("chat").await.unwrap();
    history.iter().map(|message| message.id().unwrap().to_string()).collect()
}

#[test]
fn what_is_pinned_stays_through_compactions_drops_and_restarts() {
    each(async |sessions, _, fresh| {
        sessions.add_messages("chat", named(0..30)).await.unwrap();
        let before = texts(&sessions, "chat").await;
        sessions.pin("chat", "m3").await.unwrap();
        sessions.pin("chat", "m3").await.unwrap();
        assert_eq!(texts(&sessions, "chat").await, before);
        assert!(fresh().compact("chat", Compact::if_due()).await.applied().is_some());
        assert_eq!(ids(&fresh()).await, ["m3", "m26", "m27", "m28", "m29"]);

        let sessions = fresh();
        sessions.add_messages("chat", named(30..40)).await.unwrap();
        let _ = sessions.force_compression("chat").await.unwrap();
        sessions.truncate_history("chat", 4).await.unwrap();
        assert_eq!(ids(&fresh()).await, ["m3", "m36", "m37", "m38", "m39"]);
        let history = fresh().history("chat").await.unwrap();
        assert!(history.iter().all(|message| !message.is_pinned()), "stored as it was given");

        sessions.unpin("chat", "m3").await.unwrap();
        assert_eq!(ids(&fresh()).await.first().unwrap(), "m3", "until the next compaction");
        assert!(fresh().compact("chat", Compact::now().to_tokens(60)).await.applied().is_some());
        assert!(!ids(&fresh()).await.contains(&"m3".into()));
    });
}

#[test]
fn what_a_summary_stands_for_is_carried_again_where_it_was_kept() {
    each(async |sessions, keeps, fresh| {
        sessions.add_messages("chat", named(0..30)).await.unwrap();
        assert!(sessions.compact("chat", Compact::now()).await.applied().is_some());
        let before = sessions.snapshot("chat").await.unwrap();
        let pinned = sessions.pin("chat", "m5").await;
        if !keeps {
            let error = pinned.unwrap_err();
            assert!(error.is_pin() && error.to_string().contains("no transcript"), "{error}");
            assert_eq!(sessions.snapshot("chat").await.unwrap(), before);
            return;
        }
        pinned.unwrap();
        assert_eq!(ids(&sessions).await, ["m5", "m26", "m27", "m28", "m29"]);
        assert_eq!(ids(&fresh()).await, ["m5", "m26", "m27", "m28", "m29"]);
        let now = sessions.snapshot("chat").await.unwrap();
        assert_eq!(now.revision, before.revision.next());
        sessions.add_messages("chat", named(30..50)).await.unwrap();
        assert!(sessions.compact("chat", Compact::now()).await.applied().is_some());
        assert_eq!(ids(&fresh()).await, ["m5", "m46", "m47", "m48", "m49"]);

        let unknown = sessions.pin("chat", "m99").await.unwrap_err();
        assert!(unknown.is_pin(), "{unknown}");
        // What the host itself took away does not come back.
        sessions.rewind("chat", session_compaction::To::Before("m48".into())).await.unwrap();
        assert!(sessions.pin("chat", "m48").await.unwrap_err().is_pin());
        sessions.add_messages("chat", named(50..52)).await.unwrap();
        sessions.truncate_history("chat", 1).await.unwrap();
        assert_eq!(ids(&fresh()).await, ["m5", "m51"]);
        assert!(sessions.pin("chat", "m46").await.unwrap_err().is_pin());
        sessions.clear("chat").await.unwrap();
        sessions.add_messages("chat", named(50..80)).await.unwrap();
        assert!(sessions.compact("chat", Compact::now()).await.applied().is_some());
        assert!(sessions.pin("chat", "m5").await.unwrap_err().is_pin(), "it was cleared");
        sessions.pin("chat", "m55").await.unwrap();
        assert_eq!(ids(&fresh()).await.first().unwrap(), "m55");
    });
}

#[test]
fn a_dropped_message_that_is_pinned_is_no_longer_dropped() {
    each(async |sessions, keeps, fresh| {
        if !keeps {
            return;
        }
        sessions.add_messages("chat", named(0..10)).await.unwrap();
        let _ = sessions.force_compression("chat").await.unwrap();
        let dropped = sessions.history("chat").await.unwrap().dropped();
        sessions.pin("chat", "m1").await.unwrap();
        let now = fresh().history("chat").await.unwrap();
        assert_eq!((now.dropped(), now.carried()), (dropped - 1, 1));
        // The others are still owed.
        sessions.add_messages("chat", named(10..30)).await.unwrap();
        assert_eq!(sessions.preview("chat").await.unwrap().cut.unwrap().owed, dropped - 1);
        let report = sessions.compact("chat", Compact::now()).await;
        assert!(report.applied().is_some(), "{report}");
        assert_eq!(fresh().history("chat").await.unwrap().dropped(), 0);
    });
}

#[test]
fn a_round_is_carried_whole_and_its_results_are_not_pruned() {
    each(async |sessions, keeps, fresh| {
        let long = "word ".repeat(1_000);
        let round = |n: usize| {
            [
                Message::user(format!("Read {n}.")).with_id(format!("u{n}")),
                Message::assistant("")
                    .with_tool_call(format!("c{n}"), "read", "{}")
                    .with_id(format!("a{n}")),
                Message::tool_result(format!("c{n}"), &*long).with_id(format!("t{n}")),
            ]
        };
        sessions.add_messages("chat", (0..6).flat_map(round)).await.unwrap();
        sessions.pin("chat", "t0").await.unwrap();
        let rule = Prune { keep: 0, larger_than: 100, batch: 1 };
        let context = sessions.context("chat", &Request::new().prune(rule)).await.unwrap();
        let sent = context.to_openai_chat().to_json();
        assert_eq!(sent.matches(long.trim_end()).count(), 1);
        assert!(sessions.compact("chat", Compact::now()).await.applied().is_some());
        assert_eq!(ids(&fresh()).await[..2], ["a0", "t0"]);
        if keeps {
            sessions.pin("chat", "a1").await.unwrap();
            assert_eq!(ids(&fresh()).await[..4], ["a0", "t0", "a1", "t1"]);
        }
    });
}

#[tokio::test]
async fn a_message_that_was_added_pinned_keeps_its_pin() {
    let sessions = manager(Stub::says("All parts do well."));
    let rule = Message::user("For ever.").pinned().with_id("rule");
    sessions.add_message("chat", rule).await.unwrap();
    sessions.pin("chat", "rule").await.unwrap();
    assert!(sessions.unpin("chat", "rule").await.unwrap_err().is_pin());
    assert!(sessions.unpin("chat", "nobody").await.unwrap_err().is_pin());
    assert!(sessions.pin("nobody", "rule").await.unwrap_err().is_pin());
}

#[tokio::test]
async fn a_compaction_that_knows_nothing_of_the_pin_is_stale() {
    let (stub, gate) = Stub::says("All parts do well.").held();
    let sessions = manager(stub);
    sessions.add_messages("chat", named(0..30)).await.unwrap();
    let Outcome::Started(handle) = sessions.maybe_summarize("chat").await else { unreachable!() };
    gate.entered().await;
    sessions.pin("chat", "m0").await.unwrap();
    let report = handle.await;
    assert!(matches!(report, Report::Stale), "{report}");
    assert_eq!(ids(&sessions).await.len(), 30);
}

#[test]
fn a_turn_that_pins_keeps_what_it_sees_and_can_be_taken_back() {
    each(async |sessions, keeps, fresh| {
        sessions.add_messages("chat", named(0..30)).await.unwrap();
        let request = Request::new();
        let question = Message::user("Sure?").with_id("own");
        let mut turn = sessions.turn("chat", question).await.unwrap();
        assert_eq!(turn.context(&request).await.unwrap().mark().len, 31);
        sessions.pin("chat", "m4").await.unwrap();
        turn.results([Message::assistant("Yes.").with_id("answer")]).await.unwrap();
        turn.results([Message::user("Really?"), Message::assistant("Yes."), Message::user("So?")])
            .await
            .unwrap();
        let _ = sessions.compact("chat", Compact::now().to_tokens(100)).await;
        let rolled = turn.rollback().await;
        if rolled.is_err() {
            assert!(!keeps);
            return;
        }
        assert!(ids(&fresh()).await.contains(&"m4".into()));
        let _ = fresh().compact("chat", Compact::now().to_tokens(100)).await;
        let left = ids(&fresh()).await;
        assert!(left.contains(&"m4".into()) && !left.contains(&"own".into()), "{left:?}");
    });
}

#[tokio::test]
async fn a_preview_is_what_the_compaction_then_does_and_changes_nothing() {
    let stub = Stub::says("All parts do well.");
    let requests = stub.requests();
    let sessions = manager(stub);
    sessions.add_message("chat", Message::system("Be brief.").with_id("s")).await.unwrap();
    sessions.add_messages("chat", named(0..30)).await.unwrap();
    let mark = sessions.snapshot("chat").await.unwrap();

    let preview = sessions.preview("chat").await.unwrap();
    let shown = preview.to_string();
    assert!(shown.contains("26 messages") && shown.contains("one is due"), "{shown}");
    assert_eq!(sessions.snapshot("chat").await.unwrap(), mark);
    assert!(requests.lock().unwrap().is_empty());
    assert!(preview.trigger.is_some() && preview.not_started.is_none());

    let cut = preview.cut.unwrap();
    let report = sessions.compact("chat", Compact::if_due()).await;
    let done = report.applied().unwrap();
    assert_eq!(
        (cut.removed.len() as u64, cut.kept_messages),
        (done.messages_removed, done.messages_kept)
    );
    assert_eq!((cut.removed_size.chars, cut.cut), (done.chars_removed, done.range.end));
    let history = sessions.history("chat").await.unwrap();
    assert_eq!((cut.cut, &*cut.carried), (history.cut(), &[0][..]));
    let left: u64 = history.iter().map(|message| message.chars() as u64).sum();
    assert_eq!(cut.kept_size.chars, left);
    let asked: Vec<_> = requests.lock().unwrap().iter().flat_map(|r| r.messages.to_vec()).collect();
    assert!(cut.removed.iter().all(|kept| asked.contains(&kept.message)));
}

#[tokio::test]
async fn a_preview_says_why_nothing_would_be_done() {
    let (stub, gate) = Stub::says("All parts do well.").held();
    let sessions = manager(stub);
    let preview = sessions.preview("chat").await.unwrap();
    assert!(matches!(preview.not_started, Some(Outcome::BelowThreshold { .. })));
    assert!(matches!(preview.cut, Err(Skip::NothingToCut)));
    assert!(preview.to_string().contains("nothing to compact"), "{preview}");

    sessions.add_messages("chat", named(0..30)).await.unwrap();
    drop(sessions.maybe_summarize("chat").await);
    gate.entered().await;
    let preview = sessions.preview("chat").await.unwrap();
    assert!(matches!(preview.not_started, Some(Outcome::InFlight(_))));
    assert!(preview.cut.is_ok());

    let bare = SessionManager::builder().build().unwrap();
    bare.add_messages("chat", named(0..30)).await.unwrap();
    let preview = bare.preview("chat").await.unwrap();
    assert!(matches!(preview.not_started, Some(Outcome::NoSummarizer)));
    assert_eq!(preview.cut.unwrap().removed.len(), 26);

    let config = SummarizationConfig::default().with_enabled(false);
    let off = SessionManager::builder().config(config).build().unwrap();
    let preview = off.preview("chat").await.unwrap();
    assert!(matches!(preview.not_started, Some(Outcome::Disabled)));
}
