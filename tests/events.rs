//! What sinks and subscribers are told, in which order, and that none of them
//! can do harm.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::{Duration, SystemTime},
};

use common::stub::{Stub, messages};
use session_compaction::{
    Compact, Event, EventKind, EventSink, EventStream, Forced, Lagged, Message, NoEvents, Outcome,
    PauseUntil, Report, Request, SessionManager, SummarizationConfig, Summarizer, Trigger,
};
use tokio::sync::Semaphore;

/// Keeps what it is told.
#[derive(Clone, Debug, Default)]
struct Seen(Arc<Mutex<Vec<Event>>>);

impl EventSink for Seen {
    fn event(&self, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Seen {
    /// The names of what came since the last call.
    async fn names(&self, sessions: &SessionManager) -> Vec<&'static str> {
        sessions.flush_events().await;
        let events = std::mem::take(&mut *self.0.lock().unwrap());
        events.iter().map(|event| event.kind.name()).collect()
    }
}

fn watched(summarizer: impl Summarizer) -> (SessionManager, Seen) {
    let seen = Seen::default();
    let builder = SessionManager::builder().summarizer(summarizer).event_sink(seen.clone());
    (builder.build().unwrap(), seen)
}

/// 30 messages, where a compaction is due above 20.
async fn fill(sessions: &SessionManager) {
    sessions.add_messages("chat", messages(0..30)).await.unwrap();
}

async fn compact(sessions: &SessionManager) -> Report {
    sessions.compact("chat", Compact::if_due()).await
}

/// What is there now, without waiting.
async fn ready(events: &mut EventStream) -> Vec<Event> {
    let mut found = Vec::new();
    while let Ok(event) = tokio::time::timeout(Duration::ZERO, events.recv()).await {
        found.push(event.unwrap().unwrap());
    }
    found
}

/// One event each: the older half of new sessions is dropped.
async fn force(sessions: &SessionManager, count: usize) {
    for n in 0..count {
        let key = format!("forced {n}");
        sessions.add_messages(&key, messages(0..10)).await.unwrap();
        let forced = sessions.force_compression(&key).await.unwrap();
        assert!(matches!(forced, Forced::Dropped { .. }), "{forced:?}");
    }
}

#[tokio::test]
async fn applied_is_told_before_the_report() {
    let clock = || SystemTime::UNIX_EPOCH + Duration::from_millis(1_234);
    let sessions = SessionManager::builder()
        .summarizer(Stub::says("All parts do well."))
        .clock(clock)
        .build()
        .unwrap();
    fill(&sessions).await;
    let mut events = sessions.subscribe();
    let report = compact(&sessions).await;
    let done = report.applied().unwrap();

    let told = ready(&mut events).await;
    for event in &told {
        assert_eq!((event.session.as_str(), event.unix_millis), ("chat", 1_234));
    }
    let kinds: Vec<_> = told.into_iter().map(|event| event.kind).collect();
    let [triggered, started, applied] = &kinds[..] else { panic!("{kinds:?}") };
    let EventKind::Triggered { trigger, .. } = triggered else { panic!("{triggered:?}") };
    assert_eq!(*trigger, Trigger::Messages { measured: 30, limit: 20 });
    let EventKind::Started { messages, chars, .. } = started else { panic!("{started:?}") };
    assert_eq!((*messages, *chars), (done.messages_removed, done.chars_removed));
    let EventKind::Applied { messages_removed, tokens_before, tokens_after, latency, .. } = applied
    else {
        panic!("{applied:?}")
    };
    assert_eq!(*messages_removed, done.messages_removed);
    assert_eq!((*tokens_before, *tokens_after), (done.tokens_before, done.tokens_after));
    assert_eq!(*latency, done.latency);
}

#[tokio::test]
async fn rejected_says_why() {
    let (sessions, seen) = watched(Stub::says("  "));
    fill(&sessions).await;
    assert!(matches!(compact(&sessions).await, Report::Rejected { .. }));
    sessions.flush_events().await;
    let last = seen.0.lock().unwrap().last().unwrap().kind.clone();
    assert!(matches!(last, EventKind::Rejected { why: "empty", .. }), "{last:?}");
    assert_eq!(seen.names(&sessions).await, ["triggered", "started", "rejected"]);
}

#[tokio::test]
async fn failures_pause_and_time_resumes() {
    let millis = Arc::new(AtomicU64::new(1_000_000));
    let now = Arc::clone(&millis);
    let seen = Seen::default();
    let sessions = SessionManager::builder()
        .summarizer(Stub::new(|_| Err("the model is gone".into())))
        .event_sink(seen.clone())
        .clock(move || SystemTime::UNIX_EPOCH + Duration::from_millis(now.load(Ordering::SeqCst)))
        .build()
        .unwrap();
    fill(&sessions).await;
    for _ in 0..2 {
        assert!(matches!(compact(&sessions).await, Report::Failed(_)));
        assert_eq!(seen.names(&sessions).await, ["triggered", "started", "failed"]);
    }
    assert!(matches!(compact(&sessions).await, Report::Failed(_)));
    sessions.flush_events().await;
    let last = seen.0.lock().unwrap().last().unwrap().kind.clone();
    let EventKind::Paused { until: PauseUntil::UnixMillis(until), failures: 3, .. } = last else {
        panic!("{last:?}")
    };
    assert_eq!(seen.names(&sessions).await, ["triggered", "started", "failed", "paused"]);

    assert!(matches!(sessions.maybe_summarize("chat").await, Outcome::Paused { .. }));
    assert!(seen.names(&sessions).await.is_empty());

    millis.store(until, Ordering::SeqCst);
    assert!(matches!(compact(&sessions).await, Report::Failed(_)));
    let again = ["resumed", "triggered", "started", "failed", "paused"];
    assert_eq!(seen.names(&sessions).await, again);

    // What the host does itself ends a pause as well.
    let report = sessions.apply_summarization("chat", "All is well.", 30, 4).await;
    assert!(report.applied().is_some());
    assert_eq!(seen.names(&sessions).await, ["resumed", "applied"]);
}

#[tokio::test]
async fn superseded_is_stale_and_cancelled_is_failed() {
    let (stub, gate) = Stub::says("All parts do well.").held();
    let (sessions, seen) = watched(stub);
    fill(&sessions).await;
    let Outcome::Started(handle) = sessions.maybe_summarize("chat").await else { panic!() };
    gate.entered().await;
    sessions.clear("chat").await.unwrap();
    assert!(matches!(handle.await, Report::Stale));
    assert_eq!(seen.names(&sessions).await, ["triggered", "started", "stale"]);

    let (stub, gate) = Stub::says("All parts do well.").held();
    let (sessions, seen) = watched(stub);
    fill(&sessions).await;
    let Outcome::Started(handle) = sessions.maybe_summarize("chat").await else { panic!() };
    gate.entered().await;
    handle.cancel();
    assert!(matches!(handle.await, Report::Failed(_)));
    sessions.flush_events().await;
    let last = seen.0.lock().unwrap().last().unwrap().kind.clone();
    assert!(matches!(last, EventKind::Failed { why: "cancelled", .. }), "{last:?}");
    assert_eq!(seen.names(&sessions).await, ["triggered", "started", "failed"]);
}

#[tokio::test]
async fn no_progress_pauses_and_is_told_to_the_trigger_alone() {
    let seen = Seen::default();
    let sessions = SessionManager::builder()
        .summarizer(Stub::new(|_| panic!("not worth asking")))
        .config(SummarizationConfig::default().with_context_window(32_000))
        .event_sink(seen.clone())
        .build()
        .unwrap();
    sessions.add_messages("chat", messages(0..8)).await.unwrap();
    sessions.add_message("chat", Message::user("word ".repeat(30_000))).await.unwrap();
    assert!(matches!(compact(&sessions).await, Report::Skipped(_)));
    assert_eq!(seen.names(&sessions).await, ["triggered", "no_progress", "paused"]);

    sessions.add_messages("small", messages(0..2)).await.unwrap();
    let report = sessions.compact("small", Compact::now()).await;
    assert!(matches!(report, Report::Skipped(_)), "{report}");
    assert!(seen.names(&sessions).await.is_empty());
}

#[tokio::test]
async fn forced_and_healed() {
    let (sessions, seen) = watched(Stub::says("unused"));
    force(&sessions, 1).await;
    assert_eq!(seen.names(&sessions).await, ["forced"]);
    assert!(matches!(sessions.force_compression("nobody").await.unwrap(), Forced::Skipped(_)));
    assert!(seen.names(&sessions).await.is_empty());

    sessions.add_message("chat", Message::user("look")).await.unwrap();
    sessions.add_message("chat", Message::tool_result("nobody", "orphan")).await.unwrap();
    sessions.add_message("chat", Message::user("and?")).await.unwrap();
    for _ in 0..2 {
        let context = sessions.context("chat", &Request::new()).await.unwrap();
        assert_eq!(context.repaired().count(), 1);
    }
    sessions.flush_events().await;
    let kinds: Vec<_> = seen.0.lock().unwrap().iter().map(|event| event.kind.clone()).collect();
    assert!(matches!(kinds[..], [EventKind::Healed { count: 1, .. }]), "{kinds:?}");
}

#[tokio::test]
async fn no_text_is_told() {
    const MARKER: &str = "xyzzy-marker";
    let replies = Mutex::new(0);
    let (sessions, seen) = watched(Stub::new(move |_| {
        let mut replies = replies.lock().unwrap();
        *replies += 1;
        match *replies {
            1 => Err(MARKER.into()),
            _ => Ok(MARKER.into()),
        }
    }));
    fill(&sessions).await;
    sessions.add_message("chat", Message::user(MARKER)).await.unwrap();
    assert!(matches!(compact(&sessions).await, Report::Failed(_)));
    assert!(compact(&sessions).await.applied().is_some());
    sessions.flush_events().await;
    let told = format!("{:?}", seen.0.lock().unwrap());
    assert!(told.contains("Failed") && told.contains("Applied"), "{told}");
    assert!(!told.contains(MARKER), "{told}");
}

/// Panics at the first event and keeps the others.
#[derive(Debug)]
struct Panics(Seen, AtomicU64);

impl EventSink for Panics {
    fn event(&self, event: &Event) {
        assert!(self.1.fetch_add(1, Ordering::SeqCst) > 0, "the sink's own mistake");
        self.0.event(event);
    }
}

#[tokio::test]
async fn a_sink_that_panics_harms_nobody() {
    let (after, other) = (Seen::default(), Seen::default());
    let sessions = SessionManager::builder()
        .summarizer(Stub::says("All parts do well."))
        .event_sink(Panics(after.clone(), AtomicU64::new(0)))
        .event_sink(Arc::new(other.clone()))
        .event_sink(NoEvents)
        .build()
        .unwrap();
    fill(&sessions).await;
    assert!(compact(&sessions).await.applied().is_some());
    assert_eq!(after.names(&sessions).await, ["started", "applied"]);
    assert_eq!(other.names(&sessions).await, ["triggered", "started", "applied"]);
    assert_eq!(sessions.events_lost(), 1);
}

/// Blocks its thread until the other end of the channel is gone.
#[derive(Debug)]
struct Blocks {
    seen: Seen,
    entered: Arc<Semaphore>,
    gate: Mutex<mpsc::Receiver<()>>,
}

impl EventSink for Blocks {
    fn event(&self, event: &Event) {
        self.entered.add_permits(1);
        self.gate.lock().unwrap().recv().unwrap_err();
        self.seen.event(event);
    }
}

/// A manager whose sink blocks, how to see that it does, and what frees it.
fn blocked(seen: &Seen) -> (SessionManager, Arc<Semaphore>, mpsc::Sender<()>) {
    let (release, gate) = mpsc::channel();
    let entered = Arc::new(Semaphore::new(0));
    let sink = Blocks { seen: seen.clone(), entered: Arc::clone(&entered), gate: Mutex::new(gate) };
    let sessions = SessionManager::builder().event_queue(2).event_sink(sink).build().unwrap();
    (sessions, entered, release)
}

#[tokio::test]
async fn a_slow_sink_loses_events_and_nobody_waits() {
    let seen = Seen::default();
    let (sessions, entered, release) = blocked(&seen);
    force(&sessions, 1).await;
    entered.acquire().await.unwrap().forget();
    // One is in hand, two wait, five find no room. All of this runs on one
    // thread: where the sink held it up, the test would not come to its end.
    force(&sessions, 7).await;
    assert_eq!(sessions.events_lost(), 5);
    assert!(seen.0.lock().unwrap().is_empty());
    drop(release);
    assert_eq!(seen.names(&sessions).await, ["forced"; 3]);
    force(&sessions, 1).await;
    assert_eq!(seen.names(&sessions).await, ["forced"]);
    assert_eq!(sessions.events_lost(), 5);
}

#[tokio::test]
async fn a_lagging_subscriber_is_told_how_many_it_missed() {
    let sessions = SessionManager::builder().event_queue(4).build().unwrap();
    let mut events = sessions.subscribe();
    force(&sessions, 10).await;
    let missed = events.recv().await.unwrap().unwrap_err();
    assert!(matches!(missed, Lagged { missed: 6, .. }), "{missed}");
    let rest = ready(&mut events).await;
    let keys: Vec<_> = rest.iter().map(|event| event.session.as_str()).collect();
    assert_eq!(keys, ["forced 6", "forced 7", "forced 8", "forced 9"]);
    assert_eq!(sessions.events_lost(), 0, "that counts for sinks");
    drop(sessions);
    assert!(events.recv().await.is_none());
}

#[tokio::test]
async fn sinks_get_what_is_queued_when_the_manager_goes() {
    let seen = Seen::default();
    let (sessions, entered, release) = blocked(&seen);
    force(&sessions, 1).await;
    entered.acquire().await.unwrap().forget();
    force(&sessions, 2).await;
    drop(sessions);
    drop(release);
    entered.acquire_many(2).await.unwrap().forget();
    while seen.0.lock().unwrap().len() < 3 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn flushing_ends_where_the_runtime_is_gone() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let seen = Seen::default();
    let first = runtime();
    let builder = SessionManager::builder().event_sink(seen.clone());
    let sessions = builder.runtime(first.handle().clone()).build().unwrap();
    drop(first);
    runtime().block_on(async {
        force(&sessions, 1).await;
        sessions.flush_events().await;
    });
    assert!(seen.0.lock().unwrap().is_empty());
    assert_eq!(sessions.events_lost(), 1);
}
