//! Is the answer a summary? What is not is never stored.

use super::{SummarizeError, Summary};
use crate::{
    context::fence,
    session::StoredSummary,
    tokens::{TokenCounter, Tokens},
};

/// Returns true where a reader would see nothing: white space, control
/// characters, zero-width characters, marks of byte order and direction.
pub(crate) fn is_blank(text: &str) -> bool {
    text.chars().all(|c| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c,
                '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
                | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
                | '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}'
                | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}')
    })
}

/// Refuses an answer without visible text.
pub(crate) fn check(summary: Summary) -> Result<Summary, SummarizeError> {
    if is_blank(&summary.text) { Err(SummarizeError::empty()) } else { Ok(summary) }
}

/// How many tokens a summary takes in a context, its fence included.
pub(crate) fn sent_tokens(
    summary: Option<&StoredSummary>,
    dropped: u64,
    counter: &dyn TokenCounter,
) -> Tokens {
    fence::block(summary, dropped).map_or_else(Tokens::default, |block| counter.text(&block))
}

#[cfg(test)]
mod tests {
    use super::is_blank;

    #[test]
    fn what_cannot_be_seen_is_blank() {
        for blank in ["", " \n\t ", "\u{200B}\u{FEFF}", "\u{2060}\u{00AD}", "\u{3164}", "\0\u{1b}"]
        {
            assert!(is_blank(blank), "{blank:?}");
        }
        for seen in ["a", " . ", "\u{200B}汉", "🎉"] {
            assert!(!is_blank(seen), "{seen:?}");
        }
    }
}
