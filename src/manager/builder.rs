//! Puts a manager together.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, atomic::AtomicU64},
    time::{Duration, SystemTime},
};

use dashmap::DashMap;
use tokio::runtime::Handle as Runtime;
use ulid::Ulid;

use super::{Consistency, Inner, RunIn, SessionManager, claim::Claims, events::Events, lease};
use crate::{
    config::SummarizationConfig,
    error::{Error, Result},
    event::EventSink,
    store::{MemoryStore, SessionStore},
    summarize::{Redactor, SecretPatterns, Summarizer, request::Clock},
    tokens::{ByteEstimate, CharsPerToken, TokenCounter},
    usage::Prices,
};

/// Builds a [`SessionManager`].
///
/// # Default
///
/// - store: [`MemoryStore::new`]
/// - configuration: [`SummarizationConfig::default`]
/// - summarizer: none; [`SessionManager::maybe_summarize`] then does nothing
/// - token counter: [`CharsPerToken`] where `chars_per_token` is configured,
///   else [`ByteEstimate`]
/// - redactor: [`SecretPatterns`]
/// - event sinks: none; 1,024 events wait for each sink and subscriber
/// - lease: 30 seconds, where the store hands out leases
/// - runtime: the one that [`build`](Self::build) is called in
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{ExtractiveSummarizer, SessionManager, SummarizationConfig};
///
/// let sessions = SessionManager::builder()
///     .summarizer(ExtractiveSummarizer::default())
///     .config(SummarizationConfig::for_model("gpt-5"))
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct SessionManagerBuilder {
    store: Option<Arc<dyn SessionStore>>,
    summarizer: Option<Arc<dyn Summarizer>>,
    named: BTreeMap<String, Arc<dyn Summarizer>>,
    config: SummarizationConfig,
    counter: Option<Arc<dyn TokenCounter>>,
    clock: Option<Arc<dyn Fn() -> SystemTime + Send + Sync>>,
    runtime: Option<Runtime>,
    redactor: Option<Arc<dyn Redactor>>,
    sinks: Vec<Arc<dyn EventSink>>,
    event_queue: usize,
    max_cached: usize,
    consistency: Option<Consistency>,
    run_in: RunIn,
    holder: Option<String>,
    lease_ttl: Duration,
    prices: Prices,
}

impl SessionManagerBuilder {
    /// Sets where sessions are kept.
    pub fn store(self, store: impl SessionStore) -> Self {
        self.shared_store(Arc::new(store))
    }

    /// Sets where sessions are kept, for a store that others hold as well.
    pub fn shared_store(mut self, store: Arc<dyn SessionStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// Sets what writes summaries.
    pub fn summarizer(mut self, summarizer: impl Summarizer) -> Self {
        self.summarizer = Some(Arc::new(summarizer));
        self
    }

    /// Adds a summarizer that sessions can be
    /// [configured](SessionManager::configure) to use by this name; the others
    /// use the one that [`summarizer`](Self::summarizer) sets.
    ///
    /// # Example
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> session_compaction::Result<()> {
    /// use session_compaction::{ExtractiveSummarizer, SessionManager, SessionOptions};
    ///
    /// let sessions = SessionManager::builder()
    ///     .summarizer_named("cheap", ExtractiveSummarizer::default())
    ///     .build()?;
    /// sessions.configure("chat", SessionOptions::new().summarizer("cheap")).await?;
    /// let unknown = sessions.configure("chat", SessionOptions::new().summarizer("best")).await;
    /// assert!(unknown.unwrap_err().is_config());
    /// # Ok(())
    /// # }
    /// ```
    pub fn summarizer_named(
        mut self,
        name: impl Into<String>,
        summarizer: impl Summarizer,
    ) -> Self {
        self.named.insert(name.into(), Arc::new(summarizer));
        self
    }

    /// Sets the configuration. Zeros in it mean the default.
    pub fn config(mut self, config: SummarizationConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets what counts tokens.
    pub fn token_counter(mut self, counter: impl TokenCounter) -> Self {
        self.counter = Some(Arc::new(counter));
        self
    }

    /// Sets what takes secrets out of every summary before it is stored, and out
    /// of what is said of failures. What a summarizer is given is its own
    /// affair: [`LlmSummarizer`](crate::LlmSummarizer) redacts its requests, a
    /// closure sees the messages as they are.
    pub fn redactor(mut self, redactor: impl Redactor) -> Self {
        self.redactor = Some(Arc::new(redactor));
        self
    }

    /// Stores summaries as they were written.
    pub fn without_redactor(mut self) -> Self {
        self.redactor = None;
        self
    }

    /// Adds what is told of every event. Each sink has a queue and a task of
    /// its own, so none can hold up a session or another sink.
    pub fn event_sink(mut self, sink: impl EventSink) -> Self {
        self.sinks.push(Arc::new(sink));
        self
    }

    /// Sets how many events may wait for each sink and each subscriber: 1 to
    /// 65,536; for subscribers rounded up to a power of two.
    pub fn event_queue(mut self, events: usize) -> Self {
        self.event_queue = events.clamp(1, 65_536);
        self
    }

    /// Sets how many sessions stay in memory; 10,000 unless this is called, at
    /// least 1. Those that were not used for the longest time go first and are
    /// read from the store again when they are used; one that a task, a turn
    /// or a handle holds stays.
    pub fn max_cached_sessions(mut self, sessions: usize) -> Self {
        self.max_cached = sessions.max(1);
        self
    }

    /// Sets how the manager sees what other processes write. Without it, that
    /// is [`Consistency::Latest`] where the store is
    /// [shared](SessionStore::is_shared).
    pub fn consistency(mut self, consistency: Consistency) -> Self {
        self.consistency = Some(consistency);
        self
    }

    /// Sets where due compactions run; here, unless this is called.
    pub fn run_in(mut self, place: RunIn) -> Self {
        self.run_in = place;
        self
    }

    /// Sets the name under which this manager holds leases, for people who
    /// look into the store; the process id and a random text unless this is
    /// called.
    pub fn holder(mut self, name: impl Into<String>) -> Self {
        self.holder = Some(name.into());
        self
    }

    /// Sets for how long a session is leased that this manager compacts; 30
    /// seconds unless this is called. The lease is renewed three times as often
    /// while the summary is written, so that only a process that has died, or
    /// stands still for as long, loses it: then another one takes the session
    /// up, and what this one still brings is stale.
    ///
    /// At least a second; [`build`](Self::build) says so where it is less.
    ///
    /// # Example
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// use std::time::Duration;
    /// use session_compaction::SessionManager;
    ///
    /// let sessions = SessionManager::builder().lease_ttl(Duration::from_secs(10)).build();
    /// assert!(sessions.is_ok());
    /// let refused = SessionManager::builder().lease_ttl(Duration::from_millis(10)).build();
    /// assert!(refused.err().unwrap().is_config());
    /// # }
    /// ```
    pub fn lease_ttl(mut self, ttl: Duration) -> Self {
        self.lease_ttl = ttl;
        self
    }

    /// Sets what models cost, so that usage events say what was paid.
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = prices;
        self
    }

    /// Sets what tells the time, for tests.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// Sets the runtime that compactions run on.
    pub fn runtime(mut self, runtime: Runtime) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Builds the manager.
    ///
    /// # Errors
    ///
    /// [`Error::is_config`] where values of the configuration contradict each
    /// other, [`Error::is_no_runtime`] outside of a tokio runtime where none
    /// was [set](Self::runtime).
    pub fn build(self) -> Result<SessionManager> {
        self.config.check()?;
        if self.lease_ttl < lease::SHORTEST_TTL {
            let problem = format!(
                "a lease of {:?} would be lost to a slow answer of the store; set at least {:?}",
                self.lease_ttl,
                lease::SHORTEST_TTL
            );
            return Err(Error::config("SessionManagerBuilder", "lease_ttl", problem));
        }
        let config = self.config.with_defaults();
        let runtime = match self.runtime {
            Some(runtime) => runtime,
            None => Runtime::try_current().map_err(|_| Error::no_runtime())?,
        };
        let counter = self.counter.unwrap_or_else(|| {
            match config.chars_per_token.and_then(CharsPerToken::new) {
                Some(chars) => Arc::new(chars),
                None => Arc::new(ByteEstimate::default()),
            }
        });
        let clock = self.clock.unwrap_or_else(|| Arc::new(SystemTime::now));
        let told_at = Clock::new(Arc::clone(&clock));
        let events = Events::new(&runtime, self.sinks, self.event_queue, told_at);
        let store = self.store.unwrap_or_else(|| Arc::new(MemoryStore::new()));
        let consistency = self.consistency.unwrap_or(if store.is_shared() {
            Consistency::Latest
        } else {
            Consistency::Cached
        });
        Ok(SessionManager(Arc::new(Inner {
            store,
            summarizer: self.summarizer,
            named: self.named,
            config,
            counter,
            clock,
            runtime,
            redactor: self.redactor,
            cells: DashMap::new(),
            max_cells: self.max_cached,
            uses: AtomicU64::new(0),
            consistency,
            run_in: self.run_in,
            holder: self
                .holder
                .unwrap_or_else(|| format!("{}-{}", std::process::id(), Ulid::new())),
            lease_ttl: self.lease_ttl,
            claims: Claims::new(events.clone()),
            events,
            prices: self.prices,
        })))
    }
}

impl Default for SessionManagerBuilder {
    fn default() -> Self {
        Self {
            store: None,
            summarizer: None,
            named: BTreeMap::new(),
            config: SummarizationConfig::default(),
            counter: None,
            clock: None,
            runtime: None,
            redactor: Some(Arc::new(SecretPatterns)),
            sinks: Vec::new(),
            event_queue: 1_024,
            max_cached: 10_000,
            consistency: None,
            run_in: RunIn::Here,
            holder: None,
            lease_ttl: lease::USUAL_TTL,
            prices: Prices::new(),
        }
    }
}

impl fmt::Debug for SessionManagerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionManagerBuilder")
            .field("store", &self.store)
            .field("summarizer", &self.summarizer)
            .field("named", &self.named)
            .field("config", &self.config)
            .field("counter", &self.counter)
            .field("redactor", &self.redactor)
            .field("sinks", &self.sinks)
            .finish_non_exhaustive()
    }
}
