//! The assertions, as they stand in a case file.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use session_compaction::Provider;

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Assertion {
    AckedEqualsRecovered(True),
    AppendLatencyMsMax(u64),
    ArchiveCount(usize),
    ConfigErrorOrClamp(String),
    ContainsAllAfterFirstRelease(Vec<String>),
    ContainsAny(Vec<String>),
    ContextsEqual(True),
    ContextsPrefixStable(True),
    CountRole(BTreeMap<String, usize>),
    Distinct(True),
    Dup(usize),
    Each(Each),
    Error(String),
    Event(String),
    FinalMessageCount(usize),
    FinalSummary(String),
    HasRole(String),
    HistoryUnchanged(True),
    Inflight(bool),
    KeptMessagesByteIdentical(True),
    LlmCalls(usize),
    LlmCallsMax(usize),
    LlmCallsMin(usize),
    LlmRequestContains(Texts),
    LlmRequestContainsRegex(Texts),
    LlmRequestFenced(True),
    LlmRequestFieldAbsent(Texts),
    LlmRequestNoToolRoles(True),
    LlmRequestTokensMax(u64),
    LlmRequestValidFor(Vec<Rules>),
    Lost(usize),
    MessageCount(usize),
    MinNonSystem(usize),
    NoBlankText(True),
    NoMessageLostAfter(Cut),
    NoPanic(True),
    NotContains(Vec<String>),
    NoteCountMax(usize),
    Stat(BTreeMap<String, u64>),
    StatMax(BTreeMap<String, u64>),
    SummaryChanged(True),
    SummaryCount(usize),
    SummaryDelimiterNotClosable(True),
    SummaryEqualsOneOf(Vec<String>),
    SummaryTokensMax(u64),
    SummaryUnchanged(True),
    SystemMessageEqualsOriginal(True),
    TokensAfterLtBefore(True),
    TokensBetween((u64, u64)),
    Utf8Valid(True),
    ValidFor(Vec<Rules>),
}

/// `true`, the one value that says something.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "bool")]
pub(crate) struct True;

impl TryFrom<bool> for True {
    type Error = &'static str;

    fn try_from(value: bool) -> Result<Self, Self::Error> {
        if value { Ok(Self) } else { Err("false is not a value of this assertion") }
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Cut {
    Cut,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Each {
    AcceptedDocumentedOrNamedError,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rules {
    Openai,
    Anthropic,
    Gemini,
    StrictTemplate,
}

impl Rules {
    pub(crate) const ALL: [Self; 4] =
        [Self::Openai, Self::Anthropic, Self::Gemini, Self::StrictTemplate];

    pub(crate) const fn provider(self) -> Provider {
        match self {
            Self::Openai => Provider::OpenAiChat,
            Self::Anthropic => Provider::Anthropic,
            Self::Gemini => Provider::Gemini,
            Self::StrictTemplate => Provider::StrictTemplate,
        }
    }
}

/// One text, or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Value")]
pub(crate) struct Texts(pub(crate) Vec<String>);

impl TryFrom<Value> for Texts {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match value {
            Value::String(text) => Ok(Self(vec![text])),
            other => serde_json::from_value(other).map(Self).map_err(|error| error.to_string()),
        }
    }
}
