//! What a compaction did, as it is stored with it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::usage::TokenUsage;

/// What one compaction removed and cost. Stored in the step that applies it,
/// so that there are exactly as many of them as compactions.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
#[non_exhaustive]
pub struct UsageEvent {
    /// The summarizer that wrote the summary.
    pub summarizer: String,
    /// When it was applied, in milliseconds since 1970.
    pub unix_millis: u64,
    /// How long the summarizer took.
    pub latency: Duration,
    /// Tokens that it used, where it said so.
    pub usage: Option<TokenUsage>,
    /// How many messages the summary stands for.
    pub messages_removed: u64,
    /// How many characters they had.
    pub chars_removed: u64,
    /// How many tokens they had, by the estimate.
    pub tokens_removed: u64,
    /// How many characters the summary has.
    pub summary_chars: u64,
    /// How many tokens it has, by the estimate.
    pub summary_tokens: u64,
}
