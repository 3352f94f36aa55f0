//! Leases, by the clock of the store.

use std::{sync::atomic::Ordering, time::Duration};

use async_trait::async_trait;

use super::{MemoryStore, stored::Stored};
use crate::{
    error::Result,
    plan::Limits,
    session::SessionKey,
    store::{Lease, Leases},
};

#[async_trait]
impl Leases for MemoryStore {
    async fn claim(&self, key: &SessionKey, _holder: &str, ttl: Duration) -> Result<Option<Lease>> {
        let now = self.now();
        let stored = self.sessions.get_mut(key).filter(|stored| !stored.is_leased(now));
        Ok(stored.map(|mut stored| self.give(&mut stored, end(now, ttl))))
    }

    async fn renew(&self, key: &SessionKey, lease: Lease, ttl: Duration) -> Result<bool> {
        let now = self.now();
        let stored = self.sessions.get_mut(key).filter(|stored| stored.is_held_by(lease, now));
        Ok(stored.is_some_and(|mut stored| {
            stored.lease(lease, end(now, ttl));
            true
        }))
    }

    async fn release(&self, key: &SessionKey, lease: Lease) -> Result<()> {
        let now = self.now();
        let stored = self.sessions.get_mut(key).filter(|stored| stored.is_held_by(lease, now));
        if let Some(mut stored) = stored {
            stored.end_lease();
            stored.due.marked = false;
        }
        Ok(())
    }

    async fn mark_due(&self, key: &SessionKey) -> Result<()> {
        if let Some(mut stored) = self.sessions.get_mut(key) {
            stored.due.marked = true;
        }
        Ok(())
    }

    async fn claim_due(
        &self,
        _holder: &str,
        ttl: Duration,
        limits: &Limits,
        at_most: usize,
    ) -> Result<Vec<(SessionKey, Lease)>> {
        let now = self.now();
        // The iterator holds a lock: of one shard, and only while it is here.
        let due = self.sessions.iter_mut().filter(|stored| stored.is_due(limits, now));
        let claim = due.take(at_most).map(|mut stored| {
            let lease = self.give(stored.value_mut(), end(now, ttl));
            (stored.key().clone(), lease)
        });
        Ok(claim.collect())
    }
}

impl MemoryStore {
    fn give(&self, stored: &mut Stored, end: u64) -> Lease {
        let token = self.tokens.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let lease = Lease::new(token);
        stored.lease(lease, end);
        lease
    }
}

fn end(now: u64, ttl: Duration) -> u64 {
    now.saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
}
