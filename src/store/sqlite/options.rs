//! How a SQLite store works.

use std::{fmt, sync::Arc, time::Duration, time::SystemTime};

use crate::store::Retention;

/// How a [`SqliteStore`](crate::SqliteStore) works.
///
/// # Default
///
/// - `synchronous`: [`Synchronous::Full`]
/// - `busy_timeout`: 5 s
/// - `table_prefix`: none
/// - `retention`: [`Retention::Keep`]
/// - `max_readers`: 4
/// - `shared`: false
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{SqliteOptions, Synchronous};
///
/// let options = SqliteOptions::new()
///     .with_synchronous(Synchronous::Normal)
///     .with_table_prefix("agent_");
/// let path = std::env::temp_dir().join(format!("options-{}.db", std::process::id()));
/// let store = options.open(&path).await?;
/// # store.close().await;
/// # std::fs::remove_file(path).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use]
pub struct SqliteOptions {
    pub(super) synchronous: Synchronous,
    pub(super) busy_timeout: Duration,
    pub(super) table_prefix: String,
    pub(super) retention: Retention,
    pub(super) max_readers: u32,
    pub(super) shared: bool,
    pub(super) clock: Clock,
}

pub(super) type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// What a write of a [`SqliteStore`](crate::SqliteStore) survives.
///
/// # Example
///
/// ```
/// use session_compaction::Synchronous;
///
/// assert_eq!(Synchronous::default(), Synchronous::Full);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Synchronous {
    /// A loss of power: the disk is synced before a call returns.
    #[default]
    Full,
    /// A crash of the process. After a loss of power the newest calls may be
    /// undone, in the order in which they came; what is left is whole.
    Normal,
}

impl SqliteOptions {
    /// Creates the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what a write survives.
    pub const fn with_synchronous(mut self, synchronous: Synchronous) -> Self {
        self.synchronous = synchronous;
        self
    }

    /// Sets how long a call waits while another process writes, before it
    /// fails.
    pub const fn with_busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// Sets what the names of the tables begin with: at most 32 lower-case
    /// letters, digits and underscores, no digit first.
    pub fn with_table_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.table_prefix = prefix.into();
        self
    }

    /// Sets how long messages are kept that are no longer sent.
    pub const fn with_retention(mut self, retention: Retention) -> Self {
        self.retention = retention;
        self
    }

    /// Sets how many reads happen at the same time, at least 1. Writes have a
    /// connection of their own.
    pub const fn with_max_readers(mut self, readers: u32) -> Self {
        self.max_readers = if readers == 0 { 1 } else { readers };
        self
    }

    /// Sets whether other processes write to the same file, so that managers
    /// are told ([`SessionStore::is_shared`](crate::SessionStore::is_shared)).
    /// They may do so in either case; this is about what a cache may assume.
    pub const fn with_shared(mut self, shared: bool) -> Self {
        self.shared = shared;
        self
    }

    /// Sets the clock by which leases and pauses end and messages are dated.
    pub fn with_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            synchronous: Synchronous::Full,
            busy_timeout: Duration::from_secs(5),
            table_prefix: String::new(),
            retention: Retention::Keep,
            max_readers: 4,
            shared: false,
            clock: Arc::new(SystemTime::now),
        }
    }
}

impl fmt::Debug for SqliteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteOptions")
            .field("synchronous", &self.synchronous)
            .field("busy_timeout", &self.busy_timeout)
            .field("table_prefix", &self.table_prefix)
            .field("retention", &self.retention)
            .field("max_readers", &self.max_readers)
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}
