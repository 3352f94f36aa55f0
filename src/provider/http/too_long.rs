//! The ways in which providers say that the input is too long.

/// Codes that mean it by themselves.
const CODES: [&str; 5] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "model_context_window_exceeded",
    "request_too_large",
    "string_above_max_length",
];

/// Wordings, in lower case; all the words of one have to be there.
const WORDINGS: [&[&str]; 17] = [
    // Anthropic, Bedrock and Vertex.
    &["prompt is too long"],
    &["input length and", "exceed context limit"],
    &["input is too long"],
    &["too many input tokens"],
    // OpenAI, Azure, DeepSeek, Mistral, vLLM, OpenRouter.
    &["maximum context length"],
    &["exceeds the context window"],
    &["longer than the maximum model length"],
    &["reduce the length of the messages"],
    // Gemini, Cohere and xAI.
    &["exceeds the maximum number of tokens"],
    &["too many tokens", "exceed", "limit"],
    &["maximum prompt length is"],
    // llama.cpp, Ollama, LM Studio and text-generation-inference.
    &["exceeds the available context size"],
    &["exceeds the context length"],
    &["exceeds the context size"],
    &["greater than the context length"],
    &["inputs", "max_new_tokens", "must be <="],
    // A request that is above what may be sent in a minute will never pass.
    &["request too large"],
];

/// Returns true when a refusal means that the input is too long. A wrong key,
/// a deadline and too many requests are never that, whatever they say.
pub(crate) fn is_too_long<'a>(
    status: Option<u16>,
    mut codes: impl Iterator<Item = &'a str>,
    message: &str,
) -> bool {
    let message = message.to_lowercase();
    match status {
        Some(413) => true,
        Some(429) => message.contains("request too large"),
        None | Some(400 | 422 | 500) => {
            codes.any(|code| CODES.contains(&code))
                || WORDINGS.iter().any(|words| words.iter().all(|word| message.contains(word)))
        }
        Some(_) => false,
    }
}
