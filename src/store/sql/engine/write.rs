//! What writes do: appends, commits, rewrites, removals.

use std::{collections::HashMap, ops::Range, slice};

use async_trait::async_trait;

use super::{
    group::{Group, Taken},
    writer::Write,
};
use crate::{
    session::{PauseUntil, Revision, SessionKey, View},
    store::{
        Commit, CommitResult, NewMessage, Receipt, Removed, Retention, Rewrite, RewriteResult,
        StoredCompaction,
        sql::{
            Failure, Header, MessageRow, New, StateRow, bound, document, first_free, hidden,
            ids_from, place, sent, signed, unsigned,
        },
    },
    usage::UsageEvent,
};

pub(super) struct Append {
    pub(super) key: SessionKey,
    pub(super) messages: Vec<NewMessage>,
}

#[async_trait]
impl Write for Append {
    type Output = Receipt;

    fn action(&self) -> String {
        format!("append to session {:?}", &*self.key)
    }

    fn appends_to(&self) -> Option<&SessionKey> {
        Some(&self.key)
    }

    async fn apply(&self, group: &mut Group<'_>) -> Result<Receipt, Failure> {
        group.append(&self.key, &self.messages).await
    }
}

pub(super) struct Committing {
    pub(super) key: SessionKey,
    pub(super) commit: Commit,
}

#[async_trait]
impl Write for Committing {
    type Output = CommitResult;

    fn action(&self) -> String {
        format!("commit a change of session {:?}", &*self.key)
    }

    async fn apply(&self, group: &mut Group<'_>) -> Result<CommitResult, Failure> {
        group.flush().await?;
        let Some(mut header) = group.header(&self.key).await? else {
            return Ok(CommitResult::Stale);
        };
        let held = self.commit.lease.is_none_or(|lease| header.is_held_by(lease, group.now));
        if header.revision()? != self.commit.expected || !held {
            return Ok(CommitResult::Stale);
        }
        let Commit { view, usage, .. } = &self.commit;
        if let Some(view) = view {
            if let (Some(usage), true) = (usage, group.retention != Retention::Drop) {
                let revision = self.commit.expected.next();
                group.record_compaction(&self.key, revision, view, usage).await?;
            }
            header.counter = signed("counter", self.commit.expected.next().counter())?;
            group.show(&mut header, view).await?;
        }
        group.save(&header, &self.commit).await?;
        if let Some(usage) = usage {
            group.record(&self.key, slice::from_ref(usage)).await?;
        }
        Ok(CommitResult::Committed(header.revision()?))
    }
}

pub(super) struct Rewriting {
    pub(super) key: SessionKey,
    pub(super) rewrite: Rewrite,
}

#[async_trait]
impl Write for Rewriting {
    type Output = RewriteResult;

    fn action(&self) -> String {
        format!("rewrite session {:?}", &*self.key)
    }

    async fn apply(&self, group: &mut Group<'_>) -> Result<RewriteResult, Failure> {
        group.flush().await?;
        let Rewrite { expected, messages, summary, .. } = &self.rewrite;
        let old = group.header(&self.key).await?;
        let now = old.as_ref().map(|old| Ok::<_, Failure>((old.revision()?, old.next()?)));
        let now = now.transpose()?;
        if expected.is_some() && *expected != now {
            return Ok(RewriteResult::Stale);
        }
        let (revision, next) = now.unwrap_or_else(|| (Revision::fresh(), 0));
        // The old messages' ids are free again: a host gives back what it took.
        let (placed, added) = place(&self.key, next, messages, &HashMap::new())?;
        let view = View { cut: next, summary: summary.clone(), ..View::default() };
        let mut header = Header::new(revision.next())?;
        (header.cut, header.next) = (signed("cut", next)?, signed("next", next)?);
        header.grow(&added);
        if old.is_some() {
            group.free_ids(header.incarnation, 0..i64::MAX).await?;
            group.replace(&header, &view).await?;
            group.drop_hidden(header.incarnation, &view).await?;
        } else {
            group.create(&self.key, &header, &view).await?;
        }
        let messages: Vec<_> = added.into_iter().map(|new| (header.incarnation, new)).collect();
        group.insert(&messages).await?;
        Ok(RewriteResult::Rewritten(Receipt::new(header.revision()?, placed)))
    }
}

pub(super) struct Removing(pub(super) SessionKey);

#[async_trait]
impl Write for Removing {
    type Output = Removed;

    fn action(&self) -> String {
        format!("remove session {:?}", &*self.0)
    }

    async fn apply(&self, group: &mut Group<'_>) -> Result<Removed, Failure> {
        group.flush().await?;
        for table in ["usage_events", "usage_of_sessions"] {
            let sql = group.sql.text(&format!("DELETE FROM {{p}}{table} WHERE key = $1"));
            sqlx::query(sql).bind(self.0.as_bytes()).execute(&mut *group.connection).await?;
        }
        let Some(Header { incarnation, .. }) = group.header(&self.0).await? else {
            return Ok(Removed::default());
        };
        for table in ["message_ids", "compactions"] {
            group.delete_of(table, incarnation).await?;
        }
        let messages = group.delete_of("messages", incarnation).await?;
        let sql = group.sql.text("DELETE FROM {p}sessions WHERE incarnation = $1");
        sqlx::query(sql).bind(incarnation).execute(&mut *group.connection).await?;
        Ok(Removed::existing(messages))
    }
}

impl Group<'_> {
    async fn delete_of(&mut self, table: &str, session: i64) -> Result<u64, Failure> {
        let sql = self.sql.text(&format!("DELETE FROM {{p}}{table} WHERE session = $1"));
        let done = sqlx::query(sql).bind(session).execute(&mut *self.connection).await?;
        Ok(done.rows_affected())
    }

    /// Keeps what a commit replaces. Nothing was written of the commit yet.
    async fn record_compaction(
        &mut self,
        key: &SessionKey,
        revision: Revision,
        view: &View,
        usage: &UsageEvent,
    ) -> Result<(), Failure> {
        let columns = StateRow::COLUMNS;
        let sql = self.sql.text(&format!("SELECT {columns} FROM {{p}}sessions WHERE key = $1"));
        let row = sqlx::query_as::<_, StateRow>(sql).bind(key.as_bytes());
        let row = row.fetch_one(&mut *self.connection).await?;
        let sql = self
            .sql
            .text("SELECT COALESCE(MAX(number), 0) + 1 FROM {p}compactions WHERE session = $1");
        let number = sqlx::query_scalar::<_, i64>(sql).bind(row.incarnation);
        let number = number.fetch_one(&mut *self.connection).await?;
        let (before, _) = row.read()?;
        let number = unsigned("number", number)?;
        let compaction =
            StoredCompaction::new(number, revision, before.view, view.clone(), usage.clone());
        self.keep_compaction(row.incarnation, &compaction, self.now).await
    }

    pub(super) async fn keep_compaction(
        &mut self,
        session: i64,
        compaction: &StoredCompaction,
        unix_millis: i64,
    ) -> Result<(), Failure> {
        let sql = self.sql.text(
            "INSERT INTO {p}compactions \
             (session, number, revision, unix_millis, view_before, view_after, event) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        );
        let insert = sqlx::query(sql)
            .bind(session)
            .bind(signed("number", compaction.number)?)
            .bind(compaction.revision.to_string())
            .bind(unix_millis)
            .bind(document("view_before", &compaction.before)?)
            .bind(document("view_after", &compaction.after)?)
            .bind(document("event", &compaction.usage)?);
        insert.execute(&mut *self.connection).await?;
        Ok(())
    }

    /// Brings sizes, ids and messages in line with a new view.
    async fn show(&mut self, header: &mut Header, view: &View) -> Result<(), Failure> {
        let session = header.incarnation;
        let known_from = ids_from(header.cut, header.next);
        header.cut = bound(view.cut);
        header.next = header.next.max(first_free(view)?);
        let ids_from = ids_from(header.cut, header.next);
        self.measure(header, view).await?;
        if ids_from < known_from {
            self.know_again(session, ids_from..known_from, view).await?;
        }
        for range in &view.rewound {
            self.free_ids(session, bound(range.start)..bound(range.end)).await?;
        }
        self.free_ids(session, 0..ids_from).await?;
        self.drop_hidden(session, view).await
    }

    /// Takes ids that had been forgotten, where the window begins further up
    /// again.
    async fn know_again(
        &mut self,
        session: i64,
        positions: Range<i64>,
        view: &View,
    ) -> Result<(), Failure> {
        let columns = MessageRow::COLUMNS;
        let sql = self.sql.text(&format!(
            "SELECT {columns} FROM {{p}}messages \
             WHERE session = $1 AND position >= $2 AND position < $3"
        ));
        let rows = sqlx::query_as::<_, MessageRow>(sql).bind(session);
        let rows = rows.bind(positions.start).bind(positions.end);
        let rows = rows
            .fetch_all(&mut *self.connection)
            .await?
            .into_iter()
            .map(|row| Ok((session, New::imported(&row.read()?, view, positions.start)?)));
        let rows: Vec<_> = rows.collect::<Result<_, Failure>>()?;
        // An id that was used again meanwhile stays the newer message's.
        self.take_ids(&rows, Taken::Kept).await
    }

    /// Adds up how large what is sent is.
    pub(super) async fn measure(
        &mut self,
        header: &mut Header,
        view: &View,
    ) -> Result<(), Failure> {
        let (carried, window) = sent(view);
        let [_, _, carried] = self.sizes(header.incarnation, &carried).await?;
        let [messages, chars, tokens] = self.sizes(header.incarnation, &window).await?;
        (header.window_messages, header.window_chars) = (messages, chars);
        (header.window_tokens, header.carried_tokens) = (tokens, carried);
        Ok(())
    }

    async fn sizes(&mut self, session: i64, ranges: &[Range<i64>]) -> Result<[i64; 3], Failure> {
        let mut sizes = [0_i64; 3];
        for range in ranges {
            let sql = self.sql.text(
                "SELECT COUNT(*), CAST(COALESCE(SUM(chars), 0) AS BIGINT), \
                 CAST(COALESCE(SUM(tokens), 0) AS BIGINT) \
                 FROM {p}messages WHERE session = $1 AND position >= $2 AND position < $3",
            );
            let sum = sqlx::query_as::<_, (i64, i64, i64)>(sql);
            let sum = sum.bind(session).bind(range.start).bind(range.end);
            let (messages, chars, tokens) = sum.fetch_one(&mut *self.connection).await?;
            for (size, more) in sizes.iter_mut().zip([messages, chars, tokens]) {
                *size = size.saturating_add(more);
            }
        }
        Ok(sizes)
    }

    async fn free_ids(&mut self, session: i64, positions: Range<i64>) -> Result<(), Failure> {
        if positions.is_empty() {
            return Ok(());
        }
        let sql = self.sql.text(
            "DELETE FROM {p}message_ids \
             WHERE session = $1 AND position >= $2 AND position < $3",
        );
        let delete = sqlx::query(sql).bind(session).bind(positions.start).bind(positions.end);
        delete.execute(&mut *self.connection).await?;
        Ok(())
    }

    pub(super) async fn drop_hidden(&mut self, session: i64, view: &View) -> Result<(), Failure> {
        if self.retention == Retention::Drop {
            self.drop_older(session, view, i64::MAX).await?;
        }
        Ok(())
    }

    /// Drops what is no longer sent and was taken before a time.
    pub(super) async fn drop_older(
        &mut self,
        session: i64,
        view: &View,
        unix_millis: i64,
    ) -> Result<u64, Failure> {
        let mut dropped = 0_u64;
        for range in hidden(view) {
            let sql = self.sql.text(
                "DELETE FROM {p}messages \
                 WHERE session = $1 AND position >= $2 AND position < $3 AND unix_millis < $4",
            );
            let delete = sqlx::query(sql).bind(session).bind(range.start).bind(range.end);
            let done = delete.bind(unix_millis).execute(&mut *self.connection).await?;
            dropped = dropped.saturating_add(done.rows_affected());
        }
        Ok(dropped)
    }

    /// Writes what a commit changes of a session.
    pub(super) async fn save(&mut self, header: &Header, commit: &Commit) -> Result<(), Failure> {
        let Commit { view, pause, options, limits, .. } = commit;
        let until = pause.as_ref().map(|pause| pause.until);
        let (tokens, millis) = match until {
            Some(PauseUntil::Tokens(tokens)) => (Some(bound(tokens)), None),
            Some(PauseUntil::UnixMillis(millis)) => (None, Some(bound(millis))),
            None => (None, None),
        };
        let limit = |limit: Option<u64>| limit.map(bound);
        let sql = self.sql.text(
            "UPDATE {p}sessions SET counter = $2, cut = $3, next = $4, window_messages = $5, \
             window_chars = $6, window_tokens = $7, carried_tokens = $8, \
             marked = marked AND NOT $9, pause = $10, pause_tokens = $11, pause_millis = $12, \
             own_limits = own_limits OR $13, \
             limit_messages = CASE WHEN $13 THEN $14 ELSE limit_messages END, \
             limit_chars = CASE WHEN $13 THEN $15 ELSE limit_chars END, \
             limit_tokens = CASE WHEN $13 THEN $16 ELSE limit_tokens END, \
             updated_millis = $17, options = COALESCE($18, options), view = COALESCE($19, view) \
             WHERE incarnation = $1",
        );
        let pause = pause.as_ref().map(|pause| document("pause", pause)).transpose()?;
        let options = options.as_ref().map(|options| document("options", options)).transpose()?;
        let view = view.as_ref().map(|view| document("view", view)).transpose()?;
        let update = sqlx::query(sql)
            .bind(header.incarnation)
            .bind(header.counter)
            .bind(header.cut)
            .bind(header.next)
            .bind(header.window_messages)
            .bind(header.window_chars)
            .bind(header.window_tokens)
            .bind(header.carried_tokens)
            .bind(view.is_some())
            .bind(pause)
            .bind(tokens)
            .bind(millis)
            .bind(limits.is_some())
            .bind(limits.and_then(|limits| limit(limits.messages)))
            .bind(limits.and_then(|limits| limit(limits.chars)))
            .bind(limits.and_then(|limits| limit(limits.tokens)))
            .bind(self.now)
            .bind(options)
            .bind(view);
        update.execute(&mut *self.connection).await?;
        Ok(())
    }

    /// Writes what a rewrite changes of a session.
    async fn replace(&mut self, header: &Header, view: &View) -> Result<(), Failure> {
        let sql = self.sql.text(
            "UPDATE {p}sessions SET counter = $2, cut = $3, next = $4, window_messages = $5, \
             window_chars = $6, window_tokens = $7, carried_tokens = 0, dormant = FALSE, \
             pause = NULL, pause_tokens = NULL, pause_millis = NULL, updated_millis = $8, \
             view = $9 WHERE incarnation = $1",
        );
        let update = sqlx::query(sql)
            .bind(header.incarnation)
            .bind(header.counter)
            .bind(header.cut)
            .bind(header.next)
            .bind(header.window_messages)
            .bind(header.window_chars)
            .bind(header.window_tokens)
            .bind(self.now)
            .bind(document("view", view)?);
        update.execute(&mut *self.connection).await?;
        Ok(())
    }
}
