//! The rules held against what a context writes. A body is read back as OpenAI
//! chat messages, the form that the rules are stated in, by code that shares
//! nothing with what wrote it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    Context,
    rules::{Provider, Violation, list, text, validate_messages},
};

/// Returns what the provider would refuse in what a [`Context`] writes for it.
///
/// The body is read back as the messages that [`validate_messages`] takes, the
/// system prompt first; an index is one among those. A context that breaks a
/// rule is a fault of this crate.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Message, Provider, Request, SessionManager, validate};
///
/// let sessions = SessionManager::builder().build()?;
/// sessions.add_message("chat", Message::tool_result("c1", "an answer to nothing")).await?;
/// let context = sessions.context("chat", &Request::new()).await?;
///
/// assert_eq!(validate(&context, Provider::Anthropic), []);
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn validate(context: &Context, provider: Provider) -> Vec<Violation> {
    let body = match provider {
        Provider::Anthropic => context.to_anthropic(),
        Provider::Gemini => context.to_gemini(),
        Provider::OpenAiChat => context.to_openai_chat(),
        Provider::OpenAiResponses => context.to_openai_responses(),
        Provider::StrictTemplate => context.to_strict_template(),
    };
    match serde_json::from_str(&body.to_json()) {
        Ok(body) => validate_messages(&messages(&body, provider), provider),
        // Values that are nested too deeply are JSON, but refused as well.
        Err(error) => {
            let problem = format!("the body cannot be read: {error}");
            vec![Violation { rule: "unreadable", index: None, problem }]
        }
    }
}

/// Returns the messages of a request body, the system prompt first.
fn messages(body: &Value, provider: Provider) -> Vec<Value> {
    match provider {
        Provider::Anthropic => {
            let mut chat = Chat::of(body.get("system"));
            for message in list(body.get("messages")) {
                chat.anthropic(message);
            }
            chat.messages
        }
        Provider::Gemini => {
            let mut chat = Chat::of(body.pointer("/systemInstruction/parts"));
            for content in list(body.get("contents")) {
                chat.gemini(content);
            }
            chat.messages
        }
        Provider::OpenAiChat | Provider::StrictTemplate => list(body.get("messages")).to_vec(),
        Provider::OpenAiResponses => {
            let mut chat = Chat::of(body.get("instructions"));
            for item in list(body.get("input")) {
                chat.responses(item);
            }
            chat.messages
        }
    }
}

#[derive(Default)]
struct Chat {
    messages: Vec<Value>,
    /// The newest message is of items that the model made.
    is_open: bool,
}

impl Chat {
    fn of(system: Option<&Value>) -> Self {
        let mut chat = Self::default();
        if let Some(system) = system {
            chat.say("system", system);
        }
        chat
    }

    /// Results are messages of their own, where they stand among the blocks.
    fn anthropic(&mut self, message: &Value) {
        let role = text(message.get("role"));
        let content = message.get("content").unwrap_or(&Value::Null);
        if role == "assistant" {
            let (calls, said) = split(list(Some(content)), |block| is(block, "tool_use"));
            let ids: Vec<_> = calls.iter().map(|call| text(call.get("id")).to_owned()).collect();
            let said = if content.is_array() { json!(said) } else { content.clone() };
            return self.ask(&ids, &said);
        }
        let blocks = list(Some(content));
        if blocks.is_empty() {
            self.say(role, content);
        }
        for run in blocks.chunk_by(|a, b| !is(a, "tool_result") && !is(b, "tool_result")) {
            match run {
                [result] if is(result, "tool_result") => {
                    self.answer(text(result.get("tool_use_id")), result.get("content"));
                }
                said => self.say(role, &json!(said)),
            }
        }
    }

    /// What stands beside the responses of a content belongs to them.
    fn gemini(&mut self, content: &Value) {
        let parts = list(content.get("parts"));
        let (calls, said) = split(parts, |part| part.get("functionCall").is_some());
        let said: Vec<_> = said.iter().map(|part| gemini_part(part)).collect();
        let answers: Vec<_> =
            parts.iter().filter_map(|part| part.get("functionResponse")).collect();
        if text(content.get("role")) == "model" {
            let calls: Vec<_> = calls.iter().filter_map(|part| part.get("functionCall")).collect();
            return self.ask(&gemini_ids(&calls), &json!(said));
        }
        if answers.is_empty() {
            self.say(text(content.get("role")), &json!(said));
        }
        for (id, answer) in gemini_ids(&answers).iter().zip(answers) {
            self.answer(id, answer.get("response"));
        }
    }

    /// The model's items between two inputs are one message.
    fn responses(&mut self, item: &Value) {
        let kind = text(item.get("type"));
        let call_id = item.get("call_id").and_then(Value::as_str);
        match (kind, call_id, text(item.get("role"))) {
            (kind, Some(id), _) if kind.ends_with("_call") => self.add(Some(id), &[]),
            (_, Some(id), _) => self.answer(id, item.get("output")),
            (_, None, "assistant") => match item.get("content") {
                Some(Value::Array(parts)) => self.add(None, parts),
                said => self.add(None, &[json!({"type": "text", "text": said})]),
            },
            (_, None, "") => self.add(None, std::slice::from_ref(item)),
            (_, None, role) => self.say(role, item.get("content").unwrap_or(&Value::Null)),
        }
    }

    fn say(&mut self, role: &str, content: &Value) {
        self.push(json!({"role": role, "content": content}));
    }

    fn ask(&mut self, ids: &[String], said: &Value) {
        let calls: Vec<_> = ids.iter().map(|id| json!({"id": id})).collect();
        self.push(json!({"role": "assistant", "content": said, "tool_calls": calls}));
    }

    fn answer(&mut self, id: &str, content: Option<&Value>) {
        self.push(json!({"role": "tool", "tool_call_id": id, "content": content}));
    }

    fn add(&mut self, call: Option<&str>, said: &[Value]) {
        if !self.is_open {
            self.ask(&[], &json!([]));
            self.is_open = true;
        }
        let Some(open) = self.messages.last_mut() else { return };
        if let Some(content) = open.get_mut("content").and_then(Value::as_array_mut) {
            content.extend_from_slice(said);
        }
        if let Some(calls) = open.get_mut("tool_calls").and_then(Value::as_array_mut) {
            calls.extend(call.map(|id| json!({"id": id})));
        }
    }

    fn push(&mut self, message: Value) {
        self.is_open = false;
        self.messages.push(message);
    }
}

fn is(block: &Value, kind: &str) -> bool {
    text(block.get("type")) == kind
}

fn split(parts: &[Value], first: impl Fn(&Value) -> bool) -> (Vec<&Value>, Vec<&Value>) {
    parts.iter().partition(|part| first(part))
}

/// Gemini's parts bear no type; a thought is a text that is marked as one.
fn gemini_part(part: &Value) -> Value {
    match part.get("text") {
        Some(_) if part.get("thought") == Some(&json!(true)) => json!({"type": "thinking"}),
        Some(said) => json!({"type": "text", "text": said}),
        None => json!({"type": "other"}),
    }
}

/// Calls and responses without an id are paired by name, in their order.
fn gemini_ids(parts: &[&Value]) -> Vec<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let mut ids = Vec::with_capacity(parts.len());
    for part in parts {
        let (id, name) = (text(part.get("id")), text(part.get("name")));
        if id.is_empty() {
            let count = counts.entry(name).or_default();
            *count = count.saturating_add(1);
            ids.push(format!("{name} {count}"));
        } else {
            ids.push(id.to_owned());
        }
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(provider: Provider, body: &Value) -> Vec<&'static str> {
        let found = validate_messages(&messages(body, provider), provider);
        found.into_iter().map(|found| found.rule).collect()
    }

    #[test]
    fn whole_bodies_are_accepted() {
        let anthropic = json!({"system": "S", "messages": [
            {"role": "user", "content": "Go"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "tool_use", "id": "a", "name": "f", "input": {}},
                {"type": "tool_use", "id": "b", "name": "f", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                {"type": "tool_result", "tool_use_id": "b", "content": "2"},
                {"type": "text", "text": "And?"}]},
            {"role": "assistant", "content": "Done."}]});
        assert_eq!(broken(Provider::Anthropic, &anthropic), [""; 0]);
        let gemini = json!({"systemInstruction": {"parts": [{"text": "S"}]}, "contents": [
            {"role": "user", "parts": [{"text": "Go"}]},
            {"role": "model", "parts": [
                {"text": "hm", "thought": true},
                {"functionCall": {"name": "f", "args": {}}},
                {"functionCall": {"id": "x", "name": "f", "args": {}}},
                {"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "f", "response": {}}},
                {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
                {"functionResponse": {"id": "x", "name": "f", "response": {}}},
                {"functionResponse": {"name": "f", "response": {}}}]}]});
        assert_eq!(broken(Provider::Gemini, &gemini), [""; 0]);
        let responses = json!({"instructions": "S", "input": [
            {"role": "user", "content": "Go"},
            {"type": "reasoning", "summary": [], "encrypted_content": "x"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I"}]},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            {"type": "custom_tool_call", "call_id": "b", "name": "g", "input": "x"},
            {"type": "function_call_output", "call_id": "a", "output": "1"},
            {"type": "custom_tool_call_output", "call_id": "b", "output": "2"},
            {"role": "assistant", "content": "Done."}]});
        assert_eq!(broken(Provider::OpenAiResponses, &responses), [""; 0]);
    }

    #[test]
    fn broken_bodies_are_not() {
        let anthropic = |messages: Value| {
            broken(Provider::Anthropic, &json!({"system": "S", "messages": messages}))
        };
        let user = json!({"role": "user", "content": [{"type": "text", "text": "Go"}]});
        let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]});
        let result = json!({"type": "tool_result", "tool_use_id": "a", "content": "1"});
        let late = json!({"role": "user", "content": [{"type": "text", "text": "Go"}, result]});
        assert_eq!(anthropic(json!([])), ["empty_rest"]);
        assert_eq!(anthropic(json!([user, call])), ["unanswered_call"]);
        assert_eq!(anthropic(json!([user, call, late])), ["unanswered_call", "orphan_result"]);
        assert_eq!(
            anthropic(json!([{"role": "assistant", "content": []}])),
            ["blank_message", "first_not_user", "blank_last_assistant"]
        );

        let gemini = |parts: Value| {
            let contents = json!([{"parts": [{"text": "Go"}], "role": "user"}, {"parts": parts, "role": "model"}]);
            broken(Provider::Gemini, &json!({"contents": contents}))
        };
        let call = json!({"functionCall": {"name": "f"}});
        assert_eq!(gemini(json!([call])), ["unanswered_call", "ends_on_model"]);
        assert_eq!(gemini(json!([{"text": "Hi"}])), ["ends_on_model"]);

        let responses = |input: Value| broken(Provider::OpenAiResponses, &json!({"input": input}));
        let call = json!({"type": "function_call", "call_id": "a"});
        let result = json!({"type": "function_call_output", "call_id": "a"});
        assert_eq!(responses(json!([])), ["empty"]);
        assert_eq!(responses(json!([call, call, result])), ["duplicate_call"]);
        assert_eq!(responses(json!([result])), ["orphan_result"]);
        assert_eq!(responses(json!([{"role": "user", "content": []}])), ["blank_message"]);
        assert_eq!(responses(json!([{"type": "reasoning", "summary": []}])), ["blank_message"]);
    }
}
