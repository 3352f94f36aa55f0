//! Message dumps of LangChain: `type` and `data`, constructors (`lc`,
//! `kwargs`), and the plain form of its models.

use serde_json::value::RawValue;

use crate::{
    formats::anthropic,
    message::{
        Message, Origin, Part, RawJson, Reasoning, Role, ToolCall, ToolResult,
        json::{Members, elements, text_of},
        read,
    },
};

pub(super) fn read_message(members: &Members<'_>) -> Result<Message, String> {
    let inner = members.object("kwargs").or_else(|| members.object("data"));
    let data = inner.as_ref().unwrap_or(members);
    let role = role(members, data)?;
    let extra = data.object("additional_kwargs").unwrap_or_default();

    let calls = calls(data, &extra);
    let mut parts = Vec::new();
    if let Some(thought) = extra.text("reasoning_content") {
        parts.push(Reasoning::new(thought, Origin::OpenAiChat).into());
    }
    parts.extend(content(data.get("content"), !calls.is_empty())?);
    parts.extend(calls);
    if role == Role::Tool {
        let name = data.text("name").unwrap_or_default();
        let id = data.text_or_number("tool_call_id").unwrap_or(name);
        let mut result = ToolResult { content: parts, ..ToolResult::new(id, "") };
        result.is_error = data.text("status").as_deref() == Some("error");
        parts = vec![result.into()];
    }
    let mut message = Message::new(role, parts);
    // The constructors' `id` is the name of the class.
    if let Some(id) = data.text("id").filter(|id| !id.is_empty()) {
        message = message.with_id(id);
    }
    match data.text("name").filter(|name| !name.is_empty()) {
        Some(name) => Ok(message.with_name(name)),
        None => Ok(message),
    }
}

fn role(members: &Members<'_>, data: &Members<'_>) -> Result<Role, String> {
    let class = members.get("id").and_then(elements).unwrap_or_default();
    let class = class.last().and_then(|name| text_of(name));
    let named = data.text("type").or(class).or_else(|| members.text("type")).unwrap_or_default();
    let short = named.trim_end_matches("Chunk").trim_end_matches("Message").to_ascii_lowercase();
    let short = match short.as_str() {
        "chat" => data.text("role").unwrap_or_default(),
        _ => short,
    };
    Ok(match short.as_str() {
        "ai" | "assistant" => Role::Assistant,
        "developer" => Role::Developer,
        "function" | "tool" => Role::Tool,
        "human" | "user" => Role::User,
        "system" => Role::System,
        _ => {
            return Err(format!("a message is ai, human, system, tool or function, not {named:?}"));
        }
    })
}

/// Reads the content. Calls stand in it once more in Anthropic's form, and an
/// empty text beside calls is only a filler.
fn content(value: Option<&RawValue>, has_calls: bool) -> Result<Vec<Part>, String> {
    let Some(value) = value else { return Ok(Vec::new()) };
    if let Some(text) = text_of(value) {
        return Ok((!has_calls || !text.is_empty())
            .then(|| Part::text(text))
            .into_iter()
            .collect());
    }
    let list = elements(value).ok_or_else(|| {
        format!("the content is text or a list, this is {}", read::kind(value.get()))
    })?;
    let parts = list.into_iter().map(|value| match read::part(value) {
        Part::Json(raw) => known_block(value).unwrap_or(Part::Json(raw)),
        part => part,
    });
    Ok(parts.filter(|part| !has_calls || !matches!(part, Part::ToolCall(_))).collect())
}

fn known_block(value: &RawValue) -> Option<Part> {
    let members = Members::of(value.get())?;
    match members.text("type")?.as_str() {
        "input_text" | "output_text" => Some(Part::text(members.text("text")?)),
        "input_json_delta" => None,
        _ => match anthropic::block(value) {
            Part::Json(_) => None,
            part => Some(part),
        },
    }
}

fn calls(data: &Members<'_>, extra: &Members<'_>) -> Vec<Part> {
    let list = |members: &Members<'_>, name| -> Vec<RawJson> {
        let list = members.get(name).and_then(elements).unwrap_or_default();
        list.into_iter().map(RawJson::from).collect()
    };
    let own = [list(data, "tool_calls"), list(data, "invalid_tool_calls")].concat();
    let mut calls: Vec<Part> = own.iter().filter_map(own_call).collect();
    if calls.is_empty() {
        let openai = list(extra, "tool_calls");
        calls.extend(openai.iter().filter_map(|call| call.to().ok()).map(read::tool_call));
    }
    if let Some(function) = extra.object("function_call").filter(|_| calls.is_empty()) {
        let name = function.text("name").unwrap_or_default();
        calls.push(
            ToolCall::new(name.clone(), name, read::arguments(&function, "arguments")).into(),
        );
    }
    calls
}

fn own_call(call: &RawJson) -> Option<Part> {
    let call = Members::of(call.as_str())?;
    let id = call.text_or_number("id").unwrap_or_default();
    let name = call.text("name").unwrap_or_default();
    Some(ToolCall::new(id, name, read::arguments(&call, "args")).into())
}
