//! What a compaction used, as it is stored: with its commit, or by itself where
//! nothing was applied and was paid all the same.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::{Compaction, Inner, Report, log::label};
use crate::{
    plan::Trigger,
    session::{SessionKey, View},
    summarize::ledger::Ledger,
    usage::{TokenUsage, UsageEvent, UsageOutcome},
};

/// The account of one compaction.
pub(super) struct Account {
    ledger: Arc<Ledger>,
    trigger: Option<Trigger>,
    started: Instant,
    /// Whether the summarizer was asked at all.
    asked: AtomicBool,
}

impl Account {
    pub(super) fn open(trigger: Option<Trigger>) -> Self {
        let asked = AtomicBool::new(false);
        Self { ledger: Arc::default(), trigger, started: Instant::now(), asked }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Notes that the summarizer is asked, and returns where it is to note its
    /// calls.
    pub(super) fn ask(&self) -> Arc<Ledger> {
        self.asked.store(true, Ordering::Relaxed);
        Arc::clone(&self.ledger)
    }

    pub(super) fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// What is known of it however it ends.
    fn event(&self, outcome: UsageOutcome, said: Option<TokenUsage>) -> UsageEvent {
        let calls = self.ledger.calls();
        let (measured, limit) = self.trigger.map_or((0, 0), Trigger::values);
        UsageEvent {
            outcome,
            model: calls.model,
            latency: self.started.elapsed(),
            usage: calls.usage.or(said),
            attempts: calls.attempts.max(1),
            trigger: self.trigger.map_or_else(String::new, |trigger| trigger.name().to_owned()),
            measured,
            limit,
            ..UsageEvent::default()
        }
    }
}

impl Inner {
    /// The event of a compaction that is applied.
    pub(super) fn usage_event(
        &self,
        account: &Account,
        view: &View,
        done: &Compaction,
    ) -> UsageEvent {
        let summarizer = view.summary.as_ref().map(|summary| summary.by.clone());
        self.priced(UsageEvent {
            summarizer: summarizer.unwrap_or_default(),
            latency: done.latency,
            messages_removed: done.messages_removed,
            chars_removed: done.chars_removed,
            tokens_removed: done.tokens_before.saturating_sub(done.tokens_after),
            summary_chars: done.summary_chars,
            summary_tokens: done.summary_tokens,
            tokens_before: done.tokens_before,
            tokens_after: done.tokens_after,
            ..account.event(UsageOutcome::Applied, done.usage)
        })
    }

    /// Stores what a compaction used from which nothing came. One that was
    /// cancelled (by the host, or since this manager changed the session), or
    /// that never asked its summarizer, leaves no event.
    pub(super) async fn record_spent(
        &self,
        key: &SessionKey,
        summarizer: &str,
        account: &Account,
        report: &Report,
    ) {
        let outcome = match report {
            Report::Failed(error) if error.is_cancelled() => return,
            Report::Failed(_) => UsageOutcome::Failed,
            Report::NothingToGain { .. } => UsageOutcome::NoProgress,
            Report::Rejected { .. } => UsageOutcome::Rejected,
            Report::Stale => UsageOutcome::Stale,
            _ => return,
        };
        let Some(log) = self.store.usage() else { return };
        let event =
            UsageEvent { summarizer: summarizer.to_owned(), ..account.event(outcome, None) };
        if let Err(error) = log.record(key, &self.priced(event)).await {
            tracing::warn!(%error, "[{}] summarizer: what it used was not stored", label(key));
        }
    }

    /// Fills in the time and, where the model has a price, the cost.
    pub(super) fn priced(&self, mut event: UsageEvent) -> UsageEvent {
        if event.unix_millis == 0 {
            event.unix_millis = self.unix_millis(Duration::ZERO);
        }
        if event.cost.is_none() {
            event.cost = event.usage.and_then(|usage| self.prices.cost(&event.model, usage));
        }
        event
    }
}
