//! Reads the summary that was there before, section by section.

use super::{
    build::{Builder, Source, Who},
    draft::{Line, Pool, SENTENCES, SNIPPETS, Unit},
    facts::facts,
    language::{Language, Section},
    prose::longest,
    sentences::sentences,
    telegraph::telegraph,
};

/// What was chosen before has proved its worth.
const PRIOR: f32 = 1.2;

impl Builder<'_> {
    /// Adds an earlier summary: one of ours as it is, any other as sentences.
    pub(super) fn add_summary(&mut self, summary: &str) {
        let source = Source {
            who: Who::Summary,
            name: None,
            date: None,
            narration: false,
            at: 0,
            recency: 0.6,
        };
        let mut section = None;
        for (at, text) in summary.lines().enumerate() {
            if let Some(next) = Language::section_of(text) {
                section = Some(next);
                continue;
            }
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            match section {
                Some(Section::Files) => self.add_old_file(text, at, &source),
                Some(section) => self.add_old_line(text, section, at, &source),
                None => {
                    for text in sentences(text, 200) {
                        self.add_old_line(text, Section::Facts, at, &source);
                    }
                }
            }
        }
    }

    fn add_old_file(&mut self, text: &str, at: usize, source: &Source<'_>) {
        let (lead, items) = text.split_once(": ").unwrap_or((text, ""));
        let line = self.line_of(Section::Files, lead, at);
        self.mention_lead(line, lead, source);
        let items = items.split(SNIPPETS).flat_map(names);
        // The lead alone is a choice too.
        for item in std::iter::once("").chain(items.filter(|item| !item.is_empty())) {
            let found: Vec<_> = facts(item).collect();
            let concepts = found.iter().map(|fact| self.concepts.mention(fact, source)).collect();
            let unit =
                Unit { line, pool: Pool::Facts, text: item.to_owned(), concepts, prior: PRIOR };
            self.draft.units.push(unit);
        }
    }

    fn add_old_line(&mut self, text: &str, section: Section, at: usize, source: &Source<'_>) {
        let (lead, text) = split_lead(text);
        let line = Line { section, at, lead: lead.to_owned(), concepts: Vec::new() };
        let line = self.draft.add_line(line);
        let who = if lead.ends_with(['A', ':', '✗']) { Who::Assistant } else { Who::User };
        let speaker = Source { who, ..*source };
        // The budget is tighter than when it was written: more goes by now.
        for text in text.split(SENTENCES).flat_map(|text| sentences(text, longest(text))) {
            let concepts = self.concepts_of(text, source);
            let prior = PRIOR * self.prior(&text.to_lowercase(), section, &speaker);
            let text = telegraph(text, &self.lexicon, self.form);
            if !text.is_empty() {
                self.draft.units.push(Unit { line, pool: Pool::Prose, text, concepts, prior });
            }
        }
    }
}

/// Parts the mark, date or speaker that a line opens with.
fn split_lead(text: &str) -> (&str, &str) {
    let dated = text.starts_with('[').then(|| text.find(']')).flatten().map_or(0, |at| at + 1);
    let rest = text.get(dated..).unwrap_or_default();
    let marked = ["✓ ", "✗ ", " U: ", " A: ", "U: ", "A: "]
        .iter()
        .find(|mark| rest.starts_with(**mark))
        .map_or(0, |mark| mark.len());
    let (lead, text) = text.split_at_checked(dated + marked).unwrap_or(("", text));
    (lead.trim(), text.trim())
}

/// Parts a run of names that were joined by spaces; a snippet stays whole.
fn names(item: &str) -> Vec<&str> {
    let words: Vec<&str> = item.split(' ').collect();
    let is_name =
        |word: &&str| facts(word).next().is_some_and(|fact| fact.text.len() == word.len());
    if words.iter().all(is_name) { words } else { vec![item] }
}
