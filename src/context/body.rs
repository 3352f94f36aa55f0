//! What goes into a request's body.

use serde::{Serialize, Serializer, ser::Error as _};
use serde_json::value::RawValue;

use crate::message::json::JsonWriter;

/// The members of a request body that a [`Context`](crate::Context) gives, in
/// a provider's form: the messages, and where the request says so the system
/// prompt, the tools and the bound of the answer.
///
/// The model's name and whatever else the host wishes stand beside them. It
/// serializes as an object, without a tree of values in between.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Message, Request, SessionManager};
///
/// #[derive(serde::Serialize)]
/// struct Post {
///     model: &'static str,
///     #[serde(flatten)]
///     context: session_compaction::Body,
/// }
///
/// let sessions = SessionManager::builder().build()?;
/// sessions.add_message("chat", Message::user("hello")).await?;
/// let context = sessions.context("chat", &Request::new().max_output(512)).await?;
/// let post = Post { model: "gpt-5-mini", context: context.to_openai_chat() };
/// assert_eq!(
///     serde_json::to_string(&post).unwrap(),
///     r#"{"model":"gpt-5-mini","max_completion_tokens":512,"messages":[{"role":"user","content":"hello"}]}"#
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Body {
    /// Name and JSON of each member; the messages come last, so that a body
    /// extends the one before it.
    members: Vec<(&'static str, String)>,
}

impl Body {
    /// Creates a body of its members, the messages last.
    pub(crate) const fn new(members: Vec<(&'static str, String)>) -> Self {
        Self { members }
    }

    /// Returns the messages as a JSON list.
    #[must_use]
    pub fn messages(&self) -> &str {
        self.members.last().map_or("[]", |(_, json)| json)
    }

    /// Returns a member as JSON, such as Anthropic's `system`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.members.iter().find(|(member, _)| *member == name).map(|(_, json)| json.as_str())
    }

    /// Returns the whole body as a JSON object.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = JsonWriter::default();
        out.begin(b'{');
        for (name, json) in &self.members {
            out.raw_member(name, json);
        }
        out.end(b'}');
        out.finish()
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let members = self.members.iter().map(|(name, json)| {
            let value: &RawValue = serde_json::from_str(json).map_err(S::Error::custom)?;
            Ok((*name, value))
        });
        let members = members.collect::<Result<Vec<_>, S::Error>>()?;
        serializer.collect_map(members)
    }
}
