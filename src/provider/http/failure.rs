//! What a provider's refusal means.

use std::time::Duration;

use serde_json::Value;

use super::{client::Names, key::Key};
use crate::{
    formats::refusal::Refusal,
    provider::{Overflow, ProviderError, ProviderErrorKind},
};

/// Why a request brought no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The provider said so.
    Refused(Box<ApiError>),
    /// Nothing readable came back.
    Failed(ProviderError),
}

impl From<ProviderError> for Failure {
    fn from(error: ProviderError) -> Self {
        Self::Failed(error)
    }
}

/// A refusal in the provider's own words. They never reach an error of ours:
/// they may quote the key or the conversation.
#[derive(Debug)]
pub(crate) struct ApiError {
    said: Refusal,
    retry_after: Option<Duration>,
}

impl ApiError {
    /// Reads the body of an answer with an error status.
    pub(crate) fn read(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        Self { said: Refusal::read(status, &String::from_utf8_lossy(body)), retry_after }
    }

    /// Finds the error in the body of a 200.
    pub(crate) fn find(value: &Value, retry_after: Option<Duration>) -> Option<Self> {
        Some(Self { said: Refusal::find(value)?, retry_after })
    }

    /// Returns true when the model or the server does not know a field of this
    /// name, whatever its value.
    pub(crate) fn refuses(&self, field: &str) -> bool {
        const WORDS: [&str; 6] =
            ["support", "deprecated", "not permitted", "not allowed", "unknown", "unrecognized"];
        let about = match &self.said.param {
            Some(param) => param == field,
            None => self.said.message.contains(field),
        };
        let message = self.said.message.to_lowercase();
        matches!(self.said.status, None | Some(400 | 422))
            && about
            && (self.said.has_code(&["unsupported", "unknown", "extra"])
                || WORDS.iter().any(|word| message.contains(word)))
    }

    /// Returns true when the message holds a text.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        self.said.message.contains(text)
    }

    /// Turns the refusal into an error that says what to do.
    pub(crate) fn into_error(self, names: &Names, key: &Key) -> ProviderError {
        let kind = self.kind();
        let mut what = self.advice(kind, names, key.is_set());
        if let Some(code) = self.said.codes().find(|code| !key.is_in(code)) {
            what = format!("{code}; {what}");
        }
        let mut error = ProviderError::new(kind, what);
        if let Some(status) = self.said.status {
            error = error.with_status(status);
        }
        match self.retry_after {
            Some(delay) => error.with_retry_after(delay),
            None => error,
        }
    }

    fn kind(&self) -> ProviderErrorKind {
        use ProviderErrorKind as Kind;
        if Overflow::of(&self.said).is_some() {
            return Kind::TooLong;
        }
        match self.said.status {
            // An empty account answers 429, and waiting fills no account.
            _ if self.said.has_code(&["insufficient_quota"]) => Kind::Rejected,
            Some(300..=399) => Kind::Config,
            Some(401 | 403) => Kind::Auth,
            Some(429 | 529) => Kind::RateLimited,
            Some(408 | 500..) => Kind::Server,
            Some(_) => Kind::Rejected,
            None if self.said.has_code(&["rate", "overloaded", "too_many", "exhausted"]) => {
                Kind::RateLimited
            }
            None if self.said.has_code(&["auth", "api_key", "permission"]) => Kind::Auth,
            None if self.said.has_code(&["invalid", "not_found", "unsupported"]) => Kind::Rejected,
            None => Kind::Server,
        }
    }

    fn advice(&self, kind: ProviderErrorKind, names: &Names, has_key: bool) -> String {
        use ProviderErrorKind as Kind;
        match (kind, self.said.status) {
            (Kind::Auth, _) if has_key => format!("check {}", names.key),
            (Kind::Auth, _) => format!("it wants a key; set {}", names.key),
            (Kind::Config, _) => {
                format!("the address leads elsewhere; set {} to the final one", names.url)
            }
            (Kind::RateLimited, _) => "wait before the next request".into(),
            (Kind::Server, _) => "try again later".into(),
            (Kind::TooLong, _) => "send less, or take a model with a larger window".into(),
            (_, Some(404)) => format!("check the model's name and {}", names.url),
            _ if self.said.has_code(&["insufficient_quota"]) => {
                "the account has no credit left".into()
            }
            _ => "check the model's name and what it supports".into(),
        }
    }
}
