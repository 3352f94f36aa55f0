//! What each provider gets of sessions with one thing wrong in them.

use serde_json::{Value, json};

use super::properties::{PROVIDERS, Play, elements};
use super::*;
use crate::{
    Fields, Media, Message, Origin, Part, Reasoning, Role, ToolResult, formats,
    tokens::{ByteEstimate, TokenCounter},
};

fn context(messages: impl IntoIterator<Item = Message>) -> Context {
    Play::new(messages).context(&Request::new())
}

/// Every form of a context is checked before one of them is looked at.
fn checked(context: &Context) -> &Context {
    for (name, write, check) in PROVIDERS {
        let body = write(context);
        assert_eq!(check(&elements(&body)), Ok(()), "{name}: {}", body.messages());
    }
    context
}

fn openai_chat(context: &Context) -> Value {
    json!(elements(&checked(context).to_openai_chat()))
}

fn json_part(text: &str) -> Part {
    Part::Json(Box::new(RawJson::parse(text).unwrap()))
}

fn asks(ids: &[&str]) -> Message {
    ids.iter().fold(Message::assistant(""), |message, id| message.with_tool_call(*id, "ls", "{}"))
}

#[test]
fn the_first_complete_result_is_sent() {
    let context = context([
        Message::user("Todo list"),
        asks(&["dup"]),
        Message::tool_result("dup", "3 it").partial(),
        Message::tool_result("dup", "3 items"),
        Message::tool_result("dup", "aborted"),
        Message::assistant("3 items."),
    ]);
    let sent = openai_chat(&context);
    assert_eq!(sent[2], json!({"role": "tool", "tool_call_id": "dup", "content": "3 items"}));
    assert_eq!(sent[3]["content"], "3 items.");
    assert_eq!(context.repaired().collect::<Vec<_>>(), [2, 4]);
    assert!(context.open_calls().is_empty());
}

#[test]
fn results_stand_behind_their_calls_in_the_order_of_the_calls() {
    let context = context([
        Message::user("Both"),
        asks(&["a"]),
        asks(&["b", "c"]),
        Message::user("hurry"),
        Message::tool_result("c", "3"),
        Message::tool_result("a", "1"),
        Message::tool_result("b", "2"),
    ]);
    let sent = openai_chat(&context);
    let told: Vec<_> = (2..7).map(|at| sent[at]["content"].as_str().unwrap_or("call")).collect();
    assert_eq!(told, ["1", "call", "2", "3", "hurry"]);
    assert_eq!(context.repaired().count(), 0);
}

#[test]
fn a_missing_result_is_said_to_be_missing() {
    let context = context([
        Message::user("Go"),
        asks(&["a", "b"]),
        Message::tool_result("b", "done"),
        Message::tool_result("nobody", "orphan"),
    ]);
    let sent = openai_chat(&context);
    assert_eq!(sent[2]["content"], arrange::NO_RESULT);
    assert_eq!(sent[3]["content"], "done");
    assert_eq!(sent.as_array().unwrap().len(), 4);
    let open: Vec<_> = context.open_calls().iter().map(|call| (&*call.id, call.position)).collect();
    assert_eq!(open, [("a", 1)]);
    assert_eq!(context.repaired().collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn a_partial_message_goes_without_its_unfinished_calls() {
    let partial = Message::assistant("I will").with_tool_call("a", "ls", "{\"pa").partial();
    let context = context([Message::user("Go"), partial, asks(&["b"]).partial()]);
    let sent = openai_chat(&context);
    assert_eq!(sent.as_array().unwrap().len(), 2, "what was nothing but a call is gone");
    assert_eq!(sent[1], json!({"role": "assistant", "content": "I will"}));
    assert!(context.open_calls().is_empty());
}

#[test]
fn ids_are_used_once_in_a_message() {
    let context = context([
        Message::user("Go"),
        asks(&["x", "x", ""]),
        Message::tool_result("x", "1"),
        Message::tool_result("x", "2"),
        Message::tool_result("", "3"),
    ]);
    let sent = openai_chat(&context);
    let answers: Vec<_> =
        (2..5).map(|at| (&sent[at]["tool_call_id"], &sent[at]["content"])).collect();
    let expected =
        [(json!("x"), json!("1")), (json!("x-2"), json!("2")), (json!("call"), json!("3"))];
    assert_eq!(answers, expected.iter().map(|(id, text)| (id, text)).collect::<Vec<_>>());

    let context = self::context([Message::user("Go"), asks(&["ls#1", "ls.1"])]);
    let sent = elements(&checked(&context).to_anthropic());
    assert_eq!(sent[1]["content"][0]["id"], "ls_1");
    assert_eq!(sent[1]["content"][1]["id"], "ls_1-2");
}

#[test]
fn nothing_blank_is_sent() {
    let context = context([
        Message::user(" \n"),
        asks(&["e1"]),
        Message::tool_result("e1", ""),
        Message::assistant(" "),
        Message::user("Next"),
        Message::system("\t"),
    ]);
    let sent = openai_chat(&context);
    assert_eq!(sent[0]["content"], "(empty message)");
    assert_eq!(sent[2]["content"], clean::NO_OUTPUT);
    assert_eq!(sent.as_array().unwrap().len(), 4);
    assert_eq!(context.repaired().collect::<Vec<_>>(), [0, 2, 3, 5]);
}

#[test]
fn thoughts_and_opaque_items_go_back_to_where_they_came_from() {
    let thought = |text: &str, origin| Reasoning::new(text, origin).with_signature("sig");
    let parts: Vec<Part> = vec![
        Reasoning::new("chat thought", Origin::OpenAiChat).into(),
        thought("claude thought", Origin::Anthropic).into(),
        Reasoning::new("unsigned thought", Origin::Anthropic).into(),
        thought("gemini thought", Origin::Gemini).into(),
        thought("responses thought", Origin::OpenAiResponses).into(),
        json_part(r#"{"type":"compaction",  "encrypted_content":"r1"}"#),
        json_part(r#"{"type":"redacted_thinking",  "data":"a1"}"#),
        json_part(r#"{"type":"compaction",  "content":"a2"}"#),
        json_part(r#"{"executableCode":  {"code":"g1"}}"#),
        Part::text("hello"),
    ];
    let context = context([Message::user("Hi"), Message::new(Role::Assistant, parts)]);
    let sent = |write: fn(&Context) -> Body| write(&context).messages().to_owned();
    let every = [
        "chat thought",
        "claude thought",
        "unsigned thought",
        "gemini thought",
        "responses thought",
        r#"{"type":"compaction",  "encrypted_content":"r1"}"#,
        r#"{"type":"redacted_thinking",  "data":"a1"}"#,
        r#"{"type":"compaction",  "content":"a2"}"#,
        r#"{"executableCode":  {"code":"g1"}}"#,
    ];
    let found = |text: String| every.map(|part| u8::from(text.contains(part)));
    assert_eq!(found(sent(Context::to_openai_chat)), [1, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(found(sent(Context::to_strict_template)), [1, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(found(sent(Context::to_openai_responses)), [0, 0, 0, 0, 1, 1, 0, 0, 0]);
    assert_eq!(found(sent(Context::to_anthropic)), [0, 1, 0, 0, 0, 0, 1, 1, 0]);
    assert_eq!(found(sent(Context::to_gemini)), [0, 0, 0, 1, 0, 0, 0, 0, 1]);
}

#[test]
fn a_message_that_was_read_is_written_as_it_was_read() {
    let odd = [
        r#"{ "content":"Let me see" , "role":"assistant","reasoning_content":"df first","tool_calls":[{"function":{"arguments":"{\"n\": 1.0}","name":"df"},"id":"d1","type":"function","index":0}] }"#,
        r#"{"tool_call_id":"d1", "role":"tool","x":12345678901234567890123,"content":"42% used"}"#,
        r#"{"role":"user","content":[{"type":"text","text":"And?","cache_control":{"type":"ephemeral"}}],"name":"ann"}"#,
    ];
    let read = odd.map(|text| serde_json::from_str::<Message>(text).unwrap().with_id("m"));
    let context = context([Message::user("Disk?")].into_iter().chain(read));
    let expected = format!(r#"[{{"role":"user","content":"Disk?"}},{}]"#, odd.join(","));
    assert_eq!(checked(&context).to_openai_chat().messages(), expected);
}

#[test]
fn calls_of_custom_tools_are_answered() {
    let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"p","type":"custom","custom":{"name":"patch","input":"*** x"}}]}"#;
    let read = |text: &str| serde_json::from_str::<Message>(text).unwrap();
    let stored = [Message::user("Go"), read(call), Message::tool_result("p", "done")];
    let context = context(stored.clone());
    assert_eq!(context.repaired().count(), 0);
    let sent = checked(&context).to_openai_chat();
    let expected = format!(
        r#"[{{"role":"user","content":"Go"}},{call},{{"role":"tool","tool_call_id":"p","content":"done"}}]"#
    );
    assert_eq!(sent.messages(), expected);
    let sent = elements(&context.to_anthropic());
    assert_eq!(sent[1]["content"][0]["input"], json!({"arguments": "*** x"}));

    for odd in [r#"{"id":"a","type":"custom"}"#, r#"{"id":"a","type":"mcp","mcp":{}}"#, "7"] {
        let call = format!(r#"{{"role":"assistant","tool_calls":[{odd}]}}"#);
        let context = self::context([Message::user("Go"), read(&call)]);
        assert_eq!(openai_chat(&context)[2]["content"], arrange::NO_RESULT);
    }

    let context = self::context(stored.into_iter().take(2));
    assert_eq!(context.open_calls().len(), 1);
    assert_eq!(openai_chat(&context)[2]["content"], arrange::NO_RESULT);
}

#[test]
fn each_provider_gets_its_own_messages_back_as_they_were() {
    let anthropic = r#"{"role":"assistant", "content":[{"text":"1.0","type":"text"}]}"#;
    let gemini = r#"{"parts":[{"text":"1.0"}], "role":"model"}"#;
    let responses = r#"{"type":"message", "id":"m1", "role":"assistant","content":[{"type":"output_text","text":"1.0"}]}"#;
    let read = [
        formats::anthropic::parse(&format!(r#"{{"messages":[{anthropic}]}}"#)),
        formats::gemini::parse(&format!(r#"{{"contents":[{gemini}]}}"#)),
        formats::openai_responses::parse(&format!(r#"{{"input":[{responses}]}}"#)),
    ];
    let read = read.into_iter().flat_map(|read| read.unwrap().messages);
    let context = context([Message::user("Hi")].into_iter().chain(read));
    checked(&context);
    assert!(context.to_anthropic().messages().contains(anthropic));
    assert!(context.to_gemini().messages().contains(gemini));
    assert!(context.to_openai_responses().messages().contains(responses));

    let marked = r#"{"messages":[{"role":"user", "content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]}]}"#;
    let context = self::context(formats::anthropic::parse(marked).unwrap().messages);
    let expected = r#"[{"role":"user","content":[{"type":"text","text":"Hi"}]}]"#;
    assert_eq!(context.to_anthropic().messages(), expected);
}

#[test]
fn an_item_of_another_tool_keeps_its_type_when_it_is_pruned() {
    let large = "x".repeat(1000);
    let call = r#"{"type":"custom_tool_call","call_id":"p","name":"patch", "input":"*** x"}"#;
    let body = format!(
        r#"{{"input":[{{"role":"user","content":"Go"}},{call},
            {{"type":"custom_tool_call_output","call_id":"p", "output":"{large}"}},
            {{"role":"assistant","content":"Done."}},{{"role":"user","content":"And?"}}]}}"#
    );
    let play = Play::new(formats::openai_responses::parse(&body).unwrap().messages);
    let whole = play.context(&Request::new());
    assert!(checked(&whole).to_openai_responses().messages().contains(&large));
    let rule = Prune { keep: 0, larger_than: 10, batch: 1 };
    let pruned = play.context(&Request::new().prune(rule));
    let sent = elements(&checked(&pruned).to_openai_responses());
    assert_eq!(
        sent[2],
        json!({"type": "custom_tool_call_output", "call_id": "p",
            "output": "[result of patch left out: 1000 characters]"})
    );
    assert!(pruned.to_openai_responses().messages().contains(call));
}

#[test]
fn the_summary_opens_the_first_user_message() {
    let mut play = Play::new([
        Message::system("Be brief."),
        Message::user("One"),
        Message::assistant("1"),
        Message::user("Two"),
        Message::assistant("2"),
    ]);
    assert!(play.compact(2, true));
    let context = play.context(&Request::new());
    let block = context.block.clone().unwrap();
    assert!(context.is_compacted());
    let sent = openai_chat(&context);
    assert_eq!(sent[0], json!({"role": "system", "content": "Be brief."}));
    assert_eq!(sent[1], json!({"role": "user", "content": format!("{block}\n\nTwo")}));
    let sent = elements(&context.to_anthropic());
    assert_eq!(sent[0]["content"][0]["text"], block);
    assert_eq!(sent[0]["content"][1]["text"], "Two");

    let context = play.context(&Request::new().summary_role(SummaryRole::System));
    let sent = openai_chat(&context);
    assert_eq!(sent[0]["content"], format!("Be brief.\n\n{block}"));
    assert_eq!(sent[1]["content"], "Two");
}

#[test]
fn a_window_of_nothing_still_has_a_user_message() {
    let mut play =
        Play::new([Message::system("S"), Message::assistant("hi"), Message::user("a").pinned()]);
    assert_eq!(
        openai_chat(&play.context(&Request::new()))[1]["content"],
        "(the conversation starts here)"
    );
    assert!(play.compact(0, false));
    assert_eq!(openai_chat(&play.context(&Request::new())).as_array().unwrap().len(), 2);

    let only_system = context([Message::system("S")]);
    assert_eq!(openai_chat(&only_system)[1]["role"], "user");
    let only_orphans = context([Message::tool_result("x", "y")]);
    assert_eq!(openai_chat(&only_orphans)[0]["role"], "user");

    let nothing = Play::new([]).context(&Request::new().system("S"));
    assert!(nothing.is_empty());
    assert_eq!(nothing.to_openai_chat().messages(), r#"[{"role":"system","content":"S"}]"#);
    assert_eq!(nothing.to_gemini().messages(), "[]");
}

#[test]
fn system_messages_lead_and_late_ones_are_notices() {
    let developer = Message::new(Role::Developer, [Part::text("D")]);
    let play = Play::new([
        Message::system("S"),
        developer.clone(),
        Message::user("Hi"),
        Message::assistant("Hello"),
        Message::system("The user has left."),
    ]);
    let context = play.context(&Request::new());
    let sent = openai_chat(&context);
    assert_eq!(sent[0], json!({"role": "system", "content": "S\n\nD"}));
    assert_eq!(sent[3], json!({"role": "user", "content": "[system] The user has left."}));
    assert_eq!(context.to_anthropic().get("system").unwrap().matches("text\":").count(), 2);
    assert_eq!(context.to_openai_responses().get("instructions"), Some(r#""S\n\nD""#));
    assert_eq!(
        context.to_gemini().get("systemInstruction"),
        Some(r#"{"parts":[{"text":"S"},{"text":"D"}]}"#)
    );

    let context = play.context(&Request::new().system("Mine"));
    let sent = openai_chat(&context);
    assert_eq!(sent[0]["content"], "Mine");
    assert_eq!(sent[1]["content"], "Hi");

    let context = self::context([developer, Message::user("Hi")]);
    assert_eq!(openai_chat(&context)[0]["role"], "developer");
    assert_eq!(elements(&context.to_strict_template())[0]["role"], "system");
}

#[test]
fn notes_ride_on_the_newest_user_message() {
    let play = Play::new([Message::user("Hi"), asks(&["a"]), Message::tool_result("a", "1")]);
    let noted = play.context(&Request::new().notes("Today is Monday."));
    assert_eq!(openai_chat(&noted)[0]["content"], "Hi\n\nToday is Monday.");
    let plain = play.context(&Request::new());
    assert_eq!(openai_chat(&plain)[0]["content"], "Hi");
    assert!(noted.tokens() > plain.tokens());
}

#[test]
fn cache_marks_stand_where_they_may() {
    let mut cached = Fields::EMPTY;
    cached.push(
        "anthropic",
        RawJson::parse(r#"{"cache_control":{"type":"ephemeral"},"citations":[]}"#).unwrap(),
    );
    let marked = Part::Text(crate::Text { text: "Two".into(), fields: Some(Box::new(cached)) });
    let thought = Reasoning::new("hm", Origin::Anthropic).with_signature("sig");
    let mut play = Play::new([
        Message::system("S"),
        Message::user("One"),
        Message::assistant("1"),
        Message::new(Role::User, [marked]),
        Message::new(Role::Assistant, [Part::text("2"), thought.into()]),
    ]);
    assert!(play.compact(2, true));
    let context = play.context(&Request::new());
    assert!(!context.to_anthropic().to_json().contains("cache_control"));
    let body = context.with_cache(CachePoints::ALL).to_anthropic();
    assert_eq!(body.to_json().matches("cache_control").count(), 3);
    let mark = json!({"type": "ephemeral"});
    let sent = elements(&body);
    assert_eq!(sent[0]["content"][0]["cache_control"], mark, "the summary");
    assert_eq!(sent[0]["content"][1], json!({"type": "text", "text": "Two", "citations": []}));
    assert_eq!(sent[1]["content"][0]["cache_control"], mark, "the last block that is no thought");

    let noted = Play::new([Message::user("Hi")]).context(&Request::new().notes("Monday"));
    let sent = elements(&noted.with_cache(CachePoints::ALL).to_anthropic());
    assert_eq!(sent[0]["content"][0]["cache_control"], mark);
    assert_eq!(sent[0]["content"][1], json!({"type": "text", "text": "Monday"}));
}

#[test]
fn a_body_bears_what_the_request_adds() {
    let request = Request::new().max_output(9).tools(&json!([{"name": "ls"}]));
    let context = Play::new([Message::user("Hi")]).context(&request);
    let tools = r#""tools":[{"name":"ls"}]"#;
    let expected = [
        format!(r#"{{"max_completion_tokens":9,{tools},"messages":"#),
        format!(r#"{{"max_completion_tokens":9,{tools},"messages":"#),
        format!(r#"{{"max_output_tokens":9,{tools},"input":"#),
        format!(r#"{{"max_tokens":9,{tools},"messages":"#),
        format!(r#"{{"generationConfig":{{"maxOutputTokens":9}},{tools},"contents":"#),
    ];
    for ((name, write, _), expected) in PROVIDERS.into_iter().zip(expected) {
        let body = write(&context);
        assert!(body.to_json().starts_with(&expected), "{name}: {}", body.to_json());
        assert_eq!(serde_json::to_string(&body).unwrap(), body.to_json());
    }
}

#[test]
fn media_are_sent_as_each_provider_knows_them() {
    let result = ToolResult {
        content: vec![Media::image_url("https://e.org/b.png").into()],
        ..ToolResult::new("a", "")
    };
    let context = context([
        Message::new(
            Role::User,
            [Part::text("Look"), Media::image_url("https://e.org/a.png").with_alt("a cat").into()],
        ),
        asks(&["a"]),
        Message::new(Role::User, [result.into()]),
    ]);
    let sent = openai_chat(&context);
    assert_eq!(
        sent[0]["content"][1],
        json!({"type": "image_url", "image_url": {"url": "https://e.org/a.png"}})
    );
    let sent = elements(&context.to_anthropic());
    assert_eq!(
        sent[0]["content"][1]["source"],
        json!({"type": "url", "url": "https://e.org/a.png"})
    );
    assert_eq!(sent[2]["content"][0]["content"][0]["type"], "image");
    let sent = elements(&context.to_gemini());
    assert_eq!(sent[2]["parts"][1]["fileData"]["fileUri"], "https://e.org/b.png");
    let sent = elements(&context.to_openai_responses());
    assert_eq!(
        sent[0]["content"][1],
        json!({"type": "input_image", "image_url": "https://e.org/a.png"})
    );
}

#[test]
fn tokens_count_what_is_sent() {
    let counter = ByteEstimate::default();
    let request = Request::new().system("You are terse.").tools(&["ls"]);
    let context = Play::new([Message::user("Hi")]).context(&request);
    let added = counter.text("You are terse.") + counter.text(r#"["ls"]"#);
    // Stored messages were counted when they were added; these were not.
    assert_eq!(context.tokens(), added.count());
}
