//! Made-up secrets, and messages that hold them.

use session_compaction::Message;

use super::stub::messages;

pub(crate) const SECRETS: [&str; 6] = [
    "sk-EXAMPLE0123456789abcdef",
    "AKIAEXAMPLE000000000",
    "hunter2",
    "eyJEXAMPLE.e30.sig",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "MIIEowIBAAKCAQEA",
];

pub(crate) fn leak() -> String {
    format!(
        "OPENAI_API_KEY={} AWS={} DB=postgres://app:{}@db/prod Authorization: Bearer {} token {}\n-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
        SECRETS[0], SECRETS[1], SECRETS[2], SECRETS[3], SECRETS[4], SECRETS[5]
    )
}

pub(crate) fn assert_clean(text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

pub(crate) fn leaky() -> Vec<Message> {
    let arguments = format!(r#"{{"env":"KEY={}"}}"#, SECRETS[0]);
    let mut leaky = vec![
        Message::user(format!("Show env; mine is {}", leak())),
        Message::assistant("").with_tool_call("s1", "read_file", arguments),
        // So long that it is excerpted: no cut may part a secret from its shape.
        Message::tool_result("s1", format!("{} {}", "env ".repeat(3_000), leak()).repeat(3)),
    ];
    leaky.extend(messages(0..22));
    leaky
}
