//! Leases. One process owns the folder, so that its memory is enough.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{session::SessionKey, store::Lease};

/// The leases that were given out and may be valid.
#[derive(Debug, Default)]
pub(super) struct Table(Mutex<Leased>);

#[derive(Debug, Default)]
struct Leased {
    sessions: HashMap<SessionKey, Given>,
    /// The token that was given out last.
    token: u64,
}

#[derive(Clone, Copy, Debug)]
struct Given {
    lease: Lease,
    /// In milliseconds since 1970.
    end: u64,
    /// Of the session: it is over with the session that it was given for.
    incarnation: u64,
}

impl Table {
    /// Gives out the lease of a session until this time, if it is free.
    pub(super) fn give(
        &self,
        key: &SessionKey,
        incarnation: u64,
        now: u64,
        end: u64,
    ) -> Option<Lease> {
        let mut leased = self.lock();
        let given = leased.sessions.get(key);
        if given.is_some_and(|given| given.incarnation == incarnation && now < given.end) {
            return None;
        }
        // By the clock, so that tokens rise also when the folder is opened again.
        leased.token = leased.token.saturating_add(1).max(now.saturating_mul(1 << 10));
        let lease = Lease::new(leased.token);
        leased.sessions.insert(key.clone(), Given { lease, end, incarnation });
        Some(lease)
    }

    /// Has a lease end at this time; false where it is no longer valid.
    pub(super) fn end(
        &self,
        key: &SessionKey,
        incarnation: u64,
        lease: Lease,
        now: u64,
        end: u64,
    ) -> bool {
        let mut leased = self.lock();
        let given = leased.sessions.get_mut(key).filter(|given| given.is(incarnation, lease, now));
        let Some(given) = given else { return false };
        given.end = end;
        if end <= now {
            leased.sessions.remove(key);
        }
        true
    }

    pub(super) fn is_valid(
        &self,
        key: &SessionKey,
        incarnation: u64,
        lease: Lease,
        now: u64,
    ) -> bool {
        self.lock().sessions.get(key).is_some_and(|given| given.is(incarnation, lease, now))
    }

    pub(super) fn is_free(&self, key: &SessionKey, incarnation: u64, now: u64) -> bool {
        let leased = self.lock();
        let given = leased.sessions.get(key);
        given.is_none_or(|given| given.incarnation != incarnation || given.end <= now)
    }

    /// Ends the lease of a session that is removed.
    pub(super) fn forget(&self, key: &SessionKey) {
        self.lock().sessions.remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, Leased> {
        // Each change is one step: a panic leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Given {
    fn is(&self, incarnation: u64, lease: Lease, now: u64) -> bool {
        self.lease == lease && self.incarnation == incarnation && now < self.end
    }
}
