//! A real model on this machine, where one is named.
#![cfg(feature = "providers")]
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "what a model said is of interest, and helpers of tests fail by panicking"
)]

mod common;

use std::{
    env,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use common::model::{taken, whole};
use session_compaction::{
    ChatRequest, ChatResponse, Compact, ExtractiveSummarizer, Fallback, LlmProvider, LlmSummarizer,
    OpenAiCompatible, ProviderError, SessionManager, SummarizationConfig, formats,
};

const PATIENCE: Duration = Duration::from_mins(15);

/// Keeps what is asked.
#[derive(Debug)]
struct Recording(OpenAiCompatible, Arc<Mutex<Vec<ChatRequest>>>);

#[async_trait]
impl LlmProvider for Recording {
    async fn chat(&self, request: ChatRequest) -> Result<ChatResponse, ProviderError> {
        self.1.lock().unwrap().push(request.clone());
        let answer = self.0.chat(request).await;
        println!("{answer:#?}");
        answer
    }
}

/// Whatever a small model says, the session gets a summary that is one.
#[tokio::test]
async fn a_real_model_compacts_a_session_within_its_window() {
    let Ok(url) = env::var("LOCAL_LLM_URL") else {
        println!(
            "SKIPPED: a compaction by a real model. Set LOCAL_LLM_URL to the base URL of an OpenAI-compatible server."
        );
        return;
    };
    let window = env::var("LOCAL_LLM_WINDOW").map_or(3_500, |tokens| tokens.parse().unwrap());
    let asked = Arc::<Mutex<Vec<ChatRequest>>>::default();
    let model = OpenAiCompatible::new(&url).unwrap().with_timeouts(PATIENCE, PATIENCE);
    let model = LlmSummarizer::new(Recording(model, Arc::clone(&asked)), "local");
    let summarizer = Fallback::new(model.with_window(window), ExtractiveSummarizer::default());
    let config = SummarizationConfig {
        summary_max_tokens: 200,
        timeout: PATIENCE,
        // So that a few requests do.
        max_single_msg_token_ratio: 0.01,
        context_window: 64_000,
        ..whole()
    };
    let sessions = SessionManager::builder().config(config).summarizer(summarizer).build().unwrap();
    let session = include_bytes!("../examples/data/coding-session.jsonl");
    let messages = formats::import(session).unwrap().messages;
    sessions.add_messages("chat", messages.into_iter().take(23)).await.unwrap();
    let before: Vec<_> = sessions.history("chat").await.unwrap().iter().cloned().collect();

    let report = sessions.compact("chat", Compact::now()).await;
    let done = report.applied().unwrap_or_else(|| panic!("{report}"));
    let history = sessions.history("chat").await.unwrap();
    let summary = history.summary().unwrap();
    println!("{report}\nby {}:\n{}", summary.by, summary.text);
    assert!(done.tokens_after < done.tokens_before);
    assert!(!summary.text.trim().is_empty() && !summary.text.starts_with("<think"));
    let kept: Vec<_> = history.iter().cloned().collect();
    assert!(kept.iter().all(|message| before.contains(message)));
    let asked = asked.lock().unwrap();
    assert!(!asked.is_empty());
    for request in asked.iter() {
        assert!(taken(request) <= window, "{} tokens", taken(request));
    }
}
