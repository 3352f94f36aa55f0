//! Keeps secrets out of requests, summaries, errors and logs.

use std::{borrow::Cow, fmt, sync::Arc};

mod patterns;

use crate::message::{Message, Part, ToolCall, ToolResult};

/// Takes out of a text what must not leave the process or be stored.
///
/// # Contract
///
/// - The same text gives the same answer, and an answer is left as it is.
/// - Only the secret goes: the rest of the text is still of use.
///
/// # Example
///
/// ```
/// use std::borrow::Cow;
/// use session_compaction::Redactor;
///
/// /// Hides the numbers of employees.
/// #[derive(Debug)]
/// struct Staff;
///
/// impl Redactor for Staff {
///     fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
///         text.replace("E-4711", "[employee]").into()
///     }
/// }
///
/// assert_eq!(Staff.redact("Ask E-4711."), "Ask [employee].");
/// ```
pub trait Redactor: fmt::Debug + Send + Sync + 'static {
    /// Returns the text without its secrets.
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str>;
}

const _: fn(&dyn Redactor) = |_| {};

impl<R: Redactor + ?Sized> Redactor for Arc<R> {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        (**self).redact(text)
    }
}

/// Knows the usual shapes of secrets: keys of the large services (`sk-`,
/// `AKIA`, `ghp_` and their kin), bearer tokens, JSON web tokens, private keys
/// in PEM, passwords in URLs, and values assigned to names such as `API_KEY`
/// or `password`. The default.
///
/// # Example
///
/// ```
/// use session_compaction::{Redactor, SecretPatterns};
///
/// let text = SecretPatterns.redact("DB=postgres://app:hunter2@db/prod is up");
/// assert_eq!(text, "DB=postgres://app:[redacted]@db/prod is up");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct SecretPatterns;

impl Redactor for SecretPatterns {
    fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        patterns::redact(text)
    }
}

/// Returns the message without its secrets; none where it holds none.
pub(crate) fn message(message: &Message, redactor: &dyn Redactor) -> Option<Message> {
    let parts: Vec<Option<Part>> =
        message.parts().iter().map(|part| redacted(part, redactor)).collect();
    if parts.iter().all(Option::is_none) {
        return None;
    }
    let parts = parts.into_iter().zip(message.parts());
    let parts = parts.map(|(new, old)| new.unwrap_or_else(|| old.clone()));
    Some(Message::new(message.role(), parts))
}

/// Returns the part without its secrets; none where it holds none.
fn redacted(part: &Part, redactor: &dyn Redactor) -> Option<Part> {
    let text = |text: &str| match redactor.redact(text) {
        Cow::Owned(new) if new != text => Some(new),
        _ => None,
    };
    match part {
        Part::Text(old) => text(&old.text).map(Part::text),
        Part::Reasoning(old) => text(&old.text).map(Part::text),
        Part::Json(raw) => text(raw.as_str()).map(Part::text),
        Part::Media(media) => {
            let alt = text(media.alt.as_deref()?)?;
            Some((**media).clone().with_alt(alt).into())
        }
        Part::ToolCall(call) => {
            let arguments = text(&call.arguments)?;
            Some(ToolCall::new(&*call.id, &*call.name, arguments).into())
        }
        Part::ToolResult(result) => {
            let new: Vec<_> =
                result.content.iter().map(|part| redacted_leaf(part, redactor)).collect();
            if new.iter().all(Option::is_none) {
                return None;
            }
            let mut short = ToolResult::new(&*result.call_id, "");
            let content = new.into_iter().zip(&result.content);
            short.content = content.map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect();
            short.is_error = result.is_error;
            Some(short.into())
        }
    }
}

/// As [`redacted`]; results do not hold results.
fn redacted_leaf(part: &Part, redactor: &dyn Redactor) -> Option<Part> {
    match part {
        Part::ToolResult(_) => Some(Part::text(redactor.redact(&part.texts().join("\n")))),
        other => redacted(other, redactor),
    }
}

#[cfg(test)]
mod tests;
