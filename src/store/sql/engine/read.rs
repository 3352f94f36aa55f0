//! Reads. Each sees the database as it was at one moment.

use std::ops::Range;

use sqlx::Connection as _;

use super::{
    Store,
    dialect::{self, Connection},
    query::Sql,
};
use crate::{
    session::{Revision, SessionKey, SessionState},
    store::{
        ListPage, Since, StoredMessage, StoredSession, Tail,
        sql::{Failure, KeyRange, MessageRow, StateRow, bound, key_of, ranges, sent},
    },
};

impl Store {
    pub(super) async fn read_session(
        &self,
        key: &SessionKey,
    ) -> Result<Option<StoredSession>, Failure> {
        let mut connection = self.readers.acquire().await?;
        // A snapshot: what is written meanwhile is not seen.
        let mut transaction = connection.begin_with(dialect::BEGIN_READ).await?;
        let found = state(&mut transaction, &self.sql, key).await?;
        let Some((session, state, next)) = found else { return Ok(None) };
        let (carried, window) = sent(&state.view);
        let carried = messages(&mut transaction, &self.sql, session, &carried).await?;
        let window = messages(&mut transaction, &self.sql, session, &window).await?;
        transaction.commit().await?;
        Ok(Some(StoredSession::new(state, next, carried, window)))
    }

    pub(super) async fn read_since(
        &self,
        key: &SessionKey,
        revision: Revision,
        next: u64,
    ) -> Result<Since, Failure> {
        let mut connection = self.readers.acquire().await?;
        match state(&mut connection, &self.sql, key).await? {
            None => return Ok(Since::Gone),
            Some((_, state, now)) if state.revision == revision && now == next => {
                return Ok(Since::Same(Tail::new(state.options, state.pause, now, Vec::new())));
            }
            Some(_) => drop(connection),
        }
        let Some(stored) = self.read_from(key, revision, next).await? else {
            return Ok(Since::Gone);
        };
        if stored.state.revision != revision || stored.next < next {
            return Ok(Since::Changed(Box::new(stored)));
        }
        let SessionState { options, pause, .. } = stored.state;
        Ok(Since::Same(Tail::new(options, pause, stored.next, stored.window)))
    }

    /// Reads a session: of the window only what follows a position, where it
    /// still has this revision.
    async fn read_from(
        &self,
        key: &SessionKey,
        revision: Revision,
        next: u64,
    ) -> Result<Option<StoredSession>, Failure> {
        let mut connection = self.readers.acquire().await?;
        let mut transaction = connection.begin_with(dialect::BEGIN_READ).await?;
        let found = state(&mut transaction, &self.sql, key).await?;
        let Some((session, state, now)) = found else { return Ok(None) };
        let (mut carried, mut window) = sent(&state.view);
        if state.revision == revision && now >= next {
            carried.clear();
            for range in &mut window {
                range.start = range.start.max(bound(next));
            }
        }
        let carried = messages(&mut transaction, &self.sql, session, &carried).await?;
        let window = messages(&mut transaction, &self.sql, session, &window).await?;
        transaction.commit().await?;
        Ok(Some(StoredSession::new(state, now, carried, window)))
    }

    pub(super) async fn read_transcript(
        &self,
        key: &SessionKey,
        positions: Range<i64>,
    ) -> Result<Vec<StoredMessage>, Failure> {
        let columns = MessageRow::COLUMNS;
        let sql = self.sql.text(&format!(
            "SELECT {columns} FROM {{p}}messages WHERE session = \
             (SELECT incarnation FROM {{p}}sessions WHERE key = $1) \
             AND position >= $2 AND position < $3 ORDER BY position"
        ));
        let select = sqlx::query_as::<_, MessageRow>(sql).bind(key.as_bytes());
        let select = select.bind(positions.start).bind(positions.end);
        parsed(select.fetch_all(&self.readers).await?).await
    }

    pub(super) async fn read_keys(&self, page: &ListPage) -> Result<Vec<SessionKey>, Failure> {
        let mut keys = Vec::new();
        for KeyRange { from, to } in ranges(page) {
            let left = bound(page.limit.saturating_sub(keys.len()) as u64);
            let below = if to.is_some() { "AND key < $3" } else { "" };
            let sql = self.sql.text(&format!(
                "SELECT key FROM {{p}}sessions WHERE key >= $1 {below} ORDER BY key LIMIT $2"
            ));
            let mut select = sqlx::query_scalar::<_, Vec<u8>>(sql).bind(from).bind(left);
            if let Some(to) = to {
                select = select.bind(to);
            }
            for key in select.fetch_all(&self.readers).await? {
                keys.push(key_of(key)?);
            }
        }
        Ok(keys)
    }
}

async fn state(
    connection: &mut Connection,
    sql: &Sql,
    key: &SessionKey,
) -> Result<Option<(i64, SessionState, u64)>, Failure> {
    let columns = StateRow::COLUMNS;
    let sql = sql.text(&format!("SELECT {columns} FROM {{p}}sessions WHERE key = $1"));
    let row = sqlx::query_as::<_, StateRow>(sql).bind(key.as_bytes());
    let Some(row) = row.fetch_optional(connection).await? else { return Ok(None) };
    let (state, next) = row.read()?;
    Ok(Some((row.incarnation, state, next)))
}

async fn messages(
    connection: &mut Connection,
    sql: &Sql,
    session: i64,
    ranges: &[Range<i64>],
) -> Result<Vec<StoredMessage>, Failure> {
    let columns = MessageRow::COLUMNS;
    let mut messages = Vec::new();
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        let sql = sql.text(&format!(
            "SELECT {columns} FROM {{p}}messages \
             WHERE session = $1 AND position >= $2 AND position < $3 ORDER BY position"
        ));
        let select = sqlx::query_as::<_, MessageRow>(sql).bind(session);
        let select = select.bind(range.start).bind(range.end);
        messages.extend(parsed(select.fetch_all(&mut *connection).await?).await?);
    }
    Ok(messages)
}

/// Reads messages, and lets others work in between: a window may be long.
async fn parsed(rows: Vec<MessageRow>) -> Result<Vec<StoredMessage>, Failure> {
    const AT_ONCE: usize = 256;
    let mut messages = Vec::with_capacity(rows.len());
    for (n, row) in rows.into_iter().enumerate() {
        if n % AT_ONCE == AT_ONCE - 1 {
            tokio::task::yield_now().await;
        }
        messages.push(row.read()?);
    }
    Ok(messages)
}
