//! Models that answer as they are told to.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;

use super::lock;
use crate::provider::{ChatRequest, ChatResponse, LlmProvider, ProviderError, ProviderErrorKind};

/// A provider whose model answers as it is told to, and that keeps what it was
/// asked. Clones are the same one.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Compact, LlmSummarizer, Message, SessionManager, testing::StubModel};
///
/// let model = StubModel::replies(["The orders were shipped."]);
/// let summarizer = LlmSummarizer::new(model.clone(), "any");
/// let sessions = SessionManager::builder().summarizer(summarizer).build()?;
/// for n in 0..12 {
///     sessions.add_message("chat", Message::user(format!("Order {n} was shipped?"))).await?;
/// }
/// assert!(sessions.compact("chat", Compact::now()).await.applied().is_some());
/// assert!(model.requests()[0].user.contains("Order 7 was shipped?"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct StubModel {
    replies: Arc<Mutex<VecDeque<Reply>>>,
    after: Arc<Reply>,
    requests: Arc<Mutex<Vec<ChatRequest>>>,
}

type Reply = Result<ChatResponse, ProviderError>;

impl StubModel {
    /// Creates one with an answer a call, in turn; after the last one it
    /// refuses.
    pub fn replies<S: Into<String>>(replies: impl IntoIterator<Item = S>) -> Self {
        let replies = replies.into_iter().map(|text| Ok(ChatResponse::new(text)));
        let ended = ProviderError::new(ProviderErrorKind::Rejected, "the stub has no more replies");
        Self::new(replies.collect(), Err(ended))
    }

    /// Creates one that fails each time.
    #[must_use]
    pub fn failing(error: ProviderError) -> Self {
        Self::new(VecDeque::new(), Err(error))
    }

    fn new(replies: VecDeque<Reply>, after: Reply) -> Self {
        let (replies, after) = (Arc::new(Mutex::new(replies)), Arc::new(after));
        Self { replies, after, requests: Arc::default() }
    }

    /// Returns what it was asked so far.
    #[must_use]
    pub fn requests(&self) -> Vec<ChatRequest> {
        lock(&self.requests).clone()
    }
}

#[async_trait]
impl LlmProvider for StubModel {
    async fn chat(&self, request: ChatRequest) -> Reply {
        lock(&self.requests).push(request);
        let reply = lock(&self.replies).pop_front();
        reply.unwrap_or_else(|| (*self.after).clone())
    }

    fn name(&self) -> &'static str {
        "stub"
    }
}

impl fmt::Debug for StubModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StubModel")
    }
}
