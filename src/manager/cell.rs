//! The place in memory where a session lives, kept in step with the store.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use tokio::sync::Notify;

use super::Inner;
use crate::{
    error::Result,
    message::Message,
    session::{Entry, Session, SessionKey, Size, Snapshot},
    store::StoredMessage,
};

/// A session's place. There is never more than one for a key, since a cell
/// leaves the map only while nobody holds it.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) key: SessionKey,
    // A std mutex: nothing awaits while it is held.
    session: Mutex<Session>,
    /// One load at a time; the others find it done.
    pub(super) loading: tokio::sync::Mutex<()>,
    /// Appends that the store may have taken and memory has not.
    appending: AtomicUsize,
    appended: Notify,
    counted: Mutex<Counted>,
    /// The number of its last use.
    pub(super) used: AtomicU64,
}

/// What was done to a session since it came into memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    pub(super) compactions: u64,
    pub(super) tokens_after: u64,
    /// Positions of messages that were healed on their way to a model.
    pub(super) healed: BTreeSet<u64>,
    /// Whether those who hear events believe that it is paused.
    pub(super) paused: bool,
}

impl Cell {
    fn new(key: SessionKey) -> Self {
        Self {
            key,
            session: Mutex::new(Session::unknown()),
            loading: tokio::sync::Mutex::default(),
            appending: AtomicUsize::new(0),
            appended: Notify::new(),
            counted: Mutex::default(),
            used: AtomicU64::new(0),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Session> {
        // A session is whole between any two of its methods, none of which
        // panics: a poisoned lock says nothing about it.
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn counted(&self) -> Counted {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn count<T>(&self, count: impl FnOnce(&mut Counted) -> T) -> T {
        count(&mut self.counted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Counts an append until the guard is dropped.
    pub(super) fn appending(self: &Arc<Self>) -> Appending {
        self.appending.fetch_add(1, Ordering::SeqCst);
        Appending(Arc::clone(self))
    }

    /// Waits until memory holds what was acknowledged up to this position.
    /// A gap below it is filled by the appends that the store took before this
    /// one; where those have all reported and it is still there, another
    /// process made it, and a load is due.
    pub(super) async fn settle(&self, position: u64) {
        let mut patience = self.appending.load(Ordering::SeqCst);
        loop {
            let reported = self.appended.notified();
            tokio::pin!(reported);
            reported.as_mut().enable();
            {
                let mut session = self.lock();
                if session.is_dirty() || session.next() > position {
                    return;
                }
                if patience == 0 || self.appending.load(Ordering::SeqCst) == 0 {
                    session.mark_dirty();
                    return;
                }
            }
            reported.await;
            patience -= 1;
        }
    }
}

/// Marks an append as on its way.
#[derive(Debug)]
pub(super) struct Appending(Arc<Cell>);

impl Drop for Appending {
    fn drop(&mut self) {
        self.0.appending.fetch_sub(1, Ordering::SeqCst);
        self.0.appended.notify_waiters();
    }
}

impl Inner {
    /// Returns the cell of a key, a new one where it has none.
    pub(super) fn cell(&self, key: &SessionKey) -> Arc<Cell> {
        let now = self.uses.fetch_add(1, Ordering::Relaxed);
        if let Some(cell) = self.cells.get(key) {
            cell.used.store(now, Ordering::Relaxed);
            return Arc::clone(&cell);
        }
        self.make_room();
        let cell =
            self.cells.entry(key.clone()).or_insert_with(|| Arc::new(Cell::new(key.clone())));
        cell.used.store(now, Ordering::Relaxed);
        Arc::clone(&cell)
    }

    /// Forgets a cell whose session does not exist, so that asking for unknown
    /// keys costs no memory.
    pub(super) fn release(&self, cell: Arc<Cell>) {
        let key = cell.key.clone();
        drop(cell);
        // The map's lock is held: nobody can take the cell meanwhile, and it
        // goes only where the map alone holds it.
        self.cells.remove_if(&key, |_, cell| Arc::strong_count(cell) == 1 && !cell.lock().exists());
    }

    pub(super) async fn snapshot(&self, key: &SessionKey) -> Result<Snapshot> {
        let cell = self.cell(key);
        let snapshot = self.with(&cell, |session| session.exists().then(|| session.snapshot()));
        let snapshot = snapshot.await;
        match snapshot {
            Ok(Some(snapshot)) => Ok(snapshot),
            Ok(None) => {
                self.release(cell);
                Ok(Snapshot::empty())
            }
            Err(error) => {
                self.release(cell);
                Err(error)
            }
        }
    }

    /// Runs `f` on the session, loaded where memory may lag behind the store.
    pub(super) async fn with<T>(
        &self,
        cell: &Cell,
        f: impl FnOnce(&mut Session) -> T,
    ) -> Result<T> {
        loop {
            {
                let mut session = cell.lock();
                if !session.is_dirty() {
                    return Ok(f(&mut session));
                }
            }
            self.read(cell, true).await?;
        }
    }

    pub(super) fn entries(&self, messages: Vec<StoredMessage>) -> Vec<Entry> {
        let counted = messages.into_iter().map(|kept| Entry {
            position: kept.position,
            size: self.size(&kept.message),
            message: kept.message,
        });
        counted.collect()
    }

    pub(super) fn size(&self, message: &Message) -> Size {
        Size::new(message.chars() as u64, self.counter.message(message))
    }
}
