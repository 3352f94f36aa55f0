//! Anthropic's Messages.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::Duration,
};

use async_trait::async_trait;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::{
    ChatRequest, ChatResponse, FinishReason, LlmProvider, ProviderError,
    http::{Client, Failure, Names, answer},
};
use crate::usage::TokenUsage;

/// A model behind Anthropic's Messages API.
///
/// One call is one request, but for a model that knows no `temperature`: the
/// first such refusal is answered by a request without it, and remembered.
/// With a cache key the instructions are marked for the prompt cache.
///
/// What is said of bounds, addresses and keys at [`OpenAiCompatible`] holds
/// here too, and the defaults are the same.
///
/// # Example
///
/// ```
/// use session_compaction::Anthropic;
///
/// let model = Anthropic::new("https://api.anthropic.com")?.with_key("a key");
/// assert!(!format!("{model:?}").contains("a key"));
/// # Ok::<(), session_compaction::ProviderError>(())
/// ```
///
/// [`OpenAiCompatible`]: crate::OpenAiCompatible
#[derive(Debug)]
pub struct Anthropic {
    client: Client,
    no_temperature: AtomicBool,
}

const NAMES: Names =
    Names { key: "ANTHROPIC_API_KEY", url: "ANTHROPIC_BASE_URL", header: "x-api-key", prefix: "" };

impl Anthropic {
    /// Reads `ANTHROPIC_API_KEY` and `ANTHROPIC_BASE_URL`
    /// (`https://api.anthropic.com` where it is not set).
    ///
    /// # Errors
    ///
    /// Where neither is set, or the address cannot be used.
    pub fn from_env() -> Result<Self, ProviderError> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// Talks to the server at a base URL, with or without `/v1` at its end,
    /// without a key.
    ///
    /// # Errors
    ///
    /// Where the address cannot be used.
    pub fn new(base_url: &str) -> Result<Self, ProviderError> {
        let client = Client::new(base_url, &NAMES)?;
        Ok(Self { client, no_temperature: AtomicBool::new(false) })
    }

    pub(super) fn from_lookup(env: impl Fn(&str) -> Option<String>) -> Result<Self, ProviderError> {
        let client = Client::from_env(&NAMES, "https://api.anthropic.com", env)?;
        Ok(Self { client, no_temperature: AtomicBool::new(false) })
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
        let version = HeaderValue::from_static("2023-06-01");
        let headers =
            HeaderMap::from_iter([(HeaderName::from_static("anthropic-version"), version)]);
        let has_version = self.client.base_path().trim_end_matches('/').ends_with("/v1");
        let path = if has_version { "messages" } else { "v1/messages" };
        loop {
            let without = self.no_temperature.load(Relaxed);
            let body = write(request, without);
            match self.client.post(path, headers.clone(), &body).await {
                Ok(value) => return read(&value),
                Err(Failure::Refused(said)) if !without && said.refuses("temperature") => {
                    self.no_temperature.store(true, Relaxed);
                }
                Err(failure) => return Err(self.client.error(failure)),
            }
        }
    }
}

#[async_trait]
impl LlmProvider for Anthropic {
    async fn chat(&self, request: ChatRequest) -> Result<ChatResponse, ProviderError> {
        self.client.within(self.converse(&request)).await
    }

    fn name(&self) -> &'static str {
        "anthropic"
    }
}

fn write(request: &ChatRequest, without_temperature: bool) -> Value {
    let mut body = json!({
        "model": request.model,
        "max_tokens": request.max_tokens,
        "messages": [{ "role": "user", "content": request.user }],
    });
    let mut set = |name: &str, value: Value| {
        if let Value::Object(fields) = &mut body {
            fields.insert(name.into(), value);
        }
    };
    if !request.system.is_empty() {
        set("system", system(request));
    }
    if let Some(temperature) = request.temperature.filter(|_| !without_temperature) {
        set("temperature", json!(temperature));
    }
    body
}

fn system(request: &ChatRequest) -> Value {
    if request.cache_key.is_none() {
        return json!(request.system);
    }
    let mark = json!({ "type": "ephemeral" });
    json!([{ "type": "text", "text": request.system, "cache_control": mark }])
}

fn read(value: &Value) -> Result<ChatResponse, ProviderError> {
    let blocks = value.get("content").and_then(Value::as_array);
    let blocks = blocks.ok_or_else(|| answer::missing("content"))?;
    let is_call = |block: &&Value| block.get("type").and_then(Value::as_str) == Some("tool_use");
    let stop_reason = value.get("stop_reason").and_then(Value::as_str);
    let said = value.pointer("/stop_details/explanation").and_then(Value::as_str);
    Ok(ChatResponse {
        text: answer::joined(blocks, "text", "text").unwrap_or_default(),
        finish_reason: finish_reason(stop_reason),
        refusal: (stop_reason == Some("refusal"))
            .then(|| said.unwrap_or("stop_reason is refusal").to_owned()),
        reasoning: answer::joined(blocks, "thinking", "thinking"),
        tool_calls: blocks.iter().filter(is_call).count(),
        usage: value.get("usage").and_then(usage),
        model: value.get("model").and_then(Value::as_str).map(answer::short),
    })
}

fn finish_reason(name: Option<&str>) -> FinishReason {
    match name {
        None | Some("end_turn" | "stop_sequence") => FinishReason::Stop,
        Some("max_tokens" | "model_context_window_exceeded") => FinishReason::Length,
        Some("refusal") => FinishReason::ContentFilter,
        Some("tool_use") => FinishReason::ToolCalls,
        Some(other) => FinishReason::Other(answer::short(other)),
    }
}

/// Its input leaves out what was cached: the three counts are one prompt.
fn usage(usage: &Value) -> Option<TokenUsage> {
    let optional = |name: &str| match usage.get(name) {
        None | Some(Value::Null) => Some(0),
        Some(number) => answer::count(number),
    };
    let cached = optional("cache_read_input_tokens")?;
    let input = answer::count(usage.get("input_tokens")?)?
        .saturating_add(optional("cache_creation_input_tokens")?)
        .saturating_add(cached);
    let output = answer::count(usage.get("output_tokens")?)?;
    Some(TokenUsage::new(input, output).with_cached(cached))
}
