//! Values that hold for one session in place of the configuration.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{duration, summarization::SummarizationConfig, threshold::Threshold};

/// Values that hold for one session in place of the manager's
/// [`SummarizationConfig`], whose fields these are; what is `None` is as it
/// stands there. The context window is not among them: it is an option of the
/// session itself. Nor is what counts tokens, which all sessions share.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{ConfigOverrides, SessionManager, SessionOptions, Threshold};
///
/// let sessions = SessionManager::builder().build()?;
/// let overrides = ConfigOverrides {
///     message_threshold: Some(Threshold::Above(50)),
///     keep_last_messages: Some(10),
///     ..ConfigOverrides::default()
/// };
/// sessions.configure("chat", SessionOptions::new().config(overrides)).await?;
/// // The values are checked together with those of the configuration.
/// let odd = ConfigOverrides { keep_last_messages: Some(100), ..ConfigOverrides::default() };
/// let refused = sessions.configure("chat", SessionOptions::new().config(odd)).await;
/// assert!(refused.unwrap_err().is_config());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct ConfigOverrides {
    /// False: this session is not summarized by itself. True changes nothing
    /// where the manager's own is false: it then looks at no session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// See [`SummarizationConfig::message_threshold`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_threshold: Option<Threshold>,
    /// See [`SummarizationConfig::token_percent`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_percent: Option<Threshold>,
    /// See [`SummarizationConfig::threshold_chars`]. It switches no other
    /// trigger off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold_chars: Option<Threshold>,
    /// See [`SummarizationConfig::keep_last_messages`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_last_messages: Option<usize>,
    /// See [`SummarizationConfig::keep_chars`]; 0 switches it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_chars: Option<usize>,
    /// See [`SummarizationConfig::output_reserve`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_reserve: Option<u64>,
    /// See [`SummarizationConfig::summary_max_tokens`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_max_tokens: Option<u64>,
    /// See [`SummarizationConfig::summary_temperature`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary_temperature: Option<f64>,
    /// See [`SummarizationConfig::multi_part_batch_threshold`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multi_part_batch_threshold: Option<usize>,
    /// See [`SummarizationConfig::timeout`].
    #[serde(with = "duration::option", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// See [`SummarizationConfig::max_single_msg_token_ratio`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_single_msg_token_ratio: Option<f64>,
    /// See [`SummarizationConfig::force_compression_min_messages`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_compression_min_messages: Option<usize>,
}

impl ConfigOverrides {
    /// Puts these values over a configuration.
    pub(crate) fn over(&self, base: &SummarizationConfig) -> SummarizationConfig {
        let config = SummarizationConfig {
            enabled: self.enabled.unwrap_or(base.enabled),
            message_threshold: self.message_threshold.unwrap_or(base.message_threshold),
            token_percent: self.token_percent.unwrap_or(base.token_percent),
            threshold_chars: self.threshold_chars.unwrap_or(base.threshold_chars),
            keep_last_messages: self.keep_last_messages.unwrap_or(base.keep_last_messages),
            keep_chars: self.keep_chars.unwrap_or(base.keep_chars),
            context_window: base.context_window,
            output_reserve: self.output_reserve.unwrap_or(base.output_reserve),
            summary_max_tokens: self.summary_max_tokens.unwrap_or(base.summary_max_tokens),
            summary_temperature: self.summary_temperature.unwrap_or(base.summary_temperature),
            multi_part_batch_threshold: self
                .multi_part_batch_threshold
                .unwrap_or(base.multi_part_batch_threshold),
            timeout: self.timeout.unwrap_or(base.timeout),
            max_single_msg_token_ratio: self
                .max_single_msg_token_ratio
                .unwrap_or(base.max_single_msg_token_ratio),
            force_compression_min_messages: self
                .force_compression_min_messages
                .unwrap_or(base.force_compression_min_messages),
            chars_per_token: base.chars_per_token,
        };
        config.with_defaults()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_holds_and_is_kept() {
        let overrides = ConfigOverrides {
            threshold_chars: Some(Threshold::Above(60_000)),
            message_threshold: Some(Threshold::Off),
            timeout: Some(Duration::from_millis(1_500)),
            ..ConfigOverrides::default()
        };
        let base = SummarizationConfig::for_model("gpt-5").with_keep_last_messages(7);
        let config = overrides.over(&base);
        let expected = SummarizationConfig {
            threshold_chars: Threshold::Above(60_000),
            message_threshold: Threshold::Off,
            timeout: Duration::from_millis(1_500),
            ..base
        };
        assert_eq!(config, expected);

        let text = serde_json::to_string(&overrides).unwrap();
        assert_eq!(text, r#"{"message_threshold":"off","threshold_chars":60000,"timeout":"1.5s"}"#);
        assert_eq!(serde_json::from_str::<ConfigOverrides>(&text).unwrap(), overrides);
        // A session that a later version has configured can be read all the same.
        let later = serde_json::from_str::<ConfigOverrides>(r#"{"of_later": 1}"#).unwrap();
        assert_eq!(later, ConfigOverrides::default());
    }
}
