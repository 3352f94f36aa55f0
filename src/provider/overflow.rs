//! The ways in which providers say that the context is too long.

use std::sync::LazyLock;

use regex_lite::Regex;
use serde_json::Value;

use crate::formats::refusal::Refusal;

/// A provider's word that a request was longer than the model takes.
///
/// Deadlines, rate limits, empty accounts, wrong keys, unknown models, refused
/// fields, too many tokens of output and too large images are not that, and a
/// shorter conversation would not help.
///
/// One rate limit counts: where a single request is larger than what may be
/// sent in a minute, it will never pass, and that bound is the limit.
///
/// # Example
///
/// ```
/// use session_compaction::Overflow;
///
/// let body = r#"{"type":"error","error":{"type":"invalid_request_error",
///     "message":"prompt is too long: 208310 tokens > 200000 maximum"}}"#;
/// let overflow = Overflow::detect(400, body).unwrap();
/// assert_eq!((overflow.limit, overflow.requested), (Some(200_000), Some(208_310)));
///
/// let body = r#"{"error":{"code":"rate_limit_exceeded","message":"try again in 2 s"}}"#;
/// assert_eq!(Overflow::detect(429, body), None);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub struct Overflow {
    /// How many tokens a request may have, where the answer says it.
    pub limit: Option<u64>,
    /// How many tokens the request had, where the answer says it; with some
    /// providers the room for the output is counted in.
    pub requested: Option<u64>,
}

impl Overflow {
    /// Reads the answer to a request: its HTTP status and its body, of
    /// whatever form. Returns `None` for any other failure, and for a success.
    #[must_use]
    pub fn detect(status: u16, body: &str) -> Option<Self> {
        if status == 200 {
            let value: Value = serde_json::from_str(body).ok()?;
            return Self::of(&Refusal::find(&value)?);
        }
        Self::of(&Refusal::read(status, body))
    }

    pub(crate) fn of(said: &Refusal) -> Option<Self> {
        let text = plain(&said.message);
        let is_rate_limit = said.has_code(&["rate_limit", "throttl", "quota"]);
        let means_it = match said.status {
            Some(413) => !is_about_media(&text) || says(&text),
            Some(429) => text.contains(TOO_LARGE_FOR_RATE),
            None | Some(400 | 422 | 500) if is_rate_limit => text.contains(TOO_LARGE_FOR_RATE),
            None | Some(400 | 422 | 500) => has_code(said, &text) || says(&text),
            Some(_) => false,
        };
        means_it.then(|| Self { limit: limit(&text), requested: requested(&text) })
    }
}

/// Codes that mean it by themselves, wherever they stand: `OpenAI`, Azure and
/// Groq; llama.cpp; Anthropic's stop reason and 413; GitHub Copilot; GitHub
/// Models.
const CODES: [&str; 6] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "model_context_window_exceeded",
    "model_max_prompt_tokens_exceeded",
    "request_too_large",
    "tokens_limit_reached",
];

/// `OpenAI`'s codes for too much text or too many items in a field. They mean it
/// where that field is the conversation, and not the description of a tool.
const FIELD_CODES: [&str; 2] = ["array_above_max_length", "string_above_max_length"];

/// OpenAI (429) and Groq (413): one request has more tokens than a minute.
const TOO_LARGE_FOR_RATE: &str = "request too large";

/// Wordings that mean it, for text in lower case without quotes. Some answers
/// are wordings alone: codes are missing, or say no more than bad request.
const WORDINGS: [&str; 20] = [
    // Anthropic, Bedrock, Fireworks, vLLM, Ollama, oMLX.
    r"(?:prompt|input) (?:\(total length \d+\) )?(?:is )?too long",
    r"input length and max_tokens exceed context limit",
    // OpenAI, Azure, OpenRouter, DeepSeek, Mistral, vLLM, SGLang, Bedrock.
    r"maximum context length",
    // OpenAI Responses, LM Studio, Ollama, llama.cpp, llama-cpp-python, MiniMax.
    r"exceed(?:s|ed)? (?:the |max |maximum |available |model'?s? |this )*context[ _](?:length|limit|size|window)",
    r"context (?:length|size|window) (?:has been |is )?exceed",
    r"context window exceeds limit",
    // OpenAI's GPT-5.
    r"input tokens exceed the configured limit",
    // vLLM and SGLang.
    r"longer than the (?:maximum model|model's context) length",
    // Groq, Cerebras.
    r"reduce the length of the (?:messages|prompt|input)",
    // Gemini, Vertex.
    r"input token count.{0,40} exceeds the maximum number of tokens",
    r"input token count is \d+ but model only supports up to \d+",
    // Cohere, Amazon's own models.
    r"too many tokens: (?:size limit exceeded|total number of tokens)",
    r"too many input tokens|number of input tokens exceeds",
    // xAI.
    r"maximum prompt length is \d+",
    // LM Studio.
    r"tokens to keep from the initial prompt is greater than|trying to keep the first \d+ tokens|n_keep .{0,20}>= n_ctx|reached context length of \d+",
    // GitHub Copilot.
    r"prompt token count of \d+ exceeds the limit of \d+",
    // Moonshot, DashScope, Zhipu.
    r"exceeded model token limit|range of input length should be|prompt exceeds max(?:imum)? length",
    // text-generation-inference.
    r"inputs tokens \+ max_new_tokens must be <= \d+|inputs must have less than \d+ tokens",
    // Older llama.cpp.
    r"request is larger than the (?:available )?context",
    // OpenAI, Groq.
    TOO_LARGE_FOR_RATE,
];

/// Where the limit stands; the first that fits counts.
const LIMIT: [&str; 12] = [
    r"tokens > (\d+) maximum",
    r"exceed context limit: \d+ \+ \d+ > (\d+)",
    r"max(?:imum)? (?:context|model|prompt) (?:length|window)(?: (?:is|of)|:)? (?:only )?\(?(\d+)",
    r"with (\d+) maximum context length",
    r"context (?:length|limit|size|window)(?: (?:is|of)(?: only)?)? \(?(\d+)(?: tokens|\))",
    r"context window of (\d+)",
    r"maximum number of tokens allowed \(?(\d+)|model only supports up to (\d+)",
    r"(?:configured|while|token|the) limit(?: of| is|:) (\d+)",
    r"cannot exceed (\d+)|must be <= (\d+)|less than (\d+) tokens|max input tokens: (\d+)",
    r"input length should be \[\d+, ?(\d+)\]",
    r"n_ctx:? ?\(?(\d+)|max size: (\d+) tokens",
    r"\(tp[md]\): limit (\d+)",
];

/// Where the size of the request stands; several numbers are its parts.
const REQUESTED: [&str; 13] = [
    r"total of (?:at least )?(\d+) tokens",
    r"(?:prompt|input) (?:is )?too long: (\d+)",
    r"exceed context limit: (\d+) \+ (\d+) >",
    r"is too large: (\d+)\..{0,120} has (\d+) input tokens",
    r"(?:requested|resulted in)(?: about)? (\d+) tokens",
    r"request (?:has|contains) (\d+)|(?:prompt|input) contains (\d+)",
    r"(?:prompt|input|requested tokens|request) \((?:total )?(?:length )?(\d+)",
    r"token count (?:of |is )?\(?(\d+)\)?",
    r"current length is (\d+)|keep the first (\d+)",
    r"received (\d+)|requested:? (\d+)",
    r"given: (\d+) inputs tokens and (\d+) max_new_tokens|given: (\d+)",
    r"input length (\d+) exceeds",
    r"n_prompt_tokens: ?(\d+)|n_keep \(?(\d+)",
];

/// The longest text that is looked at: what a provider says is short.
const MOST_CHARS: usize = 16 * 1024;

fn has_code(said: &Refusal, text: &str) -> bool {
    let is_code = |name: &str| said.codes.iter().any(|code| code.eq_ignore_ascii_case(name));
    let about_tools = || {
        let param = said.param.as_deref().unwrap_or_default();
        param.starts_with("tools") || text.contains("tools[")
    };
    CODES.iter().any(|code| is_code(code) || text.contains(code))
        || (FIELD_CODES.iter().any(|code| is_code(code)) && !about_tools())
}

fn says(text: &str) -> bool {
    static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| compiled(&WORDINGS));
    PATTERNS.iter().any(|pattern| pattern.is_match(text))
}

fn is_about_media(text: &str) -> bool {
    ["audio", "image", "pdf", "video"].iter().any(|word| text.contains(word))
}

fn limit(text: &str) -> Option<u64> {
    static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| compiled(&LIMIT));
    number(&PATTERNS, text)
}

fn requested(text: &str) -> Option<u64> {
    static PATTERNS: LazyLock<Vec<Regex>> = LazyLock::new(|| compiled(&REQUESTED));
    number(&PATTERNS, text)
}

/// Returns the number that the first fitting pattern finds: the sum of its
/// groups. None is believed that no model could mean.
fn number(patterns: &[Regex], text: &str) -> Option<u64> {
    let found = patterns.iter().find_map(|pattern| pattern.captures(text))?;
    let mut numbers = found.iter().skip(1).flatten();
    let sum =
        numbers.try_fold(0_u64, |sum, group| sum.checked_add(group.as_str().parse().ok()?))?;
    (1..=1 << 40).contains(&sum).then_some(sum)
}

fn compiled(patterns: &[&str]) -> Vec<Regex> {
    // A test holds that each of them compiles.
    patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect()
}

/// Returns the text in lower case, without quotes, with single spaces, and with
/// numbers in digits alone.
fn plain(message: &str) -> String {
    let spaced = message.replace("\\n", " ").replace('\u{2019}', "'");
    let mut text = String::new();
    let mut chars = spaced.chars().take(MOST_CHARS).peekable();
    while let Some(c) = chars.next() {
        match c {
            '`' | '"' | '*' | '\\' => {}
            ',' | '_' | '\u{a0}' | '\u{202f}'
                if text.ends_with(|c: char| c.is_ascii_digit())
                    && chars.peek().is_some_and(char::is_ascii_digit) => {}
            c if c.is_whitespace() => {
                if !text.ends_with(' ') {
                    text.push(' ');
                }
            }
            c => text.extend(c.to_lowercase()),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_patterns_compile() {
        for pattern in WORDINGS.iter().chain(&LIMIT).chain(&REQUESTED) {
            assert!(Regex::new(pattern).is_ok(), "{pattern}");
        }
    }

    #[test]
    fn numbers_are_read_with_separators_and_never_overflow() {
        let limit = |said: &str| limit(&plain(said));
        assert_eq!(limit("Maximum context length is 1,048,576 tokens"), Some(1_048_576));
        assert_eq!(limit("maximum  context\nlength: 1_000_000"), Some(1_000_000));
        assert_eq!(limit("maximum context length is 0"), None);
        assert_eq!(limit("maximum context length is 99999999999999999999999"), None);
        let requested = |said: &str| requested(&plain(said));
        let most = u64::MAX;
        assert_eq!(requested(&format!("exceed context limit: {most} + {most} > 3")), None);
    }
}
