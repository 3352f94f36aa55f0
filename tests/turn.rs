//! The loop of an agent: a context that fits, failures, and what is learned.

#![expect(clippy::panic, reason = "helpers of tests fail by panicking")]

mod common;

use std::{future::IntoFuture, sync::Arc, time::Duration};

#[path = "common/folder.rs"]
mod folder;

use common::stub::{Stub, manager, manager_with, messages};
use folder::Folder;
use session_compaction::{
    Compact, CompactionHandle, Error, JsonlStore, Message, Outcome, Report, Request,
    SessionManager, SessionOptions, Step, SummarizationConfig, Summarizer, Threshold, TokenUsage,
    Trigger, compact_messages, formats,
};

#[tokio::test]
async fn a_switch_to_a_smaller_window_is_due_at_once() {
    let config = SummarizationConfig::for_model("gpt-5").with_message_threshold(Threshold::Off);
    let sessions = manager_with(Stub::says("All parts do well."), config);
    sessions.add_messages("chat", messages(0..30)).await.unwrap();
    assert!(matches!(sessions.maybe_summarize("chat").await, Outcome::BelowThreshold { .. }));

    sessions.configure("chat", SessionOptions::new().context_window(600)).await.unwrap();
    let handle = started(sessions.maybe_summarize("chat").await);
    assert!(matches!(handle.trigger(), Some(Trigger::Tokens { limit: 450, .. })));
    assert!(handle.await.applied().is_some());

    // A model that is known by name has its usual window.
    sessions.configure("chat", SessionOptions::new().model("llama2:7b")).await.unwrap();
    sessions.add_messages("chat", messages(30..300)).await.unwrap();
    let handle = started(sessions.maybe_summarize("chat").await);
    assert!(matches!(handle.trigger(), Some(Trigger::Tokens { limit: 3_072, .. })));
}

#[tokio::test]
async fn options_are_stored_and_change_nothing_else() {
    let folder = Folder::new();
    let open = || {
        let store = JsonlStore::open(folder.path()).unwrap();
        SessionManager::builder().store(store).build().unwrap()
    };
    let options = SessionOptions::new().model("m").context_window(9).label("tenant", "acme");
    let sessions = open();
    sessions.configure("new", options.clone()).await.unwrap();
    sessions.add_messages("chat", messages(0..3)).await.unwrap();
    let before = sessions.snapshot("chat").await.unwrap();
    sessions.configure("chat", options.clone()).await.unwrap();
    assert_eq!(sessions.snapshot("chat").await.unwrap(), before);
    assert_eq!(sessions.options("unknown").await.unwrap(), SessionOptions::default());
    drop(sessions);

    let sessions = open();
    assert_eq!(sessions.options("new").await.unwrap(), options);
    assert_eq!(sessions.options("chat").await.unwrap(), options);
    assert_eq!(sessions.history("chat").await.unwrap().len(), 3);
}

#[tokio::test]
async fn another_window_ends_a_pause_and_a_label_does_not() {
    let sessions = manager(Stub::says(LONG));
    sessions.add_messages("chat", messages(0..22)).await.unwrap();
    assert!(sessions.compact("chat", Compact::if_due()).await.applied().is_none());
    let paused = |outcome: Outcome| matches!(outcome, Outcome::Paused { .. });
    assert!(paused(sessions.maybe_summarize("chat").await));
    sessions.configure("chat", SessionOptions::new().label("a", "b")).await.unwrap();
    assert!(paused(sessions.maybe_summarize("chat").await));
    sessions.configure("chat", SessionOptions::new().context_window(8_000)).await.unwrap();
    assert!(matches!(sessions.maybe_summarize("chat").await, Outcome::Started(_)));
}

/// Never smaller than what it stands for.
const LONG: &str = include_str!("../src/lib.rs");

#[tokio::test]
async fn what_requests_add_counts_for_the_trigger() {
    let config = SummarizationConfig::default()
        .with_message_threshold(Threshold::Off)
        .with_context_window(2_000)
        .with_summary_max_tokens(100);
    let sessions = manager_with(Stub::says("All parts do well."), config);
    sessions.add_message("chat", Message::system("Stored prompt.")).await.unwrap();
    sessions.add_messages("chat", messages(0..20)).await.unwrap();
    let alone = sessions.session_stats("chat").await.unwrap().tokens;
    assert!(matches!(sessions.maybe_summarize("chat").await, Outcome::BelowThreshold { .. }));

    let tools = serde_json::json!([{ "name": "df", "description": "x ".repeat(200) }]);
    let request = Request::new().system("Be brief.").tools(&tools).max_output(1_000);
    let context = sessions.context("chat", &request).await.unwrap();
    let budget = sessions.budget("chat").await.unwrap();
    let sum = budget.system + budget.summary + budget.carried + budget.window + budget.tools;
    // Each figure is rounded down by itself.
    assert!((sum..sum + 4).contains(&context.tokens()), "{sum} {}", context.tokens());
    assert_eq!(budget.reserve, 1_000);
    assert!(budget.free.abs_diff(1_000 - context.tokens()) <= 1);
    assert!(context.fits());
    let stats = sessions.session_stats("chat").await.unwrap();
    assert_eq!(stats.tokens, context.tokens() + 1_000);
    assert!(stats.tokens > alone + 1_100);

    // A provider's count goes before the estimate, and the reserve on top.
    let usage = TokenUsage::new(900, 5);
    assert!(sessions.report_usage("chat", context.mark(), usage).await.unwrap());
    assert_eq!(sessions.session_stats("chat").await.unwrap().tokens, 1_900);
    assert_eq!(sessions.budget("chat").await.unwrap().free, 100);
    let report = sessions.compact("chat", Compact::if_due()).await;
    assert!(report.applied().is_some(), "{report}");
    assert!(sessions.context("chat", &request).await.unwrap().fits());
}

#[tokio::test]
async fn what_can_never_fit_is_not_paid_for_again_and_again() {
    let config = SummarizationConfig::default().with_context_window(2_000);
    let stub = Stub::says("All parts do well.");
    let asked = stub.requests();
    let sessions = manager_with(stub, config);
    sessions.add_messages("chat", messages(0..60)).await.unwrap();
    let request = Request::new().max_output(1_900);
    sessions.context("chat", &request).await.unwrap();
    for _ in 0..5 {
        assert!(sessions.compact("chat", Compact::if_due()).await.applied().is_none());
    }
    assert_eq!(asked.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn prepare_waits_for_the_compaction_that_runs() {
    let config = SummarizationConfig::default().with_context_window(600);
    let (stub, gate) = Stub::says("All parts do well.").held();
    let sessions = manager_with(stub, config);
    sessions.add_messages("chat", messages(0..40)).await.unwrap();
    let request = Request::new();
    assert!(!sessions.context("chat", &request).await.unwrap().fits());
    let running = started(sessions.maybe_summarize("chat").await);
    gate.entered().await;
    let wait = sessions.prepare("chat", &request).into_future();
    let (context, ()) = tokio::join!(wait, async { (0..9).for_each(|_| gate.release()) });
    let context = context.unwrap();
    assert!(context.fits() && context.is_compacted());
    assert!(matches!(context.steps(), [Step::Compacted { .. }]), "{:?}", context.steps());
    assert!(running.await.applied().is_some());
    assert_eq!(sessions.session_stats("chat").await.unwrap().compactions, 1);
}

#[tokio::test(start_paused = true)]
async fn prepare_drops_what_the_deadline_leaves_too_large() {
    let config = SummarizationConfig::default().with_context_window(600);
    let (stub, _gate) = Stub::says("Too late.").held();
    let sessions = manager_with(stub, config);
    sessions.add_messages("chat", messages(0..40)).await.unwrap();
    let request = Request::new();
    let context = sessions.prepare("chat", &request).within(Duration::from_secs(3)).await.unwrap();
    assert!(context.fits());
    let [Step::NotCompacted { reason }, Step::Forced { messages: 20 }, ..] = context.steps() else {
        panic!("{:?}", context.steps())
    };
    assert_eq!(reason, "the deadline has passed");
    assert_eq!(sessions.history("chat").await.unwrap().dropped(), 20);
}

#[tokio::test]
async fn prepare_prunes_before_it_drops() {
    let sessions = SessionManager::builder().build().unwrap();
    sessions.add_message("chat", Message::user("Read the logs.")).await.unwrap();
    for n in 0..12 {
        let call = Message::assistant("").with_tool_call(format!("c{n}"), "read", "{}");
        let result = Message::tool_result(format!("c{n}"), "word ".repeat(800));
        sessions.add_messages("chat", [call, result]).await.unwrap();
    }
    let context = sessions.prepare("chat", &Request::new()).await.unwrap();
    assert!(context.fits());
    assert!(
        matches!(context.steps(), [Step::NotCompacted { .. }, Step::Pruned { .. }]),
        "{:?}",
        context.steps()
    );
    assert_eq!(sessions.history("chat").await.unwrap().len(), 25);
}

#[tokio::test]
async fn what_cannot_be_made_smaller_is_an_error_and_costs_nothing() {
    let stub = Stub::says("All parts do well.");
    let asked = stub.requests();
    let sessions = manager(stub);
    sessions.add_messages("chat", messages(0..40)).await.unwrap();
    sessions.add_message("chat", Message::user("word ".repeat(9_000))).await.unwrap();
    let before = sessions.snapshot("chat").await.unwrap();
    let error: Error = sessions.prepare("chat", &Request::new()).await.unwrap_err();
    assert!(error.is_irreducible(), "{error}");
    assert!(error.to_string().contains("its context window has 8192"), "{error}");
    assert_eq!(sessions.snapshot("chat").await.unwrap(), before);
    assert_eq!(asked.lock().unwrap().len(), 0);

    // The newest round is one: its parts are never dropped alone.
    let calls = (0..5).fold(Message::assistant(""), |message, n| {
        message.with_tool_call(format!("c{n}"), "read", "{}")
    });
    let results = (0..5).map(|n| Message::tool_result(format!("c{n}"), "word ".repeat(3_500)));
    sessions.add_messages("tools", messages(0..1)).await.unwrap();
    sessions.add_message("tools", calls).await.unwrap();
    sessions.add_messages("tools", results).await.unwrap();
    let error = sessions.prepare("tools", &Request::new()).await.unwrap_err();
    assert!(error.is_irreducible(), "{error}");
    assert_eq!(sessions.history("tools").await.unwrap().dropped(), 0);
}

#[tokio::test]
async fn a_turn_stays_on_the_summary_that_it_began_with() {
    let (stub, gate) = Stub::says("All parts do well.").held();
    let sessions = manager(stub);
    sessions.add_messages("chat", messages(0..30)).await.unwrap();
    let request = Request::new().system("Be brief.");
    let mut turn = sessions.turn("chat", Message::user("And now?")).await.unwrap();
    let first = turn.context(&request).await.unwrap();
    let running = started(sessions.maybe_summarize("chat").await);
    (0..9).for_each(|_| gate.release());
    assert!(running.await.applied().is_some());

    let call = Message::assistant("").with_tool_call("c1", "df", "{}");
    assert_eq!(turn.reply(&first, call).await.unwrap().len(), 1);
    turn.results([Message::tool_result("c1", "42%")]).await.unwrap();
    let second = turn.context(&request).await.unwrap();
    assert!(!second.is_compacted());
    let (first, second) = (first.to_openai_chat(), second.to_openai_chat());
    let prefix = first.messages().strip_suffix(']').unwrap();
    assert!(second.messages().starts_with(prefix));
    assert!(second.messages().contains("42%"));

    // The next turn has the new summary.
    drop(turn.finish().await);
    let mut turn = sessions.turn("chat", Message::user("Thanks.")).await.unwrap();
    assert!(turn.context(&request).await.unwrap().is_compacted());

    // What the host clears in mid-turn is gone.
    sessions.clear("chat").await.unwrap();
    turn.results([Message::assistant("Welcome.")]).await.unwrap();
    let context = turn.context(&request).await.unwrap();
    assert!(!context.to_openai_chat().messages().contains("Thanks"));
}

#[tokio::test]
async fn a_turn_leaves_its_summary_where_it_no_longer_fits() {
    let config = SummarizationConfig::default().with_context_window(1_200);
    let (stub, gate) = Stub::says("All parts do well.").held();
    let sessions = manager_with(stub, config);
    sessions.add_messages("chat", messages(0..30)).await.unwrap();
    let request = Request::new();
    let mut turn = sessions.turn("chat", Message::user("And now?")).await.unwrap();
    assert!(!turn.context(&request).await.unwrap().is_compacted());
    let running = started(sessions.maybe_summarize("chat").await);
    (0..9).for_each(|_| gate.release());
    assert!(running.await.applied().is_some());
    let call = Message::assistant("").with_tool_call("c1", "read", "{}");
    turn.results([call, Message::tool_result("c1", "word ".repeat(600))]).await.unwrap();
    let context = turn.context(&request).await.unwrap();
    assert!(context.fits() && context.is_compacted() && context.steps().is_empty());
}

#[tokio::test]
async fn a_turn_takes_the_new_summary_where_a_message_would_be_missing() {
    let sessions = manager(Stub::says("All parts do well."));
    sessions.add_messages("chat", messages(0..10)).await.unwrap();
    let request = Request::new();
    let mut turn = sessions.turn("chat", Message::user("A long task.")).await.unwrap();
    turn.context(&request).await.unwrap();
    for n in 0..12 {
        let call = Message::assistant("").with_tool_call(format!("c{n}"), "read", "{}");
        let result = Message::tool_result(format!("c{n}"), format!("{n} {}", "word ".repeat(100)));
        turn.results([call, result]).await.unwrap();
    }
    assert!(sessions.compact("chat", Compact::now()).await.applied().is_some());
    let context = turn.context(&request).await.unwrap();
    // The turn never saw the first rounds: now the summary stands for them.
    assert!(context.is_compacted() && context.steps().is_empty());
    let next = sessions.context("chat", &request).await.unwrap();
    assert_eq!(context.to_openai_chat().messages(), next.to_openai_chat().messages());
}

#[tokio::test]
async fn an_overflow_teaches_the_limit_and_the_next_context_is_smaller() {
    let sessions = SessionManager::builder().build().unwrap();
    sessions.add_messages("chat", messages(0..200)).await.unwrap();
    let request = Request::new();
    let mut turn = sessions.turn("chat", Message::user("And now?")).await.unwrap();
    let first = turn.context(&request).await.unwrap();
    assert!(first.steps().is_empty());
    assert!(!turn.recover(429, r#"{"error":{"message":"slow down"}}"#).await.unwrap());
    let body = r#"{"error":{"message":"prompt is too long: 4000 tokens > 2000 maximum"}}"#;
    assert!(turn.recover(400, body).await.unwrap());
    assert_eq!(sessions.options("chat").await.unwrap().context_window, Some(2_000));
    let second = turn.context(&request).await.unwrap();
    // The provider counts its own way: half of what was sent may be sent.
    assert!(second.tokens() <= first.tokens() / 2);

    // One that names no limit: a quarter less; the fourth is not recovered.
    let body = r#"{"error":{"code":"context_length_exceeded","message":"no"}}"#;
    assert!(turn.recover(400, body).await.unwrap());
    let third = turn.context(&request).await.unwrap();
    assert!(third.tokens() <= second.tokens() - second.tokens() / 4);
    assert!(turn.recover(400, body).await.unwrap());
    assert!(!turn.recover(400, body).await.unwrap());
    assert_eq!(sessions.options("chat").await.unwrap().context_window, Some(2_000));
}

#[tokio::test]
async fn a_reply_reports_its_usage_to_its_own_context() {
    let sessions = SessionManager::builder().build().unwrap();
    let mut turn = sessions.turn("chat", Message::user("Is the disk full?")).await.unwrap();
    let context = turn.context(&Request::new()).await.unwrap();
    let answer = r#"{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"No."}}],
        "usage":{"prompt_tokens":500,"completion_tokens":5}}"#;
    let reply = formats::openai_chat::parse_reply(answer).unwrap();
    assert!(turn.reply(&context, reply).await.unwrap().is_empty());
    let tokens = sessions.session_stats("chat").await.unwrap().tokens;
    assert!((501..520).contains(&tokens), "{tokens}");
    // Dropping the turn keeps what it appended.
    drop(turn);
    assert_eq!(sessions.history("chat").await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_plain_list_is_compacted_as_a_session_is() {
    let stub = Stub::says("All parts do well.");
    let asked = stub.requests();
    let summarizer: Arc<dyn Summarizer> = Arc::new(stub);
    let config = SummarizationConfig::default().with_multi_part_batch_threshold(100);
    let mut list = messages(0..30);
    list.insert(0, Message::system("Be brief."));
    list[3] = Message::user("For ever.").pinned();
    // Equal ids in a list are the host's affair.
    list[28] = list[28].clone().with_id("same");
    list[30] = list[30].clone().with_id("same");
    let done = compact_messages(&list, Some("Parts were built."), &config, &summarizer).await;
    let done = done.unwrap();
    assert!(done.report.applied().is_some(), "{}", done.report);
    assert_eq!(done.summary.as_deref(), Some("All parts do well."));
    let kept: Vec<_> = [0, 3].into_iter().chain(27..31).map(|index| list[index].clone()).collect();
    assert_eq!(done.messages, kept);
    assert_eq!(done.messages[5].id(), list[30].id());
    {
        let asked = asked.lock().unwrap();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].existing_summary.as_deref(), Some("Parts were built."));
        assert_eq!(asked[0].messages.len(), 25);
    }

    let again = compact_messages(&kept, done.summary.as_deref(), &config, &summarizer).await;
    let again = again.unwrap();
    assert_eq!((again.messages, again.summary), (kept, done.summary));
    assert!(matches!(again.report, Report::NotStarted(_)), "{}", again.report);
}

fn started(outcome: Outcome) -> CompactionHandle {
    match outcome {
        Outcome::Started(handle) => handle,
        other => panic!("{other}"),
    }
}
