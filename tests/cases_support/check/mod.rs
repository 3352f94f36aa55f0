//! Checks what was seen against what a case asserts.

mod contexts;
mod figures;
mod messages;
mod requests;
mod texts;

use std::sync::Arc;

use regex_lite::Regex;
use serde_json::Value;
use session_compaction::{
    ByteEstimate, Message, Provider, SessionManager, TokenCounter, validate_messages,
};

use super::{
    Stop,
    assertion::{Assertion, Rules},
    crate_api,
    model::Asked,
    play::Run,
    record::{Record, id_of},
    server::strings,
};

/// A run at its end.
pub(crate) struct Check<'a> {
    run: &'a Run,
    record: Record,
    asked: Vec<Asked>,
    sessions: Option<SessionManager>,
    window: Vec<Arc<Message>>,
    /// Messages below the cut that are still sent.
    carried: usize,
    cut: u64,
    /// Ids in the store's transcript.
    archive: Vec<String>,
    summary: String,
    in_flight: bool,
    calls: usize,
}

type Held = Result<(), Stop>;

impl<'a> Check<'a> {
    pub(crate) async fn of(run: &'a Run) -> Result<Self, Stop> {
        let key = run.key();
        let sessions = run.sessions().await?;
        if let Some(sessions) = &sessions {
            crate_api::settle_events(sessions).await;
        }
        let mut check = Self {
            run,
            record: Record::default(),
            asked: run.fake.asked(),
            sessions: sessions.clone(),
            window: Vec::new(),
            carried: 0,
            cut: 0,
            archive: Vec::new(),
            summary: String::new(),
            in_flight: false,
            calls: run.fake.calls(),
        };
        if let Some(sessions) = sessions {
            match sessions.history(&key).await {
                Ok(history) => {
                    check.window = history.to_vec();
                    (check.carried, check.cut) = (history.carried(), history.cut());
                    check.summary =
                        history.summary().map(|summary| summary.text.clone()).unwrap_or_default();
                }
                Err(error) => run.record().error(&error),
            }
            if let Ok(kept) = sessions.transcript(&key, 0..u64::MAX).await {
                check.archive = kept.iter().map(|kept| id_of(&kept.message)).collect();
            }
            // What a shutdown without patience finds running is in flight.
            let ended = sessions.shutdown(std::time::Duration::ZERO).await;
            let running = ended.finished.iter().chain(&ended.cut_off);
            check.in_flight = running.into_iter().any(|running| running.as_str() == key);
        }
        check.record = run.record().clone();
        Ok(check)
    }

    /// What no case may show, whatever it asserts.
    pub(crate) fn always(&self) -> Vec<String> {
        self.record.problems.clone()
    }

    #[expect(clippy::too_many_lines, reason = "a line or a few for each assertion")]
    pub(crate) async fn holds(&self, assertion: &Assertion) -> Held {
        match assertion {
            Assertion::AckedEqualsRecovered(_) => self.acked_equals_recovered(),
            Assertion::AppendLatencyMsMax(max) => self.append_latency(*max),
            Assertion::ArchiveCount(n) => {
                equal("messages in the transcript", self.archive.len(), *n)
            }
            Assertion::ConfigErrorOrClamp(field) => self.config_error_or_clamp(field),
            Assertion::ContainsAllAfterFirstRelease(texts) => self.after_release(texts),
            Assertion::ContainsAny(texts) => self.contains_any(texts),
            Assertion::ContextsEqual(_) => self.contexts_equal(),
            Assertion::ContextsPrefixStable(_) => self.contexts_prefix_stable(),
            Assertion::CountRole(counts) => self.count_role(counts),
            Assertion::Distinct(_) => {
                ensure(self.record.verified > 0, || "the keys were not verified".into())
            }
            Assertion::Dup(n) => equal("doubled messages", self.doubled(), *n),
            Assertion::Each(_) => self.each(),
            Assertion::Error(kind) => match self.record.errors.last() {
                Some(last) if last.kinds.contains(&kind.as_str()) => Ok(()),
                last => failed(format!("the most recent error is {last:?}")),
            },
            Assertion::Event(name) => self.event(name),
            Assertion::FinalMessageCount(n) | Assertion::MessageCount(n) => {
                equal("messages in the window", self.window.len(), *n)
            }
            Assertion::FinalSummary(text) => {
                ensure(self.summary == *text, || format!("it is {:?}", self.summary))
            }
            Assertion::HasRole(role) => {
                let roles = self.last_roles()?;
                ensure(roles.contains(role), || format!("the roles are {roles:?}"))
            }
            Assertion::HistoryUnchanged(_) => self.history_unchanged(),
            Assertion::Inflight(held) => {
                ensure(self.in_flight == *held, || format!("it is {}", self.in_flight))
            }
            Assertion::KeptMessagesByteIdentical(_) => self.kept_identical(),
            Assertion::LlmCalls(n) => equal("calls", self.calls, *n),
            Assertion::LlmCallsMax(n) => {
                ensure(self.calls <= *n, || format!("{} calls", self.calls))
            }
            Assertion::LlmCallsMin(n) => {
                ensure(self.calls >= *n, || format!("{} calls", self.calls))
            }
            Assertion::LlmRequestContains(texts) => self.request_contains(texts),
            Assertion::LlmRequestContainsRegex(texts) => self.request_matches(texts),
            Assertion::LlmRequestFenced(_) => self.request_fenced(),
            Assertion::LlmRequestFieldAbsent(texts) => self.each_request(|body| {
                let present = texts.0.iter().find(|field| field_of(body, field).is_some());
                present.map_or(Ok(()), |field| failed(format!("the request has {field:?}")))
            }),
            Assertion::LlmRequestNoToolRoles(_) => self.each_request(no_tool_roles),
            Assertion::LlmRequestTokensMax(max) => self.each_request(|body| {
                let counter = ByteEstimate::default();
                let tokens: u64 = strings(body).iter().map(|text| counter.text(text).count()).sum();
                ensure(tokens <= *max, || format!("a request of {tokens} tokens"))
            }),
            Assertion::LlmRequestValidFor(rules) => {
                self.each_request(|body| valid(rules, |_| Ok(messages_of(body))))
            }
            Assertion::Lost(n) => {
                let lost = self.lost();
                ensure(lost.len() == *n, || format!("{} lost: {lost:?}", lost.len()))
            }
            Assertion::MinNonSystem(n) => {
                let roles = self.last_roles()?;
                let others = roles.iter().filter(|role| *role != "system" && *role != "developer");
                let others = others.count();
                ensure(others >= *n, || format!("{others} messages"))
            }
            Assertion::NoBlankText(_) => self.each_context(|context, rules| {
                let messages = context.sent.messages(rules).map_err(Stop::Failed)?;
                let blank = messages.iter().find(|message| has_blank_text(message));
                blank.map_or(Ok(()), |message| failed(format!("blank text in {message}")))
            }),
            Assertion::NoMessageLostAfter(_) => {
                let lost = self.lost();
                ensure(lost.is_empty(), || format!("lost: {lost:?}"))
            }
            Assertion::NoPanic(_) => {
                let panics = self.run.bench.panics();
                ensure(panics.is_empty(), || panics.join(", "))
            }
            Assertion::NotContains(texts) => self.not_contains(texts).await,
            Assertion::NoteCountMax(max) => self.note_count(*max),
            Assertion::Stat(wanted) => {
                self.each_stat(wanted, |found, wanted| found == wanted).await
            }
            Assertion::StatMax(wanted) => {
                self.each_stat(wanted, |found, wanted| found <= wanted).await
            }
            Assertion::SummaryChanged(_) => {
                ensure(self.summary != self.first_summary(), || "it is the same".into())
            }
            Assertion::SummaryCount(n) => {
                let text = self.last_text()?;
                equal("summary blocks", regex(crate_api::SUMMARY_TAG)?.find_iter(&text).count(), *n)
            }
            Assertion::SummaryDelimiterNotClosable(_) => self.fence_holds(),
            Assertion::SummaryEqualsOneOf(texts) => {
                ensure(texts.contains(&self.summary), || format!("it is {:?}", self.summary))
            }
            Assertion::SummaryTokensMax(max) => {
                let tokens = ByteEstimate::default().text(&self.summary).count();
                ensure(tokens <= *max, || format!("{tokens} tokens"))
            }
            Assertion::SummaryUnchanged(_) => {
                ensure(self.summary == self.first_summary(), || format!("it is {:?}", self.summary))
            }
            Assertion::SystemMessageEqualsOriginal(_) => self.system_message(),
            Assertion::TokensAfterLtBefore(_) => match self.record.applied.last() {
                Some(done) => {
                    ensure(done.tokens_after < done.tokens_before, || format!("{done:?}"))
                }
                None => failed(format!("nothing was applied: {:?}", self.record.reports)),
            },
            Assertion::TokensBetween(range) => self.tokens_between(*range),
            Assertion::Utf8Valid(_) => self.utf8_valid(),
            Assertion::ValidFor(rules) => {
                self.has_context()?;
                self.record.contexts.iter().try_for_each(|context| {
                    valid(rules, |rules| context.sent.messages(rules).map_err(Stop::Failed))
                })
            }
        }
    }
}

fn valid(rules: &[Rules], messages: impl Fn(Rules) -> Result<Vec<Value>, Stop>) -> Held {
    for rules in rules {
        let provider: Provider = rules.provider();
        let messages = messages(*rules)?;
        if let Some(violation) = validate_messages(&messages, provider).first() {
            return failed(format!("{rules:?}: {violation} in {}", Value::from(messages)));
        }
    }
    Ok(())
}

fn messages_of(body: &Value) -> Vec<Value> {
    body["messages"].as_array().cloned().unwrap_or_default()
}

fn no_tool_roles(body: &Value) -> Held {
    for message in messages_of(body) {
        let traffic = message["role"] == "tool" || message.get("tool_calls").is_some();
        ensure(!traffic, || format!("tool traffic: {message}"))?;
    }
    ensure(body.get("tools").is_none(), || "the request has tools".into())
}

fn field_of<'v>(body: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(body, |value, name| value.get(name))
}

fn has_blank_text(message: &Value) -> bool {
    match &message["content"] {
        Value::String(text) => text.trim().is_empty(),
        Value::Array(parts) => parts
            .iter()
            .any(|part| part["text"].as_str().is_some_and(|text| text.trim().is_empty())),
        _ => message["role"] != "assistant" || message.get("tool_calls").is_none(),
    }
}

fn regex(pattern: &str) -> Result<Regex, Stop> {
    Regex::new(pattern).map_err(|error| Stop::Malformed(format!("{pattern:?}: {error}")))
}

fn equal(what: &str, found: usize, wanted: usize) -> Held {
    ensure(found == wanted, || format!("{found} {what}"))
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Held {
    if holds { Ok(()) } else { failed(why()) }
}

fn failed(why: String) -> Held {
    Err(Stop::Failed(why))
}
