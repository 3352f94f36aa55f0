//! Every way in which a server may fail, and what has to come of it.

use std::{error::Error, sync::Arc, time::Duration};

use serde_json::{Value, json};
use session_compaction::{
    Anthropic, ChatResponse, FinishReason, LlmProvider, OpenAiCompatible, ProviderErrorKind as Kind,
};

use super::tcp::Step;

pub(crate) const TOTAL: Duration = Duration::from_millis(300);
pub(crate) const GRACE: Duration = Duration::from_millis(250);
pub(crate) const KEY: &str = "sk-secret-0123456789";
pub(crate) const SECRET_TEXT: &str = "the heron nests behind the mill";

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Api {
    Anthropic,
    OpenAi,
}

impl Api {
    pub(crate) fn at(self, url: &str) -> Arc<dyn LlmProvider> {
        let url = &format!("{url}/?token={KEY}");
        // The pause that is allowed is as long as all of it: each fault meets one deadline.
        match self {
            Self::Anthropic => {
                Arc::new(Anthropic::new(url).unwrap().with_key(KEY).with_timeouts(TOTAL, TOTAL))
            }
            Self::OpenAi => Arc::new(
                OpenAiCompatible::new(url).unwrap().with_key(KEY).with_timeouts(TOTAL, TOTAL),
            ),
        }
    }

    fn answer(self, text: &Value, reason: &str, usage: Value) -> String {
        let mut answer = match self {
            Self::Anthropic => {
                json!({ "content": [{ "type": "text", "text": text }], "stop_reason": reason })
            }
            Self::OpenAi => {
                json!({ "choices": [{ "message": { "content": text }, "finish_reason": reason }] })
            }
        };
        if !usage.is_null() {
            answer["usage"] = usage;
        }
        answer.to_string()
    }

    pub(crate) fn fine(self) -> String {
        self.answer(&"a summary".into(), self.of("end_turn", "stop"), Value::Null)
    }

    /// What Anthropic says, or what `OpenAI` says.
    fn of<T>(self, anthropic: T, openai: T) -> T {
        if self == Self::Anthropic { anthropic } else { openai }
    }
}

/// What has to come of a fault.
pub(crate) enum Comes {
    Error(Kind, Option<u16>),
    /// An answer that cannot be read, for this reason.
    Malformed(&'static str),
    Answer(fn(&ChatResponse) -> bool),
}

pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) steps: Vec<Step>,
    pub(crate) comes: Comes,
}

pub(crate) fn fault(name: &'static str, steps: Vec<Step>, comes: Comes) -> Fault {
    Fault { name, steps, comes }
}

pub(crate) fn http(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Step {
    let body = body.as_ref();
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\n\r\n");
    Step::Send([head.as_bytes(), body].concat())
}

pub(crate) fn json_200(body: &str) -> Vec<Step> {
    vec![http("200 OK", "content-type: application/json\r\n", body)]
}

fn refusal(status: &str, headers: &str) -> Vec<Step> {
    // As some do: the key and the conversation are quoted back.
    let body = json!({ "error": { "type": "some_error", "code": KEY,
        "message": format!("key {KEY} said {SECRET_TEXT}") } });
    vec![http(status, headers, body.to_string())]
}

pub(crate) fn head(length: usize) -> Step {
    Step::Send(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n").into_bytes())
}

pub(crate) fn faults(api: Api) -> Vec<Fault> {
    let mut faults = broken_connections(api);
    faults.extend(broken_bodies(api));
    faults.extend(odd_answers(api));
    faults.extend(statuses());
    faults
}

fn broken_connections(api: Api) -> Vec<Fault> {
    let fine = api.fine();
    let half = Step::Send(fine.as_bytes()[..fine.len() / 2].to_vec());
    let unreachable = || Comes::Error(Kind::Unreachable, None);
    let timed_out = || Comes::Error(Kind::TimedOut, None);
    let pause = Duration::from_secs(1);
    vec![
        fault("reset before the answer", vec![Step::Reset], unreachable()),
        fault(
            "reset in the body",
            vec![head(fine.len()), half.clone(), Step::Reset],
            unreachable(),
        ),
        fault("closed before the answer", vec![], unreachable()),
        fault("closed in the body", vec![head(fine.len()), half.clone()], unreachable()),
        fault(
            "no HTTP at all",
            vec![Step::Send(b"220 mail ready\r\n\r\n".to_vec())],
            unreachable(),
        ),
        fault("stalled before the answer", vec![Step::Stall], timed_out()),
        fault(
            "stalled in the headers",
            vec![Step::Send(b"HTTP/1.1 200 OK\r\nx-".to_vec()), Step::Stall],
            timed_out(),
        ),
        fault("stalled in the body", vec![head(fine.len()), half, Step::Stall], timed_out()),
        fault(
            "one byte a second",
            vec![head(fine.len()), Step::Drip(fine.into_bytes(), pause)],
            timed_out(),
        ),
        fault(
            "one byte a while, never idle",
            vec![head(5_000), Step::Drip(vec![b' '; 5_000], Duration::from_millis(20))],
            timed_out(),
        ),
    ]
}

fn broken_bodies(api: Api) -> Vec<Fault> {
    let malformed = Comes::Malformed;
    let fine = api.fine();
    let chunk = [b"100000\r\n".as_slice(), &vec![b' '; 1 << 20], b"\r\n"].concat();
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let page = "<!doctype html><title>Sign in</title>";
    let latin = fine.replace("a summary", "caf\u{e9}").chars().map(|c| c as u8).collect::<Vec<_>>();
    vec![
        fault(
            "100 MB announced",
            vec![head(100 << 20), Step::Flood(vec![b' '; 1 << 20], 100)],
            malformed("larger than 4 MiB"),
        ),
        fault(
            "100 MB in chunks",
            vec![Step::Send(chunked), Step::Flood(chunk, 100)],
            malformed("larger than 4 MiB"),
        ),
        fault("JSON that is cut off", json_200(&fine[..fine.len() - 3]), malformed("cut off")),
        fault(
            "JSON without an end to its depth",
            json_200(&"[".repeat(100_000)),
            malformed("no JSON"),
        ),
        fault(
            "a web page",
            vec![http("200 OK", "content-type: text/html\r\n", page)],
            malformed("web page"),
        ),
        fault("an empty body", json_200(""), malformed("empty")),
        fault(
            "a gzip bomb",
            vec![http("200 OK", "content-encoding: gzip\r\n", gzip_of_zeros(100 << 20))],
            malformed("compressed"),
        ),
        fault(
            "another charset",
            vec![http("200 OK", "content-type: application/json; charset=latin1\r\n", latin)],
            Comes::Answer(|answer| answer.text == "caf\u{fffd}"),
        ),
    ]
}

fn odd_answers(api: Api) -> Vec<Fault> {
    let text = Value::from("a summary");
    let ended = |reason| api.answer(&text, reason, Value::Null);
    let counted = |input: Value, output: Value| {
        let names =
            api.of(["input_tokens", "output_tokens"], ["prompt_tokens", "completion_tokens"]);
        let usage = json!({ names[0]: input, names[1]: output });
        json_200(&api.answer(&text, api.of("end_turn", "stop"), usage))
    };
    let uncounted = || Comes::Answer(|answer| answer.usage.is_none() && answer.text == "a summary");
    let blank = || Comes::Answer(|answer| answer.text.is_empty());
    let malformed = || Comes::Error(Kind::Malformed, None);
    let hidden = json!({ "error": { "type": "overloaded_error", "message": SECRET_TEXT } });
    vec![
        fault(
            "an error in a 200",
            json_200(&hidden.to_string()),
            Comes::Error(Kind::RateLimited, None),
        ),
        fault(
            "cut off at the bound",
            json_200(&ended(api.of("max_tokens", "length"))),
            Comes::Answer(|answer| answer.finish_reason == FinishReason::Length),
        ),
        fault(
            "filtered",
            json_200(&ended(api.of("refusal", "content_filter"))),
            Comes::Answer(|answer| answer.finish_reason == FinishReason::ContentFilter),
        ),
        fault(
            "no choices",
            json_200(api.of(r#"{"content":[],"stop_reason":"end_turn"}"#, r#"{"choices":[]}"#)),
            // Anthropic's models do end without a word; it is for the guard to judge.
            api.of(blank(), malformed()),
        ),
        fault("no content", json_200(&api.answer(&Value::Null, "x", Value::Null)), blank()),
        fault("another JSON", json_200(r#"{"hello":"world"}"#), malformed()),
        fault("usage missing", json_200(&api.fine()), uncounted()),
        fault("usage of 2^63", counted(json!(1_u64 << 63), json!(5)), uncounted()),
        fault("usage below zero", counted(json!(-5), json!(5)), uncounted()),
        fault("usage in words", counted(json!("many"), json!(5)), uncounted()),
    ]
}

fn statuses() -> Vec<Fault> {
    let page = "<html>Bad Gateway</html>";
    let date = "Retry-After: Fri, 01 Jan 2100 00:00:00 GMT\r\n";
    let is = |kind, status| Comes::Error(kind, Some(status));
    vec![
        fault("redirect", refusal("302 Found", "location: /elsewhere\r\n"), is(Kind::Config, 302)),
        fault("400", refusal("400 Bad Request", ""), is(Kind::Rejected, 400)),
        fault("401", refusal("401 Unauthorized", ""), is(Kind::Auth, 401)),
        fault("403", refusal("403 Forbidden", ""), is(Kind::Auth, 403)),
        fault("404", refusal("404 Not Found", ""), is(Kind::Rejected, 404)),
        fault("408", refusal("408 Request Timeout", ""), is(Kind::Server, 408)),
        fault("413", refusal("413 Too Large", ""), is(Kind::TooLong, 413)),
        fault("429", refusal("429 Slow", "Retry-After: 7\r\n"), is(Kind::RateLimited, 429)),
        fault("429 with a date", refusal("429 Slow", date), is(Kind::RateLimited, 429)),
        fault("500", refusal("500 Oh", ""), is(Kind::Server, 500)),
        fault("502 as a page", vec![http("502 Bad Gateway", "", page)], is(Kind::Server, 502)),
        fault("529", refusal("529 Overloaded", ""), is(Kind::RateLimited, 529)),
    ]
}

/// A gzip stream that unpacks to zeros: one literal, and then copies of it, 258
/// bytes each, in the fixed code.
fn gzip_of_zeros(length: usize) -> Vec<u8> {
    let copy = "1100010100000";
    let bits = ["110", "00110000", &copy.repeat(length / 258), "0000000"].concat();
    let mut stream = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    for byte in bits.as_bytes().chunks(8) {
        stream.push(byte.iter().rev().fold(0, |sum, bit| sum << 1 | (bit - b'0')));
    }
    // Neither the checksum nor the length is right: nobody is to come this far.
    stream.extend([0; 8]);
    stream
}

/// Everything that a log could show of an error.
pub(crate) fn shown(error: &dyn Error) -> String {
    let mut shown = vec![format!("{error} {error:?} {error:#?}")];
    let mut cause = error.source();
    while let Some(error) = cause {
        shown.push(format!("{error} {error:?}"));
        cause = error.source();
    }
    shown.join("\n")
}

pub(crate) fn says_what_to_do(error: &dyn Error) -> bool {
    let text = error.to_string();
    let says = [
        "check ",
        "set ",
        "take ",
        "raise ",
        "write ",
        "try again",
        "wait ",
        "ask for less",
        "send less",
    ];
    says.iter().any(|word| text.contains(word))
}
