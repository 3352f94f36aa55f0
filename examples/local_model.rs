//! Compacts the beginning of the quickstart's session with a model on this machine: any server that speaks
//! OpenAI's Chat Completions, such as llama.cpp, Ollama or vLLM.
//!
//!     LOCAL_LLM_URL=http://127.0.0.1:8080/v1 cargo run --example local_model
//!
//! `LOCAL_LLM_WINDOW` is the model's window in tokens, 3500 unless set: no request is above it, however long the session.

#![expect(clippy::print_stdout, reason = "it is there to print")]

use std::{env, error::Error, time::Duration};

use session_compaction::{
    Compact, LlmSummarizer, OpenAiCompatible, Retrying, SessionManager, SummarizationConfig,
    formats,
};

const SESSION: &[u8] = include_bytes!("data/coding-session.jsonl");
const KEY: &str = "local model";
/// Two turns, of which the first is summarized.
const MESSAGES: usize = 23;
/// A small model takes a minute or more to read a window full of text.
const PATIENCE: Duration = Duration::from_mins(15);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let Ok(url) = env::var("LOCAL_LLM_URL") else {
        println!("No model is named. Start an OpenAI-compatible server, and then:");
        println!("    LOCAL_LLM_URL=http://127.0.0.1:8080/v1 cargo run --example local_model");
        println!("LOCAL_LLM_WINDOW is its window in tokens, 3500 unless set.");
        return Ok(());
    };
    let window = match env::var("LOCAL_LLM_WINDOW") {
        Ok(tokens) => tokens.parse().map_err(|error| format!("LOCAL_LLM_WINDOW: {error}"))?,
        Err(_) => 3_500,
    };
    let model = OpenAiCompatible::new(&url)?.with_timeouts(PATIENCE, PATIENCE);
    let summarizer = LlmSummarizer::new(Retrying::new(model), "local").with_window(window);
    let config = SummarizationConfig {
        summary_max_tokens: 300,
        // Of a long file that a tool read, its beginning and its end.
        max_single_msg_token_ratio: 0.1,
        timeout: PATIENCE,
        // As few parts as the window allows.
        multi_part_batch_threshold: 1_000,
        ..SummarizationConfig::default()
    };
    let sessions = SessionManager::builder().config(config).summarizer(summarizer).build()?;

    let messages = formats::import(SESSION)?.messages.into_iter().take(MESSAGES);
    sessions.add_messages(KEY, messages).await?;
    println!("{MESSAGES} messages, and a model with a window of {window} tokens.");
    println!("This takes a few minutes.\n");

    let report = sessions.compact(KEY, Compact::now()).await;
    match sessions.summary(KEY).await? {
        Some(summary) => println!("{summary}\n"),
        None => println!("There is no summary, and nothing was changed.\n"),
    }
    println!("{report}");
    if let Some(done) = report.applied() {
        println!(
            "{:.0?}, {}",
            done.latency,
            match done.usage {
                Some(usage) => format!("{} tokens read, {} written", usage.input, usage.output),
                None => "and the server did not say what it took".into(),
            }
        );
    }
    Ok(())
}
