//! A model in this process that answers as it is told to.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use session_compaction::{
    ByteEstimate, ChatRequest, ChatResponse, FinishReason, LlmProvider, LlmSummarizer,
    ProviderError, SummarizationConfig, TokenCounter, Tokens,
};

pub(crate) type Reply = Result<ChatResponse, ProviderError>;
type Play = Box<dyn FnMut(&ChatRequest) -> Option<Reply> + Send>;

/// Shared by its clones: one goes into the summarizer, one stays in the test.
#[derive(Clone)]
pub(crate) struct Model {
    play: Arc<Mutex<Play>>,
    asked: Arc<Mutex<Vec<ChatRequest>>>,
}

impl Model {
    /// Answers by a function; `None` never answers.
    pub(crate) fn plays(play: impl FnMut(&ChatRequest) -> Option<Reply> + Send + 'static) -> Self {
        Self { play: Arc::new(Mutex::new(Box::new(play))), asked: Arc::default() }
    }

    /// One reply a call; the last one is repeated.
    pub(crate) fn replies(replies: impl IntoIterator<Item = Reply>) -> Self {
        let mut replies: VecDeque<_> = replies.into_iter().collect();
        Self::plays(
            move |_| {
                if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() }
            },
        )
    }

    pub(crate) fn says(text: &str) -> Self {
        Self::replies([Ok(ChatResponse::new(text))])
    }

    pub(crate) fn fails(error: ProviderError) -> Self {
        Self::replies([Err(error)])
    }

    pub(crate) fn asked(&self) -> Vec<ChatRequest> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn calls(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    pub(crate) fn summarizer(&self) -> LlmSummarizer<Self> {
        LlmSummarizer::new(self.clone(), "test-model").with_window(128_000)
    }
}

#[async_trait]
impl LlmProvider for Model {
    async fn chat(&self, request: ChatRequest) -> Reply {
        self.asked.lock().unwrap().push(request.clone());
        let reply = {
            let mut play = self.play.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            play(&request)
        };
        match reply {
            Some(reply) => reply,
            None => std::future::pending().await,
        }
    }

    fn name(&self) -> &'static str {
        "fake"
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Model")
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it is one of several replies")]
pub(crate) fn ended(text: &str, reason: FinishReason) -> Reply {
    let mut response = ChatResponse::new(text);
    response.finish_reason = reason;
    Ok(response)
}

/// One call a compaction, as far as nothing forbids it.
pub(crate) fn whole() -> SummarizationConfig {
    SummarizationConfig {
        context_window: 128_000,
        multi_part_batch_threshold: 1_000,
        ..SummarizationConfig::default()
    }
}

/// What a request and its answer take of the window.
pub(crate) fn taken(request: &ChatRequest) -> u64 {
    let counter = ByteEstimate::default();
    let texts = counter.text(&request.system) + counter.text(&request.user);
    (texts + counter.message_overhead() + counter.message_overhead()).count() + request.max_tokens
}

/// The tag between which the record stands; panics where it can be closed.
pub(crate) fn fence(request: &ChatRequest) -> String {
    let (tag, rest) = request.user.strip_prefix('<').unwrap().split_once(">\n").unwrap();
    let (_, task) = rest.split_once(&format!("\n</{tag}>\n\n")).unwrap();
    assert!(task.ends_with(" words.") && !task.contains('\n'), "{task}");
    assert_eq!(request.user.matches(tag).count(), 2, "the tag stands in the text: {tag}");
    tag.to_owned()
}

pub(crate) fn tokens(text: &str) -> Tokens {
    ByteEstimate::default().text(text)
}
