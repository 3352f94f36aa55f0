//! Tells sinks and subscribers what happens, without waiting for any of them.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};

use tokio::{
    runtime::Handle as Runtime,
    sync::{broadcast, mpsc, oneshot},
    task::spawn_blocking,
};

use super::{
    Forced, Inner, Report, SessionManager, cell::Cell, planned::Planned, trigger::measured,
};
use crate::{
    context::Context,
    event::{Event, EventKind, EventSink, EventStream},
    plan::Trigger,
    session::SessionKey,
    summarize::request::Clock,
};

impl SessionManager {
    /// Returns the events from now on, of all sessions. A subscriber that reads
    /// too slowly is told how many it missed.
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
    /// for n in 0..10 {
    ///     sessions.add_message("chat", Message::user(format!("question {n}"))).await?;
    /// }
    /// let _ = sessions.force_compression("chat").await?;
    ///
    /// let event = events.recv().await.unwrap().unwrap();
    /// assert!(matches!(event.kind, EventKind::Forced { messages: 5, .. }));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn subscribe(&self) -> EventStream {
        self.0.events.subscribe()
    }

    /// Returns how many events sinks have lost since the manager was built,
    /// because they were too slow or panicked; each sink counts by itself.
    #[must_use]
    pub fn events_lost(&self) -> u64 {
        self.0.events.0.lost.load(Ordering::Relaxed)
    }

    /// Waits until each sink is done with what it was sent so far: as long as
    /// they take.
    ///
    /// # Cancel safety
    ///
    /// A dropped future has lost nothing.
    pub async fn flush_events(&self) {
        for queue in &self.0.events.0.queues {
            let (done, is_done) = oneshot::channel();
            if queue.send(Told::Flush(done)).await.is_ok() {
                // An error: the runtime is going down, and the sink with it.
                let _ = is_done.await;
            }
        }
    }
}

/// Where events go. Clones are the same place.
#[derive(Clone, Debug)]
pub(super) struct Events(Arc<Listeners>);

#[derive(Debug)]
struct Listeners {
    clock: Clock,
    queues: Vec<mpsc::Sender<Told>>,
    capacity: usize,
    /// Made for the first subscriber.
    subscribers: OnceLock<broadcast::Sender<Event>>,
    lost: Arc<AtomicU64>,
}

/// What a sink's task is sent.
#[derive(Debug)]
enum Told {
    Event(Event),
    Flush(oneshot::Sender<()>),
}

impl Events {
    pub(super) fn new(
        runtime: &Runtime,
        sinks: Vec<Arc<dyn EventSink>>,
        capacity: usize,
        clock: Clock,
    ) -> Self {
        let lost = Arc::<AtomicU64>::default();
        let queues = sinks.into_iter().map(|sink| {
            let (queue, told) = mpsc::channel(capacity);
            runtime.spawn(tell(sink, told, Arc::clone(&lost)));
            queue
        });
        let queues = queues.collect();
        Self(Arc::new(Listeners { clock, queues, capacity, subscribers: OnceLock::new(), lost }))
    }

    fn subscribe(&self) -> EventStream {
        let subscribers =
            self.0.subscribers.get_or_init(|| broadcast::Sender::new(self.0.capacity));
        EventStream::new(subscribers.subscribe())
    }

    fn is_heard(&self) -> bool {
        let subscribers = || self.0.subscribers.get().is_some_and(|all| all.receiver_count() > 0);
        !self.0.queues.is_empty() || subscribers()
    }

    pub(super) fn emit(&self, key: &SessionKey, kind: impl FnOnce() -> EventKind) {
        if !self.is_heard() {
            return;
        }
        let event = Event::new(key.clone(), self.0.clock.unix_millis(), kind());
        for queue in &self.0.queues {
            if queue.try_send(Told::Event(event.clone())).is_err() {
                self.0.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
        if let Some(subscribers) = self.0.subscribers.get() {
            // An error: nobody subscribes any more.
            let _ = subscribers.send(event);
        }
    }

    /// Tells how a compaction ended, except where none was begun.
    pub(super) fn reported(&self, key: &SessionKey, report: &Report) {
        if matches!(report, Report::NotStarted(_) | Report::StillRunning(_)) {
            return;
        }
        self.emit(key, || match report {
            Report::Applied(done) => EventKind::Applied {
                messages_removed: done.messages_removed,
                chars_removed: done.chars_removed,
                tokens_before: done.tokens_before,
                tokens_after: done.tokens_after,
                summary_chars: done.summary_chars,
                summary_tokens: done.summary_tokens,
                usage: done.usage,
                latency: done.latency,
            },
            Report::Failed(error) => EventKind::Failed { why: error.name() },
            Report::NothingToGain { .. }
            | Report::Skipped(_)
            | Report::NotStarted(_)
            | Report::StillRunning(_) => EventKind::NoProgress,
            Report::Rejected { why } => EventKind::Rejected { why: why.name() },
            Report::Stale => EventKind::Stale,
            Report::Unavailable(_) => EventKind::Failed { why: "store" },
        });
    }

    /// Tells what became of a summary that the host wrote.
    pub(super) fn applied_by_host(&self, key: &str, report: &Report) {
        if matches!(report, Report::Skipped(_)) || !self.is_heard() {
            return;
        }
        // What is no key names no session.
        if let Ok(key) = SessionKey::new(key) {
            self.reported(&key, report);
        }
    }

    pub(super) fn started(&self, key: &SessionKey, planned: &Planned) {
        self.emit(key, || EventKind::Started {
            messages: planned.split.replaced.len() as u64,
            chars: planned.replaced.chars,
        });
    }

    pub(super) fn forced(&self, key: &SessionKey, forced: &Forced) {
        if let Forced::Dropped { messages, tokens_before, tokens_after, .. } = *forced {
            self.emit(key, || EventKind::Forced { messages, tokens_before, tokens_after });
        }
    }
}

impl Inner {
    /// Tells that a compaction is begun, and first that a pause is over.
    pub(super) fn begun(&self, cell: &Cell, trigger: Option<Trigger>) {
        if let Some(trigger) = trigger {
            self.tell_pause(cell);
            self.events.emit(&cell.key, || EventKind::Triggered { trigger });
        }
    }

    /// Tells how a compaction ended, then what that means for the next one. A
    /// host that asked where no cut helps has its report.
    pub(super) fn ended(&self, cell: &Cell, trigger: Option<Trigger>, report: &Report) {
        if trigger.is_some() || !matches!(report, Report::Skipped(_)) {
            self.events.reported(&cell.key, report);
        }
        self.tell_pause(cell);
    }

    /// Tells whether a session is paused, where that is news.
    pub(super) fn tell_pause(&self, cell: &Cell) {
        if !self.events.is_heard() {
            return;
        }
        let (pause, tokens) = {
            let session = cell.lock();
            (session.pause().cloned(), measured(&session).tokens)
        };
        let pause = pause.filter(|pause| pause.holds(tokens, (self.clock)()));
        let was_paused =
            cell.count(|counted| std::mem::replace(&mut counted.paused, pause.is_some()));
        match pause {
            Some(pause) if !was_paused => self.events.emit(&cell.key, || EventKind::Paused {
                until: pause.until,
                failures: pause.failures,
            }),
            None if was_paused => self.events.emit(&cell.key, || EventKind::Resumed),
            _ => {}
        }
    }

    /// Counts the messages that a context had to heal, and tells of new ones.
    pub(super) fn healed(&self, cell: &Cell, context: &Context) {
        let count = cell.count(|counted| {
            let before = counted.healed.len();
            counted.healed.extend(context.repaired());
            (counted.healed.len() - before) as u64
        });
        if count > 0 {
            self.events.emit(&cell.key, || EventKind::Healed { count });
        }
    }
}

/// Hands events to one sink until the manager is gone.
async fn tell(sink: Arc<dyn EventSink>, mut told: mpsc::Receiver<Told>, lost: Arc<AtomicU64>) {
    while let Some(told) = told.recv().await {
        match told {
            Told::Event(event) => {
                let sink = Arc::clone(&sink);
                // A thread of its own: a sink that blocks or panics harms it alone.
                if spawn_blocking(move || sink.event(&event)).await.is_err() {
                    lost.fetch_add(1, Ordering::Relaxed);
                }
            }
            Told::Flush(done) => {
                // An error: who asked no longer waits.
                let _ = done.send(());
            }
        }
    }
}
