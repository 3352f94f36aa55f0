//! What a provider's refusal means.

use std::time::Duration;

use serde_json::Value;

use super::{client::Names, key::Key, too_long::is_too_long};
use crate::provider::{ProviderError, ProviderErrorKind};

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
#[derive(Debug, Default)]
pub(crate) struct ApiError {
    /// The HTTP status, or the one in the body of a 200.
    status: Option<u16>,
    codes: Vec<String>,
    param: Option<String>,
    message: String,
    retry_after: Option<Duration>,
}

impl ApiError {
    /// Reads the body of an answer with an error status.
    pub(crate) fn read(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let mut error = serde_json::from_str(&text).map_or_else(
            |_| Self { message: text.into_owned(), ..Self::default() },
            |value| Self::from_value(&value),
        );
        error.status = Some(status);
        error.retry_after = retry_after;
        error
    }

    /// Finds the error in the body of a 200: some gateways send their header
    /// before they know.
    pub(crate) fn find(value: &Value, retry_after: Option<Duration>) -> Option<Self> {
        let root = first(value);
        let choice = root.pointer("/choices/0").unwrap_or(&Value::Null);
        let holder = [root, choice].into_iter().find(|holder| is_error(holder))?;
        Some(Self { retry_after, ..Self::from_value(holder) })
    }

    fn from_value(value: &Value) -> Self {
        let root = first(value);
        let error = root.get("error").filter(|error| !error.is_null()).unwrap_or(root);
        let text = |name: &str| error.get(name)?.as_str().map(str::to_owned);
        let message = match error {
            Value::String(text) => Some(text.clone()),
            _ => text("message"),
        };
        Self {
            status: error.get("code").and_then(number).filter(|code| (400..600).contains(code)),
            codes: ["code", "type", "status"].into_iter().filter_map(text).collect(),
            param: text("param"),
            // Some list what is wrong under names of their own.
            message: message.unwrap_or_else(|| error.to_string()),
            retry_after: None,
        }
    }

    /// Returns true when the model or the server does not know a field of this
    /// name, whatever its value.
    pub(crate) fn refuses(&self, field: &str) -> bool {
        const WORDS: [&str; 6] =
            ["support", "deprecated", "not permitted", "not allowed", "unknown", "unrecognized"];
        let about = match &self.param {
            Some(param) => param == field,
            None => self.message.contains(field),
        };
        let message = self.message.to_lowercase();
        matches!(self.status, None | Some(400 | 422))
            && about
            && (self.has_code(&["unsupported", "unknown", "extra"])
                || WORDS.iter().any(|word| message.contains(word)))
    }

    /// Returns true when the message holds a text.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        self.message.contains(text)
    }

    /// Turns the refusal into an error that says what to do.
    pub(crate) fn into_error(self, names: &Names, key: &Key) -> ProviderError {
        let kind = self.kind();
        let mut what = self.advice(kind, names, key.is_set());
        let code = self.codes.iter().find(|code| is_plain(code) && !key.is_in(code));
        if let Some(code) = code {
            what = format!("{code}; {what}");
        }
        let mut error = ProviderError::new(kind, what);
        if let Some(status) = self.status {
            error = error.with_status(status);
        }
        match self.retry_after {
            Some(delay) => error.with_retry_after(delay),
            None => error,
        }
    }

    fn kind(&self) -> ProviderErrorKind {
        use ProviderErrorKind as Kind;
        if is_too_long(self.status, self.codes.iter().map(String::as_str), &self.message) {
            return Kind::TooLong;
        }
        match self.status {
            // An empty account answers 429, and waiting fills no account.
            _ if self.has_code(&["insufficient_quota"]) => Kind::Rejected,
            Some(300..=399) => Kind::Config,
            Some(401 | 403) => Kind::Auth,
            Some(429 | 529) => Kind::RateLimited,
            Some(408 | 500..) => Kind::Server,
            Some(_) => Kind::Rejected,
            None if self.has_code(&["rate", "overloaded", "too_many", "exhausted"]) => {
                Kind::RateLimited
            }
            None if self.has_code(&["auth", "api_key", "permission"]) => Kind::Auth,
            None if self.has_code(&["invalid", "not_found", "unsupported"]) => Kind::Rejected,
            None => Kind::Server,
        }
    }

    fn has_code(&self, words: &[&str]) -> bool {
        let has = |code: &String| words.iter().any(|word| code.to_lowercase().contains(word));
        self.codes.iter().any(has)
    }

    fn advice(&self, kind: ProviderErrorKind, names: &Names, has_key: bool) -> String {
        use ProviderErrorKind as Kind;
        match (kind, self.status) {
            (Kind::Auth, _) if has_key => format!("check {}", names.key),
            (Kind::Auth, _) => format!("it wants a key; set {}", names.key),
            (Kind::Config, _) => {
                format!("the address leads elsewhere; set {} to the final one", names.url)
            }
            (Kind::RateLimited, _) => "wait before the next request".into(),
            (Kind::Server, _) => "try again later".into(),
            (Kind::TooLong, _) => "send less, or take a model with a larger window".into(),
            (_, Some(404)) => format!("check the model's name and {}", names.url),
            _ if self.has_code(&["insufficient_quota"]) => "the account has no credit left".into(),
            _ => "check the model's name and what it supports".into(),
        }
    }
}

/// Google's compatible endpoint wraps its error in a list.
fn first(value: &Value) -> &Value {
    match value {
        Value::Array(items) => items.first().unwrap_or(value),
        _ => value,
    }
}

fn is_error(value: &Value) -> bool {
    let says = |name: &str| value.get(name).and_then(Value::as_str) == Some("error");
    value.get("error").is_some_and(|error| !error.is_null()) || says("type") || says("object")
}

fn number(value: &Value) -> Option<u16> {
    match value {
        Value::String(text) => text.parse().ok(),
        _ => value.as_u64().and_then(|number| number.try_into().ok()),
    }
}

/// Returns true when a code is one, and neither a sentence nor a secret.
fn is_plain(code: &str) -> bool {
    (1..=64).contains(&code.len())
        && code.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'.'))
}
