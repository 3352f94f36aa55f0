//! Usage events, and sums that are kept as they come in.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::{
    BACKEND, Store, dialect,
    group::Group,
    query::{batches, values},
    writer::Write,
};
use crate::{
    error::Result,
    session::SessionKey,
    store::{
        DayTotals, UsageLog, UsagePage, UsageRecord,
        sql::{ALL_DAYS, EventRow, Failure, SumRow, bound, document, key_of, signed, unsigned},
    },
    usage::{Counter, UsageEvent, UsageTotals},
};

struct Recording {
    key: SessionKey,
    event: UsageEvent,
}

#[async_trait]
impl Write for Recording {
    type Output = ();

    fn action(&self) -> String {
        format!("record usage of session {:?}", &*self.key)
    }

    async fn apply(&self, group: &mut Group<'_>) -> Result<(), Failure> {
        group.record(&self.key, std::slice::from_ref(&self.event)).await
    }
}

impl Group<'_> {
    /// Keeps events, and adds them to the sums.
    pub(super) async fn record(
        &mut self,
        key: &SessionKey,
        events: &[UsageEvent],
    ) -> Result<(), Failure> {
        let mut days: BTreeMap<i64, UsageTotals> = BTreeMap::new();
        for event in events {
            let day = signed("day", DayTotals::day_of(event.unix_millis))?;
            days.entry(day).or_default().add(event);
            days.entry(ALL_DAYS).or_default().add(event);
        }
        for batch in batches(events) {
            let sql = self.sql.text(&format!(
                "INSERT INTO {{p}}usage_events (key, unix_millis, event) VALUES {}",
                values(batch.len(), 3)
            ));
            let mut insert = sqlx::query(sql);
            for event in batch {
                let json = document("event", event)?;
                insert = insert.bind(key.as_bytes()).bind(bound(event.unix_millis)).bind(json);
            }
            insert.execute(&mut *self.connection).await?;
        }
        let all = days.get(&ALL_DAYS).copied().unwrap_or_default();
        self.add_of_session(key, &all).await?;
        for (day, totals) in days {
            self.add_of_day(day, dialect::shard(key), &totals).await?;
        }
        Ok(())
    }

    async fn add_of_session(
        &mut self,
        key: &SessionKey,
        totals: &UsageTotals,
    ) -> Result<(), Failure> {
        for (counter, more) in totals.counters() {
            let sql = self.sql.text(&format!(
                "INSERT INTO {{p}}usage_of_sessions (key, counter, value) VALUES ($1, $2, $3) \
                 ON CONFLICT (key, counter) DO UPDATE SET value = {}",
                added("usage_of_sessions")
            ));
            let add = sqlx::query(sql).bind(key.as_bytes()).bind(counter.name()).bind(bound(more));
            add.execute(&mut *self.connection).await?;
        }
        Ok(())
    }

    async fn add_of_day(
        &mut self,
        day: i64,
        shard: i64,
        totals: &UsageTotals,
    ) -> Result<(), Failure> {
        for (counter, more) in totals.counters() {
            let sql = self.sql.text(&format!(
                "INSERT INTO {{p}}usage_sums (day, shard, counter, value) \
                 VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (day, shard, counter) DO UPDATE SET value = {}",
                added("usage_sums")
            ));
            let add = sqlx::query(sql).bind(day).bind(shard);
            let add = add.bind(counter.name()).bind(bound(more));
            add.execute(&mut *self.connection).await?;
        }
        Ok(())
    }
}

/// The sum of the old value and the new one, which stops at the largest: a
/// larger one would become a floating-point number.
fn added(table: &str) -> String {
    let max = i64::MAX;
    format!(
        "CASE WHEN {{p}}{table}.value > {max} - excluded.value THEN {max} \
         ELSE {{p}}{table}.value + excluded.value END"
    )
}

#[async_trait]
impl UsageLog for Store {
    async fn record(&self, key: &SessionKey, event: &UsageEvent) -> Result<()> {
        self.writer.submit(Recording { key: key.clone(), event: event.clone() }).await
    }

    async fn totals(&self, key: Option<&SessionKey>) -> Result<UsageTotals> {
        let rows = if let Some(key) = key {
            let sql = "SELECT counter, value FROM {p}usage_of_sessions WHERE key = $1";
            let select = sqlx::query_as::<_, SumRow>(self.sql.text(sql)).bind(key.as_bytes());
            select.fetch_all(&self.readers).await
        } else {
            let sql = "SELECT counter, value FROM {p}usage_sums WHERE day = $1";
            let select = sqlx::query_as::<_, SumRow>(self.sql.text(sql)).bind(ALL_DAYS);
            select.fetch_all(&self.readers).await
        };
        let read = || -> Result<_, Failure> {
            let sums: Vec<_> = rows?.iter().map(SumRow::read).collect::<Result<_, Failure>>()?;
            Ok(sums.into_iter().flatten().collect())
        };
        read().map_err(|failure| failure.at(BACKEND, "read usage"))
    }

    async fn days(&self, at_most: usize) -> Result<Vec<DayTotals>> {
        let sql = self.sql.text(
            "SELECT day, counter, value FROM {p}usage_sums WHERE day IN \
             (SELECT DISTINCT day FROM {p}usage_sums WHERE day >= 0 ORDER BY day DESC LIMIT $1)",
        );
        let select = sqlx::query_as::<_, (i64, String, i64)>(sql).bind(bound(at_most as u64));
        let rows = select.fetch_all(&self.readers).await;
        let read = || -> Result<_, Failure> {
            let mut days: BTreeMap<u64, UsageTotals> = BTreeMap::new();
            for (day, counter, value) in rows? {
                let sum = SumRow { counter, value }.read()?;
                days.entry(unsigned("day", day)?).or_default().extend(sum);
            }
            Ok(days.into_iter().map(|(day, totals)| DayTotals::new(day, totals)).collect())
        };
        read().map_err(|failure| failure.at(BACKEND, "read usage"))
    }

    async fn events(&self, page: UsagePage) -> Result<Vec<UsageRecord>> {
        let columns = EventRow::COLUMNS;
        let before = page.before.map_or(i64::MAX, bound);
        let limit = bound(page.limit as u64);
        let rows = if let Some(key) = &page.key {
            let sql = format!(
                "SELECT {columns} FROM {{p}}usage_events WHERE key = $1 AND number < $2 \
                     ORDER BY number DESC LIMIT $3"
            );
            let select = sqlx::query_as::<_, EventRow>(self.sql.text(&sql));
            let select = select.bind(key.as_bytes()).bind(before).bind(limit);
            select.fetch_all(&self.readers).await
        } else {
            let sql = format!(
                "SELECT {columns} FROM {{p}}usage_events WHERE number < $1 \
                     ORDER BY number DESC LIMIT $2"
            );
            let select = sqlx::query_as::<_, EventRow>(self.sql.text(&sql));
            select.bind(before).bind(limit).fetch_all(&self.readers).await
        };
        let read =
            || -> Result<Vec<_>, Failure> { rows?.into_iter().map(EventRow::read).collect() };
        read().map_err(|failure| failure.at(BACKEND, "read usage"))
    }

    async fn largest(&self, by: Counter, at_most: usize) -> Result<Vec<(SessionKey, u64)>> {
        let sql = self.sql.text(
            "SELECT key, value FROM {p}usage_of_sessions WHERE counter = $1 AND value > 0 \
             ORDER BY value DESC, key LIMIT $2",
        );
        let select = sqlx::query_as::<_, (Vec<u8>, i64)>(sql).bind(by.name());
        let rows = select.bind(bound(at_most as u64)).fetch_all(&self.readers).await;
        let read = || -> Result<Vec<_>, Failure> {
            let rows = rows?.into_iter();
            rows.map(|(key, value)| Ok((key_of(key)?, unsigned("value", value)?))).collect()
        };
        read().map_err(|failure| failure.at(BACKEND, "read usage"))
    }

    async fn sessions(&self) -> Result<u64> {
        let sql = self.sql.text("SELECT COUNT(*) FROM {p}sessions");
        let count = sqlx::query_scalar::<_, i64>(sql).fetch_one(&self.readers).await;
        let read = || -> Result<_, Failure> { unsigned("number of sessions", count?) };
        read().map_err(|failure| failure.at(BACKEND, "count sessions"))
    }
}
