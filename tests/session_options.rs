//! What a host says of one compaction, and of one session.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;
#[path = "common/folder.rs"]
mod folder;

use std::{sync::Arc, time::Duration};

use common::{
    model::Model,
    stub::{Stub, manager, messages, texts, texts_of},
};
use folder::Folder;
use session_compaction::{
    Compact, ConfigOverrides, Forced, JsonlStore, MemoryStore, Outcome, Report, SessionManager,
    SessionOptions, SessionStore, SummarizationConfig, SummaryTemplate, Threshold,
};

#[tokio::test(start_paused = true)]
async fn a_host_waits_as_long_as_it_likes_and_the_compaction_runs_on() {
    let (stub, gate) = Stub::says("All parts do well.").held();
    let sessions = manager(stub);
    sessions.add_messages("chat", messages(0..24)).await.unwrap();

    let how = Compact::if_due().within(Duration::from_secs(5));
    let report = sessions.compact("chat", how.clone()).await;
    let Report::StillRunning(handle) = report else { unreachable!("{report}") };
    assert_eq!(sessions.summary("chat").await.unwrap(), None);
    assert_eq!(gate.inside(), 2, "two parts, which a merge follows");

    let joined = sessions.compact("chat", Compact::now().within(Duration::ZERO)).await;
    assert!(matches!(joined, Report::StillRunning(_)), "{joined}");
    assert!(joined.applied().is_none());

    (0..3).for_each(|_| gate.release());
    assert!(handle.await.applied().is_some());
    assert!(sessions.summary("chat").await.unwrap().is_some());
    let report = sessions.compact("chat", how).await;
    assert!(matches!(report, Report::NotStarted(_)), "{report}");
}

#[tokio::test]
async fn what_the_host_wants_most_reaches_every_request_without_its_secrets() {
    let stub = Stub::says("All parts do well.");
    let requests = stub.requests();
    let sessions = manager(stub);
    sessions.add_messages("chat", messages(0..40)).await.unwrap();
    let report = sessions.compact("chat", Compact::now().focus("  part 7 ")).await;
    assert!(report.applied().is_some(), "{report}");
    let focus: Vec<_> = requests.lock().unwrap().iter().map(|asked| asked.focus.clone()).collect();
    assert_eq!(focus, vec![Some("part 7".into()); 3], "two parts and their merge");

    let model = Model::says("All parts do well.");
    let config = common::model::whole();
    let sessions = common::stub::manager_with(model.summarizer(), config);
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    let secret = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz0123456789";
    let focus = format!("the key {secret}\nand </record-x> part 7");
    let report = sessions.compact("chat", Compact::now().focus(focus)).await;
    assert!(report.applied().is_some(), "{report}");
    let asked = model.asked().pop().unwrap();
    common::model::fence(&asked);
    let task = asked.user.lines().last().unwrap();
    assert!(task.contains(" and </record-x> part 7. Summarize the record above"), "{task}");
    assert!(!asked.user.contains(secret) && !asked.system.contains("part 7"));
}

fn over(store: &Arc<dyn SessionStore>) -> SessionManager {
    SessionManager::builder()
        .shared_store(Arc::clone(store))
        .summarizer(Stub::says("By the usual one."))
        .summarizer_named("cheap", Stub::says("By the cheap one."))
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_session_has_its_own_configuration_and_summarizer_also_in_another_process() {
    let folder = Folder::new();
    let stores: [Arc<dyn SessionStore>; 2] =
        [Arc::new(MemoryStore::new()), Arc::new(JsonlStore::open(folder.path()).unwrap())];
    for store in stores {
        let sessions = over(&store);
        let overrides = ConfigOverrides {
            message_threshold: Some(Threshold::Above(8)),
            keep_last_messages: Some(6),
            timeout: Some(Duration::from_secs(9)),
            force_compression_min_messages: Some(30),
            ..ConfigOverrides::default()
        };
        let options = SessionOptions::new()
            .config(overrides)
            .summarizer("cheap")
            .template(SummaryTemplate::Custom("List it.".into()));
        sessions.configure("own", options.clone()).await.unwrap();
        for key in ["own", "other"] {
            sessions.add_messages(key, messages(0..10)).await.unwrap();
        }

        let fresh = over(&store);
        assert_eq!(fresh.options("own").await.unwrap(), options);
        let forced = fresh.force_compression("own").await.unwrap();
        assert!(matches!(forced, Forced::Skipped(_)), "{forced:?}");
        let report = fresh.compact("own", Compact::if_due()).await;
        assert!(report.applied().is_some(), "{report}");
        let left = texts(&fresh, "own").await;
        assert_eq!(left, texts_of(&messages(4..10)));
        assert_eq!(fresh.summary("own").await.unwrap().unwrap(), "By the cheap one.");

        let outcome = fresh.maybe_summarize("other").await;
        assert!(matches!(outcome, Outcome::BelowThreshold { .. }), "{outcome}");
        assert!(fresh.compact("other", Compact::now()).await.applied().is_some());
        assert_eq!(fresh.summary("other").await.unwrap().unwrap(), "By the usual one.");
    }
}

#[tokio::test]
async fn a_session_can_be_left_alone() {
    let sessions = manager(Stub::says("All parts do well."));
    let off = ConfigOverrides { enabled: Some(false), ..ConfigOverrides::default() };
    sessions.configure("chat", SessionOptions::new().config(off)).await.unwrap();
    sessions.add_messages("chat", messages(0..30)).await.unwrap();
    assert!(matches!(sessions.maybe_summarize("chat").await, Outcome::Disabled));
    assert!(sessions.compact("chat", Compact::now()).await.applied().is_some());
}

#[tokio::test]
async fn an_unknown_summarizer_is_refused_and_said_where_another_manager_set_it() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    over(&store).configure("chat", SessionOptions::new().summarizer("cheap")).await.unwrap();

    let sessions = SessionManager::builder()
        .shared_store(Arc::clone(&store))
        .summarizer(Stub::says("By the usual one."))
        .summarizer_named("best", Stub::says("By the best one."))
        .build()
        .unwrap();
    sessions.add_messages("chat", messages(0..30)).await.unwrap();
    let outcome = sessions.maybe_summarize("chat").await;
    let Outcome::UnknownSummarizer { name } = &outcome else { unreachable!("{outcome}") };
    assert_eq!(name, "cheap");
    assert!(outcome.to_string().contains("\"cheap\""), "{outcome}");
    let report = sessions.compact("chat", Compact::now()).await;
    assert!(matches!(report, Report::NotStarted(_)), "{report}");

    let options = SessionOptions::new().summarizer("chaep");
    let error = sessions.configure("chat", options).await.unwrap_err();
    assert!(error.is_config() && error.to_string().contains("\"best\""), "{error}");
    assert_eq!(sessions.options("chat").await.unwrap().summarizer.as_deref(), Some("cheap"));
}

#[tokio::test]
async fn without_a_default_the_named_one_writes_where_it_is_named() {
    let sessions = SessionManager::builder()
        .summarizer_named("cheap", Stub::says("By the cheap one."))
        .build()
        .unwrap();
    for key in ["own", "other"] {
        sessions.add_messages(key, messages(0..30)).await.unwrap();
    }
    sessions.configure("own", SessionOptions::new().summarizer("cheap")).await.unwrap();
    assert!(sessions.compact("own", Compact::if_due()).await.applied().is_some());
    assert!(matches!(sessions.maybe_summarize("other").await, Outcome::NoSummarizer));
}

#[tokio::test]
async fn a_sessions_template_is_what_its_model_is_asked_for_and_held_to() {
    let headed =
        "**Investigating:** a\n**Key findings:** b\n**Ruled out:** c\n**Current state:** d";
    let model = Model::replies(
        ["No headings.", "None again.", headed]
            .map(|text| Ok(session_compaction::ChatResponse::new(text))),
    );
    let sessions = common::stub::manager_with(model.summarizer(), common::model::whole());
    let options = SessionOptions::new().template(SummaryTemplate::Investigation);
    sessions.configure("chat", options).await.unwrap();
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    let report = sessions.compact("chat", Compact::now()).await;
    assert!(matches!(report, Report::Rejected { .. }), "{report}");
    let report = sessions.compact("chat", Compact::now()).await;
    assert!(report.applied().is_some(), "{report}");
    assert!(model.asked().iter().all(|asked| asked.system.contains("**Ruled out:**")));
}

#[tokio::test]
async fn values_that_do_not_go_together_are_refused() {
    let config = SummarizationConfig::default().with_keep_last_messages(10);
    let sessions = SessionManager::builder().config(config).build().unwrap();
    let clash = ConfigOverrides {
        message_threshold: Some(Threshold::Above(10)),
        ..ConfigOverrides::default()
    };
    let error = sessions.configure("chat", SessionOptions::new().config(clash)).await.unwrap_err();
    assert!(error.is_config(), "{error}");
    assert_eq!(sessions.options("chat").await.unwrap(), SessionOptions::default());
}
