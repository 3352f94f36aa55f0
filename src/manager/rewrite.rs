//! What a host does to a history itself.

use std::sync::Arc;

use super::{
    Inner, SessionManager,
    cell::Cell,
    detached,
    view::{same_view, view},
};
use crate::{
    error::Result,
    message::Message,
    plan,
    session::{Change, Dropped, Session, SessionKey, StoredSummary},
    store::{Removed, Rewrite, RewriteResult},
};

impl SessionManager {
    /// Puts other messages in place of a session's history and keeps its
    /// summary. The messages get new positions; the old ones stay in the
    /// transcript, where the store keeps one.
    ///
    /// # Errors
    ///
    /// As for [`SessionManager::add_message`].
    pub async fn set_history(
        &self,
        key: &str,
        messages: impl IntoIterator<Item = Message>,
    ) -> Result<()> {
        let key = SessionKey::new(key)?;
        let new = self.0.new_messages(messages);
        let cell = self.0.cell(&key);
        loop {
            let look = |session: &mut Session| {
                let summary = session.snapshot().summary().cloned();
                (session.revision().map(|revision| (revision, session.next())), summary)
            };
            let (expected, summary) = self.0.with(&cell, look).await?;
            let rewrite = Rewrite { expected, messages: new.clone(), summary };
            if self.0.rewrite(&cell, rewrite).await? {
                return Ok(());
            }
        }
    }

    /// Sets a session's summary; an empty text removes it. A compaction that is
    /// running was made from the old one and is cancelled.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`].
    pub async fn set_summary(&self, key: &str, summary: impl Into<String>) -> Result<()> {
        let key = SessionKey::new(key)?;
        let summary = Some(self.0.redacted(summary.into()));
        let summary = summary.filter(|text| !text.is_empty()).map(StoredSummary::new);
        let cell = self.0.cell(&key);
        loop {
            let look = |session: &mut Session| session.exists().then(|| session.snapshot());
            let Some(now) = self.0.with(&cell, look).await? else {
                let rewrite = Rewrite::new(Vec::new(), summary);
                self.0.rewrite(&cell, rewrite).await?;
                return Ok(());
            };
            let view = same_view(&now, summary.clone());
            let sent = self.0.sent_of(&view);
            if self.0.put(&cell, &now, view, sent, Change::Rewritten).await? {
                self.0.claims.supersede(&key);
                return Ok(());
            }
        }
    }

    /// Keeps the last `keep_last` messages of a session's history and takes the
    /// rest out of it, unsummarized. The summary stays. More is kept where the
    /// cut would part a tool call from its results; system and pinned messages
    /// are carried.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`].
    pub async fn truncate_history(&self, key: &str, keep_last: usize) -> Result<()> {
        let key = SessionKey::new(key)?;
        let cell = self.0.cell(&key);
        loop {
            let now = self.0.with(&cell, |session| session.snapshot()).await?;
            let messages = now.marked();
            let cut = plan::keep_last(&messages, now.carried(), messages.len(), keep_last);
            let Ok(mut split) = plan::cut_at(&messages, now.carried(), cut) else {
                self.0.release(cell);
                return Ok(());
            };
            // The newest user message is the host's to take out as well.
            split.carried.retain(|index| {
                let message = messages.get(*index);
                message.is_some_and(|message| message.role().is_system() || message.is_pinned())
            });
            let mut view = view(&now, &split, now.summary().cloned(), Dropped::default());
            view.floor = Some(view.cut);
            let sent = self.0.sent_of(&view);
            if self.0.put(&cell, &now, view, sent, Change::Rewritten).await? {
                self.0.claims.supersede(&key);
                return Ok(());
            }
        }
    }

    /// Empties a session: history and summary. Its transcript stays, where the
    /// store keeps one; [`SessionManager::remove`] takes that as well.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`].
    pub async fn clear(&self, key: &str) -> Result<()> {
        let key = SessionKey::new(key)?;
        let cell = self.0.cell(&key);
        if self.0.with(&cell, |session| session.exists()).await? {
            self.0.rewrite(&cell, Rewrite::new(Vec::new(), None)).await?;
        } else {
            self.0.release(cell);
        }
        Ok(())
    }

    /// Removes a session with everything that the store keeps of it, and says
    /// how much that was.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`].
    pub async fn remove(&self, key: &str) -> Result<Removed> {
        let key = SessionKey::new(key)?;
        let cell = self.0.cell(&key);
        let inner = Arc::clone(&self.0);
        detached::run(&self.0.runtime, async move {
            let removed = inner.store.remove(&cell.key).await;
            match removed {
                Ok(_) => cell.lock().remove(),
                Err(_) => cell.lock().mark_dirty(),
            }
            inner.claims.supersede(&cell.key);
            inner.release(cell);
            removed
        })
        .await
    }
}

impl Inner {
    /// Rewrites a session and has memory read it again.
    async fn rewrite(self: &Arc<Self>, cell: &Arc<Cell>, rewrite: Rewrite) -> Result<bool> {
        let (inner, cell) = (Arc::clone(self), Arc::clone(cell));
        detached::run(&self.runtime, async move {
            let result = inner.store.rewrite(&cell.key, rewrite).await;
            cell.lock().mark_dirty();
            match result? {
                RewriteResult::Stale => Ok(false),
                RewriteResult::Rewritten(_) => {
                    inner.claims.supersede(&cell.key);
                    Ok(true)
                }
            }
        })
        .await
    }
}
