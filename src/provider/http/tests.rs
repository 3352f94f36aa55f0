use std::time::Duration;

use jiff::Timestamp;
use reqwest::{
    dns::Resolve,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde_json::json;

use super::{
    ApiError, Client, Names,
    address::{Reach, Refused},
    base_url::{self, Resolver},
    key::Key,
    retry_after,
};
use crate::provider::{Anthropic, OpenAiCompatible, ProviderError, ProviderErrorKind as Kind};

const NAMES: Names =
    Names { key: "THE_KEY", url: "THE_URL", header: "authorization", prefix: "Bearer " };

#[test]
fn metadata_addresses_are_refused_in_every_notation() {
    for host in [
        "169.254.169.254",
        "169.254.169.254.",
        "2852039166",
        "0xA9FEA9FE",
        "0xa9.0xfe.0xa9.0xfe",
        "0251.0376.0251.0376",
        "0251.254.43518",
        "169.16689662",
        "%31%36%39.254.169.254",
        "１６９.254.169.254",
        "169.254.170.2",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "[::ffff:169.254.169.254]",
        "[::ffff:a9fe:a9fe]",
        "[::169.254.169.254]",
        "[::ffff:0:a9fe:a9fe]",
        "[64:ff9b::169.254.169.254]",
        "[2002:a9fe:a9fe::1]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[fd20:ce::254]",
    ] {
        let error = base_url::parse(&format!("http://{host}/v1"), Reach::Any).unwrap_err();
        assert_eq!(error.kind(), Kind::Config, "{host}");
        assert!(error.to_string().contains("metadata"), "{host}: {error}");
    }
}

#[test]
fn private_addresses_are_allowed_unless_public_ones_are_asked_for() {
    for host in [
        "127.0.0.1",
        "0x7f.1",
        "0",
        "10.0.0.8",
        "172.16.0.1",
        "192.168.1.20",
        "100.64.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "[::1]",
        "[::]",
        "[::ffff:10.0.0.8]",
        "[64:ff9b::10.0.0.8]",
        "[fd12::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[2001:db8::1]",
    ] {
        let url = format!("http://{host}:8080/v1");
        assert!(base_url::parse(&url, Reach::Any).is_ok(), "{host}");
        assert!(base_url::parse(&url, Reach::Public).is_err(), "{host}");
    }
    for host in ["1.1.1.1", "[2606:4700::1111]", "api.example.com", "100.128.0.1", "172.32.0.1"] {
        assert!(base_url::parse(&format!("https://{host}"), Reach::Public).is_ok(), "{host}");
    }
}

#[test]
fn a_base_url_is_http_and_holds_no_secret() {
    for url in ["", "api.example.com", "ftp://a.example", "file:///etc/passwd", "data:text/plain,x"]
    {
        assert_eq!(base_url::parse(url, Reach::Any).unwrap_err().kind(), Kind::Config, "{url}");
    }
    let error = base_url::parse("https://me:hunter2@a.example/v1", Reach::Any).unwrap_err();
    assert!(error.to_string().contains("give the key apart"), "{error}");
    assert!(!format!("{error:?}").contains("hunter2"));
    let base = base_url::parse(" https://a.example/v1/?api-version=7#top ", Reach::Any).unwrap();
    let joined = base_url::join(&base, "chat/completions");
    assert_eq!(joined.as_str(), "https://a.example/v1/chat/completions?api-version=7");
}

#[tokio::test]
async fn names_are_filtered_after_they_were_looked_up() {
    let mut all = Resolver(Reach::Any).resolve("localhost".parse().unwrap()).await.unwrap();
    assert!(all.all(|address| address.ip().is_loopback()));
    let refused = Resolver(Reach::Public).resolve("localhost".parse().unwrap()).await;
    let refused = refused.err().expect("loopback is not public");
    assert_eq!(refused.downcast_ref::<Refused>(), Some(&Refused::NotPublic));
}

#[test]
fn a_wait_is_read_in_each_of_its_forms() {
    let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
    let read = |name: &'static str, text: &str| {
        let value = HeaderValue::from_str(text).unwrap();
        let name = HeaderName::from_static(name);
        retry_after::read(&HeaderMap::from_iter([(name, value)]), now)
    };
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(read("retry-after", "7"), seconds(7));
    assert_eq!(read("retry-after", " 1.5 "), Some(Duration::from_millis(1_500)));
    assert_eq!(read("retry-after-ms", "250"), Some(Duration::from_millis(250)));
    assert_eq!(read("retry-after", "Sun, 01 Mar 2026 12:00:07 GMT"), seconds(7));
    assert_eq!(read("retry-after", "Sun, 01 Mar 2026 11:00:00 GMT"), seconds(0));
    assert_eq!(read("retry-after", "99999999999999999999999"), seconds(86_400));
    assert_eq!(read("retry-after", "Sun, 01 Mar 2099 12:00:00 GMT"), seconds(86_400));
    for nonsense in ["", "soon", "-1", "NaN"] {
        assert_eq!(read("retry-after", nonsense), None, "{nonsense}");
    }
}

fn refused(status: u16, body: &str) -> ProviderError {
    ApiError::read(status, None, body.as_bytes()).into_error(&NAMES, &Key::new("sk-secret"))
}

#[test]
fn an_input_that_is_too_long_is_known_by_its_usual_names() {
    let openai = |code: &str| json!({ "error": { "message": "no", "code": code } }).to_string();
    let says = |message: &str| json!({ "error": { "message": message } }).to_string();
    for (status, body) in [
        (400, openai("context_length_exceeded")),
        (400, openai("string_above_max_length")),
        (400, r#"{"error":{"code":400,"type":"exceed_context_size_error","message":""}}"#.into()),
        (400, r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}"#.into()),
        (413, r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#.into()),
        (413, "<html>413 Request Entity Too Large</html>".into()),
        (400, r#"[{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"The input token count (1048999) exceeds the maximum number of tokens allowed (1048576)."}}]"#.into()),
        (400, r#"{"message":"Input is too long for requested model."}"#.into()),
        (400, says("This model's maximum context length is 4096 tokens. However, you requested 5000")),
        (400, says("input length and `max_tokens` exceed context limit: 199000 + 2000 > 200000")),
        (400, says("This model's maximum prompt length is 131072 but the request contains 537812")),
        (400, r#"{"object":"error","message":"The decoder prompt (length 9000) is longer than the maximum model length of 4096","type":"BadRequestError","code":400}"#.into()),
        (500, r#"{"error":"the input length exceeds the context length"}"#.into()),
        (422, r#"{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096","error_type":"validation"}"#.into()),
        (429, says("Request too large for gpt-4o on tokens per min (TPM): Limit 10000, Requested 15000")),
    ] {
        assert!(refused(status, &body).is_too_long(), "{status} {body}");
    }
    for (status, body) in [
        (429, says("Too many tokens, please wait before trying again")),
        (504, says("prompt is too long")),
        (401, openai("context_length_exceeded")),
        (400, says("the model does not support images")),
        (400, openai("invalid_value")),
    ] {
        assert!(!refused(status, &body).is_too_long(), "{status} {body}");
    }
}

#[test]
fn a_refusal_has_a_kind_and_says_what_to_do() {
    for (status, body, kind, says) in [
        (
            401,
            r#"{"error":{"message":"Incorrect API key: sk-secret","code":"invalid_api_key"}}"#,
            Kind::Auth,
            "invalid_api_key; check THE_KEY",
        ),
        (403, "", Kind::Auth, "check THE_KEY"),
        (302, "", Kind::Config, "set THE_URL"),
        (404, r#"{"error":{"code":"model_not_found"}}"#, Kind::Rejected, "the model's name"),
        (400, r#"{"error":{"code":"sk-secret","type":"sk-secret"}}"#, Kind::Rejected, "supports"),
        (402, "{}", Kind::Rejected, "supports"),
        (408, "", Kind::Server, "try again later"),
        (500, "<html>", Kind::Server, "try again later"),
        (503, "null", Kind::Server, "try again later"),
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
            Kind::RateLimited,
            "overloaded_error; wait",
        ),
        (429, r#"{"error":{"type":"insufficient_quota"}}"#, Kind::Rejected, "no credit"),
    ] {
        let error = refused(status, body);
        assert_eq!((error.kind(), error.status()), (kind, Some(status)), "{status} {body}");
        assert!(error.to_string().contains(says), "{error}");
        assert!(!format!("{error} {error:?}").contains("sk-secret"), "{error:?}");
    }
}

#[test]
fn an_error_inside_a_200_is_found() {
    for (body, kind, status) in [
        (json!({ "error": { "code": 429, "message": "slow" } }), Kind::RateLimited, Some(429)),
        (json!({ "error": { "code": "502" } }), Kind::Server, Some(502)),
        (json!({ "error": "model is loading" }), Kind::Server, None),
        (json!({ "error": { "type": "rate_limit_error" } }), Kind::RateLimited, None),
        (json!({ "error": { "type": "authentication_error" } }), Kind::Auth, None),
        (json!({ "error": { "type": "invalid_request_error" } }), Kind::Rejected, None),
        (json!({ "error": { "code": "context_length_exceeded" } }), Kind::TooLong, None),
        (
            json!({ "type": "error", "error": { "type": "overloaded_error" } }),
            Kind::RateLimited,
            None,
        ),
        (json!({ "object": "error", "message": "prompt is too long" }), Kind::TooLong, None),
        (json!([{ "error": { "code": 503 } }]), Kind::Server, Some(503)),
        (json!({ "choices": [{ "error": { "code": 502 } }] }), Kind::Server, Some(502)),
    ] {
        let said = ApiError::find(&body, None).unwrap_or_else(|| panic!("{body}"));
        let error = said.into_error(&NAMES, &Key::default());
        assert_eq!((error.kind(), error.status()), (kind, status), "{body}");
    }
    for body in [json!({ "error": null, "choices": [] }), json!({ "type": "message" }), json!(7)] {
        assert!(ApiError::find(&body, None).is_none(), "{body}");
    }
}

#[test]
fn the_environment_names_the_key_and_the_address() {
    let none = Client::from_env(&NAMES, "https://a.example", |_| None).unwrap_err();
    assert_eq!(none.kind(), Kind::Config);
    assert!(none.to_string().contains("set THE_KEY"), "{none}");
    let blank = Client::from_env(&NAMES, "https://a.example", |_| Some(" ".into()));
    assert!(blank.is_err());

    let key = |name: &str| (name == "OPENAI_API_KEY").then(|| "sk-secret\n".to_owned());
    let model = OpenAiCompatible::from_lookup(key).unwrap();
    assert!(format!("{model:?}").contains("api.openai.com"));
    assert!(!format!("{model:?}").contains("sk-secret"));
    let url = |name: &str| (name == "ANTHROPIC_BASE_URL").then(|| "http://10.0.0.8".to_owned());
    assert!(format!("{:?}", Anthropic::from_lookup(url).unwrap()).contains("10.0.0.8"));
    assert!(Anthropic::from_lookup(|_| Some("http://[fe80::1]".into())).is_err());
}

#[test]
fn a_key_is_trimmed_and_never_shown() {
    let key = Key::new(" sk-secret\r\n");
    let header = key.header("Bearer ", "THE_KEY").unwrap().unwrap();
    assert_eq!(header.to_str().unwrap(), "Bearer sk-secret");
    assert!(!format!("{key:?} {header:?}").contains("sk-secret"));
    let error = Key::new("sk-se\ncret").header("", "THE_KEY").unwrap_err();
    assert!(error.to_string().contains("check THE_KEY"), "{error}");
    assert!(!format!("{error:?}").contains("cret\""));
}
