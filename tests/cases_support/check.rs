//! Checks what was seen against what a case asserts.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use regex_lite::Regex;
use serde_json::Value;
use session_compaction::{
    ByteEstimate, Message, Provider, SessionManager, TokenCounter, validate_messages,
};

use super::{
    Stop,
    assertion::{Assertion, Rules, Texts},
    crate_api,
    model::Asked,
    play::Run,
    record::{BuiltContext, Record, id_of, minified, source_of},
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
            Assertion::ContainsAny(texts) => {
                let seen = self.seen();
                let any = texts.iter().any(|text| seen.iter().any(|seen| seen.contains(text)));
                ensure(any, || format!("none of {texts:?} was seen"))
            }
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

    // Messages

    /// Added messages that are in neither the summarized range nor the window.
    fn lost(&self) -> Vec<String> {
        let key = self.run.key();
        let several = !self.record.keys.is_empty();
        let window: BTreeSet<_> = self.window.iter().map(|message| id_of(message)).collect();
        let summarized = self.summarized();
        let added = self.record.added.iter().filter(|added| !several && added.key == key);
        let lost = added.filter(|added| {
            let replaced = added.position < self.cut
                && (self.record.forced > 0
                    || summarized.as_ref().is_none_or(|ids| ids.contains(&added.id)));
            !window.contains(&added.id) && !replaced && !self.record.destroyed.contains(&added.id)
        });
        let lost: Vec<_> = lost.map(|added| added.source.clone()).collect();
        let archived: BTreeSet<_> = self.archive.iter().collect();
        if lost.is_empty() && !archived.is_empty() {
            let added = self.record.added.iter().filter(|added| !several && added.key == key);
            let gone = added.filter(|added| {
                !archived.contains(&added.id) && !self.record.destroyed.contains(&added.id)
            });
            return gone.map(|added| added.source.clone()).collect();
        }
        lost
    }

    /// Ids that a summarizer was given before something was applied; `None`
    /// where a server was asked, which sees no ids.
    fn summarized(&self) -> Option<BTreeSet<String>> {
        let calls = self.record.applied.last().map_or(0, |applied| applied.calls);
        let mut ids = BTreeSet::new();
        for asked in self.asked.iter().take(calls) {
            let Asked::Stub(request) = asked else { return None };
            for message in request.messages.iter() {
                match message.id() {
                    Some(id) => ids.insert(id.to_string()),
                    // An excerpt has no id, nor has a part's summary.
                    None if request.part == session_compaction::SummaryPart::Merge => false,
                    None => return None,
                };
            }
        }
        let range = self.record.applied.last().map_or(0, |applied| applied.range.end);
        (range == self.cut).then_some(ids)
    }

    fn doubled(&self) -> usize {
        let doubles = |ids: &[String]| ids.len() - ids.iter().collect::<BTreeSet<_>>().len();
        let window: Vec<_> = self.window.iter().map(|message| id_of(message)).collect();
        doubles(&window).max(doubles(&self.archive))
    }

    fn history_unchanged(&self) -> Held {
        let key = self.run.key();
        let mut added: Vec<_> = self.record.added.iter().filter(|added| added.key == key).collect();
        added.sort_by_key(|added| added.position);
        let added: Vec<_> = added.into_iter().map(|added| added.source.clone()).collect();
        let window: Vec<_> = self.window.iter().map(source_of).collect();
        ensure(added == window && self.carried == 0, || {
            format!("{} messages were added, the window holds {}", added.len(), window.len())
        })
    }

    fn kept_identical(&self) -> Held {
        let sources: BTreeMap<_, _> =
            self.record.added.iter().map(|added| (&added.id, &added.source)).collect();
        for message in &self.window {
            let (id, source) = (id_of(message), source_of(message));
            match sources.get(&id) {
                Some(added) if **added == source => {}
                Some(added) => return failed(format!("{added} was kept as {source}")),
                None => return failed(format!("{source} was never added")),
            }
        }
        Ok(())
    }

    fn acked_equals_recovered(&self) -> Held {
        let acked: Vec<_> = self.record.added.iter().map(|added| added.id.clone()).collect();
        let window: Vec<_> = self.window.iter().map(|message| id_of(message)).collect();
        let recovered = if self.archive.is_empty() { &window } else { &self.archive };
        ensure(acked == *recovered, || {
            format!("{} were acknowledged, {} recovered", acked.len(), recovered.len())
        })
    }

    fn append_latency(&self, max: u64) -> Held {
        let worst = self.record.latencies.iter().max();
        let worst = worst.ok_or_else(|| Stop::Failed("nothing was added meanwhile".into()))?;
        ensure(worst.as_millis() <= u128::from(max), || format!("an append took {worst:?}"))
    }

    // Contexts

    fn has_context(&self) -> Held {
        ensure(!self.record.contexts.is_empty(), || "no context was built".into())
    }

    fn each_context(&self, check: impl Fn(&BuiltContext, Rules) -> Held) -> Held {
        self.has_context()?;
        for context in &self.record.contexts {
            for rules in Rules::ALL {
                check(context, rules)?;
            }
        }
        Ok(())
    }

    fn last(&self) -> Result<&BuiltContext, Stop> {
        self.record.contexts.last().ok_or_else(|| Stop::Failed("no context was built".into()))
    }

    fn last_messages(&self) -> Result<Vec<Value>, Stop> {
        self.last()?.sent.messages(Rules::Openai).map_err(Stop::Failed)
    }

    fn last_roles(&self) -> Result<Vec<String>, Stop> {
        let messages = self.last_messages()?;
        let roles = messages.iter().filter_map(|message| message["role"].as_str());
        Ok(roles.map(str::to_owned).collect())
    }

    fn last_text(&self) -> Result<String, Stop> {
        Ok(self.last_messages()?.iter().flat_map(strings).collect::<Vec<_>>().join("\n"))
    }

    fn count_role(&self, counts: &BTreeMap<String, usize>) -> Held {
        let roles = self.last_roles()?;
        counts.iter().try_for_each(|(role, n)| {
            equal(&format!("{role} messages"), roles.iter().filter(|own| *own == role).count(), *n)
        })
    }

    fn contexts_equal(&self) -> Held {
        let contexts = &self.record.contexts;
        let pairs = contexts.iter().zip(contexts.iter().skip(1));
        let across: Vec<_> = pairs.filter(|(a, b)| a.life != b.life).collect();
        if across.is_empty() {
            return failed("no context before and after a restart".into());
        }
        across.into_iter().try_for_each(|(before, after)| {
            ensure(before.sent == after.sent, || {
                format!("{} became {}", before.sent.openai_chat, after.sent.openai_chat)
            })
        })
    }

    /// Up to the first open call, or else through the last assistant message,
    /// each context is the beginning of the next, in each provider's form.
    fn contexts_prefix_stable(&self) -> Held {
        let contexts = &self.record.contexts;
        let pairs = contexts.iter().zip(contexts.iter().skip(1));
        let pairs: Vec<_> = pairs.filter(|(a, b)| a.commits == b.commits).collect();
        ensure(!pairs.is_empty(), || "no two contexts without a compaction between".into())?;
        for (index, (before, after)) in pairs.into_iter().enumerate() {
            for rules in Rules::ALL {
                let (head, old) = before.sent.pieces(rules);
                let (next_head, new) = after.sent.pieces(rules);
                let stable = stable_prefix(&old, &before.open_calls);
                if head != next_head || !new.starts_with(old.get(..stable).unwrap_or_default()) {
                    return failed(format!(
                        "{rules:?} context {index} is no beginning of the next"
                    ));
                }
            }
        }
        Ok(())
    }

    fn note_count(&self, max: usize) -> Held {
        let note = regex(crate_api::DROPPED_NOTE)?;
        let stored: Vec<_> = self.window.iter().map(|message| message.text()).collect();
        let stored = note.find_iter(&stored.join("\n")).count();
        let sent = note.find_iter(&self.last_text()?).count();
        ensure(stored == 0 && sent <= max, || format!("{stored} notes stored, {sent} sent"))?;
        let dropped = self.record.forced > 0;
        ensure(!dropped || sent > 0, || "messages were dropped without a note".into())
    }

    fn fence_holds(&self) -> Held {
        let tag = regex(crate_api::SUMMARY_TAG)?;
        let messages = self.last_messages()?;
        let texts: Vec<_> = messages.iter().flat_map(strings).collect();
        for text in texts {
            let Some(found) = tag.captures(text) else { continue };
            let (open, name) = (found.get(0).map_or("", |m| m.as_str()), &found[1]);
            let close = format!("</{name}>");
            let inside = text.split_once(open).and_then(|(_, rest)| rest.split_once(&close));
            let (inside, after) = inside.unwrap_or_default();
            return ensure(inside.contains(&self.summary) && !after.contains(&close), || {
                format!("the summary is not all between {open} and {close}")
            });
        }
        failed("there is no summary block".into())
    }

    fn system_message(&self) -> Held {
        let is_system = |source: &&String| {
            serde_json::from_str::<Value>(source).is_ok_and(|json| json["role"] == "system")
        };
        let added = self.record.added.iter().map(|added| &added.source);
        let original = added.into_iter().find(is_system);
        let original = original.ok_or_else(|| Stop::Failed("none was added".into()))?;
        let sent = self.last()?.sent.pieces(Rules::Openai).1;
        let first = sent.first().map(|first| minified(first)).unwrap_or_default();
        ensure(first == *original, || format!("{original} was sent as {first}"))
    }

    // Texts

    /// All that was recorded.
    fn seen(&self) -> Vec<String> {
        let record = &self.record;
        let mut seen: Vec<String> = Vec::new();
        for context in &record.contexts {
            for rules in Rules::ALL {
                let messages = context.sent.messages(rules).unwrap_or_default();
                seen.extend(messages.iter().flat_map(strings).map(str::to_owned));
            }
        }
        seen.push(self.summary.clone());
        seen.extend(record.histories.iter().map(|history| history.text.clone()));
        seen.extend(record.logs.iter().cloned());
        seen.extend(record.stats.iter().map(ToString::to_string));
        seen.extend(record.errors.iter().map(|error| error.text.clone()));
        seen.extend(record.configs.iter().filter_map(|tried| tried.result.clone().err()));
        seen
    }

    async fn not_contains(&self, texts: &[String]) -> Held {
        let mut seen = self.seen();
        seen.push(self.run.bench.logs());
        seen.extend(self.record.reports.iter().cloned());
        seen.extend(self.window.iter().map(|message| message.text()));
        for asked in &self.asked {
            let body = match asked {
                Asked::Http(body) => body.clone(),
                Asked::Stub(request) => crate_api::request_body(request).unwrap_or_default(),
            };
            seen.extend(strings(&body).into_iter().map(str::to_owned));
        }
        if let Some(sessions) = &self.sessions
            && let Ok(stats) = crate_api::stats(sessions, &self.run.key()).await
        {
            seen.push(stats.to_string());
        }
        let found = texts.iter().find(|text| seen.iter().any(|seen| seen.contains(*text)));
        found.map_or(Ok(()), |text| failed(format!("{text:?} was seen")))
    }

    fn after_release(&self, texts: &[String]) -> Held {
        let contexts = self.record.contexts.iter().filter(|context| context.after_release);
        let contexts = contexts.map(|context| context.sent.openai_chat.clone());
        let histories = self.record.histories.iter().filter(|history| history.after_release);
        let mut first = contexts.take(1).chain(histories.map(|history| history.text.clone()));
        let held = first.any(|seen| texts.iter().all(|text| seen.contains(text)));
        ensure(held, || format!("not all of {texts:?} were seen after the release"))
    }

    fn first_summary(&self) -> String {
        self.run.case.existing_summary.clone().unwrap_or_default()
    }

    fn utf8_valid(&self) -> Held {
        let given: Vec<_> = self.record.added.iter().map(|added| &added.source).collect();
        if given.iter().any(|given| given.contains('\u{fffd}')) {
            return Ok(());
        }
        let mut seen = self.seen();
        seen.push(self.run.bench.logs());
        for asked in &self.asked {
            match asked {
                Asked::Http(body) => seen.extend(strings(body).into_iter().map(str::to_owned)),
                Asked::Stub(request) => {
                    seen.extend(request.messages.iter().map(|message| message.text()));
                }
            }
        }
        let broken = seen.iter().find(|text| text.contains('\u{fffd}'));
        broken.map_or(Ok(()), |text| failed(format!("a character was cut: {text}")))
    }

    // Requests to the model

    fn each_request(&self, check: impl Fn(&Value) -> Held) -> Held {
        self.requests()?.iter().try_for_each(check)
    }

    fn requests(&self) -> Result<Vec<Value>, Stop> {
        ensure(!self.asked.is_empty(), || "the model was not asked".into())?;
        let bodies = self.asked.iter().map(|asked| match asked {
            Asked::Http(body) => Ok(body.clone()),
            Asked::Stub(request) => crate_api::request_body(request),
        });
        bodies.collect()
    }

    /// A request for a part holds that part: one that holds the text is enough.
    fn request_contains(&self, texts: &Texts) -> Held {
        let requests: Vec<_> =
            self.requests()?.iter().map(|body| strings(body).join("\n")).collect();
        texts.0.iter().try_for_each(|text| {
            let held = requests.iter().any(|request| request.contains(text));
            ensure(held, || format!("no request holds {text:?}"))
        })
    }

    fn request_matches(&self, texts: &Texts) -> Held {
        self.each_request(|body| {
            let request = strings(body).join("\n");
            texts.0.iter().try_for_each(|pattern| {
                let matched = regex(pattern)?.is_match(&request);
                ensure(matched, || format!("a request does not match {pattern:?}"))
            })
        })
    }

    /// The transcript stands between a tag and its closing form, which occurs
    /// once.
    fn request_fenced(&self) -> Held {
        let tag = regex(r"<([a-z]+-[0-9a-f]+)>")?;
        self.each_request(|body| {
            let texts = strings(body);
            let fenced = texts.iter().find_map(|text| Some((text, tag.captures(text)?)));
            let Some((text, found)) = fenced else { return failed("there is no fence".into()) };
            let (open, close) = (format!("<{}>", &found[1]), format!("</{}>", &found[1]));
            ensure(text.matches(&close).count() == 1, || format!("{close} can be forged"))?;
            let inside = text.split_once(&open).and_then(|(_, rest)| rest.split_once(&close));
            let inside = inside.map_or("", |(inside, _)| inside);
            let outside = text.replacen(inside, "", 1);
            let own = |added: &&super::record::Added| {
                let json: Value = serde_json::from_str(&added.source).unwrap_or_default();
                let content = json["content"].as_str().unwrap_or_default();
                content.chars().count() > 20 && outside.contains(content)
            };
            let escaped = self.record.added.iter().find(own);
            escaped
                .map_or(Ok(()), |added| failed(format!("outside of the fence: {}", added.source)))
        })
    }

    // Figures

    async fn each_stat(&self, wanted: &BTreeMap<String, u64>, holds: fn(u64, u64) -> bool) -> Held {
        for (name, wanted) in wanted {
            let last = self.record.applied.last();
            let found = match (name.as_str(), last) {
                ("repaired_messages", _) if !self.record.contexts.is_empty() => self.repaired(),
                ("tokens_after", Some(done)) => done.tokens_after,
                _ => self.stat(name).await?,
            };
            ensure(holds(found, *wanted), || format!("{name} is {found}"))?;
        }
        Ok(())
    }

    /// Messages that were healed on the way out, however often.
    fn repaired(&self) -> u64 {
        let contexts = self.record.contexts.iter();
        let healed: BTreeSet<_> = contexts.flat_map(|context| &context.sent.repaired).collect();
        healed.len() as u64
    }

    async fn stat(&self, name: &str) -> Result<u64, Stop> {
        let sessions = self.sessions.as_ref();
        let sessions = sessions.ok_or_else(|| Stop::Failed("there is no manager".into()))?;
        let stats = crate_api::stats(sessions, &self.run.key()).await?;
        let found = stats.get(name).and_then(Value::as_u64);
        found.ok_or_else(|| Stop::Failed(format!("the statistics lack {name}")))
    }

    fn event(&self, name: &str) -> Held {
        if !crate_api::EVENTS_ARE_BUILT {
            return Err(Stop::NotBuilt("events"));
        }
        let events = self.run.events();
        ensure(events.iter().any(|event| event == name), || format!("the events were {events:?}"))
    }

    fn tokens_between(&self, (low, high): (u64, u64)) -> Held {
        let estimates = &self.record.estimates;
        let history = estimates.iter().rev().find(|estimate| estimate.text.is_none());
        let last = history.or(estimates.last());
        let tokens = last.map(|last| last.tokens);
        let tokens = tokens.ok_or_else(|| Stop::Failed("nothing was estimated".into()))?;
        ensure((low..=high).contains(&tokens), || format!("{tokens} tokens"))?;
        let texts =
            estimates.iter().filter_map(|estimate| Some((estimate.text.as_ref()?, estimate)));
        texts.into_iter().try_for_each(|(text, estimate)| plausible(text, estimate.tokens))
    }

    // Configuration

    /// Each value means what is documented, or is refused by name; none
    /// switches something off in silence.
    fn each(&self) -> Held {
        ensure(!self.record.configs.is_empty(), || "nothing was parsed".into())?;
        for tried in &self.record.configs {
            let shown = format!("{} = {} from {}", tried.field, tried.literal, tried.from);
            match &tried.result {
                Ok(config) => {
                    let quiet = config[&tried.field] == "off" && !tried.literal.contains("off");
                    ensure(!quiet && config["enabled"] != false, || {
                        format!("{shown} is a silent off")
                    })?;
                }
                Err(error) => {
                    let named = error.to_lowercase().contains(&tried.field);
                    // What is no JSON at all is named by its place.
                    let placed = serde_json::from_str::<Value>(&tried.literal).is_err()
                        && error.contains("line")
                        && error.contains("column");
                    ensure(named || placed, || format!("{shown} is refused with: {error}"))?;
                }
            }
        }
        Ok(())
    }

    fn config_error_or_clamp(&self, field: &str) -> Held {
        let parsed = self.record.configs.last();
        let parsed = parsed.ok_or_else(|| Stop::Failed("nothing was parsed".into()))?;
        match &parsed.result {
            Err(error) => ensure(error.contains(field), || error.clone()),
            Ok(config) => {
                let given = self.run.case.config.get(field).and_then(Value::as_u64);
                let clamped = config[field].as_u64() < given;
                let warned = self.run.bench.logs().contains(field);
                ensure(clamped && warned, || format!("accepted: {config}"))
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

/// How many messages the next context must repeat.
fn stable_prefix(messages: &[String], open_calls: &[String]) -> usize {
    let role = |source: &String| -> String {
        let json: Value = serde_json::from_str(source).unwrap_or_default();
        json["role"].as_str().unwrap_or_default().to_owned()
    };
    let says = |source: &String| matches!(role(source).as_str(), "assistant" | "model");
    let calls = |source: &String| {
        says(source) && open_calls.iter().any(|id| source.contains(&format!("\"{id}\"")))
    };
    let open = messages.iter().position(calls);
    open.or(messages.iter().rposition(says).map(|last| last + 1)).unwrap_or(0)
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

/// Between half a token and two for a Han character, 0.15 and 0.5 for an ASCII
/// one; other texts are not judged.
fn plausible(text: &str, tokens: u64) -> Held {
    let (mut han, mut ascii) = (0u64, 0u64);
    for c in text.chars() {
        match c {
            '\u{4e00}'..='\u{9fff}' => han += 1,
            c if c.is_ascii() => ascii += 1,
            _ => return Ok(()),
        }
    }
    let (low, high) = (han * 50 + ascii * 15, han * 200 + ascii * 50);
    ensure((low..=high).contains(&(tokens * 100)), || {
        format!("{tokens} tokens for {han} Han and {ascii} ASCII characters")
    })
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
