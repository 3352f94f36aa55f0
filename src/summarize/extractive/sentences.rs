//! Sentences of any script.

/// Abbreviations whose full stop ends no sentence.
const ABBREVIATIONS: [&str; 16] = [
    "mr", "mrs", "ms", "dr", "prof", "st", "vs", "e.g", "i.e", "fig", "approx", "no", "z.b", "bzw",
    "sr", "sra",
];

/// Returns the sentences of a text, trimmed, without empty ones. A sentence of
/// more than `longest` bytes is cut at commas and the like.
pub(super) fn sentences(text: &str, longest: usize) -> Vec<&str> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut rest = line;
        while let Some(end) = sentence_end(rest) {
            let (sentence, tail) = rest.split_at(end);
            push_pieces(sentence, longest, &mut found);
            rest = tail;
        }
        push_pieces(rest, longest, &mut found);
    }
    found
}

/// Returns where the first sentence ends, unless that is the end of the text.
fn sentence_end(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let always = matches!(c, '。' | '！' | '？' | '｡' | '؟' | '।' | '॥' | '۔');
        if !always && !matches!(c, '.' | '!' | '?' | '…') {
            continue;
        }
        let mut end = at + c.len_utf8();
        while let Some((_, next)) = chars.next_if(|(_, next)| is_closing(*next)) {
            end += next.len_utf8();
        }
        let spaced = chars.peek().is_some_and(|(_, next)| next.is_whitespace());
        let last_of_several = chars.peek().is_some();
        if last_of_several && (always || spaced && !(c == '.' && is_abbreviation(text.get(..at)))) {
            return Some(end);
        }
    }
    None
}

const fn is_closing(c: char) -> bool {
    matches!(
        c,
        '.' | '!'
            | '?'
            | '…'
            | '。'
            | '！'
            | '？'
            | '"'
            | '\''
            | '”'
            | '’'
            | '」'
            | '』'
            | '）'
            | ')'
            | ']'
            | '»'
    )
}

fn is_abbreviation(before: Option<&str>) -> bool {
    let word = before
        .and_then(|before| before.rsplit(|c: char| c.is_whitespace() || c == '(').next())
        .unwrap_or_default();
    let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    // A lone number is a list marker, which its sentence keeps.
    let marker = word.len() <= 2
        && before.is_some_and(|before| before.trim() == word)
        && word.bytes().all(|b| b.is_ascii_digit());
    initial || marker || ABBREVIATIONS.contains(&word.to_lowercase().as_str())
}

fn push_pieces<'a>(sentence: &'a str, longest: usize, found: &mut Vec<&'a str>) {
    let mut rest = sentence.trim();
    while rest.len() > longest {
        let Some(cut) = clause_end(rest, longest) else { break };
        let (piece, tail) = rest.split_at(cut);
        found.push(piece.trim());
        rest = tail.trim_start();
    }
    if rest.chars().any(char::is_alphanumeric) {
        found.push(rest);
    }
}

/// Returns the last clause boundary within `longest` bytes, or else the first
/// behind it.
fn clause_end(text: &str, longest: usize) -> Option<usize> {
    let mut best = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let end = at + c.len_utf8();
        let spaced = chars.peek().is_some_and(|(_, next)| next.is_whitespace());
        let boundary = matches!(c, '，' | '；' | '：' | '、' | '—' | '،' | '؛')
            || spaced && matches!(c, ',' | ';' | ':' | '–');
        let least = longest / 3;
        if boundary && end >= least && text.len() - end >= least {
            if end > longest && best.is_some() {
                break;
            }
            best = Some(end);
            if end > longest {
                break;
            }
        }
    }
    best
}
