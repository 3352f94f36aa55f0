//! Ours, and the simple methods that it has to beat.

use std::collections::HashMap;

use session_compaction::{
    ByteEstimate, Compact, ExtractiveSummarizer, MemoryStore, Message, Report, Request, Role,
    SessionManager, SummarizationConfig, Summarizer, TokenCounter,
};

use crate::{
    Result,
    judge::{keys, sentences, text},
};

pub(crate) const KEY: &str = "quality";

/// Tokens by the estimate for the model that everything is measured for.
pub(crate) fn tokens(text: &str) -> u64 {
    ByteEstimate::for_model("gpt-5-mini").text(text).count()
}

#[derive(Clone)]
pub(crate) enum Method {
    /// A summarizer of the crate, and the newest messages beside its summary.
    Crate(&'static str, std::sync::Arc<dyn Summarizer>),
    HeadAndTail,
    Longest,
    MaskedTools,
    Newest,
    TextRank,
}

impl Method {
    pub(crate) fn ours(name: &'static str, summarizer: impl Summarizer) -> Self {
        Self::Crate(name, std::sync::Arc::new(summarizer))
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Crate(name, _) => name,
            Self::HeadAndTail => "head and tail",
            Self::Longest => "longest sentences",
            Self::MaskedTools => "tools masked, newest",
            Self::Newest => "newest",
            Self::TextRank => "TextRank",
        }
    }

    /// Compacts messages to so many tokens, and returns all that is left.
    pub(crate) async fn compact(&self, messages: &[Message], budget: u64) -> Result<String> {
        let lines = || messages.iter().map(line).collect::<Vec<_>>();
        Ok(match self {
            Self::Crate(_, summarizer) => {
                let sessions = sessions(summarizer.clone())?;
                sessions.add_messages(KEY, messages.to_vec()).await?;
                shrink(&sessions, budget).await?;
                let context = context(&sessions).await?;
                // Refused, since what must be kept is above the budget: a host
                // would send the newest that fit.
                if tokens(&context) > budget + budget / 10 {
                    return Ok(tail(&lines(), budget));
                }
                context
            }
            Self::HeadAndTail => {
                let head = start(&lines().join("\n"), budget / 2);
                format!("{head}\n{}", tail(&lines(), budget / 2))
            }
            Self::Longest => {
                let all = lines_of(messages);
                let mut order: Vec<usize> = (0..all.len()).collect();
                order.sort_by_key(|index| std::cmp::Reverse(all[*index].len()));
                pick(&order, &all, budget)
            }
            Self::MaskedTools => {
                let masked = |message: &Message| match message.role() {
                    Role::Tool => {
                        format!("tool: [output omitted, {} characters]", message.text().len())
                    }
                    _ => line(message),
                };
                tail(&messages.iter().map(masked).collect::<Vec<_>>(), budget)
            }
            Self::Newest => tail(&lines(), budget),
            Self::TextRank => {
                let all = lines_of(messages);
                let all = &all[all.len().saturating_sub(3_000)..];
                pick(&text_rank(all), all, budget)
            }
        })
    }
}

/// A manager in memory whose summaries are bounded by nothing but the budget.
pub(crate) fn sessions(summarizer: impl Summarizer) -> Result<SessionManager> {
    let config = SummarizationConfig::default()
        .with_context_window(2_000_000)
        .with_summary_max_tokens(1_000_000);
    Ok(SessionManager::builder()
        .store(MemoryStore::new())
        .token_counter(ByteEstimate::for_model("gpt-5-mini"))
        .config(config)
        .summarizer(summarizer)
        .build()?)
}

/// Compacts a session, where that makes it smaller.
pub(crate) async fn shrink(sessions: &SessionManager, budget: u64) -> Result<()> {
    match sessions.compact(KEY, Compact::now().to_tokens(budget)).await {
        Report::Applied(_) | Report::Skipped(_) => Ok(()),
        other => Err(other.to_string().into()),
    }
}

/// All that a model would be sent.
pub(crate) async fn context(sessions: &SessionManager) -> Result<String> {
    let context = sessions.context(KEY, &Request::new()).await?;
    let messages: Vec<Message> = serde_json::from_str(context.to_openai_chat().messages())?;
    Ok(messages.iter().map(text).collect::<Vec<_>>().join("\n"))
}

pub(crate) fn line(message: &Message) -> String {
    format!("{}: {}", message.role().as_str(), text(message))
}

fn lines_of(messages: &[Message]) -> Vec<String> {
    let texts: Vec<String> = messages.iter().map(text).collect();
    let short = |line: &str| line.chars().take(400).collect::<String>();
    texts.iter().flat_map(|text| sentences(text)).filter(|s| s.len() > 7).map(short).collect()
}

/// The start of a text, in about so many tokens.
fn start(text: &str, budget: u64) -> String {
    let mut left = budget;
    let pieces = text.split_inclusive(char::is_whitespace).take_while(|piece| {
        let cost = tokens(piece);
        let fits = cost <= left;
        left = left.saturating_sub(cost);
        fits
    });
    pieces.collect()
}

fn tail(lines: &[String], budget: u64) -> String {
    let mut left = budget;
    let mut kept = Vec::new();
    for line in lines.iter().rev() {
        let cost = tokens(line) + 1;
        if cost > left {
            // The end of the one that does not fit, at three bytes a token.
            let from = line.len().saturating_sub(usize::try_from(left * 3).unwrap_or(0));
            let from = (from..=line.len()).find(|at| line.is_char_boundary(*at));
            kept.push(line[from.unwrap_or(line.len())..].to_owned());
            break;
        }
        kept.push(line.clone());
        left -= cost;
    }
    kept.reverse();
    kept.join("\n")
}

fn pick(order: &[usize], lines: &[String], budget: u64) -> String {
    let mut left = budget;
    let mut chosen = Vec::new();
    for index in order {
        let cost = tokens(&lines[*index]) + 1;
        if cost <= left {
            left -= cost;
            chosen.push(*index);
        }
    }
    chosen.sort_unstable();
    chosen.iter().map(|index| lines[*index].as_str()).collect::<Vec<_>>().join("\n")
}

/// Lines by their rank: the page rank over how many words they share.
fn text_rank(lines: &[String]) -> Vec<usize> {
    let words: Vec<_> = lines.iter().map(|line| keys(line)).collect();
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, words) in words.iter().enumerate() {
        for word in words {
            places.entry(word).or_default().push(index);
        }
    }
    let mut edges: Vec<HashMap<usize, f64>> = vec![HashMap::new(); lines.len()];
    // What stands everywhere ties nothing together.
    for places in places.values().filter(|places| places.len() <= 300) {
        for one in places {
            for other in places.iter().filter(|other| *other != one) {
                *edges[*one].entry(*other).or_default() += 1.0;
            }
        }
    }
    let size = |index: usize| ((words[index].len() + 2) as f64).ln();
    let mut edges: Vec<Vec<(usize, f64)>> = edges
        .into_iter()
        .enumerate()
        .map(|(one, to)| {
            to.into_iter().map(|(other, n)| (other, n / (size(one) + size(other)))).collect()
        })
        .collect();
    // Sums of floats depend on their order.
    edges.iter_mut().for_each(|to| to.sort_by_key(|(other, _)| *other));
    let mut ranks = vec![1.0 / lines.len() as f64; lines.len()];
    for _ in 0..30 {
        let mut next = vec![0.15 / lines.len() as f64; lines.len()];
        for (rank, to) in ranks.iter().zip(&edges) {
            let sum: f64 = to.iter().map(|(_, weight)| weight).sum();
            for (other, weight) in to {
                next[*other] += 0.85 * rank * weight / sum;
            }
        }
        ranks = next;
    }
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by(|one, other| ranks[*other].total_cmp(&ranks[*one]).then(one.cmp(other)));
    order
}

/// The crate's own, as it is and in both of its forms.
pub(crate) fn extractive() -> [Method; 3] {
    let ours = ExtractiveSummarizer::default;
    [
        Method::ours("**extractive**", ours()),
        Method::ours("extractive, telegraphic", ours().telegraphic()),
        Method::ours("extractive, whole sentences", ours().whole_sentences()),
    ]
}
