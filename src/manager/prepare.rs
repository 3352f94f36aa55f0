//! A context that fits, whatever it takes.

use std::{
    future::{Future, IntoFuture},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use tokio::time::{Instant, timeout_at};

use super::{Compact, Forced, Outcome, Report, SessionManager, cell::Cell};
use crate::{
    context::{self, Context, Least, Request, Step},
    error::{Error, Result},
    plan::Prune,
    session::{SessionKey, Snapshot},
    tokens::Tokens,
};

impl SessionManager {
    /// Returns a context that fits the session's context window, the room for
    /// the answer included. One that fits as it is costs no more than
    /// [`SessionManager::context`]. Else, until it fits:
    ///
    /// 1. a compaction is started, or the running one joined, and waited for:
    ///    until the configured `timeout`, or as [`Prepare::within`] says;
    /// 2. old, large tool results are sent as markers ([`Prune::default`]);
    /// 3. the older half is dropped, as by
    ///    [`SessionManager::force_compression`], again and again, until only
    ///    what must be sent is left.
    ///
    /// [`Context::steps`] says what was done.
    ///
    /// # Errors
    ///
    /// [`Error::is_irreducible`](crate::Error::is_irreducible) where what must
    /// be sent is too large by itself; where that can be told beforehand,
    /// nothing is done. Else as for [`SessionManager::context`].
    ///
    /// # Cancel safety
    ///
    /// A dropped future leaves a compaction running in the background.
    ///
    /// # Example
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> session_compaction::Result<()> {
    /// use std::time::Duration;
    /// use session_compaction::{ExtractiveSummarizer, Message, Request, SessionManager};
    ///
    /// let sessions =
    ///     SessionManager::builder().summarizer(ExtractiveSummarizer::default()).build()?;
    /// sessions.add_message("chat", Message::user("Is the disk full?")).await?;
    /// let request = Request::new().system("Be brief.").max_output(2_000);
    /// let context = sessions.prepare("chat", &request).within(Duration::from_secs(20)).await?;
    /// assert!(context.fits() && context.steps().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn prepare<'a>(&'a self, key: &'a str, request: &'a Request) -> Prepare<'a> {
        Prepare { sessions: self, key, request, within: None }
    }

    /// Takes the steps from a context that does not fit to one that does.
    pub(super) async fn fit(
        &self,
        cell: &Arc<Cell>,
        request: &Request,
        within: Option<Duration>,
    ) -> Result<(Snapshot, Context)> {
        let begun = Instant::now();
        let (mut snapshot, mut context) = self.0.made(cell, request).await?;
        if context.fits() {
            return Ok((snapshot, context));
        }
        self.reducible(&cell.key, &snapshot, &context, request)?;
        let options = self.0.with(cell, |session| session.options()).await?;
        let deadline = begun + within.unwrap_or(self.0.config_of(&options).timeout);
        let mut steps = Vec::new();
        let mut again = true;
        while again && !context.fits() {
            let step;
            (step, again) = self.wait_for_compaction(&cell.key, deadline).await;
            steps.push(step);
            (snapshot, context) = self.0.made(cell, request).await?;
        }
        let mut request = request.clone();
        if !context.fits() && request.prune.is_none() {
            request = request.prune(Prune::default());
            let tokens_before = context.tokens();
            (snapshot, context) = self.0.made(cell, &request).await?;
            let tokens_after = context.tokens();
            if tokens_after < tokens_before {
                steps.push(Step::Pruned { tokens_before, tokens_after });
            }
        }
        while !context.fits() {
            let Forced::Dropped { messages, .. } = self.0.force(cell, 0, false).await? else {
                let least = context.least(&snapshot);
                let tokens = least.tokens.max(Tokens::from_tokens(context.tokens()));
                return Err(irreducible(&cell.key, &context, Least { tokens, ..least }));
            };
            steps.push(Step::Forced { messages });
            (snapshot, context) = self.0.made(cell, &request).await?;
        }
        Ok((snapshot, context.after(steps)))
    }

    /// Waits for one compaction; true where another one may help.
    async fn wait_for_compaction(&self, key: &str, deadline: Instant) -> (Step, bool) {
        let mut outcome = self.start(key, Compact::if_due(), None).await;
        // A context is wanted now: it cannot wait for another process.
        if matches!(outcome, Outcome::BelowThreshold { .. } | Outcome::Deferred) {
            outcome = self.start(key, Compact::now(), None).await;
        }
        let not_compacted = |reason: String| Step::NotCompacted { reason };
        let (handle, joined) = match outcome {
            Outcome::Started(handle) => (handle, false),
            Outcome::InFlight(handle) => (handle, true),
            outcome => return (not_compacted(outcome.to_string()), false),
        };
        match timeout_at(deadline, handle.into_future()).await {
            Ok(Report::Applied(done)) => {
                let (tokens_before, tokens_after) = (done.tokens_before, done.tokens_after);
                (Step::Compacted { tokens_before, tokens_after }, joined)
            }
            Ok(report) => (not_compacted(report.to_string()), joined),
            Err(_) => (not_compacted("the deadline has passed".into()), false),
        }
    }

    /// Fails where no step could make it fit.
    fn reducible(
        &self,
        key: &SessionKey,
        snapshot: &Snapshot,
        context: &Context,
        request: &Request,
    ) -> Result<()> {
        let rule = request.prune.unwrap_or_default();
        let pruned = context::pruned(snapshot, &rule, &*self.0.counter);
        let least = context.least(&pruned);
        if least.tokens.count().saturating_add(context.reserve()) > context.window() {
            return Err(irreducible(key, context, least));
        }
        Ok(())
    }
}

fn irreducible(key: &SessionKey, context: &Context, least: Least) -> Error {
    let (tokens, largest) = (least.tokens.count(), least.largest.count());
    Error::irreducible(key, tokens, context.reserve(), context.window(), largest)
}

/// A context that is being prepared: await it.
#[derive(Clone, Debug)]
#[must_use = "nothing is done until it is awaited"]
pub struct Prepare<'a> {
    sessions: &'a SessionManager,
    key: &'a str,
    request: &'a Request,
    within: Option<Duration>,
}

impl Prepare<'_> {
    /// Sets how long a compaction is waited for; the configured `timeout`
    /// unless it is called.
    pub const fn within(mut self, duration: Duration) -> Self {
        self.within = Some(duration);
        self
    }
}

impl<'a> IntoFuture for Prepare<'a> {
    type Output = Result<Context>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let cell = self.sessions.0.cell(&SessionKey::new(self.key)?);
            let made = self.sessions.fit(&cell, self.request, self.within).await;
            self.sessions.0.release(cell);
            Ok(made?.1)
        })
    }
}
