//! Chat Completions, as `OpenAI` and many others speak it.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use async_trait::async_trait;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use super::{
    ChatRequest, ChatResponse, FinishReason, LlmProvider, ProviderError,
    http::{ApiError, Client, Failure, Names, answer},
};
use crate::usage::TokenUsage;

/// A model behind Chat Completions: `OpenAI`, `OpenRouter`, vLLM, llama.cpp,
/// Ollama and others.
///
/// One call is one request, but for endpoints that refuse a field of it: ones
/// that want `max_completion_tokens` for `max_tokens`, or know no `temperature`
/// or `prompt_cache_key`. The first such refusal is answered by a request in the
/// form that was asked for, and the form is remembered.
///
/// Redirects are not followed, no proxy is used, and of an answer at most 4 MiB
/// are read. Link-local and metadata addresses are refused in every notation,
/// and after DNS too. Neither errors nor `Debug` show the key, and no text of
/// an answer reaches an error.
///
/// # Default
///
/// - whole call: 120 s
/// - pause within an answer: 60 s
/// - private addresses and this machine: allowed
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use session_compaction::OpenAiCompatible;
///
/// let model = OpenAiCompatible::new("http://localhost:11434/v1")?
///     .with_timeouts(Duration::from_secs(60), Duration::from_secs(20));
/// assert!(OpenAiCompatible::new("http://0xA9FEA9FE/latest").is_err());
/// # Ok::<(), session_compaction::ProviderError>(())
/// ```
#[derive(Debug)]
pub struct OpenAiCompatible {
    client: Client,
    form: Form,
}

const NAMES: Names = Names {
    key: "OPENAI_API_KEY",
    url: "OPENAI_BASE_URL",
    header: "authorization",
    prefix: "Bearer ",
};

impl OpenAiCompatible {
    /// Reads `OPENAI_API_KEY` and `OPENAI_BASE_URL`
    /// (`https://api.openai.com/v1` where it is not set).
    ///
    /// # Errors
    ///
    /// Where neither is set, or the address cannot be used.
    pub fn from_env() -> Result<Self, ProviderError> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// Talks to the server at a base URL, such as `http://localhost:8080/v1`,
    /// without a key.
    ///
    /// # Errors
    ///
    /// Where the address cannot be used.
    pub fn new(base_url: &str) -> Result<Self, ProviderError> {
        Ok(Self { client: Client::new(base_url, &NAMES)?, form: Form::default() })
    }

    pub(super) fn from_lookup(env: impl Fn(&str) -> Option<String>) -> Result<Self, ProviderError> {
        let client = Client::from_env(&NAMES, "https://api.openai.com/v1", env)?;
        Ok(Self { client, form: Form::default() })
    }

    /// Sets the key.
    #[must_use]
    pub fn with_key(mut self, key: &str) -> Self {
        self.client = self.client.with_key(key);
        self
    }

    /// Sets how long a whole call may take, and how long an answer that has
    /// begun may pause.
    #[must_use]
    pub fn with_timeouts(mut self, total: Duration, idle: Duration) -> Self {
        self.client = self.client.with_timeouts(total, idle);
        self
    }

    /// Refuses addresses that are not of the public internet, for hosts that
    /// let others choose the base URL.
    ///
    /// # Errors
    ///
    /// Where the base URL is such an address. A name is checked when it is
    /// looked up.
    pub fn public_only(mut self) -> Result<Self, ProviderError> {
        self.client = self.client.public_only()?;
        Ok(self)
    }

    async fn converse(&self, request: &ChatRequest) -> Result<ChatResponse, ProviderError> {
        loop {
            let sent = self.form.now();
            let body = write(request, sent);
            match self.client.post("chat/completions", HeaderMap::new(), &body).await {
                Ok(value) => return read(&value),
                Err(Failure::Refused(said)) if self.form.learn(&said, sent) => {}
                Err(failure) => return Err(self.client.error(failure)),
            }
        }
    }
}

#[async_trait]
impl LlmProvider for OpenAiCompatible {
    async fn chat(&self, request: ChatRequest) -> Result<ChatResponse, ProviderError> {
        self.client.within(self.converse(&request)).await
    }

    fn name(&self) -> &'static str {
        "openai-compatible"
    }
}

/// What the endpoint has been found not to take. Each is learned once at most,
/// so that a call ends after four requests.
#[derive(Debug, Default)]
struct Form {
    renamed_max_tokens: AtomicBool,
    no_temperature: AtomicBool,
    no_cache_key: AtomicBool,
}

/// What a request was sent without.
#[derive(Clone, Copy)]
struct Sent {
    renamed_max_tokens: bool,
    no_temperature: bool,
    no_cache_key: bool,
}

impl Form {
    fn now(&self) -> Sent {
        Sent {
            renamed_max_tokens: self.renamed_max_tokens.load(Relaxed),
            no_temperature: self.no_temperature.load(Relaxed),
            no_cache_key: self.no_cache_key.load(Relaxed),
        }
    }

    /// Returns true when a refusal was about the form, and another one is worth
    /// a try.
    fn learn(&self, said: &ApiError, sent: Sent) -> bool {
        let flag = if !sent.renamed_max_tokens
            && said.mentions("max_completion_tokens")
            && said.refuses("max_tokens")
        {
            &self.renamed_max_tokens
        } else if !sent.no_temperature && said.refuses("temperature") {
            &self.no_temperature
        } else if !sent.no_cache_key && said.refuses("prompt_cache_key") {
            &self.no_cache_key
        } else {
            return false;
        };
        flag.store(true, Relaxed);
        true
    }
}

fn write(request: &ChatRequest, form: Sent) -> Value {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({ "role": "system", "content": request.system }));
    }
    messages.push(json!({ "role": "user", "content": request.user }));
    let limit = if form.renamed_max_tokens { "max_completion_tokens" } else { "max_tokens" };
    let mut body = serde_json::Map::new();
    body.insert("model".into(), json!(request.model));
    body.insert("messages".into(), messages.into());
    body.insert(limit.into(), json!(request.max_tokens));
    if let Some(temperature) = request.temperature.filter(|_| !form.no_temperature) {
        body.insert("temperature".into(), json!(temperature));
    }
    if let Some(key) = request.cache_key.as_ref().filter(|_| !form.no_cache_key) {
        body.insert("prompt_cache_key".into(), json!(key));
    }
    body.into()
}

fn read(value: &Value) -> Result<ChatResponse, ProviderError> {
    let choice = value.pointer("/choices/0").ok_or_else(|| answer::missing("choices"))?;
    let message = choice.get("message").filter(|message| message.is_object());
    let message = message.ok_or_else(|| answer::missing("message"))?;
    let text = |name| message.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let content = message.get("content").unwrap_or(&Value::Null);
    Ok(ChatResponse {
        text: match content {
            Value::Array(parts) => answer::joined(parts, "text", "text").unwrap_or_default(),
            _ => content.as_str().unwrap_or_default().to_owned(),
        },
        finish_reason: finish_reason(choice.get("finish_reason").and_then(Value::as_str)),
        refusal: text("refusal").map(str::to_owned).or_else(|| {
            content.as_array().and_then(|parts| answer::joined(parts, "refusal", "refusal"))
        }),
        reasoning: text("reasoning_content").or_else(|| text("reasoning")).map(str::to_owned),
        tool_calls: message.get("tool_calls").and_then(Value::as_array).map_or(0, Vec::len)
            + usize::from(message.get("function_call").is_some_and(Value::is_object)),
        usage: value.get("usage").and_then(usage),
        model: value.get("model").and_then(Value::as_str).map(answer::short),
    })
}

/// A reason that is not given counts as an ordinary end: some servers give none.
fn finish_reason(name: Option<&str>) -> FinishReason {
    match name {
        None | Some("" | "stop" | "eos" | "end_turn") => FinishReason::Stop,
        Some("length" | "max_tokens") => FinishReason::Length,
        Some("content_filter") => FinishReason::ContentFilter,
        Some("tool_calls" | "function_call") => FinishReason::ToolCalls,
        Some(other) => FinishReason::Other(answer::short(other)),
    }
}

fn usage(usage: &Value) -> Option<TokenUsage> {
    let input = answer::count(usage.get("prompt_tokens")?)?;
    let output = answer::count(usage.get("completion_tokens")?)?;
    let cached = usage.pointer("/prompt_tokens_details/cached_tokens").and_then(answer::count);
    Some(TokenUsage::new(input, output).with_cached(cached.unwrap_or(0).min(input)))
}
