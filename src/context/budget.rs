//! Where the tokens of a context window go.

use super::Context;
use crate::{
    message::structure::Structure,
    session::{Overhead, Snapshot},
    tokens::Tokens,
};

/// How a session's context window is used, in tokens.
///
/// What a host adds to its requests is that of the last one; before the first
/// request it is nothing.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Message, Request, SessionManager};
///
/// let sessions = SessionManager::builder().build()?; // 8192 tokens, unless configured
/// sessions.add_message("chat", Message::user("Is the disk full?")).await?;
/// sessions.context("chat", &Request::new().system("Be brief.").max_output(1_000)).await?;
///
/// let budget = sessions.budget("chat").await?;
/// assert_eq!((budget.reserve, budget.summary), (1_000, 0));
/// assert!(budget.system > 0 && budget.window > budget.system);
/// assert!(budget.free > 7_000 && budget.free < 7_192);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Budget {
    /// The system prompt of the last request. Stored system messages that are
    /// sent count as carried, or as part of the window.
    pub system: u64,
    /// The summary, its fence included.
    pub summary: u64,
    /// The messages below the cut that are sent word for word.
    pub carried: u64,
    /// The messages from the cut on.
    pub window: u64,
    /// The tools of the last request.
    pub tools: u64,
    /// What is kept free for the answer: what the last request said, or the
    /// configuration.
    pub reserve: u64,
    /// What is left of the context window. Where the provider has counted more
    /// than the estimate, its count goes before.
    pub free: u64,
}

/// What was done so that a context fits, in the order in which it was done.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Message, Request, SessionManager, SessionOptions, Step};
///
/// let sessions = SessionManager::builder().build()?; // without a summarizer
/// sessions.configure("chat", SessionOptions::new().context_window(100)).await?;
/// for n in 0..10 {
///     sessions.add_message("chat", Message::user(format!("What is order {n} about?"))).await?;
///     sessions.add_message("chat", Message::assistant("It is about screws.")).await?;
/// }
/// let context = sessions.prepare("chat", &Request::new()).await?;
/// assert!(context.fits());
/// assert!(matches!(context.steps(), [Step::NotCompacted { .. }, Step::Forced { .. }, ..]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// A compaction was waited for, and applied.
    Compacted {
        /// Tokens of history and summary before.
        tokens_before: u64,
        /// And after.
        tokens_after: u64,
    },
    /// The older half of the history was dropped, as by
    /// [`force_compression`](crate::SessionManager::force_compression).
    Forced {
        /// How many messages that were.
        messages: u64,
    },
    /// No compaction was applied in time.
    NotCompacted {
        /// Why.
        reason: String,
    },
    /// Old, large tool results are sent as markers.
    Pruned {
        /// Tokens of the context before.
        tokens_before: u64,
        /// And after.
        tokens_after: u64,
    },
}

/// What a context may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// The context window, in tokens.
    pub(crate) window: u64,
    /// What is kept free for the answer, where the request does not say.
    pub(crate) reserve: u64,
    /// How many more tokens than the estimate the provider has counted.
    pub(crate) excess: Tokens,
}

impl Room {
    pub(super) const UNBOUNDED: Self = Self { window: u64::MAX, reserve: 0, excess: Tokens::ZERO };
}

/// What must be sent whatever is summarized, pruned or dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Least {
    pub(crate) tokens: Tokens,
    /// The largest message of it.
    pub(crate) largest: Tokens,
}

impl Context {
    /// Says what it may take.
    pub(crate) const fn in_room(mut self, room: Room) -> Self {
        self.room = room;
        self
    }

    /// Says what was done so that it fits.
    pub(crate) fn after(mut self, steps: Vec<Step>) -> Self {
        self.steps = steps;
        self
    }

    /// Returns the sizes of what the request adds.
    pub(crate) fn overhead(&self) -> Overhead {
        Overhead { reserve: Tokens::from_tokens(self.reserve()), ..self.overhead }
    }

    /// Returns true where a request of this context fits: its tokens, and what
    /// is kept free for the answer (the request's
    /// [`max_output`](crate::Request::max_output), or else the configuration's
    /// `output_reserve`), are not more than the session's context window.
    ///
    /// Where the provider has counted more tokens than the estimate since the
    /// last compaction, so much is added.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.takes() <= self.room.window
    }

    /// Returns what was done so that it fits; nothing unless it comes from
    /// [`prepare`](crate::SessionManager::prepare) or a turn.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// What it takes of the window, the answer included.
    pub(crate) fn takes(&self) -> u64 {
        (self.tokens + self.room.excess).count().saturating_add(self.reserve())
    }

    pub(crate) fn reserve(&self) -> u64 {
        self.request.max_output.unwrap_or(self.room.reserve)
    }

    pub(crate) const fn window(&self) -> u64 {
        self.room.window
    }

    /// Weighs what no step can take away: what the request adds, system and
    /// pinned messages, the newest user message, and what came last. `sent` is
    /// the history that is sent, pruned as far as it can be.
    pub(crate) fn least(&self, sent: &Snapshot) -> Least {
        let messages = sent.to_vec();
        let structure = Structure::of_history(&messages, sent.carried());
        let last = messages.len().checked_sub(1).map(|last| structure.unit(last));
        let newest = structure.turn_starts().last().copied();
        let leading = self.healed.system.len();
        let replaced = if self.request.system.is_some() { leading } else { 0 };
        let must = sent.entries().enumerate().skip(replaced).filter(|(index, entry)| {
            let message = &entry.message;
            newest == Some(*index)
                || last.as_ref().is_some_and(|last| last.contains(index))
                || message.role().is_system()
                || sent.is_pinned(entry)
        });
        let sizes = must.map(|(_, entry)| entry.size.tokens);
        let Overhead { system, tools, .. } = self.overhead;
        let added = Least { tokens: system + tools + self.notes, largest: Tokens::ZERO };
        sizes.fold(added, |sum, size| Least {
            tokens: sum.tokens + size,
            largest: sum.largest.max(size),
        })
    }
}
