//! What a host does with a context, through the public interface alone.

#![expect(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

use async_openai::types::chat::ChatCompletionRequestMessage;
use session_compaction::{
    Compact, Context, Media, Message, Part, Request, Role, SessionManager, summarize_fn,
};

const KEY: &str = "chat";

async fn context(sessions: &SessionManager) -> Context {
    sessions.context(KEY, &Request::new().system("Be brief.")).await.unwrap()
}

#[tokio::test]
async fn a_client_library_reads_its_own_messages() {
    let sessions = SessionManager::builder().build().unwrap();
    let picture = Media::image_url("https://example.org/cat.png");
    let messages = [
        Message::user("Is the disk full?"),
        Message::assistant("Let me look.").with_tool_call("c1", "shell", r#"{"cmd":"df"}"#),
        Message::tool_result("c1", "42% used"),
        Message::assistant("No."),
        Message::new(Role::User, [Part::text("And this?"), picture.into()]),
    ];
    sessions.add_messages(KEY, messages).await.unwrap();
    let context = context(&sessions).await;
    let typed: Vec<ChatCompletionRequestMessage> = context.openai_chat_as().unwrap();
    let roles: Vec<_> = typed
        .iter()
        .map(|message| match message {
            ChatCompletionRequestMessage::System(_) => "system",
            ChatCompletionRequestMessage::User(_) => "user",
            ChatCompletionRequestMessage::Assistant(_) => "assistant",
            ChatCompletionRequestMessage::Tool(_) => "tool",
            _ => "other",
        })
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "user"]);
    let ChatCompletionRequestMessage::Assistant(call) = &typed[2] else { panic!("a call") };
    assert_eq!(call.tool_calls.as_ref().unwrap().len(), 1);

    let error = context.openai_chat_as::<u64>().unwrap_err();
    assert!(error.is_message(), "{error}");
}

#[tokio::test]
async fn healing_changes_nothing_that_is_stored() {
    let sessions = SessionManager::builder().build().unwrap();
    let broken = [
        Message::tool_result("nobody", "orphan"),
        Message::user(" "),
        Message::assistant("").with_tool_call("a", "ls", "{}"),
        Message::tool_result("a", "one"),
        Message::tool_result("a", "two"),
        Message::system("late"),
    ];
    sessions.add_messages(KEY, broken.clone()).await.unwrap();
    let repaired: Vec<_> = context(&sessions).await.repaired().collect();
    assert_eq!(repaired, [0, 1, 4]);
    let again: Vec<_> = context(&sessions).await.repaired().collect();
    assert_eq!(again, repaired, "so that each is counted once, however often it is healed");

    let stored = sessions.history(KEY).await.unwrap().to_vec();
    assert!(stored.iter().map(|message| &**message).eq(&broken));
}

#[tokio::test]
async fn contexts_extend_each_other_until_a_compaction() {
    let summarizer = summarize_fn(|_| async { Ok("They counted up.".to_owned()) });
    let sessions = SessionManager::builder().summarizer(summarizer).build().unwrap();
    let mut before = String::new();
    for n in 0..12 {
        let turn =
            [Message::user(format!("{n}, and what comes next?")), Message::assistant("More.")];
        sessions.add_messages(KEY, turn).await.unwrap();
        let now = context(&sessions).await.to_openai_chat().messages().to_owned();
        assert!(now.starts_with(before.trim_end_matches(']')), "{before}\n{now}");
        before = now;
    }
    assert!(!context(&sessions).await.is_compacted());
    let report = sessions.compact(KEY, Compact::now()).await;
    let context = context(&sessions).await;
    assert!(context.is_compacted(), "{report:?}");
    let body = context.to_openai_chat();
    assert!(body.messages().contains("They counted up."), "{}", body.messages());
    assert!(body.messages().len() < before.len());
    assert_eq!(context.mark(), sessions.snapshot(KEY).await.unwrap());
}

#[tokio::test]
async fn tools_without_a_json_form_are_an_error() {
    let sessions = SessionManager::builder().build().unwrap();
    let broken = std::collections::BTreeMap::from([((1, 2), "a pair is no key")]);
    let error = sessions.context(KEY, &Request::new().tools(&broken)).await.unwrap_err();
    assert!(error.is_message(), "{error}");
}
