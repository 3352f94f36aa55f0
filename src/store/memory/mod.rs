//! Sessions in memory alone.

mod archive;
mod ids;
mod leases;
mod stored;
mod usage;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU64},
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use dashmap::{DashMap, Entry};

pub(crate) use self::ids::{ID_HORIZON, IdIndex};
use self::{stored::Stored, usage::Usage};
use super::{
    Archive, Commit, CommitResult, Leases, ListPage, NewMessage, Receipt, Removed, Rewrite,
    RewriteResult, SessionStore, Since, StoredSession, UsageLog,
};
use crate::{
    error::Result,
    session::{Revision, SessionKey},
};

/// Keeps sessions in memory; they are gone with the process.
///
/// What a summary stands for is dropped, so that a long conversation stays
/// small, and so are old compactions. [`MemoryStore::keep_transcripts`] keeps
/// everything instead. Of usage events the newest 10,000 are kept, and all of
/// their sums.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{MemoryStore, Message, SessionManager};
///
/// let sessions = SessionManager::builder().store(MemoryStore::keep_transcripts()).build()?;
/// sessions.add_message("chat", Message::user("hello")).await?;
/// sessions.clear("chat").await?;
/// assert!(sessions.history("chat").await?.is_empty());
/// assert_eq!(sessions.transcript("chat", 0..10).await?.len(), 1);
/// # Ok(())
/// # }
/// ```
pub struct MemoryStore {
    sessions: DashMap<SessionKey, Stored>,
    keep_transcripts: bool,
    clock: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// The token of the newest lease of any session: so one of a session that
    /// was removed is never that of another.
    tokens: AtomicU64,
    /// Locked while a session is: so the event of a commit comes with it.
    usage: Mutex<Usage>,
}

// What was said is no affair of a log line.
impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("sessions", &self.sessions.len())
            .field("keep_transcripts", &self.keep_transcripts)
            .finish_non_exhaustive()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self {
            sessions: DashMap::new(),
            keep_transcripts: false,
            clock: Arc::new(SystemTime::now),
            tokens: AtomicU64::new(0),
            usage: Mutex::default(),
        }
    }
}

impl MemoryStore {
    /// Creates a store that drops what a summary stands for.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a store that keeps every message until its session is removed.
    #[must_use]
    pub fn keep_transcripts() -> Self {
        Self { keep_transcripts: true, ..Self::default() }
    }

    /// Sets the clock by which leases and pauses end and messages are dated.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// In milliseconds since 1970.
    fn now(&self) -> u64 {
        let now = (self.clock)().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
    }

    fn log<T>(&self, work: impl FnOnce(&mut Usage) -> T) -> T {
        // Nothing in there can panic half-way.
        work(&mut self.usage.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The time of so many milliseconds since 1970.
fn time(unix_millis: u64) -> SystemTime {
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(unix_millis));
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

#[async_trait]
impl SessionStore for MemoryStore {
    async fn append(&self, key: &SessionKey, messages: &[NewMessage]) -> Result<Receipt> {
        let now = self.now();
        match self.sessions.entry(key.clone()) {
            Entry::Occupied(mut stored) => stored.get_mut().append(key, messages, now),
            Entry::Vacant(vacant) => {
                // What is refused creates no session.
                let mut stored = Stored::new();
                let receipt = stored.append(key, messages, now)?;
                vacant.insert(stored);
                Ok(receipt)
            }
        }
    }

    async fn load(&self, key: &SessionKey) -> Result<Option<StoredSession>> {
        Ok(self.sessions.get(key).map(|stored| stored.read()))
    }

    async fn load_since(&self, key: &SessionKey, revision: Revision, next: u64) -> Result<Since> {
        let Some(stored) = self.sessions.get(key) else { return Ok(Since::Gone) };
        if stored.state.revision != revision || stored.next < next {
            return Ok(Since::Changed(Box::new(stored.read())));
        }
        Ok(Since::Same(stored.tail(next)))
    }

    async fn commit(&self, key: &SessionKey, commit: Commit) -> Result<CommitResult> {
        let now = self.now();
        let Some(mut stored) = self.sessions.get_mut(key) else { return Ok(CommitResult::Stale) };
        if stored.state.revision != commit.expected
            || commit.lease.is_some_and(|lease| !stored.is_held_by(lease, now))
        {
            return Ok(CommitResult::Stale);
        }
        if let Some(event) = &commit.usage {
            self.log(|log| log.add(key, event));
        }
        stored.apply(commit, self.keep_transcripts);
        Ok(CommitResult::Committed(stored.state.revision))
    }

    async fn rewrite(&self, key: &SessionKey, rewrite: Rewrite) -> Result<RewriteResult> {
        let (now, keep) = (self.now(), self.keep_transcripts);
        match (self.sessions.entry(key.clone()), rewrite.expected) {
            (Entry::Vacant(_), Some(_)) => Ok(RewriteResult::Stale),
            (Entry::Vacant(vacant), None) => {
                let mut stored = Stored::new();
                let receipt = stored.replace(key, rewrite, now, keep)?;
                vacant.insert(stored);
                Ok(RewriteResult::Rewritten(receipt))
            }
            (Entry::Occupied(mut stored), expected) => {
                let stored = stored.get_mut();
                if expected.is_some_and(|expected| expected != (stored.state.revision, stored.next))
                {
                    return Ok(RewriteResult::Stale);
                }
                stored.replace(key, rewrite, now, keep).map(RewriteResult::Rewritten)
            }
        }
    }

    async fn remove(&self, key: &SessionKey) -> Result<Removed> {
        Ok(match self.sessions.entry(key.clone()) {
            Entry::Occupied(stored) => {
                self.log(|log| log.forget(key));
                Removed::existing(stored.remove().messages())
            }
            Entry::Vacant(_) => {
                self.log(|log| log.forget(key));
                Removed::default()
            }
        })
    }

    async fn list(&self, page: ListPage) -> Result<Vec<SessionKey>> {
        let listed = self.sessions.iter().map(|entry| entry.key().clone());
        let mut keys: Vec<_> = listed.filter(|key| page.has(key)).collect();
        keys.sort_unstable();
        keys.truncate(page.limit);
        Ok(keys)
    }

    fn archive(&self) -> Option<&dyn Archive> {
        self.keep_transcripts.then_some(self)
    }

    fn leases(&self) -> Option<&dyn Leases> {
        Some(self)
    }

    fn usage(&self) -> Option<&dyn UsageLog> {
        Some(self)
    }
}
