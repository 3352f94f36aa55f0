//! What providers accept comes back as it was, and what other tools wrote is read.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::fs;

use serde_json::Value;
use session_compaction::{
    Message, Origin, Part, Result, Role,
    formats::{Conversation, anthropic, gemini, openai_chat, openai_responses},
};

type Parse = fn(&str) -> Result<Conversation>;
type Write = fn(&Conversation) -> String;

fn bodies(name: &str) -> Vec<String> {
    let text = fs::read_to_string(format!("tests/data/wire/{name}.jsonl")).unwrap();
    text.lines().map(Into::into).collect()
}

/// Writes a conversation whose messages went through a store in between.
fn stored(conversation: &Conversation) -> Conversation {
    let store = |message: &Message| -> Message {
        serde_json::from_str(&serde_json::to_string(message).unwrap()).unwrap()
    };
    let mut again = conversation.clone();
    again.system = conversation.system.iter().map(store).collect();
    again.messages = conversation.messages.iter().map(store).collect();
    again
}

fn round_trip(name: &str, parse: Parse, write: Write) -> usize {
    let bodies = bodies(name);
    for (at, body) in bodies.iter().enumerate() {
        let first = parse(body).unwrap_or_else(|error| panic!("{name} {at}: {error}"));
        assert!(!first.messages.is_empty(), "{name} {at}");
        let text = write(&first);
        assert_eq!(parse(&text).unwrap(), first, "{name} {at}");
        let (was, is): (Value, Value) =
            (serde_json::from_str(body).unwrap(), serde_json::from_str(&text).unwrap());
        assert_eq!(is, was, "{name} {at}");

        let stored = stored(&first);
        assert_eq!(stored, first, "{name} {at}");
        assert_eq!(parse(&write(&stored)).unwrap(), first, "{name} {at}: {}", write(&stored));
    }
    bodies.len()
}

#[test]
fn real_bodies_come_back_equal() {
    assert_eq!(round_trip("openai-chat", openai_chat::parse, openai_chat::write), 19);
    assert_eq!(
        round_trip("openai-responses", openai_responses::parse, openai_responses::write),
        21
    );
    assert_eq!(round_trip("anthropic", anthropic::parse, anthropic::write), 24);
    assert_eq!(round_trip("gemini", gemini::parse, gemini::write), 16);
}

#[test]
fn anthropic_parts_are_understood() {
    let body = r#"{"model":"m","messages":[
        {"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},
            {"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]},
        {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"EqQ="},
            {"type":"redacted_thinking","data":"zz"},
            {"type":"tool_use","id":"c1","name":"ls","input":{"path": "/"}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"gone","is_error":true},
            {"type":"text","text":"and now?"}]}]}"#;
    let conversation = anthropic::parse(body).unwrap();
    let [question, call, results] = &conversation.messages[..] else { panic!("three messages") };
    assert!(matches!(question.parts(), [Part::Media(_), Part::Text(_)]));
    let [Part::Reasoning(thought), Part::Json(_), Part::ToolCall(ls)] = call.parts() else {
        panic!("{call:?}")
    };
    assert_eq!((&thought.origin, thought.signature.as_deref()), (&Origin::Anthropic, Some("EqQ=")));
    assert_eq!(ls.arguments, r#"{"path": "/"}"#);
    assert_eq!(results.role(), Role::User);
    assert!(results.is_human() && results.tool_results().all(|result| result.is_error));
}

/// What only Anthropic knows does not reach another provider, and no call or
/// result is lost on the way.
#[test]
fn anthropic_to_the_others() {
    let conversation = anthropic::parse(
        r#"{"messages":[
        {"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]},
        {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"EqQ="},
            {"type":"text","text":"ok"},{"type":"tool_use","id":"c1","name":"ls","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"a.txt"},
            {"type":"text","text":"and now?"}]}]}"#,
    )
    .unwrap();
    assert_eq!(
        openai_chat::write(&conversation),
        concat!(
            r#"{"messages":[{"role":"user","content":"hi"},"#,
            r#"{"role":"assistant","content":"ok","tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]},"#,
            r#"{"role":"tool","tool_call_id":"c1","content":"a.txt"},"#,
            r#"{"role":"user","content":"and now?"}]}"#,
        ),
    );
    assert_eq!(
        openai_responses::write(&conversation),
        concat!(
            r#"{"input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]},"#,
            r#"{"role":"assistant","content":"ok"},"#,
            r#"{"type":"function_call","call_id":"c1","name":"ls","arguments":"{}"},"#,
            r#"{"type":"function_call_output","call_id":"c1","output":"a.txt"},"#,
            r#"{"role":"user","content":"and now?"}]}"#,
        ),
    );
    assert_eq!(
        gemini::write(&conversation),
        concat!(
            r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]},"#,
            r#"{"role":"model","parts":[{"text":"ok"},{"functionCall":{"id":"c1","name":"ls","args":{}}}]},"#,
            r#"{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"ls","response":{"output":"a.txt"}}},{"text":"and now?"}]}]}"#,
        ),
    );
}

#[test]
fn gemini_calls_without_ids_are_paired() {
    let body = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]},
        {"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}}},{"functionCall":{"name":"f","args":{"a":2}}}]},
        {"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"one"}}},{"functionResponse":{"name":"f","response":{"error":"two"}}}]}]}"#;
    let conversation = gemini::parse(body).unwrap();
    let [_, calls, results] = &conversation.messages[..] else { panic!("three messages") };
    let ids: Vec<_> = calls.tool_calls().map(|call| call.id.as_str()).collect();
    let answered: Vec<_> = results.tool_results().map(|result| result.call_id.as_str()).collect();
    assert_eq!(ids, ["f#1", "f#2"]);
    assert_eq!(ids, answered);
    assert!(!gemini::write(&stored(&conversation)).contains("f#1"));
}

#[test]
fn bad_bodies_are_named() {
    let says = |parse: Parse, text: &str| parse(text).unwrap_err().to_string();
    assert!(says(openai_chat::parse, "{\"messages\":\n[}").contains("line 2 column 2"));
    assert!(says(anthropic::parse, "{}").contains("messages is missing or no list"));
    assert!(
        says(anthropic::parse, r#"{"messages":[{"role":"user"},{"role":"tool"}]}"#)
            .contains("messages[1]: the role is assistant, system or user, this one is \"tool\"")
    );
    assert!(
        says(gemini::parse, r#"{"contents":[{"parts":1}]}"#).contains("contents[0]: the parts")
    );
    assert!(says(openai_responses::parse, r#"{"input":[7]}"#).contains("input[0]: an item is a"));
}
