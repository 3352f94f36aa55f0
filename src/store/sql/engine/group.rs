//! One transaction: what it has read of sessions, and what it has yet to
//! write of their messages.

use std::collections::HashMap;

use sqlx::FromRow;

use super::{
    dialect::{self, Connection},
    query::{Sql, batches, values},
};
use crate::{
    session::{Revision, SessionKey, SessionOptions, View},
    store::{
        NewMessage, Receipt, Retention,
        sql::{Failure, Header, Known, New, asked, document, key_of, place, unsigned},
    },
};

/// Appends of one transaction are gathered here, so that many writers cost few
/// statements. All other writes go to the database at once, after
/// [`Group::flush`].
pub(super) struct Group<'a> {
    pub(super) connection: &'a mut Connection,
    pub(super) sql: &'a Sql,
    pub(super) retention: Retention,
    /// Milliseconds since 1970.
    pub(super) now: i64,
    /// Headers that were read ahead; `None`: there is no such session.
    ahead: HashMap<SessionKey, Option<Header>>,
    open: HashMap<SessionKey, Open>,
    messages: Vec<(i64, New)>,
}

/// A header and whose it is.
#[derive(FromRow)]
struct Keyed {
    key: Vec<u8>,
    #[sqlx(flatten)]
    header: Header,
}

/// A session that messages are appended to.
struct Open {
    header: Header,
    /// Ids that were looked up, or taken by this transaction.
    ids: HashMap<Vec<u8>, Known>,
    state: Saved,
}

/// What the database has of a session.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Saved {
    /// An older header.
    Changed,
    /// Nothing.
    Missing,
    /// The same header.
    Same,
}

impl<'a> Group<'a> {
    pub(super) fn new(
        connection: &'a mut Connection,
        sql: &'a Sql,
        retention: Retention,
        now: i64,
    ) -> Self {
        let (ahead, open, messages) = (HashMap::new(), HashMap::new(), Vec::new());
        Self { connection, sql, retention, now, ahead, open, messages }
    }

    /// Reads the headers of sessions that will be appended to.
    pub(super) async fn read_ahead(&mut self, keys: &[SessionKey]) -> Result<(), Failure> {
        for batch in batches(keys) {
            let columns = Header::COLUMNS;
            let sql = self.sql.text(&format!(
                "SELECT key, {columns} FROM {{p}}sessions WHERE key IN {} ORDER BY key {}",
                values(1, batch.len()),
                dialect::LOCK
            ));
            let mut select = sqlx::query_as::<_, Keyed>(sql);
            for key in batch {
                select = select.bind(key.as_bytes());
                self.ahead.insert(key.clone(), None);
            }
            for Keyed { key, header } in select.fetch_all(&mut *self.connection).await? {
                self.ahead.insert(key_of(key)?, Some(header));
            }
        }
        Ok(())
    }

    /// Adds messages to a session, which is created where there is none.
    pub(super) async fn append(
        &mut self,
        key: &SessionKey,
        messages: &[NewMessage],
    ) -> Result<Receipt, Failure> {
        let mut open = match self.open.remove(key) {
            Some(open) => open,
            None => match self.look_up(key).await? {
                Some(header) => Open { header, ids: HashMap::new(), state: Saved::Same },
                None => Open {
                    header: Header::new(Revision::fresh())?,
                    ids: HashMap::new(),
                    state: Saved::Missing,
                },
            },
        };
        if open.state != Saved::Missing {
            let ids = asked(messages).filter(|id| !open.ids.contains_key(id));
            let ids: Vec<_> = ids.collect();
            let session = open.header.incarnation;
            open.ids.extend(self.known(session, ids).await?);
        }
        match add(key, &mut open, messages) {
            Ok((receipt, added)) => {
                let session = open.header.incarnation;
                self.messages.extend(added.into_iter().map(|new| (session, new)));
                self.open.insert(key.clone(), open);
                Ok(receipt)
            }
            Err(failure) => {
                // What is refused creates no session.
                if open.state != Saved::Missing {
                    self.open.insert(key.clone(), open);
                }
                Err(failure)
            }
        }
    }

    /// Writes what was gathered, and forgets what was read.
    pub(super) async fn flush(&mut self) -> Result<(), Failure> {
        self.ahead.clear();
        let mut changed = Vec::new();
        for (key, open) in std::mem::take(&mut self.open) {
            match open.state {
                Saved::Changed => changed.push(open.header),
                Saved::Missing => self.create(&key, &open.header, &View::default()).await?,
                Saved::Same => {}
            }
        }
        self.update(&changed).await?;
        let messages = std::mem::take(&mut self.messages);
        self.insert(&messages).await
    }

    async fn look_up(&mut self, key: &SessionKey) -> Result<Option<Header>, Failure> {
        match self.ahead.remove(key) {
            Some(header) => Ok(header),
            None => self.header(key).await,
        }
    }

    /// Reads a session's header.
    pub(super) async fn header(&mut self, key: &SessionKey) -> Result<Option<Header>, Failure> {
        let columns = Header::COLUMNS;
        let sql = self
            .sql
            .text(&format!("SELECT {columns} FROM {{p}}sessions WHERE key = $1 {}", dialect::LOCK));
        let header = sqlx::query_as(sql).bind(key.as_bytes());
        Ok(header.fetch_optional(&mut *self.connection).await?)
    }

    /// Creates a session.
    pub(super) async fn create(
        &mut self,
        key: &SessionKey,
        header: &Header,
        view: &View,
    ) -> Result<(), Failure> {
        let sql = self.sql.text(
            "INSERT INTO {p}sessions (key, incarnation, counter, cut, next, window_messages, \
             window_chars, window_tokens, carried_tokens, dormant, created_millis, \
             updated_millis, options, view) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11, $12, $13)",
        );
        let insert = sqlx::query(sql)
            .bind(key.as_bytes())
            .bind(header.incarnation)
            .bind(header.counter)
            .bind(header.cut)
            .bind(header.next)
            .bind(header.window_messages)
            .bind(header.window_chars)
            .bind(header.window_tokens)
            .bind(header.carried_tokens)
            .bind(header.dormant)
            .bind(self.now)
            .bind(document("options", &SessionOptions::default())?)
            .bind(document("view", view)?);
        insert.execute(&mut *self.connection).await?;
        Ok(())
    }

    /// Writes what appending changes of sessions.
    async fn update(&mut self, headers: &[Header]) -> Result<(), Failure> {
        for batch in batches(headers) {
            let sql = self.sql.text(&format!(
                "UPDATE {{p}}sessions SET next = new.column2, window_messages = new.column3, \
                 window_chars = new.column4, window_tokens = new.column5, \
                 dormant = new.column6, updated_millis = new.column7 \
                 FROM (VALUES {}) AS new WHERE incarnation = new.column1",
                values(batch.len(), 7)
            ));
            let mut update = sqlx::query(sql);
            for header in batch {
                update = update
                    .bind(header.incarnation)
                    .bind(header.next)
                    .bind(header.window_messages)
                    .bind(header.window_chars)
                    .bind(header.window_tokens)
                    .bind(header.dormant)
                    .bind(self.now);
            }
            update.execute(&mut *self.connection).await?;
        }
        Ok(())
    }

    /// Writes messages, each with its session, and takes their ids.
    pub(super) async fn insert(&mut self, messages: &[(i64, New)]) -> Result<(), Failure> {
        for batch in batches(messages) {
            let sql = self.sql.text(&format!(
                "INSERT INTO {{p}}messages \
                 (session, position, chars, tokens, unix_millis, payload) VALUES {}",
                values(batch.len(), 6)
            ));
            let mut insert = sqlx::query(sql);
            for (session, new) in batch {
                insert = insert
                    .bind(session)
                    .bind(new.position)
                    .bind(new.chars)
                    .bind(new.tokens)
                    .bind(new.unix_millis.unwrap_or(self.now))
                    .bind(new.payload.as_slice());
            }
            insert.execute(&mut *self.connection).await?;
        }
        self.take_ids(messages, Taken::Replaced).await
    }

    /// Takes the ids of messages; of those that are taken already, what is said.
    pub(super) async fn take_ids(
        &mut self,
        messages: &[(i64, New)],
        taken: Taken,
    ) -> Result<(), Failure> {
        let named = messages.iter().filter(|(_, new)| new.id.is_some());
        let named: Vec<_> = named.collect();
        for batch in batches(&named) {
            let sql = self.sql.text(&format!(
                "INSERT INTO {{p}}message_ids (session, id, position, fingerprint) VALUES {} \
                 ON CONFLICT (session, id) {}",
                values(batch.len(), 4),
                taken.sql()
            ));
            let mut insert = sqlx::query(sql);
            for (session, new) in batch {
                let id = new.id.as_deref();
                insert = insert.bind(session).bind(id).bind(new.position).bind(new.fingerprint);
            }
            insert.execute(&mut *self.connection).await?;
        }
        Ok(())
    }

    /// Looks ids up.
    async fn known(
        &mut self,
        session: i64,
        ids: Vec<Vec<u8>>,
    ) -> Result<Vec<(Vec<u8>, Known)>, Failure> {
        let mut known = Vec::new();
        for batch in batches(&ids) {
            let sql = self.sql.text(&format!(
                "SELECT id, position, fingerprint FROM {{p}}message_ids \
                 WHERE session = ${} AND id IN {}",
                batch.len().saturating_add(1),
                values(1, batch.len())
            ));
            let mut select = sqlx::query_as::<_, (Vec<u8>, i64, i64)>(sql);
            for id in batch {
                select = select.bind(id.as_slice());
            }
            let rows = select.bind(session).fetch_all(&mut *self.connection).await?;
            for (id, position, fingerprint) in rows {
                let position = unsigned("position", position)?;
                known.push((id, Known { position, fingerprint }));
            }
        }
        Ok(known)
    }
}

/// What becomes of ids that are taken already.
#[derive(Clone, Copy)]
pub(super) enum Taken {
    Kept,
    Replaced,
}

impl Taken {
    const fn sql(self) -> &'static str {
        match self {
            Self::Kept => "DO NOTHING",
            Self::Replaced => {
                "DO UPDATE SET position = excluded.position, fingerprint = excluded.fingerprint"
            }
        }
    }
}

fn add(
    key: &SessionKey,
    open: &mut Open,
    messages: &[NewMessage],
) -> Result<(Receipt, Vec<New>), Failure> {
    let (placed, added) = place(key, open.header.next()?, messages, &open.ids)?;
    let receipt = Receipt::new(open.header.revision()?, placed);
    open.header.grow(&added);
    open.ids.extend(added.iter().filter_map(New::taken));
    if !added.is_empty() && open.state == Saved::Same {
        open.state = Saved::Changed;
    }
    Ok((receipt, added))
}
