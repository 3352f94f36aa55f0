//! Is a compaction due? Then start it.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Inner, Outcome, RunIn, SessionManager, cell::Cell, compaction, lease::Held};
use crate::{
    config,
    error::Result,
    plan::{Limits, Measured, Trigger},
    session::{Pause, Session, SessionKey, SessionOptions},
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
        self.start(key, When::Due, None, None).await
    }

    pub(super) async fn start(
        &self,
        key: &str,
        when: When,
        target: Option<u64>,
        held: Option<Held>,
    ) -> Outcome {
        let inner = &self.0;
        if !inner.config.enabled && when == When::Due {
            return Outcome::Disabled;
        }
        let Some(summarizer) = inner.summarizer.clone() else { return Outcome::NoSummarizer };
        if inner.claims.are_closed() {
            return Outcome::ShuttingDown;
        }
        let key = match SessionKey::new(key) {
            Ok(key) => key,
            Err(error) => return Outcome::Unavailable(error),
        };
        let cell = inner.cell(&key);
        let trigger = match inner.due(&cell, when).await {
            Ok(trigger) => trigger,
            Err(outcome) => {
                inner.release(cell);
                return outcome;
            }
        };
        if inner.run_in == RunIn::Elsewhere && when == When::Due && held.is_none() {
            return inner.defer(&key).await;
        }
        match inner.claims.claim(&key, trigger) {
            Err(handle) => Outcome::InFlight(handle),
            Ok((claim, handle)) => {
                let job = compaction::Job { cell, summarizer, trigger, target };
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
    /// What makes a compaction due, or the outcome where none is started.
    async fn due(&self, cell: &Cell, when: When) -> Result<Option<Trigger>, Outcome> {
        self.freshen(cell).await.map_err(Outcome::Unavailable)?;
        let look = |session: &mut Session| {
            (measured(session), self.window(session), session.pause().cloned())
        };
        let (measured, window, pause) =
            self.with(cell, look).await.map_err(Outcome::Unavailable)?;
        if when == When::Now {
            return Ok(None);
        }
        let Some(trigger) = self.limits(window).exceeded_by(&measured) else {
            return Err(Outcome::BelowThreshold { measured });
        };
        match pause {
            Some(pause) if pause.holds(measured.tokens, (self.clock)()) => {
                let Pause { until, reason, .. } = pause;
                Err(Outcome::Paused { until, reason })
            }
            _ => Ok(Some(trigger)),
        }
    }

    pub(super) fn limits(&self, window: u64) -> Limits {
        let config = &self.config;
        Limits {
            messages: config.message_threshold.limit(),
            chars: config.threshold_chars.limit(),
            tokens: config.token_percent.limit().map(|percent| {
                let share = u128::from(window) * u128::from(percent) / 100;
                u64::try_from(share).unwrap_or(u64::MAX)
            }),
        }
    }

    /// The limits of a session with these options.
    pub(super) fn limits_with(&self, options: &SessionOptions) -> Limits {
        self.limits(own_window(options).unwrap_or(self.config.context_window))
    }

    /// Returns the context window of a session in tokens: its own, that of its
    /// model, or the configured one; less where a provider has refused so much.
    pub(super) fn window(&self, session: &Session) -> u64 {
        let window = own_window(&session.options()).unwrap_or(self.config.context_window);
        session.ceiling().map_or(window, |ceiling| window.min(ceiling))
    }
}

/// The context window that options name, by itself or by their model.
fn own_window(options: &SessionOptions) -> Option<u64> {
    options.context_window.or_else(|| config::context_window(options.model.as_deref()?))
}

pub(super) fn measured(session: &Session) -> Measured {
    Measured {
        messages: session.window_len() as u64,
        chars: session.window_size().chars,
        tokens: session.tokens().count(),
    }
}
