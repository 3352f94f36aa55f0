//! Exact counts, by a model's own vocabulary.

use std::fmt;

use bpe_openai::Tokenizer;

use super::{TokenCounter, Tokens, model::Family};

/// Counts exactly what OpenAI's `tiktoken` counts, by its vocabularies
/// `o200k_base` and `cl100k_base`.
///
/// A vocabulary is loaded when the first text is counted, which takes some
/// tens of milliseconds, and shared by the whole process from then on. The
/// text of special tokens (`<|endoftext|>`) counts as any other text, as it
/// does for a provider where a user writes it.
///
/// Exact for the text alone: what a provider adds for roles and tools is
/// [estimated](TokenCounter::message_overhead), and learned from reported usage.
///
/// # Example
///
/// ```
/// use session_compaction::{Tiktoken, TokenCounter};
///
/// let counter = Tiktoken::for_model("gpt-5-mini").unwrap();
/// assert_eq!(counter.text("The quick brown fox jumps over the lazy dog.").count(), 10);
/// assert!(Tiktoken::for_model("claude-sonnet-4-5").is_none(), "its vocabulary is not published");
/// ```
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Tiktoken(Vocabulary);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Vocabulary {
    Cl100k,
    O200k,
}

impl Tiktoken {
    /// Creates a counter for a model by its name, with or without a provider
    /// in front (`openai/gpt-5`); none where the model has another vocabulary
    /// or is not known.
    #[must_use]
    pub fn for_model(name: &str) -> Option<Self> {
        match Family::of(name) {
            Family::Cl100k => Some(Self::cl100k()),
            Family::O200k => Some(Self::o200k()),
            Family::Any | Family::Claude => None,
        }
    }

    /// Creates a counter by `cl100k_base`: GPT-4 and GPT-3.5.
    #[must_use]
    pub const fn cl100k() -> Self {
        Self(Vocabulary::Cl100k)
    }

    /// Creates a counter by `o200k_base`: GPT-4o and all that came after it.
    #[must_use]
    pub const fn o200k() -> Self {
        Self(Vocabulary::O200k)
    }

    fn tokenizer(self) -> &'static Tokenizer {
        match self.0 {
            Vocabulary::Cl100k => bpe_openai::cl100k_base(),
            Vocabulary::O200k => bpe_openai::o200k_base(),
        }
    }
}

impl TokenCounter for Tiktoken {
    fn text(&self, text: &str) -> Tokens {
        Tokens::from_tokens(self.tokenizer().count(text) as u64)
    }
}

impl fmt::Debug for Tiktoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Vocabulary::Cl100k => "Tiktoken(cl100k_base)",
            Vocabulary::O200k => "Tiktoken(o200k_base)",
        })
    }
}
