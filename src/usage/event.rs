//! What is kept of one compaction or one model call.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Cost, TokenUsage};

/// What one compaction, or one call of the host's model, did and cost.
///
/// That of a compaction is stored in the step that applies it, so that there
/// are exactly as many of them as compactions. A host adds its own calls with
/// [`UsageEvent::query`]. Holds names and figures, never the text of a message
/// or a summary.
///
/// # Example
///
/// ```
/// use session_compaction::UsageEvent;
///
/// let event: UsageEvent = serde_json::from_str(r#"{"messages_removed": 14, "chars_removed": 42000}"#).unwrap();
/// assert_eq!((event.messages_removed, event.usage), (14, None));
/// assert_eq!(
///     event.metadata(),
///     r#"{"summarization":true,"messages_removed":14,"chars_removed":42000}"#
/// );
/// ```
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
#[non_exhaustive]
pub struct UsageEvent {
    /// What it was.
    pub kind: UsageKind,
    /// How it ended.
    pub outcome: UsageOutcome,
    /// The summarizer that wrote the summary; empty for a call of the host's.
    pub summarizer: String,
    /// The model that was asked, where that is known; else empty.
    pub model: String,
    /// When it ended, in milliseconds since 1970.
    pub unix_millis: u64,
    /// How long the model or the summarizer took.
    pub latency: Duration,
    /// Tokens that it used, where it said so.
    pub usage: Option<TokenUsage>,
    /// What it cost, where a price is known.
    pub cost: Option<Cost>,
    /// How often the model was asked.
    pub attempts: u32,
    /// What made the compaction due: `messages`, `tokens` or `chars`; empty
    /// where the host asked for it.
    pub trigger: String,
    /// What was measured, in the unit of the trigger.
    pub measured: u64,
    /// The threshold that it was above.
    pub limit: u64,
    /// How many messages the summary newly stands for.
    pub messages_removed: u64,
    /// How many characters they had.
    pub chars_removed: u64,
    /// By how many tokens the context became smaller, by the estimate.
    pub tokens_removed: u64,
    /// Estimated tokens of what is sent of the session, before.
    pub tokens_before: u64,
    /// And after.
    pub tokens_after: u64,
    /// How many characters the summary has.
    pub summary_chars: u64,
    /// How many tokens it has, by the estimate.
    pub summary_tokens: u64,
    /// How many tools the model called.
    pub tool_calls: u64,
    /// How many of them failed.
    pub tool_errors: u64,
}

impl UsageEvent {
    /// Creates the event of a call that the host made to its own model.
    #[must_use]
    pub fn query(model: impl Into<String>, usage: TokenUsage, latency: Duration) -> Self {
        Self {
            kind: UsageKind::Query,
            outcome: UsageOutcome::Answered,
            model: model.into(),
            usage: Some(usage),
            latency,
            attempts: 1,
            ..Self::default()
        }
    }

    /// Sets how many tools the model called, and how many of them failed.
    #[must_use]
    pub const fn with_tools(mut self, calls: u64, errors: u64) -> Self {
        (self.tool_calls, self.tool_errors) = (calls, errors);
        self
    }

    /// Sets what it cost.
    #[must_use]
    pub const fn with_cost(mut self, cost: Cost) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Returns the JSON object that marks the event in a host's own usage log:
    /// `summarization`, `messages_removed` and `chars_removed`.
    #[must_use]
    pub fn metadata(&self) -> String {
        format!(
            r#"{{"summarization":{},"messages_removed":{},"chars_removed":{}}}"#,
            self.kind == UsageKind::Summarization,
            self.messages_removed,
            self.chars_removed
        )
    }
}

/// What a [`UsageEvent`] is about.
///
/// # Example
///
/// ```
/// use session_compaction::UsageKind;
///
/// assert_eq!(serde_json::to_string(&UsageKind::Query).unwrap(), r#""query""#);
/// ```
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UsageKind {
    /// A call of the host to its own model.
    Query,
    /// A compaction.
    #[default]
    Summarization,
}

/// How what a [`UsageEvent`] is about ended.
///
/// # Example
///
/// ```
/// use session_compaction::UsageOutcome;
///
/// assert_eq!(UsageOutcome::NoProgress.name(), "no_progress");
/// ```
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum UsageOutcome {
    /// The host's model answered.
    Answered,
    /// The summary stands for what it replaced.
    #[default]
    Applied,
    /// There was no answer.
    Failed,
    /// The answer was not smaller than what it would have replaced.
    NoProgress,
    /// The answer was no summary.
    Rejected,
    /// The session was changed meanwhile.
    Stale,
}

impl UsageOutcome {
    /// Returns the name of the outcome, for logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Applied => "applied",
            Self::Failed => "failed",
            Self::NoProgress => "no_progress",
            Self::Rejected => "rejected",
            Self::Stale => "stale",
        }
    }
}
