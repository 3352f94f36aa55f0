//! A turn: the user speaks, the model answers, tools run, until it is done.

use std::{fmt, sync::Arc};

use super::{CompactionHandle, Outcome, SessionManager, cell::Cell};
use crate::{
    context::{Context, Request},
    error::Result,
    formats::Reply,
    message::{Message, ToolCall},
    provider::Overflow,
    session::{Session, SessionKey, SessionOptions, Snapshot},
};

/// One turn of a conversation, from a message of the user to the answer.
///
/// What it appends is kept at once, as by
/// [`SessionManager::add_message`]: dropping a turn keeps it, as the end of the
/// process does. Only [`Turn::rollback`] takes it back.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Message, Request, SessionManager, formats::openai_chat};
///
/// let sessions = SessionManager::builder().build()?;
/// let request = Request::new().system("You look after a machine.");
/// let mut turn = sessions.turn("chat", Message::user("Is the disk full?")).await?;
///
/// let context = turn.context(&request).await?;
/// // .. the model is asked with `context.to_openai_chat()`, and answers ..
/// let answer = r#"{"choices":[{"finish_reason":"stop",
///     "message":{"role":"assistant","content":"42% used."}}],
///     "usage":{"prompt_tokens":57,"completion_tokens":5}}"#;
/// let calls = turn.reply(&context, openai_chat::parse_reply(answer)?).await?;
/// assert!(calls.is_empty()); // else: run them, and give the turn their results
/// turn.finish().await;
/// # Ok(())
/// # }
/// ```
#[must_use = "a turn goes on until its model has answered"]
pub struct Turn {
    sessions: SessionManager,
    cell: Arc<Cell>,
    /// What the session held when the turn began, its first message included.
    begun: Snapshot,
    /// What the last context was made from.
    held: Option<Snapshot>,
    /// Positions of what this turn has appended.
    own: Vec<u64>,
    /// What the last context takes of the window, the answer included.
    takes: Option<u64>,
    recovered: u8,
}

impl SessionManager {
    /// Begins a turn with a message of the user, which is kept when this
    /// returns.
    ///
    /// # Errors
    ///
    /// As for [`SessionManager::add_message`].
    pub async fn turn(&self, key: &str, message: Message) -> Result<Turn> {
        let cell = self.0.cell(&SessionKey::new(key)?);
        let added = self.add_message(key, message).await?;
        let begun = self.0.with(&cell, |session| session.snapshot()).await?;
        Ok(Turn {
            sessions: self.clone(),
            cell,
            held: Some(begun.clone()),
            begun,
            own: Some(added)
                .filter(|added| !added.duplicate)
                .map(|a| a.position)
                .into_iter()
                .collect(),
            takes: None,
            recovered: 0,
        })
    }
}

impl Turn {
    /// How often [`Turn::recover`] tries.
    const MOST_RECOVERIES: u8 = 3;

    /// Returns a context that fits, as [`SessionManager::prepare`] does.
    ///
    /// A turn stays on the summary that it began with: a compaction that ends
    /// meanwhile takes no result of this turn away and leaves the provider's
    /// prompt cache valid, until the context would no longer fit.
    ///
    /// # Errors
    ///
    /// As for [`SessionManager::prepare`].
    pub async fn context(&mut self, request: &Request) -> Result<Context> {
        let inner = &self.sessions.0;
        inner.freshen(&self.cell).await?;
        let look =
            |session: &mut Session| (session.snapshot(), session.steady(), inner.room(session));
        let (now, steady, room) = inner.with(&self.cell, look).await?;
        let held = self.held.take().and_then(|held| held.carried_on(&now, steady));
        if let Some(held) = held {
            let context = inner.context_of(&self.cell, &held, request, room)?;
            if context.fits() {
                self.held = Some(held);
                self.takes = Some(context.takes());
                return Ok(context);
            }
        }
        let (snapshot, context) = self.sessions.fit(&self.cell, request, None).await?;
        self.held = Some(snapshot);
        self.takes = Some(context.takes());
        Ok(context)
    }

    /// Takes what the model answered to a context, and returns the tool calls
    /// in it: the message is appended, and what the provider counted teaches
    /// the trigger. An answer that says nothing is not appended.
    ///
    /// # Errors
    ///
    /// As for [`SessionManager::add_message`].
    pub async fn reply(
        &mut self,
        context: &Context,
        reply: impl Into<Reply>,
    ) -> Result<Vec<ToolCall>> {
        let Reply { message, usage, .. } = reply.into();
        let calls = message.tool_calls().cloned().collect();
        if !message.parts().is_empty() {
            self.results([message]).await?;
        }
        if let Some(usage) = usage {
            self.sessions.report_usage(&self.cell.key, context.mark(), usage).await?;
        }
        Ok(calls)
    }

    /// Appends messages, all or none: the results of tool calls.
    ///
    /// # Errors
    ///
    /// As for [`SessionManager::add_message`].
    pub async fn results(&mut self, messages: impl IntoIterator<Item = Message>) -> Result<()> {
        let added = self.sessions.add_messages(&self.cell.key, messages).await?;
        let new = added.into_iter().filter(|added| !added.duplicate);
        self.own.extend(new.map(|added| added.position));
        Ok(())
    }

    /// Takes a provider's refusal of the last context: its HTTP status and
    /// body. Returns true where it says that the context was too long: then
    /// the next [`Turn::context`] is smaller, and the call can be tried again.
    ///
    /// The limit is learned for the session. Where the answer names it and it
    /// is below the session's context window, it is stored as
    /// [`SessionOptions::context_window`]; how our estimate compares with it is
    /// kept in memory. Returns false from the fourth time on.
    ///
    /// # Errors
    ///
    /// As for [`SessionManager::configure`].
    pub async fn recover(&mut self, status: u16, body: &str) -> Result<bool> {
        let (Some(takes), Some(overflow)) = (self.takes, Overflow::detect(status, body)) else {
            return Ok(false);
        };
        if self.recovered >= Self::MOST_RECOVERIES {
            return Ok(false);
        }
        self.recovered += 1;
        let inner = &self.sessions.0;
        let window = inner.with(&self.cell, |session| inner.window(session)).await?;
        if let Some(limit) = overflow.limit.filter(|limit| *limit < window) {
            let limited = |old: &SessionOptions| old.clone().context_window(limit);
            inner.configure(&self.cell, limited).await?;
        }
        let ceiling = ceiling(overflow, takes);
        inner.with(&self.cell, |session| session.learn(Some(ceiling))).await?;
        self.held = None;
        Ok(true)
    }

    /// Takes back what this turn has appended; what others have appended
    /// meanwhile stays. A compaction that ended in mid-turn stays as well,
    /// unless messages of this turn are part of it: then the summary from
    /// before the turn comes back.
    ///
    /// # Errors
    ///
    /// [`Error::is_rewind`](crate::Error::is_rewind) where that takes a
    /// transcript that the store has not kept; nothing is changed then.
    pub async fn rollback(self) -> Result<()> {
        if self.own.is_empty() {
            return Ok(());
        }
        self.sessions.0.take_back(&self.cell, &self.own, &self.begun).await
    }

    /// Ends the turn. Where a compaction is due it starts in the background;
    /// returns it where one runs.
    pub async fn finish(self) -> Option<CompactionHandle> {
        match self.sessions.maybe_summarize(&self.cell.key).await {
            Outcome::Started(handle) | Outcome::InFlight(handle) => Some(handle),
            _ => None,
        }
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("key", &self.cell.key)
            .field("appended", &self.own.len())
            .field("recovered", &self.recovered)
            .finish_non_exhaustive()
    }
}

/// How many tokens of ours the next context may take, after one of `takes` was
/// refused: in any case less.
fn ceiling(overflow: Overflow, takes: u64) -> u64 {
    let less = takes.saturating_sub((takes / 16).max(1));
    match (overflow.limit, overflow.requested) {
        (Some(limit), Some(requested)) if requested > limit => {
            // So much of our count is so much of theirs.
            let scaled = u128::from(takes) * u128::from(limit) / u128::from(requested);
            u64::try_from(scaled).unwrap_or(u64::MAX).min(less).min(limit)
        }
        (Some(limit), _) if limit < takes => limit.min(less),
        _ => takes.saturating_sub((takes / 4).max(1)),
    }
}
