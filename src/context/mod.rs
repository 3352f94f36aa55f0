//! From a snapshot to what is sent to a model.
//!
//! A history is healed once (`repair`), then arranged for the provider that is
//! asked for (`arrange`, by the rules in `profile`), and written in its form.
//! Nothing that is stored changes.

mod anthropic;
mod arrange;
mod body;
mod budget;
mod cache;
mod clean;
pub(crate) mod fence;
mod gemini;
mod openai_chat;
mod openai_responses;
mod profile;
mod repair;
mod request;
mod rules;
mod validate;

use std::fmt;

use serde::de::DeserializeOwned;

pub(crate) use self::budget::{Least, Room};
use self::{
    arrange::{Around, Arranged, arrange, arrange_nothing},
    profile::Profile,
    repair::Healed,
};
pub use self::{
    body::Body,
    budget::{Budget, Step},
    cache::CachePoints,
    repair::OpenCall,
    request::{Request, SummaryRole},
    rules::{Provider, Violation, validate_messages},
    validate::validate,
};
use crate::{
    error::{Error, Result},
    message::RawJson,
    plan::{self, Prune},
    session::{Overhead, Size, Snapshot, SnapshotMark},
    tokens::{TokenCounter, Tokens},
};

/// What is sent to a model: system prompt, summary, and the messages that are
/// sent word for word.
///
/// It is valid for each provider whatever the session holds: calls and results
/// are paired and adjacent, one system message leads, a person speaks first,
/// nothing is blank. A broken history is healed on the way out and stays in the
/// session as it was given; a message that needs no repair is written as it was
/// read.
///
/// # Stable prefix
///
/// Until the next compaction, each context of a session extends the one before
/// it, byte for byte in one provider's form: up to the first of the
/// [`Context::open_calls`], or else through the last assistant message. A
/// provider's prompt cache so stays of use.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Message, Request, SessionManager};
///
/// let sessions = SessionManager::builder().build()?;
/// sessions.add_message("chat", Message::user("Is the disk full?")).await?;
///
/// let context = sessions.context("chat", &Request::new().system("Be brief.")).await?;
/// assert_eq!(
///     context.to_openai_chat().messages(),
///     r#"[{"role":"system","content":"Be brief."},{"role":"user","content":"Is the disk full?"}]"#
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Context {
    mark: SnapshotMark,
    healed: Healed,
    request: Request,
    /// The summary as it is sent.
    block: Option<String>,
    cache: CachePoints,
    tokens: Tokens,
    overhead: Overhead,
    notes: Tokens,
    room: Room,
    steps: Vec<Step>,
}

impl Context {
    /// Makes a context of a session's history, unless the request's tools have
    /// no JSON form.
    pub(crate) fn new(
        snapshot: &Snapshot,
        request: &Request,
        counter: &dyn TokenCounter,
    ) -> Result<Self> {
        let tools = request.tools_json()?;
        let pruned = request.prune.map(|rule| pruned(snapshot, &rule, counter));
        let snapshot = pruned.as_ref().unwrap_or(snapshot);
        let healed = Healed::of(snapshot);
        let block = fence::block(snapshot.summary(), snapshot.dropped());
        // The request's system prompt is sent in place of the stored one.
        let replaced = if request.system.is_some() { healed.system.len() } else { 0 };
        let stored = || snapshot.entries().map(|entry| entry.size.tokens);
        let size = |text: Option<&str>| text.map(|text| counter.text(text)).unwrap_or_default();
        let overhead = Overhead {
            system: size(request.system.as_deref()),
            replaced: stored().take(replaced).sum(),
            tools: size(tools.map(RawJson::as_str)),
            reserve: Tokens::ZERO,
        };
        let notes = size(request.notes.as_deref());
        let history = stored().sum::<Tokens>() + size(block.as_deref());
        Ok(Self {
            mark: snapshot.mark(),
            tokens: overhead.with(history) + notes,
            request: request.clone(),
            block,
            cache: CachePoints::NONE,
            healed,
            overhead,
            notes,
            room: Room::UNBOUNDED,
            steps: Vec::new(),
        })
    }

    /// Returns true for a session that holds nothing, of which no valid
    /// request can be made: there is no message in any of the forms.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.mark.len == 0 && self.block.is_none()
    }

    /// Returns true where a summary, or a note of how many messages were
    /// dropped, stands for earlier messages.
    #[must_use]
    pub const fn is_compacted(&self) -> bool {
        self.block.is_some()
    }

    /// Returns the mark of the history that this was made from.
    #[must_use]
    pub const fn mark(&self) -> SnapshotMark {
        self.mark
    }

    /// Estimates the tokens of all that is sent, tools included.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.tokens.count()
    }

    /// Returns the tool calls whose results have not come. A text says so in
    /// their place, until the results are there.
    #[must_use]
    pub fn open_calls(&self) -> &[OpenCall] {
        &self.healed.open_calls
    }

    /// Returns the positions in the transcript of the messages that are not
    /// sent as they are stored, each once, ascending: orphaned or duplicate
    /// results, blank messages, calls without a result or with another's id.
    pub fn repaired(&self) -> impl Iterator<Item = u64> {
        self.healed.repaired.iter().copied()
    }

    /// Writes the context as OpenAI Chat Completions takes it.
    #[must_use]
    pub fn to_openai_chat(&self) -> Body {
        openai_chat::body(&self.arranged(&profile::OPENAI_CHAT), &self.request)
    }

    /// Writes the context for strict chat templates, as many open models have
    /// them behind an endpoint that speaks OpenAI chat: one system message,
    /// then user and assistant in turn, tool calls aside.
    #[must_use]
    pub fn to_strict_template(&self) -> Body {
        openai_chat::body(&self.arranged(&profile::STRICT_TEMPLATE), &self.request)
    }

    /// Writes the context as OpenAI Responses takes it.
    #[must_use]
    pub fn to_openai_responses(&self) -> Body {
        openai_responses::body(&self.arranged(&profile::OPENAI_RESPONSES), &self.request)
    }

    /// Writes the context as Anthropic Messages takes it, with the cache marks
    /// of [`Context::with_cache`]. Marks that messages brought along are left
    /// out: a request may have four in all.
    #[must_use]
    pub fn to_anthropic(&self) -> Body {
        anthropic::body(&self.arranged(&profile::ANTHROPIC), &self.request, self.cache)
    }

    /// Writes the context as Gemini takes it.
    #[must_use]
    pub fn to_gemini(&self) -> Body {
        gemini::body(&self.arranged(&profile::GEMINI), &self.request)
    }

    /// Sets which cache marks [`Context::to_anthropic`] writes; none unless it
    /// is called.
    #[must_use]
    pub const fn with_cache(mut self, points: CachePoints) -> Self {
        self.cache = points;
        self
    }

    /// Reads the messages of [`Context::to_openai_chat`] as a host's own type,
    /// such as those of a client library.
    ///
    /// # Errors
    ///
    /// [`Error::is_message`] where the type cannot be read from one of them.
    ///
    /// # Example
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> session_compaction::Result<()> {
    /// use session_compaction::{Message, Request, SessionManager};
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Mine {
    ///     role: String,
    ///     content: String,
    /// }
    ///
    /// let sessions = SessionManager::builder().build()?;
    /// sessions.add_message("chat", Message::user("hello")).await?;
    /// let context = sessions.context("chat", &Request::new()).await?;
    /// let messages: Vec<Mine> = context.openai_chat_as()?;
    /// assert_eq!((&*messages[0].role, &*messages[0].content), ("user", "hello"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn openai_chat_as<T: DeserializeOwned>(&self) -> Result<Vec<T>> {
        serde_json::from_str(self.to_openai_chat().messages())
            .map_err(|error| Error::message("OpenAI chat", error.to_string()))
    }

    fn arranged(&self, profile: &Profile) -> Arranged<'_> {
        let block = self.block.as_deref();
        let by_user = self.request.summary_role == SummaryRole::User;
        let around = Around {
            system: self.request.system.as_deref(),
            system_end: block.filter(|_| !by_user),
            user_start: block.filter(|_| by_user),
            notes: self.request.notes.as_deref(),
        };
        if self.is_empty() {
            return arrange_nothing(around, profile);
        }
        arrange(&self.healed, around, profile)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("mark", &self.mark)
            .field("tokens", &self.tokens())
            .field("is_compacted", &self.is_compacted())
            .field("open_calls", &self.open_calls())
            .finish_non_exhaustive()
    }
}

/// The same history with markers in place of old, large tool results.
pub(crate) fn pruned(snapshot: &Snapshot, rule: &Prune, counter: &dyn TokenCounter) -> Snapshot {
    let replaced = plan::prune(&snapshot.marked(), rule);
    snapshot
        .replacing(replaced, |message| Size::new(message.chars() as u64, counter.message(message)))
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
