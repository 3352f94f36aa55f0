//! From what a provider gets to the form of OpenAI's chat messages, in which
//! the rules are written.

use serde_json::{Value, json};
use session_compaction::Provider;

/// Returns the messages of a request's body in OpenAI's form, in the order in
/// which the provider gets them.
pub(crate) fn messages(body: &str, provider: Provider) -> Result<Vec<Value>, String> {
    let body: Value =
        serde_json::from_str(body).map_err(|error| format!("{provider:?}: {error}"))?;
    Ok(match provider {
        Provider::Anthropic => from_anthropic(&body),
        Provider::Gemini => from_gemini(&body),
        _ => list(&body, "messages"),
    })
}

fn list(body: &Value, name: &str) -> Vec<Value> {
    body.as_array().or_else(|| body.get(name)?.as_array()).cloned().unwrap_or_default()
}

/// Results come as blocks of a user message; what follows them in it is the
/// user's own.
fn from_anthropic(body: &Value) -> Vec<Value> {
    let mut messages = Vec::new();
    if let Some(system) = body.get("system").filter(|system| !system.is_null()) {
        messages.push(json!({"role": "system", "content": system}));
    }
    for message in list(body, "messages") {
        let role = message["role"].clone();
        let Some(blocks) = message["content"].as_array() else {
            messages.push(message);
            continue;
        };
        let (mut content, mut calls) = (Vec::new(), Vec::new());
        let mut own = 0;
        for block in blocks {
            match block["type"].as_str() {
                Some("tool_use") => calls.push(call(&block["id"], &block["name"], &block["input"])),
                Some("tool_result") => {
                    flush(&mut messages, &role, &mut content);
                    messages.push(json!({
                        "role": "tool", "tool_call_id": block["tool_use_id"], "content": block["content"],
                    }));
                    own += 1;
                }
                _ => content.push(block.clone()),
            }
        }
        if own == 0 || !content.is_empty() || !calls.is_empty() {
            push(&mut messages, &role, &content, &calls);
        }
    }
    messages
}

/// Calls and responses may lack ids: then they pair by name and order.
fn from_gemini(body: &Value) -> Vec<Value> {
    let mut messages = Vec::new();
    let system = body.get("systemInstruction").or_else(|| body.get("system_instruction"));
    if let Some(system) = system {
        messages.push(json!({"role": "system", "content": texts(&system["parts"])}));
    }
    let mut open: Vec<(Value, String)> = Vec::new();
    let mut made = 0;
    for content in list(body, "contents") {
        let role = if content["role"] == "model" { json!("assistant") } else { json!("user") };
        let (mut said, mut calls) = (Vec::new(), Vec::new());
        let mut own = 0;
        for part in content["parts"].as_array().into_iter().flatten() {
            if let Some(function) = part.get("functionCall") {
                made += 1;
                let id =
                    function["id"].as_str().map_or_else(|| format!("made-{made}"), str::to_owned);
                calls.push(call(&json!(id), &function["name"], &function["args"]));
                open.push((function["name"].clone(), id));
            } else if let Some(function) = part.get("functionResponse") {
                flush(&mut messages, &role, &mut said);
                let named = open.iter().position(|(name, id)| match function["id"].as_str() {
                    Some(own) => own == id,
                    None => *name == function["name"],
                });
                let id = named.map(|at| open.remove(at).1);
                let id = id.unwrap_or_else(|| format!("nobody's {}", function["id"]));
                let content = function["response"].to_string();
                messages.push(json!({"role": "tool", "tool_call_id": id, "content": content}));
                own += 1;
            } else if let Some(text) = part.get("text") {
                said.push(json!({"type": "text", "text": text}));
            } else {
                said.push(part.clone());
            }
        }
        if own == 0 || !said.is_empty() || !calls.is_empty() {
            push(&mut messages, &role, &said, &calls);
        }
    }
    messages
}

fn texts(parts: &Value) -> String {
    let parts = parts.as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

fn call(id: &Value, name: &Value, arguments: &Value) -> Value {
    let function = json!({"name": name, "arguments": arguments.to_string()});
    json!({"id": id, "type": "function", "function": function})
}

fn flush(messages: &mut Vec<Value>, role: &Value, content: &mut Vec<Value>) {
    if !content.is_empty() {
        push(messages, role, content, &[]);
        content.clear();
    }
}

fn push(messages: &mut Vec<Value>, role: &Value, content: &[Value], calls: &[Value]) {
    let mut message = json!({"role": role, "content": content});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    messages.push(message);
}
