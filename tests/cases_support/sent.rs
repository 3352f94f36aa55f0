//! A built context, in the form of each provider's request.

use std::collections::BTreeMap;

use serde_json::{Value, value::RawValue};

use super::{assertion::Rules, wire};

/// JSON text of each whole body, or of the list of messages alone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Sent {
    pub(crate) openai_chat: String,
    pub(crate) anthropic: String,
    pub(crate) gemini: String,
    pub(crate) strict_template: String,
    /// Positions of the messages that were healed.
    pub(crate) repaired: Vec<u64>,
}

impl Sent {
    /// The messages in OpenAI's form, in the order in which the provider gets them.
    pub(crate) fn messages(&self, rules: Rules) -> Result<Vec<Value>, String> {
        wire::messages(self.text(rules), rules.provider())
    }

    /// The members of the body but the messages, and each message's source text.
    pub(crate) fn pieces(&self, rules: Rules) -> (BTreeMap<String, String>, Vec<String>) {
        let text = self.text(rules);
        let name = if rules == Rules::Gemini { "contents" } else { "messages" };
        let source = |raw: Box<RawValue>| raw.get().to_owned();
        let split = |raw: &str| -> Vec<String> {
            let list: Vec<Box<RawValue>> = serde_json::from_str(raw).unwrap_or_default();
            list.into_iter().map(source).collect()
        };
        let Ok(members) = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(text) else {
            return (BTreeMap::new(), split(text));
        };
        let mut members: BTreeMap<_, _> =
            members.into_iter().map(|(key, raw)| (key, source(raw))).collect();
        let messages = members.remove(name).unwrap_or_default();
        (members, split(&messages))
    }

    fn text(&self, rules: Rules) -> &str {
        match rules {
            Rules::Openai => &self.openai_chat,
            Rules::Anthropic => &self.anthropic,
            Rules::Gemini => &self.gemini,
            Rules::StrictTemplate => &self.strict_template,
        }
    }
}
