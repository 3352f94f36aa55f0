//! A draft: everything that a summary could say, in lines and units.

use std::collections::{HashMap, HashSet};

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
        let mut seen = HashSet::new();
        for unit in chosen.iter().filter_map(|index| self.units.get(*index)) {
            if let Some(texts) = texts.get_mut(unit.line) {
                let texts = texts.get_or_insert_default();
                if !unit.text.is_empty() && seen.insert((unit.line, &unit.text)) {
                    texts.push(&unit.text);
                }
            }
        }
        let mut lines: Vec<(&Line, Vec<&str>)> =
            self.lines.iter().zip(texts).filter_map(|(line, texts)| Some((line, texts?))).collect();
        lines.sort_by_key(|(line, _)| (line.section, line.at));
        write(&gathered(lines), language)
    }
}

/// Gathers files of one folder that nothing is said about: `src/: a.rs b.rs`.
fn gathered<'a>(lines: Vec<(&'a Line, Vec<&'a str>)>) -> Vec<(Section, &'a str, String)> {
    let mut folders: HashMap<&str, Vec<&str>> = HashMap::new();
    for (line, _) in
        lines.iter().filter(|(line, texts)| texts.is_empty() && line.section == Section::Files)
    {
        if let Some((folder, file)) = split_path(&line.lead) {
            folders.entry(folder).or_default().push(file);
        }
    }
    let mut found = Vec::with_capacity(lines.len());
    for (line, texts) in lines {
        let path =
            split_path(&line.lead).filter(|_| texts.is_empty() && line.section == Section::Files);
        let files = path.and_then(|(folder, file)| Some((folder, file, folders.get(folder)?)));
        match files.filter(|(_, _, files)| files.len() > 1) {
            Some((folder, file, files)) if files.first() == Some(&file) => {
                found.push((line.section, folder, files.join(" ")));
            }
            Some(_) => {}
            None => found.push((line.section, line.lead.as_str(), joined(line.section, &texts))),
        }
    }
    found
}

/// Parts a lead that is a file's path behind its last slash.
fn split_path(lead: &str) -> Option<(&str, &str)> {
    let at = lead.rfind('/').filter(|_| !lead.contains(char::is_whitespace))?;
    lead.split_at_checked(at + 1).filter(|(_, file)| !file.is_empty())
}

fn write(lines: &[(Section, &str, String)], language: Language) -> String {
    let mut summary = String::new();
    let mut last = None;
    for (section, lead, text) in lines {
        if last != Some(*section) {
            last = Some(*section);
            push_line(&mut summary, language.heading(*section));
        }
        push_line(&mut summary, lead);
        if !lead.is_empty() && !text.is_empty() {
            summary.push_str(if *section == Section::Files { ": " } else { " " });
        }
        summary.push_str(text);
    }
    summary
}

fn push_line(summary: &mut String, text: &str) {
    if !summary.is_empty() {
        summary.push('\n');
    }
    summary.push_str(text);
}

fn joined(section: Section, texts: &[&str]) -> String {
    let mut line = String::new();
    let mut last = "";
    for text in texts {
        if !line.is_empty() {
            line.push_str(joint(section, last, text));
        }
        line.push_str(text);
        last = text;
    }
    line
}

/// What stands between two units of a line: names need no more than a space.
pub(super) fn joint(section: Section, one: &str, other: &str) -> &'static str {
    match section {
        Section::Files if is_bare(one) && is_bare(other) => " ",
        Section::Files => SNIPPETS,
        _ => SENTENCES,
    }
}

/// Between snippets, and between sentences.
pub(super) const SNIPPETS: &str = " · ";
pub(super) const SENTENCES: &str = "; ";

fn is_bare(text: &str) -> bool {
    !text.contains(char::is_whitespace)
}
