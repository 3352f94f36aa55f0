//! What a host sets for one session alone.

use std::{borrow::Cow, sync::Arc};

use super::{Inner, Outcome, SessionManager, cell::Cell, detached, trigger::limits};
use crate::{
    config::{self, SummarizationConfig},
    error::{Error, Result},
    session::{Pause, PauseUntil, Revision, Session, SessionKey, SessionOptions},
    store::{Commit, CommitResult},
    summarize::Summarizer,
};

impl SessionManager {
    /// Sets a session's own options, all of them: what is not set in `options`
    /// is as the manager's configuration has it. They are stored with the
    /// session, which is created where there is none, and hold from the next
    /// call on.
    ///
    /// Another model, context window or configuration ends a pause that waited
    /// for the session to grow: after a switch to a model with a smaller window the
    /// next check finds a compaction due.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`], and
    /// [`Error::is_config`](crate::Error::is_config) where the options name a
    /// summarizer that the manager was not built with, or where the values that
    /// they set do not go with those of its configuration. Nothing is changed
    /// then.
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
        self.0.check_options(&options)?;
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
    /// The configuration of a session with these options.
    pub(super) fn config_of(&self, options: &SessionOptions) -> Cow<'_, SummarizationConfig> {
        match &options.config {
            Some(overrides) => Cow::Owned(overrides.over(&self.config)),
            None => Cow::Borrowed(&self.config),
        }
    }

    /// Returns the context window of a session in tokens: its own, that of its
    /// model, or the configured one; less where a provider has refused so much.
    pub(super) fn window(&self, session: &Session) -> u64 {
        let window = self.usual_window(&session.options());
        session.ceiling().map_or(window, |ceiling| window.min(ceiling))
    }

    fn usual_window(&self, options: &SessionOptions) -> u64 {
        let usual = || config::context_window(options.model.as_deref()?);
        options.context_window.or_else(usual).unwrap_or(self.config.context_window)
    }

    /// Who writes the summaries of a session with these options. Another
    /// manager, in another process, may have set a name that is not known here.
    pub(super) fn summarizer_of(
        &self,
        options: &SessionOptions,
    ) -> Result<Arc<dyn Summarizer>, Outcome> {
        let Some(name) = &options.summarizer else {
            return self.summarizer.clone().ok_or(Outcome::NoSummarizer);
        };
        let unknown = || Outcome::UnknownSummarizer { name: name.clone() };
        self.named.get(name).cloned().ok_or_else(unknown)
    }

    fn check_options(&self, options: &SessionOptions) -> Result<()> {
        if let Some(name) =
            options.summarizer.as_ref().filter(|name| !self.named.contains_key(*name))
        {
            let known: Vec<_> = self.named.keys().map(|known| format!("{known:?}")).collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            let problem = format!(
                "the manager was built without a summarizer of the name {name:?}; it has {known}: add it with summarizer_named()"
            );
            return Err(Error::config("SessionOptions", "summarizer", problem));
        }
        match &options.config {
            Some(overrides) => overrides.over(&self.config).check(),
            None => Ok(()),
        }
    }

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
            let bounds = |options: &SessionOptions| {
                (options.model.clone(), options.context_window, options.config.clone())
            };
            let switched = bounds(&new) != bounds(&old);
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
            let limits = limits(&inner.config_of(&options), inner.usual_window(&options));
            let commit =
                Commit::on(revision).with_options(options).with_limits(limits).with_pause(pause);
            let result = inner.store.commit(&cell.key, commit).await;
            cell.lock().mark_dirty();
            Ok(matches!(result?, CommitResult::Committed(_)))
        })
        .await
    }
}
