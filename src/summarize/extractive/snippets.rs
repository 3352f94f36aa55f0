//! Snippets: the shortest pieces of a line that show facts in their context.

use super::facts::Fact;

/// The longest snippet, in bytes.
pub(super) const LONGEST: usize = 140;

/// A piece of a line and which of its facts it shows.
pub(super) struct Snippet<'a, 'f> {
    pub(super) text: &'a str,
    pub(super) facts: &'f [Fact<'a>],
}

/// How much is shown around the facts.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Context {
    /// Nothing: the lead of the line says it.
    Bare,
    /// A few words.
    Words,
}

/// Cuts a line into snippets. `facts` are the line's, in order.
pub(super) fn snippets<'a, 'f>(
    line: &'a str,
    facts: &'f [Fact<'a>],
    context: Context,
) -> Vec<Snippet<'a, 'f>> {
    let near = if context == Context::Bare { 6 } else { 24 };
    let mut found = Vec::new();
    let mut rest = facts;
    while let Some(first) = rest.first() {
        let mut end = first.end();
        let together = rest
            .iter()
            .take_while(|fact| {
                let joins = fact.start <= end + near && fact.end() - first.start <= LONGEST;
                end = if joins { end.max(fact.end()) } else { end };
                joins
            })
            .count()
            .max(1);
        let (facts, others) = rest.split_at_checked(together).unwrap_or((rest, &[]));
        let (start, end) = match context {
            Context::Bare => (first.start, closed(line, first.start, end)),
            Context::Words => widen(line, facts, first.start, end),
        };
        if let Some(text) = line.get(start..end) {
            found.push(Snippet { text: text.trim(), facts });
        }
        rest = others;
    }
    found
}

/// Extends a range word by word, as far as they are short, until two words
/// stand beside the facts.
fn widen(line: &str, facts: &[Fact<'_>], start: usize, end: usize) -> (usize, usize) {
    let count = |text: &str| {
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1).count()
    };
    let own = facts.iter().map(|fact| count(fact.text)).min().unwrap_or_default();
    let (mut from, mut to) = (start, end);
    loop {
        let beside = line.get(from..to).map_or(0, count).saturating_sub(own);
        let (wider_from, wider_to) = (before(line, from, to), behind(line, from, to));
        if beside >= 2 || (wider_from, wider_to) == (from, to) {
            return (from, to);
        }
        if wider_from < from {
            from = wider_from;
        } else {
            to = wider_to;
        }
    }
}

/// Returns where the word before the range begins.
fn before(line: &str, from: usize, to: usize) -> usize {
    // Only as far as a word may go: a line may have no space in a megabyte.
    let mut start = from;
    let mut inside = false;
    for (at, c) in line.get(..from).unwrap_or_default().char_indices().rev() {
        if c.is_whitespace() && inside {
            return start;
        }
        if from - at > WORD || to - at > LONGEST {
            return from;
        }
        inside |= !c.is_whitespace();
        start = at;
    }
    start
}

/// Returns where the word behind the range ends.
fn behind(line: &str, from: usize, to: usize) -> usize {
    let mut end = to;
    let mut inside = false;
    for (at, c) in line.get(to..).unwrap_or_default().char_indices() {
        if c.is_whitespace() && inside {
            return end;
        }
        let next = to + at + c.len_utf8();
        if next - to > WORD || next - from > LONGEST {
            return to;
        }
        inside |= !c.is_whitespace();
        end = next;
    }
    end
}

/// The longest word that is added, with the space to it.
const WORD: usize = 24;

/// Returns the end moved behind the quotes and brackets that close what the
/// range opens.
fn closed(line: &str, start: usize, end: usize) -> usize {
    let opens = line.get(start..end).is_some_and(|text| text.contains(['(', '[', '"', '\'']));
    let behind = line.get(end..).filter(|_| opens).unwrap_or_default();
    let rest = behind.trim_start_matches(['\\', '"', ')', ']', '\''].as_slice());
    end + (behind.len() - rest.len()).min(4)
}
