//! Keeps an AI agent's conversations inside its model's context window without
//! losing what matters.

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
mod store;
mod summarize;
mod tokens;
mod usage;

pub use crate::{
    config::{AgentDefaults, SummarizationConfig, Threshold},
    context::{Provider, Violation, validate_messages},
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
    provider::{
        ChatRequest, ChatResponse, FinishReason, LlmProvider, ProviderError, ProviderErrorKind,
    },
    session::{
        Dropped, Pause, PauseUntil, Revision, SessionKey, SessionOptions, SessionState, Size,
        Snapshot, SnapshotMark, SnapshotRef, StoredSummary, View,
    },
    store::{
        Archive, Commit, CommitResult, JsonlStore, ListPage, MemoryStore, NewMessage, Placed,
        Receipt, Removed, Repaired, Rewrite, RewriteResult, SessionStore, StoredMessage,
        StoredSession,
    },
    summarize::{
        Fallback, LlmSummarizer, Redactor, SecretPatterns, SummarizeError, SummarizeFn, Summarizer,
        SummarizerInput, Summary, SummaryPart, SummaryRequest, SummaryTemplate,
        build_summarization_prompt, summarize_fn,
    },
    tokens::{ByteEstimate, CharsPerToken, TokenCounter, Tokens, estimate_tokens},
    usage::TokenUsage,
};

// So that the random histories in tests/common serve the unit tests as well.
#[cfg(test)]
extern crate self as session_compaction;
