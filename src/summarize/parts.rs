//! One summarization, in one call or in parts that are merged.

use std::{sync::Arc, time::Duration};

use tokio::{
    task::{JoinError, JoinSet, yield_now},
    time::Instant,
};

use super::{
    Redactor, SummarizeError, Summarizer, SummarizerInput, Summary, SummaryPart, SummaryRequest,
    excerpt::{excerpt, excerpt_text},
    facts, guard,
    merge::{merge, third},
    redact,
};
use crate::{
    message::{Message, structure::Structure},
    plan,
    tokens::{TokenCounter, Tokens},
};

/// At most this many parts are summarized at a time.
const PARALLEL: usize = 4;

/// How often a part that was too long is tried with half as much.
const HALVINGS: u32 = 4;

/// The answer, and how it was made.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) summary: Summary,
    /// How many messages the summarizer saw an excerpt of.
    pub(crate) excerpted: u64,
}

/// Bounds of one summarization.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Above this many messages the input is split.
    pub(crate) batch: usize,
    /// A message above this is excerpted.
    pub(crate) message: Tokens,
    /// The largest input in tokens, where the summarizer does not say.
    pub(crate) input: u64,
}

type Messages = Arc<[Arc<Message>]>;

/// Summarizes `request.messages`. The existing summary goes into the only call
/// or into the last merge, so it is an input of the answer on every path. The
/// first part that fails ends the others.
pub(crate) async fn summarize(
    summarizer: &Arc<dyn Summarizer>,
    mut request: SummaryRequest,
    bounds: Bounds,
) -> Result<Answer, SummarizeError> {
    let counter = Arc::clone(&request.counter);
    if let Some(redactor) = summarizer.redactor() {
        redact(&mut request, redactor).await;
    }
    let facts_budget = request.max_tokens.saturating_mul(facts::PERCENT) / 100;
    if summarizer.facts_heading().is_some() {
        request.max_tokens = request.max_tokens.saturating_sub(facts_budget).max(1);
    }
    let whole = request.clone();
    let mut excerpted = 0;
    let mut summary = match summarizer.input() {
        SummarizerInput::Whole => call(summarizer, request).await?,
        SummarizerInput::Parts => {
            let most = summarizer.max_input_tokens().unwrap_or(bounds.input);
            // What the answer may take is no room for the messages.
            request.max_tokens = request.max_tokens.min((most / 2).max(1));
            let limit = Tokens::from_tokens(most.saturating_sub(request.max_tokens));
            let largest = limit.min(bounds.message);
            let short = |message: &Arc<Message>| {
                let short = excerpt(message, largest, &*counter);
                excerpted += u64::from(short.is_some());
                short.unwrap_or_else(|| Arc::clone(message))
            };
            request.messages = request.messages.iter().map(short).collect();
            request.existing_summary = request
                .existing_summary
                .map(|existing| excerpt_text(existing, third(limit), &*counter));
            of_messages(summarizer, &request, bounds.batch, limit).await?
        }
    };
    if let Some(heading) = summarizer.facts_heading() {
        summary.text = facts::add(
            &summary.text,
            heading,
            whole.existing_summary.as_deref(),
            &whole.messages,
            (Tokens::from_tokens(facts_budget), &*counter),
        );
    }
    Ok(Answer { summary, excerpted })
}

async fn redact(request: &mut SummaryRequest, redactor: &dyn Redactor) {
    let mut messages = Vec::with_capacity(request.messages.len());
    for message in &*request.messages {
        let clean = redact::message(message, redactor);
        messages.push(clean.map_or_else(|| Arc::clone(message), Arc::new));
        // A long session takes a while, and the runtime may have one thread.
        yield_now().await;
    }
    request.messages = messages.into();
    if let Some(existing) = &request.existing_summary {
        request.existing_summary = Some(redactor.redact(existing).into());
    }
    if let Some(focus) = &request.focus {
        request.focus = Some(redactor.redact(focus).into());
    }
}

pub(super) async fn call(
    summarizer: &Arc<dyn Summarizer>,
    request: SummaryRequest,
) -> Result<Summary, SummarizeError> {
    guard::check(summarizer.summarize(request).await?)
}

async fn of_messages(
    summarizer: &Arc<dyn Summarizer>,
    request: &SummaryRequest,
    batch: usize,
    limit: Tokens,
) -> Result<Summary, SummarizeError> {
    let mut parts = split(request, batch, limit);
    if parts.len() < 2 {
        match call(summarizer, request.clone()).await {
            Err(error) if error.is_too_long() => {
                parts = shrunk(&request.messages, &*request.counter);
            }
            answer => return answer,
        }
    }
    in_parts(summarizer, request, parts, limit).await
}

async fn in_parts(
    summarizer: &Arc<dyn Summarizer>,
    request: &SummaryRequest,
    parts: Vec<Messages>,
    limit: Tokens,
) -> Result<Summary, SummarizeError> {
    let (of, end) = (parts.len(), Instant::now() + request.deadline);
    let max_tokens = part_bound(request, of, limit);
    let left = move || end.saturating_duration_since(Instant::now());
    let mut waiting = parts.into_iter().enumerate().map(|(index, messages)| SummaryRequest {
        part: SummaryPart::Part { index, of },
        messages,
        existing_summary: None,
        max_tokens,
        ..request.clone()
    });
    let mut running = JoinSet::new();
    let mut start = |running: &mut JoinSet<_>| {
        let Some(part) = waiting.next() else { return };
        let SummaryPart::Part { index, .. } = part.part else { return };
        let summarizer = Arc::clone(summarizer);
        running.spawn(async move {
            of_part(&summarizer, part, left).await.map(|summaries| (index, summaries))
        });
    };
    for _ in 0..PARALLEL {
        start(&mut running);
    }
    // Leaving this function early drops the set, which ends what still runs.
    let mut done: Vec<(usize, Vec<Summary>)> = Vec::with_capacity(of);
    while let Some(part) = running.join_next().await {
        done.push(part.map_err(from_join)??);
        start(&mut running);
    }
    done.sort_unstable_by_key(|(index, _)| *index);
    let summaries = done.into_iter().flat_map(|(_, summaries)| summaries).collect();
    let request = SummaryRequest { deadline: left(), ..request.clone() };
    merge(summarizer, &request, summaries, limit).await
}

/// Summarizes one part; where it is too long for the model after all, its
/// halves.
async fn of_part(
    summarizer: &Arc<dyn Summarizer>,
    part: SummaryRequest,
    left: impl Fn() -> Duration,
) -> Result<Vec<Summary>, SummarizeError> {
    let mut open = vec![(Arc::clone(&part.messages), 0)];
    let mut done = Vec::new();
    while let Some((messages, halvings)) = open.pop() {
        let deadline = left();
        let request = SummaryRequest { messages, deadline, ..part.clone() };
        let messages = Arc::clone(&request.messages);
        match call(summarizer, request).await {
            Ok(summary) => done.push(summary),
            Err(error) if error.is_too_long() && halvings < HALVINGS => {
                let halves = shrunk(&messages, &*part.counter);
                open.extend(halves.into_iter().rev().map(|half| (half, halvings + 1)));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// How long the summary of a part may be: so long that all of them fit one
/// merge, but not so short that it says nothing.
fn part_bound(request: &SummaryRequest, of: usize, limit: Tokens) -> u64 {
    let counter = &*request.counter;
    let existing = request.existing_summary.as_deref().map_or(Tokens::ZERO, |s| counter.text(s));
    let each = (limit - existing).count() / of.max(1) as u64;
    let each = each.saturating_sub(counter.message_overhead().count() + 1);
    request.max_tokens.min(each.max(128))
}

/// Splits where there are more than `batch` messages, in halves, or where they
/// do not fit `limit`, in as few parts as possible; only where no call is
/// parted from its results.
fn split(request: &SummaryRequest, batch: usize, limit: Tokens) -> Vec<Messages> {
    let (messages, counter) = (&request.messages, &*request.counter);
    let existing = request.existing_summary.as_deref().map_or(Tokens::ZERO, |s| counter.text(s));
    let parts = match plan::halves(messages) {
        Some(middle) if messages.len() > batch => at(messages, middle),
        _ => vec![Arc::clone(messages)],
    };
    let room = if parts.len() == 1 { limit - existing } else { limit };
    if parts.iter().all(|part| size(part, counter) <= room) {
        return parts;
    }
    packed(messages, limit, counter)
}

/// Fills each part as far as the limit allows. A round that is above it is a
/// part of its own, of excerpts.
fn packed(messages: &Messages, limit: Tokens, counter: &dyn TokenCounter) -> Vec<Messages> {
    let structure = Structure::of_history(messages, messages.len());
    let ends = structure.cuts().skip(1).chain([messages.len()]);
    let mut parts: Vec<Messages> = Vec::new();
    let (mut start, mut last, mut filled) = (0, 0, Tokens::ZERO);
    for end in ends.filter(|end| *end > 0) {
        let unit = size(messages.get(last..end).unwrap_or_default(), counter);
        if last > start && filled + unit > limit {
            parts.push(messages.get(start..last).unwrap_or_default().into());
            (start, filled) = (last, Tokens::ZERO);
        }
        (last, filled) = (end, filled + unit);
    }
    parts.push(messages.get(start..).unwrap_or_default().into());
    parts.retain(|part| !part.is_empty());
    let fit = |part: Messages| match size(&part, counter) {
        all if all > limit => scaled(&part, limit, all, counter),
        _ => part,
    };
    parts.into_iter().map(fit).collect()
}

/// Two halves, or where there is no cut between them, excerpts of half as much.
fn shrunk(messages: &Messages, counter: &dyn TokenCounter) -> Vec<Messages> {
    if let Some(middle) = plan::halves(messages) {
        return at(messages, middle);
    }
    let all = size(messages, counter);
    vec![scaled(messages, Tokens::from_units(all.as_units() / 2), all, counter)]
}

fn at(messages: &Messages, middle: usize) -> Vec<Messages> {
    match messages.split_at_checked(middle) {
        Some((first, second)) => vec![first.into(), second.into()],
        None => vec![Arc::clone(messages)],
    }
}

/// Excerpts of all messages, each shortened by the same share.
fn scaled(messages: &Messages, limit: Tokens, all: Tokens, counter: &dyn TokenCounter) -> Messages {
    let short = |message: &Arc<Message>| {
        let own = counter.message(message).as_units();
        let share =
            u128::from(own) * u128::from(limit.as_units()) / u128::from(all.as_units().max(1));
        let share = Tokens::from_units(u64::try_from(share).unwrap_or(u64::MAX));
        excerpt(message, share, counter).unwrap_or_else(|| Arc::clone(message))
    };
    messages.iter().map(short).collect()
}

fn size(messages: &[Arc<Message>], counter: &dyn TokenCounter) -> Tokens {
    messages.iter().map(|message| counter.message(message)).sum()
}

/// Says in words how a task ended that did not end by itself.
pub(crate) fn from_join(error: JoinError) -> SummarizeError {
    if !error.is_panic() {
        return SummarizeError::cancelled();
    }
    let payload = error.into_panic();
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".into());
    SummarizeError::panicked(format!("the summarizer panicked: {text}"))
}
