//! One chainable setter for each field.

use std::time::Duration;

use super::{summarization::SummarizationConfig, threshold::Threshold};

impl SummarizationConfig {
    /// Sets [`enabled`](Self::enabled).
    #[must_use]
    pub const fn with_enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Sets [`message_threshold`](Self::message_threshold).
    #[must_use]
    pub fn with_message_threshold(mut self, messages: impl Into<Threshold>) -> Self {
        self.message_threshold = messages.into();
        self
    }

    /// Sets [`token_percent`](Self::token_percent).
    #[must_use]
    pub fn with_token_percent(mut self, percent: impl Into<Threshold>) -> Self {
        self.token_percent = percent.into();
        self
    }

    /// Sets [`threshold_chars`](Self::threshold_chars). Where the other two
    /// triggers both still have their defaults, it switches them off: who sets
    /// only this one gets only this one. Call their setters after it to have
    /// them as well.
    ///
    /// # Example
    ///
    /// ```
    /// use session_compaction::{SummarizationConfig, Threshold};
    ///
    /// let config = SummarizationConfig::default().with_threshold_chars(60_000);
    /// assert_eq!(config.message_threshold, Threshold::Off);
    /// assert_eq!(config.with_token_percent(75).token_percent, Threshold::Above(75));
    /// ```
    #[must_use]
    pub fn with_threshold_chars(mut self, chars: impl Into<Threshold>) -> Self {
        self.threshold_chars = chars.into();
        let default = Self::default();
        if self.threshold_chars != Threshold::Off
            && self.message_threshold == default.message_threshold
            && self.token_percent == default.token_percent
        {
            self.message_threshold = Threshold::Off;
            self.token_percent = Threshold::Off;
        }
        self
    }

    /// Sets [`keep_last_messages`](Self::keep_last_messages).
    #[must_use]
    pub const fn with_keep_last_messages(mut self, messages: usize) -> Self {
        self.keep_last_messages = messages;
        self
    }

    /// Sets [`keep_chars`](Self::keep_chars).
    #[must_use]
    pub const fn with_keep_chars(mut self, chars: usize) -> Self {
        self.keep_chars = chars;
        self
    }

    /// Sets [`context_window`](Self::context_window).
    #[must_use]
    pub const fn with_context_window(mut self, tokens: u64) -> Self {
        self.context_window = tokens;
        self
    }

    /// Sets [`output_reserve`](Self::output_reserve).
    #[must_use]
    pub const fn with_output_reserve(mut self, tokens: u64) -> Self {
        self.output_reserve = tokens;
        self
    }

    /// Sets [`summary_max_tokens`](Self::summary_max_tokens).
    #[must_use]
    pub const fn with_summary_max_tokens(mut self, tokens: u64) -> Self {
        self.summary_max_tokens = tokens;
        self
    }

    /// Sets [`summary_temperature`](Self::summary_temperature).
    #[must_use]
    pub const fn with_summary_temperature(mut self, temperature: f64) -> Self {
        self.summary_temperature = temperature;
        self
    }

    /// Sets [`multi_part_batch_threshold`](Self::multi_part_batch_threshold).
    #[must_use]
    pub const fn with_multi_part_batch_threshold(mut self, messages: usize) -> Self {
        self.multi_part_batch_threshold = messages;
        self
    }

    /// Sets [`timeout`](Self::timeout).
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets [`max_single_msg_token_ratio`](Self::max_single_msg_token_ratio).
    #[must_use]
    pub const fn with_max_single_msg_token_ratio(mut self, ratio: f64) -> Self {
        self.max_single_msg_token_ratio = ratio;
        self
    }

    /// Sets [`force_compression_min_messages`](Self::force_compression_min_messages).
    #[must_use]
    pub const fn with_force_compression_min_messages(mut self, messages: usize) -> Self {
        self.force_compression_min_messages = messages;
        self
    }

    /// Sets [`chars_per_token`](Self::chars_per_token).
    #[must_use]
    pub const fn with_chars_per_token(mut self, ratio: Option<f64>) -> Self {
        self.chars_per_token = ratio;
        self
    }
}
