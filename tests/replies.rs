//! A reply becomes a message of the history, and goes back to its provider as
//! that provider expects it.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use serde_json::{Value, json};
use session_compaction::{
    Message, Part, Result, Role,
    formats::{Conversation, Reply, Stop, anthropic, gemini, openai_chat, openai_responses},
};

type Parse = fn(&str) -> Result<Reply>;

const PARSERS: [Parse; 4] = [
    anthropic::parse_reply,
    gemini::parse_reply,
    openai_chat::parse_reply,
    openai_responses::parse_reply,
];

/// Writes the message of a reply, before and after a store had it.
fn written(write: fn(&Conversation) -> String, reply: &Reply, list: &str) -> Value {
    let body = |message: &Message| -> Value {
        serde_json::from_str(&write(&Conversation::new([message.clone()]))).unwrap()
    };
    let stored: Message =
        serde_json::from_str(&serde_json::to_string(&reply.message).unwrap()).unwrap();
    assert_eq!(stored, reply.message);
    let now = body(&reply.message).get(list).cloned().unwrap();
    assert_eq!(body(&stored).get(list), Some(&now), "after a store");
    now
}

fn counts(reply: &Reply) -> Option<(u64, u64, u64)> {
    reply.usage.map(|usage| (usage.input, usage.cached, usage.output))
}

#[test]
fn an_openai_reply_keeps_what_a_request_may_hold() {
    let body = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "model": "m",
        "choices": [{ "index": 0, "finish_reason": "tool_calls", "logprobs": null, "message": {
            "role": "assistant", "content": null, "refusal": null, "annotations": [],
            "reasoning_content": "look first",
            "reasoning_details": [{ "type": "reasoning.encrypted", "data": "zz" }],
            "tool_calls": [{ "id": "c1", "type": "function",
                "function": { "name": "df", "arguments": "{\"path\": \"/\"}" },
                "extra_content": { "google": { "thought_signature": "sig" } } }],
        } }],
        "usage": { "prompt_tokens": 1200, "completion_tokens": 40, "total_tokens": 1240,
            "prompt_tokens_details": { "cached_tokens": 1024 } },
    });
    let reply = openai_chat::parse_reply(&body.to_string()).unwrap();
    assert_eq!(reply.stop, Stop::ToolCalls);
    assert_eq!(counts(&reply), Some((1_200, 1_024, 40)));
    assert!(matches!(reply.message.parts(), [Part::Reasoning(_), Part::ToolCall(_)]));

    let mut expected = body.pointer("/choices/0/message").cloned().unwrap();
    for absent in ["content", "refusal", "annotations"] {
        expected.as_object_mut().unwrap().remove(absent);
    }
    let mut sent = written(openai_chat::write, &reply, "messages")[0].clone();
    // The format's own null, beside tool calls.
    if sent.get("content") == Some(&Value::Null) {
        sent.as_object_mut().unwrap().remove("content");
    }
    assert_eq!(sent, expected);
}

#[test]
fn an_anthropic_reply_keeps_signatures_and_unknown_blocks() {
    let content = json!([
        { "type": "thinking", "thinking": "hm", "signature": "EqQ=" },
        { "type": "redacted_thinking", "data": "zz" },
        { "type": "text", "text": "Looking.", "citations": null },
        { "type": "server_tool_use", "id": "s1", "name": "web_search", "input": { "query": "q" } },
        { "type": "web_search_tool_result", "tool_use_id": "s1", "content": [] },
        { "type": "tool_use", "id": "c1", "name": "df", "input": { "path": "/", "n": 1.50 } },
    ]);
    let body = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": content,
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": { "input_tokens": 12, "cache_creation_input_tokens": 300,
            "cache_read_input_tokens": 4000, "output_tokens": 55 },
    });
    let reply = anthropic::parse_reply(&body.to_string()).unwrap();
    assert_eq!(reply.stop, Stop::ToolCalls);
    assert_eq!(counts(&reply), Some((4_312, 4_000, 55)));
    let expected = json!([{ "role": "assistant", "content": content }]);
    assert_eq!(written(anthropic::write, &reply, "messages"), expected);

    let empty = r#"{"type":"message","role":"assistant","content":[{"type":"text","text":""}]}"#;
    assert!(anthropic::parse_reply(empty).unwrap().message.parts().is_empty());
}

#[test]
fn a_responses_reply_is_one_message_of_all_items() {
    let output = json!([
        { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gA==" },
        { "type": "web_search_call", "id": "ws_1", "status": "completed" },
        { "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": "Looking.", "annotations": [] }] },
        { "type": "shell_call", "id": "sh_1", "call_id": "s1", "action": { "commands": ["ls"] } },
        { "type": "shell_call_output", "id": "so_1", "call_id": "s1", "output": [] },
        { "type": "function_call", "id": "fc_1", "call_id": "c1", "name": "df", "arguments": "{}" },
    ]);
    let body = json!({
        "id": "resp_1", "object": "response", "status": "completed", "error": null,
        "incomplete_details": null, "output": output,
        "usage": { "input_tokens": 900, "input_tokens_details": { "cached_tokens": 512 },
            "output_tokens": 70, "output_tokens_details": { "reasoning_tokens": 64 } },
    });
    let reply = openai_responses::parse_reply(&body.to_string()).unwrap();
    assert_eq!(reply.stop, Stop::ToolCalls);
    assert_eq!(counts(&reply), Some((900, 512, 70)));
    let calls: Vec<_> = reply.message.tool_calls().map(|call| call.id.as_str()).collect();
    assert_eq!(calls, ["c1"], "the API answered the other one itself");
    assert_eq!(written(openai_responses::write, &reply, "input"), output);
}

#[test]
fn a_gemini_reply_keeps_thought_signatures_and_names_its_role() {
    let parts = json!([
        { "text": "hm", "thought": true },
        { "text": "Looking.", "thoughtSignature": "c2ln" },
        { "functionCall": { "name": "df", "args": { "path": "/" } }, "thoughtSignature": "c2ky" },
    ]);
    for role in [Some("model"), None] {
        let mut body = json!({
            "candidates": [{ "content": { "parts": parts }, "finishReason": "STOP", "index": 0 }],
            "usageMetadata": { "promptTokenCount": 800, "cachedContentTokenCount": 600,
                "toolUsePromptTokenCount": 20, "candidatesTokenCount": 30,
                "thoughtsTokenCount": 12, "totalTokenCount": 862 },
        });
        if let Some(role) = role {
            body["candidates"][0]["content"]["role"] = role.into();
        }
        let reply = gemini::parse_reply(&body.to_string()).unwrap();
        assert_eq!(reply.message.role(), Role::Assistant);
        assert_eq!(reply.stop, Stop::ToolCalls, "Gemini says STOP for calls too");
        assert_eq!(counts(&reply), Some((820, 600, 42)));
        let expected = json!([{ "role": "model", "parts": parts }]);
        assert_eq!(written(gemini::write, &reply, "contents"), expected);
    }
}

#[test]
fn the_end_of_a_reply_has_one_name_for_all() {
    let chat = |reason: Value, message: Value| {
        openai_chat::parse_reply(
            &json!({ "choices": [{ "finish_reason": reason, "message": message }] }).to_string(),
        )
    };
    let claude = |reason: &str| {
        anthropic::parse_reply(
            &json!({ "role": "assistant", "content": [], "stop_reason": reason }).to_string(),
        )
    };
    let responses =
        |rest: &str| openai_responses::parse_reply(&format!(r#"{{"output":[],"status":{rest}}}"#));
    let google = |reason: &str| {
        gemini::parse_reply(&json!({ "candidates": [{ "finishReason": reason }] }).to_string())
    };
    let text = json!({ "content": "hi" });
    let call = json!({ "tool_calls": [{ "id": "a", "function": { "name": "b" } }] });
    let refusal = json!({ "content": null, "refusal": "no" });
    let refused_item = r#"{"status":"completed","output":[{"type":"message","role":"assistant",
        "content":[{"type":"refusal","refusal":"no"}]}]}"#;
    let other = |name: &str| Stop::Other(name.into());
    for (reply, stop) in [
        (chat("stop".into(), text.clone()), Stop::EndTurn),
        (chat(Value::Null, text.clone()), Stop::EndTurn),
        (chat("stop".into(), call), Stop::ToolCalls),
        (chat("stop".into(), refusal), Stop::Refusal),
        (chat("length".into(), text.clone()), Stop::Length),
        (chat("content_filter".into(), text.clone()), Stop::ContentFilter),
        (chat("insufficient_system_resource".into(), text), other("insufficient_system_resource")),
        (claude("end_turn"), Stop::EndTurn),
        (claude("max_tokens"), Stop::Length),
        (claude("model_context_window_exceeded"), Stop::Length),
        (claude("refusal"), Stop::Refusal),
        (claude("pause_turn"), other("pause_turn")),
        (responses(r#""completed""#), Stop::EndTurn),
        (openai_responses::parse_reply(refused_item), Stop::Refusal),
        (
            responses(r#""incomplete","incomplete_details":{"reason":"max_output_tokens"}"#),
            Stop::Length,
        ),
        (
            responses(r#""incomplete","incomplete_details":{"reason":"content_filter"}"#),
            Stop::ContentFilter,
        ),
        (responses(r#""cancelled""#), other("cancelled")),
        (google("STOP"), Stop::EndTurn),
        (google("MAX_TOKENS"), Stop::Length),
        (google("SAFETY"), Stop::ContentFilter),
        (google("MALFORMED_FUNCTION_CALL"), other("MALFORMED_FUNCTION_CALL")),
    ] {
        let reply = reply.unwrap();
        assert_eq!(reply.stop, stop, "{reply:?}");
        assert_eq!(reply.usage, None);
    }
}

#[test]
fn an_error_is_told_by_its_code_and_never_by_its_text() {
    let secret = "sk-1234 and what the user wrote";
    for (body, code) in [
        (json!({ "error": { "message": secret, "code": "invalid_api_key" } }), "invalid_api_key"),
        (
            json!({ "type": "error", "error": { "type": "overloaded_error", "message": secret } }),
            "overloaded_error",
        ),
        (
            json!([{ "error": { "code": 429, "status": "RESOURCE_EXHAUSTED", "message": secret } }]),
            "RESOURCE_EXHAUSTED",
        ),
        (json!({ "error": { "code": 502, "message": secret } }), "status 502"),
        (json!({ "error": secret }), "without a code"),
        (json!({ "error": { "code": secret } }), "without a code"),
    ] {
        for parse in PARSERS {
            let error = parse(&body.to_string()).unwrap_err();
            assert!(error.is_refused(), "{error}");
            assert!(error.to_string().contains(code), "{error}");
            assert!(!format!("{error} {error:?}").contains("sk-"), "{error:?}");
        }
    }
    let choice = json!({ "choices": [{ "error": { "code": 502, "message": secret } }] });
    assert!(openai_chat::parse_reply(&choice.to_string()).unwrap_err().is_refused());
    let blocked = gemini::parse_reply(r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#);
    assert!(blocked.unwrap_err().to_string().contains("(SAFETY)"));
    let failed = r#"{"status":"failed","error":{"code":"server_error","message":"x"},"output":[]}"#;
    let failed = openai_responses::parse_reply(failed).unwrap_err();
    assert!(failed.is_refused() && failed.to_string().contains("server_error"));
    let queued = openai_responses::parse_reply(r#"{"status":"queued","output":[]}"#).unwrap_err();
    assert!(queued.is_message() && queued.to_string().contains("ask for it again"));
}

#[test]
fn what_is_no_reply_is_an_error_and_never_a_panic() {
    for text in [
        "",
        "null",
        "7",
        "[]",
        "{}",
        "<html>",
        r#"{"choices":[]}"#,
        r#"{"choices":[{}]}"#,
        r#"{"candidates":[7]}"#,
        r#"{"content":7}"#,
        r#"{"output":{}}"#,
        r#"{"output":[7]}"#,
        r#"{"candidates":[{"content":"x"}]}"#,
        r#"{"role":"user","content":[]}"#,
        r#"{"output":[{"type":"message","role":"user","content":"x"}]}"#,
    ] {
        for parse in PARSERS {
            assert!(parse(text).unwrap_err().is_message(), "{text}");
        }
    }
    let deep = format!(r#"{{"output":{0}{1}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    for parse in PARSERS {
        assert!(parse(&deep).is_err());
    }
}

#[test]
fn counts_that_no_request_has_are_not_believed() {
    for usage in [
        json!({ "prompt_tokens": u64::MAX, "completion_tokens": 1 }),
        json!({ "prompt_tokens": -3, "completion_tokens": 1 }),
        json!({ "prompt_tokens": "9", "completion_tokens": 1 }),
        json!({ "completion_tokens": 1 }),
        json!([]),
    ] {
        let body = json!({ "choices": [{ "message": { "content": "x" } }], "usage": usage });
        assert_eq!(openai_chat::parse_reply(&body.to_string()).unwrap().usage, None, "{body}");
    }
    let body = json!({ "choices": [{ "message": { "content": "x" } }],
        "usage": { "prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 8 } });
    let reply = openai_chat::parse_reply(&body.to_string()).unwrap();
    assert_eq!(counts(&reply), Some((9, 8, 1)));
}
