//! The errors of providers, in the many shapes that they have.

use serde_json::Value;

/// What a provider said in place of a reply. Its message stays in here: it may
/// quote a key or the conversation.
#[derive(Debug, Default)]
pub(crate) struct Refusal {
    /// The HTTP status, or the one in the body of a 200.
    pub(crate) status: Option<u16>,
    pub(crate) codes: Vec<String>,
    /// The field of the request that it is about.
    pub(crate) param: Option<String>,
    pub(crate) message: String,
}

impl Refusal {
    /// Reads the body of an answer with an error status.
    pub(crate) fn read(status: u16, body: &str) -> Self {
        let read = serde_json::from_str(body).map_or_else(
            |_| Self { message: body.to_owned(), ..Self::default() },
            |value| Self::of(&value),
        );
        Self { status: Some(status), ..read }
    }

    /// Finds the error in the body of a 200: some gateways send their header
    /// before they know.
    pub(crate) fn find(value: &Value) -> Option<Self> {
        let root = first(value);
        let choice = root.pointer("/choices/0").unwrap_or(&Value::Null);
        [root, choice].into_iter().find(|holder| is_error(holder)).map(Self::of)
    }

    fn of(value: &Value) -> Self {
        let root = first(value);
        let error = root.get("error").filter(|error| !error.is_null()).unwrap_or(root);
        let text = |name: &str| error.get(name)?.as_str().map(str::to_owned);
        Self {
            status: error.get("code").and_then(number).filter(|code| (400..600).contains(code)),
            codes: ["code", "type", "status"].into_iter().filter_map(text).collect(),
            param: text("param"),
            message: message(error),
        }
    }

    /// Returns true when a code holds one of the words.
    pub(crate) fn has_code(&self, words: &[&str]) -> bool {
        let has = |code: &String| words.iter().any(|word| code.to_lowercase().contains(word));
        self.codes.iter().any(has)
    }

    /// Returns the codes that are ones, and neither sentences nor secrets.
    pub(crate) fn codes(&self) -> impl Iterator<Item = &str> {
        self.codes.iter().map(String::as_str).filter(|code| is_plain(code))
    }
}

fn is_plain(code: &str) -> bool {
    (1..=64).contains(&code.len())
        && code.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'.'))
}

/// Returns what was said, and what a gateway passes on from the provider
/// behind it. A list of what is wrong with each field quotes the request, so
/// of that only what is wrong is read.
fn message(error: &Value) -> String {
    let detail = error.get("detail");
    let said = match (error, error.get("message"), detail) {
        (Value::String(text), ..)
        | (_, Some(Value::String(text)), _)
        | (.., Some(Value::String(text))) => text.clone(),
        (.., Some(Value::Array(list))) => {
            let texts = list.iter().filter_map(|item| item.get("msg")?.as_str());
            texts.collect::<Vec<_>>().join("; ")
        }
        // Some list what is wrong under names of their own.
        _ => return error.to_string(),
    };
    let raw = error.pointer("/metadata/raw").and_then(Value::as_str).map(str::to_owned);
    // llama.cpp has the sizes beside its message.
    let size = |name: &str| Some(format!("{name}: {}", error.get(name)?.as_u64()?));
    let more = [raw, size("n_prompt_tokens"), size("n_ctx")];
    more.into_iter().flatten().fold(said, |said, more| format!("{said}; {more}"))
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
