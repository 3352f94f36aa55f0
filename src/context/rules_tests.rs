use serde_json::json;

use super::*;

const ALL: [Provider; 5] = [
    Provider::Anthropic,
    Provider::Gemini,
    Provider::OpenAiChat,
    Provider::OpenAiResponses,
    Provider::StrictTemplate,
];

fn system(text: &str) -> Value {
    json!({"role": "system", "content": text})
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn calls(ids: &[&str]) -> Value {
    let call = |id: &&str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    json!({"role": "assistant", "content": null, "tool_calls": ids.iter().map(call).collect::<Vec<_>>()})
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "done"})
}

fn thought(block: &Value) -> Value {
    json!({"role": "assistant", "content": [block, {"type": "text", "text": "42"}]})
}

/// The broken rules, each with the index of the message at fault.
fn broken(provider: Provider, messages: &[Value]) -> Vec<(&'static str, Option<usize>)> {
    let found = validate_messages(messages, provider);
    found.into_iter().map(|found| (found.rule, found.index)).collect()
}

fn refused(provider: Provider, messages: &[Value], rule: &'static str, index: usize) {
    assert_eq!(broken(provider, messages), [(rule, Some(index))], "{provider:?}: {messages:#?}");
}

fn accepted(providers: &[Provider], messages: &[Value]) {
    for provider in providers {
        assert_eq!(broken(*provider, messages), [], "{provider:?}: {messages:#?}");
    }
}

#[test]
fn a_whole_conversation_is_accepted_by_all() {
    let messages = [
        system("Be brief."),
        user("Look around"),
        calls(&["a", "b"]),
        result("b"),
        result("a"),
        calls(&["a"]),
        result("a"),
        assistant("Nothing there."),
        user("Thanks"),
    ];
    accepted(&ALL, &messages);
    accepted(&ALL, &[user("hi")]);
}

#[test]
fn a_list_is_not_empty() {
    assert_eq!(broken(Provider::OpenAiChat, &[]), [("empty", None)]);
    assert_eq!(broken(Provider::Anthropic, &[]), [("empty", None), ("empty_rest", None)]);
    assert_eq!(broken(Provider::Gemini, &[]), [("empty_rest", None)]);
    assert_eq!(broken(Provider::StrictTemplate, &[]), [("no_user", None)]);
}

#[test]
fn a_list_is_not_all_system_messages() {
    let messages = [system("Be brief.")];
    assert_eq!(broken(Provider::Anthropic, &messages), [("empty_rest", None)]);
    assert_eq!(broken(Provider::Gemini, &messages), [("empty_rest", None)]);
    assert_eq!(broken(Provider::StrictTemplate, &messages), [("no_user", None)]);
    accepted(&[Provider::OpenAiChat], &messages);
}

#[test]
fn results_answer_the_assistant_message_before_them() {
    for provider in [Provider::Anthropic, Provider::Gemini, Provider::OpenAiChat] {
        let orphan = [user("go"), result("a"), assistant("ok"), user("next")];
        refused(provider, &orphan, "orphan_result", 1);
        let of_an_older_round =
            [user("go"), calls(&["a"]), result("a"), calls(&["b"]), result("b"), result("a")];
        refused(provider, &of_an_older_round, "orphan_result", 5);
        let other_id = [user("go"), calls(&["a"]), result("x")];
        assert_eq!(
            broken(provider, &other_id),
            [("unanswered_call", Some(1)), ("orphan_result", Some(2))]
        );
        let without_id = [user("go"), json!({"role": "tool", "content": "x"}), user("next")];
        refused(provider, &without_id, "orphan_result", 1);
    }
}

#[test]
fn a_call_has_one_result() {
    for provider in [Provider::Anthropic, Provider::Gemini, Provider::OpenAiChat] {
        let messages = [user("go"), calls(&["a"]), result("a"), result("a")];
        refused(provider, &messages, "duplicate_result", 3);
    }
}

#[test]
fn all_calls_are_answered_before_any_other_message() {
    for provider in [Provider::Anthropic, Provider::Gemini, Provider::OpenAiChat] {
        let next = [user("go"), calls(&["a", "b"]), result("a"), user("next")];
        refused(provider, &next, "unanswered_call", 1);
        let between = [user("go"), calls(&["a"]), user("stop"), result("a")];
        assert_eq!(
            broken(provider, &between),
            [("unanswered_call", Some(1)), ("orphan_result", Some(3))]
        );
    }
}

#[test]
fn nothing_is_unanswered_at_the_end() {
    let messages = [user("go"), calls(&["a"])];
    refused(Provider::OpenAiChat, &messages, "unanswered_call", 1);
    refused(Provider::Anthropic, &messages, "unanswered_call", 1);
}

#[test]
fn calls_of_a_message_share_no_id() {
    for provider in [Provider::Anthropic, Provider::Gemini, Provider::OpenAiChat] {
        let messages = [user("go"), calls(&["a", "a"]), result("a")];
        refused(provider, &messages, "duplicate_call", 1);
    }
    let two_rounds = [user("go"), calls(&["a"]), result("a"), calls(&["a"]), result("a")];
    accepted(&ALL, &two_rounds);
}

#[test]
fn what_is_said_is_not_blank() {
    for blank in
        [json!(""), json!(" \n\t"), json!(null), json!([]), json!([{"type": "text", "text": " "}])]
    {
        for provider in [Provider::Anthropic, Provider::OpenAiChat] {
            let asked = [json!({"role": "user", "content": blank})];
            refused(provider, &asked, "blank_message", 0);
            let said = [user("a"), json!({"role": "assistant", "content": blank}), assistant("b")];
            refused(provider, &said, "blank_message", 1);
        }
    }
    let image = json!([{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]);
    accepted(&ALL, &[json!({"role": "user", "content": image})]);
    accepted(
        &[Provider::Anthropic, Provider::OpenAiChat],
        &[user("go"), json!({"role": "assistant", "content": null, "refusal": "no"})],
    );
}

#[test]
fn the_last_assistant_message_is_not_blank() {
    let only_thought = json!({"role": "assistant", "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
    ]});
    assert_eq!(
        broken(Provider::Anthropic, &[user("go"), only_thought]),
        [("blank_message", Some(1)), ("blank_last_assistant", Some(1))]
    );
    // Calls are something to answer.
    accepted(&[Provider::Anthropic], &[user("go"), calls(&["a"]), result("a")]);
}

#[test]
fn system_messages_lead() {
    let late = [user("go"), system("Be brief.")];
    refused(Provider::Anthropic, &late, "late_system", 1);
    refused(Provider::StrictTemplate, &late, "late_system", 1);
    let two = [system("Be brief."), system("Be kind."), user("go")];
    refused(Provider::StrictTemplate, &two, "late_system", 1);
    accepted(&[Provider::Anthropic, Provider::Gemini, Provider::OpenAiChat], &two);
    let developer = [user("go"), json!({"role": "developer", "content": "Be brief."})];
    refused(Provider::Anthropic, &developer, "late_system", 1);
}

#[test]
fn the_user_speaks_first() {
    let messages = [system("Be brief."), assistant("hi"), user("go")];
    refused(Provider::Anthropic, &messages, "first_not_user", 1);
    refused(Provider::StrictTemplate, &messages, "first_not_user", 1);
    accepted(&[Provider::OpenAiChat, Provider::Gemini], &messages);
}

#[test]
fn thinking_comes_with_its_signature_or_not_at_all() {
    let whole = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let hidden = json!({"type": "redacted_thinking", "data": "x"});
    accepted(&[Provider::Anthropic], &[user("go"), thought(&whole)]);
    accepted(&[Provider::Anthropic], &[user("go"), thought(&hidden)]);
    for broken in [
        json!({"type": "thinking", "thinking": "hm"}),
        json!({"type": "thinking", "thinking": "hm", "signature": ""}),
        json!({"type": "thinking", "signature": "s"}),
        json!({"type": "redacted_thinking"}),
    ] {
        refused(Provider::Anthropic, &[user("go"), thought(&broken)], "broken_thinking", 1);
    }
}

#[test]
fn gemini_calls_follow_the_user_or_a_result() {
    let after_words = [user("go"), assistant("I will look"), calls(&["a"]), result("a")];
    refused(Provider::Gemini, &after_words, "call_out_of_turn", 2);
    let first = [calls(&["a"]), result("a"), user("next")];
    refused(Provider::Gemini, &first, "call_out_of_turn", 0);
    accepted(
        &[Provider::Gemini],
        &[user("go"), calls(&["a"]), result("a"), calls(&["b"]), result("b")],
    );
}

#[test]
fn gemini_does_not_end_on_a_model_message() {
    let messages = [user("go"), assistant("done")];
    refused(Provider::Gemini, &messages, "ends_on_model", 1);
    let mut messages = messages.to_vec();
    messages.push(user("next"));
    accepted(&[Provider::Gemini], &messages);
}

#[test]
fn strict_templates_need_a_user_message() {
    let messages = [assistant("hi")];
    assert_eq!(
        broken(Provider::StrictTemplate, &messages),
        [("no_user", None), ("first_not_user", Some(0))]
    );
}

#[test]
fn strict_templates_take_turns() {
    let repeated = [user("a"), user("b")];
    refused(Provider::StrictTemplate, &repeated, "same_role", 1);
    let said_twice = [user("a"), assistant("b"), assistant("c")];
    refused(Provider::StrictTemplate, &said_twice, "same_role", 2);
    // Tool traffic is no turn: it neither breaks a repetition nor makes one.
    let around = [user("a"), assistant("b"), calls(&["x"]), result("x"), assistant("c")];
    refused(Provider::StrictTemplate, &around, "same_role", 4);
    let rounds =
        [user("a"), calls(&["x"]), result("x"), calls(&["y"]), result("y"), assistant("c")];
    accepted(&[Provider::StrictTemplate], &rounds);
}

#[test]
fn strict_templates_let_the_assistant_speak_after_a_tool() {
    let messages = [user("a"), calls(&["x"]), result("x"), user("b")];
    assert_eq!(
        broken(Provider::StrictTemplate, &messages),
        [("same_role", Some(3)), ("user_after_tool", Some(3))]
    );
    let spoken = [user("a"), calls(&["x"]), result("x"), assistant("ok"), user("b")];
    accepted(&[Provider::StrictTemplate], &spoken);
}

#[test]
fn what_is_no_message_is_named_and_never_panics() {
    for junk in [json!(null), json!(7), json!([]), json!({}), json!({"role": "narrator"})] {
        for provider in ALL {
            let found = broken(provider, &[user("a"), junk.clone(), assistant("b"), user("c")]);
            assert!(found.contains(&("unknown_role", Some(1))), "{provider:?}: {found:?}");
        }
    }
    let odd = json!({"role": "assistant", "content": 7, "tool_calls": [null, {"id": 7}]});
    assert_eq!(
        broken(Provider::OpenAiChat, &[user("a"), odd]),
        [("duplicate_call", Some(1)), ("unanswered_call", Some(1))]
    );
}
