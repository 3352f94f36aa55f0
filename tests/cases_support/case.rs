//! Reads a case file: macros, steps, the fake model's script. What it does not
//! know is an error.

use std::collections::BTreeMap;

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use super::assertion::Assertion;

type Members = BTreeMap<String, Box<RawValue>>;

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) config: BTreeMap<String, Value>,
    pub(crate) existing_summary: Option<String>,
    /// Each message's source text, macros expanded.
    pub(crate) messages: Vec<String>,
    pub(crate) steps: Vec<Step>,
    pub(crate) asserts: Vec<Assertion>,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Append(Vec<String>),
    AppendContextBack,
    AppendOwnKey,
    AppendUntilError,
    Archive,
    AssertNoFilesOutsideBase,
    BeginSummarize(Llm),
    BuildContext,
    Cancel,
    Clear,
    ConfigMatrix(BTreeMap<String, Vec<String>>),
    Crash,
    Estimate,
    EstimateText(String),
    ForEach { summary_max_chars: (usize, usize), steps: Vec<Self> },
    ForEachKey { keys: Vec<String>, steps: Vec<Self> },
    ForceCompression,
    FreeSpace,
    History,
    InsertBytes { at: Place, bytes: Vec<u8> },
    Load(String),
    Logs,
    MaybeSummarize(Llm),
    MountTmpfs(u64),
    Parallel { n: usize, steps: Vec<Self> },
    ParseConfig,
    Release,
    Repeat { n: usize, steps: Vec<Self> },
    ReportUsage(ReportedUsage),
    Restart,
    Stats,
    Summarize { llm: Llm, force: bool },
    TruncateEachByte { of: Which, then: Vec<Self> },
    Variant { drop_last: usize },
    VerifyEachKey,
    WriteRaw { key: String, text: String },
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReportedUsage {
    #[serde(rename = "prompt_tokens")]
    pub(crate) prompt: Option<u64>,
    #[serde(rename = "completion_tokens")]
    pub(crate) completion: Option<u64>,
    #[serde(rename = "total_tokens")]
    pub(crate) total: Option<u64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) enum Which {
    #[serde(rename = "first_record")]
    First,
    #[serde(rename = "last_record")]
    Last,
    #[serde(rename = "middle_record")]
    Middle,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Place {
    End,
    MiddleLineBoundary,
    Start,
    #[serde(untagged)]
    Offset(usize),
}

/// What the fake model does, call by call.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Llm {
    pub(crate) reply: Option<String>,
    pub(crate) finish_reason: Option<String>,
    pub(crate) refusal: Option<String>,
    pub(crate) reasoning_content: Option<String>,
    pub(crate) tool_calls: Option<Value>,
    pub(crate) usage: Option<Value>,
    pub(crate) http: Option<u16>,
    pub(crate) headers: BTreeMap<String, Value>,
    pub(crate) body: Option<Value>,
    pub(crate) reset_after_bytes: Option<usize>,
    pub(crate) sse_truncated: Option<Value>,
    #[serde(deserialize_with = "flag")]
    pub(crate) hang: bool,
    pub(crate) drip_bytes_per_s: Option<u64>,
    pub(crate) delay_ms: Option<u64>,
    pub(crate) panic: Option<Value>,
    pub(crate) block_thread_ms: Option<u64>,
    pub(crate) echo_markers: Option<Vec<String>>,
    pub(crate) echo_previous_plus: Option<usize>,
    pub(crate) script: Vec<Self>,
}

impl Llm {
    /// Whether only a server can play it.
    pub(crate) fn needs_http(&self) -> bool {
        self.finish_reason.is_some()
            || self.refusal.is_some()
            || self.reasoning_content.is_some()
            || self.tool_calls.is_some()
            || self.usage.is_some()
            || self.http.is_some()
            || !self.headers.is_empty()
            || self.body.is_some()
            || self.reset_after_bytes.is_some()
            || self.sse_truncated.is_some()
            || self.drip_bytes_per_s.is_some()
            || self.script.iter().any(Self::needs_http)
    }

    /// Whether only a stub can play it.
    pub(crate) fn needs_stub(&self) -> bool {
        self.panic.is_some() || self.block_thread_ms.is_some()
    }
}

fn flag<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    // `true`, or how long: all that matters is that it never ends.
    Ok(!matches!(Value::deserialize(deserializer)?, Value::Bool(false) | Value::Null))
}

impl Case {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut members: Members = parse(text)?;
        let case = Self {
            id: take(&mut members, "id")?,
            title: take(&mut members, "title")?,
            config: take(&mut members, "config")?,
            existing_summary: take_some(&mut members, "existing_summary")?,
            messages: messages(members.remove("messages").as_deref())?,
            steps: steps(&mut members, "steps")?,
            asserts: take(&mut members, "assert")?,
        };
        let _: (Option<String>, Option<String>) =
            (take_some(&mut members, "category")?, take_some(&mut members, "expect")?);
        nothing_left(&members, "the case")?;
        Ok(case)
    }

    /// All steps, nested ones too.
    pub(crate) fn all_steps(&self) -> Vec<&Step> {
        let mut open: Vec<&Step> = self.steps.iter().collect();
        let mut all = Vec::new();
        while let Some(step) = open.pop() {
            all.push(step);
            open.extend(step.inner());
        }
        all
    }
}

impl Step {
    pub(crate) fn inner(&self) -> &[Self] {
        match self {
            Self::ForEach { steps, .. }
            | Self::ForEachKey { steps, .. }
            | Self::Parallel { steps, .. }
            | Self::Repeat { steps, .. }
            | Self::TruncateEachByte { then: steps, .. } => steps,
            _ => &[],
        }
    }

    pub(crate) fn llm(&self) -> Option<&Llm> {
        match self {
            Self::BeginSummarize(llm) | Self::MaybeSummarize(llm) | Self::Summarize { llm, .. } => {
                Some(llm)
            }
            _ => None,
        }
    }

    fn parse(raw: &RawValue) -> Result<Self, String> {
        let mut members: Members = parse(raw.get())?;
        let op: String = take(&mut members, "op")?;
        let m = &mut members;
        let step = match op.as_str() {
            "append" => Self::Append(messages(m.remove("messages").as_deref())?),
            "append_context_back" => Self::AppendContextBack,
            "append_own_key" => Self::AppendOwnKey,
            "append_until_error" => Self::AppendUntilError,
            "archive" => Self::Archive,
            "assert_no_files_outside_base" => Self::AssertNoFilesOutsideBase,
            "begin_summarize" => Self::BeginSummarize(llm(m)?),
            "build_context" => Self::BuildContext,
            "cancel" => Self::Cancel,
            "clear" => Self::Clear,
            "config_matrix" => {
                let fields = std::mem::take(m).into_iter();
                let literals = fields.map(|(field, raw)| Ok((field, expanded(&raw)?)));
                Self::ConfigMatrix(literals.collect::<Result<_, String>>()?)
            }
            "crash" => Self::Crash,
            "estimate" => Self::Estimate,
            "estimate_text" => Self::EstimateText(take(m, "text")?),
            "for_each" => Self::ForEach {
                summary_max_chars: take(m, "summary_max_chars")?,
                steps: steps(m, "steps")?,
            },
            "for_each_key" => {
                Self::ForEachKey { keys: take(m, "keys")?, steps: steps(m, "steps")? }
            }
            "force_compression" => Self::ForceCompression,
            "free_space" => Self::FreeSpace,
            "history" => Self::History,
            "insert_bytes" => {
                let hex: String = take(m, "hex")?;
                let n = take_some(m, "n")?.unwrap_or(1);
                Self::InsertBytes { at: take(m, "at")?, bytes: unhex(&hex)?.repeat(n) }
            }
            "load" => Self::Load(take(m, "key")?),
            "logs" => Self::Logs,
            "maybe_summarize" => Self::MaybeSummarize(llm(m)?),
            "mount_tmpfs" => Self::MountTmpfs(take(m, "bytes")?),
            "parallel" => Self::Parallel { n: take(m, "n")?, steps: steps(m, "steps")? },
            "parse_config" => Self::ParseConfig,
            "release" => Self::Release,
            "repeat" => Self::Repeat { n: take(m, "n")?, steps: steps(m, "steps")? },
            "report_usage" => {
                let all = serde_json::to_string(&std::mem::take(m)).map_err(|e| e.to_string())?;
                Self::ReportUsage(parse(&all)?)
            }
            "restart" => Self::Restart,
            "stats" => Self::Stats,
            "summarize" => {
                Self::Summarize { llm: llm(m)?, force: take_some(m, "force")?.unwrap_or(true) }
            }
            "truncate_each_byte" => {
                Self::TruncateEachByte { of: take(m, "of")?, then: steps(m, "then")? }
            }
            "variant" => Self::Variant { drop_last: take(m, "drop_last")? },
            "verify_each_key" => Self::VerifyEachKey,
            "write_raw" => Self::WriteRaw { key: take(m, "key")?, text: take(m, "text")? },
            _ => return Err(format!("unknown step {op:?}")),
        };
        nothing_left(&members, &format!("step {op:?}"))?;
        Ok(step)
    }
}

fn steps(members: &mut Members, name: &str) -> Result<Vec<Step>, String> {
    let raw = members.remove(name).ok_or_else(|| format!("{name:?} is missing"))?;
    let list: Vec<Box<RawValue>> = parse(raw.get())?;
    list.iter().map(|step| Step::parse(step)).collect()
}

fn llm(members: &mut Members) -> Result<Llm, String> {
    Ok(take_some(members, "llm")?.unwrap_or_default())
}

/// Messages keep their source text, but for macros.
fn messages(raw: Option<&RawValue>) -> Result<Vec<String>, String> {
    let Some(raw) = raw else { return Ok(Vec::new()) };
    let list: Vec<Box<RawValue>> = parse(raw.get())?;
    let mut messages = Vec::new();
    for item in list {
        let members: Members = parse(item.get())?;
        match members.get("$times") {
            Some(times) if members.len() == 1 => {
                let (n, inner): (usize, Box<RawValue>) = parse(times.get())?;
                for i in 0..n {
                    let text = inner.get().replace("{i}", &i.to_string());
                    messages.extend(self::messages(Some(parse(&text)?))?);
                }
            }
            _ if item.get().contains("\"$") => {
                messages.push(expand(parse(item.get())?)?.to_string());
            }
            _ => messages.push(item.get().to_owned()),
        }
    }
    Ok(messages)
}

/// Replaces `$repeat` and `$concat` wherever they stand.
fn expand(value: Value) -> Result<Value, String> {
    let object = match value {
        Value::Array(list) => {
            return list.into_iter().map(expand).collect::<Result<_, _>>().map(Value::Array);
        }
        Value::Object(object) => object,
        other => return Ok(other),
    };
    let name = object.keys().find(|key| key.starts_with('$')).cloned();
    let Some(name) = name else {
        let members = object.into_iter().map(|(key, value)| Ok((key, expand(value)?)));
        return members.collect::<Result<_, String>>().map(Value::Object);
    };
    let bad = || format!("{name} takes [string, n] or a list of strings, and stands alone");
    if object.len() != 1 {
        return Err(bad());
    }
    let argument = expand(object.into_iter().next().map(|(_, value)| value).unwrap_or_default())?;
    let list = argument.as_array().ok_or_else(bad)?;
    match (name.as_str(), list.as_slice()) {
        ("$repeat", [Value::String(text), n]) => {
            let n = n.as_u64().and_then(|n| usize::try_from(n).ok()).ok_or_else(bad)?;
            Ok(text.repeat(n).into())
        }
        ("$concat", list) => {
            let texts: Option<Vec<_>> = list.iter().map(Value::as_str).collect();
            Ok(texts.ok_or_else(bad)?.concat().into())
        }
        ("$repeat", _) => Err(bad()),
        _ => Err(format!("unknown macro {name}")),
    }
}

fn expanded<T: DeserializeOwned>(raw: &RawValue) -> Result<T, String> {
    serde_json::from_value(expand(parse(raw.get())?)?).map_err(|error| error.to_string())
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn take<T: DeserializeOwned>(members: &mut Members, name: &str) -> Result<T, String> {
    take_some(members, name)?.ok_or_else(|| format!("{name:?} is missing"))
}

fn take_some<T: DeserializeOwned>(members: &mut Members, name: &str) -> Result<Option<T>, String> {
    let value = members.remove(name).map(|raw| expanded(&raw));
    value.transpose().map_err(|error| format!("{name:?}: {error}"))
}

fn nothing_left(members: &Members, of: &str) -> Result<(), String> {
    match members.keys().next() {
        Some(name) => Err(format!("{of} has the unknown member {name:?}")),
        None => Ok(()),
    }
}

fn unhex(hex: &str) -> Result<Vec<u8>, String> {
    let bytes = hex.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).map_err(|error| error.to_string())?;
        u8::from_str_radix(pair, 16).map_err(|error| format!("{hex:?}: {error}"))
    });
    bytes.collect()
}
