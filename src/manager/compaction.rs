//! One compaction, from the snapshot to the commit.

use std::{sync::Arc, time::Duration};

use tokio::{sync::oneshot, time::timeout};

use super::{
    Compaction, Inner, Outcome, Report,
    accounting::Account,
    cell::Cell,
    claim::Claim,
    lease::Held,
    log::label,
    planned::{Planned, largest_message},
    trigger::{limits, measured},
};
use crate::{
    plan::{self, Trigger},
    session::{Change, Entry, Pause, PauseUntil, StoredSummary, View},
    store::{Commit, CommitResult, Lease},
    summarize::{
        self, SummarizeError, Summarizer, SummaryPart, SummaryRequest,
        breaker::cool_down,
        guard,
        parts::{Answer, Bounds},
        request::Clock,
    },
    tokens::Tokens,
};

/// A compaction that was started.
pub(super) struct Job {
    pub(super) cell: Arc<Cell>,
    pub(super) summarizer: Arc<dyn Summarizer>,
    /// What made it due; `None` where the host asked.
    pub(super) trigger: Option<Trigger>,
    /// How many tokens may be left, where the host said so.
    pub(super) target: Option<u64>,
    /// What the summary should dwell on, where the host said so.
    pub(super) focus: Option<Arc<str>>,
}

/// A summary that passed, and where it goes.
struct Proposal {
    planned: Planned,
    view: View,
    /// Tokens of the new summary as it is sent.
    sent: Tokens,
    done: Compaction,
}

impl Job {
    /// Plans and asks, which a cancellation may end at any moment; then
    /// commits in a task of its own, which nothing ends half-way.
    ///
    /// Says through `told` why it was not begun, where another process holds
    /// the session.
    pub(super) async fn run(
        self,
        inner: Arc<Inner>,
        claim: Claim,
        held: Option<Held>,
        told: oneshot::Sender<Option<Outcome>>,
    ) {
        let held = match held {
            Some(held) => held,
            None => match inner.hold(&self.cell.key).await {
                Ok(held) => held,
                Err(outcome) => {
                    claim.finish(Report::NotStarted(Box::new(outcome.clone())));
                    let _ = told.send(Some(outcome));
                    return;
                }
            },
        };
        inner.begun(&self.cell, self.trigger);
        let _ = told.send(None);
        let account = Account::open(self.trigger);
        let proposal = tokio::select! {
            proposal = self.propose(&inner, &account) => proposal,
            // Another process does it now: what this one asks for is not needed.
            () = held.lost() => Err(Report::Stale),
        };
        let runtime = inner.runtime.clone();
        runtime.spawn(async move {
            let report = match proposal {
                Ok(proposal) => self.commit(&inner, proposal, &account, held.lease()).await,
                Err(report) => report,
            };
            // The order: record the pause and what was used, tell it, free the claim, then report.
            self.pause(&inner, &report).await;
            if account.was_asked() {
                inner.record_spent(&self.cell.key, self.summarizer.name(), &account, &report).await;
            }
            self.log(&report);
            inner.ended(&self.cell, self.trigger, &report);
            held.release().await;
            claim.finish(report);
        });
    }

    async fn propose(&self, inner: &Arc<Inner>, account: &Account) -> Result<Proposal, Report> {
        let planned = inner.plan(&self.cell, self.trigger.is_some(), self.target).await?;
        inner.events.started(&self.cell.key, &planned);
        let answer = self.ask(inner, &planned, account).await?;
        let summary = StoredSummary {
            text: inner.redacted(answer.summary.text),
            excerpted: answer.excerpted,
            by: answer.summary.by.unwrap_or_else(|| self.summarizer.name().into()),
        };
        let dropped = planned.debt();
        let sent = guard::sent_tokens(Some(&summary), dropped.messages, &*inner.counter);
        let replaced = planned.replaced.tokens + inner.sent(&planned.snapshot);
        if sent >= replaced {
            let (replaced, summary) = (replaced.count(), sent.count());
            return Err(Report::NothingToGain { replaced, summary });
        }
        let view = planned.view(Some(summary));
        let done = planned.account(&view, sent, answer.summary.usage, account.elapsed());
        Ok(Proposal { planned, view, sent, done })
    }

    /// Asks the summarizer, in a task of its own and until the deadline. No
    /// lock is held.
    async fn ask(
        &self,
        inner: &Inner,
        planned: &Planned,
        account: &Account,
    ) -> Result<Answer, Report> {
        let config = &planned.config;
        let session_chars: u64 = planned.snapshot.entries().map(|entry| entry.size.chars).sum();
        tracing::info!(
            session_chars,
            messages_removed = planned.split.replaced.len(),
            chars_removed = planned.replaced.chars,
            messages_kept = planned.kept(),
            "[{}] summarizer: session={session_chars} chars, removing {} msgs ({} chars), keeping {} msgs",
            label(&self.cell.key),
            planned.split.replaced.len(),
            planned.replaced.chars,
            planned.kept(),
        );
        let request = SummaryRequest {
            session: self.cell.key.clone(),
            options: Arc::clone(&planned.options),
            part: SummaryPart::Whole,
            messages: Arc::clone(&planned.input),
            existing_summary: planned
                .snapshot
                .summary()
                .map(|summary| summary.text.as_str().into()),
            focus: self.focus.clone(),
            max_tokens: planned.bound,
            temperature: config.summary_temperature,
            deadline: config.timeout,
            counter: Arc::clone(&inner.counter),
            clock: Clock::new(Arc::clone(&inner.clock)),
            ledger: account.ask(),
        };
        let bounds = Bounds {
            batch: config.multi_part_batch_threshold,
            message: largest_message(config, planned.window),
            // An eighth for what the host's own prompt says.
            input: planned.window / 8 * 7,
        };
        let summarizer = Arc::clone(&self.summarizer);
        let mut asking =
            AbortOnDrop(inner.runtime.spawn(async move {
                summarize::parts::summarize(&summarizer, request, bounds).await
            }));
        let answer = match timeout(config.timeout, &mut asking.0).await {
            Err(_) => Err(SummarizeError::timed_out(config.timeout)),
            Ok(Err(error)) => Err(summarize::from_join(error)),
            Ok(Ok(answer)) => answer,
        };
        answer.map_err(|error| {
            let error = match &inner.redactor {
                Some(redactor) => error.redacted(redactor),
                None => error,
            };
            if error.is_bad_answer() {
                Report::Rejected { why: error }
            } else {
                Report::Failed(error)
            }
        })
    }

    async fn commit(
        &self,
        inner: &Inner,
        proposal: Proposal,
        account: &Account,
        lease: Option<Lease>,
    ) -> Report {
        let Proposal { planned, view, sent, done } = proposal;
        let commit = Commit::on(planned.snapshot.revision())
            .with_view(view.clone())
            .with_lease(lease)
            .with_pause(pause_after(&planned, &done))
            .with_usage(inner.usage_event(account, &view, &done));
        match inner.commit(&self.cell, commit, &view, sent, Change::Compacted).await {
            Ok(true) => {
                self.cell.count(|counted| {
                    counted.compactions += 1;
                    counted.tokens_after = done.tokens_after;
                });
                Report::Applied(done)
            }
            Ok(false) => Report::Stale,
            Err(error) => Report::Unavailable(error),
        }
    }

    /// Keeps what went wrong from being tried again at once. Failures are
    /// counted; from the third in a row on the session is left alone for a
    /// while, longer each time. A compaction that is applied ends the count.
    async fn pause(&self, inner: &Inner, report: &Report) {
        // The host asked: what it asks for next is its own affair.
        if self.trigger.is_none() {
            return;
        }
        let (revision, tokens, before) = {
            let session = self.cell.lock();
            let failures = session.pause().map_or(0, |pause| pause.failures);
            (session.revision(), measured(&session).tokens, failures)
        };
        let Some(revision) = revision else { return };
        let (until, failures) = match report {
            Report::Skipped(_) | Report::NothingToGain { .. } => (grown(tokens), before),
            Report::Failed(error) if error.is_cancelled() => return,
            Report::Failed(error) | Report::Rejected { why: error } => {
                let failures = before.saturating_add(1);
                let wait = cool_down(failures).max(error.retry_delay().unwrap_or_default());
                (PauseUntil::UnixMillis(inner.unix_millis(wait)), failures)
            }
            _ => return,
        };
        let pause = Some(Pause { until, reason: report.to_string(), failures });
        let commit = Commit::on(revision).with_pause(pause.clone());
        match inner.store.commit(&self.cell.key, commit).await {
            Ok(CommitResult::Committed(_)) => self.cell.lock().set_pause(pause),
            Ok(CommitResult::Stale) => {}
            Err(error) => {
                tracing::warn!(%error, "[{}] summarizer: a pause was not stored", label(&self.cell.key));
            }
        }
    }

    fn log(&self, report: &Report) {
        let label = label(&self.cell.key);
        match report {
            Report::Applied(done) => tracing::info!(
                chars_removed = done.chars_removed,
                summary_chars = done.summary_chars,
                latency_ms = u64::try_from(done.latency.as_millis()).unwrap_or(u64::MAX),
                "[{label}] summarizer done: -{} chars, summary {} chars, {}ms",
                done.chars_removed,
                done.summary_chars,
                done.latency.as_millis(),
            ),
            Report::Failed(_) | Report::Rejected { .. } | Report::Unavailable(_) => {
                tracing::warn!("[{label}] summarizer: {report}");
            }
            _ => tracing::debug!("[{label}] summarizer: {report}"),
        }
    }
}

impl Inner {
    /// Takes secrets out of a summary.
    pub(super) fn redacted(&self, summary: String) -> String {
        match &self.redactor {
            Some(redactor) => redactor.redact(&summary).into_owned(),
            None => summary,
        }
    }

    pub(super) fn unix_millis(&self, from_now: Duration) -> u64 {
        let now = (self.clock)().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(now.saturating_add(from_now).as_millis()).unwrap_or(u64::MAX)
    }
}

/// Where a compaction leaves the session above a threshold, none is tried
/// until it has grown.
fn pause_after(planned: &Planned, done: &Compaction) -> Option<Pause> {
    let window = planned.snapshot.entries().skip(planned.split.cut);
    let left = window.fold((0, 0), |(messages, chars): (u64, u64), entry: &Entry| {
        (messages + 1, chars.saturating_add(entry.size.chars))
    });
    let tokens = done.tokens_after.saturating_add(planned.base.count());
    let measured = plan::Measured { messages: left.0, chars: left.1, tokens };
    let trigger = limits(&planned.config, planned.window).exceeded_by(&measured)?;
    let reason = format!("a compaction left the session above its threshold: {trigger}");
    Some(Pause::new(grown(measured.tokens), reason))
}

/// A tenth more than now.
pub(super) const fn grown(tokens: u64) -> PauseUntil {
    PauseUntil::Tokens(tokens.saturating_add(tokens / 10).saturating_add(1))
}

/// Ends a task with the future that waits for it.
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
