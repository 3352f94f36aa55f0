//! The lease that a compaction holds in the store, beside its claim in this
//! process.

use std::{sync::Arc, time::Duration};

use tokio::{runtime::Handle as Runtime, time::interval};

use super::{Inner, Outcome, detached, log::label};
use crate::{
    session::SessionKey,
    store::{Lease, SessionStore},
};

/// How long a lease is claimed for, unless the host says otherwise. Long enough
/// for a pause of the whole machine, short enough that the work of a dead
/// process is soon taken up.
pub(super) const USUAL_TTL: Duration = Duration::from_secs(30);

/// Renewed three times within it, one that is shorter would be lost to a slow
/// answer of the store.
pub(super) const SHORTEST_TTL: Duration = Duration::from_secs(1);

/// A lease that is released when it is dropped. In a store without leases it
/// is nothing.
#[derive(Debug)]
pub(super) struct Held {
    store: Arc<dyn SessionStore>,
    key: SessionKey,
    lease: Option<Lease>,
    ttl: Duration,
    runtime: Runtime,
}

impl Inner {
    /// Claims a session in the store.
    pub(super) async fn hold(&self, key: &SessionKey) -> Result<Held, Outcome> {
        let mut held = Held::of(self, key, None);
        if self.store.leases().is_none() {
            return Ok(held);
        }
        // Whoever is cancelled meanwhile gives back what the store has claimed.
        let holder = self.holder.clone();
        let claimed = detached::run(&self.runtime, async move {
            if let Some(leases) = held.store.leases() {
                held.lease = leases.claim(&held.key, &holder, held.ttl).await?;
            }
            Ok(held)
        });
        match claimed.await {
            Ok(held) if held.lease.is_some() => Ok(held),
            // Without a session there is nothing to compact, as the plan says.
            Ok(held) if matches!(self.is_unknown(key).await, Ok(true)) => Ok(held),
            Ok(_) => Err(Outcome::HeldElsewhere),
            Err(error) => Err(Outcome::Unavailable(error)),
        }
    }

    async fn is_unknown(&self, key: &SessionKey) -> crate::Result<bool> {
        let cell = self.cell(key);
        let unknown = self.with(&cell, |session| !session.exists()).await;
        self.release(cell);
        unknown
    }
}

impl Held {
    pub(super) fn of(inner: &Inner, key: &SessionKey, lease: Option<Lease>) -> Self {
        let (store, runtime) = (Arc::clone(&inner.store), inner.runtime.clone());
        Self { store, key: key.clone(), lease, ttl: inner.lease_ttl, runtime }
    }

    pub(super) const fn lease(&self) -> Option<Lease> {
        self.lease
    }

    /// Renews the lease again and again; ends where it is lost.
    pub(super) async fn lost(&self) {
        let (Some(lease), Some(leases)) = (self.lease, self.store.leases()) else {
            return std::future::pending().await;
        };
        let mut ticks = interval(self.ttl / 3);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            match leases.renew(&self.key, lease, self.ttl).await {
                Ok(true) => {}
                Ok(false) => return,
                // The commit will tell: it is fenced.
                Err(error) => {
                    let label = label(&self.key);
                    tracing::warn!(%error, "[{label}] summarizer: a lease was not renewed");
                }
            }
        }
    }

    /// Gives the lease back.
    pub(super) async fn release(mut self) {
        let (lease, store, key) = (self.lease.take(), Arc::clone(&self.store), self.key.clone());
        give_back(lease, &*store, &key).await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A task that was cancelled, or panicked: others need not wait for the
        // lease to expire.
        if let Some(lease) = self.lease.take() {
            let (store, key) = (Arc::clone(&self.store), self.key.clone());
            self.runtime.spawn(async move { give_back(Some(lease), &*store, &key).await });
        }
    }
}

async fn give_back(lease: Option<Lease>, store: &dyn SessionStore, key: &SessionKey) {
    let (Some(lease), Some(leases)) = (lease, store.leases()) else { return };
    if let Err(error) = leases.release(key, lease).await {
        let label = label(key);
        tracing::debug!(%error, "[{label}] summarizer: a lease was not given back; it will expire");
    }
}
