//! Concepts: what a summary is asked to cover, and how much each is worth.

use std::collections::HashMap;

use super::{
    build::Source,
    facts::Fact,
    lexicon::Lexicon,
    words::{folded, is_dense, stem, words},
};

/// All words, pairs of neighbours and facts that were met, by number.
#[derive(Default)]
pub(super) struct Concepts {
    /// By the word as it stands; none for a function word.
    words: HashMap<Box<str>, Option<u32>>,
    stems: HashMap<Box<str>, u32>,
    pairs: HashMap<(u32, u32), u32>,
    facts: HashMap<Box<str>, u32>,
    entries: Vec<Entry>,
    sentences: u32,
}

struct Entry {
    kind: Kind,
    /// In how many sentences, or in how many sources for a fact.
    count: u32,
    /// The last sentence or source that was counted.
    seen: u32,
    /// Written with a capital where a sentence does not ask for it; without.
    capitals: u32,
    smalls: u32,
    /// Of a fact: the sum over its mentions.
    salience: f32,
}

#[derive(Clone, Copy)]
enum Kind {
    Date,
    Dense,
    Everyday,
    Fact,
    /// The sentence that a word stands in first.
    Introduced(u32),
    Number,
    Pair(u32, u32),
    Word,
}

/// What is mentioned often is needed again, but not as much as it is mentioned.
const SALIENCE_GROWTH: f32 = 0.75;

/// The same of words, whose rarity counts against it.
const RETURNS_GROWTH: f32 = 0.3;

impl Concepts {
    /// Returns the words and pairs of a sentence.
    pub(super) fn of_sentence(&mut self, sentence: &str, lexicon: &Lexicon) -> Vec<u32> {
        self.sentences += 1;
        let mut found = Vec::new();
        let mut last: Option<(u32, usize)> = None;
        let mut place = 0;
        for (start, word) in words(sentence) {
            place += 1;
            let plain = folded(word);
            let Some(id) = self.word(&plain, lexicon) else { continue };
            if self.entries.get(id as usize).is_some_and(|entry| entry.count == 0) {
                found.push(self.add(Kind::Introduced(id)));
            }
            self.count(id);
            let inner =
                start > 0 && !is_dense(word) && !opens(sentence.get(..start).unwrap_or_default());
            if let Some(entry) = self.entries.get_mut(id as usize).filter(|_| inner) {
                let capital = word.chars().next().is_some_and(char::is_uppercase);
                entry.capitals += u32::from(capital);
                entry.smalls += u32::from(!capital);
            }
            found.push(id);
            // One function word may stand between: "steam wand of brass".
            if let Some((before, _)) = last.filter(|(_, at)| place - at <= 2) {
                let pair = self.pair(before, id);
                self.count(pair);
                found.push(pair);
            }
            last = Some((id, place));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Notes that a fact was mentioned, and returns it. However often one source
    /// says it, it counts once.
    pub(super) fn mention(&mut self, fact: &Fact<'_>, source: &Source<'_>) -> u32 {
        let known = self.facts.get(fact.text).copied();
        let id = known.unwrap_or_else(|| {
            let id = self.add(Kind::Fact);
            self.facts.insert(fact.text.into(), id);
            id
        });
        if let Some(entry) = self.entries.get_mut(id as usize) {
            let by = source.number();
            if entry.count == 0 || entry.seen != by {
                entry.count += 1;
                entry.seen = by;
                entry.salience += source.salience() * fact.kind.weight();
            }
        }
        id
    }

    /// Returns the facts with their numbers, in the order of their first mention.
    pub(super) fn all_facts(&self) -> Vec<(u32, &str)> {
        let mut facts: Vec<_> = self.facts.iter().map(|(text, id)| (*id, &**text)).collect();
        facts.sort_unstable();
        facts
    }

    /// Returns the number of a fact that was mentioned.
    pub(super) fn fact(&self, text: &str) -> Option<u32> {
        self.facts.get(text).copied()
    }

    /// Returns the worth of each concept, words times `words`.
    pub(super) fn weights(&self, words: f32) -> Vec<f32> {
        (0..self.entries.len()).map(|id| self.weight(id, words)).collect()
    }

    /// Returns what another mention of each concept is worth against the one
    /// before: of a fact nearly nothing, since it is there letter by letter.
    pub(super) fn repeats(&self) -> Vec<f32> {
        self.entries
            .iter()
            .map(|entry| if matches!(entry.kind, Kind::Fact) { 0.05 } else { 0.2 })
            .collect()
    }

    fn weight(&self, id: usize, words: f32) -> f32 {
        let Some(entry) = self.entries.get(id) else { return 0.0 };
        match entry.kind {
            Kind::Fact => entry.salience.powf(SALIENCE_GROWTH),
            // Where something is spoken of that comes up again, it is told what
            // or who it is.
            Kind::Introduced(word) => match self.entries.get(word as usize) {
                Some(word) if word.count > 1 => words * self.rarity(word) * self.class_weight(word),
                _ => 0.0,
            },
            _ => {
                #[expect(clippy::cast_precision_loss, reason = "a logarithm follows")]
                let returns = (1.0 + (entry.count.max(1) as f32).ln()).powf(RETURNS_GROWTH);
                words * self.rarity(entry) * returns * self.class_weight(entry)
            }
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a logarithm follows")]
    fn rarity(&self, entry: &Entry) -> f32 {
        (1.0 + self.sentences as f32 / entry.count.max(1) as f32).ln()
    }

    fn class_weight(&self, entry: &Entry) -> f32 {
        let name = entry.capitals > 0 && 2 * entry.capitals >= 3 * entry.smalls;
        match entry.kind {
            Kind::Number => 5.0,
            Kind::Date => 3.2,
            _ if name => 5.0,
            Kind::Dense => 0.25,
            Kind::Everyday => 0.3,
            Kind::Fact | Kind::Introduced(_) | Kind::Word => 1.0,
            Kind::Pair(one, two) => {
                let of = |id: u32| self.entries.get(id as usize);
                match (of(one), of(two)) {
                    (
                        Some(Entry { kind: Kind::Dense, .. }),
                        Some(Entry { kind: Kind::Dense, .. }),
                    ) => {
                        // A pair that comes up again is a word, most likely.
                        if entry.count > 1 { 1.0 } else { 0.6 }
                    }
                    (Some(one), Some(two)) => {
                        0.9 * self.plain_weight(one).max(self.plain_weight(two))
                    }
                    _ => 0.0,
                }
            }
        }
    }

    fn plain_weight(&self, entry: &Entry) -> f32 {
        if let Kind::Pair(..) = entry.kind { 0.0 } else { self.class_weight(entry) }
    }

    /// Returns the number of a word, which its inflected forms share.
    fn word(&mut self, plain: &str, lexicon: &Lexicon) -> Option<u32> {
        if let Some(known) = self.words.get(plain) {
            return *known;
        }
        let function = lexicon.function.contains(plain) || lexicon.ties.contains(plain);
        let id = (!function).then(|| self.stem(plain, lexicon));
        self.words.insert(plain.into(), id);
        id
    }

    fn stem(&mut self, plain: &str, lexicon: &Lexicon) -> u32 {
        let stem = stem(plain);
        if let Some(id) = self.stems.get(stem) {
            return *id;
        }
        let kind = if stem.bytes().any(|byte| byte.is_ascii_digit()) {
            Kind::Number
        } else if lexicon.dates.contains(plain) {
            Kind::Date
        } else if is_dense(plain) {
            Kind::Dense
        } else if lexicon.common.contains(plain) || lexicon.common.contains(stem) {
            Kind::Everyday
        } else {
            Kind::Word
        };
        let id = self.add(kind);
        self.stems.insert(stem.into(), id);
        id
    }

    fn pair(&mut self, one: u32, two: u32) -> u32 {
        if let Some(id) = self.pairs.get(&(one, two)) {
            return *id;
        }
        let id = self.add(Kind::Pair(one, two));
        self.pairs.insert((one, two), id);
        id
    }

    fn add(&mut self, kind: Kind) -> u32 {
        let id = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        self.entries.push(Entry { kind, count: 0, seen: 0, capitals: 0, smalls: 0, salience: 0.0 });
        id
    }

    fn count(&mut self, id: u32) {
        let sentence = self.sentences;
        if let Some(entry) =
            self.entries.get_mut(id as usize).filter(|entry| entry.seen != sentence)
        {
            entry.seen = sentence;
            entry.count += 1;
        }
    }
}

/// Returns true where a capital is due behind this text.
fn opens(before: &str) -> bool {
    before.trim_end().ends_with(['.', '!', '?', ':', '"', '“', '‘', '('])
}
