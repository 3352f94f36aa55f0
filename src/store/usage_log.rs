//! Usage events, and sums over them that are kept as events come in.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    error::Result,
    session::SessionKey,
    usage::{Counter, UsageEvent, UsageTotals},
};

/// Keeps usage events: those of commits, and others that hosts record.
///
/// # Contract
///
/// - The event of a commit is kept in the step that applies it, or not at all.
/// - Sums are kept, not scanned: reading them costs the same however many
///   events there are.
/// - What [`SessionStore::remove`] removes takes its events and its own sums
///   with it; the sums of the store and of its days stay.
///
/// [`SessionStore::remove`]: crate::SessionStore::remove
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use std::time::Duration;
/// use session_compaction::{Counter, MemoryStore, SessionKey, SessionStore, TokenUsage, UsageEvent};
///
/// let store = MemoryStore::new();
/// let log = store.usage().unwrap();
/// let event = UsageEvent::query("gpt-5", TokenUsage::new(900, 40), Duration::from_secs(2));
/// log.record(&SessionKey::new("chat")?, &event).await?;
/// assert_eq!(log.totals(None).await?.of(Counter::InputTokens), 900);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait UsageLog: Send + Sync {
    /// Adds an event that belongs to no commit. There need not be such a
    /// session.
    async fn record(&self, key: &SessionKey, event: &UsageEvent) -> Result<()>;

    /// Returns the sums of one session, or of the whole store.
    async fn totals(&self, key: Option<&SessionKey>) -> Result<UsageTotals>;

    /// Returns the sums of the newest days on which there was anything, at
    /// most so many, in the order of time. A day is one of UTC, by the time of
    /// the event.
    async fn days(&self, at_most: usize) -> Result<Vec<DayTotals>>;

    /// Returns events of one session, or of all, the newest first by number.
    async fn events(&self, page: UsagePage) -> Result<Vec<UsageRecord>>;

    /// Returns the sessions in which a sum is largest, the largest first, those
    /// with the same sum in the order of their keys' bytes. One in which it is
    /// zero is left out.
    async fn largest(&self, by: Counter, at_most: usize) -> Result<Vec<(SessionKey, u64)>>;

    /// Returns how many sessions the store holds.
    async fn sessions(&self) -> Result<u64>;
}

const _: fn(&dyn UsageLog) = |_| {};

/// The sums of one day.
///
/// # Example
///
/// ```
/// use session_compaction::{DayTotals, UsageTotals};
///
/// assert_eq!(DayTotals::new(20_000, UsageTotals::default()).date(), "2024-10-04");
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct DayTotals {
    /// The day: how many days after 1970-01-01, in UTC.
    pub day: u64,
    /// The sums of its events.
    pub totals: UsageTotals,
}

impl DayTotals {
    /// Creates the sums of a day.
    #[must_use]
    pub const fn new(day: u64, totals: UsageTotals) -> Self {
        Self { day, totals }
    }

    /// Returns the day of a time in milliseconds since 1970.
    #[must_use]
    pub const fn day_of(unix_millis: u64) -> u64 {
        unix_millis / 86_400_000
    }

    /// Returns the date as `YYYY-MM-DD`.
    #[must_use]
    pub fn date(&self) -> String {
        let days = i64::try_from(self.day).unwrap_or(i64::MAX);
        let date = jiff::Span::new()
            .try_days(days)
            .and_then(|days| jiff::civil::date(1970, 1, 1).checked_add(days));
        date.unwrap_or(jiff::civil::Date::MAX).to_string()
    }
}

/// Which usage events to read.
///
/// # Example
///
/// ```
/// use session_compaction::{SessionKey, UsagePage};
///
/// let page = UsagePage::newest(50).of(SessionKey::new("chat")?).before(1_000);
/// assert_eq!((page.limit, page.before), (50, Some(1_000)));
/// # Ok::<(), session_compaction::Error>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct UsagePage {
    /// Only those of this session.
    pub key: Option<SessionKey>,
    /// Only events with a number below this one.
    pub before: Option<u64>,
    /// At most this many.
    pub limit: usize,
}

impl UsagePage {
    /// The newest events of all sessions.
    #[must_use]
    pub const fn newest(limit: usize) -> Self {
        Self { key: None, before: None, limit }
    }

    /// Only those of one session.
    #[must_use]
    pub fn of(mut self, key: SessionKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Only those with a number below this one: the next page.
    #[must_use]
    pub const fn before(mut self, number: u64) -> Self {
        self.before = Some(number);
        self
    }

    /// Returns true for a record that this page is about.
    #[must_use]
    pub fn has(&self, record: &UsageRecord) -> bool {
        self.key.as_ref().is_none_or(|key| *key == record.session)
            && self.before.is_none_or(|before| record.number < before)
    }
}

/// A usage event as it is kept.
///
/// # Example
///
/// ```
/// use session_compaction::{SessionKey, UsageEvent, UsageRecord};
///
/// let record = UsageRecord::new(7, SessionKey::new("chat")?, UsageEvent::default());
/// assert_eq!(record.number, 7);
/// # Ok::<(), session_compaction::Error>(())
/// ```
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct UsageRecord {
    /// Its number within the store, which rises with every event.
    pub number: u64,
    /// The session.
    pub session: SessionKey,
    /// The event.
    pub event: UsageEvent,
}

impl UsageRecord {
    /// Creates a record.
    #[must_use]
    pub const fn new(number: u64, session: SessionKey, event: UsageEvent) -> Self {
        Self { number, session, event }
    }
}
