use super::{Redactor, SecretPatterns, message};
use crate::message::Message;

#[test]
fn secrets_go_and_the_rest_stays() {
    for (text, redacted) in [
        ("OPENAI_API_KEY=sk-EXAMPLE0123456789abcdef next", "OPENAI_API_KEY=[redacted] next"),
        ("AWS=AKIAEXAMPLE000000000.", "AWS=[redacted]."),
        ("DB=postgres://app:hunter2@db/prod", "DB=postgres://app:[redacted]@db/prod"),
        ("redis://:p@ss@cache:6379/0", "redis://:[redacted]@cache:6379/0"),
        ("Authorization: Bearer eyJEXAMPLE.e30.sig", "Authorization: Bearer [redacted]"),
        (
            "curl -H 'authorization: Basic dXNlcjpwYXNz'",
            "curl -H 'authorization: Basic [redacted]'",
        ),
        ("send bearer abcDEF123456", "send bearer [redacted]"),
        ("jwt eyJhbGciOi.eyJzdWIi.c2ln end", "jwt [redacted] end"),
        ("ghp_0123456789abcdefghij0123456789abcdef", "[redacted]"),
        ("xoxb-0123456789-abcdef", "[redacted]"),
        (r#"{"password": "correct horse"}"#, r#"{"password": "[redacted] horse"}"#),
        (r#"{\"api_key\":\"abcd1234efgh\"}"#, r#"{\"api_key\":\"[redacted]\"}"#),
        ("password=hunter", "password=[redacted]"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA PRIVATE KEY-----\nok",
            "-----BEGIN RSA PRIVATE KEY-----[redacted]-----END RSA PRIVATE KEY-----\nok",
        ),
        ("-----BEGIN PRIVATE KEY-----\nMIIEabc", "-----BEGIN PRIVATE KEY-----[redacted]"),
    ] {
        assert_eq!(SecretPatterns.redact(text), redacted);
        assert_eq!(SecretPatterns.redact(redacted), redacted, "a second time changes nothing");
    }
}

#[test]
fn words_are_not_secrets() {
    for text in [
        "max_tokens=1024 and total_tokens: 40960",
        "The password: required, at least twelve characters.",
        "bearer of good news; basic understanding",
        "https://example.org:8443/a/b@c",
        "pip install sk-learn-contrib-example",
        "api_key = os.environ['OPENAI_API_KEY']",
        "export TOKEN=$GITHUB_TOKEN",
        "the tokenizer: a table",
    ] {
        assert_eq!(SecretPatterns.redact(text), text);
    }
}

#[test]
fn every_part_of_a_message_is_looked_at() {
    let call = Message::assistant("key is sk-EXAMPLE0123456789abcdef").with_tool_call(
        "c",
        "login",
        r#"{"password":"hunter2"}"#,
    );
    let call = message(&call, &SecretPatterns).unwrap();
    assert_eq!(call.text(), "key is [redacted]");
    assert_eq!(call.tool_calls().next().unwrap().arguments, r#"{"password":"[redacted]"}"#);
    let result = Message::tool_error("c", "AKIAEXAMPLE000000000 is no user");
    let result = message(&result, &SecretPatterns).unwrap();
    assert_eq!(result.text(), "[redacted] is no user");
    assert!(result.tool_results().all(|result| result.is_error && result.call_id == "c"));
    assert!(message(&Message::user("nothing here"), &SecretPatterns).is_none());
}

#[test]
fn secrets_are_found_anywhere_in_long_lines_and_texts() {
    let secret = "sk-EXAMPLE0123456789abcdef";
    for filler in ["gh ", "sk-", "token ", "x", "://", "PRIVATE KEY----- ", "\n"] {
        let pad = filler.repeat(5_000 / filler.len());
        let text = format!("{pad} {secret} {pad} api_key=abcd1234efgh {pad}");
        let redacted = SecretPatterns.redact(&text);
        assert!(!redacted.contains(secret) && !redacted.contains("abcd1234efgh"), "{filler:?}");
        assert!(redacted.ends_with(&pad), "{filler:?}");
    }
}

#[test]
fn no_text_makes_it_panic() {
    let pieces = [
        "token",
        "=",
        "é",
        "汉",
        "\n",
        "sk-",
        "://",
        "@",
        ":",
        "\"",
        "-----BEGIN PRIVATE KEY-----",
    ];
    for seed in 0..500_usize {
        let text: String =
            (0..40).map(|n| pieces[(seed * 31 + n * n * (seed % 7 + 1)) % pieces.len()]).collect();
        let once = SecretPatterns.redact(&text).into_owned();
        assert_eq!(SecretPatterns.redact(&once), once, "{text:?}");
    }
}
