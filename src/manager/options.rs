//! What a host sets for one session alone.

use std::sync::Arc;

use super::{Inner, SessionManager, cell::Cell, detached};
use crate::{
    error::Result,
    session::{Pause, PauseUntil, Revision, Session, SessionKey, SessionOptions},
    store::{Commit, CommitResult},
};

impl SessionManager {
    /// Sets a session's own options, all of them: what is not set in `options`
    /// is as the manager's configuration has it. They are stored with the
    /// session, which is created where there is none, and hold from the next
    /// call on.
    ///
    /// Another model or context window ends a pause that waited for the
    /// session to grow: after a switch to a model with a smaller window the
    /// next check finds a compaction due.
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
    /// use session_compaction::{SessionManager, SessionOptions};
    ///
    /// let sessions = SessionManager::builder().build()?;
    /// sessions.configure("chat", SessionOptions::new().context_window(32_768)).await?;
    /// assert_eq!(sessions.options("chat").await?.context_window, Some(32_768));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn configure(&self, key: &str, options: SessionOptions) -> Result<()> {
        let key = SessionKey::new(key)?;
        let cell = self.0.cell(&key);
        self.0.configure(&cell, |_| options.clone()).await?;
        // What a refusal has taught was of the model until now.
        self.0.with(&cell, |session| session.learn(None)).await
    }

    /// Returns a session's own options.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`].
    pub async fn options(&self, key: &str) -> Result<SessionOptions> {
        let cell = self.0.cell(&SessionKey::new(key)?);
        let options = self.0.with(&cell, |session| session.options()).await;
        self.0.release(cell);
        options.map(Arc::unwrap_or_clone)
    }
}

impl Inner {
    /// Changes a session's options, again where something else came first.
    pub(super) async fn configure(
        self: &Arc<Self>,
        cell: &Arc<Cell>,
        change: impl Fn(&SessionOptions) -> SessionOptions,
    ) -> Result<()> {
        loop {
            let look = |session: &mut Session| {
                (session.revision(), session.options(), session.pause().cloned())
            };
            let (revision, old, pause) = self.with(cell, look).await?;
            let new = change(&old);
            let switched = (&new.model, new.context_window) != (&old.model, old.context_window);
            let grows = |pause: &Pause| matches!(pause.until, PauseUntil::Tokens(_));
            let pause = pause.filter(|pause| !(switched && grows(pause)));
            if self.set_options(cell, revision, new, pause).await? {
                return Ok(());
            }
        }
    }

    async fn set_options(
        self: &Arc<Self>,
        cell: &Arc<Cell>,
        revision: Option<Revision>,
        options: SessionOptions,
        pause: Option<Pause>,
    ) -> Result<bool> {
        let (inner, cell) = (Arc::clone(self), Arc::clone(cell));
        detached::run(&self.runtime, async move {
            let revision = match revision {
                Some(revision) => revision,
                // Nothing is appended: this creates the session, and takes
                // nothing from one that was created meanwhile.
                None => inner.store.append(&cell.key, &[]).await?.revision,
            };
            let limits = inner.limits_with(&options);
            let commit =
                Commit::on(revision).with_options(options).with_limits(limits).with_pause(pause);
            let result = inner.store.commit(&cell.key, commit).await;
            cell.lock().mark_dirty();
            Ok(matches!(result?, CommitResult::Committed(_)))
        })
        .await
    }
}
