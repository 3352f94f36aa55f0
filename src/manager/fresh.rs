//! What other processes wrote, and how a manager learns of it.

use super::{Inner, SessionManager, cell::Cell};
use crate::{
    error::Result,
    session::{Revision, SessionKey},
    store::{Since, StoredSession, Tail},
};

/// How a manager sees what other processes write to the same store.
///
/// Whatever is chosen, no message is lost and no compaction is applied twice:
/// a write that was made from an old state is refused by the store, and the
/// state is read again.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Consistency, SessionManager};
///
/// // A store in memory has one writer, so memory knows everything.
/// let sessions = SessionManager::builder().build()?;
/// assert_eq!(sessions.consistency(), Consistency::Cached);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Consistency {
    /// What memory holds is used. What others wrote is noticed by the next
    /// write to that session, or by [`SessionManager::refresh`]. The default
    /// where the store has one writer.
    Cached,
    /// The store is asked before each context and each check whether a
    /// compaction is due: one indexed read, and only what is new is loaded.
    /// The default where the store is
    /// [shared](crate::SessionStore::is_shared).
    Latest,
}

impl SessionManager {
    /// Returns how the manager sees what other processes write.
    #[must_use]
    pub fn consistency(&self) -> Consistency {
        self.0.consistency
    }

    /// Returns how many sessions are in memory.
    #[must_use]
    pub fn cached_sessions(&self) -> usize {
        self.0.cells.len()
    }

    /// Reads what other processes have written to a session since this one
    /// last looked.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`].
    pub async fn refresh(&self, key: &str) -> Result<()> {
        let cell = self.0.cell(&SessionKey::new(key)?);
        let refreshed = self.0.refresh(&cell).await;
        self.0.release(cell);
        refreshed
    }
}

impl Inner {
    /// Refreshes a session where the host wants the latest.
    pub(super) async fn freshen(&self, cell: &Cell) -> Result<()> {
        match self.consistency {
            Consistency::Cached => Ok(()),
            Consistency::Latest => self.refresh(cell).await,
        }
    }

    async fn refresh(&self, cell: &Cell) -> Result<()> {
        // One that nobody has read is read as a whole with its next use, and
        // one that has been found missing may have come to be since.
        if !cell.lock().exists() {
            cell.lock().mark_dirty();
            return Ok(());
        }
        self.read(cell, false).await
    }

    /// Brings memory up to date: always, or where it may lag behind.
    pub(super) async fn read(&self, cell: &Cell, only_dirty: bool) -> Result<()> {
        let _one = cell.loading.lock().await;
        let (version, known) = {
            let session = cell.lock();
            if only_dirty && !session.is_dirty() {
                return Ok(());
            }
            (session.version(), session.held_revision().map(|revision| (revision, session.next())))
        };
        match known {
            None => self.read_all(cell, version).await,
            Some((revision, next)) => self.read_since(cell, version, revision, next).await,
        }
    }

    async fn read_since(
        &self,
        cell: &Cell,
        version: u64,
        revision: Revision,
        next: u64,
    ) -> Result<()> {
        match self.store.load_since(&cell.key, revision, next).await? {
            Since::Changed(stored) => self.take(cell, version, Some(*stored)),
            Since::Gone => self.take(cell, version, None),
            Since::Same(Tail { options, pause, next, messages }) => {
                let entries = self.entries(messages);
                let whole = cell.lock().catch_up(version, revision, next, entries, options, pause);
                if !whole {
                    // The store has lost messages in between.
                    let version = cell.lock().version();
                    return self.read_all(cell, version).await;
                }
            }
        }
        Ok(())
    }

    async fn read_all(&self, cell: &Cell, version: u64) -> Result<()> {
        let stored = self.store.load(&cell.key).await?;
        self.take(cell, version, stored);
        Ok(())
    }

    fn take(&self, cell: &Cell, version: u64, stored: Option<StoredSession>) {
        let (state, next, carried, window) = match stored {
            None => (None, 0, Vec::new(), Vec::new()),
            Some(stored) => (
                Some(stored.state),
                stored.next,
                self.entries(stored.carried),
                self.entries(stored.window),
            ),
        };
        let sent = state.as_ref().map(|state| self.sent_of(&state.view));
        cell.lock().load(version, state, next, carried, window, sent.unwrap_or_default());
    }
}
