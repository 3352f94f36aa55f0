//! Statistics from what the store keeps, and the host's own model calls.

use super::{
    Inner, SessionManager,
    trigger::{limits, measured},
};
use crate::{
    error::{Error, Result},
    session::SessionKey,
    stats::{SessionTimeline, SessionTotals, Stats},
    store::{ListPage, UsageLog, UsagePage},
    usage::{Counter, UsageEvent},
};

impl SessionManager {
    /// Stores a call that the host made to its own model, so that statistics
    /// show it beside the compactions. Where the event has no time it is that
    /// of now; where it has no cost and its model has a
    /// [price](super::SessionManagerBuilder::prices), that is filled in.
    ///
    /// This does not feed the trigger, since an event does not say which
    /// context was sent: [`report_usage`](Self::report_usage) does, and
    /// [`Turn::reply`](crate::Turn::reply).
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`], and
    /// [`Error::is_unsupported`] where the store keeps no usage events.
    ///
    /// # Cancel safety
    ///
    /// A dropped future has stored the event or not.
    ///
    /// # Example
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> session_compaction::Result<()> {
    /// use std::time::Duration;
    /// use session_compaction::{Counter, SessionManager, TokenUsage, UsageEvent};
    ///
    /// let sessions = SessionManager::builder().build()?;
    /// let usage = TokenUsage::new(1_200, 80);
    /// let call = UsageEvent::query("gpt-5", usage, Duration::from_secs(2)).with_tools(1, 0);
    /// sessions.record_usage("chat", call).await?;
    /// assert_eq!(sessions.stats().await?.totals.of(Counter::ToolCalls), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn record_usage(&self, key: &str, event: UsageEvent) -> Result<()> {
        let key = SessionKey::new(key)?;
        self.0.usage_log()?.record(&key, &self.0.priced(event)).await
    }

    /// Returns what was done in all sessions of the store and what it cost: by
    /// all processes, also before this one. Costs the same however many events
    /// there are.
    ///
    /// # Errors
    ///
    /// [`Error::is_store`] where the store fails, [`Error::is_unsupported`]
    /// where it keeps no usage events.
    pub async fn stats(&self) -> Result<Stats> {
        let log = self.0.usage_log()?;
        Ok(Stats {
            sessions: log.sessions().await?,
            totals: log.totals(None).await?,
            days: log.days(Stats::DAYS).await?,
            recent: log.events(UsagePage::newest(Stats::RECENT)).await?,
            largest: log.largest(Counter::TokensRemoved, Stats::RANKED).await?,
            slowest: log.largest(Counter::LatencyMillis, Stats::RANKED).await?,
        })
    }

    /// Returns the sums of sessions in the order of their keys' bytes: at most
    /// `limit`, and only those after a key.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`], and
    /// [`Error::is_unsupported`] where the store keeps no usage events.
    pub async fn stats_sessions(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<SessionTotals>> {
        let log = self.0.usage_log()?;
        let mut page = ListPage::first(limit);
        page.after = after.map(SessionKey::new).transpose()?;
        let mut rows = Vec::new();
        for key in self.list_sessions(page).await? {
            let totals = log.totals(Some(&key)).await?;
            rows.push(SessionTotals::new(key, totals));
        }
        Ok(rows)
    }

    /// Returns how one session's context grew and was compacted, from its newest
    /// 500 events.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`], and
    /// [`Error::is_unsupported`] where the store keeps no usage events.
    pub async fn session_timeline(&self, key: &str) -> Result<SessionTimeline> {
        let key = SessionKey::new(key)?;
        let log = self.0.usage_log()?;
        let cell = self.0.cell(&key);
        let looked = self
            .0
            .with(&cell, |session| {
                let window = self.0.window(session);
                let config = self.0.config_of(&session.options()).into_owned();
                (window, limits(&config, window).tokens, measured(session))
            })
            .await;
        self.0.release(cell);
        let (window, trigger, now) = looked?;
        let totals = log.totals(Some(&key)).await?;
        let events = log.events(UsagePage::newest(SessionTimeline::EVENTS).of(key.clone())).await?;
        Ok(SessionTimeline::new(key, (window, trigger), now, totals, events))
    }
}

impl Inner {
    fn usage_log(&self) -> Result<&dyn UsageLog> {
        self.store.usage().ok_or_else(|| {
            Error::unsupported(
                "session",
                "usage events",
                "use one whose usage() returns a log, as those of this crate do",
            )
        })
    }
}
