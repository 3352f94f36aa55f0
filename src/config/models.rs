//! Context windows of the usual models, by the beginning of their names.

/// Tokens, as the vendors publish them. The longest beginning that fits wins.
const WINDOWS: [(&str, u64); 73] = [
    ("chatgpt-4o", 128_000),
    ("claude", 200_000),
    ("claude-2.0", 100_000),
    ("claude-instant", 100_000),
    ("codestral", 32_768),
    ("command-r", 128_000),
    ("deepseek", 65_536),
    ("deepseek-chat", 131_072),
    ("deepseek-r1", 131_072),
    ("deepseek-reasoner", 131_072),
    ("deepseek-v3", 131_072),
    ("gemini", 32_768),
    ("gemini-1.5", 1_048_576),
    ("gemini-1.5-pro", 2_097_152),
    ("gemini-2.0", 1_048_576),
    ("gemini-2.5", 1_048_576),
    ("gemini-2.5-flash-image", 32_768),
    ("gemini-3", 1_048_576),
    ("gemini-flash-latest", 1_048_576),
    ("gemini-pro-latest", 1_048_576),
    ("gemma-2", 8_192),
    ("gemma-3", 32_768),
    ("gemma2", 8_192),
    ("gemma3", 32_768),
    ("glm-4.5", 131_072),
    ("glm-4.6", 200_000),
    ("gpt-3.5-turbo", 16_385),
    ("gpt-35-turbo", 16_385),
    ("gpt-4", 8_192),
    ("gpt-4-0125", 128_000),
    ("gpt-4-1106", 128_000),
    ("gpt-4-32k", 32_768),
    ("gpt-4-turbo", 128_000),
    ("gpt-4-vision", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4.5", 128_000),
    ("gpt-4o", 128_000),
    ("gpt-5", 400_000),
    ("gpt-5-chat", 128_000),
    ("gpt-oss", 131_072),
    ("grok-3", 131_072),
    ("grok-4", 256_000),
    ("kimi-k2", 131_072),
    ("llama-2", 4_096),
    ("llama-3", 8_192),
    ("llama-3.1", 131_072),
    ("llama-3.2", 131_072),
    ("llama-3.3", 131_072),
    ("llama-4", 131_072),
    ("llama2", 4_096),
    ("llama3", 8_192),
    ("llama3-1", 131_072),
    ("llama3-2", 131_072),
    ("llama3-3", 131_072),
    ("llama3.1", 131_072),
    ("llama3.2", 131_072),
    ("llama3.3", 131_072),
    ("llama4", 131_072),
    ("ministral", 131_072),
    ("mistral", 32_768),
    ("mistral-large", 131_072),
    ("mistral-medium", 131_072),
    ("mistral-nemo", 131_072),
    ("mixtral-8x22b", 65_536),
    ("mixtral-8x7b", 32_768),
    ("o1", 200_000),
    ("o1-mini", 128_000),
    ("o1-preview", 128_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
    ("qwen2.5", 32_768),
    ("qwen3", 32_768),
    ("qwen3-coder", 262_144),
];

/// Returns the window of a model, or `None` for one that is not known.
///
/// A provider's prefix ends with a slash, a colon or a dot: `openai/gpt-4o`,
/// `ft:gpt-4o:acme`, `us.anthropic.claude-3-haiku`.
pub(crate) fn context_window(name: &str) -> Option<u64> {
    let name = name.trim().to_ascii_lowercase();
    let mut rest = name.as_str();
    loop {
        let bare = rest.strip_prefix("meta-").unwrap_or(rest);
        let known = WINDOWS.iter().filter(|(start, _)| begins(bare, start));
        if let Some((_, window)) = known.max_by_key(|(start, _)| start.len()) {
            return Some(*window);
        }
        (_, rest) = rest.split_once(['/', ':', '.'])?;
    }
}

/// Whether a name begins with these whole words: `gpt-4` begins `gpt-4-0613`,
/// not `gpt-4o`.
fn begins(name: &str, start: &str) -> bool {
    name.strip_prefix(start)
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_usual_names() {
        for (name, window) in [
            ("gpt-4o", 128_000),
            ("gpt-4o-mini-2024-07-18", 128_000),
            ("gpt-4-0613", 8_192),
            ("GPT-4.1-nano", 1_047_576),
            ("openai/gpt-5.1", 400_000),
            ("gpt-5-mini", 400_000),
            ("ft:gpt-4o-mini:acme::id", 128_000),
            ("o3-mini", 200_000),
            ("o4-mini", 200_000),
            ("claude-sonnet-4-5", 200_000),
            ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", 200_000),
            ("models/gemini-2.5-pro", 1_048_576),
            ("gemini-1.5-pro-002", 2_097_152),
            ("meta-llama/Llama-3.1-8B-Instruct", 131_072),
            ("Meta-Llama-3-8B", 8_192),
            ("llama3.3:70b", 131_072),
            ("meta.llama3-1-70b-instruct-v1:0", 131_072),
            ("Qwen/Qwen2.5-72B-Instruct", 32_768),
            ("qwen3-coder-plus", 262_144),
            ("deepseek-chat", 131_072),
            ("mistral-large-latest", 131_072),
        ] {
            assert_eq!(context_window(name), Some(window), "{name}");
        }
    }

    #[test]
    fn does_not_guess() {
        for name in ["", "o30", "gpt-40", "gpt", "my-gpt-4o", "///", "claudette", "\u{1F680}"] {
            assert_eq!(context_window(name), None, "{name}");
        }
    }

    #[test]
    fn every_entry_is_found_under_its_own_name() {
        for (start, window) in WINDOWS {
            assert_eq!(context_window(start), Some(window), "{start}");
        }
    }
}
