//! What four kinds of endpoint refuse, as pure checkers. They share no code
//! with what arranges a context, so that each can test the other.

use std::{collections::BTreeSet, fmt};

use serde_json::Value;

/// Whose rules a list of messages is held to.
///
/// # Example
///
/// ```
/// use session_compaction::{Provider, validate_messages};
///
/// let orphan = serde_json::json!({"role": "tool", "tool_call_id": "c1", "content": "42% used"});
/// assert!(!validate_messages(&[orphan], Provider::OpenAiChat).is_empty());
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Provider {
    /// Anthropic's Messages API.
    Anthropic,
    /// Gemini's `contents`.
    Gemini,
    /// OpenAI's Chat Completions and the many servers that follow it.
    OpenAiChat,
    /// OpenAI's Responses API. Checked as [`OpenAiChat`](Self::OpenAiChat):
    /// its items pair calls and outputs in the same way.
    OpenAiResponses,
    /// The chat templates of several open models, which allow one leading
    /// system message and strict turns only.
    StrictTemplate,
}

/// One thing that a provider would refuse.
///
/// # Example
///
/// ```
/// use serde_json::json;
/// use session_compaction::{Provider, validate_messages};
///
/// let messages = [json!({"role": "user", "content": " "})];
/// let found = validate_messages(&messages, Provider::OpenAiChat);
///
/// assert_eq!(found[0].rule, "blank_message");
/// assert_eq!(found[0].to_string(), "message 0: blank_message: the message has no visible text");
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Violation {
    /// The broken rule's name, stable, for programs.
    pub rule: &'static str,
    /// Index of the message at fault; `None` where the list as a whole is.
    pub index: Option<usize>,
    /// What is wrong, for people.
    pub problem: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(f, "message {index}: {}: {}", self.rule, self.problem),
            None => write!(f, "{}: {}", self.rule, self.problem),
        }
    }
}

/// Returns what the provider would refuse in a list of messages; nothing where
/// it would accept them.
///
/// The messages are in the form of OpenAI's Chat Completions, in the order in
/// which the provider gets them: for Anthropic and Gemini the system messages,
/// which their requests hold apart, stand at the head. Anthropic's `thinking`
/// and `redacted_thinking` blocks are parts of an assistant message's content.
/// That a thinking block is the one that was issued cannot be seen here; that
/// it came with its signature can.
///
/// The rules are restated from reports of refused requests. A list that passes
/// may still be refused for what they do not cover, such as its length.
///
/// # Example
///
/// ```
/// use serde_json::json;
/// use session_compaction::{Provider, validate_messages};
///
/// let messages = [
///     json!({"role": "user", "content": "Read the notes"}),
///     json!({"role": "tool", "tool_call_id": "c1", "content": "buy milk"}),
/// ];
/// let rules: Vec<_> =
///     validate_messages(&messages, Provider::OpenAiChat).iter().map(|found| found.rule).collect();
/// assert_eq!(rules, ["orphan_result"]);
/// ```
#[must_use]
pub fn validate_messages(messages: &[Value], provider: Provider) -> Vec<Violation> {
    let mut check = Checker { messages: messages.iter().map(View::of).collect(), found: vec![] };
    check.known_roles();
    match provider {
        Provider::OpenAiChat | Provider::OpenAiResponses => check.openai(),
        Provider::Anthropic => check.anthropic(),
        Provider::Gemini => check.gemini(),
        Provider::StrictTemplate => check.strict_template(),
    }
    check.found.sort_by_key(|found| found.index);
    check.found
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Role {
    Assistant,
    System,
    Tool,
    Unknown,
    User,
}

/// A message as far as the rules look at it.
#[derive(Clone, Debug)]
struct View<'a> {
    json: &'a Value,
    role: Role,
    calls: Vec<&'a str>,
}

impl<'a> View<'a> {
    fn of(json: &'a Value) -> Self {
        let role = match json.get("role").and_then(Value::as_str) {
            Some("assistant") => Role::Assistant,
            Some("developer" | "system") => Role::System,
            Some("tool") => Role::Tool,
            Some("user") => Role::User,
            _ => Role::Unknown,
        };
        let calls = if role == Role::Assistant { list(json.get("tool_calls")) } else { &[] };
        let calls = calls.iter().map(|call| text(call.get("id"))).collect();
        Self { json, role, calls }
    }

    fn is_call(&self) -> bool {
        !self.calls.is_empty()
    }

    /// A turn that a reader sees: no tool traffic, no system message.
    fn is_visible(&self) -> bool {
        self.role == Role::User || (self.role == Role::Assistant && !self.is_call())
    }

    /// Neither calls nor anything to read, see or hear.
    fn is_blank(&self) -> bool {
        let content = match self.json.get("content") {
            Some(Value::String(text)) => is_blank(text),
            Some(Value::Array(parts)) => parts.iter().all(is_blank_part),
            _ => true,
        };
        let elsewhere = !is_blank(text(self.json.get("refusal")))
            || self.json.get("audio").is_some_and(Value::is_object);
        content && !elsewhere && !self.is_call()
    }
}

struct Checker<'a> {
    messages: Vec<View<'a>>,
    found: Vec<Violation>,
}

impl Checker<'_> {
    fn openai(&mut self) {
        if self.messages.is_empty() {
            self.report("empty", None, "there are no messages");
        }
        self.pairs();
        self.blanks();
    }

    fn anthropic(&mut self) {
        self.openai();
        self.system_leads();
        self.user_leads();
        if self.rest().next().is_none() {
            self.no_rest();
        }
        self.last_assistant();
        self.thinking();
    }

    fn gemini(&mut self) {
        self.pairs();
        let rest: Vec<_> =
            self.rest().map(|(index, view)| (index, view.role, view.is_call())).collect();
        match rest.last() {
            None => self.no_rest(),
            Some((index, Role::Assistant, _)) => {
                self.report("ends_on_model", *index, "the last message is the model's");
            }
            Some(_) => {}
        }
        let mut before = None;
        for (index, role, is_call) in rest {
            if is_call && !matches!(before, Some(Role::User | Role::Tool)) {
                let problem = "a call follows neither a user message nor a tool result";
                self.report("call_out_of_turn", index, problem);
            }
            before = Some(role);
        }
    }

    fn strict_template(&mut self) {
        let late: Vec<_> = self.indexes(|index, view| index > 0 && view.role == Role::System);
        for index in late {
            self.report("late_system", index, "a system message stands after the first message");
        }
        if !self.messages.iter().any(|view| view.role == Role::User) {
            self.report("no_user", None, "there is no user message");
        }
        self.user_leads();
        self.turns();
    }

    /// A result answers a call of the assistant message before it, once, and
    /// nothing else comes in between.
    fn pairs(&mut self) {
        let mut found = Vec::new();
        let mut round = Round::default();
        for (index, view) in self.messages.iter().enumerate() {
            if view.role == Role::Tool {
                let id = text(view.json.get("tool_call_id"));
                if round.open.remove(id) {
                    round.answered.insert(id);
                } else if round.answered.contains(id) {
                    let problem = format!("call {id:?} has a second result");
                    found.push(violation("duplicate_result", index, problem));
                } else {
                    let problem = format!("no call {id:?} in the assistant message before it");
                    found.push(violation("orphan_result", index, problem));
                }
                continue;
            }
            found.extend(round.unanswered());
            round = Round { index, ..Round::default() };
            for id in &view.calls {
                if !round.open.insert(id) {
                    let problem = format!("two calls share the id {id:?}");
                    found.push(violation("duplicate_call", index, problem));
                }
            }
        }
        found.extend(round.unanswered());
        self.found.extend(found);
    }

    fn blanks(&mut self) {
        let spoken = |view: &View<'_>| matches!(view.role, Role::User | Role::Assistant);
        for index in self.indexes(|_, view| spoken(view) && view.is_blank()) {
            self.report("blank_message", index, "the message has no visible text");
        }
    }

    fn no_rest(&mut self) {
        self.report("empty_rest", None, "there is no message but system messages");
    }

    fn user_leads(&mut self) {
        let first = self.rest().next().map(|(index, view)| (index, view.role));
        if let Some((index, role)) = first
            && role != Role::User
        {
            self.report("first_not_user", index, "the first message is not the user's");
        }
    }

    fn system_leads(&mut self) {
        let first = self.rest().next().map_or(self.messages.len(), |(index, _)| index);
        for index in self.indexes(|index, view| index > first && view.role == Role::System) {
            self.report("late_system", index, "a system message stands after the first other one");
        }
    }

    fn last_assistant(&mut self) {
        let last = self.indexes(|_, view| view.role == Role::Assistant).pop();
        if let Some(index) = last
            && self.messages.get(index).is_some_and(View::is_blank)
        {
            self.report("blank_last_assistant", index, "the last assistant message is blank");
        }
    }

    fn thinking(&mut self) {
        for index in self.indexes(|_, view| parts(view).any(is_broken_thinking)) {
            let problem = "a thinking block lacks its text or its signature";
            self.report("broken_thinking", index, problem);
        }
    }

    fn turns(&mut self) {
        let repeats: Vec<_> = {
            let visible = || self.messages.iter().enumerate().filter(|(_, view)| view.is_visible());
            let pairs = visible().zip(visible().skip(1));
            pairs.filter(|((_, a), (_, b))| a.role == b.role).map(|(_, (index, _))| index).collect()
        };
        for index in repeats {
            self.report("same_role", index, "the visible message before it has the same role");
        }
        let after_tool: Vec<_> = {
            let pairs = self.messages.iter().zip(self.messages.iter().enumerate().skip(1));
            let bad = pairs.filter(|(a, (_, b))| a.role == Role::Tool && b.role == Role::User);
            bad.map(|(_, (index, _))| index).collect()
        };
        for index in after_tool {
            self.report("user_after_tool", index, "a user message directly follows a tool result");
        }
    }

    fn known_roles(&mut self) {
        for index in self.indexes(|_, view| view.role == Role::Unknown) {
            self.report("unknown_role", index, "the message has no known role");
        }
    }

    /// The messages without the system's.
    fn rest(&self) -> impl Iterator<Item = (usize, &View<'_>)> {
        let all = self.messages.iter().enumerate();
        all.filter(|(_, view)| view.role != Role::System)
    }

    fn indexes(&self, at_fault: impl Fn(usize, &View<'_>) -> bool) -> Vec<usize> {
        let all = self.messages.iter().enumerate();
        all.filter(|(index, view)| at_fault(*index, view)).map(|(index, _)| index).collect()
    }

    fn report(
        &mut self,
        rule: &'static str,
        index: impl Into<Option<usize>>,
        problem: impl Into<String>,
    ) {
        self.found.push(Violation { rule, index: index.into(), problem: problem.into() });
    }
}

/// An assistant message's calls, and which of them have their result.
#[derive(Default)]
struct Round<'a> {
    index: usize,
    open: BTreeSet<&'a str>,
    answered: BTreeSet<&'a str>,
}

impl Round<'_> {
    fn unanswered(&self) -> impl Iterator<Item = Violation> {
        self.open.iter().map(|id| {
            let problem = format!("call {id:?} has no result before the next message");
            violation("unanswered_call", self.index, problem)
        })
    }
}

fn violation(rule: &'static str, index: usize, problem: String) -> Violation {
    Violation { rule, index: Some(index), problem }
}

fn parts<'a>(view: &View<'a>) -> impl Iterator<Item = &'a Value> {
    list(view.json.get("content")).iter()
}

/// Text without a visible character, or what no reader sees.
fn is_blank_part(part: &Value) -> bool {
    match text(part.get("type")) {
        "text" | "output_text" | "input_text" | "" => is_blank(text(part.get("text"))),
        "refusal" => is_blank(text(part.get("refusal"))),
        "reasoning" | "redacted_thinking" | "thinking" => true,
        _ => false,
    }
}

fn is_broken_thinking(part: &Value) -> bool {
    match text(part.get("type")) {
        // Some models leave the text out and sign what is hidden.
        "thinking" => {
            !part.get("thinking").is_some_and(Value::is_string)
                || is_blank(text(part.get("signature")))
        }
        "redacted_thinking" => is_blank(text(part.get("data"))),
        _ => false,
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

pub(super) fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
