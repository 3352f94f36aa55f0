//! What was seen while a case was played.

use std::{ops::Range, sync::Arc, time::Duration};

use serde_json::Value;
use session_compaction::{Message, Report, SummarizeError};

use super::{crate_api, sent::Sent};

#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    /// Acknowledged messages that the host did not clear, in order.
    pub(crate) added: Vec<Added>,
    /// Added messages that the case itself destroyed in the store's file.
    pub(crate) destroyed: Vec<String>,
    pub(crate) contexts: Vec<BuiltContext>,
    pub(crate) histories: Vec<Texts>,
    pub(crate) archives: Vec<usize>,
    pub(crate) stats: Vec<Value>,
    pub(crate) logs: Vec<String>,
    pub(crate) reports: Vec<String>,
    pub(crate) applied: Vec<Applied>,
    pub(crate) errors: Vec<Failure>,
    pub(crate) forced: u64,
    /// Changes of the prefix: compactions, forces, clears.
    pub(crate) commits: usize,
    /// How often the manager was opened again.
    pub(crate) lives: usize,
    pub(crate) released: bool,
    pub(crate) estimates: Vec<Estimate>,
    pub(crate) latencies: Vec<Duration>,
    pub(crate) configs: Vec<Tried>,
    /// One list of keys each time that all keys were verified.
    pub(crate) keys: Vec<String>,
    pub(crate) verified: usize,
    /// What a step itself found wrong.
    pub(crate) problems: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Added {
    pub(crate) key: String,
    pub(crate) id: String,
    pub(crate) position: u64,
    pub(crate) source: String,
}

#[derive(Clone, Debug)]
pub(crate) struct BuiltContext {
    pub(crate) sent: Sent,
    pub(crate) commits: usize,
    pub(crate) life: usize,
    pub(crate) after_release: bool,
    /// Calls that had no result when it was built.
    pub(crate) open_calls: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Texts {
    pub(crate) text: String,
    pub(crate) after_release: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Applied {
    pub(crate) range: Range<u64>,
    pub(crate) tokens_before: u64,
    pub(crate) tokens_after: u64,
    /// How many calls the model had answered or begun by then.
    pub(crate) calls: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) kinds: Vec<&'static str>,
    pub(crate) text: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Estimate {
    /// `None` for the history.
    pub(crate) text: Option<String>,
    pub(crate) tokens: u64,
}

/// A configuration that was parsed.
#[derive(Clone, Debug)]
pub(crate) struct Tried {
    pub(crate) field: String,
    pub(crate) literal: String,
    pub(crate) from: &'static str,
    /// As JSON, or the error's text.
    pub(crate) result: Result<Value, String>,
}

impl Record {
    pub(crate) fn error(&mut self, error: &session_compaction::Error) {
        let failure = Failure { kinds: crate_api::error_kinds(error), text: with_sources(error) };
        self.errors.push(failure);
    }

    pub(crate) fn report(&mut self, report: &Report, calls: usize) {
        self.reports.push(report.to_string());
        match report {
            Report::Applied(done) => {
                self.commits += 1;
                self.applied.push(Applied {
                    range: done.range.clone(),
                    tokens_before: done.tokens_before,
                    tokens_after: done.tokens_after,
                    calls,
                });
            }
            Report::Failed(error) | Report::Rejected { why: error } => self.summarize_error(error),
            Report::Unavailable(error) => self.error(error),
            _ => {}
        }
    }

    fn summarize_error(&mut self, error: &SummarizeError) {
        let kinds = crate_api::summarize_error_kinds(error);
        self.errors.push(Failure { kinds, text: with_sources(error) });
    }

    /// Ids of calls in a session that have no result yet.
    pub(crate) fn open_calls(&self, key: &str) -> Vec<String> {
        let mut open = Vec::new();
        for added in self.added.iter().filter(|added| added.key == key) {
            let json: Value = serde_json::from_str(&added.source).unwrap_or_default();
            let calls = json["tool_calls"].as_array().into_iter().flatten();
            open.extend(calls.filter_map(|call| call["id"].as_str()).map(str::to_owned));
            if let Some(id) = json["tool_call_id"].as_str() {
                open.retain(|open| open != id);
            }
        }
        open
    }
}

/// A message as JSON, without what the crate's own form adds, and without the
/// whitespace between its members.
pub(crate) fn source_of(message: &Arc<Message>) -> String {
    let json = serde_json::to_string(&**message).unwrap_or_default();
    match json.rfind(",\"_session\":") {
        Some(at) => minified(&format!("{}}}", &json[..at])),
        None => minified(&json),
    }
}

pub(crate) fn id_of(message: &Message) -> String {
    message.id().map(ToString::to_string).unwrap_or_default()
}

/// Removes the whitespace outside of strings.
pub(crate) fn minified(json: &str) -> String {
    let (mut inside, mut escaped) = (false, false);
    let keeps = |c: &char| {
        let keep = inside || !c.is_ascii_whitespace();
        if *c == '"' && !escaped {
            inside = !inside;
        }
        escaped = inside && *c == '\\' && !escaped;
        keep
    };
    json.chars().filter(keeps).collect()
}

fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.extend([": ", &error.to_string()]);
        source = error.source();
    }
    text
}
