//! What providers accept comes back as it was, and what other tools wrote is read.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{collections::HashSet, fs};

use proptest::prelude::*;
use serde_json::Value;
use session_compaction::{
    Message, Origin, Part, Result, Role,
    formats::{
        self, Conversation, Format, Import, Importer, SkipReason, anthropic, gemini, openai_chat,
        openai_responses,
    },
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

fn load(text: &str) -> Import {
    formats::import(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn skipped(import: &Import, reason: SkipReason) -> usize {
    import.skipped.iter().filter(|it| it.reason == reason).map(|it| it.count).sum()
}

/// Role, text, calls and the ids that are answered: enough to tell messages apart.
fn outline(import: &Import) -> Vec<String> {
    let line = |message: &Message| {
        let calls = message.tool_calls().map(|call| format!(" {}({})", call.name, call.arguments));
        let results = message.tool_results().map(|result| format!(" ={}", result.call_id));
        let tail: String = calls.chain(results).collect();
        format!("{}: {}{tail}", message.role().as_str(), message.text())
    };
    import.messages.iter().map(line).collect()
}

#[test]
fn real_files_are_imported() {
    for (path, format, messages) in [
        ("examples/data/coding-session.jsonl", Format::OpenAiChat, 914),
        ("tests/data/crosswoz-zh.json", Format::OpenAiChat, 670),
        ("tests/data/bfcl-memory/student.json", Format::OpenAiChat, 108),
        ("tests/data/tau-airline/task-00.json", Format::OpenAiChat, 46),
    ] {
        let import = Importer::new().open(path).unwrap();
        assert_eq!((import.format, import.messages.len()), (format, messages), "{path}");
        assert!(import.skipped.is_empty(), "{path}: {:?}", import.skipped);
    }
    for (name, format, parse) in [
        ("openai-chat", Format::OpenAiChat, openai_chat::parse as Parse),
        ("openai-responses", Format::OpenAiResponses, openai_responses::parse),
        ("anthropic", Format::Anthropic, anthropic::parse),
        ("gemini", Format::Gemini, gemini::parse),
    ] {
        for body in bodies(name) {
            let import = load(&body);
            let parsed = parse(&body).unwrap();
            let expected = [parsed.system, parsed.messages].concat();
            assert_eq!(import.messages, expected, "{name}");
            assert!(import.skipped.is_empty(), "{name}: {:?}", import.skipped);
            let forced = Importer::new().with_format(format).read(body.as_bytes()).unwrap();
            assert_eq!(forced.messages, expected, "{name}");
        }
        let import = Importer::new().open(format!("tests/data/wire/{name}.jsonl")).unwrap();
        assert_eq!(import.format, format);
    }
}

/// Every block of every record of the main chain is there, once.
#[test]
fn claude_code_files_are_imported() {
    for session in 1..=7 {
        let path = format!("tests/data/claude-code/session-{session}.jsonl");
        let text = fs::read_to_string(&path).unwrap();
        let records: Vec<Value> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let broken = text.lines().count() - records.len();
        let spoken: Vec<&Value> = records.iter().filter(|it| it["message"].is_object()).collect();
        let blocks: usize =
            spoken.iter().map(|it| it["message"]["content"].as_array().map_or(1, Vec::len)).sum();
        let ids: HashSet<&str> =
            spoken.iter().filter_map(|it| it["message"]["id"].as_str()).collect();
        let users = spoken.iter().filter(|it| it["type"] == "user").count();

        let import = Importer::new().open(&path).unwrap();
        assert_eq!(import.format, Format::ClaudeCode, "{path}");
        assert_eq!(import.messages.len(), users + ids.len(), "{path}");
        let parts: usize = import.messages.iter().map(|message| message.parts().len()).sum();
        assert_eq!(parts, blocks, "{path}");
        assert_eq!(skipped(&import, SkipReason::Malformed), broken, "{path}");
        let others = records.len() - spoken.len();
        assert_eq!(skipped(&import, SkipReason::NotAMessage), others, "{path}");
        assert!(import.messages.iter().all(|it| it.id().is_some() && it.time().is_some()));
    }
}

#[test]
fn claude_code_side_chains_and_summaries() {
    let import = load(
        r#"{"type":"summary","summary":"A title","leafUuid":"x"}
{"type":"user","uuid":"1","isSidechain":false,"message":{"role":"user","content":"old"}}
{"type":"user","uuid":"2","isSidechain":false,"isCompactSummary":true,"message":{"role":"user","content":"They spoke of old things."}}
{"type":"user","uuid":"3","isSidechain":false,"message":{"role":"user","content":"new"}}
{"type":"assistant","uuid":"4","isSidechain":false,"message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"a","name":"ls","input":{}}]}}
{"type":"user","uuid":"5","isSidechain":true,"message":{"role":"user","content":"for another"}}
{"type":"user","uuid":"6","isSidechain":false,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}}
{"type":"assistant","uuid":"7","isSidechain":false,"message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"b","name":"pwd","input":{}}]}}
{"type":"user","uuid":"8","isSidechain":false,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"2"}]}}"#,
    );
    assert_eq!(import.summary.as_deref(), Some("They spoke of old things."));
    assert_eq!(
        outline(&import),
        ["user: new", "assistant:  ls({}) pwd({})", "user: 1 =a", "user: 2 =b"],
    );
    assert_eq!(skipped(&import, SkipReason::AlreadySummarized), 1);
    assert_eq!(skipped(&import, SkipReason::NotAMessage), 1);
    assert_eq!(skipped(&import, SkipReason::SideChain), 1);
}

#[test]
fn picoclaw_is_imported() {
    let session = r#"{"key":"telegram:1","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"",
        "tool_calls":[{"id":"c","type":"function","function":{"name":"ls","arguments":"{}"}}]},
        {"role":"tool","content":"a","tool_call_id":"c"}],"summary":"Before.","created":"2026-01-01T00:00:00Z"}"#;
    let import = load(session);
    assert_eq!((import.format, import.summary.as_deref()), (Format::PicoClaw, Some("Before.")));
    assert_eq!(outline(&import), ["user: hi", "assistant:  ls({})", "tool: a =c"]);

    let lines = "{\"role\":\"user\",\"content\":\"1\"}\n\nbroken\n{\"role\":\"user\",\"content\":\"3\"}\n{\"ro\n{\"role\":\"user\",\"content\":\"5\"}\n";
    let meta = r#"{"key":"telegram:1","summary":"They met.","skip":2,"count":5}"#;
    let import = Importer::new().with_meta(meta).unwrap().read(lines.as_bytes()).unwrap();
    assert_eq!((import.format, import.summary.as_deref()), (Format::PicoClaw, Some("They met.")));
    assert_eq!(outline(&import), ["user: 3", "user: 5"]);
    assert_eq!(skipped(&import, SkipReason::AlreadySummarized), 2);
    assert_eq!(skipped(&import, SkipReason::Malformed), 1);

    let folder = std::env::temp_dir().join(format!("picoclaw-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("telegram_1.jsonl"), lines).unwrap();
    fs::write(folder.join("telegram_1.meta.json"), meta).unwrap();
    let opened = Importer::new().open(folder.join("telegram_1.jsonl")).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(opened.messages, import.messages);
    assert!(Importer::new().with_meta("[").unwrap_err().to_string().contains("line 1"));
}

#[test]
fn codex_rollouts_are_imported() {
    let import = load(
        r#"{"timestamp":"t","type":"session_meta","payload":{"id":"x","instructions":null}}
{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"list"}]}}
{"timestamp":"t","type":"event_msg","payload":{"type":"user_message","message":"list"}}
{"timestamp":"t","type":"response_item","payload":{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gA=="}}
{"timestamp":"t","type":"event_msg","payload":{"type":"token_count"}}
{"timestamp":"t","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{}","call_id":"c1"}}
{"timestamp":"t","type":"response_item","payload":{"type":"custom_tool_call","name":"apply_patch","input":"*** x","call_id":"c2","status":"completed"}}
{"timestamp":"t","type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"a.txt"}}
{"timestamp":"t","type":"response_item","payload":{"type":"custom_tool_call_output","call_id":"c2","output":"done"}}
{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a.txt"}]}}"#,
    );
    assert_eq!(import.format, Format::Codex);
    assert_eq!(
        outline(&import),
        [
            "user: list",
            "assistant:  shell({}) apply_patch(*** x)",
            "tool: a.txt =c1",
            "tool: done =c2",
            "assistant: a.txt"
        ],
    );
    assert_eq!(skipped(&import, SkipReason::NotAMessage), 3);

    let compacted = load(
        r#"{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"old"}]}}
{"timestamp":"t","type":"compacted","payload":{"message":"They spoke."}}
{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"new"}]}}"#,
    );
    assert_eq!(outline(&compacted), ["user: new"]);
    assert_eq!(compacted.summary.as_deref(), Some("They spoke."));

    let first_form = load(
        r#"{"id":"x","timestamp":"t","instructions":null}
{"record_type":"state"}
{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}
{"type":"function_call","name":"shell","arguments":"{}","call_id":"c1"}"#,
    );
    assert_eq!(first_form.format, Format::Codex);
    assert_eq!(outline(&first_form), ["user: hi", "assistant:  shell({})"]);
}

#[test]
fn langchain_dumps_are_imported() {
    let data = r#"[{"type":"system","data":{"content":"Be brief."}},
        {"type":"human","data":{"content":[{"type":"text","text":"list"}]}},
        {"type":"ai","data":{"content":"","tool_calls":[{"name":"ls","args":{"path": "/"},"id":"c1","type":"tool_call"}],
            "additional_kwargs":{"tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]}}},
        {"type":"tool","data":{"content":"a.txt","tool_call_id":"c1","name":"ls","status":"error"}}]"#;
    let kwargs = r#"[{"lc":1,"type":"constructor","id":["langchain","schema","messages","SystemMessage"],"kwargs":{"content":"Be brief."}},
        {"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{"content":"list","type":"human"}},
        {"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessageChunk"],"kwargs":{
            "content":[{"type":"tool_use","id":"c1","name":"ls","input":{}}],"tool_calls":[{"name":"ls","args":{"path": "/"},"id":"c1"}]}},
        {"lc":1,"type":"constructor","id":["langchain","schema","messages","ToolMessage"],"kwargs":{"content":"a.txt","tool_call_id":"c1"}}]"#;
    let expected =
        ["system: Be brief.", "user: list", r#"assistant:  ls({"path": "/"})"#, "tool: a.txt =c1"];
    for dump in [data.to_owned(), kwargs.to_owned(), format!(r#"{{"messages":{kwargs}}}"#)] {
        let import = load(&dump);
        assert_eq!(import.format, Format::LangChain);
        assert_eq!(outline(&import), expected);
    }
    assert!(load(data).messages[3].tool_results().all(|result| result.is_error));
}

#[test]
fn sharegpt_is_imported() {
    let import = load(
        r#"[{"id":"1","system":"Be brief.","conversations":[{"from":"human","value":"list"},
            {"from":"function_call","value":"{\"name\": \"ls\", \"arguments\": {\"path\": \"/\"}}"},
            {"from":"observation","value":"a.txt"},{"from":"gpt","value":"One file."},{"from":"tool","value":"late"}]}]"#,
    );
    assert_eq!(import.format, Format::ShareGpt);
    assert_eq!(
        outline(&import),
        [
            "system: Be brief.",
            "user: list",
            r#"assistant:  ls({"path": "/"})"#,
            "tool: a.txt =call_1",
            "assistant: One file.",
            "user: late"
        ],
    );
}

#[test]
fn damaged_files_load_as_far_as_they_can() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let text = format!(
        "\u{feff}{{\"role\":\"user\",\"content\":\"half \\ud83d\"}}\r\n\
         \0\0\0{{\"role\":\"user\",\"content\":null,\"deep\":{deep}}}\n\
         {{\"role\":\"tool\",\"tool_call_id\":7,\"content\":[]}}\n\
         {{\"role\":\"robot\",\"content\":\"x\"}}\n\
         42\n\
         {{\"role\":\"user\",\"content\":\"cut o"
    );
    let import = load(&text);
    assert_eq!(outline(&import), ["user: half \u{fffd}", "user: ", "tool:  =7"]);
    assert_eq!(import.repaired_lines, 2);
    assert_eq!(skipped(&import, SkipReason::Malformed), 3);
    assert_eq!(import.skipped[0].first, 4);
    assert!(import.skipped[0].detail.contains("robot"), "{:?}", import.skipped);

    let mut bytes =
        b"{\"role\":\"user\",\"content\":\"a\xFFb\"}\n{\"role\":\"user\",\"content\":\"".to_vec();
    bytes.resize(bytes.len() + (17 << 20), b'x');
    bytes.extend(b"\"}\n{\"role\":\"user\",\"content\":\"last\"}");
    let import = formats::import(&bytes).unwrap();
    assert_eq!(outline(&import), ["user: a\u{fffd}b", "user: last"]);
    assert_eq!(skipped(&import, SkipReason::TooLong), 1);
}

#[test]
fn unreadable_files_are_named() {
    let says = |text: &str| formats::import(text.as_bytes()).unwrap_err().to_string();
    assert!(says(" \n\0\0").contains("nothing to read"));
    assert!(says("[\n{\"role\":\"user\",\"content\":\"a\"},\n{\"ro").contains("line 3 column 4"));
    assert!(says("{\"messages\":[{\"role\":\"user\"").contains("line 1 column"));
    assert!(says("{\"a\":1}").contains("no known kind of record"));
    assert!(says("Dear diary,\ntoday").contains("line 1 column 1"));
    let error = Importer::new().open("tests/data/absent.jsonl").unwrap_err();
    assert!(error.to_string().contains("absent.jsonl"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever happens to a file, reading it gives an answer.
    #[test]
    fn damage_never_panics(
        which in 0..4_usize,
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), 0..200_usize, any::<u8>()), 0..6),
    ) {
        let path = [
            "tests/data/claude-code/session-6.jsonl",
            "tests/data/wire/anthropic.jsonl",
            "tests/data/wire/openai-responses.jsonl",
            "tests/data/tau-airline/task-00.json",
        ][which];
        let mut bytes = fs::read(path).unwrap();
        for (at, len, byte) in cuts {
            let at = at.index(bytes.len());
            let end = bytes.len().min(at + len);
            bytes.splice(at..end, [byte]);
        }
        let lines = bytes.split(|byte| *byte == b'\n').count();
        match formats::import(&bytes) {
            Ok(import) => prop_assert!(
                import.skipped.iter().all(|it| it.first >= 1 && it.first <= lines.max(100)),
                "{:?}",
                import.skipped
            ),
            Err(error) => prop_assert!(error.is_message()),
        }
    }
}
