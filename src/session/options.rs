//! What a host sets for one session alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::{ConfigOverrides, SummaryTemplate};

/// What a host configured for one session; stored with it.
///
/// # Default
///
/// Nothing is set: the manager's configuration holds.
///
/// # Example
///
/// ```
/// use session_compaction::SessionOptions;
///
/// let options = SessionOptions::new()
///     .model("llama3:8b")
///     .context_window(32_768)
///     .label("tenant", "acme");
/// assert_eq!(options.context_window, Some(32_768));
/// ```
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
#[non_exhaustive]
pub struct SessionOptions {
    /// The model that the session talks to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// That model's context window in tokens. Where it is not set, the usual
    /// one of the model counts, and for an unknown model the configured one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Values that hold in place of the manager's configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<ConfigOverrides>,
    /// What kind of summary a model is asked for; the summarizer's own where it
    /// is not set. Summarizers that ask no model take no notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<SummaryTemplate>,
    /// The name of the summarizer, as it was given to
    /// [`summarizer_named`](crate::SessionManagerBuilder::summarizer_named).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summarizer: Option<String>,
    /// The host's own labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl SessionOptions {
    /// Creates options that set nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the model that the session talks to.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = Some(name.into());
        self
    }

    /// Sets the model's context window in tokens; 0 leaves it unset.
    #[must_use]
    pub fn context_window(mut self, tokens: u64) -> Self {
        self.context_window = Some(tokens).filter(|tokens| *tokens > 0);
        self
    }

    /// Sets values that hold in place of the manager's configuration.
    ///
    /// # Example
    ///
    /// ```
    /// use session_compaction::{ConfigOverrides, SessionOptions};
    ///
    /// let options = SessionOptions::new()
    ///     .config(ConfigOverrides { keep_last_messages: Some(8), ..ConfigOverrides::default() });
    /// assert_eq!(options.config.unwrap().keep_last_messages, Some(8));
    /// ```
    #[must_use]
    pub fn config(mut self, overrides: ConfigOverrides) -> Self {
        self.config = Some(overrides).filter(|overrides| *overrides != ConfigOverrides::default());
        self
    }

    /// Sets what kind of summary a model is asked for.
    #[must_use]
    pub fn template(mut self, template: SummaryTemplate) -> Self {
        self.template = Some(template);
        self
    }

    /// Sets which of the manager's named summarizers writes the summaries.
    #[must_use]
    pub fn summarizer(mut self, name: impl Into<String>) -> Self {
        self.summarizer = Some(name.into());
        self
    }

    /// Adds a label of the host's own.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }
}
