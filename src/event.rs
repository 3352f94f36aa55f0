//! What happens to sessions, as it is told while it happens.

use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::broadcast::{Receiver, error::RecvError};

use crate::{
    plan::Trigger,
    session::{PauseUntil, SessionKey},
    usage::TokenUsage,
};

/// Something that happened to a session. Holds names and figures, never the
/// text of a message, a summary or an error.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{EventKind, Message, SessionManager};
///
/// let sessions = SessionManager::builder().build()?;
/// let mut events = sessions.subscribe();
/// for n in 0..6 {
///     sessions.add_message("chat", Message::user(format!("question {n}"))).await?;
/// }
/// let _ = sessions.force_compression("chat").await?;
/// let event = events.recv().await.unwrap().unwrap();
/// assert!(matches!(event.kind, EventKind::Forced { .. }));
/// assert_eq!(&*event.session, "chat");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// The session that it happened to.
    pub session: SessionKey,
    /// When, in milliseconds since 1970, by the manager's clock.
    pub unix_millis: u64,
    /// What happened.
    pub kind: EventKind,
}

impl Event {
    pub(crate) const fn new(session: SessionKey, unix_millis: u64, kind: EventKind) -> Self {
        Self { session, unix_millis, kind }
    }
}

/// What happened to a session.
///
/// A compaction that the thresholds ask for begins with `Triggered`; one that
/// asks its summarizer goes on with `Started`; both end with one of `Applied`,
/// `Failed`, `NoProgress`, `Rejected` and `Stale`.
///
/// # Example
///
/// ```
/// use session_compaction::EventKind;
///
/// assert_eq!(EventKind::Stale.name(), "stale");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// A summary stands for the replaced messages.
    #[non_exhaustive]
    Applied {
        /// How many messages the summary newly stands for.
        messages_removed: u64,
        /// How many characters they had.
        chars_removed: u64,
        /// Estimated tokens of history and summary before.
        tokens_before: u64,
        /// And after.
        tokens_after: u64,
        /// Characters of the summary.
        summary_chars: u64,
        /// Its tokens, fence included.
        summary_tokens: u64,
        /// What the summarizer used, where it said so.
        usage: Option<TokenUsage>,
        /// How long it took.
        latency: Duration,
    },
    /// The summarizer gave no answer, or the store failed.
    #[non_exhaustive]
    Failed {
        /// One word of why: `cancelled`, `panicked`, `store`, `timed_out`,
        /// `too_long`, `transient` or `other`.
        why: &'static str,
    },
    /// The older half of the history was dropped without a summary.
    #[non_exhaustive]
    Forced {
        /// How many messages were dropped.
        messages: u64,
        /// Estimated tokens of history and summary before.
        tokens_before: u64,
        /// And after.
        tokens_after: u64,
    },
    /// Messages were healed on their way to a model. Told once a message,
    /// however often a context is built.
    #[non_exhaustive]
    Healed {
        /// How many messages.
        count: u64,
    },
    /// No cut helps, so nothing was paid; or, after `Started`, the answer was
    /// not smaller than what it would have replaced.
    NoProgress,
    /// No compaction is tried for now.
    #[non_exhaustive]
    Paused {
        /// When the pause ends.
        until: PauseUntil,
        /// How many attempts in a row have failed.
        failures: u32,
    },
    /// The answer was no summary.
    #[non_exhaustive]
    Rejected {
        /// One word of why: `empty`, `refused` or `unusable`.
        why: &'static str,
    },
    /// A pause is over: a compaction is begun again, or was not needed.
    Resumed,
    /// The session was rewritten, cleared or removed meanwhile.
    Stale,
    /// The summarizer is asked.
    #[non_exhaustive]
    Started {
        /// How many messages it is to replace.
        messages: u64,
        /// How many characters they have.
        chars: u64,
    },
    /// A session came to be above a threshold.
    #[non_exhaustive]
    Triggered {
        /// Which, and by how much.
        trigger: Trigger,
    },
    /// The last compaction was taken back.
    #[non_exhaustive]
    Undone {
        /// How many messages it had replaced.
        messages: u64,
    },
}

impl EventKind {
    /// Returns the name of the kind, for logs and metrics.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Applied { .. } => "applied",
            Self::Failed { .. } => "failed",
            Self::Forced { .. } => "forced",
            Self::Healed { .. } => "healed",
            Self::NoProgress => "no_progress",
            Self::Paused { .. } => "paused",
            Self::Rejected { .. } => "rejected",
            Self::Resumed => "resumed",
            Self::Stale => "stale",
            Self::Started { .. } => "started",
            Self::Triggered { .. } => "triggered",
            Self::Undone { .. } => "undone",
        }
    }
}

/// Is told what happens to sessions.
///
/// # Contract
///
/// - Events come one at a time, in the order in which they happened, on a
///   thread that may block.
/// - A call that is slow holds up no session. What then finds the queue full
///   is lost to this sink and counted by
///   [`SessionManager::events_lost`](crate::SessionManager::events_lost).
/// - A call that panics counts as a lost event; the next event is told again.
/// - A sink that holds the [`SessionManager`](crate::SessionManager) keeps it
///   alive.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Event, EventSink, ExtractiveSummarizer, SessionManager};
///
/// #[derive(Debug)]
/// struct Print;
///
/// impl EventSink for Print {
///     fn event(&self, event: &Event) {
///         println!("{}: {}", event.session.escape_debug(), event.kind.name());
///     }
/// }
///
/// let sessions = SessionManager::builder()
///     .summarizer(ExtractiveSummarizer::default())
///     .event_sink(Print)
///     .build()?;
/// # Ok(())
/// # }
/// ```
pub trait EventSink: fmt::Debug + Send + Sync + 'static {
    /// Is called once for each event.
    fn event(&self, event: &Event);
}

const _: fn(&dyn EventSink) = |_| {};

impl<S: EventSink + ?Sized> EventSink for Arc<S> {
    fn event(&self, event: &Event) {
        (**self).event(event);
    }
}

/// Does nothing with events.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{NoEvents, SessionManager};
///
/// let sessions = SessionManager::builder().event_sink(NoEvents).build()?;
/// assert_eq!(sessions.events_lost(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct NoEvents;

impl EventSink for NoEvents {
    fn event(&self, _: &Event) {}
}

/// The events of a manager from the moment of
/// [`SessionManager::subscribe`](crate::SessionManager::subscribe) on.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Message, SessionManager};
///
/// let sessions = SessionManager::builder().build()?;
/// let mut events = sessions.subscribe();
/// drop(sessions);
/// assert!(events.recv().await.is_none(), "the manager is gone");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct EventStream(Receiver<Event>);

impl EventStream {
    pub(crate) const fn new(events: Receiver<Event>) -> Self {
        Self(events)
    }

    /// Waits for the next event; `None` once the manager and its compactions
    /// are gone.
    ///
    /// # Errors
    ///
    /// [`Lagged`] where events came faster than they were read. The next call
    /// goes on with the oldest that is left.
    ///
    /// # Cancel safety
    ///
    /// A dropped future has taken no event.
    pub async fn recv(&mut self) -> Option<Result<Event, Lagged>> {
        match self.0.recv().await {
            Ok(event) => Some(Ok(event)),
            Err(RecvError::Closed) => None,
            Err(RecvError::Lagged(missed)) => Some(Err(Lagged { missed })),
        }
    }
}

/// A subscriber read too slowly.
///
/// # Example
///
/// ```
/// use session_compaction::Lagged;
///
/// fn warn(lagged: &Lagged) -> String {
///     format!("{} events were missed", lagged.missed)
/// }
/// # let _ = warn;
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{missed} events were missed, since they came faster than they were read")]
#[non_exhaustive]
pub struct Lagged {
    /// How many events it missed.
    pub missed: u64,
}
