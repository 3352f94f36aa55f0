//! Sums over usage events, which stores keep up to date as events come in.

use std::{fmt, time::Duration};

use super::{Cost, TokenUsage, UsageEvent, UsageKind, UsageOutcome};

/// One figure of [`UsageTotals`], named as stores and metrics name it.
///
/// # Example
///
/// ```
/// use session_compaction::Counter;
///
/// assert_eq!(Counter::CharsRemoved.name(), "chars_removed");
/// assert_eq!(Counter::named("chars_removed"), Some(Counter::CharsRemoved));
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Counter {
    /// Times that a model was asked to write a summary, repetitions included.
    Attempts,
    /// Tokens of prompts that the provider had cached.
    CachedTokens,
    /// Characters of the messages that summaries stand for.
    CharsRemoved,
    /// Billionths of a dollar.
    CostNanos,
    /// Summarizations that gave no answer.
    Failed,
    /// Tokens of prompts, cached ones included.
    InputTokens,
    /// Milliseconds that models and summarizers took, of all events.
    LatencyMillis,
    /// Messages that summaries stand for.
    MessagesRemoved,
    /// Summarizations whose answer was not smaller than what it would have
    /// replaced.
    NoProgress,
    /// Tokens of answers.
    OutputTokens,
    /// Calls of the host to its own models.
    Queries,
    /// Calls of the host that failed.
    QueriesFailed,
    /// Summarizations whose answer was no summary.
    Rejected,
    /// Summarizations that found the session changed.
    Stale,
    /// Summarizations that were applied.
    Summarizations,
    /// Tokens that summarizers used, prompts and answers.
    SummarizerTokens,
    /// Tokens by which contexts became smaller.
    TokensRemoved,
    /// Tools that models called.
    ToolCalls,
    /// Tools that failed.
    ToolErrors,
}

impl Counter {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 19] = [
        Self::Attempts,
        Self::CachedTokens,
        Self::CharsRemoved,
        Self::CostNanos,
        Self::Failed,
        Self::InputTokens,
        Self::LatencyMillis,
        Self::MessagesRemoved,
        Self::NoProgress,
        Self::OutputTokens,
        Self::Queries,
        Self::QueriesFailed,
        Self::Rejected,
        Self::Stale,
        Self::Summarizations,
        Self::SummarizerTokens,
        Self::TokensRemoved,
        Self::ToolCalls,
        Self::ToolErrors,
    ];

    /// Returns the counter's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Attempts => "attempts",
            Self::CachedTokens => "cached_tokens",
            Self::CharsRemoved => "chars_removed",
            Self::CostNanos => "cost_nanos",
            Self::Failed => "failed",
            Self::InputTokens => "input_tokens",
            Self::LatencyMillis => "latency_millis",
            Self::MessagesRemoved => "messages_removed",
            Self::NoProgress => "no_progress",
            Self::OutputTokens => "output_tokens",
            Self::Queries => "queries",
            Self::QueriesFailed => "queries_failed",
            Self::Rejected => "rejected",
            Self::Stale => "stale",
            Self::Summarizations => "summarizations",
            Self::SummarizerTokens => "summarizer_tokens",
            Self::TokensRemoved => "tokens_removed",
            Self::ToolCalls => "tool_calls",
            Self::ToolErrors => "tool_errors",
        }
    }

    /// Returns the counter of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|counter| counter.name() == name)
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Sums over the events of a session, a day, or a whole store. Adding
/// saturates.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use session_compaction::{Counter, TokenUsage, UsageEvent, UsageTotals};
///
/// let mut totals = UsageTotals::default();
/// totals.add(&UsageEvent::query("gpt-5", TokenUsage::new(900, 40), Duration::from_secs(2)));
/// assert_eq!(totals.of(Counter::InputTokens), 900);
/// assert_eq!(totals.mean_latency(), Duration::from_secs(2));
/// // Stores add up counters by name.
/// let same: UsageTotals = totals.counters().collect();
/// assert_eq!(same, totals);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UsageTotals([u64; Counter::ALL.len()]);

impl UsageTotals {
    /// Returns what one event adds.
    #[must_use]
    pub fn of_event(event: &UsageEvent) -> Self {
        let mut totals = Self::default();
        totals.add(event);
        totals
    }

    /// Returns one of the sums.
    #[must_use]
    pub fn of(&self, counter: Counter) -> u64 {
        self.0.get(counter as usize).copied().unwrap_or_default()
    }

    /// Returns all sums that are not zero, in the order of their names.
    pub fn counters(&self) -> impl Iterator<Item = (Counter, u64)> {
        Counter::ALL.into_iter().zip(self.0).filter(|(_, value)| *value > 0)
    }

    /// Returns what was paid, where prices were known.
    #[must_use]
    pub fn cost(&self) -> Cost {
        Cost::from_nanos(self.of(Counter::CostNanos))
    }

    /// Returns how many events there were.
    #[must_use]
    pub fn events(&self) -> u64 {
        use Counter::{Failed, NoProgress, Queries, Rejected, Stale, Summarizations};
        [Failed, NoProgress, Queries, Rejected, Stale, Summarizations]
            .into_iter()
            .fold(0, |sum, counter| sum.saturating_add(self.of(counter)))
    }

    /// Returns how long an event took on average; zero where there was none.
    #[must_use]
    pub fn mean_latency(&self) -> Duration {
        let millis = self.of(Counter::LatencyMillis).checked_div(self.events());
        Duration::from_millis(millis.unwrap_or_default())
    }

    /// Adds an event.
    pub fn add(&mut self, event: &UsageEvent) {
        let TokenUsage { input, output, cached } = event.usage.unwrap_or_default();
        self.count(Counter::InputTokens, input);
        self.count(Counter::OutputTokens, output);
        self.count(Counter::CachedTokens, cached);
        self.count(Counter::CostNanos, event.cost.unwrap_or_default().nanos());
        let millis = u64::try_from(event.latency.as_millis()).unwrap_or(u64::MAX);
        self.count(Counter::LatencyMillis, millis);
        self.count(Counter::ToolCalls, event.tool_calls);
        self.count(Counter::ToolErrors, event.tool_errors);
        match event.kind {
            UsageKind::Query => {
                self.count(Counter::Queries, 1);
                let failed = event.outcome == UsageOutcome::Failed;
                self.count(Counter::QueriesFailed, u64::from(failed));
            }
            UsageKind::Summarization => self.add_summarization(event, input.saturating_add(output)),
        }
    }

    fn add_summarization(&mut self, event: &UsageEvent, tokens: u64) {
        self.count(Counter::Attempts, u64::from(event.attempts));
        self.count(Counter::SummarizerTokens, tokens);
        let ended = match event.outcome {
            UsageOutcome::Failed => Counter::Failed,
            UsageOutcome::NoProgress => Counter::NoProgress,
            UsageOutcome::Rejected => Counter::Rejected,
            UsageOutcome::Stale => Counter::Stale,
            UsageOutcome::Answered | UsageOutcome::Applied => Counter::Summarizations,
        };
        self.count(ended, 1);
        if ended == Counter::Summarizations {
            self.count(Counter::MessagesRemoved, event.messages_removed);
            self.count(Counter::CharsRemoved, event.chars_removed);
            self.count(Counter::TokensRemoved, event.tokens_removed);
        }
    }

    /// Adds to one of the sums.
    pub fn count(&mut self, counter: Counter, more: u64) {
        if let Some(value) = self.0.get_mut(counter as usize) {
            *value = value.saturating_add(more);
        }
    }

    /// Adds other sums.
    pub fn merge(&mut self, other: &Self) {
        self.extend(other.counters());
    }
}

impl Extend<(Counter, u64)> for UsageTotals {
    fn extend<I: IntoIterator<Item = (Counter, u64)>>(&mut self, counters: I) {
        for (counter, more) in counters {
            self.count(counter, more);
        }
    }
}

impl FromIterator<(Counter, u64)> for UsageTotals {
    fn from_iter<I: IntoIterator<Item = (Counter, u64)>>(counters: I) -> Self {
        let mut totals = Self::default();
        totals.extend(counters);
        totals
    }
}
