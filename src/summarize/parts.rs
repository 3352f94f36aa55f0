//! One summarization, in one call or in parts that are merged.

use std::{ops::Range, sync::Arc};

use tokio::task::{JoinError, JoinSet};

use super::{
    SummarizeError, Summarizer, SummarizerInput, Summary, SummaryPart, SummaryRequest,
    excerpt::excerpt, guard,
};
use crate::{
    message::Message,
    plan,
    tokens::{TokenCounter, Tokens},
    usage::TokenUsage,
};

/// At most this many parts are summarized at a time.
const PARALLEL: usize = 4;

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
}

/// Summarizes `request.messages`. The existing summary goes into the only call
/// or into the merge, so it is an input of the answer on every path. The first
/// part that fails ends the others.
pub(crate) async fn summarize(
    summarizer: &Arc<dyn Summarizer>,
    mut request: SummaryRequest,
    bounds: Bounds,
) -> Result<Answer, SummarizeError> {
    let counter = Arc::clone(&request.counter);
    let limit = summarizer.max_input_tokens().map(Tokens::from_tokens);
    let largest = limit.map_or(bounds.message, |limit| limit.min(bounds.message));
    let mut excerpted = 0;
    if summarizer.input() == SummarizerInput::Parts {
        request.messages = request
            .messages
            .iter()
            .map(|message| {
                let short = excerpt(message, largest, &*counter);
                excerpted += u64::from(short.is_some());
                short.unwrap_or_else(|| Arc::clone(message))
            })
            .collect();
    }
    let parts = match summarizer.input() {
        SummarizerInput::Parts => split(&request.messages, bounds.batch, limit, &*counter),
        SummarizerInput::Whole => Vec::new(),
    };
    let summary = if parts.len() < 2 {
        call(summarizer, request).await?
    } else {
        in_parts(summarizer, &request, parts).await?
    };
    Ok(Answer { summary, excerpted })
}

async fn call(
    summarizer: &Arc<dyn Summarizer>,
    request: SummaryRequest,
) -> Result<Summary, SummarizeError> {
    guard::check(summarizer.summarize(request).await?)
}

async fn in_parts(
    summarizer: &Arc<dyn Summarizer>,
    request: &SummaryRequest,
    parts: Vec<Range<usize>>,
) -> Result<Summary, SummarizeError> {
    let of = parts.len();
    let mut waiting = parts.into_iter().enumerate().map(|(index, range)| SummaryRequest {
        part: SummaryPart::Part { index, of },
        messages: request.messages.get(range).unwrap_or_default().into(),
        existing_summary: None,
        ..request.clone()
    });
    let mut running = JoinSet::new();
    let mut start = |running: &mut JoinSet<_>| {
        let Some(part) = waiting.next() else { return };
        let SummaryPart::Part { index, .. } = part.part else { return };
        let summarizer = Arc::clone(summarizer);
        running.spawn(async move { call(&summarizer, part).await.map(|summary| (index, summary)) });
    };
    for _ in 0..PARALLEL {
        start(&mut running);
    }
    // Leaving this function early drops the set, which ends what still runs.
    let mut summaries: Vec<(usize, Summary)> = Vec::with_capacity(of);
    while let Some(done) = running.join_next().await {
        summaries.push(done.map_err(|error| from_join(error))??);
        start(&mut running);
    }
    summaries.sort_unstable_by_key(|(index, _)| *index);

    let merge = SummaryRequest {
        part: SummaryPart::Merge,
        messages: summaries.iter().map(|(_, part)| Arc::new(Message::user(&*part.text))).collect(),
        ..request.clone()
    };
    let mut merged = call(summarizer, merge).await?;
    let usages = summaries.iter().filter_map(|(_, part)| part.usage).chain(merged.usage);
    merged.usage = usages.reduce(|sum, usage: TokenUsage| sum + usage);
    Ok(merged)
}

/// Splits near the middle where there are more than `batch` messages, and on
/// until each part fits `limit`; only where no call is parted from its results.
fn split(
    messages: &[Arc<Message>],
    batch: usize,
    limit: Option<Tokens>,
    counter: &dyn TokenCounter,
) -> Vec<Range<usize>> {
    let fits = |range: &Range<usize>| {
        let Some(limit) = limit else { return true };
        let part = messages.get(range.clone()).unwrap_or_default();
        part.iter().map(|message| counter.message(message)).sum::<Tokens>() <= limit
    };
    let mut done = Vec::new();
    let mut open = vec![(0..messages.len(), messages.len() <= batch)];
    while let Some((range, small)) = open.pop() {
        let part = messages.get(range.clone()).unwrap_or_default();
        match plan::halves(part) {
            Some(middle) if !small || !fits(&range) => {
                let middle = range.start + middle;
                open.push((middle..range.end, true));
                open.push((range.start..middle, true));
            }
            _ => done.push(range),
        }
    }
    done
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
