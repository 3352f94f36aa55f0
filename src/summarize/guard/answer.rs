//! From a model's answer to the text of a summary, or to what is wrong with it.

use super::{cut, is_blank, refusal::is_refusal};
use crate::{
    provider::{ChatResponse, FinishReason},
    summarize::{SummarizeError, error::ANOTHER},
    tokens::{TokenCounter, Tokens},
};

/// What an answer must be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    /// What is longer is cut.
    pub(crate) max_tokens: u64,
    /// What must stand in it, letter by letter.
    pub(crate) headings: &'a [String],
    /// Openings that make it a refusal, beside the known ones.
    pub(crate) refusals: &'a [String],
    pub(crate) counter: &'a dyn TokenCounter,
}

/// Reads the summary out of an answer. What the model thought is never part of
/// it, and neither is a word of the answer part of the error.
pub(crate) fn read(response: &ChatResponse, rules: Rules<'_>) -> Result<String, SummarizeError> {
    if response.refusal.as_ref().is_some_and(|refusal| !is_blank(refusal)) {
        return Err(refused("the model refused to summarize"));
    }
    if response.tool_calls > 0 {
        return Err(unusable("the model called a tool instead of summarizing"));
    }
    match &response.finish_reason {
        FinishReason::Stop | FinishReason::Length => {}
        FinishReason::ContentFilter => return Err(refused("a content filter cut the answer off")),
        FinishReason::ToolCalls => return Err(unusable("the model wanted to call a tool")),
        FinishReason::Other(_) => return Err(unusable("the answer ended for an unknown reason")),
    }
    let text = without_thoughts(&response.text).trim();
    if is_blank(text) {
        return Err(SummarizeError::empty());
    }
    if is_refusal(text, rules.refusals) {
        return Err(refused("the answer is a refusal, not a summary"));
    }
    if let Some(missing) = rules.headings.iter().find(|heading| !text.contains(heading.as_str())) {
        return Err(unusable(format!("the answer lacks the heading {missing}")));
    }
    let limit = Tokens::from_tokens(rules.max_tokens);
    let whole = match response.finish_reason {
        FinishReason::Length => cut::at_sentence(text),
        _ => Some(text.to_owned()),
    };
    whole.and_then(|text| cut::to_tokens(&text, limit, rules.counter)).ok_or_else(|| {
        SummarizeError::unusable("the answer was cut off in its first sentence")
            .advising("raise `summary_max_tokens`")
    })
}

fn refused(what: &str) -> SummarizeError {
    SummarizeError::refused(what).advising(ANOTHER)
}

fn unusable(what: impl Into<String>) -> SummarizeError {
    SummarizeError::unusable(what).advising(ANOTHER)
}

/// Takes a thinking block off the beginning. One that is not closed takes the
/// whole text with it. Some servers swallow the tag that opens it: one that
/// closes it then stands alone on its line. Other tags are quotations and stay.
fn without_thoughts(text: &str) -> &str {
    let start = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{FEFF}');
    for (open, close) in [("<think>", "</think>"), ("<thinking>", "</thinking>")] {
        let opens = start.get(..open.len()).is_some_and(|tag| tag.eq_ignore_ascii_case(open));
        if opens {
            return start.split_once(close).map_or("", |(_, rest)| rest);
        }
    }
    let ends = start.match_indices("</think>").next().and_then(|(at, tag)| {
        let (before, rest) = start.split_at_checked(at)?;
        let rest = rest.strip_prefix(tag)?;
        let alone = before.ends_with('\n') && (rest.is_empty() || rest.starts_with(['\n', '\r']));
        (alone && !before.contains("<think>")).then_some(rest)
    });
    ends.unwrap_or(text)
}
