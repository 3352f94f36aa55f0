//! The `agents.defaults` object of a host's configuration file.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::SerializeMap};

use super::{
    layer::Layer,
    node::{Node, join},
    summarization::SummarizationConfig,
};
use crate::error::Result;

/// Deprecated fields of `agents.defaults`, and what they are called in the
/// nested block.
const LEGACY: [(&str, &str); 2] = [
    ("summarize_message_threshold", "message_threshold"),
    ("summarize_token_percent", "token_percent"),
];

/// What a host's configuration says about summaries: the part of its
/// `agents.defaults` object that this crate reads.
///
/// That is the nested block `summarization`, and the deprecated fields
/// `summarize_message_threshold` and `summarize_token_percent`. A field of the
/// nested block beats its deprecated twin, which beats the default. Other
/// fields beside the block are the host's and passed over; in the block an
/// unknown field is an error. Written back, it is the nested block alone, with
/// every field.
///
/// # Example
///
/// ```
/// use session_compaction::{AgentDefaults, Threshold};
///
/// let defaults: AgentDefaults = serde_json::from_str(
///     r#"{"model": "gpt-5", "summarize_token_percent": 60, "summarization": {"keep_last_messages": 6}}"#,
/// )?;
/// let config = defaults.get_summarization();
/// assert_eq!(config.token_percent, Threshold::Above(60));
/// assert_eq!(config.keep_last_messages, 6);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentDefaults {
    summarization: SummarizationConfig,
}

impl AgentDefaults {
    /// Returns the configuration that the block, the deprecated fields and the
    /// defaults make together.
    ///
    /// It was checked when this was read, so it has no errors to report.
    #[must_use]
    pub fn get_summarization(&self) -> SummarizationConfig {
        self.summarization.clone()
    }
}

impl Serialize for AgentDefaults {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry("summarization", &self.summarization)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for AgentDefaults {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let node = Node::deserialize(deserializer)?;
        let mut layer = Layer::default();
        read(&mut layer, "agents.defaults", "", &node).map_err(D::Error::custom)?;
        Ok(Self { summarization: layer.resolve().map_err(D::Error::custom)? })
    }
}

/// Reads an `agents.defaults` object that stands at a path: the deprecated
/// fields first, so that the block replaces them.
pub(super) fn read(layer: &mut Layer, origin: &str, path: &str, node: &Node) -> Result<()> {
    for (old, field) in LEGACY {
        if let Some(value) = node.member(path, old).map_err(|problem| problem.at(origin))? {
            layer.set(field, value, origin, &join(path, old))?;
        }
    }
    match node.member(path, "summarization").map_err(|problem| problem.at(origin))? {
        Some(block) => layer.read_block(origin, &join(path, "summarization"), block),
        None => Ok(()),
    }
}
