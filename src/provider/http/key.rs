//! A key, which never shows.

use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

use crate::provider::{ProviderError, ProviderErrorKind};

/// The key of a provider, or none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Key(Option<SecretString>);

impl Key {
    /// Keeps a key. White space around it is left out: keys are often read from
    /// files that end in a line break.
    pub(crate) fn new(text: &str) -> Self {
        let text = text.trim();
        Self((!text.is_empty()).then(|| text.into()))
    }

    /// Returns true when there is a key.
    pub(crate) fn is_set(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the value of a header that carries the key.
    pub(crate) fn header(
        &self,
        prefix: &str,
        name: &str,
    ) -> Result<Option<HeaderValue>, ProviderError> {
        let Some(key) = &self.0 else { return Ok(None) };
        let text = format!("{prefix}{}", key.expose_secret());
        // The cause is left out: it would say nothing more.
        let mut value = HeaderValue::from_str(&text).map_err(|_| {
            let what = format!("the key has characters that no header can hold; check {name}");
            ProviderError::new(ProviderErrorKind::Config, what)
        })?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// Returns true when a text holds the key.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|key| text.contains(key.expose_secret()))
    }
}
