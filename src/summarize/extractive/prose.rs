//! Units from what people and models say.

use super::{
    build::{Builder, Source, Who},
    draft::{Line, Pool, Unit},
    facts::facts,
    language::Section,
    lexicon::Lexicon,
    sentences::sentences,
    snippets::Context,
    telegraph::telegraph,
    words::{folded, is_dense, is_dense_char, words},
};

/// Sentences above this many bytes are cut into clauses.
const LONGEST_SENTENCE: usize = 75;

/// .. or this many where a character says as much as a syllable or a word.
const LONGEST_DENSE_SENTENCE: usize = 40;

/// What people say of their life and wishes counts so much more than what
/// they are answered.
const STATED: f32 = 3.0;

/// The most of a request that is quoted, in bytes.
const LONGEST_REQUEST: usize = 240;

impl Builder<'_> {
    /// Adds what someone said, sentence by sentence.
    pub(super) fn add_prose(&mut self, text: &str, source: &Source<'_>) {
        // The date is told where the text needs it: "yesterday" next to its day.
        let relative = |(_, word): (usize, &str)| self.lexicon.dates.contains(&*folded(word));
        let date = source.date.filter(|_| words(text).any(relative));
        let source = &Source { date, ..*source };
        let mut in_code = false;
        let mut lines: Vec<(Section, usize)> = Vec::new();
        for paragraph in text.lines() {
            if paragraph.trim_start().starts_with("```") {
                in_code = !in_code;
            } else if in_code {
                self.add_code(paragraph, source);
            } else if !is_markup(paragraph) {
                for sentence in sentences(paragraph, longest(paragraph)) {
                    self.add_sentence(sentence, source, &mut lines);
                }
            }
        }
    }

    /// Adds what the user asked for as a whole, clipped, beside its sentences.
    pub(super) fn add_request(&mut self, text: &str, source: &Source<'_>, answered: bool) {
        let plain: Vec<&str> =
            text.lines().filter(|line| !is_markup(line)).flat_map(str::split_whitespace).collect();
        let request = clip(&plain.join(" "), LONGEST_REQUEST);
        if !request.chars().any(char::is_alphanumeric) {
            return;
        }
        let concepts = self.concepts_of(&request, source);
        // Open ones first.
        let (lead, at) = if answered { ("✓", source.at + self.total) } else { ("", source.at) };
        let line = self.draft.add_line(Line {
            section: Section::Requests,
            at,
            lead: lead.into(),
            concepts: Vec::new(),
        });
        // A word or two ("continue") ask for nothing that a reader could use.
        let brief =
            if request.split_whitespace().count() < 3 && request.len() < 20 { 0.1 } else { 1.0 };
        let prior = brief * if answered { source.recency } else { 4.0 };
        let unit = Unit { line, pool: Pool::Requests, text: request, concepts, prior };
        self.draft.units.push(unit);
    }

    fn add_sentence(
        &mut self,
        sentence: &str,
        source: &Source<'_>,
        lines: &mut Vec<(Section, usize)>,
    ) {
        let sentence = sentence.trim_start_matches(['-', '*', '#', '>', '•', ' ', '|'].as_slice());
        let text = telegraph(sentence, &self.lexicon, self.form);
        if Section::is_heading(&text) {
            return;
        }
        let concepts = self.concepts_of(sentence, source);
        if text.is_empty() || concepts.is_empty() {
            return;
        }
        let lower = sentence.to_lowercase();
        let section = section_of(&lower, source.who, &self.lexicon);
        let known = lines.iter().find(|(other, _)| *other == section).map(|(_, line)| *line);
        let line = known.unwrap_or_else(|| {
            let lead = self.lead_of(source);
            let line = Line { section, at: source.at, lead, concepts: Vec::new() };
            let line = self.draft.add_line(line);
            lines.push((section, line));
            line
        });
        let prior = self.prior(&lower, section, source);
        self.draft.units.push(Unit { line, pool: Pool::Prose, text, concepts, prior });
    }

    fn add_code(&mut self, code: &str, source: &Source<'_>) {
        let key = self.lead_of(source);
        let line = self.line_of(Section::Facts, &key, source.at);
        self.add_snippets(code, line, Context::Words, source);
    }

    /// Returns the words of a text and the facts in it, which are noted.
    pub(super) fn concepts_of(&mut self, text: &str, source: &Source<'_>) -> Vec<u32> {
        let mut concepts = self.concepts.of_sentence(text, &self.lexicon);
        if self.agent {
            concepts.extend(facts(text).map(|fact| self.concepts.mention(&fact, source)));
            concepts.sort_unstable();
            concepts.dedup();
        }
        concepts
    }

    /// Who speaks and when, where a reader could not tell otherwise.
    fn lead_of(&self, source: &Source<'_>) -> String {
        let who = match (source.name, source.who) {
            (Some(name), _) => format!("{name}:"),
            (None, Who::Assistant) if self.two_voices => "A:".into(),
            _ => String::new(),
        };
        match (source.date, who.is_empty()) {
            (Some(date), true) => format!("[{date}]"),
            (Some(date), false) => format!("[{date}] {who}"),
            (None, _) => who,
        }
    }

    pub(super) fn prior(&self, lower: &str, section: Section, source: &Source<'_>) -> f32 {
        let mut prior = 1.0;
        if source.who != Who::User && lower.ends_with(['?', '？', '؟']) {
            // What the user asks names what matters to her; who answers asks
            // to be polite, or to go on.
            prior *= 0.35;
        }
        let opening = words(lower).next().map_or("", |(_, word)| word);
        let courtesy = self.lexicon.courtesies.contains(&*folded(opening));
        if courtesy && lower.chars().count() < if is_dense(opening) { 8 } else { 90 } {
            prior *= 0.5;
        }
        let of_oneself =
            words(lower).any(|(_, word)| self.lexicon.speaker.contains(&*folded(word)));
        prior *= match source.who {
            Who::User if self.agent => 1.3,
            Who::User => STATED,
            // Who speaks of herself is a person too, whatever her role.
            Who::Assistant if of_oneself && !self.agent => STATED,
            _ => 1.0,
        };
        if source.who == Who::User && of_oneself {
            prior *= 1.3;
        }
        if source.narration {
            prior *= 0.4;
        }
        if section == Section::Decisions {
            prior *= 1.2;
        }
        if self.agent {
            // A few words say less than a file's name.
            let brief = if words(lower).take(5).count() < 5 { 0.3 } else { 1.0 };
            return prior * source.recency * brief;
        }
        prior
    }
}

/// Which part of the summary a sentence in lower case belongs to.
fn section_of(lower: &str, who: Who, lexicon: &Lexicon) -> Section {
    let has = |cues: &[&str]| cues.iter().any(|cue| lower.contains(cue));
    let asks = lower.ends_with(['?', '？', '؟']) || has(&lexicon.requests);
    if who == Who::User && asks {
        Section::Requests
    } else if has(&lexicon.decisions) {
        Section::Decisions
    } else if who == Who::Assistant && has(&lexicon.states) {
        Section::State
    } else if who == Who::Assistant && has(&lexicon.findings) {
        Section::Findings
    } else {
        Section::Facts
    }
}

/// Returns the length in bytes above which a sentence is cut.
pub(super) fn longest(text: &str) -> usize {
    let dense = text.chars().filter(|c| is_dense_char(*c)).count();
    if dense * 6 > text.len() { LONGEST_DENSE_SENTENCE } else { LONGEST_SENTENCE }
}

/// A line that is nothing but tags or rules.
fn is_markup(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('<') && line.ends_with('>')
        || line.starts_with('[') && line.ends_with(']')
        || !line.chars().any(char::is_alphanumeric)
}

/// Returns the start of a text, cut behind a word.
pub(super) fn clip(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = words(text)
        .map(|(start, word)| start + word.len())
        .take_while(|end| *end <= most)
        .last()
        .unwrap_or_default();
    format!("{}…", text.get(..end).unwrap_or_default())
}
