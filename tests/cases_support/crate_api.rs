//! All of the crate that the runner needs and that may not be built yet: one
//! function each. To fill one in, replace its `not_built`.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::Value;
use session_compaction::{
    Error, Outcome, SessionManager, SessionManagerBuilder, SessionStore, SummarizationConfig,
    SummarizeError, Summarizer, SummaryRequest,
};

use super::{Stop, case::ReportedUsage, sent::Sent};

/// What the tag of a summary's block looks like; the block ends with its
/// closing form.
pub(crate) const SUMMARY_TAG: &str = "<(summary-[0-9a-f]+)>";

/// The one note that stands for all messages that force compression dropped.
pub(crate) const DROPPED_NOTE: &str = r"\[system\] \d+ earlier message";

/// Whether [`observe`] does anything.
pub(crate) const EVENTS_ARE_BUILT: bool = false;

/// How long a provider may take, where the case says so.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deadlines {
    pub(crate) total: Option<Duration>,
    pub(crate) idle: Option<Duration>,
}

/// Builds the context of a session with an empty request.
pub(crate) async fn context(_sessions: &SessionManager, _key: &str) -> Result<Sent, Stop> {
    std::future::ready(not_built("SessionManager::context")).await
}

/// Opens the JSONL store; a second result says why it could not be opened.
pub(crate) fn jsonl_store(_folder: &Path) -> Result<Result<Arc<dyn SessionStore>, Error>, Stop> {
    not_built("JsonlStore")
}

/// Makes the crate's own summarizer over an OpenAI-compatible endpoint.
pub(crate) fn llm_summarizer(
    _base_url: &str,
    deadlines: Deadlines,
) -> Result<Arc<dyn Summarizer>, Stop> {
    let Deadlines { total: _total, idle: _idle } = deadlines;
    not_built("LlmSummarizer")
}

/// The chat request, as JSON body, that the crate would send for a request
/// which a stub was given.
pub(crate) fn request_body(_request: &SummaryRequest) -> Result<Value, Stop> {
    not_built("the summarization prompt")
}

/// Tells the session what a provider counted.
pub(crate) async fn report_usage(
    _sessions: &SessionManager,
    _key: &str,
    usage: ReportedUsage,
) -> Result<(), Stop> {
    let ReportedUsage { prompt: _prompt, completion: _completion, total: _total } = usage;
    std::future::ready(not_built("report_usage")).await
}

/// Statistics as a JSON object, with the names that cases use.
pub(crate) async fn stats(_sessions: &SessionManager, _key: &str) -> Result<Value, Stop> {
    std::future::ready(not_built("stats")).await
}

/// Has the names of all events, such as `no_progress`, put into the list.
pub(crate) fn observe(
    builder: SessionManagerBuilder,
    _names: &Arc<Mutex<Vec<String>>>,
) -> SessionManagerBuilder {
    builder
}

/// Cancels the compaction that runs.
pub(crate) async fn cancel(sessions: &SessionManager, key: &str) -> Result<(), Stop> {
    match sessions.maybe_summarize(key).await {
        Outcome::InFlight(handle) => {
            handle.cancel();
            let _ = handle.await;
            Ok(())
        }
        Outcome::Started(handle) => {
            handle.cancel();
            Err(Stop::Failed("there was nothing to cancel".into()))
        }
        // A handle is given out only where the thresholds say that one is due.
        _ => not_built("a handle to a compaction that the host asked for"),
    }
}

/// Sets every limit on the length of a text to about so many characters.
pub(crate) fn limit_texts(config: SummarizationConfig, chars: usize) -> SummarizationConfig {
    let tokens = u64::try_from(chars).unwrap_or(u64::MAX).max(1);
    // The smallest ratio of the smallest window that still holds the summary.
    config
        .with_context_window(tokens.saturating_mul(100))
        .with_max_single_msg_token_ratio(0.01)
        .with_summary_max_tokens(tokens)
}

/// The names of an error that cases know.
pub(crate) fn error_kinds(error: &Error) -> Vec<&'static str> {
    let kinds = [
        ("Config", error.is_config()),
        ("DuplicateId", error.is_duplicate_id()),
        ("InvalidKey", error.is_key()),
        ("Locked", error.is_locked()),
        ("Parse", error.is_message()),
        ("Storage", error.is_store()),
        ("Unsupported", error.is_unsupported()),
    ];
    kinds.into_iter().filter(|(_, holds)| *holds).map(|(kind, _)| kind).collect()
}

/// The same of a failed summarization.
pub(crate) fn summarize_error_kinds(error: &SummarizeError) -> Vec<&'static str> {
    let kinds = [
        ("Cancelled", error.is_cancelled()),
        ("EmptySummary", error.is_empty_summary()),
        ("Panic", error.is_panic()),
        ("Refused", error.is_refused()),
        ("Timeout", error.is_timeout()),
        ("TooLong", error.is_too_long()),
        ("Transient", error.is_transient()),
    ];
    kinds.into_iter().filter(|(_, holds)| *holds).map(|(kind, _)| kind).collect()
}

fn not_built<T>(what: &'static str) -> Result<T, Stop> {
    Err(Stop::NotBuilt(what))
}
