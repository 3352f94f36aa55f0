//! Leases, by the clock that the group was given.

use std::time::Duration;

use async_trait::async_trait;

use super::{Store, dialect, group::Group, writer::Write};
use crate::{
    error::Result,
    plan::Limits,
    session::SessionKey,
    store::{
        Lease, Leases,
        sql::{DUE, Failure, Header, bound, key_of, unsigned},
    },
};

struct Claiming {
    key: SessionKey,
    holder: String,
    ttl: Duration,
}

#[async_trait]
impl Write for Claiming {
    type Output = Option<Lease>;

    fn action(&self) -> String {
        format!("claim session {:?}", &*self.key)
    }

    async fn apply(&self, group: &mut Group<'_>) -> Result<Option<Lease>, Failure> {
        group.flush().await?;
        let header = group.header(&self.key).await?;
        let now = group.now;
        match header.filter(|header| !header.is_leased(now)) {
            Some(header) => group.lease(&header, &self.holder, self.ttl).await.map(Some),
            None => Ok(None),
        }
    }
}

/// Has a lease end at another time: so long from now, or now.
struct Ending {
    key: SessionKey,
    lease: Lease,
    ttl: Option<Duration>,
}

#[async_trait]
impl Write for Ending {
    type Output = bool;

    fn action(&self) -> String {
        format!("renew or release a lease of session {:?}", &*self.key)
    }

    async fn apply(&self, group: &mut Group<'_>) -> Result<bool, Failure> {
        let sql = group.sql.text(
            "UPDATE {p}sessions SET lease_until = $1, \
             marked = marked AND $1 IS NOT NULL \
             WHERE key = $2 AND lease_token = $3 AND lease_until > $4",
        );
        let update = sqlx::query(sql)
            .bind(self.ttl.map(|ttl| end(group.now, ttl)))
            .bind(self.key.as_bytes())
            .bind(bound(self.lease.token()))
            .bind(group.now);
        Ok(update.execute(&mut *group.connection).await?.rows_affected() > 0)
    }
}

struct Marking(SessionKey);

#[async_trait]
impl Write for Marking {
    type Output = ();

    fn action(&self) -> String {
        format!("mark session {:?} as due", &*self.0)
    }

    async fn apply(&self, group: &mut Group<'_>) -> Result<(), Failure> {
        group.flush().await?;
        let sql = group.sql.text("UPDATE {p}sessions SET marked = TRUE WHERE key = $1");
        sqlx::query(sql).bind(self.0.as_bytes()).execute(&mut *group.connection).await?;
        Ok(())
    }
}

struct ClaimingDue {
    holder: String,
    ttl: Duration,
    limits: Limits,
    at_most: usize,
}

#[async_trait]
impl Write for ClaimingDue {
    type Output = Vec<(SessionKey, Lease)>;

    fn action(&self) -> String {
        "claim due sessions".to_owned()
    }

    async fn apply(&self, group: &mut Group<'_>) -> Result<Self::Output, Failure> {
        group.flush().await?;
        // Those that wait for the longest time come first.
        let sql = group.sql.text(&format!(
            "SELECT key FROM {{p}}sessions WHERE {DUE} ORDER BY updated_millis, key LIMIT $5 {}",
            dialect::SKIP_LOCKED
        ));
        let limit = |limit: Option<u64>| limit.map(bound);
        let select = sqlx::query_scalar::<_, Vec<u8>>(sql)
            .bind(group.now)
            .bind(limit(self.limits.messages))
            .bind(limit(self.limits.chars))
            .bind(limit(self.limits.tokens))
            .bind(bound(self.at_most as u64));
        let mut claimed = Vec::new();
        for key in select.fetch_all(&mut *group.connection).await? {
            let key = key_of(key)?;
            if let Some(header) = group.header(&key).await? {
                let lease = group.lease(&header, &self.holder, self.ttl).await?;
                claimed.push((key, lease));
            }
        }
        Ok(claimed)
    }
}

impl Group<'_> {
    async fn lease(
        &mut self,
        header: &Header,
        holder: &str,
        ttl: Duration,
    ) -> Result<Lease, Failure> {
        let sql = self.sql.text(dialect::NEXT_LEASE);
        let token: i64 = sqlx::query_scalar(sql).fetch_one(&mut *self.connection).await?;
        let sql = self.sql.text(
            "UPDATE {p}sessions SET lease_token = $2, lease_until = $3, lease_holder = $4 \
             WHERE incarnation = $1",
        );
        let update = sqlx::query(sql)
            .bind(header.incarnation)
            .bind(token)
            .bind(end(self.now, ttl))
            // For people to read: PostgreSQL has no NUL in text.
            .bind(holder.replace('\0', "\u{fffd}"));
        update.execute(&mut *self.connection).await?;
        Ok(Lease::new(unsigned("lease_token", token)?))
    }
}

fn end(now: i64, ttl: Duration) -> i64 {
    now.saturating_add(u64::try_from(ttl.as_millis()).map_or(i64::MAX, bound))
}

#[async_trait]
impl Leases for Store {
    async fn claim(&self, key: &SessionKey, holder: &str, ttl: Duration) -> Result<Option<Lease>> {
        self.writer.submit(Claiming { key: key.clone(), holder: holder.to_owned(), ttl }).await
    }

    async fn renew(&self, key: &SessionKey, lease: Lease, ttl: Duration) -> Result<bool> {
        self.writer.submit(Ending { key: key.clone(), lease, ttl: Some(ttl) }).await
    }

    async fn release(&self, key: &SessionKey, lease: Lease) -> Result<()> {
        self.writer.submit(Ending { key: key.clone(), lease, ttl: None }).await.map(drop)
    }

    async fn mark_due(&self, key: &SessionKey) -> Result<()> {
        self.writer.submit(Marking(key.clone())).await
    }

    async fn claim_due(
        &self,
        holder: &str,
        ttl: Duration,
        limits: &Limits,
        at_most: usize,
    ) -> Result<Vec<(SessionKey, Lease)>> {
        let holder = holder.to_owned();
        self.writer.submit(ClaimingDue { holder, ttl, limits: *limits, at_most }).await
    }
}
