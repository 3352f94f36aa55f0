//! What a host adds to a session to make a request of it.

use serde::Serialize;

use crate::{error::Result, message::RawJson, plan::Prune};

/// What goes into one request beside the session: none of it is stored.
///
/// # Example
///
/// ```
/// use session_compaction::Request;
///
/// let request = Request::new()
///     .system("You are a build helper.")
///     .max_output(4096)
///     .notes("Today is Monday.");
/// # let _ = request;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub(crate) system: Option<String>,
    tools: Option<Result<RawJson>>,
    pub(crate) max_output: Option<u64>,
    pub(crate) notes: Option<String>,
    pub(crate) summary_role: SummaryRole,
    pub(crate) prune: Option<Prune>,
}

/// Who says the summary of what came before.
///
/// # Example
///
/// ```
/// use session_compaction::{Request, SummaryRole};
///
/// let request = Request::new().summary_role(SummaryRole::System);
/// # let _ = request;
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum SummaryRole {
    /// It ends the system prompt. Choose it only where the conversation holds
    /// no text that you would not trust as an instruction.
    System,
    /// It opens the first user message, as data.
    #[default]
    User,
}

impl Request {
    /// Creates a request that adds nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the system prompt. It takes the place of the system messages that
    /// the session begins with; a blank one leaves them as they are.
    #[must_use]
    pub fn system(mut self, text: impl Into<String>) -> Self {
        self.system = Some(text.into()).filter(|text| !text.trim().is_empty());
        self
    }

    /// Sets the tools, in the form that the provider takes. Where they have no
    /// JSON form, making a context of the request fails.
    #[must_use]
    pub fn tools<T: Serialize + ?Sized>(mut self, tools: &T) -> Self {
        self.tools = Some(RawJson::from_value(tools));
        self
    }

    /// Sets how many tokens the answer may take.
    #[must_use]
    pub const fn max_output(mut self, tokens: u64) -> Self {
        self.max_output = Some(tokens);
        self
    }

    /// Sets a text that rides on the newest user message of this one request,
    /// such as the date or what was looked up for the question.
    #[must_use]
    pub fn notes(mut self, text: impl Into<String>) -> Self {
        self.notes = Some(text.into()).filter(|text| !text.trim().is_empty());
        self
    }

    /// Sends old, large tool results as a marker that says what it was and how
    /// long. What is stored, and summarized later, stays whole.
    ///
    /// Off unless it is called. Use the same rule for each request of a
    /// session: what was sent before then changes once for each batch.
    #[must_use]
    pub const fn prune(mut self, rule: Prune) -> Self {
        self.prune = Some(rule);
        self
    }

    /// Sets who says the summary; the user, unless it is called.
    #[must_use]
    pub const fn summary_role(mut self, role: SummaryRole) -> Self {
        self.summary_role = role;
        self
    }

    /// The members of a request body that do not depend on the session: the
    /// tools, and the bound of the answer under the provider's name for it.
    pub(super) fn members(&self, max_output: &'static str) -> Vec<(&'static str, String)> {
        let max_output = self.max_output.map(|tokens| (max_output, tokens.to_string()));
        let tools = self.tools_json().ok().flatten();
        let tools = tools.map(|tools| ("tools", tools.as_str().to_owned()));
        max_output.into_iter().chain(tools).collect()
    }

    pub(super) fn tools_json(&self) -> Result<Option<&RawJson>> {
        self.tools.as_ref().map(|tools| tools.as_ref().map_err(Clone::clone)).transpose()
    }
}
