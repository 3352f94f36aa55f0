//! Words: where they are, and what they have in common.

use std::borrow::Cow;

use unicode_segmentation::{UnicodeSegmentation as _, UnicodeWordIndices};

/// Returns the words of a text with where they begin. In a script without
/// spaces every character is a word.
pub(super) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    Words { text, at: 0, run: None }
}

struct Words<'a> {
    text: &'a str,
    at: usize,
    /// The words of a stretch between dense characters, and where it begins.
    run: Option<(usize, UnicodeWordIndices<'a>)>,
}

impl<'a> Iterator for Words<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((start, run)) = &mut self.run {
                if let Some((at, word)) = run.next() {
                    return Some((*start + at, word));
                }
                self.run = None;
            }
            let (start, rest) = (self.at, self.text.get(self.at..)?);
            let first = rest.chars().next()?;
            if is_dense_char(first) {
                self.at += first.len_utf8();
                return Some((start, rest.get(..first.len_utf8())?));
            }
            let len = rest.find(is_dense_char).unwrap_or(rest.len());
            self.at += len;
            self.run = Some((start, rest.get(..len)?.unicode_word_indices()));
        }
    }
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
    let plain = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    if plain || is_dense(word) {
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
