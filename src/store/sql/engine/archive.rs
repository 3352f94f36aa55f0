//! What is kept of the past, and sessions from elsewhere.

use std::ops::Range;

use async_trait::async_trait;

use super::{BACKEND, Store, group::Group, writer::Write};
use crate::{
    error::{Error, Result},
    session::SessionKey,
    store::{
        Archive, Commit, Placed, Receipt, Retention, SessionExport, StoredCompaction,
        StoredMessage,
        sql::{CompactionRow, Failure, Header, New, bound, first_free, ids_from, signed},
    },
};

struct Importing {
    key: SessionKey,
    session: SessionExport,
}

#[async_trait]
impl Write for Importing {
    type Output = Receipt;

    fn action(&self) -> String {
        format!("import session {:?}", &*self.key)
    }

    async fn apply(&self, group: &mut Group<'_>) -> Result<Receipt, Failure> {
        group.flush().await?;
        if group.header(&self.key).await?.is_some() {
            return Err(Error::exists(&self.key).into());
        }
        let SessionExport { state, messages, compactions, usage, .. } = &self.session;
        let view = &state.view;
        let mut header = Header::new(state.revision)?;
        (header.cut, header.dormant) = (bound(view.cut), true);
        header.next = signed("next", self.session.next)?.max(first_free(view)?);
        let ids_from = ids_from(header.cut, header.next);
        let rows = messages
            .iter()
            .map(|kept| Ok((header.incarnation, New::imported(kept, view, ids_from)?)));
        let rows: Vec<_> = rows.collect::<Result<_, Failure>>()?;
        group.create(&self.key, &header, view).await?;
        group.insert(&rows).await?;
        group.measure(&mut header, view).await?;
        let mut state_alone = Commit::on(state.revision).with_pause(state.pause.clone());
        state_alone.options = Some(state.options.clone());
        group.save(&header, &state_alone).await?;
        if group.retention != Retention::Drop {
            for compaction in compactions {
                let unix_millis = bound(compaction.usage.unix_millis);
                group.keep_compaction(header.incarnation, compaction, unix_millis).await?;
            }
        }
        group.drop_hidden(header.incarnation, view).await?;
        group.record(&self.key, usage).await?;
        let placed = messages.iter().map(|kept| Placed::new(kept.position, false));
        Ok(Receipt::new(state.revision, placed.collect()))
    }
}

#[async_trait]
impl Archive for Store {
    async fn transcript(
        &self,
        key: &SessionKey,
        positions: Range<u64>,
    ) -> Result<Vec<StoredMessage>> {
        let range = bound(positions.start)..bound(positions.end);
        let read = self.read_transcript(key, range).await;
        read.map_err(|failure| failure.at(BACKEND, format!("read session {:?}", &**key)))
    }

    async fn compactions(
        &self,
        key: &SessionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StoredCompaction>> {
        let columns = CompactionRow::COLUMNS;
        let sql = self.sql.text(&format!(
            "SELECT {columns} FROM {{p}}compactions WHERE session = \
             (SELECT incarnation FROM {{p}}sessions WHERE key = $1) AND number < $2 \
             ORDER BY number DESC LIMIT $3"
        ));
        let select = sqlx::query_as::<_, CompactionRow>(sql).bind(key.as_bytes());
        let select = select.bind(before.map_or(i64::MAX, bound)).bind(bound(limit as u64));
        let rows = select.fetch_all(&self.readers).await;
        let read =
            || -> Result<Vec<_>, Failure> { rows?.into_iter().map(CompactionRow::read).collect() };
        read().map_err(|failure| {
            failure.at(BACKEND, format!("read compactions of session {:?}", &**key))
        })
    }

    async fn import(&self, key: &SessionKey, session: &SessionExport) -> Result<Receipt> {
        let session = session.prepared()?;
        self.writer.submit(Importing { key: key.clone(), session }).await
    }
}
