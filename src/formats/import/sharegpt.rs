//! `ShareGPT`: turns of `from` and `value`.

use std::collections::VecDeque;

use crate::message::{Message, ToolCall, json::Members, read};

/// The calls of a conversation that wait for their observation.
#[derive(Default)]
pub(super) struct State {
    calls: usize,
    open: VecDeque<String>,
}

impl State {
    pub(super) fn read_turn(&mut self, members: &Members<'_>) -> Result<Message, String> {
        let from = members.text("from").unwrap_or_default();
        let text = members.text("value").ok_or("the value of a turn is text")?;
        Ok(match from.to_ascii_lowercase().as_str() {
            "human" | "user" => Message::user(text),
            "assistant" | "bard" | "bing" | "chatgpt" | "gpt" | "model" => Message::assistant(text),
            "system" => Message::system(text),
            "function_call" | "tool_call" => self.call(&text),
            "function_response" | "observation" | "tool" | "tool_response" => {
                match self.open.pop_front() {
                    Some(id) => Message::tool_result(id, text),
                    // The call stands in the text before: so does its answer.
                    None => Message::user(text).with_name("tool"),
                }
            }
            _ => {
                return Err(format!(
                    "a turn is from human, gpt, system, function_call or observation, not {from:?}"
                ));
            }
        })
    }

    fn call(&mut self, text: &str) -> Message {
        self.calls = self.calls.saturating_add(1);
        let id = format!("call_{}", self.calls);
        let members = Members::of(text).unwrap_or_default();
        let call = match members.text("name") {
            Some(name) => ToolCall::new(id.clone(), name, read::arguments(&members, "arguments")),
            None => ToolCall::new(id.clone(), "unknown", text),
        };
        self.open.push_back(id);
        Message::assistant("").with_part(call.into())
    }
}
