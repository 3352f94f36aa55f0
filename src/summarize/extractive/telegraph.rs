//! Telegraphic form: a sentence without the words that carry nothing.

use super::{
    facts::facts,
    lexicon::Lexicon,
    words::{folded, is_dense, words},
};

/// How much is left out.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Form {
    /// Nothing.
    Full,
    /// Articles, auxiliaries, pronouns, fillers, courtesies.
    Light,
    /// Most prepositions as well.
    Tight,
}

/// Returns the sentence in that form. Negations, numerals and order are kept,
/// and so is every fact, letter by letter.
pub(super) fn telegraph(sentence: &str, lexicon: &Lexicon, form: Form) -> String {
    if form == Form::Full {
        return sentence.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    let mut kept = String::with_capacity(sentence.len());
    let mut gap = String::new();
    let mut end = 0;
    let mut facts = facts(sentence).peekable();
    for (start, word) in words(sentence) {
        while facts.next_if(|fact| fact.end() <= start).is_some() {}
        if start < end {
            continue;
        }
        let fact = facts.peek().filter(|fact| fact.start <= start);
        let (from, text) = fact.map_or((start, word), |fact| (fact.start.max(end), fact.text));
        gap.push_str(sentence.get(end..from).unwrap_or_default());
        end = from + text.len();
        let joined = gap.ends_with('-') && gap.len() == 1
            || sentence.get(end..).is_some_and(|rest| {
                rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(char::is_alphabetic))
            });
        if fact.is_some() || joined || !is_dropped(word, lexicon, form) {
            push_gap(&mut kept, &gap);
            kept.push_str(text);
            gap.clear();
        }
    }
    gap.push_str(sentence.get(end..).unwrap_or_default());
    kept.extend(gap.chars().filter(|c| "%€£¥°+)）?？".contains(*c)));
    balanced(&without_fillers(&kept, lexicon))
}

fn is_dropped(word: &str, lexicon: &Lexicon, form: Form) -> bool {
    // A capital inside makes a name (US, IT), and a dense script has no words
    // that can go one by one.
    if is_dense(word) || word.chars().skip(1).any(char::is_uppercase) {
        return false;
    }
    let plain = folded(word);
    if KEPT.contains(&&*plain) {
        return false;
    }
    lexicon.function.contains(&*plain)
        || form == Form::Tight
            && (lexicon.ties.contains(&*plain)
                || lexicon.english && word.starts_with(char::is_lowercase) && is_manner(&plain))
}

/// Function words that change what is said.
const KEPT: [&str; 6] = ["if", "must", "only", "or", "should", "unless"];

/// Returns true for an English adverb of manner, by its ending.
fn is_manner(word: &str) -> bool {
    const OTHERS: [&str; 14] = [
        "anomaly",
        "assembly",
        "barely",
        "butterfly",
        "daily",
        "family",
        "hardly",
        "italy",
        "monthly",
        "nearly",
        "rarely",
        "supply",
        "weekly",
        "yearly",
    ];
    word.len() > 5 && word.ends_with("ly") && !OTHERS.contains(&word)
}

/// Adds what stands between two words, reduced to one separator.
fn push_gap(kept: &mut String, gap: &str) {
    let mut space = false;
    let mut separated = false;
    for c in gap.chars() {
        match c {
            '"' | '“' | '”' | '‘' | '’' | '*' | '`' | '.' | '!' | '…' => {}
            ',' | ';' | ':' | '—' | '–' => {
                if !separated && !kept.is_empty() {
                    kept.push(if matches!(c, '—' | '–') { ',' } else { c });
                }
                separated = true;
                space = true;
            }
            c if c.is_whitespace() => space = true,
            c => {
                if space && !kept.is_empty() && !kept.ends_with(' ') {
                    kept.push(' ');
                }
                space = false;
                kept.push(c);
            }
        }
    }
    if space && !kept.is_empty() && !kept.ends_with(['(', ' ', '$', '（']) {
        kept.push(' ');
    }
}

/// Takes the phrases out that say nothing, the longest first.
fn without_fillers(text: &str, lexicon: &Lexicon) -> String {
    if lexicon.fillers.is_empty() {
        return text.to_owned();
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let fillers = lexicon.fillers.get(&first).into_iter().flatten();
        let filler =
            fillers.filter(|filler| rest.starts_with(**filler)).max_by_key(|filler| filler.len());
        let skipped = filler.map_or(first.len_utf8(), |filler| filler.len());
        if filler.is_none() {
            kept.push(first);
        }
        rest = rest.get(skipped..).unwrap_or_default();
    }
    kept
}

/// Takes brackets out where one of the pair or what was inside is gone.
fn balanced(text: &str) -> String {
    let text = text.replace("()", "").replace("( ", "(");
    let text = text.trim_matches([' ', ',', ';', ':', '，', '。', '、']);
    if text.matches('(').count() == text.matches(')').count() {
        return text.to_owned();
    }
    text.replace(['(', ')'], "")
}
