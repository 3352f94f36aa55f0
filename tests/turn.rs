//! The loop of an agent: a context that fits, failures, and what is learned.

mod common;

#[path = "common/folder.rs"]
mod folder;

use common::stub::{Stub, manager, manager_with, messages};
use folder::Folder;
use session_compaction::{
    Compact, CompactionHandle, JsonlStore, Outcome, SessionManager, SessionOptions,
    SummarizationConfig, Threshold, Trigger,
};

#[tokio::test]
async fn a_switch_to_a_smaller_window_is_due_at_once() {
    let config = SummarizationConfig::for_model("gpt-5").with_message_threshold(Threshold::Off);
    let sessions = manager_with(Stub::says("All parts do well."), config);
    sessions.add_messages("chat", messages(0..30)).await.unwrap();
    assert!(matches!(sessions.maybe_summarize("chat").await, Outcome::BelowThreshold { .. }));

    sessions.configure("chat", SessionOptions::new().context_window(600)).await.unwrap();
    let handle = started(sessions.maybe_summarize("chat").await);
    assert!(matches!(handle.trigger(), Some(Trigger::Tokens { limit: 450, .. })));
    assert!(handle.await.applied().is_some());

    // A model that is known by name has its usual window.
    sessions.configure("chat", SessionOptions::new().model("llama2:7b")).await.unwrap();
    sessions.add_messages("chat", messages(30..300)).await.unwrap();
    let handle = started(sessions.maybe_summarize("chat").await);
    assert!(matches!(handle.trigger(), Some(Trigger::Tokens { limit: 3_072, .. })));
}

#[tokio::test]
async fn options_are_stored_and_change_nothing_else() {
    let folder = Folder::new();
    let open = || {
        let store = JsonlStore::open(folder.path()).unwrap();
        SessionManager::builder().store(store).build().unwrap()
    };
    let options = SessionOptions::new().model("m").context_window(9).label("tenant", "acme");
    let sessions = open();
    sessions.configure("new", options.clone()).await.unwrap();
    sessions.add_messages("chat", messages(0..3)).await.unwrap();
    let before = sessions.snapshot("chat").await.unwrap();
    sessions.configure("chat", options.clone()).await.unwrap();
    assert_eq!(sessions.snapshot("chat").await.unwrap(), before);
    assert_eq!(sessions.options("unknown").await.unwrap(), SessionOptions::default());
    drop(sessions);

    let sessions = open();
    assert_eq!(sessions.options("new").await.unwrap(), options);
    assert_eq!(sessions.options("chat").await.unwrap(), options);
    assert_eq!(sessions.history("chat").await.unwrap().len(), 3);
}

#[tokio::test]
async fn another_window_ends_a_pause_and_a_label_does_not() {
    let sessions = manager(Stub::says(LONG));
    sessions.add_messages("chat", messages(0..22)).await.unwrap();
    assert!(sessions.compact("chat", Compact::if_due()).await.applied().is_none());
    let paused = |outcome: Outcome| matches!(outcome, Outcome::Paused { .. });
    assert!(paused(sessions.maybe_summarize("chat").await));
    sessions.configure("chat", SessionOptions::new().label("a", "b")).await.unwrap();
    assert!(paused(sessions.maybe_summarize("chat").await));
    sessions.configure("chat", SessionOptions::new().context_window(8_000)).await.unwrap();
    assert!(matches!(sessions.maybe_summarize("chat").await, Outcome::Started(_)));
}

/// Never smaller than what it stands for.
const LONG: &str = include_str!("../src/lib.rs");

fn started(outcome: Outcome) -> CompactionHandle {
    match outcome {
        Outcome::Started(handle) => handle,
        other => panic!("{other}"),
    }
}
