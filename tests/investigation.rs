//! The example of an investigation records what it compacts.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

#[allow(
    dead_code,
    clippy::allow_attributes,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "an example is a program of its own"
)]
#[path = "../examples/investigation.rs"]
mod investigation;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use serde_json::{Value, json};
use session_compaction::{ExtractiveSummarizer, SummarizeError, SummaryTemplate, summarize_fn};

/// The characters that each event removed, and what the totals say.
fn read(lines: &[String]) -> (Vec<u64>, [u64; 2]) {
    let events = lines.iter().filter(|line| line.starts_with('{')).map(|line| {
        let event: Value = serde_json::from_str(line).unwrap();
        let (messages, chars) = (&event["messages_removed"], event["chars_removed"].as_u64());
        assert!(messages.as_u64().unwrap() > 0, "{line}");
        let whole = json!({
            "summarization": true, "messages_removed": messages, "chars_removed": chars
        });
        assert_eq!(event, whole);
        chars.unwrap()
    });
    let total = |name: &str| {
        let line = lines.iter().find_map(|line| line.strip_prefix(name)).unwrap();
        line.parse().unwrap()
    };
    let totals = [total("total_summarizations: "), total("total_chars_compacted: ")];
    (events.collect(), totals)
}

#[tokio::test]
async fn each_compaction_is_recorded_and_the_totals_are_their_sums() {
    let lines = investigation::play(Arc::new(ExtractiveSummarizer::default())).await.unwrap();
    let (events, totals) = read(&lines);
    assert!(events.len() >= 3, "{lines:?}");
    assert_eq!(totals, [events.len() as u64, events.iter().sum()]);
    // Above 60,000 characters it was due, and at most 20,000 stayed of them.
    assert!(events[0] > 40_000, "{events:?}");
    assert!(!lines.last().unwrap().trim().is_empty(), "a summary is left");
}

#[tokio::test]
async fn the_summarizer_is_asked_for_an_investigation() {
    let asked = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asked);
    let summarizer = summarize_fn(move |request| {
        assert_eq!(request.options.template, Some(SummaryTemplate::Investigation));
        counted.fetch_add(1, Ordering::SeqCst);
        async { Ok::<_, SummarizeError>("**Investigating:** the build.") }
    });
    let lines = investigation::play(Arc::new(summarizer)).await.unwrap();
    let (events, totals) = read(&lines);
    assert_eq!(totals[0], events.len() as u64);
    assert!(asked.load(Ordering::SeqCst) >= totals[0] && totals[0] > 0);
    assert_eq!(lines.last().unwrap(), "\n**Investigating:** the build.");
}
