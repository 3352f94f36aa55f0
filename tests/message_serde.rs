//! The serde form of messages: nothing is lost, in either direction.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{
    fs,
    time::{Duration, SystemTime},
};

use proptest::{collection::vec, option, prelude::*};
use serde_json::{Value, value::RawValue};
use session_compaction::{
    Fields, Media, MediaKind, MediaSource, Message, Origin, Part, RawJson, Reasoning, Role, Text,
    ToolCall, ToolResult,
};

fn read(text: &str) -> Message {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn write(message: &Message) -> String {
    serde_json::to_string(message).unwrap()
}

fn refused(text: &str) -> String {
    serde_json::from_str::<Message>(text).unwrap_err().to_string()
}

/// Every chat message of the shipped data, as its source text.
fn real_messages() -> Vec<Box<RawValue>> {
    #[derive(serde::Deserialize)]
    struct Body {
        messages: Vec<Box<RawValue>>,
    }

    let mut all: Vec<Box<RawValue>> = Vec::new();
    let session = fs::read_to_string("examples/data/coding-session.jsonl").unwrap();
    all.extend(session.lines().map(|line| serde_json::from_str::<Box<RawValue>>(line).unwrap()));
    let wire = fs::read_to_string("tests/data/wire/openai-chat.jsonl").unwrap();
    for line in wire.lines() {
        all.extend(serde_json::from_str::<Body>(line).unwrap().messages);
    }
    for file in fs::read_dir("tests/data/tau-airline").unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        all.extend(serde_json::from_str::<Vec<Box<RawValue>>>(&text).unwrap());
    }
    let chinese = fs::read_to_string("tests/data/crosswoz-zh.json").unwrap();
    for dialogue in serde_json::from_str::<Vec<Body>>(&chinese).unwrap() {
        all.extend(dialogue.messages);
    }
    all
}

#[test]
fn real_messages_come_back_byte_for_byte() {
    let messages = real_messages();
    assert!(messages.len() > 1_500, "only {} messages", messages.len());
    for raw in messages {
        let message = read(raw.get());
        assert_eq!(write(&message), raw.get());
        let kept = message.pinned().with_id("m1").with_time(SystemTime::UNIX_EPOCH);
        let stored = write(&kept);
        let again = read(&stored);
        assert_eq!(again, kept);
        assert_eq!(again.id(), kept.id());
        assert_eq!(again.time(), kept.time());
        assert_eq!(write(&again), stored);
        let head = stored.split(r#","_session":"#).next().unwrap();
        assert_eq!(format!("{head}}}"), raw.get(), "the wire text is inside, untouched");
    }
}

#[test]
fn odd_spellings_come_back_byte_for_byte() {
    for text in [
        r#"{"role":"user"}"#,
        r#"{"role": "user", "content": "caf\u00e9 \ud83d\ude00 \u007f \n", "n": [1,2]}"#,
        r#"{"role": "user", "content": "café", "n": {"a":1}}"#,
        r#"{"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "x"}, {"type":"odd"}]}"#,
        r#"{ "content" : "a\/b \u00e9 \ud83d\ude00" , "role" : "user" }"#,
        "{\"role\":\"user\",\n \"content\":\"x\"\n}",
        r#"{"role":"user","content":null}"#,
        r#"{"role":"user","content":[]}"#,
        r#"{"role":"user","content":["a",{"type":"text","text":"b"},null,7]}"#,
        r#"{"role":"user","content":"a","content":"b"}"#,
        r#"{"role":"assistant","content":"","tool_calls":[]}"#,
        r#"{"role":"assistant","tool_calls":null,"function_call":null,"name":null}"#,
        r#"{"role":"assistant","function_call":{"name":"ls","arguments":"{}"}}"#,
        r#"{"role":"function","name":"ls","content":"a.txt"}"#,
        r#"{"role":"assistant","tool_calls":[{"id":1,"function":{"name":"f","arguments":{"a":1.0}}}]}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"custom","custom":{"name":"f","input":"x"}}]}"#,
        r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"","strict":true},"index":0}]}"#,
        r#"{"role":"assistant","content":"a","refusal":null,"annotations":[],"audio":{"id":"a1"}}"#,
        r#"{"role":"tool","content":"x"}"#,
        r#"{"role":"tool","tool_call_id":7,"content":[{"type":"text","text":"x"}]}"#,
        r#"{"role":"developer","content":"x","n":12345678901234567890123}"#,
        r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"high"},"cache_control":{}}]}"#,
        r#"{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AA==","format":"mp3"}}]}"#,
        r#"{"role":"user","content":[{"type":"file","file":{"file_id":"f1"}},{"type":"file","file":{"file_data":"data:application/pdf;base64,AA==","filename":"a.pdf"}}]}"#,
        r#"{"role":"user","content":[{"type":"text"},{"type":"tool_result","tool_use_id":"x"},{"type":"json"}]}"#,
    ] {
        let message = read(text);
        assert_eq!(write(&message), text);
        assert_eq!(write(&message.clone().pinned()).matches("_session").count(), 1);
        assert_eq!(write(&read(&write(&message.clone().partial()))), write(&message.partial()));
    }
}

#[test]
fn parts_are_understood() {
    let message = read(
        r#"{"role":"assistant","reasoning_content":"hm","content":"Let me look.",
            "tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}],
            "name":"bot","x_extra":{"b":1,"a":2}}"#,
    );
    let mut fields = Fields::EMPTY;
    fields.push("x_extra", RawJson::parse(r#"{"b":1,"a":2}"#).unwrap());
    let expected = Message::new(
        Role::Assistant,
        [
            Reasoning::new("hm", Origin::OpenAiChat).into(),
            Part::text("Let me look."),
            ToolCall::new("c1", "ls", "{}").into(),
        ],
    );
    assert_eq!(message, expected.with_name("bot").with_fields(fields));

    let result = read(
        r#"{"role":"tool","tool_call_id":"c1","content":"gone","_session":{"error":true,"pinned":true}}"#,
    );
    assert_eq!(result, Message::tool_error("c1", "gone").pinned());

    let legacy = read(r#"{"role":"assistant","function_call":{"name":"ls","arguments":"{}"}}"#);
    let answer = read(r#"{"role":"function","name":"ls","content":"a.txt"}"#);
    assert_eq!(
        legacy.tool_calls().next().unwrap().id,
        answer.tool_results().next().unwrap().call_id,
    );

    let picture = read(
        r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}"#,
    );
    let media = Media::new(MediaKind::Image, MediaSource::Base64("AA==".into()));
    assert_eq!(picture.parts(), [media.with_mime("image/png").into()]);
}

#[test]
fn a_change_of_content_is_written() {
    let message = read(r#"{"content": "a", "role": "user"}"#).with_part(Part::text("b"));
    assert_eq!(
        write(&message),
        r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
    );
}

#[test]
fn trees_of_values_work_too() {
    let message = Message::user("hi").pinned();
    let value = serde_json::to_value(&message).unwrap();
    assert_eq!(value["_session"]["pinned"], Value::Bool(true));
    assert_eq!(serde_json::from_value::<Message>(value).unwrap(), message);
}

#[test]
fn time_is_kept_to_the_microsecond() {
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789);
    let text = write(&Message::user("hi").with_time(time));
    assert!(text.contains(r#""time":"2023-11-14T22:13:20.123456Z""#), "{text}");
    let kept = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_000);
    assert_eq!(read(&text).time(), Some(kept));
}

#[test]
fn bad_input_is_named() {
    assert!(refused("[]").contains("a message is a JSON object, this is a list"));
    assert!(refused("{}").contains("the role is missing: assistant, developer"));
    assert!(refused(r#"{"role":"robot"}"#).contains(r#"this one is "robot""#));
    assert!(refused(r#"{"role":"user","content":5}"#).contains("this is a number"));
    assert!(refused(r#"{"role":"user","tool_calls":{}}"#).contains("tool_calls is a list or null"));
    assert!(refused(r#"{"role":"user","_session":[]}"#).contains("_session is an object of id"));
    assert!(refused(r#"{"role":"user","_session":{"time":"noon"}}"#).contains("RFC 3339"));
    assert!(refused(r#"{"role":"user","content":"#).contains("line 1 column"));
    assert!(refused(r#"{"role":"user","content":"\ud800"}"#).contains("surrogate pair"));
}

#[test]
fn depth_is_no_danger() {
    for depth in [200, 50_000] {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let text = format!(r#"{{"role":"user","content":[{deep}],"x":{deep}}}"#);
        assert_eq!(write(&read(&text)), text);
        let open = r#"{"type":"tool_result","call_id":"a","content":["#.repeat(depth);
        let text = format!(r#"{{"role":"user","content":[{open}{}]}}"#, "]}".repeat(depth));
        assert_eq!(write(&read(&text)), text);
    }
}

fn name() -> impl Strategy<Value = Box<str>> {
    "x_[a-z\"é]{0,6}".prop_map(Into::into)
}

fn raw() -> impl Strategy<Value = RawJson> {
    prop_oneof![
        Just(r#"{"type":"text","text":"not a text part"}"#),
        Just(r#"{"type":"json","value":1}"#),
        Just(r#"{"type":"custom","id":"c","custom":{"input":"x"}}"#),
        Just(r#"{"type":"compaction", "encrypted_content":"AA" }"#),
        Just(r#"{"type":"tool_call","id":"a","name":"b","arguments":"c"}"#),
        Just("null"),
        Just("1.00"),
        Just("\"text\""),
        Just("[1, [2]]"),
    ]
    .prop_map(|text| RawJson::parse(text).unwrap())
}

fn fields() -> impl Strategy<Value = Fields> {
    vec((name(), raw()), 0..3).prop_map(|members| {
        let mut fields = Fields::EMPTY;
        for (name, value) in members {
            fields.push(name, value);
        }
        fields
    })
}

fn origin() -> impl Strategy<Value = Origin> {
    prop_oneof![
        Just(Origin::Anthropic),
        Just(Origin::Gemini),
        Just(Origin::OpenAiChat),
        Just(Origin::OpenAiResponses),
        Just(Origin::Other("xai".into())),
    ]
}

fn media() -> impl Strategy<Value = Part> {
    let kind = prop_oneof![Just(MediaKind::Audio), Just(MediaKind::File), Just(MediaKind::Image)];
    let source = prop_oneof![
        "[A-Za-z0-9=]{0,8}".prop_map(MediaSource::Base64),
        any::<String>().prop_map(MediaSource::Reference),
        any::<String>().prop_map(MediaSource::Url),
        Just(MediaSource::Url("data:image/png;base64,AA==".into())),
    ];
    let mime = prop_oneof![Just("audio/mp3"), Just("image/png"), Just(""), Just("a;base64,b")];
    (kind, source, option::of(mime), option::of(any::<String>()), fields()).prop_map(
        |(kind, source, mime, alt, fields)| {
            let mut media = Media::new(kind, source);
            media.mime = mime.map(Into::into);
            media.alt = alt;
            media.fields = fields;
            media.into()
        },
    )
}

fn part() -> impl Strategy<Value = Part> {
    let text = (any::<String>(), fields()).prop_map(|(text, fields)| {
        let mut part = Text::new(text);
        part.fields = (!fields.is_empty()).then(|| Box::new(fields));
        Part::Text(part)
    });
    let reasoning = (any::<String>(), option::of(any::<String>()), origin(), fields()).prop_map(
        |(text, signature, origin, fields)| {
            let mut reasoning = Reasoning::new(text, origin);
            reasoning.signature = signature;
            reasoning.fields = fields;
            reasoning.into()
        },
    );
    let thought = any::<String>().prop_map(|text| Reasoning::new(text, Origin::OpenAiChat).into());
    let call = (any::<String>(), any::<String>(), any::<String>(), fields()).prop_map(
        |(id, name, arguments, fields)| {
            let mut call = ToolCall::new(id, name, arguments);
            call.fields = fields;
            call.into()
        },
    );
    let leaf = prop_oneof![
        any::<String>().prop_map(Part::text),
        text,
        reasoning,
        thought,
        call,
        media(),
        raw().prop_map(|raw| Part::Json(Box::new(raw))),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        (any::<String>(), vec(inner, 0..3), any::<bool>(), fields()).prop_map(
            |(call_id, content, is_error, fields)| {
                let mut result = ToolResult::new(call_id, "");
                result.content = content;
                result.is_error = is_error;
                result.fields = fields;
                result.into()
            },
        )
    })
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![
        Just(Role::Assistant),
        Just(Role::Developer),
        Just(Role::System),
        Just(Role::Tool),
        Just(Role::User),
    ];
    let flags = (any::<bool>(), any::<bool>(), option::of(any::<u32>()));
    (role, vec(part(), 0..5), option::of(any::<String>()), fields(), flags).prop_map(
        |(role, parts, name, fields, (pinned, partial, time))| {
            let mut message = Message::new(role, parts).with_fields(fields);
            if let Some(name) = name {
                message = message.with_name(name);
            }
            if pinned {
                message = message.pinned();
            }
            if partial {
                message = message.partial();
            }
            if let Some(seconds) = time {
                let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.into());
                message = message.with_time(time).with_id(seconds.to_string());
            }
            message
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_message_reads_as_it_was_written(message in message()) {
        let text = write(&message);
        let again = read(&text);
        prop_assert_eq!(&again, &message, "{}", text);
        prop_assert_eq!(again.id(), message.id());
        prop_assert_eq!(again.time(), message.time());
        prop_assert_eq!(write(&again), text);
    }
    #[test]
    fn every_spelling_comes_back(message in message(), pretty in any::<bool>()) {
        // The tree sorts the keys, and has its own spelling of numbers.
        let tree: Value = serde_json::from_str(&write(&message)).unwrap();
        let text = if pretty { serde_json::to_string_pretty(&tree) } else { serde_json::to_string(&tree) };
        let text = text.unwrap();
        let again = read(&text);
        if tree.get("_session").is_none() {
            prop_assert_eq!(write(&again), text.as_str());
        }
        let stored = write(&again.partial());
        prop_assert_eq!(write(&read(&stored)), stored);
    }
}
