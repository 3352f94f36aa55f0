//! What is fuzzed: each function takes any bytes, and panics where a promise
//! is broken.

#[path = "../../tests/common/histories.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod histories;

use std::{
    fs,
    path::PathBuf,
    process,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use session_compaction::{
    Archive as _, ByteEstimate, Compact, ExtractiveSummarizer, JsonlStore, Message, Provider,
    Request, SessionKey, SessionManager, SessionStore as _, SummarizationConfig, Summarizer as _,
    SummaryRequest, Threshold, formats, validate,
};
use tokio::runtime::{Builder, Runtime};

const PROVIDERS: [Provider; 5] = [
    Provider::Anthropic,
    Provider::Gemini,
    Provider::OpenAiChat,
    Provider::OpenAiResponses,
    Provider::StrictTemplate,
];

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

/// An import gives messages that read as they were written, or an error.
pub fn import(bytes: &[u8]) {
    match formats::import(bytes) {
        Ok(import) => {
            assert!(import.skipped.iter().all(|it| it.count > 0 && it.first > 0));
            for message in &import.messages {
                same(message);
            }
        }
        Err(error) => assert!(error.is_message() && !error.to_string().is_empty()),
    }
}

fn same(message: &Message) {
    let json = formats::openai_chat::write(&formats::Conversation::new([message.clone()]));
    formats::openai_chat::parse(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
}

/// What a parser takes is written, and read once more, as the same.
pub fn parse(bytes: &[u8]) {
    use formats::{Conversation, Reply, anthropic, gemini, openai_chat, openai_responses};

    type Parse = fn(&str) -> session_compaction::Result<Conversation>;
    type ParseReply = fn(&str) -> session_compaction::Result<Reply>;
    type Write = fn(&Conversation) -> String;
    let text = String::from_utf8_lossy(bytes);
    let all: [(Parse, Write, ParseReply); 4] = [
        (anthropic::parse, anthropic::write, anthropic::parse_reply),
        (gemini::parse, gemini::write, gemini::parse_reply),
        (openai_chat::parse, openai_chat::write, openai_chat::parse_reply),
        (openai_responses::parse, openai_responses::write, openai_responses::parse_reply),
    ];
    for (parse, write, parse_reply) in all {
        if let Ok(conversation) = parse(&text) {
            let written = write(&conversation);
            let again = parse(&written).unwrap_or_else(|error| panic!("{error}: {written}"));
            assert_eq!(again, conversation, "{written}");
        }
        let _ = parse_reply(&text);
    }
}

/// A summary of any text is within its bound, and the same each time.
pub fn summarize(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let messages: Vec<Message> = text
        .split('\u{1e}')
        .enumerate()
        .map(|(at, text)| match at % 3 {
            0 => Message::user(text),
            1 => Message::assistant(text).with_tool_call("c", "shell", text),
            _ => Message::tool_result("c", text),
        })
        .collect();
    let summarize = || {
        let key = SessionKey::new("s").unwrap();
        let mut request =
            SummaryRequest::new(key, messages.clone(), Arc::new(ByteEstimate::default()));
        request.max_tokens = 200;
        request.existing_summary = messages.first().map(|first| first.text().into());
        runtime().block_on(ExtractiveSummarizer::default().summarize(request))
    };
    match (summarize(), summarize()) {
        (Ok(one), Ok(other)) => assert_eq!(one.text, other.text),
        (Err(_), Err(_)) => {}
        (one, other) => panic!("{one:?}, then {other:?}"),
    }
}

/// A store opens whatever a file of it holds, and goes on from there.
pub fn store(bytes: &[u8]) {
    static NEXT: AtomicU64 = AtomicU64::new(0);

    struct Folder(PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    let unique = (process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(format!("store-fuzz-{}-{}", unique.0, unique.1));
    let folder = Folder(folder);
    drop(JsonlStore::open(&folder.0).unwrap());
    fs::write(folder.0.join("s.jsonl"), bytes).unwrap();
    let key = SessionKey::new("s").unwrap();
    runtime().block_on(async {
        let store = JsonlStore::open(&folder.0).unwrap();
        let Ok(before) = store.load(&key).await else { return };
        let kept = before.map_or(0, |session| session.window.len() + session.carried.len());
        let _ = store.transcript(&key, 0..u64::MAX).await;
        let sessions = SessionManager::builder().store(store).build().unwrap();
        if sessions.add_message("s", Message::user("newest")).await.is_ok() {
            let history = sessions.history("s").await.unwrap();
            assert!(history.len() > kept, "{} after {kept}", history.len());
            assert_eq!(history.iter().last().unwrap().text(), "newest");
        }
        let _ = sessions.shutdown(Duration::from_secs(5)).await;
    });
}

/// However a history is compacted, what would be sent is valid.
pub fn histories(bytes: &[u8]) {
    let Some((keep, rest)) = bytes.split_first() else { return };
    let (steps, _) = rest.as_chunks::<4>();
    let steps = steps.get(..64).unwrap_or(steps);
    let mut history = histories::History::default();
    runtime().block_on(async {
        let config = SummarizationConfig {
            keep_last_messages: usize::from(keep % 8) + 1,
            message_threshold: Threshold::Off,
            token_percent: Threshold::Off,
            ..SummarizationConfig::default()
        };
        let sessions = SessionManager::builder()
            .config(config)
            .summarizer(ExtractiveSummarizer::default())
            .build()
            .unwrap();
        for steps in steps.chunks(steps.len().div_ceil(3).max(1)) {
            let added = history.messages.len();
            for step in steps {
                history.grow(*step);
            }
            let new = history.messages.get(added..).unwrap_or_default().to_vec();
            sessions.add_messages("s", new).await.unwrap();
            if keep & 128 == 0 {
                let _ = sessions.compact("s", Compact::now()).await;
            } else {
                let _ = sessions.force_compression("s").await;
            }
            if history.messages.is_empty() {
                continue;
            }
            let context = sessions.context("s", &Request::new()).await.unwrap();
            for provider in PROVIDERS {
                assert_eq!(validate(&context, provider), [], "{provider:?} after {steps:?}");
            }
        }
    });
}
