//! What an operator reads.

mod common;

use common::{
    logs::capture,
    model::{Model, whole},
    secrets::{assert_clean, leak, leaky},
    stub::{Stub, manager, manager_with, messages},
};
use session_compaction::{ChatResponse, Compact, Message, ProviderError, ProviderErrorKind};

// One thread: the subscriber is this thread's.
#[tokio::test(flavor = "current_thread")]
async fn a_compaction_is_two_lines() {
    let (lines, _guard) = capture();
    let sessions = manager(Stub::says("All parts do well."));
    sessions.add_messages("abc12345def", messages(0..24)).await.unwrap();
    assert!(sessions.compact("abc12345def", Compact::if_due()).await.applied().is_some());
    let chars: usize = messages(0..24).iter().map(Message::chars).sum();
    let removed: usize = messages(0..20).iter().map(Message::chars).sum();
    let text = lines.text();
    let first = format!(
        "[abc12345] summarizer: session={chars} chars, removing 20 msgs ({removed} chars), keeping 4 msgs"
    );
    assert!(text.contains(&first), "{text}");
    assert!(
        text.contains(&format!("[abc12345] summarizer done: -{removed} chars, summary 18 chars, "))
    );
    assert!(!text.contains("machine"), "no text of the conversation: {text}");
}

#[tokio::test(flavor = "current_thread")]
async fn a_failure_is_a_warning_and_a_key_cannot_forge_lines() {
    let (lines, _guard) = capture();
    let sessions = manager(Stub::new(|_| Err("no such model".into())));
    let key = "evil\n WARN forged\u{1b}[2J";
    sessions.add_messages(key, messages(0..24)).await.unwrap();
    assert!(sessions.compact(key, Compact::if_due()).await.applied().is_none());
    let text = lines.text();
    let warnings: Vec<_> = text.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(warnings.len(), 1, "{text}");
    assert!(warnings[0].contains("no such model"));
    assert!(!text.contains("forged") && !text.contains('\u{1b}'), "{text:?}");
}

#[tokio::test(flavor = "current_thread")]
async fn no_secret_reaches_a_request_a_summary_a_log_or_an_error() {
    let (lines, _guard) = capture();
    let model = Model::plays(|_| Some(Ok(ChatResponse::new(format!("They were: {}", leak())))));
    let sessions = manager_with(model.summarizer().with_window(6_000), whole());
    sessions.set_summary("chat", format!("The user is Ann. {}", leak())).await.unwrap();
    sessions.add_messages("chat", leaky()).await.unwrap();
    let report = sessions.compact("chat", Compact::if_due()).await;
    assert!(report.applied().is_some(), "{report}");
    for request in model.asked() {
        assert_clean(&request.system);
        assert_clean(&request.user);
    }
    let asked: String = model.asked().iter().map(|request| request.user.as_str()).collect();
    assert!(asked.contains("OPENAI_API_KEY=[redacted]"), "the rest is still of use");
    let summary = sessions.summary("chat").await.unwrap().unwrap();
    assert!(summary.starts_with("They were: OPENAI_API_KEY=[redacted]"), "{summary}");
    assert_clean(&summary);

    let model = Model::fails(ProviderError::new(ProviderErrorKind::Rejected, leak()));
    let sessions = manager_with(model.summarizer(), whole());
    sessions.add_messages("chat", leaky()).await.unwrap();
    for _ in 0..4 {
        // The fourth one is paused, and says why.
        let report = sessions.compact("chat", Compact::if_due()).await;
        assert_clean(&format!("{report} {report:?}"));
    }
    let text = lines.text();
    assert!(text.contains("summarizer: no summary"), "{text}");
    assert_clean(&text);
}
