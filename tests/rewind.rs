//! Taking back: by the host, and of a whole turn.

#![expect(
    clippy::future_not_send,
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, and run on one thread"
)]

mod common;
#[path = "common/folder.rs"]
mod folder;

use std::sync::Arc;

use common::stub::{Stub, messages, texts, texts_of};
use folder::Folder;
use session_compaction::{
    Compact, JsonlStore, MemoryStore, Message, Report, Request, SessionManager, SessionStore, To,
};

fn over(store: Arc<dyn SessionStore>) -> SessionManager {
    SessionManager::builder()
        .shared_store(store)
        .summarizer(Stub::says("All parts do well."))
        .build()
        .unwrap()
}

/// A manager over each store; a second one over the same, to read it afresh.
fn each(test: impl AsyncFn(SessionManager, &dyn Fn() -> SessionManager)) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = Folder::new();
    runtime.block_on(async {
        let stores: [Arc<dyn SessionStore>; 3] = [
            Arc::new(MemoryStore::new()),
            Arc::new(MemoryStore::keep_transcripts()),
            Arc::new(JsonlStore::open(folder.path()).unwrap()),
        ];
        for store in stores {
            test(over(Arc::clone(&store)), &|| over(Arc::clone(&store))).await;
        }
    });
}

async fn both(sessions: &SessionManager, fresh: &dyn Fn() -> SessionManager) -> Vec<String> {
    let held = texts(sessions, "chat").await;
    assert_eq!(texts(&fresh(), "chat").await, held);
    held
}

#[test]
fn the_end_is_taken_back_in_memory_and_in_the_store() {
    each(async |sessions, fresh| {
        let all = texts_of(&messages(0..6));
        sessions.add_messages("chat", messages(0..6)).await.unwrap();
        let before = sessions.session_stats("chat").await.unwrap();
        let mark = sessions.snapshot("chat").await.unwrap();

        let taken = sessions.rewind("chat", To::LastUser).await.unwrap();
        assert_eq!(taken.iter().map(|m| m.text()).collect::<Vec<_>>(), all[5..]);
        assert_eq!(both(&sessions, fresh).await, all[..5]);
        let now = sessions.snapshot("chat").await.unwrap();
        assert_eq!(now.revision, mark.revision.next());

        sessions.add_messages("chat", messages(5..6)).await.unwrap();
        assert_eq!(both(&sessions, fresh).await, all);
        assert_eq!(sessions.session_stats("chat").await.unwrap(), before);

        sessions.rewind("chat", To::BeforeLastUser).await.unwrap();
        assert_eq!(both(&sessions, fresh).await, all[..4]);
        let stale = sessions.apply_summarization("chat", "Old.", mark, 2).await;
        assert!(matches!(stale, Report::Stale), "{stale}");
        assert!(sessions.rewind("unknown", To::LastUser).await.unwrap().is_empty());
    });
}

#[test]
fn ids_are_free_again_and_positions_are_not() {
    each(async |sessions, fresh| {
        let asked = |text: &str| Message::user(text).with_id("update-1");
        sessions.add_messages("chat", messages(0..2)).await.unwrap();
        sessions.add_message("chat", asked("wrong")).await.unwrap();
        sessions.add_message("chat", Message::assistant("what?")).await.unwrap();
        assert!(sessions.add_message("chat", asked("right")).await.unwrap_err().is_duplicate_id());
        sessions.rewind("chat", To::Before("update-1".into())).await.unwrap();

        // Also where the index of ids is built anew.
        let added = fresh().add_message("chat", asked("right")).await.unwrap();
        assert_eq!((added.position, added.duplicate), (4, false));
        let again = fresh().add_message("chat", asked("right")).await.unwrap();
        assert_eq!((again.position, again.duplicate), (4, true));
        assert!(fresh().add_message("chat", asked("wrong")).await.unwrap_err().is_duplicate_id());
        if let Ok(transcript) = sessions.transcript("chat", 0..9).await {
            let transcript: Vec<_> = transcript.iter().map(|kept| kept.message.text()).collect();
            assert_eq!(transcript[2..], ["wrong", "what?", "right"]);
        }
        let unknown = sessions.rewind("chat", To::Before("nobody".into())).await.unwrap_err();
        assert!(unknown.is_rewind(), "{unknown}");
    });
}

#[test]
fn what_was_taken_back_is_in_no_summary_and_never_comes_back() {
    each(async |sessions, fresh| {
        sessions.add_messages("chat", messages(0..30)).await.unwrap();
        sessions.rewind("chat", To::BeforeLastUser).await.unwrap();
        sessions.add_messages("chat", messages(30..40)).await.unwrap();
        let report = sessions.compact("chat", Compact::now()).await;
        assert_eq!(report.applied().unwrap().messages_removed, 34);
        assert_eq!(both(&sessions, fresh).await, texts_of(&messages(36..40)));
        // What is dropped after a rewind is owed without what was taken back.
        sessions.rewind("chat", To::LastUser).await.unwrap();
        sessions.add_messages("chat", messages(40..50)).await.unwrap();
        let kept = sessions.history("chat").await.unwrap().len() as u64;
        let _ = sessions.force_compression("chat").await.unwrap();
        let report = sessions.compact("chat", Compact::now()).await;
        let done = report.applied().unwrap();
        let dropped = sessions.history("chat").await.unwrap().dropped();
        let archived = sessions.transcript("chat", 0..1).await.is_ok();
        assert_eq!(dropped == 0, archived);
        assert!(done.messages_removed < kept);
    });
}

#[test]
fn what_a_summary_stands_for_is_taken_back_where_there_is_a_transcript() {
    each(async |sessions, fresh| {
        sessions.add_messages("chat", messages(0..2)).await.unwrap();
        let old = Message::user("old question").with_id("old");
        sessions.add_message("chat", old).await.unwrap();
        sessions.add_messages("chat", messages(3..30)).await.unwrap();
        let _ = sessions.compact("chat", Compact::now()).await;
        let compacted = both(&sessions, fresh).await;
        let archived = sessions.transcript("chat", 0..1).await.is_ok();
        let taken = sessions.rewind("chat", To::Before("old".into())).await;
        if archived {
            assert_eq!(taken.unwrap().len(), 28);
            assert_eq!(both(&sessions, fresh).await, texts_of(&messages(0..2)));
            assert_eq!(sessions.summary("chat").await.unwrap(), None);
        } else {
            assert!(taken.unwrap_err().is_rewind());
            assert_eq!(both(&sessions, fresh).await, compacted);
        }
    });
}

#[test]
fn a_rollback_leaves_history_and_totals_as_before() {
    each(async |sessions, fresh| {
        sessions.add_messages("chat", messages(0..6)).await.unwrap();
        let before = (both(&sessions, fresh).await, sessions.session_stats("chat").await.unwrap());
        let mut turn = sessions.turn("chat", Message::user("Is the disk full?")).await.unwrap();
        let context = turn.context(&Request::new()).await.unwrap();
        let call = Message::assistant("").with_tool_call("c1", "df", "{}");
        assert_eq!(turn.reply(&context, call).await.unwrap().len(), 1);
        // Another one speaks meanwhile.
        sessions.add_message("chat", Message::user("By the way.")).await.unwrap();
        turn.results([Message::tool_result("c1", "42%")]).await.unwrap();
        turn.rollback().await.unwrap();
        let mut with_other = before.0.clone();
        with_other.push("By the way.".into());
        assert_eq!(both(&sessions, fresh).await, with_other);
        sessions.rewind("chat", To::BeforeLastUser).await.unwrap();
        let after = (both(&sessions, fresh).await, sessions.session_stats("chat").await.unwrap());
        assert_eq!(after, before);
    });
}

#[test]
fn a_rollback_restores_what_was_before_a_compaction_of_the_turn() {
    each(async |sessions, fresh| {
        sessions.add_messages("chat", messages(0..10)).await.unwrap();
        let before = both(&sessions, fresh).await;
        let mut turn = sessions.turn("chat", Message::user("A long task.")).await.unwrap();
        for n in 0..12 {
            let call = Message::assistant("").with_tool_call(format!("c{n}"), "df", "{}");
            let result = Message::tool_result(format!("c{n}"), "word ".repeat(100));
            turn.results([call, result]).await.unwrap();
        }
        let report = sessions.compact("chat", Compact::now()).await;
        assert!(report.applied().is_some(), "{report}");
        let compacted = both(&sessions, fresh).await;
        let archived = sessions.transcript("chat", 0..1).await.is_ok();
        let rolled_back = turn.rollback().await;
        assert_eq!(rolled_back.is_ok(), archived);
        if let Err(error) = rolled_back {
            assert!(error.is_rewind(), "{error}");
            assert_eq!(both(&sessions, fresh).await, compacted);
        } else {
            assert_eq!(both(&sessions, fresh).await, before);
            assert_eq!(sessions.summary("chat").await.unwrap(), None);
        }
    });
}

#[test]
fn a_rollback_brings_nothing_back_that_the_host_has_cleared() {
    each(async |sessions, fresh| {
        sessions.add_messages("chat", messages(0..4)).await.unwrap();
        let turn = sessions.turn("chat", Message::user("Forget it.")).await.unwrap();
        sessions.clear("chat").await.unwrap();
        sessions.add_messages("chat", messages(4..6)).await.unwrap();
        turn.rollback().await.unwrap();
        assert_eq!(both(&sessions, fresh).await, texts_of(&messages(4..6)));
    });
}
