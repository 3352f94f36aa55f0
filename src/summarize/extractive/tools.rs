//! Units from what tools were asked and what they answered.

use serde_json::Value;

use super::{
    build::{Builder, Source},
    draft::{Pool, Unit},
    facts::{Kind, facts},
    language::Section,
    prose::clip,
    snippets::{Context, LONGEST},
};
use crate::message::ToolCall;

/// The arguments that say what a call is about, the best first.
const SUBJECTS: [&str; 14] = [
    "file_path",
    "path",
    "filename",
    "file",
    "notebook_path",
    "command",
    "cmd",
    "script",
    "pattern",
    "query",
    "url",
    "description",
    "name",
    "id",
];

impl<'a> Builder<'a> {
    /// Adds a call: a line by its subject, and what else the arguments name.
    pub(super) fn add_call(&mut self, call: &'a ToolCall, source: &Source<'_>) {
        let subject = subject_of(&call.arguments);
        let first = subject.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        // A file keeps one line, whatever is done to it.
        let path = facts(first).next().is_some_and(|fact| {
            fact.text.len() == first.len() && matches!(fact.kind, Kind::Path | Kind::File)
        });
        let lead = if path {
            first.to_owned()
        } else {
            format!("{} {}", call.name, clip_at_space(first, LEAD))
        };
        let line = self.line_of(Section::Files, lead.trim(), source.at);
        self.mention_lead(line, lead.trim(), source);
        self.calls.insert(&call.id, line);
        // What wrote something is told apart from what only looked.
        let wrote = path && call.arguments.len() > first.len() + WRITTEN;
        let text = if wrote { call.name.clone() } else { String::new() };
        let unit = Unit { line, pool: Pool::Facts, text, concepts: Vec::new(), prior: 1.0 };
        self.draft.units.push(unit);
        // As they are stored, so that a snippet is found there again.
        for text in call.arguments.split("\\n").flat_map(|text| text.split("\\t")) {
            self.add_snippets(text, line, Context::Bare, source);
        }
    }

    /// Adds what a tool answered.
    pub(super) fn add_result(
        &mut self,
        call_id: &str,
        text: &str,
        failed: bool,
        source: &Source<'_>,
    ) {
        let line = match self.calls.get(call_id) {
            Some(line) => *line,
            None => self.line_of(Section::Files, "", source.at),
        };
        if failed {
            self.add_failure(text, source);
        }
        let json = text.trim_start().starts_with(['{', '[']);
        if let Some(value) = json.then(|| serde_json::from_str::<Value>(text).ok()).flatten() {
            for pairs in flatten(value) {
                self.add_snippets(&pairs, line, Context::Words, source);
            }
            return;
        }
        for text in text.lines() {
            self.add_snippets(without_gutter(text), line, Context::Words, source);
        }
    }

    fn add_failure(&mut self, text: &str, source: &Source<'_>) {
        let telling = |line: &&str| {
            let lower = line.to_lowercase();
            ["error", "fail", "exception", "denied", "not found"]
                .iter()
                .any(|word| lower.contains(word))
        };
        let first = text.lines().find(|line| !line.trim().is_empty());
        let Some(told) = text.lines().find(telling).or(first) else { return };
        let text = clip(told.trim(), LONGEST);
        let concepts = self.concepts_of(&text, source);
        let line = self.line_of(Section::State, "✗", source.at);
        let prior = source.recency;
        self.draft.units.push(Unit { line, pool: Pool::Prose, text, concepts, prior });
    }
}

/// Arguments this much longer than the path, in bytes, write something.
const WRITTEN: usize = 120;

/// The longest part of a command that a line opens with, in bytes.
const LEAD: usize = 30;

/// Returns the argument that says what a call is about.
fn subject_of(arguments: &str) -> String {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(arguments) else {
        return String::new();
    };
    let key = SUBJECTS.iter().find(|key| fields.get(**key).is_some_and(Value::is_string)).copied();
    let key = key.or_else(|| {
        let short = |value: &Value| value.as_str().is_some_and(|text| text.len() <= LONGEST);
        fields.iter().find(|(_, value)| short(value)).map(|(key, _)| key.as_str())
    });
    match key.map(str::to_owned).and_then(|key| fields.remove(&key)) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

/// Returns a line of `key=value` for each object.
fn flatten(value: Value) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open = vec![(String::new(), value)];
    while let Some((label, value)) = open.pop() {
        match value {
            Value::Object(fields) => {
                let mut pairs = Vec::new();
                let mut inner = Vec::new();
                for (key, value) in fields {
                    match value {
                        Value::Null => {}
                        Value::Array(_) | Value::Object(_) => inner.push((key, value)),
                        Value::String(text) => pairs.push(format!("{key}={text}")),
                        value => pairs.push(format!("{key}={value}")),
                    }
                }
                if !pairs.is_empty() {
                    lines.push(format!("{label} {}", pairs.join(" ")).trim().to_owned());
                }
                open.extend(inner.into_iter().rev());
            }
            Value::Array(values) => {
                open.extend(values.into_iter().rev().map(|value| (label.clone(), value)));
            }
            Value::String(text) => lines.extend(text.lines().map(str::to_owned)),
            value => lines.push(format!("{label} {value}").trim().to_owned()),
        }
    }
    lines
}

/// Returns the start of a command, cut where no path or name is.
fn clip_at_space(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let ends = text.match_indices(char::is_whitespace).map(|(at, _)| at);
    let end = ends.take_while(|end| *end <= most).last().unwrap_or_default();
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// Takes the line number off that a tool printed before a line of a file.
fn without_gutter(line: &str) -> &str {
    let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = rest.len() < line.trim_start().len();
    rest.strip_prefix(['→', '\t', '|']).filter(|_| numbered).unwrap_or(line)
}
