//! What is given comes back, byte for byte.

use std::time::{Duration, SystemTime};

use super::{
    broken::{Done, broken, holds, same},
    probe::{Probe, given, positions, view},
};
use crate::{
    message::Message,
    session::{StoredSummary, View},
    store::{Commit, StoredMessage},
};

/// Stores messages that were read from these texts, and checks that they come
/// back as the same text.
async fn round_trip(s: &Probe, texts: &[&str]) -> Done {
    let mut messages = Vec::new();
    for (n, text) in texts.iter().enumerate() {
        let message = Message::from_json(text)
            .map_err(|problem| broken("it is a message", "none", &problem))?;
        messages.push(message.with_id(format!("id-{n}")).with_time(SystemTime::UNIX_EPOCH));
    }
    messages_come_back(s, &messages).await
}

async fn messages_come_back(s: &Probe, messages: &[Message]) -> Done {
    let batch: Vec<_> = messages.iter().cloned().map(given).collect();
    s.append(&batch).await?;
    let window = s.load().await?.window;
    all_as_given(&window, messages)?;
    if let Some(archive) = s.store.archive() {
        all_as_given(&archive.transcript(&s.key, 0..u64::MAX).await?, messages)?;
    }
    let again = s.append(&batch).await?.placed;
    let known = again.iter().all(|placed| placed.duplicate);
    holds("read back, they are still the same messages", known, &again)
}

fn all_as_given(window: &[StoredMessage], messages: &[Message]) -> Done {
    same("all are there", positions(window).len(), messages.len())?;
    for (kept, message) in window.iter().zip(messages) {
        same("the text comes back", kept.message.to_json(), message.to_json())?;
        same("the message comes back", &*kept.message, message)?;
        same("the id comes back", kept.message.id(), message.id())?;
        same("the time comes back", kept.message.time(), message.time())?;
    }
    Ok(())
}

pub(super) async fn messages_come_back_byte_for_byte(s: Probe) -> Done {
    round_trip(
        &s,
        &[
            r#"{"role":"user","content":"NUL \u0000, quote \", snow ☃"}"#,
            "{ \"role\" : \"user\",\n \"content\":\r\n\t\"over lines\", \"x\": 1.0 }",
            r#"{"content":null,"role":"assistant","n":12345678901234567890123,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]}"#,
            r#"{"role":"tool","tool_call_id":"c","content":"crc {\"crc\":\"00000000\",","crc":{"crc":"00000000","x":1}}"#,
        ],
    )
    .await
}

pub(super) async fn nul_characters_come_back(s: Probe) -> Done {
    let read = r#"{"role":"user","content":"\u0000","x\u0000":{"\u0000":"a\u0000b"}}"#;
    round_trip(&s, &[read]).await?;
    messages_come_back(&s.at("plain")?, &[Message::user("\0a\0\0b\0").with_id("a")]).await
}

pub(super) async fn numbers_keep_their_spelling(s: Probe) -> Done {
    let numbers = r"[1.0e5,1E5,100000.0,1.00,-0,-0.0,12345678901234567890123,0.1000,1e400,0.30000000000000004]";
    let text = format!(r#"{{"role":"user","content":"n","numbers":{numbers}}}"#);
    round_trip(&s, &[&text]).await
}

pub(super) async fn key_order_and_white_space_are_kept(s: Probe) -> Done {
    round_trip(
        &s,
        &[
            r#"{"zz":1,"role":"user","aa":2,"content":"x","mm":{"z":1,"a":2}}"#,
            "{\"role\":\"user\",\t\"content\" :  \"x\"  ,\"y\":[ 1 ,2 ]}",
            "{\n  \"role\": \"user\",\n  \"content\": \"pretty\"\n}",
            "{\r\n\"role\": \"user\",\r\n\"content\": \"pretty\"\r\n}",
        ],
    )
    .await
}

pub(super) async fn unknown_fields_are_kept(s: Probe) -> Done {
    round_trip(
        &s,
        &[
            r#"{"role":"assistant","content":"x","reasoning_content":"so","signature":"c2ln","usage":{"a":[null,true,{}]}}"#,
            r#"{"role":"user","content":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},{"type":"odd","y":[]}]}"#,
        ],
    )
    .await
}

pub(super) async fn all_roles_come_back(s: Probe) -> Done {
    let messages = [
        Message::system("rules"),
        Message::user("hi").with_name("ann"),
        Message::assistant("on it").with_id("call"),
        Message::tool_result("c", "done"),
        Message::tool_error("d", "failed"),
        Message::user(""),
    ];
    let named = (0..).zip(messages).map(|(n, message)| message.with_id(format!("id-{n}")));
    messages_come_back(&s, &named.collect::<Vec<_>>()).await
}

pub(super) async fn any_text_comes_back(s: Probe) -> Done {
    let texts = [
        "\u{10ffff}\u{1f600}",
        "e\u{301}\u{e9}",
        "\u{feff}mark",
        "\u{2028}\u{2029}\u{85}",
        "\u{202e}right to left",
        "\u{fffd}\u{fffe}",
        "\r\n\t\u{1}\u{1f}\u{7f}",
        "'; DROP TABLE messages; --",
        "\\u0000 \\x00 \\",
        "{\"crc\":\"",
        "$1 ?1 :a %s {}",
    ];
    let messages = (0..).zip(texts).map(|(n, text)| Message::user(text).with_id(format!("id-{n}")));
    messages_come_back(&s, &messages.collect::<Vec<_>>()).await
}

pub(super) async fn flags_and_times_come_back(s: Probe) -> Done {
    let second = SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
    messages_come_back(
        &s,
        &[
            Message::user("pinned").pinned().with_id("a"),
            Message::assistant("cut sh").partial().with_id("b"),
            Message::user("dated").with_time(second).with_id("c"),
        ],
    )
    .await
}

pub(super) async fn summaries_come_back(s: Probe) -> Done {
    let mut revision = s.add(&["a", "b"]).await?.revision;
    let long = "Zusammenfassung. ".repeat(10_000);
    for text in ["", "NUL \0, quote \", \\u0000", "\u{10ffff}\u{2028}\r\n", &long] {
        let summary = StoredSummary { text: text.into(), excerpted: 3, by: "it \0 \"".into() };
        let expected = View { summary: Some(summary), ..view(1) };
        revision = s.commit(Commit::on(revision).with_view(expected.clone())).await?;
        same("the summary comes back", s.load().await?.state.view, expected)?;
    }
    Ok(())
}
