//! A context that is too long is told from every other failure.
//!
//! The bodies are reduced to the codes, numbers and wordings by which they are
//! known; everything else in them is reworded. A row that names a repository and
//! an issue was seen there. One that names a provider or a server alone is
//! written from what is commonly known of it, and was not looked up.

use serde_json::{Value, json};
use session_compaction::Overflow;

type Row = (&'static str, u16, Value, Option<u64>, Option<u64>);

/// An error in OpenAI's form.
fn openai(code: &str, message: &str) -> Value {
    json!({ "error": { "message": message, "type": "invalid_request_error", "code": code } })
}

/// An error in Anthropic's form.
fn anthropic(kind: &str, message: &str) -> Value {
    json!({ "type": "error", "error": { "type": kind, "message": message } })
}

/// An error in Google's form.
fn google(code: u16, status: &str, message: &str) -> Value {
    json!({ "error": { "code": code, "status": status, "message": message } })
}

/// A body whose error is a text alone.
fn says(message: &str) -> Value {
    json!({ "error": message })
}

fn overflows() -> Vec<Row> {
    let mut rows = clouds();
    rows.extend(servers());
    rows.extend(gateways());
    rows
}

#[rustfmt::skip] // A row a line.
fn clouds() -> Vec<Row> {
    let long = "context_length_exceeded";
    vec![
        // OpenAI and Azure.
        ("rahul2002m/ChatPDF#6", 400, openai(long, "maximum context length is 4097 tokens; your messages resulted in 6988 tokens"), Some(4_097), Some(6_988)),
        ("dirk1983/deepseek#11", 400, openai(long, "maximum context length is 4096 tokens; you requested 4222 tokens (1222 in the messages, 3000 in the completion)"), Some(4_096), Some(4_222)),
        ("bytedance/deer-flow#310", 400, openai(long, "maximum context length is 128,000 tokens; your messages resulted in 202,868 tokens (101 in the functions)"), Some(128_000), Some(202_868)),
        ("cline/cline#5474", 400, openai("invalid", "Input tokens exceed the configured limit of 272000 tokens. Messages resulted in 289650 tokens"), Some(272_000), Some(289_650)),
        ("anomalyco/opencode#6071", 400, json!({ "type": "error", "sequence_number": 2, "error": { "code": long, "param": "input", "message": "" } }), None, None),
        ("onyx-dot-app/onyx#6051", 400, says("the input exceeds the context window of this model"), None, None),
        ("the-open-agent/openagent#2344, in a stream", 200, json!({ "type": "error", "error": { "code": long, "message": "adjust it" } }), None, None),
        ("Azure/azure-sdk-for-python#40986", 400, openai(long, "maximum context length is 128000 tokens; you requested 1124171 tokens"), Some(128_000), Some(1_124_171)),
        ("chatchat-space/Langchain-Chatchat#2600", 400, json!({ "object": "error", "code": 40303, "message": "maximum context length is 2048 tokens; it resulted in 3503 tokens" }), Some(2_048), Some(3_503)),
        ("OpenAI's API reference, a field of messages", 400, json!({ "error": { "code": "array_above_max_length", "param": "messages", "message": "Expected maximum length 2048, got 2100" } }), None, None),
        ("OpenAI's rate limits", 429, json!({ "error": { "type": "tokens", "code": "rate_limit_exceeded", "message": "Request too large for m on tokens per min (TPM): Limit 30000, Requested 48120" } }), Some(30_000), Some(48_120)),
        // Anthropic.
        ("anthropics/claude-code#12186", 400, anthropic("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"), Some(200_000), Some(208_310)),
        ("anthropics/claude-code#14195", 400, anthropic("invalid_request_error", "prompt is too long: 191989 tokens > 180000 maximum"), Some(180_000), Some(191_989)),
        ("anthropics/claude-code#408", 400, anthropic("invalid_request_error", "input length and `max_tokens` exceed context limit: \n     189136 + 20000 > 204648"), Some(204_648), Some(209_136)),
        ("Anthropic's list of errors", 413, anthropic("request_too_large", "above the maximum number of bytes"), None, None),
        // Gemini and Vertex.
        ("google-gemini/gemini-cli#6678", 400, json!([google(400, "INVALID_ARGUMENT", "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).")]), Some(1_048_576), Some(1_200_293)),
        ("arkavo-org/arkavo-edge#371", 400, google(400, "INVALID_ARGUMENT", "The input token count exceeds the maximum number of tokens allowed (1048576)."), Some(1_048_576), None),
        ("warpdotdev/warp#15662", 400, google(400, "INVALID_ARGUMENT", "input token count exceeds the maximum number of tokens allowed 1048576."), Some(1_048_576), None),
        ("google-gemini/gemini-cli#19727", 400, google(400, "INVALID_ARGUMENT", "the input token count is 1251952 but model only supports up to 1048576."), Some(1_048_576), Some(1_251_952)),
        // Bedrock.
        ("aws-samples/assessment-generator#2", 400, json!({ "__type": "ValidationException", "message": "Input is too long for requested model." }), None, None),
        ("Bedrock with Claude", 400, json!({ "message": "The model returned errors: prompt is too long: 203100 tokens > 200000 maximum" }), Some(200_000), Some(203_100)),
        ("Bedrock with Cohere", 400, json!({ "message": "Too many input tokens. Max input tokens: 8192, request input token count: 9120" }), Some(8_192), None),
        ("Bedrock with Nova", 400, json!({ "message": "Number of input tokens exceeds maximum length" }), None, None),
        // Groq and Cerebras.
        ("thepersonalaicompany/amurex-backend#51", 400, openai(long, "reduce the length"), None, None),
        ("OpenHands/OpenHands#1902, without its code", 400, says("Please reduce the length of the messages or completion."), None, None),
        ("HunorLaczko/ha-groq-cloud-api#27", 413, json!({ "error": { "type": "tokens", "code": "rate_limit_exceeded", "message": "Request too large for model m on tokens per minute (TPM): Limit 6000, Requested 12328" } }), Some(6_000), Some(12_328)),
        ("cline/cline#5140", 400, says("reduce the length of the messages. Current length is 42328 while limit is 40000"), Some(40_000), Some(42_328)),
        // DeepSeek, Mistral, xAI, Cohere, Moonshot, Qwen, MiniMax, Zhipu.
        ("evalstate/fast-agent#621", 400, openai("invalid_request_error", "maximum context length is 131072 tokens; you requested 131134 tokens (122942 in the messages)"), Some(131_072), Some(131_134)),
        ("Mistral's API", 400, json!({ "object": "error", "code": "3051", "message": "Prompt contains 40003 tokens, too large for model with 32768 maximum context length" }), Some(32_768), Some(40_003)),
        ("cline/cline#3120", 400, json!({ "code": "invalid", "error": "maximum prompt length is 131072 but the request contains 136973 tokens." }), Some(131_072), Some(136_973)),
        ("cohere-ai/sandbox-topically#4", 400, json!({ "message": "too many tokens: total number of tokens (prompt and prediction) cannot exceed 2048 - received 6354." }), Some(2_048), Some(6_354)),
        ("Quansight/ragna#351", 400, json!({ "message": "too many tokens: size limit exceeded by 1502 tokens." }), None, None),
        ("MoonshotAI/kimi-cli#2011", 400, openai("", "the request exceeded model token limit: 262144 (requested: 269030)"), Some(262_144), Some(269_030)),
        ("QwenLM/qwen-code#98", 400, openai("invalid_parameter_error", "InvalidParameter: Range of input length should be [1, 204800]"), Some(204_800), None),
        ("MiniMax-AI/MiniMax-M2#119", 400, anthropic("invalid_request_error", "invalid params, context window exceeds limit (2013)"), None, None),
        ("Zhipu's error codes", 400, json!({ "error": { "code": "1261", "message": "Prompt exceeds max length" } }), None, None),
    ]
}

#[rustfmt::skip] // A row a line.
fn servers() -> Vec<Row> {
    vec![
        // vLLM and SGLang.
        ("vllm-project/vllm#20409", 400, json!({ "object": "error", "type": "BadRequestError", "code": 400, "message": "maximum context length is 16384 tokens; you requested 19591 tokens (9591 in the messages)" }), Some(16_384), Some(19_591)),
        ("vllm-project/vllm#42474", 400, json!({ "error": { "type": "BadRequestError", "code": 400, "message": "maximum context length is 128000 tokens. You requested 65535 output tokens; at least 62466 input tokens, for a total of at least 128001 tokens" } }), Some(128_000), Some(128_001)),
        ("soundprediction/predicato#51", 400, json!({ "object": "error", "message": "maximum context length is 40960 tokens; your request has 91714 input tokens" }), Some(40_960), Some(91_714)),
        ("vllm-project/vllm#12165", 400, json!({ "object": "error", "message": "The prompt (total length 25938) is too long to fit into the model (context length 4096)." }), Some(4_096), Some(25_938)),
        ("vLLM's source", 400, json!({ "object": "error", "message": "The decoder prompt (length 9000) is longer than the maximum model length of 4096." }), Some(4_096), Some(9_000)),
        ("QwenLM/Qwen3#1321", 400, json!({ "object": "error", "code": 400, "message": "The input (61709 tokens) is longer than the model's context length (40960 tokens)." }), Some(40_960), Some(61_709)),
        // llama.cpp and its bindings.
        ("ggml-org/llama.cpp#15780", 500, json!({ "error": { "code": 500, "message": "too large", "type": "exceed_context_size_error", "n_prompt_tokens": 1407, "n_ctx": 256 } }), Some(256), Some(1_407)),
        ("oobabooga/textgen#7257, with status 200", 200, json!({ "error": { "code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 14429, "n_ctx": 8192 } }), Some(8_192), Some(14_429)),
        ("llama.cpp's source", 400, json!({ "error": { "code": 400, "message": "request (9012 tokens) exceeds the available context size (8192 tokens)" } }), Some(8_192), Some(9_012)),
        ("rllm-team/rllm#55", 500, json!({ "error": { "message": "Requested tokens (516) exceed context window of 512" } }), Some(512), Some(516)),
        // Ollama, LM Studio, oMLX.
        ("nano-step/nano-brain#208", 400, says("the input length exceeds the context length"), None, None),
        ("the same from an older server", 500, says("the input length exceeds the context length"), None, None),
        ("Ollama's cloud", 400, says("prompt too long; exceeded max context length by 812 tokens"), None, None),
        ("lmstudio-ai/lmstudio-bug-tracker#546", 400, says("Trying to keep the first 111490 tokens; the model is loaded with context length of only 32768 tokens"), Some(32_768), Some(111_490)),
        ("anomalyco/opencode#11141", 400, says("Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)"), Some(7_424), Some(15_028)),
        ("lmstudio-ai/lmstudio-bug-tracker#1024", 400, says("Reached context length of 32000 tokens with model"), Some(32_000), None),
        ("lmstudio-ai/lmstudio-bug-tracker#2339", 500, says("Context size has been exceeded."), None, None),
        ("lmstudio-ai/examples#29", 400, says("Input length 6491 exceeds context length 1500"), None, Some(6_491)),
        ("ValueCell-ai/ClawX#658", 400, says("Prompt too long: 41911 tokens exceeds max context window of 32768 tokens"), Some(32_768), Some(41_911)),
        ("ddalcu/mlx-serve#66", 400, says("Prompt exceeds maximum context length"), None, None),
        // text-generation-inference.
        ("huggingface/llm-vscode#94", 422, json!({ "error_type": "validation", "error": "`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3474 `inputs` tokens and 60 `max_new_tokens`" }), Some(2_048), Some(3_534)),
    ]
}

#[rustfmt::skip] // A row a line.
fn gateways() -> Vec<Row> {
    let inner = openai("context_length_exceeded", "maximum context length is 65536 tokens");
    vec![
        ("refly-ai/refly#1177", 400, json!({ "error": { "code": 400, "message": "maximum context length is 32768 tokens; you requested about 42832 tokens (42832 of text input)", "metadata": { "provider_name": null } } }), Some(32_768), Some(42_832)),
        ("OpenRouter's errors of providers", 400, json!({ "error": { "code": 400, "message": "Provider returned error", "metadata": { "raw": inner.to_string() } } }), Some(65_536), None),
        ("OpenRouter, after its header was sent", 200, json!({ "choices": [{ "error": { "code": 400, "message": "maximum context length is 32768 tokens" } }] }), Some(32_768), None),
        ("musistudio/claude-code-router#252", 400, json!({ "type": "api_error", "error": { "message": format!("Error from provider: {inner}") } }), Some(65_536), None),
        ("google-gemini/gemini-cli#4231", 400, json!({ "error": { "code": 400, "status": "Bad Request", "message": "{\n \"message\": \"The input token count (3475108) exceeds the maximum number of tokens allowed (1048576).\" }" } }), Some(1_048_576), Some(3_475_108)),
        ("entropy-research/Devon#88", 400, json!({ "detail": "ContextWindowExceededError: prompt is too long: 209353 tokens > 199999 maximum" }), Some(199_999), Some(209_353)),
        ("microsoft/vscode#289219", 400, json!({ "error": { "code": "model_max_prompt_tokens_exceeded", "message": "prompt token count of 1236658 exceeds the limit of 128000" } }), Some(128_000), Some(1_236_658)),
        ("jjleng/copilot-more#35", 400, openai("", "prompt token count of 93854 exceeds the limit of 90000"), Some(90_000), Some(93_854)),
        ("eslint/tsc-meetings#593", 413, json!({ "error": { "code": "tokens_limit_reached", "message": "Request body too large for m model. Max size: 8000 tokens." } }), Some(8_000), None),
    ]
}

#[rustfmt::skip] // A row a line.
fn others() -> Vec<(&'static str, u16, Value)> {
    let invalid = "invalid_request_error";
    vec![
        // Waiting helps, or paying.
        ("elizaOS/eliza#4040", 429, openai("rate_limit_exceeded", "Rate limit reached on tokens per minute (TPM): Limit 6000, Used 5034, Requested 1443")),
        ("anthropics/claude-code#236", 429, json!({ "message": "Too many tokens, please wait before trying again." })),
        ("RooCodeInc/Roo-Code#5050, wrapped", 400, json!({ "error": { "type": "ThrottlingException", "message": "Too many tokens, please wait before trying again." } })),
        ("minorun365/agent-book#29", 429, json!({ "message": "Too many tokens per day, please wait" })),
        ("a throttle that speaks of the context", 400, json!({ "error": { "code": "rate_limit_exceeded", "message": "the maximum context length of your tier comes later" } })),
        ("anthropics/claude-code#50784", 429, anthropic("rate_limit_error", "Extra usage is required for long context requests.")),
        ("anthropics/claude-code#27944", 400, anthropic(invalid, "The long context beta is not yet available for this subscription.")),
        ("Anthropic's list of errors", 429, anthropic("rate_limit_error", "input tokens per minute")),
        ("Anthropic's list of errors", 529, anthropic("overloaded_error", "Overloaded")),
        ("Anthropic's credit", 400, anthropic(invalid, "Your credit balance is too low")),
        ("OpenAI's quota", 429, openai("insufficient_quota", "exceeded your current quota")),
        ("OpenRouter's credit", 402, json!({ "error": { "code": 402, "message": "more credits, or fewer max_tokens: requested 65536 tokens, can afford 1200" } })),
        ("Gemini's quota", 429, google(429, "RESOURCE_EXHAUSTED", "input_token_count limit: 250000")),
        ("DeepSeek's balance", 402, openai("invalid_request_error", "Insufficient Balance")),
        // Time, and broken servers.
        ("Gemini's deadline", 504, google(504, "DEADLINE_EXCEEDED", "Deadline exceeded")),
        ("a proxy's deadline", 504, says("the prompt is too long to be read in time")),
        ("OpenAI's timeout", 408, openai("timeout", "Request timed out")),
        ("OpenAI's fault", 500, openai("server_error", "The server had an error")),
        ("Gemini's fault", 500, google(500, "INTERNAL", "An internal error has occurred")),
        ("Gemini, overloaded", 503, google(503, "UNAVAILABLE", "The model is overloaded")),
        ("Ollama without memory", 500, says("model requires more system memory (9.1 GiB) than is available")),
        ("LM Studio's crash", 400, says("The model has crashed without additional information")),
        ("llama.cpp, loading", 503, json!({ "error": { "code": 503, "type": "unavailable_error", "message": "Loading model" } })),
        // Keys and names.
        ("OpenAI's key", 401, openai("invalid_api_key", "Incorrect API key provided")),
        ("a wrong key with the right words", 401, openai("context_length_exceeded", "maximum context length")),
        ("Azure's region", 403, openai("403", "Access denied")),
        ("OpenAI's model", 404, openai("model_not_found", "The model does not exist")),
        ("Ollama's model", 404, says("model \"m\" not found, try pulling it first")),
        ("Bedrock's model", 400, json!({ "message": "The provided model identifier is invalid." })),
        ("Bedrock's profile", 400, json!({ "message": "with on-demand throughput isn't supported" })),
        // Too much output.
        ("ChatGPTNextWeb/NextChat#4964", 400, anthropic(invalid, "max_tokens: 10000 > 4096, which is the maximum allowed number of output tokens")),
        ("RooCodeInc/Roo-Code#5729", 400, openai("", "`max_tokens` must be less than or equal to `16384`, the maximum value for `max_tokens` is less than the `context_window` for this model")),
        ("charmbracelet/crush#946", 400, json!({ "message": "The maximum tokens you requested exceeds the model limit of 32768" })),
        ("OpenAI's max_tokens", 400, openai("invalid_value", "max_tokens is too large: 100000. This model supports at most 16384 completion tokens")),
        ("OpenAI's renamed field", 400, openai("unsupported_parameter", "Use max_completion_tokens instead of max_tokens")),
        // Fields, tools and media.
        ("OpenHands/OpenHands#4838", 400, json!({ "error": { "code": "string_above_max_length", "param": "tools[2].function.description", "message": "string too long: maximum length 1024, got 4394" } })),
        ("OpenAI's number of tools", 400, json!({ "error": { "code": "array_above_max_length", "param": "tools", "message": "maximum length 128, got 140" } })),
        ("OpenAI's schemas", 400, openai("invalid_function_parameters", "Invalid schema for function 'x'")),
        ("OpenAI's roles", 400, openai("invalid_value", "messages with role 'tool' must follow tool_calls")),
        ("Anthropic's pairs", 400, anthropic(invalid, "tool_use ids were found without tool_result blocks")),
        ("Anthropic's cache marks", 400, anthropic(invalid, "A maximum of 4 blocks with cache_control may be provided")),
        ("Gemini's turns", 400, google(400, "INVALID_ARGUMENT", "function call turn comes immediately after a user turn")),
        ("anthropics/claude-code#4778", 400, anthropic(invalid, "image dimensions exceed max allowed size: 8000 pixels")),
        ("Anthropic's images", 400, anthropic(invalid, "image exceeds 5 MB maximum: 5894840 bytes > 5242880 bytes")),
        ("a gateway's images", 413, says("the image is larger than 20 MB")),
        ("Azure's filter", 400, openai("content_filter", "The response was filtered")),
        ("vLLM's validation, which quotes the request", 422, json!({ "detail": [{ "loc": ["body", "messages"], "msg": "Input should be a valid list", "input": "what is the maximum context length?" }] })),
        // No errors at all.
        ("a reply about it", 200, json!({ "choices": [{ "message": { "content": "prompt is too long: 5 tokens > 4 maximum" } }] })),
        ("a reply that ended at the window", 200, json!({ "type": "message", "stop_reason": "model_context_window_exceeded", "content": [] })),
        ("nothing", 500, Value::Null),
    ]
}

#[test]
fn each_provider_s_overflow_is_known_with_its_numbers() {
    let rows = overflows();
    assert!(rows.len() >= 40, "{}", rows.len());
    for (source, status, body, limit, requested) in rows {
        let found = Overflow::detect(status, &body.to_string());
        let found = found.map(|found| (found.limit, found.requested));
        assert_eq!(found, Some((limit, requested)), "{source}: {status} {body}");
    }
}

#[test]
fn other_failures_are_no_overflow() {
    let rows = others();
    assert!(rows.len() >= 40, "{}", rows.len());
    for (source, status, body) in rows {
        assert_eq!(Overflow::detect(status, &body.to_string()), None, "{source}: {status} {body}");
    }
}

#[test]
fn case_and_layout_do_not_matter() {
    for (source, status, body, limit, requested) in overflows() {
        for text in [
            serde_json::to_string_pretty(&body).unwrap(),
            body.to_string().replace(" tokens", " TOKENS").replace(" context", " Context"),
        ] {
            let found = Overflow::detect(status, &text).map(|it| (it.limit, it.requested));
            assert_eq!(found, Some((limit, requested)), "{source}: {text}");
        }
    }
}

#[test]
fn a_body_that_is_no_json_is_read_as_text() {
    let found =
        Overflow::detect(400, "prompt is too long: 208310 tokens > 200000 maximum").unwrap();
    assert_eq!((found.limit, found.requested), (Some(200_000), Some(208_310)));
    assert!(Overflow::detect(413, "<html>413 Request Entity Too Large</html>").is_some());
    assert_eq!(Overflow::detect(200, "prompt is too long"), None);
    assert_eq!(Overflow::detect(400, ""), None);
}

#[test]
fn a_huge_or_hostile_body_is_no_danger() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(Overflow::detect(400, &deep), None);
    let long = "the maximum number of tokens ".repeat(200_000);
    assert_eq!(Overflow::detect(400, &long), None);
    let huge = format!("maximum context length is {} tokens", "9".repeat(10_000));
    assert_eq!(Overflow::detect(400, &huge).unwrap().limit, None);
}
