//! Is a compaction due? Then start it.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Compact, Inner, Outcome, RunIn, SessionManager, cell::Cell, compaction, lease::Held};
use crate::{
    config::SummarizationConfig,
    error::Result,
    plan::{Limits, Measured, Trigger},
    session::{Pause, Session, SessionKey},
    summarize::Summarizer,
};

impl SessionManager {
    /// Starts a compaction in the background where one is due, and says so.
    /// Call it after each turn; it costs the same however long the session is.
    ///
    /// A compaction is due strictly above one of the configured thresholds:
    /// messages in the window, estimated tokens of what is sent against
    /// `context_window * token_percent / 100`, characters in the window.
    /// Without a summarizer this does nothing.
    ///
    /// Drop the handle to let the compaction run on; await it for the report.
    ///
    /// # Cancel safety
    ///
    /// A dropped future has started a compaction or not; one that was started
    /// runs on.
    pub async fn maybe_summarize(&self, key: &str) -> Outcome {
        self.start(key, Compact::if_due(), None).await
    }

    pub(super) async fn start(&self, key: &str, how: Compact, held: Option<Held>) -> Outcome {
        let inner = &self.0;
        // Where no session can have it otherwise, none is looked at.
        if !inner.config.enabled && how.when == When::Due {
            return Outcome::Disabled;
        }
        if inner.summarizer.is_none() && inner.named.is_empty() {
            return Outcome::NoSummarizer;
        }
        if inner.claims.are_closed() {
            return Outcome::ShuttingDown;
        }
        let key = match SessionKey::new(key) {
            Ok(key) => key,
            Err(error) => return Outcome::Unavailable(error),
        };
        let cell = inner.cell(&key);
        let (trigger, summarizer) = match inner.due(&cell, how.when).await {
            Ok(due) => due,
            Err(outcome) => {
                inner.release(cell);
                return outcome;
            }
        };
        if inner.run_in == RunIn::Elsewhere && how.when == When::Due && held.is_none() {
            return inner.defer(&key).await;
        }
        match inner.claims.claim(&key, trigger) {
            Err(handle) => Outcome::InFlight(handle),
            Ok((claim, handle)) => {
                let Compact { target, focus, .. } = how;
                let job = compaction::Job { cell, summarizer, trigger, target, focus };
                let (told, begun) = oneshot::channel();
                let task = inner.runtime.spawn(job.run(Arc::clone(inner), claim, held, told));
                handle.runs_as(task.abort_handle());
                match begun.await {
                    Ok(Some(outcome)) => outcome,
                    _ => Outcome::Started(handle),
                }
            }
        }
    }
}

/// Whether the thresholds decide.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum When {
    Due,
    Now,
}

impl Inner {
    /// What makes a compaction due, and who writes the summary; or the outcome
    /// where none is started.
    pub(super) async fn due(
        &self,
        cell: &Cell,
        when: When,
    ) -> Result<(Option<Trigger>, Arc<dyn Summarizer>), Outcome> {
        self.freshen(cell).await.map_err(Outcome::Unavailable)?;
        let look = |session: &mut Session| {
            let options = session.options();
            let enabled = self.config_of(&options).enabled;
            (enabled, self.exceeded(session), session.pause().cloned(), options)
        };
        let (enabled, (measured, trigger), pause, options) =
            self.with(cell, look).await.map_err(Outcome::Unavailable)?;
        if !enabled && when == When::Due {
            return Err(Outcome::Disabled);
        }
        let summarizer = self.summarizer_of(&options)?;
        if when == When::Now {
            return Ok((None, summarizer));
        }
        let Some(trigger) = trigger else {
            return Err(Outcome::BelowThreshold { measured });
        };
        match pause {
            Some(pause) if pause.holds(measured.tokens, (self.clock)()) => {
                let Pause { until, reason, .. } = pause;
                Err(Outcome::Paused { until, reason })
            }
            _ => Ok((Some(trigger), summarizer)),
        }
    }

    /// How large a session is, and the threshold that it is above.
    pub(super) fn exceeded(&self, session: &Session) -> (Measured, Option<Trigger>) {
        let (options, measured) = (session.options(), measured(session));
        let limits = limits(&self.config_of(&options), self.window(session));
        (measured, limits.exceeded_by(&measured))
    }
}

pub(super) fn limits(config: &SummarizationConfig, window: u64) -> Limits {
    Limits {
        messages: config.message_threshold.limit(),
        chars: config.threshold_chars.limit(),
        tokens: config.token_percent.limit().map(|percent| {
            let share = u128::from(window) * u128::from(percent) / 100;
            u64::try_from(share).unwrap_or(u64::MAX)
        }),
    }
}

pub(super) fn measured(session: &Session) -> Measured {
    Measured {
        messages: session.window_len() as u64,
        chars: session.window_size().chars,
        tokens: session.tokens().count(),
    }
}
