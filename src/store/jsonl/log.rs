//! The store's capabilities beside transcripts: leases, and the usage log.

use std::{cmp::Reverse, sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{
    JsonlStore, blocking, folder::Folder, group::Job, keys, now, release, slot, usage::Known,
};
use crate::{
    error::Result,
    plan::Limits,
    session::SessionKey,
    store::{
        DayTotals, Lease, Leases, ListPage, SessionStore as _, UsageLog, UsagePage, UsageRecord,
    },
    usage::{Counter, UsageEvent, UsageTotals},
};

fn end(now: u64, ttl: Duration) -> u64 {
    now.saturating_add(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX))
}

#[async_trait]
impl Leases for JsonlStore {
    async fn claim(&self, key: &SessionKey, _holder: &str, ttl: Duration) -> Result<Option<Lease>> {
        self.read(key, move |slot, folder| {
            let (Some(incarnation), now) = (slot.incarnation(folder)?, now()) else {
                return Ok(None);
            };
            Ok(folder.leases.give(slot.key(), incarnation, now, end(now, ttl)))
        })
        .await
    }

    async fn renew(&self, key: &SessionKey, lease: Lease, ttl: Duration) -> Result<bool> {
        self.read(key, move |slot, folder| {
            let (Some(incarnation), now) = (slot.incarnation(folder)?, now()) else {
                return Ok(false);
            };
            Ok(folder.leases.end(slot.key(), incarnation, lease, now, end(now, ttl)))
        })
        .await
    }

    async fn release(&self, key: &SessionKey, lease: Lease) -> Result<()> {
        self.renew(key, lease, Duration::ZERO).await.map(drop)
    }

    async fn mark_due(&self, key: &SessionKey) -> Result<()> {
        self.write(key, Job::Mark).await
    }

    async fn claim_due(
        &self,
        _holder: &str,
        ttl: Duration,
        limits: &Limits,
        at_most: usize,
    ) -> Result<Vec<(SessionKey, Lease)>> {
        let (limits, slots) = (*limits, Arc::clone(&self.slots));
        let claim = move |folder: &Folder| {
            let mut claimed = Vec::new();
            for key in keys(folder)? {
                if claimed.len() >= at_most {
                    break;
                }
                let (slot, now) = (slot(&slots, &key), now());
                let due = slot.due(folder, &limits, now);
                drop(slot);
                release(&slots, &key);
                // Another caller may have been faster.
                let lease = due?.and_then(|incarnation| {
                    folder.leases.give(&key, incarnation, now, end(now, ttl))
                });
                claimed.extend(lease.map(|lease| (key, lease)));
            }
            Ok(claimed)
        };
        blocking(&self.folder, claim).await
    }
}

impl JsonlStore {
    /// Looks at all usage events. The first time, each file is read for them.
    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Known) -> T + Send + 'static,
    ) -> Result<T> {
        let slots = Arc::clone(&self.slots);
        let work = move |folder: &Folder| {
            folder.usage.look(folder, |known| {
                if !known.is_whole {
                    for key in keys(folder)? {
                        let slot = slot(&slots, &key);
                        let events = slot.events(folder);
                        drop(slot);
                        release(&slots, &key);
                        known.add_all(&key, events?);
                    }
                    known.is_whole = true;
                }
                Ok(look(known))
            })
        };
        blocking(&self.folder, work).await
    }
}

#[async_trait]
impl UsageLog for JsonlStore {
    async fn record(&self, key: &SessionKey, event: &UsageEvent) -> Result<()> {
        let (key, event) = (key.clone(), event.clone());
        let record = move |folder: &Folder| folder.usage.record(folder, &key, &event, now());
        blocking(&self.folder, record).await
    }

    async fn totals(&self, key: Option<&SessionKey>) -> Result<UsageTotals> {
        let key = key.cloned();
        self.look(move |known| match key {
            Some(key) => known.sessions.get(&key).copied().unwrap_or_default(),
            None => known.totals,
        })
        .await
    }

    async fn days(&self, at_most: usize) -> Result<Vec<DayTotals>> {
        let days = self.look(move |known| {
            let newest = known.days.iter().rev().take(at_most);
            newest.map(|(day, totals)| DayTotals::new(*day, *totals)).collect::<Vec<_>>()
        });
        let mut days = days.await?;
        days.reverse();
        Ok(days)
    }

    async fn events(&self, page: UsagePage) -> Result<Vec<UsageRecord>> {
        let UsagePage { key, before, limit } = page;
        let places = self.look(move |known| {
            let newest = known.events.range(..before.unwrap_or(u64::MAX)).rev();
            let wanted = newest.filter(|(_, place)| key.as_ref().is_none_or(|it| *it == place.key));
            wanted.take(limit).map(|(number, place)| (*number, place.clone())).collect::<Vec<_>>()
        });
        let places = places.await?;
        let read = move |folder: &Folder| {
            let mut events = Vec::with_capacity(places.len());
            for (number, place) in places {
                // Its session may be gone by now.
                let event = place.read(folder, number)?;
                events.extend(event.map(|event| UsageRecord::new(number, place.key, event)));
            }
            Ok(events)
        };
        blocking(&self.folder, read).await
    }

    async fn largest(&self, by: Counter, at_most: usize) -> Result<Vec<(SessionKey, u64)>> {
        let sums = self.look(move |known| {
            let sums = known.sessions.iter().map(|(key, totals)| (key.clone(), totals.of(by)));
            sums.filter(|(_, sum)| *sum > 0).collect::<Vec<_>>()
        });
        let mut largest = sums.await?;
        largest.sort_unstable_by(|(a, x), (b, y)| Reverse(x).cmp(&Reverse(y)).then(a.cmp(b)));
        largest.truncate(at_most);
        Ok(largest)
    }

    async fn sessions(&self) -> Result<u64> {
        Ok(self.list(ListPage::first(usize::MAX)).await?.len() as u64)
    }
}
