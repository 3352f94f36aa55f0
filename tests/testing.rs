//! What hosts test with does what it says.

#![cfg(feature = "testing")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use common::stub::messages;
use session_compaction::{
    Archive, Compact, LlmProvider, MemoryStore, Outcome, ProviderError, ProviderErrorKind, Report,
    SessionKey, SessionManager, SessionStore, To,
    testing::{Call, Fault, FaultyStore, ManualClock, Stub, StubModel},
};

fn over(store: &FaultyStore, stub: &Stub) -> SessionManager {
    SessionManager::builder().store(store.clone()).summarizer(stub.clone()).build().unwrap()
}

#[tokio::test]
async fn a_fault_hits_the_nth_call_once_or_for_ever() {
    let store = FaultyStore::around(MemoryStore::new());
    let key = SessionKey::new("chat").unwrap();
    let loads = async || {
        let mut failed = Vec::new();
        for _ in 0..4 {
            failed.push(store.load(&key).await.is_err());
        }
        failed
    };
    store.plan(Fault::on(Call::Load).nth(2));
    store.plan(Fault::on(Call::Append));
    assert_eq!(loads().await, [false, true, false, false]);
    store.plan(Fault::on(Call::Load).nth(3).for_ever());
    assert_eq!(loads().await, [false, false, true, true]);
    assert_eq!(loads().await, [true; 4]);
    store.heal();
    assert_eq!(loads().await, [false; 4]);
    assert_eq!((store.calls(Call::Load), store.calls(Call::Append)), (16, 0));
    assert!(store.archive().is_none());
}

#[tokio::test]
async fn a_lost_answer_to_a_commit_is_found_to_have_been_one() {
    let store = FaultyStore::around(MemoryStore::keep_transcripts());
    let sessions = over(&store, &Stub::says("All parts do well."));
    sessions.add_messages("chat", messages(0..30)).await.unwrap();
    store.plan(Fault::on(Call::Commit).after_the_work());
    let report = sessions.compact("chat", Compact::now()).await;
    assert!(matches!(report, Report::Unavailable(_)), "{report}");
    assert_eq!(sessions.history("chat").await.unwrap().len(), 4);

    store.plan(Fault::on(Call::Commit));
    assert!(sessions.rewind("chat", To::LastUser).await.unwrap_err().is_store());
    assert_eq!(sessions.history("chat").await.unwrap().len(), 4);
    store.plan(Fault::on(Call::Transcript));
    assert!(sessions.transcript("chat", 0..9).await.unwrap_err().is_store());
    assert_eq!(sessions.transcript("chat", 0..9).await.unwrap().len(), 9);
    let archive: &dyn Archive = store.archive().unwrap();
    let key = SessionKey::new("chat").unwrap();
    assert_eq!(archive.transcript(&key, 0..2).await.unwrap().len(), 2);
}

#[tokio::test]
async fn nothing_is_lost_whichever_call_fails() {
    for call in [Call::Append, Call::Commit, Call::Load, Call::Rewrite] {
        for lost in [false, true] {
            let store = FaultyStore::around(MemoryStore::keep_transcripts());
            let sessions = over(&store, &Stub::says("All parts do well."));
            let fault = Fault::on(call).nth(2);
            store.plan(if lost { fault.after_the_work() } else { fault });
            for message in
                messages(0..60).into_iter().enumerate().map(|(n, m)| m.with_id(format!("m{n}")))
            {
                if sessions.add_message("chat", message.clone()).await.is_err() {
                    sessions.add_message("chat", message).await.unwrap();
                }
                drop(sessions.maybe_summarize("chat").await);
                sessions.wait_idle("chat").await;
            }
            // What was planned may not have come up.
            store.heal();
            let history = over(&store, &Stub::says("")).history("chat").await.unwrap();
            assert_eq!(history.cut() + (history.len() - history.carried()) as u64, 60);
            assert_eq!(history.dropped(), 0);
            assert!(history.summary().is_some());
        }
    }
}

#[tokio::test]
async fn replies_come_in_turn_and_the_gate_holds_and_opens() {
    let stub = Stub::replies(["One.", "Two."]);
    let sessions = over(&FaultyStore::around(MemoryStore::new()), &stub);
    for (n, expected) in [Some("One."), Some("Two."), None].into_iter().enumerate() {
        sessions.add_messages("chat", messages(n * 10..n * 10 + 10)).await.unwrap();
        let report = sessions.compact("chat", Compact::now()).await;
        assert_eq!(report.applied().is_some(), expected.is_some(), "{report}");
        if let Some(expected) = expected {
            assert_eq!(sessions.summary("chat").await.unwrap().as_deref(), Some(expected));
        }
    }
    assert_eq!(stub.requests().len(), 3);

    let (stub, gate) = Stub::held();
    let sessions = over(&FaultyStore::around(MemoryStore::new()), &stub);
    sessions.wait_idle("chat").await;
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    let Outcome::Started(handle) = sessions.maybe_summarize("chat").await else { unreachable!() };
    gate.entered().await;
    gate.entered().await;
    assert_eq!(gate.inside(), 2);
    handle.cancel();
    sessions.wait_idle("chat").await;
    assert!(matches!(handle.await, Report::Failed(_)));
    gate.open();
    assert!(sessions.compact("chat", Compact::now()).await.applied().is_some());
    assert_eq!(gate.inside(), 0);
}

#[tokio::test]
async fn a_clock_goes_as_it_is_set_and_a_model_says_what_it_is_told() {
    let clock = ManualClock::default();
    let (begun, reader) = (clock.now(), clock.reader());
    clock.advance(std::time::Duration::from_secs(90));
    assert_eq!(reader().duration_since(begun).unwrap().as_secs(), 90);
    clock.set(begun);
    assert_eq!(reader(), begun);

    let request = || session_compaction::ChatRequest::new("m", "s", "u", 9);
    let model = StubModel::replies(["a"]);
    assert_eq!(model.chat(request()).await.unwrap().text, "a");
    assert_eq!(model.chat(request()).await.unwrap_err().kind(), ProviderErrorKind::Rejected);
    let failing = StubModel::failing(ProviderError::new(ProviderErrorKind::Auth, "no key"));
    for _ in 0..2 {
        assert_eq!(failing.chat(request()).await.unwrap_err().kind(), ProviderErrorKind::Auth);
    }
    assert_eq!((model.requests().len(), failing.requests().len()), (2, 2));
}
