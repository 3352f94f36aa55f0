//! The fake model: what it was asked, and what it does at each call.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::Value;
use session_compaction::{SummarizeError, Summarizer, Summary, SummaryRequest};
use tokio::sync::watch;

use super::case::Llm;

/// What the panics that a case asks for begin with.
pub(crate) const INJECTED: &str = "injected by the case: ";

const DEFAULT_REPLY: &str = "Work went on as asked.";

/// The model's side of a run, shared by the stub and the server.
#[derive(Debug)]
pub(crate) struct Fake {
    state: Mutex<State>,
    calls: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct State {
    script: Vec<Llm>,
    next: usize,
    asked: Vec<Asked>,
    /// The summary before the present compaction.
    previous: String,
}

/// One request to the model.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Http(Value),
    Stub(SummaryRequest),
}

impl Fake {
    pub(crate) fn new() -> Arc<Self> {
        let (calls, open) = (watch::Sender::new(0), watch::Sender::new(true));
        Arc::new(Self { state: Mutex::default(), calls, open })
    }

    /// From here on each call plays the next entry; the last one is repeated.
    pub(crate) fn play(&self, llm: &Llm, previous: Option<String>) {
        let mut state = self.state.lock().unwrap();
        state.script = if llm.script.is_empty() { vec![llm.clone()] } else { llm.script.clone() };
        state.next = 0;
        state.previous = previous.unwrap_or_default();
    }

    pub(crate) fn hold(&self) {
        self.open.send_replace(false);
    }

    pub(crate) fn release(&self) {
        self.open.send_replace(true);
    }

    pub(crate) fn calls(&self) -> usize {
        *self.calls.borrow()
    }

    /// Waits until the model was called more than so many times.
    pub(crate) async fn called_after(&self, calls: usize) {
        let _ = self.calls.subscribe().wait_for(|now| *now > calls).await;
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.state.lock().unwrap().asked.clone()
    }

    fn peek(&self) -> Llm {
        let state = self.state.lock().unwrap();
        let last = state.script.len().saturating_sub(1);
        state.script.get(state.next.min(last)).cloned().unwrap_or_default()
    }

    /// Records a call and returns what to do, once calls are let through.
    pub(crate) async fn call(&self, asked: Asked) -> Llm {
        let llm = self.peek();
        {
            let mut state = self.state.lock().unwrap();
            state.next += 1;
            state.asked.push(asked);
        }
        self.calls.send_modify(|calls| *calls += 1);
        let _ = self.open.subscribe().wait_for(|open| *open).await;
        if let Some(ms) = llm.delay_ms {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        llm
    }

    /// The text of an answer to a request that holds this text.
    pub(crate) fn reply(&self, llm: &Llm, request: &str) -> String {
        if let Some(markers) = &llm.echo_markers {
            let held = markers.iter().filter(|marker| request.contains(*marker));
            // A part that holds none of them is summarized as well.
            let held: Vec<_> = held.map(String::as_str).collect();
            return format!("They talked about: {}.", held.join(" "));
        }
        if let Some(more) = llm.echo_previous_plus {
            let previous = self.state.lock().unwrap().previous.clone();
            let previous = Some(previous).filter(|text| request.contains(text));
            return previous.unwrap_or_default() + &"x".repeat(more);
        }
        llm.reply.clone().unwrap_or_else(|| DEFAULT_REPLY.into())
    }
}

/// Plays what it can itself, and leaves the rest to a summarizer that talks to
/// the server.
pub(crate) struct Stub {
    pub(crate) fake: Arc<Fake>,
    pub(crate) http: Option<Arc<dyn Summarizer>>,
    /// Where the case looks at requests, a stub serves only what a server cannot.
    pub(crate) prefer_http: bool,
}

#[async_trait::async_trait]
impl Summarizer for Stub {
    async fn summarize(&self, request: SummaryRequest) -> Result<Summary, SummarizeError> {
        let next = self.fake.peek();
        if let Some(http) = &self.http
            && !next.needs_stub()
            && (self.prefer_http || next.needs_http())
        {
            return http.summarize(request).await;
        }
        let text = text_of(&request);
        let llm = self.fake.call(Asked::Stub(request)).await;
        if llm.hang {
            std::future::pending::<()>().await;
        }
        if let Some(ms) = llm.block_thread_ms {
            std::thread::sleep(Duration::from_millis(ms));
        }
        if let Some(words) = &llm.panic {
            panic!("{INJECTED}{words}");
        }
        Ok(self.fake.reply(&llm, &text).into())
    }

    fn max_input_tokens(&self) -> Option<u64> {
        self.http.as_ref()?.max_input_tokens()
    }

    fn name(&self) -> &'static str {
        "fake"
    }
}

impl fmt::Debug for Stub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stub")
    }
}

/// All that a request holds.
fn text_of(request: &SummaryRequest) -> String {
    let messages = request.messages.iter().map(|message| message.text());
    let calls = request.messages.iter().flat_map(|message| message.tool_calls());
    let calls = calls.map(|call| format!("{} {}", call.name, call.arguments));
    let existing = request.existing_summary.iter().map(ToString::to_string);
    existing.chain(messages).chain(calls).collect::<Vec<_>>().join("\n")
}
