//! How a PostgreSQL store works.

use std::time::Duration;

use crate::store::Retention;

/// How a [`PostgresStore`](crate::PostgresStore) works.
///
/// # Default
///
/// - `max_connections`: 8, of which one writes
/// - `acquire_timeout`: 10 s
/// - `table_prefix`: none
/// - `retention`: [`Retention::Keep`]
///
/// # Example
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::PostgresOptions;
///
/// let options = PostgresOptions::new().with_table_prefix("agent_").with_max_connections(4);
/// let store = options.connect("postgres://localhost/agents").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct PostgresOptions {
    pub(super) max_connections: u32,
    pub(super) acquire_timeout: Duration,
    pub(super) table_prefix: String,
    pub(super) retention: Retention,
}

impl PostgresOptions {
    /// Creates the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many connections there are at most, at least 2: one writes,
    /// the others read.
    pub const fn with_max_connections(mut self, connections: u32) -> Self {
        self.max_connections = if connections < 2 { 2 } else { connections };
        self
    }

    /// Sets how long a call waits for a connection before it fails.
    pub const fn with_acquire_timeout(mut self, timeout: Duration) -> Self {
        self.acquire_timeout = timeout;
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
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            max_connections: 8,
            acquire_timeout: Duration::from_secs(10),
            table_prefix: String::new(),
            retention: Retention::Keep,
        }
    }
}
