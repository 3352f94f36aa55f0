//! Several managers on one store, as several processes are: what one writes
//! the others see, and each compaction is done by one of them.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, and run on one thread"
)]

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use common::stub::{Gate, Stub, messages, texts, texts_of};
use session_compaction::{
    Compact, Consistency, MemoryStore, Message, Outcome, PauseUntil, Report, Request, RunIn,
    SessionExport, SessionManager, SessionManagerBuilder, SessionOptions, SessionStore,
    SummarizationConfig, To, Worker,
};
use tokio::sync::oneshot;

fn store() -> Arc<dyn SessionStore> {
    Arc::new(MemoryStore::keep_transcripts())
}

fn on(store: &Arc<dyn SessionStore>) -> SessionManagerBuilder {
    SessionManager::builder()
        .shared_store(Arc::clone(store))
        .consistency(Consistency::Latest)
        .summarizer(Stub::says("All parts do well."))
        // One call a compaction, so that one release of a gate lets it end.
        .config(SummarizationConfig {
            multi_part_batch_threshold: 100,
            ..SummarizationConfig::default()
        })
}

fn held(store: &Arc<dyn SessionStore>) -> (SessionManager, Arc<Gate>) {
    let (stub, gate) = Stub::says("All parts do well.").held();
    (on(store).summarizer(stub).build().unwrap(), gate)
}

#[tokio::test]
async fn one_compaction_a_session_across_managers() {
    let store = store();
    let (first, gate) = held(&store);
    let second = on(&store).build().unwrap();
    first.add_messages("chat", messages(0..30)).await.unwrap();
    let Outcome::Started(handle) = first.maybe_summarize("chat").await else {
        panic!("not started");
    };
    gate.entered().await;
    let refused = second.maybe_summarize("chat").await;
    assert!(matches!(refused, Outcome::HeldElsewhere), "{refused}");
    let joined = second.compact("chat", Compact::now()).await;
    assert!(matches!(&joined, Report::NotStarted(why) if matches!(**why, Outcome::HeldElsewhere)));
    gate.release();
    assert!(handle.await.applied().is_some());
    // It sees what the other one did, and that there is nothing left to do.
    assert!(matches!(second.maybe_summarize("chat").await, Outcome::BelowThreshold { .. }));
    assert_eq!(second.summary("chat").await.unwrap().unwrap(), "All parts do well.");
}

#[tokio::test]
async fn a_cancelled_compaction_gives_its_lease_back() {
    let store = store();
    let (first, gate) = held(&store);
    let second = on(&store).build().unwrap();
    first.add_messages("chat", messages(0..30)).await.unwrap();
    let Outcome::Started(handle) = first.maybe_summarize("chat").await else {
        panic!("not started");
    };
    gate.entered().await;
    handle.cancel();
    let report = handle.await;
    assert!(matches!(&report, Report::Failed(error) if error.is_cancelled()), "{report}");
    // The lease goes back in a task of its own.
    let mut report = second.compact("chat", Compact::now()).await;
    while matches!(report, Report::NotStarted(_)) {
        tokio::task::yield_now().await;
        report = second.compact("chat", Compact::now()).await;
    }
    assert!(report.applied().is_some(), "{report}");
}

#[tokio::test]
async fn what_another_manager_wrote_is_seen() {
    let store = store();
    let (one, other) = (on(&store).build().unwrap(), on(&store).build().unwrap());
    one.add_messages("chat", messages(0..3)).await.unwrap();
    let seen = async || other.context("chat", &Request::new()).await.unwrap().mark().len;
    assert_eq!(seen().await, 3);
    one.add_messages("chat", messages(3..5)).await.unwrap();
    assert_eq!(seen().await, 5);
    one.configure("chat", SessionOptions::default().context_window(900)).await.unwrap();
    assert_eq!(seen().await, 5);
    assert_eq!(other.options("chat").await.unwrap().context_window, Some(900));
    one.rewind("chat", To::LastUser).await.unwrap();
    assert_eq!(seen().await, 5, "the newest message is the user's");
    one.rewind("chat", To::BeforeLastUser).await.unwrap();
    assert_eq!(seen().await, 4);
    one.clear("chat").await.unwrap();
    assert_eq!(seen().await, 0);
    one.add_messages("chat", messages(0..2)).await.unwrap();
    assert_eq!(seen().await, 2);
    one.remove("chat").await.unwrap();
    assert_eq!(seen().await, 0);
    one.add_messages("chat", messages(0..1)).await.unwrap();
    assert_eq!(seen().await, 1);
}

#[tokio::test]
async fn a_cached_manager_sees_it_when_asked_or_with_its_own_write() {
    let store = store();
    let one = on(&store).build().unwrap();
    let other = on(&store).consistency(Consistency::Cached).build().unwrap();
    one.add_messages("chat", messages(0..3)).await.unwrap();
    assert_eq!(texts(&other, "chat").await, texts_of(&messages(0..3)));
    one.add_messages("chat", messages(3..4)).await.unwrap();
    assert_eq!(texts(&other, "chat").await, texts_of(&messages(0..3)));
    other.refresh("chat").await.unwrap();
    assert_eq!(texts(&other, "chat").await, texts_of(&messages(0..4)));
    one.add_messages("chat", messages(4..5)).await.unwrap();
    other.add_messages("chat", messages(5..6)).await.unwrap();
    assert_eq!(texts(&other, "chat").await, texts_of(&messages(0..6)));
}

#[tokio::test]
async fn a_session_created_elsewhere_is_found() {
    let store = store();
    let (one, other) = (on(&store).build().unwrap(), on(&store).build().unwrap());
    assert!(other.history("chat").await.unwrap().is_empty());
    one.add_messages("chat", messages(0..3)).await.unwrap();
    other.add_messages("chat", messages(3..4)).await.unwrap();
    assert_eq!(texts(&other, "chat").await, texts_of(&messages(0..4)));
}

#[tokio::test]
async fn due_sessions_are_left_to_a_worker() {
    let store = store();
    let web = on(&store).run_in(RunIn::Elsewhere).build().unwrap();
    for key in ["a", "b", "c"] {
        web.add_messages(key, messages(0..30)).await.unwrap();
        assert!(matches!(web.maybe_summarize(key).await, Outcome::Deferred));
    }
    web.add_messages("small", messages(0..5)).await.unwrap();
    assert!(matches!(web.maybe_summarize("small").await, Outcome::BelowThreshold { .. }));

    let worker = on(&store).build().unwrap();
    let mut done = worker.run_due(2).await.unwrap();
    assert_eq!(done.len(), 2);
    done.extend(worker.run_due(2).await.unwrap());
    let mut keys: Vec<_> = done.iter().map(|(key, _)| key.to_string()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["a", "b", "c"]);
    assert!(done.iter().all(|(_, report)| report.applied().is_some()));
    assert!(worker.run_due(9).await.unwrap().is_empty());
    for key in ["a", "b", "c"] {
        assert!(matches!(web.maybe_summarize(key).await, Outcome::BelowThreshold { .. }));
        assert_eq!(web.history(key).await.unwrap().len(), 4);
    }
}

#[tokio::test]
async fn a_session_that_is_no_longer_due_is_not_claimed_for_ever() {
    let store = store();
    let web = on(&store).run_in(RunIn::Elsewhere).build().unwrap();
    web.add_messages("chat", messages(0..30)).await.unwrap();
    assert!(matches!(web.maybe_summarize("chat").await, Outcome::Deferred));
    web.truncate_history("chat", 3).await.unwrap();
    let worker = on(&store).build().unwrap();
    let first = worker.run_due(9).await.unwrap();
    assert!(first.len() <= 1, "{first:?}");
    assert!(worker.run_due(9).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_worker_finishes_what_runs_when_it_is_stopped() {
    let store = store();
    let web = on(&store).run_in(RunIn::Elsewhere).build().unwrap();
    web.add_messages("chat", messages(0..30)).await.unwrap();
    let (sessions, gate) = held(&store);
    let (stop, stopped) = oneshot::channel::<()>();
    let worker = Worker::new(sessions).at_once(2);
    let run = tokio::spawn(worker.run(async { drop(stopped.await) }));
    gate.entered().await;
    drop(stop);
    gate.release();
    let shutdown = run.await.unwrap();
    assert_eq!(shutdown.cut_off, []);
    assert_eq!(web.context("chat", &Request::new()).await.unwrap().mark().len, 4);
}

#[tokio::test]
async fn few_sessions_stay_in_memory_and_none_is_lost() {
    let store = store();
    let sessions = on(&store).max_cached_sessions(8).build().unwrap();
    let mut turn = sessions.turn("held", Message::user("Wait.")).await.unwrap();
    for n in 0..100 {
        sessions.add_messages(&format!("chat-{n}"), messages(0..3)).await.unwrap();
    }
    assert!(sessions.cached_sessions() <= 8, "{}", sessions.cached_sessions());
    turn.results([Message::assistant("Done.")]).await.unwrap();
    assert_eq!(sessions.history("held").await.unwrap().len(), 2);
    for n in 0..100 {
        let key = format!("chat-{n}");
        sessions.add_messages(&key, messages(3..4)).await.unwrap();
        assert_eq!(texts(&sessions, &key).await, texts_of(&messages(0..4)));
    }
}

#[tokio::test]
async fn compactions_are_taken_back_one_after_the_other() {
    let store = store();
    let sessions = on(&store).build().unwrap();
    sessions.add_messages("chat", messages(0..30)).await.unwrap();
    assert!(sessions.compact("chat", Compact::now()).await.applied().is_some());
    sessions.add_messages("chat", messages(30..60)).await.unwrap();
    assert!(sessions.compact("chat", Compact::now()).await.applied().is_some());
    let listed = sessions.compactions("chat", None, 10).await.unwrap();
    let numbers: Vec<_> = listed.iter().map(|compaction| compaction.number).collect();
    assert_eq!(numbers, [2, 1]);
    let replaced = listed.first().unwrap().before.summary.clone().unwrap();
    assert_eq!(replaced.text, "All parts do well.");

    sessions.add_messages("chat", messages(60..62)).await.unwrap();
    let undone = sessions.undo_last_compaction("chat").await.unwrap();
    assert_eq!(undone.number, 2);
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(26..62)));
    assert!(sessions.summary("chat").await.unwrap().is_some());
    let Outcome::Paused { until, .. } = sessions.maybe_summarize("chat").await else {
        panic!("the trigger is not paused");
    };
    assert!(matches!(until, PauseUntil::Tokens(_)));

    assert_eq!(sessions.undo_last_compaction("chat").await.unwrap().number, 1);
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(0..62)));
    assert_eq!(sessions.summary("chat").await.unwrap(), None);
    let error = sessions.undo_last_compaction("chat").await.unwrap_err();
    assert!(error.is_rewind(), "{error}");
    // And all of it as another process reads it.
    let fresh = on(&store).build().unwrap();
    assert_eq!(texts(&fresh, "chat").await, texts_of(&messages(0..62)));
}

#[tokio::test]
async fn an_undo_keeps_what_was_taken_back_since() {
    let sessions = on(&store()).build().unwrap();
    sessions.add_messages("chat", messages(0..30)).await.unwrap();
    assert!(sessions.compact("chat", Compact::now()).await.applied().is_some());
    sessions.rewind("chat", To::BeforeLastUser).await.unwrap();
    sessions.undo_last_compaction("chat").await.unwrap();
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(0..28)));
}

#[tokio::test]
async fn no_undo_across_a_clear() {
    let sessions = on(&store()).build().unwrap();
    sessions.add_messages("chat", messages(0..30)).await.unwrap();
    assert!(sessions.compact("chat", Compact::now()).await.applied().is_some());
    sessions.clear("chat").await.unwrap();
    sessions.add_messages("chat", messages(30..32)).await.unwrap();
    let error = sessions.undo_last_compaction("chat").await.unwrap_err();
    assert!(error.is_rewind(), "{error}");
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(30..32)));
}

#[tokio::test]
async fn a_rewind_below_the_cut_brings_back_the_summary_then_in_force() {
    let store = store();
    let sessions = on(&store).build().unwrap();
    let id = |n: usize| format!("m{n}");
    let named = |range: std::ops::Range<usize>| {
        let named = range.clone().zip(messages(range)).map(|(n, message)| message.with_id(id(n)));
        named.collect::<Vec<_>>()
    };
    sessions.add_messages("chat", named(0..30)).await.unwrap();
    assert!(sessions.compact("chat", Compact::now()).await.applied().is_some());
    sessions.add_messages("chat", named(30..60)).await.unwrap();
    assert!(sessions.compact("chat", Compact::now()).await.applied().is_some());
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(56..60)));

    let taken = sessions.rewind("chat", To::Before("m40".into())).await.unwrap();
    assert_eq!(taken.len(), 20);
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(26..40)));
    assert!(sessions.summary("chat").await.unwrap().is_some());
    let taken = sessions.rewind("chat", To::Before("m2".into())).await.unwrap();
    assert_eq!(taken.len(), 38);
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(0..2)));
    assert_eq!(sessions.summary("chat").await.unwrap(), None);
    // Their ids can be used again.
    assert!(!sessions.add_message("chat", named(2..3).remove(0)).await.unwrap().duplicate);
    let fresh = on(&store).build().unwrap();
    assert_eq!(texts(&fresh, "chat").await, texts_of(&messages(0..3)));
}

#[tokio::test]
async fn an_exported_session_is_the_same_elsewhere() {
    let (here, there) = (on(&store()).build().unwrap(), on(&store()).build().unwrap());
    here.add_messages("chat", messages(0..30)).await.unwrap();
    assert!(here.compact("chat", Compact::now()).await.applied().is_some());
    here.add_messages("chat", messages(30..34)).await.unwrap();
    let exported = here.export("chat").await.unwrap().unwrap();
    let json = serde_json::to_string(&exported).unwrap();
    let read: SessionExport = serde_json::from_str(&json).unwrap();
    there.import("moved", read).await.unwrap();

    assert_eq!(texts(&there, "moved").await, texts(&here, "chat").await);
    assert_eq!(there.summary("moved").await.unwrap(), here.summary("chat").await.unwrap());
    let all = |sessions: SessionManager, key: &'static str| async move {
        let kept = sessions.transcript(key, 0..99).await.unwrap();
        let text = |message: &Message| serde_json::to_string(message).unwrap();
        kept.iter().map(|kept| (kept.position, text(&kept.message))).collect::<Vec<_>>()
    };
    assert_eq!(all(there.clone(), "moved").await, all(here.clone(), "chat").await);
    assert_eq!(there.undo_last_compaction("moved").await.unwrap().number, 1);
    assert_eq!(texts(&there, "moved").await, texts_of(&messages(0..34)));

    let again = there.import("moved", exported).await.unwrap_err();
    assert!(again.is_exists(), "{again}");
    assert!(here.export("unknown").await.unwrap().is_none());
}

#[tokio::test]
async fn what_was_imported_is_not_due_until_something_is_appended() {
    let store = store();
    let sessions = on(&store).build().unwrap();
    let old = SessionExport::of_messages(messages(0..30));
    sessions.import("chat", old).await.unwrap();
    assert!(sessions.run_due(9).await.unwrap().is_empty());
    sessions.add_messages("chat", messages(30..31)).await.unwrap();
    assert_eq!(sessions.run_due(9).await.unwrap().len(), 1);
}

/// A store whose clock the test sets.
fn timed() -> (Arc<dyn SessionStore>, Arc<AtomicU64>) {
    let seconds = Arc::new(AtomicU64::new(1_000));
    let clock = Arc::clone(&seconds);
    let now = move || UNIX_EPOCH + Duration::from_secs(clock.load(Ordering::SeqCst));
    (Arc::new(MemoryStore::keep_transcripts().with_clock(now)), seconds)
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_while_the_model_thinks() {
    let (store, seconds) = timed();
    let (first, gate) = held(&store);
    let second = on(&store).build().unwrap();
    first.add_messages("chat", messages(0..30)).await.unwrap();
    let Outcome::Started(handle) = first.maybe_summarize("chat").await else {
        panic!("not started");
    };
    gate.entered().await;
    for _ in 0..9 {
        seconds.fetch_add(10, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    let refused = second.maybe_summarize("chat").await;
    assert!(matches!(refused, Outcome::HeldElsewhere), "{refused}");
    gate.release();
    let report = handle.await;
    assert!(report.applied().is_some(), "{report}");
}

#[tokio::test]
async fn a_process_that_was_stopped_past_its_lease_is_stale() {
    let (store, seconds) = timed();
    let (first, gate) = held(&store);
    let second = on(&store).build().unwrap();
    first.add_messages("chat", messages(0..30)).await.unwrap();
    let Outcome::Started(handle) = first.maybe_summarize("chat").await else {
        panic!("not started");
    };
    gate.entered().await;
    // Its timers stood still, the store's clock did not.
    seconds.fetch_add(31, Ordering::SeqCst);
    let report = second.compact("chat", Compact::now()).await;
    assert!(report.applied().is_some(), "{report}");
    gate.release();
    let late = handle.await;
    assert!(matches!(late, Report::Stale), "{late}");
    assert_eq!(second.compactions("chat", None, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_expired_lease_fences_also_where_nobody_else_has_come() {
    let (store, seconds) = timed();
    let (first, gate) = held(&store);
    first.add_messages("chat", messages(0..30)).await.unwrap();
    let Outcome::Started(handle) = first.maybe_summarize("chat").await else {
        panic!("not started");
    };
    gate.entered().await;
    seconds.fetch_add(31, Ordering::SeqCst);
    gate.release();
    let late = handle.await;
    assert!(matches!(late, Report::Stale), "{late}");
    assert_eq!(texts(&first, "chat").await, texts_of(&messages(0..30)));
}
