//! Every way in which a server may fail, for each provider: it ends by the
//! deadline, with a typed error that says what to do and shows no secret.
#![cfg(feature = "providers")]
#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::{
    faults::{
        Api, Comes, Fault, GRACE, KEY, SECRET_TEXT, TOTAL, fault, faults, head, json_200,
        says_what_to_do, shown,
    },
    tcp::{Server, Step},
};
use session_compaction::{
    Anthropic, ChatRequest, LlmProvider, OpenAiCompatible, ProviderErrorKind as Kind,
};

fn request() -> ChatRequest {
    ChatRequest::new("a-model", "You summarize.", SECRET_TEXT, 100)
}

async fn face(api: Api, fault: &Fault, url: &str) {
    let name = format!("{api:?}: {}", fault.name);
    let model = api.at(url);
    let start = Instant::now();
    let result = model.chat(request()).await;
    let took = start.elapsed();
    assert!(took <= TOTAL + GRACE, "{name}: took {took:?}");
    let (kind, status, says) = match (&fault.comes, &result) {
        (Comes::Answer(is_right), Ok(answer)) => {
            assert!(is_right(answer), "{name}: {answer:?}");
            return;
        }
        (Comes::Error(kind, status), Err(_)) => (*kind, *status, ""),
        (Comes::Malformed(says), Err(_)) => (Kind::Malformed, None, *says),
        _ => panic!("{name}: {result:?}"),
    };
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.status()), (kind, status), "{name}: {error:?}");
    assert!(error.to_string().contains(says) && says_what_to_do(&error), "{name}: {error}");
    assert_eq!(error.retry_after().is_some(), status == Some(429), "{name}: {error:?}");
    let shown = format!("{} {model:?}", shown(&error));
    assert!(!shown.contains(KEY) && !shown.contains(SECRET_TEXT), "{name}: {shown}");
}

async fn face_all(api: Api) {
    let faults = faults(api);
    assert!(faults.len() >= 25);
    for fault in &faults {
        let server = Server::start(fault.steps.clone()).await;
        face(api, fault, &server.url()).await;
        assert_eq!(server.requests(), 1, "{api:?}: {}", fault.name);
    }
    let refused = fault("refused", vec![], Comes::Error(Kind::Unreachable, None));
    face(api, &refused, &Server::nobody().await).await;
}

#[tokio::test]
async fn openai_compatible_ends_every_fault() {
    face_all(Api::OpenAi).await;
}

#[tokio::test]
async fn anthropic_ends_every_fault() {
    face_all(Api::Anthropic).await;
}

#[tokio::test]
async fn a_pause_within_an_answer_ends_before_the_whole_deadline() {
    let server = Server::start(vec![head(100), Step::Stall]).await;
    let model = OpenAiCompatible::new(&server.url()).unwrap();
    let model = model.with_timeouts(Duration::from_mins(1), Duration::from_millis(50));
    let start = Instant::now();
    let error = model.chat(request()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::TimedOut);
    assert!(error.to_string().contains("paused"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_refusal_whose_body_stalls_keeps_its_status() {
    let head = "HTTP/1.1 429 Slow\r\nretry-after: 7\r\ncontent-length: 99\r\n\r\n";
    let server = Server::start(vec![Step::Send(head.into()), Step::Stall]).await;
    let model = Anthropic::new(&server.url()).unwrap();
    let model = model.with_timeouts(Duration::from_mins(1), Duration::from_millis(50));
    let error = model.chat(request()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::RateLimited);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn a_name_that_leads_to_a_refused_address_is_not_asked() {
    let server = Server::start(json_200(&Api::OpenAi.fine())).await;
    let url = server.url().replace("127.0.0.1", "localhost");
    let public = OpenAiCompatible::new(&url).unwrap().public_only().unwrap();
    let error = public.chat(request()).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Config, "{error:?}");
    assert!(error.to_string().contains("only public addresses"), "{error}");
    assert_eq!(server.requests(), 0);
    assert!(OpenAiCompatible::new(&server.url()).unwrap().public_only().is_err());
}
