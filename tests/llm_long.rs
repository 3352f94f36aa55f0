//! Input that is longer than the window of the model that summarizes it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::{collections::HashMap, sync::Arc};

use common::{
    model::{Model, fence, taken, tokens, whole},
    stub::{manager_with, message},
};
use session_compaction::{
    ByteEstimate, ChatRequest, ChatResponse, Compact, Message, ProviderError, ProviderErrorKind,
    Report, SessionManager, SummarizationConfig, Summarizer, TokenCounter, Tokens, estimate_tokens,
};

const OLD: &str = "Key fact CHARLIE-7: invoices are in EUR.";

/// A model that repeats the identifiers it is shown, as a careful one would.
fn careful() -> Model {
    Model::plays(|request| Some(Ok(ChatResponse::new(told(request)))))
}

fn told(request: &ChatRequest) -> String {
    let kept = request.user.split_whitespace().filter(|word| word.starts_with("CHARLIE"));
    format!("Parts were checked and do well. {}", kept.collect::<Vec<_>>().join(" "))
}

/// Messages of so many tokens in all.
fn transcript(least: u64) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut sum = Tokens::ZERO;
    while sum < Tokens::from_tokens(least) {
        let next = message(messages.len());
        sum += ByteEstimate::default().message(&next);
        messages.push(next);
    }
    messages
}

async fn filled(model: &Model, window: u64, messages: Vec<Message>) -> SessionManager {
    let config = SummarizationConfig { context_window: 200_000, ..whole() };
    let sessions = manager_with(model.summarizer().with_window(window), config);
    sessions.set_summary("chat", OLD).await.unwrap();
    sessions.add_messages("chat", messages).await.unwrap();
    sessions
}

fn assert_shown_once<'a>(asked: impl Iterator<Item = &'a ChatRequest>, messages: &[Message]) {
    let mut shown: HashMap<&str, usize> = HashMap::new();
    for line in asked.flat_map(|request| request.user.lines()) {
        let text = line.split_once(": ").map_or(line, |(_, text)| text);
        *shown.entry(text).or_default() += 1;
    }
    for message in messages {
        assert_eq!(shown.get(&*message.text()), Some(&1), "{}", message.text());
    }
}

#[tokio::test]
async fn ten_windows_are_compacted_within_the_bound_of_calls() {
    for window in [3_000, 8_192, 16_384] {
        let model = careful();
        let messages = transcript(10 * window);
        let sessions = filled(&model, window, messages.clone()).await;
        let report = sessions.compact("chat", Compact::if_due()).await;
        let done = report.applied().unwrap();
        assert_eq!(done.excerpted, 0);

        let asked = model.asked();
        for request in &asked {
            assert!(taken(request) <= window, "{} of {window}", taken(request));
            fence(request);
        }
        // The room for messages, where the answer takes the share of the facts less.
        let answer = (1_024 - 1_024 * 15 / 100).min(window / 2);
        let most = model.summarizer().with_window(window).max_input_tokens().unwrap();
        let largest = messages.iter().map(|m| estimate_tokens([m], &ByteEstimate::default())).max();
        let chunk = most - answer - 2 * (largest.unwrap() + 1);
        let input = estimate_tokens(&messages, &ByteEstimate::default());
        let calls = asked.len() as u64;
        assert!(calls <= input.div_ceil(chunk) + 1, "{calls} calls for {input} in {chunk}");

        // Each replaced message was shown once, in order, and the old summary to the merge.
        let removed = usize::try_from(done.messages_removed).unwrap();
        assert_shown_once(asked.iter(), &messages[..removed]);
        assert!(asked.last().unwrap().user.contains(OLD));
        assert_eq!(asked.iter().filter(|request| request.user.contains(OLD)).count(), 1);
        let summary = sessions.summary("chat").await.unwrap().unwrap();
        assert!(summary.contains("CHARLIE-7"), "{summary}");
    }
}

#[tokio::test]
async fn parts_that_exceed_the_window_are_merged_in_levels() {
    // Wordy summaries in a small window: one merge cannot hold them.
    let model = Model::plays(|request| {
        let words = "Part of the machine does well. ".repeat(60);
        Some(Ok(ChatResponse::new(format!("{} {words}", told(request)))))
    });
    let window = 1_800;
    let sessions = filled(&model, window, transcript(30_000)).await;
    let report = sessions.compact("chat", Compact::if_due()).await;
    assert!(report.applied().is_some(), "{report}");
    let asked = model.asked();
    let merges: Vec<_> =
        asked.iter().filter(|request| request.user.contains("summaries of consecutive")).collect();
    assert!(merges.len() > 2, "{} merges", merges.len());
    assert!(asked.iter().all(|request| taken(request) <= window));
    let last = merges.last().unwrap();
    assert!(last.user.contains(OLD) && merges.iter().filter(|m| m.user.contains(OLD)).count() == 1);
    assert!(asked.len() < 200, "{} calls", asked.len());
}

#[tokio::test]
async fn one_huge_message_is_excerpted_and_said_to_be() {
    let model = careful();
    let window = 8_192;
    let mut messages: Vec<_> = (0..20)
        .flat_map(|n| [Message::user("lorem ".repeat(600)), Message::assistant(format!("ok {n}"))])
        .collect();
    messages.insert(4, Message::user(format!("BEGIN {} END", "ipsum ".repeat(24_000))));
    messages.insert(5, Message::assistant("ok"));
    let sessions = filled(&model, window, messages).await;
    let report = sessions.compact("chat", Compact::if_due()).await;
    let done = report.applied().unwrap();
    assert_eq!(done.excerpted, 1);
    assert!(done.tokens_after < done.tokens_before);
    let asked = model.asked();
    assert!(asked.iter().all(|request| taken(request) <= window));
    assert!(asked.len() <= 20, "{} calls", asked.len());
    assert!(asked.iter().any(|request| {
        request.user.contains("BEGIN ipsum")
            && request.user.contains("characters left out")
            && request.user.contains("ipsum  END\n")
    }));
}

#[tokio::test]
async fn a_round_above_the_window_is_excerpted_whole() {
    let model = careful();
    let window = 3_000;
    let mut round = Message::assistant("");
    for n in 0..12 {
        round = round.with_tool_call(format!("c{n}"), "read_file", format!(r#"{{"n":{n}}}"#));
    }
    let mut messages = vec![Message::user("Read all files."), round];
    let text = |n| format!("file {n}: {}", "unused import, nothing else. ".repeat(60));
    messages.extend((0..12).map(|n| Message::tool_result(format!("c{n}"), text(n))));
    messages.extend((0..20).map(message));
    let sessions = filled(&model, window, messages).await;
    let report = sessions.compact("chat", Compact::if_due()).await;
    assert!(report.applied().is_some(), "{report}");
    let asked = model.asked();
    assert!(asked.iter().all(|request| taken(request) <= window));
    let shown: String = asked.iter().map(|request| request.user.as_str()).collect();
    for n in 0..12 {
        assert!(shown.contains(&format!("result of read_file: file {n}:")), "{n}");
    }
}

#[tokio::test]
async fn when_the_provider_says_too_long_it_gets_half() {
    // A model whose window is smaller than it was said to be.
    let model = Model::plays(|request| {
        let error = ProviderError::new(ProviderErrorKind::TooLong, "context length exceeded");
        let fits = tokens(&request.user) <= Tokens::from_tokens(1_500);
        Some(if fits { Ok(ChatResponse::new(told(request))) } else { Err(error) })
    });
    let messages = transcript(8_000);
    let sessions = filled(&model, 128_000, messages.clone()).await;
    let report = sessions.compact("chat", Compact::if_due()).await;
    assert!(report.applied().is_some(), "{report}");
    let asked = model.asked();
    let fit = |request: &&ChatRequest| tokens(&request.user) <= Tokens::from_tokens(1_500);
    let removed = usize::try_from(report.applied().unwrap().messages_removed).unwrap();
    assert_shown_once(asked.iter().filter(fit), &messages[..removed]);
    assert!(asked.last().unwrap().user.contains(OLD));
    assert!(asked.len() <= 20, "{} calls", asked.len());
}

#[tokio::test]
async fn a_model_that_finds_everything_too_long_is_given_up() {
    let model = Model::fails(ProviderError::new(ProviderErrorKind::TooLong, "too long"));
    let sessions = filled(&model, 128_000, transcript(8_000)).await;
    let report = sessions.compact("chat", Compact::if_due()).await;
    assert!(matches!(&report, Report::Failed(error) if error.is_too_long()), "{report}");
    assert!(model.calls() <= 20, "{} calls", model.calls());
    assert_eq!(sessions.summary("chat").await.unwrap().as_deref(), Some(OLD));
}

#[tokio::test]
async fn an_old_summary_above_the_window_is_shortened_not_left_out() {
    let model = careful();
    let window = 3_000;
    let sessions = filled(&model, window, transcript(2_000)).await;
    let long = format!("CHARLIE-1 is first. {} CHARLIE-2 is last.", "lorem ipsum ".repeat(4_000));
    sessions.set_summary("chat", long).await.unwrap();
    let report = sessions.compact("chat", Compact::if_due()).await;
    assert!(report.applied().is_some(), "{report}");
    assert!(model.asked().iter().all(|request| taken(request) <= window));
    let summary = sessions.summary("chat").await.unwrap().unwrap();
    assert!(summary.contains("CHARLIE-1") && summary.contains("CHARLIE-2"), "{summary}");
}

#[tokio::test]
async fn every_window_holds_its_requests_by_another_counter() {
    use session_compaction::CharsPerToken;
    for ratio in [1.0, 2.5, 6.0] {
        let counter = Arc::new(CharsPerToken::new(ratio).unwrap());
        let model = careful();
        let window = 6_000;
        let sessions = SessionManager::builder()
            .summarizer(model.summarizer().with_window(window))
            .config(SummarizationConfig { context_window: 200_000, ..whole() })
            .token_counter(Arc::clone(&counter))
            .build()
            .unwrap();
        sessions.add_messages("chat", transcript(20_000)).await.unwrap();
        let report = sessions.compact("chat", Compact::if_due()).await;
        assert!(report.applied().is_some(), "{ratio}: {report}");
        for request in model.asked() {
            let taken = counter.text(&request.system) + counter.text(&request.user);
            assert!(taken.count() + request.max_tokens <= window, "{ratio}");
        }
    }
}
