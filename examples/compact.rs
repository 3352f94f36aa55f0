//! Compacts a transcript and prints the context: for looking, and for others to measure with.
//!
//!     compact [OPTIONS] FILE     any transcript that `session_compaction::formats` reads
//!     compact [OPTIONS] --stdin  one JSON object a line in, one JSON object a line out
//!
//! # Contract
//!
//! This interface is stable: fields are added, none is renamed or changes its meaning.
//!
//! Each compaction is one call of `SessionManager::compact(.., Compact::now())` on a new session in memory. With a
//! budget the context (summary and messages, the system prompt included) takes at most so many tokens by the estimate
//! for `--model`; where what must be kept is above it, the outcome says so and nothing is replaced.
//!
//! A line of `--stdin` is an object:
//!
//! | field | meaning |
//! |---|---|
//! | `messages` | OpenAI chat messages |
//! | `config` | optional: `SummarizationConfig` fields, in place of the file's |
//! | `summary` | optional: the summary that the session has already |
//! | `budget_tokens` | optional: as `--budget-tokens` |
//! | `pinned` | optional: indexes of messages that stay word for word |
//! | `force` | optional: true compresses without a summary (`force_compression`) |
//! | `provider` | optional: as `--provider` |
//!
//! The answer, and what `--json` prints:
//!
//! | field | meaning |
//! |---|---|
//! | `messages` | the context's messages in the provider's form (Anthropic's system prompt stands in `system`) |
//! | `system` | the system prompt, where the provider takes it apart from the messages |
//! | `summary` | the summary, or null |
//! | `kept_from` | the index of the first message of the window: from here on all stay word for word |
//! | `tokens_before`, `tokens_after` | estimated tokens of the context |
//! | `outcome` | what was done, in words; `applied` and `dropped` begin so |
//! | `error` | in place of all this: what was wrong with the line |

#![expect(clippy::print_stdout, reason = "it is there to be looked at")]

use std::{
    error::Error,
    fs,
    io::{self, BufRead, Write},
    path::PathBuf,
};

use clap::{Parser, ValueEnum};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use session_compaction::{
    Body, ByteEstimate, Compact, Context, ExtractiveSummarizer, Forced, MemoryStore, Message,
    Report, Request, SessionManager, SummarizationConfig, Summarizer, formats,
};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// Compacts a transcript and prints the context.
#[derive(Parser)]
struct Options {
    /// The transcript.
    #[arg(required_unless_present = "stdin")]
    file: Option<PathBuf>,
    /// Read one JSON object a line, and write one a line.
    #[arg(long)]
    stdin: bool,
    /// A configuration file, as config.example.json.
    #[arg(long)]
    config: Option<PathBuf>,
    /// How many tokens the context may take.
    #[arg(long, conflicts_with = "budget_percent")]
    budget_tokens: Option<u64>,
    /// How many percent of its tokens the context may take.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100))]
    budget_percent: Option<u64>,
    /// The file's format, where it is not recognized by itself.
    #[arg(long)]
    format: Option<formats::Format>,
    #[arg(long, value_enum, default_value_t = Provider::OpenaiChat)]
    provider: Provider,
    #[arg(long, value_enum, default_value_t = With::Extractive)]
    summarizer: With,
    /// The model whose tokens are estimated, and which `--summarizer llm` asks.
    #[arg(long, default_value = "gpt-5-mini")]
    model: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
enum Provider {
    Anthropic,
    Gemini,
    OpenaiChat,
    OpenaiResponses,
    StrictTemplate,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum With {
    Extractive,
    /// An OpenAI-compatible endpoint: `OPENAI_API_KEY`, `OPENAI_BASE_URL`.
    Llm,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    messages: Vec<Message>,
    config: Option<Box<RawValue>>,
    summary: Option<String>,
    budget_tokens: Option<u64>,
    #[serde(default)]
    pinned: Vec<usize>,
    #[serde(default)]
    force: bool,
    provider: Option<Provider>,
}

#[derive(Serialize)]
struct Answer {
    messages: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<Box<RawValue>>,
    summary: Option<String>,
    kept_from: u64,
    tokens_before: u64,
    tokens_after: u64,
    outcome: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    match &options.file {
        Some(file) if !options.stdin => whole(&options, file).await,
        _ => lines(&options).await,
    }
}

async fn whole(options: &Options, file: &PathBuf) -> Result<()> {
    let text = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let importer = formats::Importer::new();
    let importer = match options.format {
        Some(format) => importer.with_format(format),
        None => importer,
    };
    let import = importer.read(text.as_slice())?;
    for skipped in &import.skipped {
        eprintln!("{}: skipped {skipped:?}", file.display());
    }
    let line = Line {
        messages: import.messages,
        config: None,
        summary: import.summary,
        budget_tokens: None,
        pinned: Vec::new(),
        force: false,
        provider: None,
    };
    let answer = compact(options, line).await?;
    if options.json {
        println!("{}", serde_json::to_string(&answer)?);
        return Ok(());
    }
    let messages: Vec<Box<RawValue>> = serde_json::from_str(answer.messages.get())?;
    if let Some(system) = &answer.system {
        println!("{system}\n");
    }
    for message in messages {
        println!("{message}\n");
    }
    println!("{}: {} -> {} tokens", answer.outcome, answer.tokens_before, answer.tokens_after);
    Ok(())
}

async fn lines(options: &Options) -> Result<()> {
    let mut out = io::BufWriter::new(io::stdout());
    for line in io::BufReader::new(io::stdin()).lines() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let answer = match serde_json::from_str(&line) {
            Ok(line) => compact(options, line).await,
            Err(error) => Err(error.into()),
        };
        match answer {
            Ok(answer) => serde_json::to_writer(&mut out, &answer)?,
            Err(error) => {
                serde_json::to_writer(&mut out, &serde_json::json!({"error": error.to_string()}))?;
            }
        }
        writeln!(out)?;
    }
    Ok(out.flush()?)
}

const KEY: &str = "compact";

async fn compact(options: &Options, line: Line) -> Result<Answer> {
    let config = match (&line.config, &options.config) {
        (Some(config), _) => SummarizationConfig::from_json_str(config.get())?,
        (None, Some(file)) => SummarizationConfig::from_file(file)?,
        (None, None) => SummarizationConfig::for_model(&options.model),
    };
    let budget = line.budget_tokens.or(options.budget_tokens);
    let sessions = sessions(options, config, budget, &line)?;
    let pinned = |(index, message): (usize, Message)| {
        if line.pinned.contains(&index) { message.pinned() } else { message }
    };
    let messages: Vec<_> = line.messages.into_iter().enumerate().map(pinned).collect();
    sessions.add_messages(KEY, messages).await?;
    if let Some(summary) = line.summary {
        sessions.set_summary(KEY, summary).await?;
    }
    let before = sessions.context(KEY, &Request::new()).await?.tokens();
    let budget = budget.or(options.budget_percent.map(|percent| before * percent / 100));
    let outcome = if line.force {
        match sessions.force_compression(KEY).await? {
            Forced::Dropped { messages, .. } => format!("dropped {messages} messages"),
            skipped => format!("{skipped:?}"),
        }
    } else {
        let how = budget.map_or(Compact::now(), |tokens| Compact::now().to_tokens(tokens));
        match sessions.compact(KEY, how).await {
            report @ Report::Applied(_) => format!("applied: {report}"),
            report => report.to_string(),
        }
    };
    let context = sessions.context(KEY, &Request::new()).await?;
    answer(&sessions, &context, line.provider.unwrap_or(options.provider), before, outcome).await
}

fn sessions(
    options: &Options,
    mut config: SummarizationConfig,
    budget: Option<u64>,
    line: &Line,
) -> Result<SessionManager> {
    if budget.or(options.budget_percent).is_some() && line.config.is_none() {
        // The budget bounds the summary, and nothing else does.
        config.context_window = config.context_window.max(2_000_000);
        config.summary_max_tokens = 1_000_000;
    }
    let builder = SessionManager::builder()
        .store(MemoryStore::new())
        .token_counter(ByteEstimate::for_model(&options.model))
        .config(config);
    let builder = match options.summarizer {
        With::Extractive => builder.summarizer(ExtractiveSummarizer::default()),
        With::Llm => builder.summarizer(llm(&options.model)?),
    };
    Ok(builder.build()?)
}

#[cfg(feature = "providers")]
fn llm(model: &str) -> Result<impl Summarizer> {
    use session_compaction::{LlmSummarizer, OpenAiCompatible, Retrying};
    Ok(LlmSummarizer::new(Retrying::new(OpenAiCompatible::from_env()?), model))
}

#[cfg(not(feature = "providers"))]
fn llm(_: &str) -> Result<ExtractiveSummarizer> {
    Err("--summarizer llm needs the feature `providers`".into())
}

async fn answer(
    sessions: &SessionManager,
    context: &Context,
    provider: Provider,
    tokens_before: u64,
    outcome: String,
) -> Result<Answer> {
    let body: Body = match provider {
        Provider::Anthropic => context.to_anthropic(),
        Provider::Gemini => context.to_gemini(),
        Provider::OpenaiChat => context.to_openai_chat(),
        Provider::OpenaiResponses => context.to_openai_responses(),
        Provider::StrictTemplate => context.to_strict_template(),
    };
    let raw = |json: &str| RawValue::from_string(json.to_owned());
    let system = ["system", "system_instruction", "systemInstruction", "instructions"];
    Ok(Answer {
        messages: raw(body.messages())?,
        system: system.into_iter().find_map(|name| body.get(name)).map(raw).transpose()?,
        summary: sessions.summary(KEY).await?,
        kept_from: sessions.history(KEY).await?.cut(),
        tokens_before,
        tokens_after: context.tokens(),
        outcome,
    })
}
