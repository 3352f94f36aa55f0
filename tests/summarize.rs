//! One summarization: when it is due, what it is made from, what becomes of it.

mod common;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use common::stub::{Stub, manager, manager_with, message, messages, texts, texts_of};
use session_compaction::{
    Compact, Outcome, Report, SessionManager, Skip, SummarizationConfig, SummarizeError, Summary,
    SummaryPart, Threshold, Trigger, summarize_fn,
};

const SUMMARY: &str = "All parts of the machine do well.";

#[tokio::test]
async fn maybe_summarize_above_message_threshold() {
    let sessions = manager(Stub::says(SUMMARY));
    sessions.add_messages("chat", messages(0..21)).await.unwrap();

    let Outcome::Started(handle) = sessions.maybe_summarize("chat").await else { panic!() };
    assert_eq!(handle.trigger(), Some(Trigger::Messages { measured: 21, limit: 20 }));
    let report = handle.await;

    // The 4 newest are 17..21; the turn of 17 begins at 16.
    let done = report.applied().unwrap();
    assert_eq!((done.messages_removed, done.messages_kept, done.range.clone()), (16, 5, 0..16));
    assert!(done.tokens_after < done.tokens_before);
    assert_eq!(sessions.summary("chat").await.unwrap().as_deref(), Some(SUMMARY));
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(16..21)));
}

#[tokio::test]
async fn maybe_summarize_below_threshold() {
    let sessions = manager(Stub::new(|_| panic!("nothing is due")));
    sessions.add_messages("chat", messages(0..20)).await.unwrap();
    let Outcome::BelowThreshold { measured } = sessions.maybe_summarize("chat").await else {
        panic!()
    };
    assert_eq!(measured.messages, 20);
    assert_eq!(measured.chars, messages(0..20).iter().map(|m| m.chars() as u64).sum::<u64>());
    assert_eq!(sessions.history("chat").await.unwrap().len(), 20);
}

#[tokio::test]
async fn maybe_summarize_on_an_unknown_key_is_below_threshold() {
    let sessions = manager(Stub::says(SUMMARY));
    let outcome = sessions.maybe_summarize("nobody").await;
    assert!(matches!(outcome, Outcome::BelowThreshold { measured } if measured.messages == 0));
    let outcome = sessions.maybe_summarize("").await;
    assert!(matches!(outcome, Outcome::Unavailable(error) if error.is_key()));
}

#[tokio::test]
async fn maybe_summarize_without_a_summarizer_does_nothing() {
    let sessions = SessionManager::builder().build().unwrap();
    sessions.add_messages("chat", messages(0..40)).await.unwrap();
    assert!(matches!(sessions.maybe_summarize("chat").await, Outcome::NoSummarizer));
    assert_eq!(sessions.history("chat").await.unwrap().len(), 40);
}

#[tokio::test]
async fn maybe_summarize_deduplicates_concurrent() {
    let (stub, gate) = Stub::says(SUMMARY).held();
    let requests = stub.requests();
    let sessions = manager(stub);
    sessions.add_messages("chat", messages(0..10)).await.unwrap();
    sessions.add_messages("chat", messages(10..21)).await.unwrap();

    let config = sessions.config().multi_part_batch_threshold;
    assert!(config < 16, "so that this test has several calls to hold");
    let Outcome::Started(first) = sessions.maybe_summarize("chat").await else { panic!() };
    let mut joined = Vec::new();
    for _ in 0..8 {
        let Outcome::InFlight(handle) = sessions.maybe_summarize("chat").await else { panic!() };
        joined.push(handle);
    }
    for _ in 0..3 {
        gate.release();
    }
    assert!(first.await.applied().is_some());
    for handle in joined {
        assert!(handle.await.applied().is_some(), "all wait for the same one");
    }
    assert_eq!(requests.lock().unwrap().len(), 3, "two parts and a merge, once");
    assert!(matches!(sessions.maybe_summarize("chat").await, Outcome::BelowThreshold { .. }));
}

#[tokio::test]
async fn summarize_session_multi_part() {
    let stub = Stub::new(|request| {
        Ok(match request.part {
            SummaryPart::Part { index, .. } => format!("part {index}"),
            SummaryPart::Merge => texts_of_request(request).join(" + "),
            _ => panic!("20 messages are summarized in parts"),
        }
        .into())
    });
    let requests = stub.requests();
    let sessions = manager(stub);
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    assert!(sessions.compact("chat", Compact::if_due()).await.applied().is_some());

    let requests = requests.lock().unwrap().clone();
    assert_eq!(requests.len(), 3);
    let part = |wanted| {
        let of = |part: &SummaryPart| matches!(part, SummaryPart::Part { index, .. } if *index == wanted);
        texts_of_request(requests.iter().find(|request| of(&request.part)).unwrap())
    };
    let parts = [part(0), part(1)].concat();
    assert_eq!(parts, texts_of(&messages(0..20)), "each message once, in order");
    assert_eq!(sessions.summary("chat").await.unwrap().as_deref(), Some("part 0 + part 1"));
}

fn texts_of_request(request: &session_compaction::SummaryRequest) -> Vec<String> {
    request.messages.iter().map(|message| message.text()).collect()
}

#[tokio::test]
async fn multi_part_keeps_existing_summary() {
    // A model that keeps what it is shown, and nothing else.
    let stub = Stub::new(|request| {
        let seen = request.existing_summary.iter().map(ToString::to_string);
        Ok(seen.chain(["seen".to_owned()]).collect::<Vec<_>>().join(" ").into())
    });
    let sessions = manager(stub);
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    sessions.set_summary("chat", "Invoices are in EUR.").await.unwrap();
    assert!(sessions.compact("chat", Compact::if_due()).await.applied().is_some());
    let summary = sessions.summary("chat").await.unwrap().unwrap();
    assert!(summary.contains("Invoices are in EUR."), "{summary}");
}

#[tokio::test]
async fn multi_part_one_failure_changes_nothing() {
    let (held, gate) = Stub::says("late").held();
    let held = Arc::new(held);
    let sessions = manager(summarize_fn(move |request| {
        let held = Arc::clone(&held);
        async move {
            match request.part {
                SummaryPart::Part { index: 0, .. } => {
                    session_compaction::Summarizer::summarize(&*held, request).await
                }
                _ => Err(SummarizeError::from("the second part failed")),
            }
        }
    }));
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    sessions.set_summary("chat", "old").await.unwrap();
    let before = texts(&sessions, "chat").await;

    // The first part is never released: it is cancelled, not waited for.
    let report = sessions.compact("chat", Compact::if_due()).await;
    assert!(
        matches!(&report, Report::Failed(error) if error.to_string() == "the second part failed")
    );
    while gate.inside() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(texts(&sessions, "chat").await, before);
    assert_eq!(sessions.summary("chat").await.unwrap().as_deref(), Some("old"));
}

#[tokio::test]
async fn multi_part_blank_halves_change_nothing() {
    let sessions = manager(Stub::new(|request| {
        Ok(if request.part == SummaryPart::Merge { SUMMARY } else { " \u{200B}\n" }.into())
    }));
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    let report = sessions.compact("chat", Compact::if_due()).await;
    assert!(matches!(&report, Report::Rejected { why } if why.is_empty_summary()), "{report}");
    assert_eq!(sessions.history("chat").await.unwrap().len(), 24);
}

#[tokio::test]
async fn concurrent_summarize_and_write() {
    let (stub, gate) = Stub::says(SUMMARY).held();
    let sessions = manager_with(stub, whole_batches());
    sessions.add_messages("chat", messages(0..20)).await.unwrap();
    let compacting = {
        let sessions = sessions.clone();
        tokio::spawn(async move { sessions.compact("chat", Compact::now()).await })
    };
    gate.entered().await;
    for n in 20..25 {
        sessions.add_message("chat", message(n)).await.unwrap();
    }
    gate.release();
    assert!(compacting.await.unwrap().applied().is_some());
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(16..25)));
}

/// One call a summarization.
fn whole_batches() -> SummarizationConfig {
    SummarizationConfig::default().with_multi_part_batch_threshold(1_000)
}

#[tokio::test]
async fn characters_only_mode() {
    let config = SummarizationConfig::from_json_str(r#"{"threshold_chars": 1000}"#).unwrap();
    assert_eq!((config.message_threshold, config.token_percent), (Threshold::Off, Threshold::Off));
    let sessions = manager_with(Stub::says(SUMMARY), config);
    let mut chars = 0;
    for n in 0.. {
        let next = message(n);
        let above = chars + next.chars() > 1_000;
        chars += next.chars();
        sessions.add_message("chat", next).await.unwrap();
        let outcome = sessions.maybe_summarize("chat").await;
        if above {
            let Outcome::Started(handle) = outcome else { panic!("{outcome}") };
            let trigger = Trigger::Chars { measured: chars as u64, limit: 1_000 };
            assert_eq!(handle.trigger(), Some(trigger));
            assert!(handle.await.applied().is_some());
            break;
        }
        assert!(matches!(outcome, Outcome::BelowThreshold { .. }), "{outcome}");
    }
}

#[tokio::test]
async fn kept_characters_replace_kept_messages() {
    let config = SummarizationConfig::default().with_keep_chars(300);
    let sessions = manager_with(Stub::says(SUMMARY), config);
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    assert!(sessions.compact("chat", Compact::if_due()).await.applied().is_some());
    let kept = sessions.history("chat").await.unwrap();
    let chars: usize = kept.iter().map(|message| message.chars()).sum();
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(18..24)));
    assert!(chars <= 300 && chars + message(17).chars() > 300);
}

#[tokio::test]
async fn the_token_threshold_is_a_share_of_the_window() {
    let config = SummarizationConfig { context_window: 2_000, ..whole_batches() };
    let sessions = manager_with(Stub::says(SUMMARY), config.with_message_threshold(1_000));
    for n in 0.. {
        sessions.add_message("chat", message(n)).await.unwrap();
        match sessions.maybe_summarize("chat").await {
            Outcome::BelowThreshold { measured } => assert!(measured.tokens <= 1_500),
            Outcome::Started(handle) => {
                let Some(Trigger::Tokens { measured, limit: 1_500 }) = handle.trigger() else {
                    panic!()
                };
                assert!(measured > 1_500);
                let report = handle.await;
                assert!(report.applied().unwrap().tokens_after < 200, "{report}");
                break;
            }
            outcome => panic!("{outcome}"),
        }
    }
}

#[tokio::test]
async fn summarizer_error_keeps_session() {
    let sessions = manager_with(Stub::new(|_| Err("no such model".into())), whole_batches());
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    for _ in 0..2 {
        let report = sessions.compact("chat", Compact::if_due()).await;
        assert!(matches!(&report, Report::Failed(error) if error.to_string() == "no such model"));
    }
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(0..24)));
    assert_eq!(sessions.summary("chat").await.unwrap(), None);
}

#[tokio::test]
async fn summarizer_panic_frees_claim() {
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let stub = Stub::new(move |_| {
        assert!(calls.fetch_add(1, Ordering::SeqCst) > 0, "boom");
        Ok(SUMMARY.into())
    });
    let sessions = manager_with(stub, whole_batches());
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    let report = sessions.compact("chat", Compact::if_due()).await;
    let Report::Failed(error) = &report else { panic!("{report}") };
    assert!(error.is_panic() && error.to_string().contains("boom"), "{error}");
    assert_eq!(sessions.history("chat").await.unwrap().len(), 24);
    assert!(sessions.compact("chat", Compact::if_due()).await.applied().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_hanging_summarizer_is_given_up_at_the_deadline() {
    let (stub, _gate) = Stub::says(SUMMARY).held();
    let sessions = manager_with(stub, whole_batches().with_timeout(Duration::from_secs(7)));
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    let started = tokio::time::Instant::now();
    let report = sessions.compact("chat", Compact::if_due()).await;
    assert!(matches!(&report, Report::Failed(error) if error.is_timeout()), "{report}");
    assert_eq!(started.elapsed(), Duration::from_secs(7));
    assert_eq!(sessions.history("chat").await.unwrap().len(), 24);
}

#[tokio::test]
async fn dropped_handle_detaches() {
    let (stub, gate) = Stub::says(SUMMARY).held();
    let sessions = manager_with(stub, whole_batches());
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    drop(sessions.maybe_summarize("chat").await);
    gate.entered().await;
    gate.release();
    // Whoever asks next joins it, or finds it done.
    let report = sessions.compact("chat", Compact::if_due()).await;
    let done = match &report {
        Report::Applied(_) => true,
        Report::NotStarted(outcome) => matches!(**outcome, Outcome::BelowThreshold { .. }),
        _ => false,
    };
    assert!(done, "{report}");
    assert_eq!(sessions.summary("chat").await.unwrap().as_deref(), Some(SUMMARY));
}

#[tokio::test]
async fn cancelled_summarization_frees_claim() {
    let (stub, gate) = Stub::says(SUMMARY).held();
    let sessions = manager_with(stub, whole_batches());
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    let Outcome::Started(handle) = sessions.maybe_summarize("chat").await else { panic!() };
    gate.entered().await;
    handle.cancel();
    let report = handle.await;
    assert!(matches!(&report, Report::Failed(error) if error.is_cancelled()), "{report}");
    while gate.inside() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(0..24)));

    gate.release();
    assert!(sessions.compact("chat", Compact::if_due()).await.applied().is_some());
}

#[tokio::test]
async fn a_summary_that_is_not_smaller_is_refused_and_not_paid_for_again() {
    let stub = Stub::new(|_| Ok(Summary::new("blah ".repeat(400))));
    let requests = stub.requests();
    let sessions = manager_with(stub, whole_batches());
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    let report = sessions.compact("chat", Compact::if_due()).await;
    let Report::NothingToGain { replaced, summary } = report else { panic!("{report}") };
    assert!(summary >= replaced);
    assert_eq!(sessions.history("chat").await.unwrap().len(), 24);

    for n in 24..26 {
        sessions.add_message("chat", message(n)).await.unwrap();
        let outcome = sessions.maybe_summarize("chat").await;
        assert!(
            matches!(&outcome, Outcome::Paused { reason, .. } if reason.contains("nothing to gain"))
        );
    }
    sessions.add_messages("chat", messages(26..30)).await.unwrap();
    assert_eq!(requests.lock().unwrap().len(), 1);
    assert!(matches!(sessions.maybe_summarize("chat").await, Outcome::Started(_)));
}

#[tokio::test]
async fn one_turn_is_not_cut_but_a_long_tool_loop_is() {
    use session_compaction::Message;
    let sessions = manager_with(Stub::says("Ten files read."), whole_batches());
    // Only assistants: there is no second turn to cut at.
    let monologue = (0..24).map(|n| Message::assistant(format!("thought {n}")));
    sessions.add_messages("one", [Message::user("go")].into_iter().chain(monologue)).await.unwrap();
    let report = sessions.compact("one", Compact::if_due()).await;
    assert!(matches!(report, Report::Skipped(Skip::TooFewTurns)), "{report}");

    sessions.add_message("loop", Message::user("Audit the repository.")).await.unwrap();
    for n in 0..12 {
        let call = Message::assistant("").with_tool_call("c", "read", format!(r#"{{"file":{n}}}"#));
        let result = Message::tool_result("c", format!("file {n}: an unused import, nothing else"));
        sessions.add_messages("loop", [call, result]).await.unwrap();
    }
    let report = sessions.compact("loop", Compact::if_due()).await;
    assert_eq!(report.applied().unwrap().messages_removed, 20, "{report}");
    let kept = sessions.history("loop").await.unwrap();
    assert_eq!((kept.len(), kept.carried()), (5, 1));
    assert_eq!(kept.get(0).unwrap().text(), "Audit the repository.");
}

#[tokio::test]
async fn a_long_message_is_excerpted_and_the_summary_says_so() {
    use session_compaction::Message;
    let stub = Stub::says(SUMMARY);
    let requests = stub.requests();
    let config = SummarizationConfig { context_window: 4_000, ..whole_batches() };
    let sessions = manager_with(stub, config);
    let long = format!("BEGIN {} END", "lorem ".repeat(3_000));
    sessions.add_message("chat", Message::user(long)).await.unwrap();
    sessions.add_messages("chat", messages(1..12)).await.unwrap();
    let report = sessions.compact("chat", Compact::if_due()).await;
    assert_eq!(report.applied().unwrap().excerpted, 1, "{report}");
    let seen = requests.lock().unwrap()[0].messages[0].text();
    assert!(seen.starts_with("BEGIN") && seen.ends_with("END"));
    assert!(seen.contains("characters left out") && seen.len() < 10_000);
    assert_eq!(sessions.history("chat").await.unwrap().summary().unwrap().excerpted, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn appends_do_not_wait_for_a_summarizer_that_blocks_its_thread() {
    let (block, blocked) = std::sync::mpsc::channel::<()>();
    let blocked = std::sync::Mutex::new(blocked);
    let (entered, mut inside) = tokio::sync::mpsc::unbounded_channel();
    let stub = Stub::new(move |_| {
        entered.send(()).unwrap();
        let _ = blocked.lock().unwrap().recv();
        Ok(SUMMARY.into())
    });
    let config = whole_batches().with_timeout(Duration::from_millis(50));
    let sessions = manager_with(stub, config);
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    let Outcome::Started(handle) = sessions.maybe_summarize("chat").await else { panic!() };
    inside.recv().await.unwrap();
    sessions.add_message("chat", message(24)).await.unwrap();
    let report = handle.await;
    assert!(matches!(&report, Report::Failed(error) if error.is_timeout()), "{report}");
    // Its late answer is refused.
    drop(block);
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(0..25)));
    assert_eq!(sessions.summary("chat").await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_then_cuts_off_and_still_takes_appends() {
    let (stub, gate) = Stub::says(SUMMARY).held();
    let sessions = manager_with(stub, whole_batches());
    for key in ["done", "hung"] {
        sessions.add_messages(key, messages(0..24)).await.unwrap();
        assert!(matches!(sessions.maybe_summarize(key).await, Outcome::Started(_)));
        gate.entered().await;
    }
    gate.release();
    let shutdown = sessions.shutdown(Duration::from_secs(5)).await;
    assert_eq!((shutdown.finished.len(), shutdown.cut_off.len()), (1, 1));
    let cut_off = &shutdown.cut_off[0];
    assert_eq!(sessions.history(cut_off).await.unwrap().len(), 24);
    sessions.add_message(cut_off, message(24)).await.unwrap();
    assert!(matches!(sessions.maybe_summarize(cut_off).await, Outcome::ShuttingDown));
}

#[tokio::test]
async fn a_compaction_to_a_target_fits_it_or_comes_as_near_as_it_may() {
    use session_compaction::{ExtractiveSummarizer, Message, Request};
    let sessions = manager(ExtractiveSummarizer::default());
    sessions.add_messages("chat", messages(0..60)).await.unwrap();
    let report = sessions.compact("chat", Compact::now().to_tokens(300)).await;
    let done = report.applied().unwrap();
    assert!(done.tokens_before > 900 && done.tokens_after <= 300, "{report}");
    let context = sessions.context("chat", &Request::new()).await.unwrap();
    assert!(context.tokens() <= 300 && context.to_openai_chat().messages().contains("Question 58"));

    let again = sessions.compact("chat", Compact::now().to_tokens(300)).await;
    assert!(matches!(again, Report::Skipped(Skip::AlreadyFits { target: 300, .. })), "{again}");

    // A question that is above the target by itself stays, word for word.
    let long = format!("Why? {}", "word ".repeat(500));
    sessions.add_messages("chat", messages(60..80)).await.unwrap();
    sessions.add_message("chat", Message::user(&*long)).await.unwrap();
    let report = sessions.compact("chat", Compact::now().to_tokens(300)).await;
    assert_eq!(report.applied().unwrap().messages_kept, 1, "{report}");
    assert_eq!(texts(&sessions, "chat").await, [long]);
}
