//! What is stored of every compaction: also of those from which nothing came,
//! since they were paid.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::{sync::Arc, time::Duration};

use common::{
    model::{Model, whole},
    stub::{Stub, messages},
};
use session_compaction::{
    ChatResponse, Compact, Cost, Counter, MemoryStore, Message, Price, Prices, ProviderError,
    ProviderErrorKind, Report, Request, SessionKey, SessionManager, SessionStore, Summarizer,
    TokenUsage, UsageEvent, UsageKind, UsageOutcome, UsagePage,
};

fn answer(text: &str, input: u64, output: u64) -> ChatResponse {
    let mut answer = ChatResponse::new(text);
    answer.usage = Some(TokenUsage::new(input, output));
    answer
}

/// 1 dollar for a million tokens of prompts, 10 for answers.
fn manager(summarizer: impl Summarizer) -> (SessionManager, Arc<MemoryStore>) {
    let store = Arc::new(MemoryStore::new());
    let price = Price::new(Cost::from_dollars(1.0), Cost::from_dollars(10.0));
    let sessions = SessionManager::builder()
        .summarizer(summarizer)
        .config(whole())
        .shared_store(Arc::clone(&store) as _)
        .prices(Prices::new().with("test-model", price))
        .build()
        .unwrap();
    (sessions, store)
}

async fn compact(sessions: &SessionManager) -> Report {
    sessions.add_messages("chat", messages(0..30)).await.unwrap();
    sessions.compact("chat", Compact::if_due()).await
}

async fn events(store: &MemoryStore) -> Vec<UsageEvent> {
    let page = UsagePage::newest(100).of(SessionKey::new("chat").unwrap());
    let events = store.usage().unwrap().events(page).await.unwrap();
    events.into_iter().map(|record| record.event).collect()
}

#[tokio::test]
async fn an_applied_one_says_who_was_asked_why_and_for_how_much() {
    let model =
        Model::replies([Ok(answer("", 900, 0)), Ok(answer("All parts do well.", 1_000, 40))]);
    let (sessions, store) = manager(model.summarizer());
    let report = compact(&sessions).await;
    assert!(report.applied().is_some(), "{report:?}");

    let stored = events(&store).await;
    let [event] = stored.as_slice() else { panic!("{stored:?}") };
    assert_eq!(event.outcome, UsageOutcome::Applied);
    assert_eq!((&*event.summarizer, &*event.model), ("fake/test-model", "test-model"));
    assert_eq!((&*event.trigger, event.measured, event.limit), ("messages", 30, 20));
    assert_eq!(event.attempts, 2, "a blank answer was asked for once more");
    assert_eq!(event.usage, Some(TokenUsage::new(1_900, 40)));
    assert_eq!(event.cost.unwrap().to_string(), "$0.002300");
    assert_eq!(event.messages_removed, report.applied().unwrap().messages_removed);
    assert_eq!(
        event.metadata(),
        format!(
            r#"{{"summarization":true,"messages_removed":{},"chars_removed":{}}}"#,
            event.messages_removed, event.chars_removed
        )
    );
}

#[tokio::test]
async fn a_refused_answer_is_paid_and_counted() {
    let model = Model::replies([Ok(answer("", 900, 3)), Ok(answer(" ", 950, 4))]);
    let (sessions, store) = manager(model.summarizer());
    assert!(matches!(compact(&sessions).await, Report::Rejected { .. }));
    let stored = events(&store).await;
    let [event] = stored.as_slice() else { panic!("{stored:?}") };
    assert_eq!((event.outcome, event.attempts), (UsageOutcome::Rejected, 2));
    assert_eq!(event.usage, Some(TokenUsage::new(1_850, 7)));
    assert_eq!((event.messages_removed, event.tokens_removed), (0, 0));
    let totals = store.usage().unwrap().totals(None).await.unwrap();
    assert_eq!((totals.of(Counter::Rejected), totals.of(Counter::Summarizations)), (1, 0));
    assert_eq!(totals.cost().to_string(), "$0.001920");
}

#[tokio::test]
async fn failures_and_answers_that_gain_nothing_are_counted() {
    let error = ProviderError::new(ProviderErrorKind::Rejected, "no such model");
    let (sessions, store) = manager(Model::fails(error).summarizer());
    assert!(matches!(compact(&sessions).await, Report::Failed(_)));
    let stored = events(&store).await;
    assert_eq!((stored[0].outcome, &*stored[0].model), (UsageOutcome::Failed, "test-model"));
    assert_eq!((stored[0].usage, stored[0].cost), (None, None));

    let (sessions, store) = manager(Stub::new(|_| Ok("much ado ".repeat(9_000).into())));
    let report = compact(&sessions).await;
    assert!(matches!(report, Report::NothingToGain { .. } | Report::Rejected { .. }), "{report:?}");
    assert_ne!(events(&store).await[0].outcome, UsageOutcome::Applied);
}

#[tokio::test]
async fn one_that_found_the_session_changed_is_counted_as_stale() {
    let (stub, gate) = Stub::says("All parts do well.").held();
    let (sessions, store) = manager(stub);
    sessions.add_messages("chat", messages(0..30)).await.unwrap();
    let running = tokio::spawn({
        let sessions = sessions.clone();
        async move { sessions.compact("chat", Compact::if_due()).await }
    });
    gate.entered().await;
    // Another process: this one's own changes end the call at once.
    let other = SessionManager::builder().shared_store(Arc::clone(&store) as _).build().unwrap();
    other.truncate_history("chat", 5).await.unwrap();
    gate.release();
    assert!(matches!(running.await.unwrap(), Report::Stale));
    assert_eq!(events(&store).await[0].outcome, UsageOutcome::Stale);
}

#[tokio::test]
async fn what_was_never_asked_leaves_no_event() {
    let (sessions, store) = manager(Stub::says("All is well."));
    sessions.add_message("chat", Message::user("hello")).await.unwrap();
    assert!(matches!(sessions.compact("chat", Compact::now()).await, Report::Skipped(_)));
    assert!(events(&store).await.is_empty());
}

#[tokio::test]
async fn hosts_record_their_own_calls() {
    let (sessions, store) = manager(Stub::says("All is well."));
    sessions.add_message("chat", Message::user("hello")).await.unwrap();
    let context = sessions.context("chat", &Request::new()).await.unwrap();
    let usage = TokenUsage::new(70_000, 1_000);
    let event = UsageEvent::query("test-model", usage, Duration::from_secs(2)).with_tools(3, 1);
    sessions.record_usage("chat", event).await.unwrap();

    let stored = events(&store).await;
    assert_eq!((stored[0].kind, stored[0].outcome), (UsageKind::Query, UsageOutcome::Answered));
    assert!(stored[0].unix_millis > 0);
    assert_eq!(stored[0].cost.unwrap().to_string(), "$0.080000");
    // Only a report that names its context feeds the trigger.
    assert!(sessions.session_stats("chat").await.unwrap().tokens < 1_000);
    assert!(sessions.report_usage("chat", context.mark(), usage).await.unwrap());
    assert_eq!(sessions.session_stats("chat").await.unwrap().tokens, 70_000);

    let own = UsageEvent::query("test-model", usage, Duration::ZERO).with_cost(Cost::ZERO);
    sessions.record_usage("chat", own).await.unwrap();
    assert_eq!(events(&store).await[0].cost, Some(Cost::ZERO), "what the host says holds");
}
