//! Usage events and their sums.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, VecDeque},
};

use async_trait::async_trait;

use super::MemoryStore;
use crate::{
    error::Result,
    session::SessionKey,
    store::{DayTotals, UsageLog, UsagePage, UsageRecord},
    usage::{Counter, UsageEvent, UsageTotals},
};

/// How many events are kept.
const MAX_EVENTS: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Usage {
    /// The number of the newest event.
    number: u64,
    totals: UsageTotals,
    days: BTreeMap<u64, UsageTotals>,
    sessions: HashMap<SessionKey, UsageTotals>,
    /// The newest ones, in order.
    events: VecDeque<UsageRecord>,
}

impl Usage {
    pub(super) fn add(&mut self, key: &SessionKey, event: &UsageEvent) {
        self.number = self.number.saturating_add(1);
        self.totals.add(event);
        self.days.entry(DayTotals::day_of(event.unix_millis)).or_default().add(event);
        self.sessions.entry(key.clone()).or_default().add(event);
        if self.events.len() >= MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(UsageRecord::new(self.number, key.clone(), event.clone()));
    }

    /// Takes a session out; the sums of the store and of its days stay.
    pub(super) fn forget(&mut self, key: &SessionKey) {
        if self.sessions.remove(key).is_some() {
            self.events.retain(|record| record.session != *key);
        }
    }
}

#[async_trait]
impl UsageLog for MemoryStore {
    async fn record(&self, key: &SessionKey, event: &UsageEvent) -> Result<()> {
        self.log(|log| log.add(key, event));
        Ok(())
    }

    async fn totals(&self, key: Option<&SessionKey>) -> Result<UsageTotals> {
        Ok(self.log(|log| {
            key.map_or(log.totals, |key| log.sessions.get(key).copied().unwrap_or_default())
        }))
    }

    async fn days(&self, at_most: usize) -> Result<Vec<DayTotals>> {
        let mut days: Vec<_> = self.log(|log| {
            let newest = log.days.iter().rev().take(at_most);
            newest.map(|(day, totals)| DayTotals::new(*day, *totals)).collect()
        });
        days.reverse();
        Ok(days)
    }

    async fn events(&self, page: UsagePage) -> Result<Vec<UsageRecord>> {
        Ok(self.log(|log| {
            let newest = log.events.iter().rev();
            newest.filter(|record| page.has(record)).take(page.limit).cloned().collect()
        }))
    }

    async fn largest(&self, by: Counter, at_most: usize) -> Result<Vec<(SessionKey, u64)>> {
        let mut largest: Vec<_> = self.log(|log| {
            let sums = log.sessions.iter().map(|(key, totals)| (key.clone(), totals.of(by)));
            sums.filter(|(_, sum)| *sum > 0).collect()
        });
        largest.sort_unstable_by(|(a, x), (b, y)| Reverse(x).cmp(&Reverse(y)).then(a.cmp(b)));
        largest.truncate(at_most);
        Ok(largest)
    }

    async fn sessions(&self) -> Result<u64> {
        Ok(self.sessions.len() as u64)
    }
}
