//! What the providers send, and what they read from an answer.
#![cfg(feature = "providers")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use session_compaction::{
    Anthropic, ChatRequest, ChatResponse, FinishReason, LlmProvider, OpenAiCompatible,
    ProviderError, ProviderErrorKind as Kind, Retrying, TokenUsage,
};
use wiremock::{
    Mock, MockServer, ResponseTemplate,
    matchers::{any, body_partial_json, header, method, path},
};

fn request() -> ChatRequest {
    let mut request = ChatRequest::new("a-model", "You summarize.", "Hello.", 100);
    request.temperature = Some(0.3);
    request
}

async fn serving(answer: Value) -> MockServer {
    let server = MockServer::start().await;
    let answer = ResponseTemplate::new(200).set_body_json(answer);
    Mock::given(any()).respond_with(answer).mount(&server).await;
    server
}

/// The bodies of all requests, in order.
async fn sent(server: &MockServer) -> Vec<Value> {
    let requests = server.received_requests().await.unwrap();
    requests.iter().map(|request| request.body_json().unwrap()).collect()
}

fn openai(server: &MockServer) -> OpenAiCompatible {
    OpenAiCompatible::new(&format!("{}/v1/", server.uri())).unwrap()
}

fn anthropic(server: &MockServer) -> Anthropic {
    Anthropic::new(&server.uri()).unwrap()
}

fn openai_text(text: &str) -> Value {
    json!({ "choices": [{ "message": { "role": "assistant", "content": text } }] })
}

#[tokio::test]
async fn openai_sends_what_was_asked_and_reads_the_whole_answer() {
    let server = MockServer::start().await;
    let answer = json!({
        "id": "chatcmpl-1",
        "model": "a-model-2026-01-01",
        "choices": [{
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "A summary.",
                "reasoning_content": "Let me see.",
                "refusal": null,
                "tool_calls": [{ "id": "1", "type": "function", "function": {} }],
            },
        }],
        "usage": {
            "prompt_tokens": 1_000,
            "completion_tokens": 80,
            "prompt_tokens_details": { "cached_tokens": 640 },
        },
    });
    Mock::given(method("POST"))
        .and(path("/v1/chat/completions"))
        .and(header("authorization", "Bearer sk-test"))
        .respond_with(ResponseTemplate::new(200).set_body_json(answer))
        .mount(&server)
        .await;
    let read = openai(&server).with_key("sk-test").chat(request()).await.unwrap();
    let mut expected = ChatResponse::new("A summary.");
    expected.finish_reason = FinishReason::ToolCalls;
    expected.reasoning = Some("Let me see.".into());
    expected.tool_calls = 1;
    expected.usage = Some(TokenUsage::new(1_000, 80).with_cached(640));
    expected.model = Some("a-model-2026-01-01".into());
    assert_eq!(read, expected);
    let body = json!({
        "model": "a-model",
        "messages": [
            { "role": "system", "content": "You summarize." },
            { "role": "user", "content": "Hello." },
        ],
        "max_tokens": 100,
        "temperature": 0.3,
    });
    assert_eq!(sent(&server).await, [body]);
}

#[tokio::test]
async fn a_local_server_gets_no_key_and_only_fields_that_are_set() {
    let server = serving(openai_text("ok")).await;
    let plain = ChatRequest::new("a-model", "", "Hello.", 100);
    let read = openai(&server).chat(plain).await.unwrap();
    assert_eq!(read, ChatResponse::new("ok"));
    let body = json!({
        "model": "a-model",
        "messages": [{ "role": "user", "content": "Hello." }],
        "max_tokens": 100,
    });
    assert_eq!(sent(&server).await, [body]);
    let requests = server.received_requests().await.unwrap();
    assert!(!requests[0].headers.contains_key("authorization"));
    assert!(!requests[0].headers.contains_key("accept-encoding"));
}

#[tokio::test]
async fn openai_reads_content_in_parts_and_a_refusal() {
    let parts = json!({ "choices": [{ "finish_reason": "stop", "message": { "content": [
        { "type": "text", "text": "One, " }, { "type": "image" }, { "type": "text", "text": "two." },
    ] } }] });
    let read = openai(&serving(parts).await).chat(request()).await.unwrap();
    assert_eq!(read, ChatResponse::new("One, two."));

    for content in [json!(null), json!([{ "type": "refusal", "refusal": "I cannot." }])] {
        let refusal = content.is_null().then_some("I cannot.");
        let message = json!({ "content": content, "refusal": refusal });
        let answer = json!({ "choices": [{ "finish_reason": "stop", "message": message }] });
        let read = openai(&serving(answer).await).chat(request()).await.unwrap();
        assert_eq!((read.text.as_str(), read.refusal.as_deref()), ("", Some("I cannot.")));
    }
}

/// Refuses a field as the provider documents it, and takes a request without it.
async fn refusing(server: &MockServer, field: &str, error: Value) {
    let refusal = ResponseTemplate::new(400).set_body_json(json!({ "error": error }));
    let field = field.to_owned();
    Mock::given(move |request: &wiremock::Request| {
        request.body_json::<Value>().unwrap().get(&field).is_some()
    })
    .respond_with(refusal)
    .mount(server)
    .await;
}

#[tokio::test]
async fn openai_adapts_once_to_what_an_endpoint_refuses_and_remembers() {
    let server = MockServer::start().await;
    refusing(&server, "max_tokens", json!({
        "message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "type": "invalid_request_error", "param": "max_tokens", "code": "unsupported_parameter",
    })).await;
    refusing(&server, "temperature", json!({
        "message": "Unsupported value: 'temperature' does not support 0.3 with this model. Only the default (1) value is supported.",
        "type": "invalid_request_error", "param": "temperature", "code": "unsupported_value",
    })).await;
    refusing(&server, "prompt_cache_key", json!({
        "message": "property 'prompt_cache_key' is unsupported", "type": "invalid_request_error",
    }))
    .await;
    let answer = ResponseTemplate::new(200).set_body_json(openai_text("ok"));
    Mock::given(any()).respond_with(answer).mount(&server).await;

    let model = openai(&server);
    let mut request = request();
    request.cache_key = Some("agent-1".into());
    for _ in 0..3 {
        assert_eq!(model.chat(request.clone()).await.unwrap().text, "ok");
    }
    let sent = sent(&server).await;
    let fields = |body: &Value| {
        ["max_tokens", "max_completion_tokens", "temperature", "prompt_cache_key"]
            .map(|name| body.get(name).is_some())
    };
    assert_eq!(
        sent.iter().map(fields).collect::<Vec<_>>(),
        [
            [true, false, true, true],
            [false, true, true, true],
            [false, true, false, true],
            [false, true, false, false],
            [false, true, false, false],
            [false, true, false, false],
        ]
    );
}

#[tokio::test]
async fn the_deadline_is_one_for_all_requests_of_a_call() {
    let server = MockServer::start().await;
    let error = json!({ "error": { "message": "temperature is not supported" } });
    let refusal = ResponseTemplate::new(400).set_body_json(error);
    let delay = Duration::from_millis(200);
    Mock::given(any()).respond_with(refusal.set_delay(delay)).up_to_n_times(1).mount(&server).await;
    let answer = ResponseTemplate::new(200).set_body_json(openai_text("ok"));
    Mock::given(any()).respond_with(answer.set_delay(delay)).mount(&server).await;
    let total = Duration::from_millis(300);
    let start = Instant::now();
    let error = openai(&server).with_timeouts(total, total).chat(request()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::TimedOut);
    assert!(start.elapsed() <= total + Duration::from_millis(250));
    assert_eq!(sent(&server).await.len(), 2);
}

#[tokio::test]
async fn openai_asks_once_where_a_value_is_wrong_and_not_the_field() {
    let server = MockServer::start().await;
    refusing(&server, "max_tokens", json!({
        "message": "max_tokens is too large: 100. This model supports at most 16 completion tokens",
        "type": "invalid_request_error", "param": "max_tokens", "code": "invalid_value",
    }))
    .await;
    let error = openai(&server).chat(request()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Rejected);
    assert_eq!(sent(&server).await.len(), 1);
}

#[tokio::test]
async fn anthropic_sends_what_was_asked_and_reads_the_whole_answer() {
    let server = MockServer::start().await;
    let answer = json!({
        "id": "msg_1",
        "type": "message",
        "model": "claude-a",
        "content": [
            { "type": "thinking", "thinking": "Let me see.", "signature": "x" },
            { "type": "text", "text": "A " },
            { "type": "text", "text": "summary." },
            { "type": "tool_use", "id": "1", "name": "n", "input": {} },
        ],
        "stop_reason": "tool_use",
        "usage": {
            "input_tokens": 100,
            "cache_creation_input_tokens": 20,
            "cache_read_input_tokens": 880,
            "output_tokens": 80,
        },
    });
    Mock::given(method("POST"))
        .and(path("/v1/messages"))
        .and(header("x-api-key", "sk-ant-test"))
        .and(header("anthropic-version", "2023-06-01"))
        .respond_with(ResponseTemplate::new(200).set_body_json(answer))
        .mount(&server)
        .await;
    let read = anthropic(&server).with_key("sk-ant-test").chat(request()).await.unwrap();
    let mut expected = ChatResponse::new("A summary.");
    expected.finish_reason = FinishReason::ToolCalls;
    expected.reasoning = Some("Let me see.".into());
    expected.tool_calls = 1;
    expected.usage = Some(TokenUsage::new(1_000, 80).with_cached(880));
    expected.model = Some("claude-a".into());
    assert_eq!(read, expected);
    let body = json!({
        "model": "a-model",
        "max_tokens": 100,
        "system": "You summarize.",
        "messages": [{ "role": "user", "content": "Hello." }],
        "temperature": 0.3,
    });
    assert_eq!(sent(&server).await, [body]);
}

#[tokio::test]
async fn anthropic_marks_the_instructions_for_the_cache_where_asked() {
    let server = serving(json!({ "content": [], "stop_reason": "end_turn" })).await;
    let mut request = request();
    request.cache_key = Some("agent-1".into());
    let model = Anthropic::new(&format!("{}/proxy/v1", server.uri())).unwrap();
    model.chat(request).await.unwrap();
    let system = json!([{
        "type": "text", "text": "You summarize.", "cache_control": { "type": "ephemeral" },
    }]);
    assert_eq!(sent(&server).await[0]["system"], system);
    assert_eq!(server.received_requests().await.unwrap()[0].url.path(), "/proxy/v1/messages");
}

#[tokio::test]
async fn anthropic_names_why_an_answer_ended() {
    for (stop_reason, expected) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("tool_use", FinishReason::ToolCalls),
        ("refusal", FinishReason::ContentFilter),
        ("pause_turn", FinishReason::Other("pause_turn".into())),
    ] {
        let server = serving(json!({ "content": [], "stop_reason": stop_reason })).await;
        let read = anthropic(&server).chat(request()).await.unwrap();
        assert_eq!(read.finish_reason, expected);
        assert_eq!(read.refusal.is_some(), stop_reason == "refusal");
    }
}

#[tokio::test]
async fn anthropic_leaves_the_temperature_out_where_a_model_knows_none() {
    let server = MockServer::start().await;
    let error = json!({
        "type": "invalid_request_error", "message": "`temperature` is deprecated for this model.",
    });
    refusing(&server, "temperature", error).await;
    let answer =
        json!({ "content": [{ "type": "text", "text": "ok" }], "stop_reason": "end_turn" });
    Mock::given(body_partial_json(json!({ "max_tokens": 100 })))
        .respond_with(ResponseTemplate::new(200).set_body_json(answer))
        .mount(&server)
        .await;
    let model = anthropic(&server);
    for _ in 0..2 {
        assert_eq!(model.chat(request()).await.unwrap().text, "ok");
    }
    assert_eq!(sent(&server).await.len(), 3);
}

/// Gives the failures in order, and then answers. Counts its calls.
#[derive(Debug)]
struct Failing {
    failures: Mutex<VecDeque<ProviderError>>,
    calls: Mutex<usize>,
}

impl Failing {
    fn with(failures: impl IntoIterator<Item = ProviderError>) -> Arc<Self> {
        let failures = Mutex::new(failures.into_iter().collect());
        Arc::new(Self { failures, calls: Mutex::new(0) })
    }

    fn calls(&self) -> usize {
        *self.calls.lock().unwrap()
    }
}

#[async_trait::async_trait]
impl LlmProvider for Failing {
    async fn chat(&self, _: ChatRequest) -> Result<ChatResponse, ProviderError> {
        *self.calls.lock().unwrap() += 1;
        match self.failures.lock().unwrap().pop_front() {
            Some(failure) => Err(failure),
            None => Ok(ChatResponse::new("ok")),
        }
    }
}

fn error(kind: Kind) -> ProviderError {
    ProviderError::new(kind, "")
}

#[tokio::test(start_paused = true)]
async fn what_may_pass_is_tried_three_times() {
    for kind in [Kind::RateLimited, Kind::Server, Kind::Unreachable] {
        let twice = Failing::with([error(kind), error(kind)]);
        let read = Retrying::new(Arc::clone(&twice)).chat(request()).await.unwrap();
        assert_eq!((read.text.as_str(), twice.calls()), ("ok", 3));

        let always = Failing::with(vec![error(kind); 9]);
        assert_eq!(
            Retrying::new(Arc::clone(&always)).chat(request()).await.unwrap_err().kind(),
            kind
        );
        assert_eq!(always.calls(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn what_will_not_pass_is_tried_once() {
    use Kind::{Auth, Config, Malformed, Rejected, TimedOut, TooLong};
    for kind in [Auth, Config, Malformed, Rejected, TimedOut, TooLong] {
        let model = Failing::with([error(kind)]);
        assert_eq!(
            Retrying::new(Arc::clone(&model)).chat(request()).await.unwrap_err().kind(),
            kind
        );
        assert_eq!(model.calls(), 1, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_wait_is_slept_on_and_a_long_one_is_given_back() {
    let asks = |seconds| error(Kind::RateLimited).with_retry_after(Duration::from_secs(seconds));
    let start = tokio::time::Instant::now();
    let short = Failing::with([asks(2)]);
    Retrying::new(Arc::clone(&short)).chat(request()).await.unwrap();
    assert!(start.elapsed() >= Duration::from_secs(2));
    assert_eq!(short.calls(), 2);

    let start = tokio::time::Instant::now();
    let long = Failing::with([asks(7)]);
    let given = Retrying::new(Arc::clone(&long)).chat(request()).await.unwrap_err();
    assert_eq!(given.retry_after(), Some(Duration::from_secs(7)));
    assert_eq!((long.calls(), start.elapsed()), (1, Duration::ZERO));

    let patient = Failing::with([asks(7)]);
    let model = Retrying::new(Arc::clone(&patient)).with_longest_wait(Duration::from_mins(10));
    model.chat(request()).await.unwrap();
    let endless = Failing::with([asks(61)]);
    let model = Retrying::new(endless).with_longest_wait(Duration::from_mins(10));
    assert!(model.chat(request()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn no_pause_goes_beyond_the_deadline() {
    let model = Failing::with(vec![error(Kind::Server); 9]);
    let hasty = Retrying::new(Arc::clone(&model)).with_deadline(Duration::from_millis(400));
    assert_eq!(hasty.chat(request()).await.unwrap_err().kind(), Kind::Server);
    assert_eq!(model.calls(), 1);
}

#[tokio::test]
async fn a_server_that_always_asks_for_seven_seconds_gets_one_request_a_call() {
    let server = MockServer::start().await;
    let slow = ResponseTemplate::new(429).insert_header("retry-after", "7");
    Mock::given(any()).respond_with(slow).mount(&server).await;
    let start = Instant::now();
    for model in [
        Box::new(Retrying::new(openai(&server))) as Box<dyn LlmProvider>,
        Box::new(Retrying::new(anthropic(&server))),
    ] {
        let error = model.chat(request()).await.unwrap_err();
        assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    }
    assert_eq!(sent(&server).await.len(), 2);
    assert!(start.elapsed() < Duration::from_secs(7));
}
