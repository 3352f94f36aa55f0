//! Keeps an AI agent's conversations inside its model's context window without
//! losing what matters.

mod config;
mod context;
mod error;
mod event;
mod manager;
mod message;
mod plan;
mod session;
mod store;
mod summarize;
mod tokens;
mod usage;

pub use crate::{
    config::{AgentDefaults, SummarizationConfig, Threshold},
    context::{Body, CachePoints, Context, OpenCall, Request, SummaryRole},
    error::{Error, Result},
    event::UsageEvent,
    manager::{
        Appended, Compact, Compaction, CompactionHandle, Forced, Outcome, Report, SessionManager,
        SessionManagerBuilder, Shutdown,
    },
    message::{
        Fields, Media, MediaKind, MediaSource, Message, MessageId, Origin, Part, RawJson,
        Reasoning, Role, Text, ToolCall, ToolResult,
    },
    plan::{Measured, Skip, Trigger},
    session::{
        Dropped, Pause, PauseUntil, Revision, SessionKey, SessionOptions, SessionState, Size,
        Snapshot, SnapshotMark, SnapshotRef, StoredSummary, View,
    },
    store::{
        Archive, Commit, CommitResult, ListPage, MemoryStore, NewMessage, Placed, Receipt, Removed,
        Rewrite, RewriteResult, SessionStore, StoredMessage, StoredSession,
    },
    summarize::{
        SummarizeError, SummarizeFn, Summarizer, SummarizerInput, Summary, SummaryPart,
        SummaryRequest, summarize_fn,
    },
    tokens::{ByteEstimate, CharsPerToken, TokenCounter, Tokens, estimate_tokens},
    usage::TokenUsage,
};

// So that the random histories in tests/common serve the unit tests as well.
#[cfg(test)]
extern crate self as session_compaction;
