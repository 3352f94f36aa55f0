//! Every way in which a server may fail, as a session meets it: nothing is
//! changed, it ends by the deadline, and the report says what to do and shows
//! no secret.
#![cfg(feature = "providers")]
#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, UNIX_EPOCH},
};

use common::{
    faults::{
        Api, Comes, Fault, GRACE, KEY, SECRET_TEXT, fault, faults, http, says_what_to_do, shown,
    },
    logs::capture,
    model::whole,
    secrets::{assert_clean, leak},
    stub::{manager_with, message, messages},
    tcp::{Server, Step},
};
use session_compaction::{
    Compact, LlmProvider, LlmSummarizer, Message, Outcome, ProviderError, ProviderErrorKind,
    Report, Retrying, SessionManager, SummarizationConfig, SummarizeError,
};

/// One retry fits into it, and no second one.
const DEADLINE: Duration = Duration::from_secs(2);
const OLD: &str = "ALPHA: the user prefers metric units.";
const BOTH: [Api; 2] = [Api::Anthropic, Api::OpenAi];

fn summarizer(api: Api, url: &str) -> LlmSummarizer<Retrying<Arc<dyn LlmProvider>>> {
    let model = Retrying::new(api.at(url)).with_deadline(Duration::from_millis(1_500));
    LlmSummarizer::new(model, "a-model").with_window(128_000).with_facts(false)
}

/// A session that holds secrets.
async fn session(api: Api, url: &str) -> SessionManager {
    let sessions = manager_with(summarizer(api, url), whole().with_timeout(DEADLINE));
    sessions.set_summary("chat", OLD).await.unwrap();
    let secrets = [Message::user(SECRET_TEXT), Message::assistant(leak())];
    sessions.add_messages("chat", secrets).await.unwrap();
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    sessions
}

/// Each message as it is stored.
async fn bytes(sessions: &SessionManager) -> Vec<String> {
    let history = sessions.history("chat").await.unwrap();
    history.iter().map(|message| serde_json::to_string(message).unwrap()).collect()
}

/// Compacts a session by a server that fails so, and returns why there was no
/// summary; `None` where what came was one after all.
async fn meet(api: Api, fault: &Fault, url: &str) -> Option<SummarizeError> {
    let name = format!("{api:?}: {}", fault.name);
    let (lines, _guard) = capture();
    let sessions = session(api, url).await;
    let before = bytes(&sessions).await;
    let start = Instant::now();
    let report = sessions.compact("chat", Compact::if_due()).await;
    let took = start.elapsed();
    assert!(took <= DEADLINE + GRACE, "{name}: took {took:?}");
    let said = format!("{report} {report:?} {report:#?} {sessions:?} {}", lines.text());
    assert!(!said.contains(KEY) && !said.contains(SECRET_TEXT), "{name}: {said}");
    assert_clean(&said);

    let (after, summary) = (bytes(&sessions).await, sessions.summary("chat").await.unwrap());
    let error = match report {
        Report::Failed(error) | Report::Rejected { why: error } => error,
        Report::Applied(done) => {
            // A good answer in an odd wrapping: what is kept is kept to the byte.
            assert!(matches!(fault.comes, Comes::Answer(_)), "{name}");
            assert_eq!(Some(&*after), before.get(before.len() - after.len()..), "{name}");
            assert_eq!(done.usage, None, "{name}: no count can be believed");
            return None;
        }
        report => panic!("{name}: {report}"),
    };
    assert_eq!(before, after, "{name}");
    assert_eq!(summary.as_deref(), Some(OLD), "{name}");
    assert!(says_what_to_do(&error), "{name}: {error}");
    let shown = shown(&error);
    assert!(!shown.contains(KEY) && !shown.contains(SECRET_TEXT), "{name}: {shown}");
    if let Comes::Error(kind, status) = &fault.comes {
        let cause = cause(&error);
        assert_eq!((cause.kind(), cause.status()), (*kind, *status), "{name}: {error:?}");
    }
    Some(error)
}

fn cause(error: &SummarizeError) -> &ProviderError {
    std::error::Error::source(error).unwrap().downcast_ref().unwrap()
}

/// Meets every fault of a provider; those that are none in the end are counted.
async fn meet_all(api: Api) {
    let (faults, mut applied) = (faults(api), 0);
    assert!(faults.len() >= 25);
    for fault in &faults {
        let server = Server::start(fault.steps.clone()).await;
        let error = meet(api, fault, &server.url()).await;
        applied += usize::from(error.is_none());
        // A corrective retry, or those of the provider; halves where it is too long.
        let halved = matches!(fault.comes, Comes::Error(ProviderErrorKind::TooLong, _));
        let (requests, most) = (server.requests(), if halved { 20 } else { 3 });
        assert!((1..=most).contains(&requests), "{api:?}: {}: {requests}", fault.name);
    }
    assert_eq!(applied, 5, "{api:?}: four odd counts and a charset");
    let refused = fault("refused", vec![], Comes::Error(ProviderErrorKind::Unreachable, None));
    assert!(meet(api, &refused, &Server::nobody().await).await.unwrap().is_transient());
}

/// Meets one fault by name, by both providers.
async fn meet_one(name: &str) -> Vec<(SummarizeError, usize)> {
    let mut met = Vec::new();
    for api in BOTH {
        let fault = faults(api).into_iter().find(|fault| fault.name == name).unwrap();
        let server = Server::start(fault.steps.clone()).await;
        let error = meet(api, &fault, &server.url()).await;
        met.push((error.unwrap(), server.requests()));
    }
    met
}

// One thread each: the log lines are this thread's.
#[tokio::test]
async fn openai_compatible_changes_no_session_by_a_fault() {
    meet_all(Api::OpenAi).await;
}

#[tokio::test]
async fn anthropic_changes_no_session_by_a_fault() {
    meet_all(Api::Anthropic).await;
}

#[tokio::test]
async fn an_error_in_a_200_changes_nothing() {
    for (error, _) in meet_one("an error in a 200").await {
        assert!(error.is_transient(), "{error:?}");
    }
}

#[tokio::test]
async fn a_timeout_changes_nothing() {
    for name in ["stalled before the answer", "stalled in the body", "one byte a second"] {
        for (error, requests) in meet_one(name).await {
            assert!(error.is_timeout(), "{error:?}");
            assert_eq!(requests, 1, "what took too long once is not waited for again");
        }
    }
}

#[tokio::test]
async fn a_5xx_is_tried_again_and_changes_nothing() {
    for (error, requests) in meet_one("500").await {
        assert!(error.is_transient());
        assert!(requests >= 2, "{requests}");
    }
}

#[tokio::test]
async fn a_reset_is_tried_again_and_changes_nothing() {
    for name in ["reset before the answer", "reset in the body"] {
        for (error, requests) in meet_one(name).await {
            assert!(error.is_transient());
            assert!(requests >= 2, "{requests}");
        }
    }
}

#[tokio::test]
async fn a_4xx_is_not_tried_again_and_changes_nothing() {
    for name in ["400", "401", "403", "404"] {
        for (error, requests) in meet_one(name).await {
            assert!(!error.is_transient(), "{error:?}");
            assert_eq!(requests, 1, "{name}");
        }
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_changes_nothing() {
    for (error, requests) in meet_one("redirect").await {
        assert_eq!(cause(&error).kind(), ProviderErrorKind::Config);
        assert_eq!(requests, 1, "it leads back to the same server");
    }
}

#[tokio::test]
async fn a_huge_body_is_not_read_and_changes_nothing() {
    for name in ["100 MB announced", "100 MB in chunks", "a gzip bomb"] {
        for (error, _) in meet_one(name).await {
            assert_eq!(cause(&error).kind(), ProviderErrorKind::Malformed);
        }
    }
}

/// 100 turns, with a message and a look each, and so many seconds between them.
async fn hundred_turns(api: Api, status: &str, seconds_a_turn: u64) -> usize {
    let busy = http(status, "Retry-After: 7\r\n", "{}");
    let server = Server::start(vec![busy]).await;
    let now = Arc::new(AtomicU64::new(1_000));
    let told = Arc::clone(&now);
    let sessions = SessionManager::builder()
        .summarizer(summarizer(api, &server.url()))
        .config(SummarizationConfig { context_window: 128_000, ..Default::default() })
        .clock(move || UNIX_EPOCH + Duration::from_secs(told.load(Ordering::SeqCst)))
        .build()
        .unwrap();
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    let mut paused = 0;
    for n in 24..124 {
        sessions.add_message("chat", message(n)).await.unwrap();
        match sessions.maybe_summarize("chat").await {
            Outcome::Started(handle) => assert!(handle.await.applied().is_none()),
            Outcome::Paused { .. } => paused += 1,
            outcome => panic!("{outcome}"),
        }
        now.fetch_add(seconds_a_turn, Ordering::SeqCst);
    }
    assert!(paused >= 90, "{paused}");
    assert_eq!(sessions.history("chat").await.unwrap().len(), 124);
    server.requests()
}

#[tokio::test]
async fn a_hundred_turns_against_a_429_are_at_most_six_requests() {
    for api in BOTH {
        for status in ["429 Too Many Requests", "529 Overloaded"] {
            for seconds_a_turn in [0, 1] {
                let requests = hundred_turns(api, status, seconds_a_turn).await;
                assert!((1..=6).contains(&requests), "{api:?}, {status}: {requests} requests");
            }
        }
    }
}

#[tokio::test]
async fn a_refused_address_is_not_asked_and_changes_nothing() {
    use session_compaction::OpenAiCompatible;
    for address in ["http://169.254.169.254/v1", "http://[::ffff:169.254.169.254]/v1"] {
        let error = OpenAiCompatible::new(address).unwrap_err();
        assert!(says_what_to_do(&error), "{error}");
    }
    // A name is only known to lead there once it was looked up.
    let server = Server::start(vec![Step::Stall]).await;
    let url = server.url().replace("127.0.0.1", "localhost");
    let model = OpenAiCompatible::new(&url).unwrap().public_only().unwrap();
    let sessions = manager_with(LlmSummarizer::new(model, "a-model"), whole());
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    let before = bytes(&sessions).await;
    let report = sessions.compact("chat", Compact::if_due()).await;
    let Report::Failed(error) = report else { panic!("{report}") };
    assert_eq!(cause(&error).kind(), ProviderErrorKind::Config);
    assert!(says_what_to_do(&error), "{error}");
    assert_eq!(bytes(&sessions).await, before);
    assert_eq!(server.requests(), 0);
}
