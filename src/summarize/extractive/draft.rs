//! A draft: everything that a summary could say, in lines and units.

use super::language::{Language, Section};

/// Units of one pool compete for one share of the budget.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Pool {
    Facts,
    /// Facts without a context.
    Index,
    Prose,
    Requests,
}

/// A line of the summary, which shows once one of its units is chosen.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) section: Section,
    /// Its place among the lines of the section.
    pub(super) at: usize,
    /// What it opens with: a file, a command, a speaker.
    pub(super) lead: String,
    /// What the lead covers.
    pub(super) concepts: Vec<u32>,
}

/// The least that is chosen: a sentence, a snippet. An empty text stands for
/// the line's lead alone.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) line: usize,
    pub(super) pool: Pool,
    pub(super) text: String,
    pub(super) concepts: Vec<u32>,
    pub(super) prior: f32,
}

#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) lines: Vec<Line>,
    /// In the order of their sources.
    pub(super) units: Vec<Unit>,
}

impl Draft {
    pub(super) fn add_line(&mut self, line: Line) -> usize {
        self.lines.push(line);
        self.lines.len() - 1
    }

    /// Writes the chosen units out, in the order of the draft.
    pub(super) fn render(&self, chosen: &[usize], language: Language) -> String {
        let mut chosen = chosen.to_vec();
        chosen.sort_unstable();
        let mut texts: Vec<Option<Vec<&str>>> = vec![None; self.lines.len()];
        for unit in chosen.iter().filter_map(|index| self.units.get(*index)) {
            if let Some(texts) = texts.get_mut(unit.line) {
                let texts = texts.get_or_insert_default();
                if !unit.text.is_empty() && !texts.contains(&unit.text.as_str()) {
                    texts.push(&unit.text);
                }
            }
        }
        let mut lines: Vec<(&Line, Vec<&str>)> =
            self.lines.iter().zip(texts).filter_map(|(line, texts)| Some((line, texts?))).collect();
        lines.sort_by_key(|(line, _)| (line.section, line.at));

        let mut summary = String::new();
        let mut section = None;
        for (line, texts) in lines {
            if section != Some(line.section) {
                section = Some(line.section);
                push_line(&mut summary, language.heading(line.section));
            }
            push_line(&mut summary, &line.lead);
            if !line.lead.is_empty() && !texts.is_empty() {
                summary.push_str(if line.section == Section::Files { ": " } else { " " });
            }
            summary.push_str(&texts.join(joint(line.section)));
        }
        summary
    }
}

fn push_line(summary: &mut String, text: &str) {
    if !summary.is_empty() {
        summary.push('\n');
    }
    summary.push_str(text);
}

/// What stands between the units of a line.
pub(super) const fn joint(section: Section) -> &'static str {
    match section {
        Section::Files => " · ",
        _ => "; ",
    }
}
