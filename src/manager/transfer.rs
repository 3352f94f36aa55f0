//! Sessions in and out of a store, and their removal by scope.

use super::{Inner, SessionManager};
use crate::{
    error::{Error, Result},
    message::MessageId,
    session::SessionKey,
    store::{Archive, ListPage, SessionExport, Since, UsagePage},
};

/// What [`SessionManager::remove_scope`] removed.
///
/// # Example
///
/// ```
/// use session_compaction::RemovedScope;
///
/// assert_eq!(RemovedScope::default().sessions, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct RemovedScope {
    /// How many sessions.
    pub sessions: u64,
    /// How many messages went with them.
    pub messages: u64,
}

impl SessionManager {
    /// Reads everything that the store holds of a session: its messages, its
    /// state, its compactions and usage events. Without an
    /// [`Archive`](crate::Archive) that is what is sent of it. `None` where
    /// there is no such session.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`].
    ///
    /// # Example
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> session_compaction::Result<()> {
    /// use session_compaction::{MemoryStore, Message, SessionManager};
    ///
    /// let old = SessionManager::builder().store(MemoryStore::keep_transcripts()).build()?;
    /// old.add_message("chat", Message::user("hello")).await?;
    /// let exported = old.export("chat").await?.unwrap();
    ///
    /// let new = SessionManager::builder().store(MemoryStore::keep_transcripts()).build()?;
    /// new.import("chat", exported).await?;
    /// assert_eq!(new.history("chat").await?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn export(&self, key: &str) -> Result<Option<SessionExport>> {
        let key = SessionKey::new(key)?;
        loop {
            let Some(stored) = self.0.store.load(&key).await? else { return Ok(None) };
            let mut export = SessionExport::new(stored.state, stored.next, Vec::new());
            let (revision, next) = (export.state.revision, export.next);
            export.messages = match self.0.store.archive() {
                Some(archive) => archive.transcript(&key, 0..next).await?,
                None => stored.carried.into_iter().chain(stored.window).collect(),
            };
            self.0.compactions_of(&key, &mut export).await?;
            self.0.usage_of(&key, &mut export).await?;
            // What was written meanwhile is half in it: once more.
            match self.0.store.load_since(&key, revision, next).await? {
                Since::Same(tail) if tail.next == next => return Ok(Some(export)),
                _ => {}
            }
        }
    }

    /// Creates a session from an export, in one step: positions, times, and
    /// what is sent are those of the export. Messages without an id get one.
    /// No compaction is due by [`SessionManager::run_due`] until something is
    /// appended.
    ///
    /// # Errors
    ///
    /// [`Error::is_exists`](crate::Error::is_exists) where there is such a
    /// session, and [`Error::is_unsupported`](crate::Error::is_unsupported)
    /// where the store keeps no transcripts.
    pub async fn import(&self, key: &str, mut session: SessionExport) -> Result<()> {
        let key = SessionKey::new(key)?;
        let archive = self.0.archive()?;
        for kept in &mut session.messages {
            if kept.message.id().is_none() {
                let message = kept.message.as_ref().clone();
                kept.message = message.with_id(MessageId::generate()).into();
            }
        }
        let cell = self.0.cell(&key);
        let imported = archive.import(&key, &session).await;
        cell.lock().mark_dirty();
        self.0.release(cell);
        imported.map(drop)
    }

    /// Removes all sessions of a scope with everything that the store keeps of
    /// them: the session that is called so, and those whose keys go on after
    /// it with `:` or `/`. One that is created meanwhile may stay.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`]; what was removed until then
    /// is gone.
    ///
    /// # Example
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> session_compaction::Result<()> {
    /// use session_compaction::{Message, SessionManager};
    ///
    /// let sessions = SessionManager::builder().build()?;
    /// for key in ["tenant:7:a", "tenant:7:b", "tenant:70:a"] {
    ///     sessions.add_message(key, Message::user("hello")).await?;
    /// }
    /// let removed = sessions.remove_scope("tenant:7").await?;
    /// assert_eq!((removed.sessions, removed.messages), (2, 2));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn remove_scope(&self, scope: &str) -> Result<RemovedScope> {
        let scope = SessionKey::new(scope)?;
        let mut removed = RemovedScope::default();
        let mut page = ListPage::first(PAGE).within(scope);
        loop {
            let keys = self.0.store.list(page.clone()).await?;
            let Some(last) = keys.last().cloned() else { return Ok(removed) };
            for key in &keys {
                let one = self.remove(key).await?;
                removed.sessions += u64::from(one.existed);
                removed.messages = removed.messages.saturating_add(one.messages);
            }
            page = page.after(last);
        }
    }

    /// Removes for good what the store's retention says is no longer needed,
    /// in all sessions, and returns how many messages that were. For a job
    /// that runs now and then.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`].
    pub async fn purge(&self) -> Result<u64> {
        self.0.store.purge().await
    }
}

/// How many sessions, compactions or events are read at a time.
const PAGE: usize = 500;

impl Inner {
    pub(super) fn archive(&self) -> Result<&dyn Archive> {
        self.store.archive().ok_or_else(|| {
            let remedy = "use one that does, or MemoryStore::keep_transcripts()";
            Error::unsupported("session", "transcripts", remedy)
        })
    }

    async fn compactions_of(&self, key: &SessionKey, export: &mut SessionExport) -> Result<()> {
        let Some(archive) = self.store.archive() else { return Ok(()) };
        let mut before = None;
        loop {
            let page = archive.compactions(key, before, PAGE).await?;
            let Some(oldest) = page.last() else { break };
            before = Some(oldest.number);
            export.compactions.extend(page);
        }
        export.compactions.reverse();
        Ok(())
    }

    async fn usage_of(&self, key: &SessionKey, export: &mut SessionExport) -> Result<()> {
        let Some(log) = self.store.usage() else { return Ok(()) };
        let mut page = UsagePage::newest(PAGE).of(key.clone());
        loop {
            let records = log.events(page.clone()).await?;
            let Some(oldest) = records.last() else { break };
            page = page.before(oldest.number);
            export.usage.extend(records.into_iter().map(|record| record.event));
        }
        export.usage.reverse();
        Ok(())
    }
}
