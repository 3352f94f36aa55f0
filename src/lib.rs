//! Keeps an AI agent's conversations inside its model's context window without
//! losing what matters.
//!
//! An agent runtime hands every message of every conversation to a
//! [`SessionManager`]; it hands back a [`Context`] that fits the model's window
//! and that every provider accepts. Old messages are replaced by a summary, in
//! the background, while the conversation goes on.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> session_compaction::Result<()> {
//! use session_compaction::{ExtractiveSummarizer, Message, Request, SessionManager};
//!
//! let sessions =
//!     SessionManager::builder().summarizer(ExtractiveSummarizer::default()).build()?;
//!
//! // Each turn of an agent:
//! sessions.add_message("telegram:42", Message::user("Is the disk full?")).await?;
//! let request = Request::new().system("You look after a machine.");
//! let body = sessions.context("telegram:42", &request).await?.to_openai_chat();
//! # let reply = Message::assistant("42% used.");
//! // .. send the body, get a reply ..
//! sessions.add_message("telegram:42", reply).await?;
//! drop(sessions.maybe_summarize("telegram:42").await); // due? starts in the background
//! # Ok(())
//! # }
//! ```
//!
//! # The data path
//!
//! ```text
//! add_message     -> store (durable first; gives positions) -> session (totals updated, O(1))
//! maybe_summarize -> trigger (O(1)) -> claim (one a session) -> snapshot -> plan (is it worth paying?)
//!                 -> summarizer (no lock held) -> guard (is it a summary, and smaller?)
//!                 -> store (only if nothing was rewritten since) -> session -> report
//! context         -> snapshot -> healed -> arranged for a provider
//! ```
//!
//! # What holds
//!
//! - **No message is lost.** Each is summarized, carried, counted as dropped or
//!   in the window, exactly once, whatever is appended, forced, restarted or
//!   cancelled meanwhile.
//! - **No stale summary is applied**: a commit carries the [`Revision`] that it
//!   was made from.
//! - **Fail closed.** A summarizer that errors, hangs, panics, refuses or
//!   answers with nothing changes nothing.
//! - **The summary is data**, inside a fence that its own text cannot close.
//! - **Kept messages are byte-identical**, unknown fields included.
//! - **Every context is valid**, and extends the one before it until the next
//!   compaction.
//!
//! # Where to look
//!
//! | for | see |
//! |---|---|
//! | sessions, compactions | [`SessionManager`], [`Outcome`], [`Report`] |
//! | messages and other formats | [`Message`], [`formats`] |
//! | what is sent | [`Context`], [`Request`], [`validate`], [`validate_messages`] |
//! | who summarizes | [`Summarizer`], [`summarize_fn`], [`ExtractiveSummarizer`] |
//! | when, and how much is kept | [`SummarizationConfig`], [`AgentDefaults`] |
//! | where sessions are kept | [`SessionStore`], [`MemoryStore`], [`JsonlStore`] |
//! | tokens | [`TokenCounter`], [`ByteEstimate`] |

mod config;
mod context;
mod error;
mod event;
pub mod formats;
mod manager;
mod message;
mod plan;
mod provider;
mod session;
mod stats;
mod store;
mod summarize;
#[cfg(feature = "testing")]
pub mod testing;
mod tokens;
mod usage;

#[cfg(feature = "providers")]
pub use crate::provider::{Anthropic, OpenAiCompatible, Retrying};
#[cfg(feature = "conformance")]
pub use crate::store::conformance;
#[cfg(feature = "postgres")]
pub use crate::store::{PostgresOptions, PostgresStore};
#[cfg(feature = "sqlite")]
pub use crate::store::{SqliteOptions, SqliteStore, Synchronous};
#[cfg(feature = "tiktoken")]
pub use crate::tokens::Tiktoken;
pub use crate::{
    config::{AgentDefaults, ConfigOverrides, SummarizationConfig, SummaryTemplate, Threshold},
    context::{
        Body, Budget, CachePoints, Context, OpenCall, Provider, Request, Step, SummaryRole,
        Violation, validate, validate_messages,
    },
    error::{Error, Result},
    event::{Event, EventKind, EventSink, EventStream, Lagged, NoEvents},
    manager::{
        Appended, Compact, Compacted, Compaction, CompactionHandle, Consistency, Forced, Outcome,
        Prepare, Preview, PreviewedCut, RemovedScope, Report, RunIn, SessionManager,
        SessionManagerBuilder, SessionStats, Shutdown, To, Turn, Worker, compact_messages,
    },
    message::{
        Fields, Media, MediaKind, MediaSource, Message, MessageId, Origin, Part, RawJson,
        Reasoning, Role, Text, ToolCall, ToolResult,
    },
    plan::{Limits, Measured, Prune, Skip, Trigger},
    provider::{
        ChatRequest, ChatResponse, FinishReason, LlmProvider, Overflow, ProviderError,
        ProviderErrorKind,
    },
    session::{
        Dropped, Pause, PauseUntil, Revision, SessionKey, SessionOptions, SessionState, Size,
        Snapshot, SnapshotMark, SnapshotRef, StoredSummary, View,
    },
    stats::{SessionTimeline, SessionTotals, Stats, TimelinePoint, TimelinePointKind},
    store::{
        Archive, Commit, CommitResult, DayTotals, JsonlStore, Lease, Leases, ListPage, MemoryStore,
        NewMessage, Placed, Receipt, Removed, Repaired, Retention, Rewrite, RewriteResult,
        SessionExport, SessionStore, Since, StoredCompaction, StoredMessage, StoredSession, Tail,
        UsageLog, UsagePage, UsageRecord,
    },
    summarize::{
        ExtractiveSummarizer, Fallback, LlmSummarizer, Redactor, SecretPatterns, SummarizeError,
        SummarizeFn, Summarizer, SummarizerInput, Summary, SummaryPart, SummaryRequest,
        build_summarization_prompt, summarize_fn,
    },
    tokens::{ByteEstimate, CharsPerToken, MediaCosts, TokenCounter, Tokens, estimate_tokens},
    usage::{
        Cost, Counter, Price, Prices, TokenUsage, UsageEvent, UsageKind, UsageOutcome, UsageTotals,
    },
};

// The code in there is compiled as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// So that the random histories in tests/common serve the unit tests as well.
#[cfg(test)]
extern crate self as session_compaction;
