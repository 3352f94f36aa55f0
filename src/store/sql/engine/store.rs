//! The calls of the trait: writes go through the writer, reads do not.

use async_trait::async_trait;

use super::{
    BACKEND, Store,
    purge::Purging,
    write::{Append, Committing, Removing, Rewriting},
};
use crate::{
    error::Result,
    session::{Revision, SessionKey},
    store::{
        Archive, Commit, CommitResult, Leases, ListPage, NewMessage, Receipt, Removed, Rewrite,
        RewriteResult, SessionStore, Since, StoredSession, UsageLog,
    },
};

#[async_trait]
impl SessionStore for Store {
    async fn append(&self, key: &SessionKey, messages: &[NewMessage]) -> Result<Receipt> {
        let append = Append { key: key.clone(), messages: messages.to_vec() };
        self.writer.submit(append).await
    }

    async fn load(&self, key: &SessionKey) -> Result<Option<StoredSession>> {
        let read = self.read_session(key).await;
        read.map_err(|failure| failure.at(BACKEND, format!("load session {:?}", &**key)))
    }

    async fn load_since(&self, key: &SessionKey, revision: Revision, next: u64) -> Result<Since> {
        let read = self.read_since(key, revision, next).await;
        read.map_err(|failure| failure.at(BACKEND, format!("load session {:?}", &**key)))
    }

    async fn commit(&self, key: &SessionKey, commit: Commit) -> Result<CommitResult> {
        self.writer.submit(Committing { key: key.clone(), commit }).await
    }

    async fn rewrite(&self, key: &SessionKey, rewrite: Rewrite) -> Result<RewriteResult> {
        self.writer.submit(Rewriting { key: key.clone(), rewrite }).await
    }

    async fn remove(&self, key: &SessionKey) -> Result<Removed> {
        self.writer.submit(Removing(key.clone())).await
    }

    async fn list(&self, page: ListPage) -> Result<Vec<SessionKey>> {
        let read = self.read_keys(&page).await;
        read.map_err(|failure| failure.at(BACKEND, "list sessions"))
    }

    async fn purge(&self) -> Result<u64> {
        let (mut messages, mut after) = (0_u64, Vec::new());
        loop {
            let purged = self.writer.submit(Purging { after }).await?;
            messages = messages.saturating_add(purged.messages);
            match purged.last {
                Some(last) => after = last,
                None => return Ok(messages),
            }
        }
    }

    fn is_shared(&self) -> bool {
        self.shared
    }

    fn archive(&self) -> Option<&dyn Archive> {
        Some(self)
    }

    fn leases(&self) -> Option<&dyn Leases> {
        Some(self)
    }

    fn usage(&self) -> Option<&dyn UsageLog> {
        Some(self)
    }
}
