//! What becomes of a session where its model fails, hangs or is shown secrets.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, UNIX_EPOCH},
};

use common::{
    model::{Model, whole},
    secrets::{SECRETS, assert_clean, leak, leaky},
    stub::{Stub, manager_with, message, messages, texts, texts_of},
};
use session_compaction::{
    ChatResponse, Compact, Fallback, MemoryStore, Message, Outcome, Pause, PauseUntil,
    ProviderError, ProviderErrorKind, Report, SessionManager, Skip, SummarizationConfig,
    SummarizeError, Summarizer, Summary, Threshold, summarize_fn,
};

const OLD: &str = "ALPHA: the user prefers metric units.";
const SUMMARY: &str = "All parts of the machine do well.";

/// A clock that stands still until it is moved.
#[derive(Clone, Default)]
struct Seconds(Arc<AtomicU64>);

impl Seconds {
    fn pass(&self, seconds: u64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    fn manager(&self, summarizer: impl Summarizer, store: &Arc<MemoryStore>) -> SessionManager {
        let now = Arc::clone(&self.0);
        SessionManager::builder()
            .summarizer(summarizer)
            .config(whole())
            .shared_store(Arc::clone(store) as _)
            .clock(move || UNIX_EPOCH + Duration::from_secs(now.load(Ordering::SeqCst)))
            .build()
            .unwrap()
    }
}

/// One turn; returns what became of the compaction that it may have started.
async fn turn(sessions: &SessionManager, key: &str) -> Result<Report, Outcome> {
    match sessions.maybe_summarize(key).await {
        Outcome::Started(handle) => Ok(handle.await),
        outcome => Err(outcome),
    }
}

fn busy() -> ProviderError {
    ProviderError::new(ProviderErrorKind::RateLimited, "slow down")
        .with_status(429)
        .with_retry_after(Duration::from_secs(7))
}

#[tokio::test]
async fn three_failures_in_a_row_pause_a_session_and_a_success_ends_it() {
    let (time, store) = (Seconds::default(), Arc::new(MemoryStore::new()));
    let stub = Stub::new(|request| match request.messages.len() {
        20 => Err("no such model".into()),
        _ => Ok(SUMMARY.into()),
    });
    let requests = stub.requests();
    let calls = move || requests.lock().unwrap().len();
    let sessions = time.manager(stub, &store);
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    for _ in 0..100 {
        let _ = turn(&sessions, "chat").await;
    }
    assert_eq!(calls(), 3);
    let Err(Outcome::Paused { until, reason }) = turn(&sessions, "chat").await else { panic!() };
    assert_eq!(until, PauseUntil::UnixMillis(30_000));
    assert!(reason.contains("no such model"), "{reason}");

    // Another process does not repeat it either.
    let other = time.manager(Stub::new(|_| panic!("not asked")), &store);
    assert!(matches!(turn(&other, "chat").await, Err(Outcome::Paused { .. })));

    time.pass(30);
    assert!(matches!(turn(&sessions, "chat").await, Ok(Report::Failed(_))), "half open");
    let Err(Outcome::Paused { until, .. }) = turn(&sessions, "chat").await else { panic!() };
    assert_eq!(until, PauseUntil::UnixMillis(90_000), "twice as long");
    assert_eq!(calls(), 4);

    time.pass(60);
    sessions.add_messages("chat", messages(24..26)).await.unwrap();
    assert!(turn(&sessions, "chat").await.unwrap().applied().is_some());
    // One failure after a success is the first one.
    sessions.add_messages("chat", messages(26..46)).await.unwrap();
    assert!(matches!(turn(&sessions, "chat").await, Ok(Report::Failed(_))));
    assert!(!matches!(turn(&sessions, "chat").await, Err(Outcome::Paused { .. })));
}

#[tokio::test]
async fn blank_answers_count_as_failures() {
    let (time, store) = (Seconds::default(), Arc::new(MemoryStore::new()));
    let stub = Stub::says(" ");
    let requests = stub.requests();
    let sessions = time.manager(stub, &store);
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    for _ in 0..100 {
        let _ = turn(&sessions, "chat").await;
    }
    assert_eq!(requests.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_hundred_turns_against_a_busy_provider_are_at_most_six_calls() {
    for seconds_a_turn in [0, 1] {
        let (time, store) = (Seconds::default(), Arc::new(MemoryStore::new()));
        let model = Model::fails(busy());
        let sessions = {
            let now = Arc::clone(&time.0);
            SessionManager::builder()
                .summarizer(model.summarizer())
                .config(SummarizationConfig { context_window: 128_000, ..Default::default() })
                .shared_store(Arc::clone(&store) as _)
                .clock(move || UNIX_EPOCH + Duration::from_secs(now.load(Ordering::SeqCst)))
                .build()
                .unwrap()
        };
        sessions.add_messages("chat", messages(0..24)).await.unwrap();
        for n in 24..124 {
            sessions.add_message("chat", message(n)).await.unwrap();
            let _ = turn(&sessions, "chat").await;
            time.pass(seconds_a_turn);
        }
        assert!((1..=6).contains(&model.calls()), "{} calls", model.calls());
        assert_eq!(sessions.history("chat").await.unwrap().len(), 124);
    }
}

#[tokio::test]
async fn a_provider_that_is_down_is_left_alone_by_all_sessions() {
    let (time, store) = (Seconds::default(), Arc::new(MemoryStore::new()));
    let down = ProviderError::new(ProviderErrorKind::Server, "down");
    let replies = [Err(down.clone()), Err(down.clone()), Err(down), Ok(ChatResponse::new(SUMMARY))];
    let model = Model::replies(replies);
    let sessions = time.manager(model.summarizer(), &store);
    for n in 0..10 {
        let key = format!("chat {n}");
        sessions.add_messages(&key, messages(0..24)).await.unwrap();
        let Ok(Report::Failed(error)) = turn(&sessions, &key).await else { panic!() };
        assert!(error.is_transient());
        assert_eq!(error.retry_delay(), (n >= 3).then_some(Duration::from_secs(30)), "{n}");
    }
    assert_eq!(model.calls(), 3);
    assert!(matches!(turn(&sessions, "chat 9").await, Err(Outcome::Paused { .. })));
    time.pass(30);
    for n in 0..10 {
        assert!(turn(&sessions, &format!("chat {n}")).await.unwrap().applied().is_some());
    }
    assert_eq!(model.calls(), 13);
}

#[tokio::test]
async fn no_progress_is_not_paid_for() {
    let model = Model::says(SUMMARY);
    // Four long messages are kept, and they alone are above the threshold.
    let config = SummarizationConfig {
        context_window: 4_000,
        message_threshold: Threshold::Off,
        ..SummarizationConfig::default()
    };
    let sessions = manager_with(model.summarizer(), config);
    sessions.add_messages("chat", messages(0..20)).await.unwrap();
    let long = |n| Message::user(format!("{n}: {}", "the log says so ".repeat(250)));
    sessions.add_messages("chat", (0..4).map(long)).await.unwrap();
    let report = turn(&sessions, "chat").await;
    assert!(matches!(report, Ok(Report::Skipped(Skip::NoProgress { .. }))), "{report:?}");
    sessions.add_message("chat", message(20)).await.unwrap();
    let outcome = turn(&sessions, "chat").await;
    assert!(
        matches!(&outcome, Err(Outcome::Paused { until: PauseUntil::Tokens(_), .. })),
        "{outcome:?}"
    );
    assert_eq!(model.calls(), 0);
    assert_eq!(sessions.history("chat").await.unwrap().len(), 25);

    // Grown by more than a tenth: what was long is old now.
    sessions.add_messages("chat", messages(21..61)).await.unwrap();
    assert!(turn(&sessions, "chat").await.unwrap().applied().is_some());
}

#[test]
fn a_pause_of_before_is_read_and_none_is_written_without_need() {
    let before = r#"{"until":{"tokens":900},"reason":"nothing to gain"}"#;
    let pause: Pause = serde_json::from_str(before).unwrap();
    assert_eq!(pause, Pause::new(PauseUntil::Tokens(900), "nothing to gain"));
    assert_eq!(serde_json::to_string(&pause).unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_hangs_is_given_up_and_the_session_is_free() {
    let mut calls = 0;
    let model = Model::plays(move |_| {
        calls += 1;
        (calls > 1).then(|| Ok(ChatResponse::new(SUMMARY)))
    });
    let config = whole().with_timeout(Duration::from_secs(1));
    let sessions = manager_with(model.summarizer(), config);
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    let started = tokio::time::Instant::now();
    let report = sessions.compact("chat", Compact::if_due()).await;
    assert!(matches!(&report, Report::Failed(error) if error.is_timeout()), "{report}");
    assert_eq!(started.elapsed(), Duration::from_secs(1));
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(0..24)));
    assert!(sessions.compact("chat", Compact::if_due()).await.applied().is_some());
}

#[tokio::test]
async fn a_provider_that_panics_harms_nobody() {
    let mut calls = 0;
    let model = Model::plays(move |_| {
        calls += 1;
        assert!(calls > 1, "boom");
        Some(Ok(ChatResponse::new(SUMMARY)))
    });
    let sessions = manager_with(model.summarizer(), whole());
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    let report = sessions.compact("chat", Compact::if_due()).await;
    assert!(matches!(&report, Report::Failed(error) if error.is_panic()), "{report}");
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(0..24)));
    assert!(sessions.compact("chat", Compact::if_due()).await.applied().is_some());
}

/// The author and the text of the summary that a compaction stored.
async fn stored(summarizer: impl Summarizer, config: SummarizationConfig) -> (String, String) {
    let sessions = manager_with(summarizer, config);
    sessions.set_summary("chat", OLD).await.unwrap();
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    let report = sessions.compact("chat", Compact::if_due()).await;
    assert!(report.applied().is_some(), "{report}");
    let history = sessions.history("chat").await.unwrap();
    let summary = history.summary().unwrap();
    (summary.by.clone(), summary.text.clone())
}

fn second() -> impl Summarizer {
    summarize_fn(|request| async move {
        let old = request.existing_summary.as_deref().unwrap_or("nothing").to_owned();
        Ok::<_, SummarizeError>(format!("{old} {} more messages.", request.messages.len()))
    })
}

#[tokio::test(start_paused = true)]
async fn the_second_summarizer_writes_where_the_first_has_no_answer() {
    let mut refusal = ChatResponse::new("partial");
    refusal.refusal = Some("no".into());
    for model in [
        Model::fails(ProviderError::new(ProviderErrorKind::Server, "down")),
        Model::fails(ProviderError::new(ProviderErrorKind::Auth, "no key")),
        Model::says(" "),
        Model::replies([Ok(refusal)]),
        // It never answers.
        Model::plays(|_| None),
    ] {
        let (by, text) = stored(Fallback::new(model.summarizer(), second()), whole()).await;
        assert_eq!(by, "summarize_fn");
        assert!(text.starts_with(OLD) && text.contains("20 more messages"), "{text}");
    }
}

#[tokio::test]
async fn the_first_summarizer_is_named_where_it_wrote() {
    let model = Model::says(SUMMARY);
    let (by, text) = stored(Fallback::new(model.summarizer(), second()), whole()).await;
    assert_eq!((&*by, &*text), ("fake/test-model", SUMMARY));
    let (by, _) = stored(Stub::new(|_| Ok(Summary::new("Fine.").by("a stub"))), whole()).await;
    assert_eq!(by, "a stub");
}

#[tokio::test]
async fn a_smaller_input_comes_before_the_second_summarizer() {
    let model = Model::plays(|request| {
        let long = request.user.lines().count() > 16;
        let error = ProviderError::new(ProviderErrorKind::TooLong, "too long");
        Some(if long { Err(error) } else { Ok(ChatResponse::new(SUMMARY)) })
    });
    let (by, _) = stored(Fallback::new(model.summarizer(), second()), whole()).await;
    assert_eq!(by, "fake/test-model");
    assert_eq!(model.calls(), 4, "the whole, two halves, a merge");
}

#[tokio::test]
async fn where_both_fail_the_first_error_is_told() {
    let model = Model::fails(busy());
    let none = summarize_fn(|_| async { Err::<String, SummarizeError>("none".into()) });
    let sessions = manager_with(Fallback::new(model.summarizer(), none), whole());
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    let report = sessions.compact("chat", Compact::if_due()).await;
    let Report::Failed(error) = report else { panic!("{report}") };
    assert_eq!(error.retry_delay(), Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn a_closure_sees_all_and_what_it_returns_is_redacted() {
    let stub = Stub::new(|_| Ok(Summary::new(leak())));
    let requests = stub.requests();
    let sessions = manager_with(stub, whole());
    sessions.add_messages("chat", leaky()).await.unwrap();
    let report = sessions.compact("chat", Compact::if_due()).await;
    assert!(report.applied().is_some(), "{report}");
    assert!(requests.lock().unwrap()[0].messages[0].text().contains(SECRETS[0]));
    assert_clean(&sessions.summary("chat").await.unwrap().unwrap());
    let mark = sessions.snapshot("chat").await.unwrap();
    let _ = sessions.apply_summarization("chat", leak(), mark, 2).await;
    assert_clean(&sessions.summary("chat").await.unwrap().unwrap());

    let open = SessionManager::builder().without_redactor().build().unwrap();
    open.set_summary("chat", leak()).await.unwrap();
    assert_eq!(open.summary("chat").await.unwrap().unwrap(), leak());
}
