//! What the model calls of one compaction came to, whatever became of them.

use std::sync::{Mutex, PoisonError};

use crate::usage::TokenUsage;

/// Shared by all parts of one compaction.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Calls>);

/// Calls of a model for one compaction.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Calls {
    /// How often a model was asked.
    pub(crate) attempts: u32,
    /// What the answers used, those included that were no summary.
    pub(crate) usage: Option<TokenUsage>,
    /// The model that was asked last.
    pub(crate) model: String,
    /// Whether the one more try of this compaction is spent.
    retried: bool,
}

impl Ledger {
    fn change<T>(&self, change: impl FnOnce(&mut Calls) -> T) -> T {
        // Whole between any two changes, none of which panics.
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn calls(&self) -> Calls {
        self.change(|calls| calls.clone())
    }

    pub(super) fn asked(&self, model: &str) {
        self.change(|calls| {
            calls.attempts = calls.attempts.saturating_add(1);
            model.clone_into(&mut calls.model);
        });
    }

    pub(super) fn used(&self, usage: TokenUsage) {
        self.change(|calls| calls.usage = Some(calls.usage.unwrap_or_default() + usage));
    }

    /// Returns true the first time.
    pub(super) fn take_retry(&self) -> bool {
        self.change(|calls| !std::mem::replace(&mut calls.retried, true))
    }
}
