//! Drops what retention says is no longer needed.

use std::time::Duration;

use async_trait::async_trait;

use super::{group::Group, writer::Write};
use crate::{
    session::View,
    store::{
        Retention,
        sql::{Failure, bound, parse},
    },
};

/// Goes over some sessions, so that other writes come in between.
pub(super) struct Purging {
    /// The last key that was gone over.
    pub(super) after: Vec<u8>,
}

/// What was dropped of some sessions.
pub(super) struct Purged {
    pub(super) messages: u64,
    /// The last of them; `None` where there are no more.
    pub(super) last: Option<Vec<u8>>,
}

const SESSIONS: i64 = 64;

#[async_trait]
impl Write for Purging {
    type Output = Purged;

    fn action(&self) -> String {
        "purge".to_owned()
    }

    async fn apply(&self, group: &mut Group<'_>) -> Result<Purged, Failure> {
        let mut purged = Purged { messages: 0, last: None };
        let before = match group.retention {
            Retention::Keep => return Ok(purged),
            Retention::Drop => i64::MAX,
            Retention::DropAfter(age) => group.now.saturating_sub(millis(age)),
        };
        group.flush().await?;
        let sql = group.sql.text(
            "SELECT key, incarnation, view FROM {p}sessions WHERE key > $1 ORDER BY key LIMIT $2",
        );
        let select = sqlx::query_as::<_, (Vec<u8>, i64, Vec<u8>)>(sql);
        let select = select.bind(self.after.as_slice()).bind(SESSIONS);
        for (key, session, view) in select.fetch_all(&mut *group.connection).await? {
            let view: View = parse("view", &view)?;
            let dropped = group.drop_older(session, &view, before).await?;
            purged.messages = purged.messages.saturating_add(dropped);
            let sql = group
                .sql
                .text("DELETE FROM {p}compactions WHERE session = $1 AND unix_millis < $2");
            let delete = sqlx::query(sql).bind(session).bind(before);
            delete.execute(&mut *group.connection).await?;
            purged.last = Some(key);
        }
        Ok(purged)
    }
}

fn millis(age: Duration) -> i64 {
    u64::try_from(age.as_millis()).map_or(i64::MAX, bound)
}
