//! Many sessions at once: the calls that an agent runtime makes.

mod accounting;
mod append;
mod builder;
mod cell;
mod claim;
mod compact;
mod compaction;
mod context;
mod detached;
mod events;
mod evict;
mod force;
mod fresh;
#[cfg(feature = "testing")]
mod idle;
mod lease;
mod list;
mod log;
mod options;
mod outcome;
mod pin;
mod planned;
mod prepare;
mod preview;
mod rewind;
mod rewrite;
mod shutdown;
mod stats;
mod transfer;
mod trigger;
mod turn;
mod undo;
mod usage;
mod view;
mod worker;

use std::{
    collections::BTreeMap,
    fmt,
    ops::Range,
    sync::{Arc, atomic::AtomicU64},
    time::{Duration, SystemTime},
};

use dashmap::DashMap;
use tokio::runtime::Handle as Runtime;

pub use self::{
    append::Appended,
    builder::SessionManagerBuilder,
    claim::CompactionHandle,
    compact::Compact,
    force::Forced,
    fresh::Consistency,
    list::{Compacted, compact_messages},
    outcome::{Compaction, Outcome, Report},
    prepare::Prepare,
    preview::{Preview, PreviewedCut},
    rewind::To,
    shutdown::Shutdown,
    transfer::RemovedScope,
    turn::Turn,
    usage::SessionStats,
    worker::{RunIn, Worker},
};
use self::{cell::Cell, claim::Claims, events::Events};
use crate::{
    config::SummarizationConfig,
    error::Result,
    session::{SessionKey, Snapshot, SnapshotMark},
    store::{ListPage, SessionStore, StoredMessage},
    summarize::{Redactor, Summarizer},
    tokens::TokenCounter,
    usage::Prices,
};

/// Keeps the histories of many sessions and compacts them.
///
/// Cheap to clone; all clones are one manager. Keys that were never used read
/// as empty sessions, never as an error.
///
/// # Errors
///
/// Every method that takes a key fails with
/// [`Error::is_key`](crate::Error::is_key) where it is empty or longer than
/// 1,024 bytes, and with [`Error::is_store`](crate::Error::is_store) where the
/// store fails.
///
/// # Cancel safety
///
/// Every future may be dropped at any moment. A write that the store has begun
/// is completed all the same, in the background, and memory learns of it.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Message, SessionManager};
///
/// let sessions = SessionManager::builder().build()?;
/// sessions.add_message("telegram:42", Message::user("Is the disk full?")).await?;
/// sessions.add_message("telegram:42", Message::assistant("42% used.")).await?;
///
/// assert_eq!(sessions.history("telegram:42").await?.len(), 2);
/// assert!(sessions.history("never seen").await?.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SessionManager(Arc<Inner>);

struct Inner {
    store: Arc<dyn SessionStore>,
    summarizer: Option<Arc<dyn Summarizer>>,
    /// Those that a session's options can name.
    named: BTreeMap<String, Arc<dyn Summarizer>>,
    config: SummarizationConfig,
    counter: Arc<dyn TokenCounter>,
    clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    runtime: Runtime,
    redactor: Option<Arc<dyn Redactor>>,
    cells: DashMap<SessionKey, Arc<Cell>>,
    /// At most so many of them.
    max_cells: usize,
    /// Counts uses of cells, so that the oldest can be told.
    uses: AtomicU64,
    consistency: Consistency,
    run_in: RunIn,
    /// The name of this process in leases.
    holder: String,
    lease_ttl: Duration,
    claims: Claims,
    events: Events,
    prices: Prices,
}

impl SessionManager {
    /// Returns a builder. Without further calls it builds a manager in memory
    /// with the default configuration and no summarizer.
    pub fn builder() -> SessionManagerBuilder {
        SessionManagerBuilder::default()
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &SummarizationConfig {
        &self.0.config
    }

    /// Returns what a session sends: the carried messages and the window.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`].
    pub async fn history(&self, key: &str) -> Result<Snapshot> {
        self.0.snapshot(&SessionKey::new(key)?).await
    }

    /// Returns the mark that names what a session holds now, for
    /// [`SessionManager::apply_summarization`].
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`].
    pub async fn snapshot(&self, key: &str) -> Result<SnapshotMark> {
        Ok(self.history(key).await?.mark())
    }

    /// Returns the summary of what came before the history.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`].
    pub async fn summary(&self, key: &str) -> Result<Option<String>> {
        Ok(self.history(key).await?.summary().map(|summary| summary.text.clone()))
    }

    /// Returns the messages at these positions of the transcript, also those
    /// that a summary stands for. Positions that hold nothing are left out.
    ///
    /// # Errors
    ///
    /// [`Error::is_unsupported`](crate::Error::is_unsupported) where the store
    /// does not keep transcripts, as a plain [`MemoryStore`](crate::MemoryStore).
    pub async fn transcript(&self, key: &str, positions: Range<u64>) -> Result<Vec<StoredMessage>> {
        let key = SessionKey::new(key)?;
        self.0.archive()?.transcript(&key, positions).await
    }

    /// Returns the keys of stored sessions in the order of their bytes.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`].
    pub async fn list_sessions(&self, page: ListPage) -> Result<Vec<SessionKey>> {
        self.0.store.list(page).await
    }
}

impl fmt::Debug for SessionManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionManager")
            .field("store", &self.0.store)
            .field("summarizer", &self.0.summarizer)
            .field("named", &self.0.named)
            .field("config", &self.0.config)
            .field("counter", &self.0.counter)
            .field("redactor", &self.0.redactor)
            .finish_non_exhaustive()
    }
}

const _: fn() = || {
    fn shared<T: Clone + Send + Sync + 'static>() {}
    shared::<SessionManager>();
};
