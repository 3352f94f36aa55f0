//! Transcripts and compactions, where they are kept.

use std::ops::Range;

use async_trait::async_trait;
use dashmap::Entry;

use super::{MemoryStore, stored::Stored};
use crate::{
    error::{Error, Result},
    session::SessionKey,
    store::{Archive, Placed, Receipt, SessionExport, StoredCompaction, StoredMessage},
};

#[async_trait]
impl Archive for MemoryStore {
    async fn transcript(
        &self,
        key: &SessionKey,
        positions: Range<u64>,
    ) -> Result<Vec<StoredMessage>> {
        let stored = self.sessions.get(key);
        Ok(stored.map_or_else(Vec::new, |stored| stored.between(positions).cloned().collect()))
    }

    async fn compactions(
        &self,
        key: &SessionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StoredCompaction>> {
        let Some(stored) = self.sessions.get(key) else { return Ok(Vec::new()) };
        let newest = stored.compactions.iter().rev();
        let listed = newest.filter(|it| before.is_none_or(|before| it.number < before));
        Ok(listed.take(limit).cloned().collect())
    }

    async fn import(&self, key: &SessionKey, session: &SessionExport) -> Result<Receipt> {
        let session = session.prepared()?;
        match self.sessions.entry(key.clone()) {
            Entry::Occupied(_) => Err(Error::exists(key)),
            Entry::Vacant(vacant) => {
                self.log(|log| session.usage.iter().for_each(|event| log.add(key, event)));
                let placed = session.messages.iter().map(|kept| Placed::new(kept.position, false));
                let receipt = Receipt::new(session.state.revision, placed.collect());
                vacant.insert(Stored::imported(session));
                Ok(receipt)
            }
        }
    }
}
