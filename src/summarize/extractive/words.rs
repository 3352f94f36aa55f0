//! Words: where they are, and what they have in common.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation as _;

/// Returns the words of a text with where they begin. In a script without
/// spaces every character is a word.
pub(super) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.unicode_word_indices()
}

/// Returns true for a word of a script that is written without spaces, where
/// only pairs of neighbours mean something.
pub(super) fn is_dense(word: &str) -> bool {
    word.chars().next().is_some_and(is_dense_char)
}

pub(super) const fn is_dense_char(c: char) -> bool {
    matches!(
        c,
        '\u{0E00}'..='\u{0EFF}'
            | '\u{1000}'..='\u{109F}'
            | '\u{1780}'..='\u{17FF}'
            | '\u{3040}'..='\u{30FF}'
            | '\u{3400}'..='\u{4DBF}'
            | '\u{4E00}'..='\u{9FFF}'
            | '\u{20000}'..='\u{323AF}'
    )
}

/// Returns the word in lower case, with a plain apostrophe.
pub(super) fn folded(word: &str) -> Cow<'_, str> {
    if word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(word.to_lowercase().replace('’', "'"))
}

/// Returns what inflected forms of a word share, number words as digits.
pub(super) fn stem(folded: &str) -> &str {
    if let Some(digits) = number(folded) {
        return digits;
    }
    let word = folded.strip_suffix("'s").unwrap_or(folded);
    if !word.is_ascii() || word.len() <= 4 {
        return word;
    }
    for ending in ["ies", "ing", "ed", "es", "ly", "s"] {
        if let Some(stem) = word.strip_suffix(ending).filter(|stem| stem.len() >= 3) {
            return stem;
        }
    }
    word
}

fn number(word: &str) -> Option<&'static str> {
    Some(match word {
        "two" => "2",
        "three" => "3",
        "four" => "4",
        "five" => "5",
        "six" => "6",
        "seven" => "7",
        "eight" => "8",
        "nine" => "9",
        "ten" => "10",
        "eleven" => "11",
        "twelve" => "12",
        "thirteen" => "13",
        "fourteen" => "14",
        "fifteen" => "15",
        "sixteen" => "16",
        "seventeen" => "17",
        "eighteen" => "18",
        "nineteen" => "19",
        "twenty" => "20",
        "thirty" => "30",
        "forty" => "40",
        "fifty" => "50",
        "sixty" => "60",
        "seventy" => "70",
        "eighty" => "80",
        "ninety" => "90",
        "hundred" => "100",
        "thousand" => "1000",
        _ => return None,
    })
}
