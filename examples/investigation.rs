//! A long investigation, compacted as it goes: above 60,000 characters the older part gives way to a summary, the newest
//! 20,000 stay word for word, and the agent waits for it before it goes on.
//!
//!     cargo run --example investigation
//!
//! Without a model the summaries are extracts. With one on this machine (any server that speaks OpenAI's Chat Completions)
//! they have the four headings of an investigation:
//!
//!     LOCAL_LLM_URL=http://127.0.0.1:8080/v1 cargo run --example investigation

#![allow(clippy::pedantic, clippy::restriction, reason = "a script")]

use std::{error::Error, sync::Arc};

use session_compaction::{
    Compact, ExtractiveSummarizer, SessionManager, SessionOptions, SummarizationConfig, Summarizer,
    SummaryTemplate, formats,
};

const KEY: &str = "incident:1";
/// What an agent did in a repository, with the files that it read.
const SESSION: &[u8] = include_bytes!("data/coding-session.jsonl");

#[cfg(feature = "providers")]
fn model() -> Result<Option<Arc<dyn Summarizer>>, Box<dyn Error>> {
    use session_compaction::{LlmSummarizer, OpenAiCompatible, Retrying};
    let Ok(url) = std::env::var("LOCAL_LLM_URL") else { return Ok(None) };
    let patience = std::time::Duration::from_mins(15);
    let model = OpenAiCompatible::new(&url)?.with_timeouts(patience, patience);
    Ok(Some(Arc::new(LlmSummarizer::new(Retrying::new(model), "local"))))
}

#[cfg(not(feature = "providers"))]
fn model() -> Result<Option<Arc<dyn Summarizer>>, Box<dyn Error>> {
    Ok(None)
}

/// What is recorded of the use of models, beside the investigation's own calls.
#[derive(Default)]
struct Totals {
    total_summarizations: u64,
    total_chars_compacted: u64,
}

/// Plays the investigation, and returns what was recorded.
pub(crate) async fn play(summarizer: Arc<dyn Summarizer>) -> Result<Vec<String>, Box<dyn Error>> {
    let config =
        SummarizationConfig::default().with_threshold_chars(60_000).with_keep_chars(20_000);
    let sessions = SessionManager::builder().config(config).summarizer(summarizer).build()?;
    let options = SessionOptions::new().template(SummaryTemplate::Investigation);
    sessions.configure(KEY, options).await?;

    let (mut lines, mut totals) = (Vec::new(), Totals::default());
    for message in formats::import(SESSION)?.messages {
        sessions.add_message(KEY, message).await?; // a step of the agent
        let report = sessions.compact(KEY, Compact::if_due()).await; // waited for; most are not due
        let Some(done) = report.applied() else { continue };
        totals.total_summarizations += 1;
        totals.total_chars_compacted += done.chars_removed;
        lines.push(format!(
            r#"{{"summarization": true, "messages_removed": {}, "chars_removed": {}}}"#,
            done.messages_removed, done.chars_removed
        ));
    }
    lines.push(format!("total_summarizations: {}", totals.total_summarizations));
    lines.push(format!("total_chars_compacted: {}", totals.total_chars_compacted));
    lines.push(format!("\n{}", sessions.summary(KEY).await?.unwrap_or_default()));
    Ok(lines)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let summarizer = match model()? {
        Some(model) => model,
        None => Arc::new(ExtractiveSummarizer::default()),
    };
    play(summarizer).await?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
