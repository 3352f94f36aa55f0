//! What a host does to a session itself: its own summaries, emergency
//! compression, rewriting.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use common::stub::{Stub, manager_with, message, messages, texts, texts_of};
use session_compaction::{
    Compact, Forced, ListPage, MemoryStore, Message, Outcome, Report, SessionManager, Skip,
    SummarizationConfig,
};

fn plain() -> SessionManager {
    SessionManager::builder().build().unwrap()
}

async fn session(count: usize) -> SessionManager {
    let sessions = plain();
    sessions.add_messages("chat", messages(0..count)).await.unwrap();
    sessions
}

#[tokio::test]
async fn apply_summarization_preserves_new_messages() {
    for by_mark in [true, false] {
        let sessions = session(10).await;
        let mark = sessions.snapshot("chat").await.unwrap();
        for n in 10..13 {
            sessions.add_message("chat", message(n)).await.unwrap();
        }
        let report = if by_mark {
            sessions.apply_summarization("chat", "summary", mark, 4).await
        } else {
            sessions.apply_summarization("chat", "summary", 10, 4).await
        };
        assert_eq!(report.applied().unwrap().messages_removed, 6);
        assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(6..13)));
        assert_eq!(sessions.summary("chat").await.unwrap().as_deref(), Some("summary"));
    }
}

#[tokio::test]
async fn apply_summarization_stale_snapshot() {
    let sessions = session(10).await;
    let mark = sessions.snapshot("chat").await.unwrap();
    sessions.truncate_history("chat", 4).await.unwrap();
    for report in [
        sessions.apply_summarization("chat", "summary", mark, 2).await,
        sessions.apply_summarization("chat", "summary", 10, 2).await,
        sessions.apply_summarization("nobody", "summary", 0, 2).await,
    ] {
        assert!(matches!(report, Report::Stale), "{report}");
    }
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(6..10)));
    assert_eq!(sessions.summary("chat").await.unwrap(), None);
}

#[tokio::test]
async fn apply_summarization_rejects_shrink_then_regrow() {
    let sessions = session(10).await;
    let mark = sessions.snapshot("chat").await.unwrap();
    sessions.truncate_history("chat", 4).await.unwrap();
    sessions.add_messages("chat", messages(10..16)).await.unwrap();
    assert_eq!(sessions.history("chat").await.unwrap().len(), 10);
    let report = sessions.apply_summarization("chat", "summary", mark, 4).await;
    assert!(matches!(report, Report::Stale), "{report}");
    assert_eq!(sessions.history("chat").await.unwrap().len(), 10);
}

#[tokio::test]
async fn remove_then_recreate_is_stale() {
    let sessions = session(10).await;
    let mark = sessions.snapshot("chat").await.unwrap();
    let removed = sessions.remove("chat").await.unwrap();
    assert_eq!((removed.existed, removed.messages), (true, 10));
    assert!(!sessions.remove("chat").await.unwrap().existed);
    sessions.add_messages("chat", messages(0..10)).await.unwrap();
    let report = sessions.apply_summarization("chat", "summary", mark, 4).await;
    assert!(matches!(report, Report::Stale), "{report}");
    assert_eq!(sessions.history("chat").await.unwrap().len(), 10);
}

#[tokio::test]
async fn apply_summarization_moves_back_from_the_middle_of_a_round() {
    let sessions = session(6).await;
    let call =
        Message::assistant("").with_tool_call("c", "read", "{}").with_tool_call("d", "read", "{}");
    let round = [call, Message::tool_result("c", "1"), Message::tool_result("d", "2")];
    sessions.add_messages("chat", round).await.unwrap();
    sessions.add_message("chat", Message::assistant("Both read.")).await.unwrap();
    let mark = sessions.snapshot("chat").await.unwrap();
    // The last two are a result and the answer.
    let report = sessions.apply_summarization("chat", "summary", mark, 2).await;
    assert_eq!(report.applied().unwrap().messages_removed, 5, "the newest user message is carried");
    let kept = sessions.history("chat").await.unwrap();
    assert_eq!((kept.len(), kept.carried()), (5, 1));
}

#[tokio::test]
async fn a_blank_summary_is_not_applied() {
    let sessions = session(10).await;
    for blank in ["", " \n\t", "\u{200B}\u{FEFF}"] {
        let report = sessions.apply_summarization("chat", blank, 10, 4).await;
        assert!(matches!(&report, Report::Rejected { why } if why.is_empty_summary()), "{report}");
    }
    assert_eq!(sessions.history("chat").await.unwrap().len(), 10);
}

#[tokio::test]
async fn system_and_pinned_messages_are_carried() {
    let sessions = plain();
    sessions.add_message("chat", Message::system("You are terse.")).await.unwrap();
    sessions.add_message("chat", Message::user("My name is Ada.").pinned()).await.unwrap();
    sessions.add_messages("chat", messages(1..11)).await.unwrap();
    let mark = sessions.snapshot("chat").await.unwrap();
    assert!(sessions.apply_summarization("chat", "one", mark, 4).await.applied().is_some());
    let kept = texts(&sessions, "chat").await;
    assert_eq!(kept[..2], ["You are terse.", "My name is Ada."]);
    assert_eq!(kept[2..], texts_of(&messages(7..11)));

    // And again: what is carried stays so.
    sessions.add_messages("chat", messages(11..17)).await.unwrap();
    let mark = sessions.snapshot("chat").await.unwrap();
    assert!(sessions.apply_summarization("chat", "two", mark, 2).await.applied().is_some());
    let kept = texts(&sessions, "chat").await;
    assert_eq!(kept[..2], ["You are terse.", "My name is Ada."]);
    assert!(sessions.force_compression("chat").await.is_ok());
    assert_eq!(texts(&sessions, "chat").await[..2], kept[..2]);
}

#[tokio::test]
async fn force_compression_drops_oldest_half() {
    let sessions = session(20).await;
    sessions.set_summary("chat", "old summary").await.unwrap();
    let forced = sessions.force_compression("chat").await.unwrap();
    let Forced::Dropped { messages: 10, total: 10, tokens_before, tokens_after } = forced else {
        panic!("{forced:?}")
    };
    assert!(tokens_after < tokens_before);
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(10..20)));

    // It adds up, and the summary stays.
    let forced = sessions.force_compression("chat").await.unwrap();
    assert!(matches!(forced, Forced::Dropped { messages: 5, total: 15, .. }), "{forced:?}");
    let history = sessions.history("chat").await.unwrap();
    assert_eq!((history.dropped(), history.summary().unwrap().text.as_str()), (15, "old summary"));
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(15..20)));
}

#[tokio::test]
async fn force_compression_too_few_messages() {
    for count in [0, 1, 4] {
        let sessions = session(count).await;
        let forced = sessions.force_compression("chat").await.unwrap();
        let expected = Skip::TooFewMessages { messages: count, min: 4 };
        assert_eq!(forced, Forced::Skipped(expected));
        assert_eq!(sessions.history("chat").await.unwrap().len(), count);
    }
}

#[tokio::test]
async fn force_compression_makes_a_running_compaction_stale() {
    let (stub, gate) = Stub::says("late").held();
    let config = SummarizationConfig::default().with_multi_part_batch_threshold(1_000);
    let sessions = manager_with(stub, config);
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    let Outcome::Started(handle) = sessions.maybe_summarize("chat").await else { panic!() };
    gate.entered().await;
    assert!(matches!(sessions.force_compression("chat").await.unwrap(), Forced::Dropped { .. }));
    let report = handle.await;
    assert!(matches!(report, Report::Stale), "{report}");
    while gate.inside() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(sessions.history("chat").await.unwrap().dropped(), 12);
    assert_eq!(sessions.summary("chat").await.unwrap(), None);
}

#[tokio::test]
async fn clear_and_set_summary_win_over_a_running_compaction() {
    let (stub, gate) = Stub::says("late").held();
    let config = SummarizationConfig::default().with_multi_part_batch_threshold(1_000);
    let sessions = manager_with(stub, config);
    for (key, expected) in [("clear", None), ("summary", Some("mine"))] {
        sessions.add_messages(key, messages(0..24)).await.unwrap();
        let Outcome::Started(handle) = sessions.maybe_summarize(key).await else { panic!() };
        gate.entered().await;
        match expected {
            None => sessions.clear(key).await.unwrap(),
            Some(text) => sessions.set_summary(key, text).await.unwrap(),
        }
        let report = handle.await;
        assert!(matches!(report, Report::Stale), "{report}");
        assert_eq!(sessions.summary(key).await.unwrap().as_deref(), expected);
    }
}

#[tokio::test]
async fn what_force_compression_dropped_is_owed_to_the_next_summary() {
    let stub = Stub::says("All parts of the machine do well.");
    let requests = stub.requests();
    let sessions = SessionManager::builder()
        .store(MemoryStore::keep_transcripts())
        .config(SummarizationConfig::default().with_multi_part_batch_threshold(1_000))
        .summarizer(stub)
        .build()
        .unwrap();
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    assert!(matches!(sessions.force_compression("chat").await.unwrap(), Forced::Dropped { .. }));
    assert!(sessions.compact("chat", Compact::now()).await.applied().is_some());
    let seen: Vec<_> =
        requests.lock().unwrap()[0].messages.iter().map(|message| message.text()).collect();
    assert_eq!(seen, texts_of(&messages(0..20)));
    assert_eq!(sessions.history("chat").await.unwrap().dropped(), 0);
}

#[tokio::test]
async fn rewriting_gives_back_what_was_taken() {
    let sessions = session(6).await;
    sessions.set_summary("chat", "kept").await.unwrap();
    let taken = sessions.history("chat").await.unwrap().to_vec();
    // The same messages, with the ids that they were given.
    let messages: Vec<Message> = taken.iter().map(|message| (**message).clone()).collect();
    sessions.set_history("chat", messages[2..].to_vec()).await.unwrap();
    let now = sessions.history("chat").await.unwrap();
    assert_eq!(
        now.iter().map(|m| m.id()).collect::<Vec<_>>(),
        messages[2..].iter().map(Message::id).collect::<Vec<_>>()
    );
    assert_eq!(sessions.summary("chat").await.unwrap().as_deref(), Some("kept"));

    sessions.clear("chat").await.unwrap();
    assert!(sessions.history("chat").await.unwrap().is_empty());
    assert_eq!(sessions.summary("chat").await.unwrap(), None);
    let again = sessions.add_message("chat", messages[0].clone()).await.unwrap();
    assert_eq!((again.position, again.duplicate), (10, false), "a position is never used again");
}

#[tokio::test]
async fn an_id_names_one_content() {
    let sessions = plain();
    let first = Message::user("hello").with_id("a");
    sessions.add_message("chat", first.clone()).await.unwrap();
    assert!(sessions.add_message("chat", first.clone()).await.unwrap().duplicate);
    let other = [Message::user("new"), Message::user("other").with_id("a")];
    let error = sessions.add_messages("chat", other).await.unwrap_err();
    assert!(error.is_duplicate_id(), "{error}");
    assert_eq!(sessions.history("chat").await.unwrap().len(), 1, "all or none");
    let twice = [Message::user("x").with_id("b"), Message::user("x").with_id("b")];
    let added = sessions.add_messages("chat", twice).await.unwrap();
    assert_eq!((added[0].position, added[1].position, added[1].duplicate), (1, 1, true));
    // Another session has names of its own.
    assert!(!sessions.add_message("other", first).await.unwrap().duplicate);
}

#[tokio::test]
async fn keys_are_listed_in_order_and_checked() {
    let sessions = plain();
    for key in ["b", "a/b", "a", "\u{0}", "é", "e\u{301}"] {
        sessions.add_message(key, Message::user(key)).await.unwrap();
    }
    let keys = sessions.list_sessions(ListPage::first(3)).await.unwrap();
    let keys: Vec<&str> = keys.iter().map(session_compaction::SessionKey::as_str).collect();
    assert_eq!(keys, ["\u{0}", "a", "a/b"]);
    for key in [String::new(), "k".repeat(1_025)] {
        assert!(sessions.add_message(&key, message(0)).await.unwrap_err().is_key());
        assert!(sessions.history(&key).await.unwrap_err().is_key());
    }
}

#[tokio::test]
async fn a_context_that_is_given_back_does_not_store_the_summary() {
    let sessions = session(10).await;
    let mark = sessions.snapshot("chat").await.unwrap();
    let report = sessions.apply_summarization("chat", "All parts do well.", mark, 4).await;
    assert!(report.applied().is_some());
    let context = sessions.context("chat", &session_compaction::Request::new()).await.unwrap();
    let given_back: Vec<Message> = context.openai_chat_as().unwrap();
    assert!(given_back[0].text().contains("All parts do well."));

    sessions.set_history("chat", []).await.unwrap();
    sessions.add_messages("chat", given_back.clone()).await.unwrap();
    assert_eq!(texts(&sessions, "chat").await, texts_of(&messages(6..10)));

    // Nothing but the block adds nothing; another text is the host's own.
    let block = given_back[0].text().split("\n\n").next().unwrap().to_owned();
    let added = sessions.add_message("chat", Message::user(&*block)).await.unwrap();
    assert!(added.duplicate && sessions.history("chat").await.unwrap().len() == 4);
    let forged = block.replace("do well", "are broken");
    sessions.add_message("chat", Message::user(&*forged)).await.unwrap();
    assert_eq!(texts(&sessions, "chat").await[4], forged);
}
