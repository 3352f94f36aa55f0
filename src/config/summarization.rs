//! The configuration as the rest of the crate uses it.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use super::{duration, layer::Layer, models, node::Node, threshold::Threshold};

/// When a session is summarized, what stays word for word, and what a summary
/// may cost.
///
/// # Where values come from
///
/// In code, start from [`SummarizationConfig::default`] or
/// [`SummarizationConfig::for_model`] and change fields, by name or with the
/// `with_*` setters. From outside, [`SummarizationConfig::load`] reads a JSON
/// file and `SUMMARIZATION_*` variables; a variable, such as
/// `SUMMARIZATION_TOKEN_PERCENT`, beats the file, a file's nested block beats
/// its deprecated fields, and those beat the defaults.
///
/// # What odd values mean
///
/// - `null`, an empty variable, and 0 for a count, a ratio or a duration mean
///   "not set": the next layer down, or the default, applies. For
///   `summary_temperature` and `output_reserve` 0 is a value.
/// - Whole numbers may be spelled `100`, `100.0` or `1e2`; fractions, negative
///   numbers, numbers in quotes and anything out of range are refused.
/// - `"off"` switches a trigger, or `keep_chars`, off.
/// - Who sets `threshold_chars` and neither of the other two triggers gets that
///   trigger alone.
/// - A default that clashes with a value that was set is lowered to fit:
///   `keep_last_messages` below `message_threshold`, and `summary_max_tokens`
///   below what `output_reserve` leaves of `context_window`. Two values that
///   were both set and clash are an error.
///
/// # Example
///
/// ```
/// use session_compaction::{SummarizationConfig, Threshold};
///
/// let config = SummarizationConfig {
///     message_threshold: Threshold::Above(50),
///     keep_last_messages: 10,
///     ..SummarizationConfig::for_model("gpt-5-mini")
/// };
/// config.check()?;
///
/// let read = SummarizationConfig::from_json_str(r#"{"token_percent": 60, "timeout": "2m"}"#)?;
/// assert_eq!(read, SummarizationConfig::default().with_token_percent(60));
/// # Ok::<(), session_compaction::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SummarizationConfig {
    /// Whether sessions are summarized at all. False: `maybe_summarize`
    /// returns at once and touches neither store nor model. Default: true.
    pub enabled: bool,
    /// A compaction is due above this many messages in the window; 2 or more.
    /// Default: 20.
    pub message_threshold: Threshold,
    /// A compaction is due above this share of
    /// [`context_window`](Self::context_window), in whole percents from 1 to
    /// 100. 100 means the full window, not off. Default: 75.
    pub token_percent: Threshold,
    /// A compaction is due above this many characters in the window. Default:
    /// off.
    pub threshold_chars: Threshold,
    /// How many of the newest messages stay word for word; more where the cut
    /// would part a tool call from its result. Default: 4.
    pub keep_last_messages: usize,
    /// Above 0: as many of the newest messages stay as fill this many
    /// characters, and [`keep_last_messages`](Self::keep_last_messages) does
    /// not count. Default: 0, off.
    pub keep_chars: usize,
    /// The model's context window, in tokens, for input and output together.
    /// Default: 8192.
    pub context_window: u64,
    /// Tokens of the window that are kept free for the answer, where a request
    /// does not say. 0 is a value. Default: 0.
    pub output_reserve: u64,
    /// The most tokens that a summary may have. The model is asked for at most
    /// half of what is replaced, and for at least 64. Default: 1024.
    pub summary_max_tokens: u64,
    /// The sampling temperature for summaries, from 0 to 2. 0 is a value.
    /// Default: 0.3.
    pub summary_temperature: f64,
    /// Above this many messages a batch is split, and its parts are summarized
    /// in parallel and merged. Default: 10.
    pub multi_part_batch_threshold: usize,
    /// How long one whole summarization may take, from 1 ms to 24 h; written
    /// as text such as `"120s"`, read also as whole nanoseconds. Default: 120 s.
    #[serde(serialize_with = "duration::serialize")]
    pub timeout: Duration,
    /// A message above this share of the window goes to the summarizer as an
    /// excerpt, and the summary says so; from 0.01 to 1. Default: 0.5.
    pub max_single_msg_token_ratio: f64,
    /// With this many messages or fewer `force_compression` does nothing.
    /// Default: 4.
    pub force_compression_min_messages: usize,
    /// Set: tokens are characters divided by this, from 0.1 to 100. Unset: the
    /// estimate that weighs scripts. Default: unset.
    pub chars_per_token: Option<f64>,
}

impl SummarizationConfig {
    /// Returns the defaults with the named model's context window.
    ///
    /// Names are compared by their beginning, in any case, with or without a
    /// provider's prefix: `gpt-5-mini`, `openai/gpt-5-mini`,
    /// `us.anthropic.claude-sonnet-4`. A model that is not known gets the
    /// default window of 8192 tokens. Where a model is served with windows of
    /// different sizes, this is a smaller one.
    ///
    /// # Example
    ///
    /// ```
    /// use session_compaction::SummarizationConfig;
    ///
    /// assert_eq!(SummarizationConfig::for_model("gpt-4o-mini").context_window, 128_000);
    /// assert_eq!(SummarizationConfig::for_model("my-own").context_window, 8_192);
    /// ```
    #[must_use]
    pub fn for_model(name: &str) -> Self {
        let default = Self::default();
        let context_window = models::context_window(name).unwrap_or(default.context_window);
        Self { context_window, ..default }
    }

    /// Puts the default in place of every zero that means "not set", and
    /// lowers defaults that clash with other values.
    ///
    /// A value that equals the default counts as not set here: 4 messages to
    /// keep become 2 where the threshold is 3. Where a character threshold is
    /// set and the other two are zero, those become off.
    ///
    /// # Example
    ///
    /// ```
    /// use session_compaction::{SummarizationConfig, Threshold};
    ///
    /// let config = SummarizationConfig {
    ///     message_threshold: Threshold::Above(3),
    ///     context_window: 0,
    ///     ..SummarizationConfig::default()
    /// };
    /// let config = config.with_defaults();
    /// assert_eq!(config.context_window, 8_192);
    /// assert_eq!(config.keep_last_messages, 2);
    /// ```
    #[must_use]
    pub fn with_defaults(mut self) -> Self {
        let default = Self::default();
        let unset = Threshold::Above(0);
        let only_characters = self.message_threshold == unset
            && self.token_percent == unset
            && !matches!(self.threshold_chars, Threshold::Above(0) | Threshold::Off);
        if only_characters {
            self.message_threshold = Threshold::Off;
            self.token_percent = Threshold::Off;
        }
        self.message_threshold = self.message_threshold.or_default(default.message_threshold);
        self.token_percent = self.token_percent.or_default(default.token_percent);
        self.threshold_chars = self.threshold_chars.or_default(default.threshold_chars);
        fill(&mut self.keep_last_messages, default.keep_last_messages);
        fill(&mut self.context_window, default.context_window);
        fill(&mut self.summary_max_tokens, default.summary_max_tokens);
        fill(&mut self.multi_part_batch_threshold, default.multi_part_batch_threshold);
        fill(&mut self.timeout, default.timeout);
        fill(&mut self.max_single_msg_token_ratio, default.max_single_msg_token_ratio);
        fill(&mut self.force_compression_min_messages, default.force_compression_min_messages);
        self.chars_per_token = self.chars_per_token.filter(|ratio| *ratio != 0.0);

        if self.keep_last_messages == default.keep_last_messages {
            self.fit_keep();
        }
        if self.summary_max_tokens == default.summary_max_tokens {
            self.fit_summary();
        }
        self
    }

    /// Lowers `keep_last_messages` below the threshold.
    pub(super) fn fit_keep(&mut self) {
        if self.keep_chars == 0
            && let Threshold::Above(limit) = self.message_threshold
            && let Ok(most) = usize::try_from(limit.saturating_sub(1))
        {
            self.keep_last_messages = self.keep_last_messages.min(most);
        }
    }

    /// Lowers `summary_max_tokens` to half of what the window leaves, where it
    /// would fill all of that.
    pub(super) fn fit_summary(&mut self) {
        let room = self.room();
        if self.summary_max_tokens >= room {
            self.summary_max_tokens = (room / 2).max(1);
        }
    }

    /// What the window leaves beside the answer, in tokens.
    pub(super) fn room(&self) -> u64 {
        self.context_window.saturating_sub(self.output_reserve)
    }
}

impl Default for SummarizationConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            message_threshold: Threshold::Above(20),
            token_percent: Threshold::Above(75),
            threshold_chars: Threshold::Off,
            keep_last_messages: 4,
            keep_chars: 0,
            context_window: 8_192,
            output_reserve: 0,
            summary_max_tokens: 1_024,
            summary_temperature: 0.3,
            multi_part_batch_threshold: 10,
            timeout: Duration::from_mins(2),
            max_single_msg_token_ratio: 0.5,
            force_compression_min_messages: 4,
            chars_per_token: None,
        }
    }
}

/// Reads the bare block; fields that are not there get their defaults.
impl<'de> Deserialize<'de> for SummarizationConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let node = Node::deserialize(deserializer)?;
        let mut layer = Layer::default();
        layer.read_block("summarization", "", &node).map_err(D::Error::custom)?;
        layer.resolve().map_err(D::Error::custom)
    }
}

fn fill<T: Default + PartialEq>(value: &mut T, default: T) {
    if *value == T::default() {
        *value = default;
    }
}
