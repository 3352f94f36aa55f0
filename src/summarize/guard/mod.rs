//! Is the answer a summary? What is not is never stored.

mod answer;
mod cut;
mod refusal;
#[cfg(test)]
mod tests;

pub(crate) use self::answer::{Rules, read};
use self::refusal::is_refusal;
use super::{SummarizeError, Summary, error::ANOTHER};
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

/// Refuses what no summarizer may give: a text that cannot be seen, and one
/// that says that there is none.
pub(crate) fn check(summary: Summary) -> Result<Summary, SummarizeError> {
    if is_blank(&summary.text) {
        return Err(SummarizeError::empty());
    }
    if is_refusal(&summary.text, &[]) {
        let error = SummarizeError::refused("the answer is a refusal, not a summary");
        return Err(error.advising(ANOTHER));
    }
    Ok(summary)
}

/// How many tokens a summary takes in a context, its fence included.
pub(crate) fn sent_tokens(
    summary: Option<&StoredSummary>,
    dropped: u64,
    counter: &dyn TokenCounter,
) -> Tokens {
    fence::block(summary, dropped).map_or_else(Tokens::default, |block| counter.text(&block))
}
