//! Statistics as JSON.

use serde::Serialize;

use super::{SessionTimeline, SessionTotals, Stats};
use crate::{
    session::SessionKey,
    usage::{Counter, TokenUsage, UsageEvent, UsageTotals},
};

pub(super) fn stats(stats: &Stats) -> String {
    let Stats { sessions, totals, days, recent, largest, slowest } = stats;
    let of = |counter| totals.of(counter);
    write(&StatsJson {
        summary: Summary {
            total_sessions: *sessions,
            total_queries: of(Counter::Queries),
            total_tool_calls: of(Counter::ToolCalls),
            total_tool_errors: of(Counter::ToolErrors),
            total_input_tokens: of(Counter::InputTokens),
            total_output_tokens: of(Counter::OutputTokens),
            total_cached_tokens: of(Counter::CachedTokens),
            total_cost_usd: totals.cost().dollars(),
            avg_latency_ms: millis(totals.mean_latency()),
            total_summarizations: of(Counter::Summarizations),
            total_messages_compacted: of(Counter::MessagesRemoved),
            total_chars_compacted: of(Counter::CharsRemoved),
            total_tokens_saved: of(Counter::TokensRemoved),
            total_summarizer_tokens: of(Counter::SummarizerTokens),
        },
        activity: days
            .iter()
            .map(|day| Day { date: day.date(), sums: Sums::of(&day.totals) })
            .collect(),
        outcomes: Outcomes::of(totals),
        recent: recent
            .iter()
            .map(|record| Recent {
                number: record.number,
                session: &record.session,
                event: Event::of(&record.event),
            })
            .collect(),
        largest: largest
            .iter()
            .map(|(key, value)| Ranked { key, tokens_saved: Some(*value), latency_ms: None })
            .collect(),
        slowest: slowest
            .iter()
            .map(|(key, value)| Ranked { key, tokens_saved: None, latency_ms: Some(*value) })
            .collect(),
    })
}

pub(super) fn session(session: &SessionTotals) -> String {
    write(&SessionJson { key: &session.session, sums: Sums::of(&session.totals) })
}

pub(super) fn timeline(timeline: &SessionTimeline) -> String {
    let SessionTimeline { session, context_window, trigger, now, points, compactions, totals } =
        timeline;
    write(&TimelineJson {
        key: session,
        context_window: *context_window,
        trigger: *trigger,
        now: Now { messages: now.messages, chars: now.chars, tokens: now.tokens },
        points: points
            .iter()
            .map(|point| Point {
                at_ms: point.unix_millis,
                tokens: point.tokens,
                kind: point.kind.name(),
            })
            .collect(),
        compactions: compactions.iter().map(Event::of).collect(),
        totals: Sums::of(totals),
    })
}

/// Strings and numbers alone: there is nothing that serde could refuse.
fn write(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[derive(Serialize)]
struct StatsJson<'a> {
    summary: Summary,
    activity: Vec<Day>,
    outcomes: Outcomes,
    recent: Vec<Recent<'a>>,
    largest: Vec<Ranked<'a>>,
    slowest: Vec<Ranked<'a>>,
}

#[derive(Serialize)]
struct Summary {
    total_sessions: u64,
    total_queries: u64,
    total_tool_calls: u64,
    total_tool_errors: u64,
    total_input_tokens: u64,
    total_output_tokens: u64,
    total_cached_tokens: u64,
    total_cost_usd: f64,
    avg_latency_ms: u64,
    total_summarizations: u64,
    total_messages_compacted: u64,
    total_chars_compacted: u64,
    total_tokens_saved: u64,
    total_summarizer_tokens: u64,
}

#[derive(Serialize)]
struct Day {
    date: String,
    #[serde(flatten)]
    sums: Sums,
}

/// The sums that a day, a session and a timeline show.
#[derive(Serialize)]
struct Sums {
    queries: u64,
    tool_calls: u64,
    tool_errors: u64,
    input_tokens: u64,
    output_tokens: u64,
    cost_usd: f64,
    avg_latency_ms: u64,
    summarizations: u64,
    messages_compacted: u64,
    chars_compacted: u64,
    tokens_saved: u64,
    summarizer_tokens: u64,
}

impl Sums {
    fn of(totals: &UsageTotals) -> Self {
        let of = |counter| totals.of(counter);
        Self {
            queries: of(Counter::Queries),
            tool_calls: of(Counter::ToolCalls),
            tool_errors: of(Counter::ToolErrors),
            input_tokens: of(Counter::InputTokens),
            output_tokens: of(Counter::OutputTokens),
            cost_usd: totals.cost().dollars(),
            avg_latency_ms: millis(totals.mean_latency()),
            summarizations: of(Counter::Summarizations),
            messages_compacted: of(Counter::MessagesRemoved),
            chars_compacted: of(Counter::CharsRemoved),
            tokens_saved: of(Counter::TokensRemoved),
            summarizer_tokens: of(Counter::SummarizerTokens),
        }
    }
}

#[derive(Serialize)]
struct Outcomes {
    applied: u64,
    failed: u64,
    no_progress: u64,
    rejected: u64,
    stale: u64,
}

impl Outcomes {
    fn of(totals: &UsageTotals) -> Self {
        Self {
            applied: totals.of(Counter::Summarizations),
            failed: totals.of(Counter::Failed),
            no_progress: totals.of(Counter::NoProgress),
            rejected: totals.of(Counter::Rejected),
            stale: totals.of(Counter::Stale),
        }
    }
}

#[derive(Serialize)]
struct Recent<'a> {
    number: u64,
    session: &'a SessionKey,
    #[serde(flatten)]
    event: Event<'a>,
}

#[derive(Serialize)]
struct Event<'a> {
    at_ms: u64,
    kind: crate::usage::UsageKind,
    outcome: &'static str,
    summarizer: &'a str,
    model: &'a str,
    trigger: &'a str,
    measured: u64,
    limit: u64,
    latency_ms: u64,
    input_tokens: u64,
    output_tokens: u64,
    cached_tokens: u64,
    /// Null where no price is known.
    cost_usd: Option<f64>,
    attempts: u32,
    messages_removed: u64,
    chars_removed: u64,
    tokens_before: u64,
    tokens_after: u64,
    summary_chars: u64,
    summary_tokens: u64,
    tool_calls: u64,
    tool_errors: u64,
}

impl<'a> Event<'a> {
    fn of(event: &'a UsageEvent) -> Self {
        let TokenUsage { input, output, cached } = event.usage.unwrap_or_default();
        Self {
            at_ms: event.unix_millis,
            kind: event.kind,
            outcome: event.outcome.name(),
            summarizer: &event.summarizer,
            model: &event.model,
            trigger: &event.trigger,
            measured: event.measured,
            limit: event.limit,
            latency_ms: millis(event.latency),
            input_tokens: input,
            output_tokens: output,
            cached_tokens: cached,
            cost_usd: event.cost.map(crate::usage::Cost::dollars),
            attempts: event.attempts,
            messages_removed: event.messages_removed,
            chars_removed: event.chars_removed,
            tokens_before: event.tokens_before,
            tokens_after: event.tokens_after,
            summary_chars: event.summary_chars,
            summary_tokens: event.summary_tokens,
            tool_calls: event.tool_calls,
            tool_errors: event.tool_errors,
        }
    }
}

#[derive(Serialize)]
struct Ranked<'a> {
    key: &'a SessionKey,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_saved: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ms: Option<u64>,
}

#[derive(Serialize)]
struct SessionJson<'a> {
    key: &'a SessionKey,
    #[serde(flatten)]
    sums: Sums,
}

#[derive(Serialize)]
struct TimelineJson<'a> {
    key: &'a SessionKey,
    context_window: u64,
    trigger: Option<u64>,
    now: Now,
    points: Vec<Point>,
    compactions: Vec<Event<'a>>,
    totals: Sums,
}

#[derive(Serialize)]
struct Now {
    messages: u64,
    chars: u64,
    tokens: u64,
}

#[derive(Serialize)]
struct Point {
    at_ms: u64,
    tokens: u64,
    kind: &'static str,
}
