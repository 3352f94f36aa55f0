//! Models behind an API: what is asked of them, and what they answer.

#[cfg(feature = "providers")]
mod anthropic;
mod error;
#[cfg(feature = "providers")]
mod http;
#[cfg(feature = "providers")]
mod openai_compatible;
mod overflow;
#[cfg(feature = "providers")]
mod retry;

use std::{fmt, sync::Arc};

use async_trait::async_trait;

#[cfg(feature = "providers")]
pub use self::{anthropic::Anthropic, openai_compatible::OpenAiCompatible, retry::Retrying};
pub use self::{
    error::{ProviderError, ProviderErrorKind},
    overflow::Overflow,
};
use crate::usage::TokenUsage;

/// Talks to a model.
///
/// # Contract
///
/// - One call is one request; trying again is the affair of the caller, or of a
///   decorator.
/// - Dropping the future ends the request.
/// - Neither an error nor a log line holds a key or text of the conversation.
///
/// # Example
///
/// ```
/// use session_compaction::{ChatRequest, ChatResponse, LlmProvider, ProviderError};
///
/// #[derive(Debug)]
/// struct Echo;
///
/// #[async_trait::async_trait]
/// impl LlmProvider for Echo {
///     async fn chat(&self, request: ChatRequest) -> Result<ChatResponse, ProviderError> {
///         Ok(ChatResponse::new(request.user))
///     }
/// }
/// ```
#[async_trait]
pub trait LlmProvider: fmt::Debug + Send + Sync + 'static {
    /// Sends a request and waits for the whole answer.
    async fn chat(&self, request: ChatRequest) -> Result<ChatResponse, ProviderError>;

    /// Returns the name that is stored with what it made.
    #[expect(clippy::unnecessary_literal_bound, reason = "implementors may hold their name")]
    fn name(&self) -> &str {
        "provider"
    }
}

const _: fn(&dyn LlmProvider) = |_| {};

#[async_trait]
impl<P: LlmProvider + ?Sized> LlmProvider for Arc<P> {
    async fn chat(&self, request: ChatRequest) -> Result<ChatResponse, ProviderError> {
        (**self).chat(request).await
    }

    fn name(&self) -> &str {
        (**self).name()
    }
}

/// What a model is asked: instructions and one user message. There are no
/// tools and no earlier turns, so no provider can find fault with their order.
///
/// # Example
///
/// ```
/// use session_compaction::ChatRequest;
///
/// let mut request = ChatRequest::new("gpt-5-mini", "Summarize.", "user: hello", 200);
/// request.temperature = Some(0.3);
/// assert_eq!(request.max_tokens, 200);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChatRequest {
    /// The model's name.
    pub model: String,
    /// The instructions.
    pub system: String,
    /// The user message.
    pub user: String,
    /// The most tokens that the answer may have.
    pub max_tokens: u64,
    /// The sampling temperature; `None` leaves it to the provider.
    pub temperature: Option<f64>,
    /// Names requests that begin alike, for a provider's prompt cache.
    pub cache_key: Option<String>,
}

impl ChatRequest {
    /// Creates a request.
    #[must_use]
    pub fn new(
        model: impl Into<String>,
        system: impl Into<String>,
        user: impl Into<String>,
        max_tokens: u64,
    ) -> Self {
        Self {
            model: model.into(),
            system: system.into(),
            user: user.into(),
            max_tokens,
            temperature: None,
            cache_key: None,
        }
    }
}

/// What a model answered.
///
/// # Example
///
/// ```
/// use session_compaction::{ChatResponse, FinishReason};
///
/// let response = ChatResponse::new("They said hello.");
/// assert_eq!((response.finish_reason, response.usage), (FinishReason::Stop, None));
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ChatResponse {
    /// The text; empty where there was none.
    pub text: String,
    /// Why the answer ended.
    pub finish_reason: FinishReason,
    /// The provider's own word that the model refused.
    pub refusal: Option<String>,
    /// What the model thought, where it is told apart. Never part of the text.
    pub reasoning: Option<String>,
    /// How many tools the model wanted to call.
    pub tool_calls: usize,
    /// What it cost, where the provider said so.
    pub usage: Option<TokenUsage>,
    /// The model that answered, where the provider said so.
    pub model: Option<String>,
}

impl ChatResponse {
    /// Creates an answer that ended by itself.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// Why a model's answer ended.
///
/// # Example
///
/// ```
/// use session_compaction::FinishReason;
///
/// assert_eq!(FinishReason::default(), FinishReason::Stop);
/// ```
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum FinishReason {
    /// A filter cut it off.
    ContentFilter,
    /// It reached the bound of tokens.
    Length,
    /// Another reason, by the provider's name for it.
    Other(String),
    /// It ended by itself.
    #[default]
    Stop,
    /// It wants to call a tool.
    ToolCalls,
}
