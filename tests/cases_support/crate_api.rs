//! All of the crate that the runner needs and that may not be built yet: one
//! function each. To fill one in, replace its `not_built`.

use std::{
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::Value;
use session_compaction::{
    Error, Event, EventSink, JsonlStore, LlmSummarizer, OpenAiCompatible, Outcome, Redactor,
    Request, Retrying, SecretPatterns, SessionManager, SessionManagerBuilder, SessionStore,
    SummarizationConfig, SummarizeError, Summarizer, SummaryRequest, TokenUsage,
    build_summarization_prompt,
};

use super::{Stop, case::ReportedUsage, sent::Sent};

/// What the tag of a summary's block looks like; the block ends with its
/// closing form.
pub(crate) const SUMMARY_TAG: &str = "<(summary-[0-9a-f]+)>";

/// The one note that stands for all messages that force compression dropped.
pub(crate) const DROPPED_NOTE: &str = r"\[system\] \d+ earlier message";

/// Whether [`observe`] does anything.
pub(crate) const EVENTS_ARE_BUILT: bool = true;

/// How long a provider may take, where the case says so.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deadlines {
    pub(crate) total: Option<Duration>,
    pub(crate) idle: Option<Duration>,
}

/// Builds the context of a session with an empty request.
pub(crate) async fn context(sessions: &SessionManager, key: &str) -> Result<Sent, Stop> {
    let context = sessions.context(key, &Request::new()).await?;
    Ok(Sent {
        openai_chat: context.to_openai_chat().to_json(),
        anthropic: context.to_anthropic().to_json(),
        gemini: context.to_gemini().to_json(),
        strict_template: context.to_strict_template().to_json(),
        repaired: context.repaired().collect(),
    })
}

/// Opens the JSONL store; a second result says why it could not be opened.
pub(crate) fn jsonl_store(folder: &Path) -> Result<Arc<dyn SessionStore>, Error> {
    Ok(Arc::new(JsonlStore::open(folder)?))
}

/// Makes the crate's own summarizer over an OpenAI-compatible endpoint.
pub(crate) fn llm_summarizer(
    base_url: &str,
    deadlines: Deadlines,
) -> Result<Arc<dyn Summarizer>, Stop> {
    let total = deadlines.total.unwrap_or(Duration::from_secs(30));
    let idle = deadlines.idle.unwrap_or(total);
    let provider = OpenAiCompatible::new(base_url).map_err(|e| Stop::Failed(e.to_string()))?;
    let provider = provider.with_key("sk-of-the-runner").with_timeouts(total, idle);
    Ok(Arc::new(LlmSummarizer::new(Retrying::new(provider).with_deadline(total), "fake")))
}

/// The chat request, as JSON body, that the crate would send for a request
/// which a stub was given.
pub(crate) fn request_body(request: &SummaryRequest) -> Value {
    let messages = request.messages.iter().map(|message| &**message);
    let prompt = build_summarization_prompt(messages, request.existing_summary.as_deref());
    // As `LlmSummarizer` does before it sends anything.
    let prompt = SecretPatterns.redact(&prompt);
    serde_json::json!({"messages": [{"role": "user", "content": prompt}]})
}

/// Tells the session what a provider counted.
pub(crate) async fn report_usage(
    sessions: &SessionManager,
    key: &str,
    usage: ReportedUsage,
) -> Result<(), Stop> {
    let ReportedUsage { prompt, completion, total } = usage;
    let output = completion.unwrap_or(0);
    let input = prompt.or(total.map(|total| total.saturating_sub(output))).unwrap_or(0);
    let mark = sessions.snapshot(key).await?;
    sessions.report_usage(key, mark, TokenUsage::new(input, output)).await?;
    Ok(())
}

/// Statistics as a JSON object, with the names that cases use.
pub(crate) async fn stats(sessions: &SessionManager, key: &str) -> Result<Value, Stop> {
    let stats = sessions.session_stats(key).await?;
    Ok(serde_json::json!({
        "messages": stats.messages,
        "tokens": stats.tokens,
        "compactions": stats.compactions,
        "tokens_after": stats.tokens_after,
        "repaired_messages": stats.repaired_messages,
        "repaired_lines": stats.repaired_lines,
    }))
}

/// Has the names of all events, such as `no_progress`, put into the list.
pub(crate) fn observe(
    builder: SessionManagerBuilder,
    names: &Arc<Mutex<Vec<String>>>,
) -> SessionManagerBuilder {
    builder.event_sink(Names(Arc::clone(names)))
}

#[derive(Debug)]
struct Names(Arc<Mutex<Vec<String>>>);

impl EventSink for Names {
    fn event(&self, event: &Event) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(event.kind.name().into());
    }
}

/// Waits until the list has the names of all events so far.
pub(crate) async fn settle_events(sessions: &SessionManager) {
    sessions.flush_events().await;
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
