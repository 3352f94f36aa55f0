//! From the summaries of parts to one, in levels where they are too many.

use std::sync::Arc;

use super::{
    SummarizeError, Summarizer, Summary, SummaryPart, SummaryRequest,
    excerpt::{excerpt, excerpt_text},
    parts::call,
};
use crate::{
    message::Message,
    tokens::{TokenCounter, Tokens},
    usage::TokenUsage,
};

/// How often a merge that was too long is tried with half as much.
const HALVINGS: u32 = 4;

/// Merges summaries, oldest first. The existing summary goes into the last
/// call, so that it is an input of the answer.
pub(super) async fn merge(
    summarizer: &Arc<dyn Summarizer>,
    request: &SummaryRequest,
    mut summaries: Vec<Summary>,
    mut limit: Tokens,
) -> Result<Summary, SummarizeError> {
    let counter = &*request.counter;
    let whole = request.existing_summary.as_deref().map_or(Tokens::ZERO, |s| counter.text(s));
    let mut usage = usage_of(&summaries);
    let mut halvings = 0;
    loop {
        let existing = whole.min(third(limit));
        let groups = groups(summaries, limit, existing, counter);
        let last = groups.len() == 1;
        let mut merged = Vec::with_capacity(groups.len());
        let mut too_long = false;
        for group in groups {
            if group.len() == 1 && !last {
                merged.extend(group);
                continue;
            }
            let messages: Vec<_> =
                group.iter().map(|part| Arc::new(Message::user(&*part.text))).collect();
            let messages = fit(messages, limit, counter);
            let size = messages.iter().map(|message| counter.message(message)).sum::<Tokens>();
            let existing_summary = request
                .existing_summary
                .clone()
                .filter(|_| last)
                .map(|existing| excerpt_text(existing, third(limit), counter));
            let ask = SummaryRequest {
                part: SummaryPart::Merge,
                messages: messages.into(),
                existing_summary,
                ..request.clone()
            };
            match call(summarizer, ask).await {
                Ok(summary) => {
                    usage = usage_of([&summary]).into_iter().chain(usage).reduce(|a, b| a + b);
                    merged.push(summary);
                }
                // What else was merged stays merged, and this goes in halves.
                Err(error) if error.is_too_long() && halvings < HALVINGS => {
                    too_long = true;
                    let half = Tokens::from_units((size + existing).as_units() / 2);
                    limit = limit.min(half);
                    merged.extend(group);
                }
                Err(error) => return Err(error),
            }
        }
        halvings += u32::from(too_long);
        if last && !too_long {
            let summary = merged.pop().ok_or_else(SummarizeError::empty)?;
            return Ok(Summary { usage, ..summary });
        }
        summaries = merged;
    }
}

/// Shares summaries out into groups that fit one merge each. All but one group
/// have two or more, so that each level leaves at most half as many.
fn groups(
    summaries: Vec<Summary>,
    limit: Tokens,
    existing: Tokens,
    counter: &dyn TokenCounter,
) -> Vec<Vec<Summary>> {
    let size = |summary: &Summary| {
        counter.text(&summary.text).min(most(limit)) + counter.message_overhead()
    };
    let all = summaries.iter().map(size).sum::<Tokens>();
    if all + existing <= limit || summaries.len() < 2 {
        return vec![summaries];
    }
    let mut groups: Vec<Vec<Summary>> = Vec::new();
    let mut room = Tokens::ZERO;
    for summary in summaries {
        let needs = size(&summary);
        match groups.last_mut() {
            Some(group) if needs <= room || group.len() < 2 => group.push(summary),
            _ => {
                groups.push(vec![summary]);
                room = limit;
            }
        }
        room = room - needs;
    }
    groups
}

/// The most that the summary so far takes of a request.
pub(super) fn third(limit: Tokens) -> Tokens {
    Tokens::from_units(limit.as_units() / 3)
}

/// A summary above a quarter of the limit is shortened, so that at least three
/// fit one merge.
fn most(limit: Tokens) -> Tokens {
    Tokens::from_units(limit.as_units() / 4)
}

fn fit(
    messages: Vec<Arc<Message>>,
    limit: Tokens,
    counter: &dyn TokenCounter,
) -> Vec<Arc<Message>> {
    let short = |message: Arc<Message>| excerpt(&message, most(limit), counter).unwrap_or(message);
    let all = messages.iter().map(|message| counter.message(message)).sum::<Tokens>();
    if all <= limit { messages } else { messages.into_iter().map(short).collect() }
}

fn usage_of<'a>(summaries: impl IntoIterator<Item = &'a Summary>) -> Option<TokenUsage> {
    summaries.into_iter().filter_map(|summary| summary.usage).reduce(|sum, usage| sum + usage)
}
