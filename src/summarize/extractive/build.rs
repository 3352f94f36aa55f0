//! Builds the draft from messages and from the summary that was there before.

use std::collections::{HashMap, HashSet};

use super::{
    concepts::Concepts,
    draft::{Draft, Line, Pool, Unit},
    facts::{Fact, Kind, facts},
    language::Section,
    lexicon::Lexicon,
    snippets::{Context, snippets},
    telegraph::Form,
};

/// Whose words they are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Who {
    Assistant,
    /// The arguments of a tool call: what the agent does.
    Call,
    /// The summary that was there before.
    Summary,
    Tool,
    User,
}

/// Where a text comes from.
pub(super) struct Source<'a> {
    pub(super) who: Who,
    pub(super) name: Option<&'a str>,
    pub(super) date: Option<&'a str>,
    /// Words between calls, which say less than an answer.
    pub(super) narration: bool,
    /// The message's place.
    pub(super) at: usize,
    /// From 1.8 for the newest message down to 0.8.
    pub(super) recency: f32,
}

impl Source<'_> {
    /// Tells sources apart.
    pub(super) fn number(&self) -> u32 {
        let at = u32::try_from(self.at).unwrap_or(u32::MAX);
        at.wrapping_mul(8).wrapping_add(self.who as u32)
    }

    /// What a mention of a fact counts here.
    pub(super) fn salience(&self) -> f32 {
        let who = match self.who {
            Who::Assistant => 2.0,
            Who::Call => 6.0,
            Who::Summary | Who::User => 8.0,
            Who::Tool => 0.6,
        };
        who * self.recency
    }
}

pub(super) struct Builder<'a> {
    pub(super) lexicon: Lexicon,
    pub(super) form: Form,
    /// Tools were called: facts count letter by letter.
    pub(super) agent: bool,
    /// Both user and assistant speak.
    pub(super) two_voices: bool,
    /// How many messages there are.
    pub(super) total: usize,
    pub(super) draft: Draft,
    pub(super) concepts: Concepts,
    /// Lines by section and lead.
    lines: HashMap<(Section, String), usize>,
    /// The line that the results of a call go to.
    pub(super) calls: HashMap<&'a str, usize>,
    /// The line that a fact was last seen for.
    homes: HashMap<u32, usize>,
    /// Snippets that are there already, by line.
    seen: HashSet<(usize, String)>,
}

impl Builder<'_> {
    pub(super) fn new(lexicon: Lexicon, form: Form, agent: bool) -> Self {
        Self {
            lexicon,
            form,
            agent,
            two_voices: false,
            total: 0,
            draft: Draft::default(),
            concepts: Concepts::default(),
            lines: HashMap::new(),
            calls: HashMap::new(),
            homes: HashMap::new(),
            seen: HashSet::new(),
        }
    }

    /// Returns the line with that lead, a new one where there is none.
    pub(super) fn line_of(&mut self, section: Section, lead: &str, at: usize) -> usize {
        if let Some(line) = self.lines.get(&(section, lead.to_owned())) {
            return *line;
        }
        let line = Line { section, at, lead: lead.to_owned(), concepts: Vec::new() };
        let line = self.draft.add_line(line);
        self.lines.insert((section, lead.to_owned()), line);
        line
    }

    /// Notes the facts of a line's lead, which the line then covers.
    pub(super) fn mention_lead(&mut self, line: usize, lead: &str, source: &Source<'_>) {
        for fact in facts(lead) {
            let found = self.mention(&fact, source);
            if let Some(line) = self.draft.lines.get_mut(line) {
                for id in found {
                    if !line.concepts.contains(&id) {
                        line.concepts.push(id);
                    }
                }
            }
        }
    }

    /// Notes a fact; of a path its last component as well.
    fn mention(&mut self, fact: &Fact<'_>, source: &Source<'_>) -> Vec<u32> {
        let mut ids = vec![self.concepts.mention(fact, source)];
        if let Some((_, base)) = fact.text.rsplit_once('/') {
            ids.extend(self.concepts.fact(base));
        }
        ids
    }

    /// Adds the snippets of a line of code, output or JSON.
    pub(super) fn add_snippets(
        &mut self,
        text: &str,
        line: usize,
        context: Context,
        source: &Source<'_>,
    ) {
        // What the lead says already is not said again.
        let lead = self.draft.lines.get(line).map_or("", |line| &line.lead).to_owned();
        let found: Vec<Fact<'_>> = facts(text).filter(|fact| !lead.contains(fact.text)).collect();
        for snippet in snippets(text, &found, context) {
            let mut concepts = Vec::new();
            for fact in snippet.facts {
                let found = self.mention(fact, source);
                self.homes.extend(found.first().map(|id| (*id, line)));
                concepts.extend(found);
            }
            // A number says nothing without its context.
            let telling = snippet.facts.iter().any(|fact| fact.kind != Kind::Number);
            let telling = telling || context == Context::Words;
            if !telling || !self.seen.insert((line, snippet.text.to_owned())) {
                continue;
            }
            let text = snippet.text.to_owned();
            self.draft.units.push(Unit { line, pool: Pool::Facts, text, concepts, prior: 1.0 });
        }
    }

    /// Adds every fact by itself, for what no snippet shows.
    pub(super) fn add_index(&mut self) {
        let rest = self.line_of(Section::Files, INDEX, usize::MAX);
        for (id, fact) in self.concepts.all_facts() {
            if !fact.contains(char::is_alphabetic) {
                continue;
            }
            let line = self.homes.get(&id).copied().unwrap_or(rest);
            let (text, concepts) = (fact.to_owned(), vec![id]);
            self.draft.units.push(Unit { line, pool: Pool::Index, text, concepts, prior: 1.0 });
        }
    }
}

/// The lead of the line that lists facts without a context.
pub(super) const INDEX: &str = "+";
