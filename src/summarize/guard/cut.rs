//! Cuts a text that is too long where a sentence ends.

use unicode_segmentation::UnicodeSegmentation;

use crate::tokens::{TokenCounter, Tokens};

/// What stands where a text was cut.
pub(super) const MARK: &str = " […]";

/// Returns the text up to the end of its last whole sentence, marked; none
/// where there is no sentence end.
pub(super) fn at_sentence(text: &str) -> Option<String> {
    let ends = sentence_ends(text);
    // Behind the last end of a sentence lies what was cut off, unless the text
    // happens to end there.
    let whole = ends.last().filter(|end| **end == text.trim_end().len() && ends_well(text));
    let end = whole.or_else(|| ends.iter().rev().nth(1)).copied().filter(|end| *end > 0)?;
    marked(text, end)
}

/// Returns the text, or as many whole sentences of it as fit, marked. Where not
/// even one fits: as many characters as do.
pub(crate) fn to_tokens(text: &str, limit: Tokens, counter: &dyn TokenCounter) -> Option<String> {
    if counter.text(text) <= limit {
        return Some(text.to_owned());
    }
    let fits = |end: &usize| marked(text, *end).is_some_and(|cut| counter.text(&cut) <= limit);
    let longest = |ends: &[usize]| {
        // Counts grow with the text, but for a few characters around a cut.
        let mut at = ends.partition_point(fits);
        while at > 0 && !ends.get(at - 1).is_some_and(fits) {
            at -= 1;
        }
        at.checked_sub(1).and_then(|at| ends.get(at)).copied()
    };
    let end = longest(&sentence_ends(text)).or_else(|| {
        let ends: Vec<usize> =
            text.grapheme_indices(true).skip(1).map(|(start, _)| start).collect();
        longest(&ends)
    });
    marked(text, end?)
}

/// Where sentences end, lines and list items included, white space left out.
fn sentence_ends(text: &str) -> Vec<usize> {
    let sentences = text.split_sentence_bound_indices();
    let ends = sentences.map(|(start, sentence)| start + sentence.trim_end().len());
    let mut ends: Vec<usize> = ends.filter(|end| *end > 0).collect();
    ends.dedup();
    ends
}

fn ends_well(text: &str) -> bool {
    text.trim_end().ends_with(['.', '!', '?', '。', '！', '？', '।', '؟', '…', '"', '”', ')', '`'])
}

fn marked(text: &str, end: usize) -> Option<String> {
    let (kept, _) = text.split_at_checked(end)?;
    (!kept.trim().is_empty()).then(|| format!("{}{MARK}", kept.trim_end()))
}
