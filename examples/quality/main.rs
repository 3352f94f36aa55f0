//! What survives a compaction, as a table: ours against simple methods.
//!
//!     cargo run --release --example quality [-- --summaries]
//!
//! docs/QUALITY.md holds what it printed. With `--summaries` it prints three
//! whole summaries in place of the table. With `LOCAL_LLM_URL` (an
//! OpenAI-compatible endpoint) a model is measured too, alone and with facts.

#![expect(
    clippy::cast_precision_loss,
    clippy::clone_on_ref_ptr,
    clippy::format_push_string,
    clippy::indexing_slicing,
    clippy::items_after_statements,
    clippy::needless_for_each,
    clippy::print_stdout,
    reason = "it is run by hand and read by people"
)]

mod judge;
mod methods;
mod sets;

use std::{error::Error, path::Path, time::Instant};

use session_compaction::{ExtractiveSummarizer, Message};

use self::{
    judge::{Score, answers, is_han, look_ahead, text},
    methods::{KEY, Method, context, line, sessions, shrink, tokens},
    sets::{Asked, Cuttable},
};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sets = Sets {
        talks: sets::conversations(root)?,
        coding: sets::coding(root)?,
        chinese: sets::chinese(root)?,
    };
    if std::env::args().any(|argument| argument == "--summaries") {
        return sets.print_summaries().await;
    }
    let simple = [
        Method::Newest,
        Method::HeadAndTail,
        Method::MaskedTools,
        Method::Longest,
        Method::TextRank,
    ];
    let methods: Vec<_> = simple.into_iter().chain(methods::extractive()).chain(model()?).collect();
    println!("| kept / in place, % | {} |", COLUMNS.map(|(name, ..)| name).join(" | "));
    println!("|---|{}", "---|".repeat(COLUMNS.len()));
    for method in &methods {
        let mut row = format!("| {} ", method.name());
        for (_, kind, percent) in COLUMNS {
            row.push_str(&format!("| {} ", sets.measure(method, kind, percent).await?));
        }
        println!("{row}|");
    }
    println!("\n| | |\n|---|---|");
    println!("| repeat: five compactions in a row against one | {} |", sets.repeat().await?);
    println!("| pinned: messages, strings | {} |", sets.pinned().await?);
    println!(
        "| language: Han letters of the Chinese text, of its summary | {} |",
        sets.language().await?
    );
    Ok(())
}

#[derive(Clone, Copy)]
enum Kind {
    Chinese,
    Coding,
    Conversations,
    TokensAndTime,
}

const COLUMNS: [(&str, Kind, u64); 8] = [
    ("conversations 5%", Kind::Conversations, 5),
    ("10%", Kind::Conversations, 10),
    ("20%", Kind::Conversations, 20),
    ("coding 2%", Kind::Coding, 2),
    ("5%", Kind::Coding, 5),
    ("10%", Kind::Coding, 10),
    ("Chinese 20%: kept", Kind::Chinese, 20),
    ("coding 5%: tokens used of the budget, ms per MB", Kind::TokensAndTime, 5),
];

struct Sets {
    talks: Vec<Asked>,
    coding: Vec<Cuttable>,
    chinese: Vec<Asked>,
}

impl Sets {
    async fn measure(&self, method: &Method, kind: Kind, percent: u64) -> Result<String> {
        Ok(match kind {
            Kind::Chinese => {
                format!("{:.0}", asked(method, &self.chinese, percent).await?.percent().0)
            }
            Kind::Coding => both(self.needed(method, percent).await?),
            Kind::Conversations => both(asked(method, &self.talks, percent).await?),
            Kind::TokensAndTime => self.tokens_and_time(method, percent).await?,
        })
    }

    async fn needed(&self, method: &Method, percent: u64) -> Result<Score> {
        let mut score = Score::default();
        for session in &self.coding {
            for cut in &session.cuts {
                let past = &session.messages[..cut.past];
                let context = method.compact(past, budget(past, percent)).await?;
                score.add(look_ahead(&context, past, &cut.needed));
            }
        }
        Ok(score)
    }

    async fn tokens_and_time(&self, method: &Method, percent: u64) -> Result<String> {
        let (mut used, mut allowed, mut size) = (0, 0, 0);
        let start = Instant::now();
        for session in &self.coding {
            let budget = budget(&session.messages, percent);
            used += tokens(&method.compact(&session.messages, budget).await?);
            allowed += budget;
            size += session.messages.iter().map(|message| text(message).len()).sum::<usize>();
        }
        let ms = start.elapsed().as_secs_f64() * 1e3 / (size as f64 / 1e6);
        Ok(format!("{:.0}%, {ms:.0}", 100.0 * used as f64 / allowed as f64))
    }

    /// What five compactions in a row keep, and what one of everything does.
    async fn repeat(&self) -> Result<String> {
        let mut talks = [Score::default(); 2];
        for talk in &self.talks {
            let budget = budget(&talk.messages, 10);
            for (score, rounds) in talks.iter_mut().zip([5, 1]) {
                score
                    .add(answers(&in_rounds(&talk.messages, rounds, budget).await?, &talk.answers));
            }
        }
        let mut coding = [Score::default(); 2];
        for session in &self.coding {
            for cut in &session.cuts {
                let past = &session.messages[..cut.past];
                for (score, rounds) in coding.iter_mut().zip([5, 1]) {
                    let context = in_rounds(past, rounds, budget(past, 5)).await?;
                    score.add(look_ahead(&context, past, &cut.needed));
                }
            }
        }
        let row = |[five, one]: [Score; 2]| format!("{} against {}", both(five), both(one));
        Ok(format!("conversations 10%: {}; coding 5%: {}", row(talks), row(coding)))
    }

    /// How much of what the host pins is there word for word.
    async fn pinned(&self) -> Result<String> {
        let (mut messages, mut strings) = (Score::default(), Score::default());
        for session in &self.coding {
            let budget = budget(&session.messages, 10);
            // A short one in every fifty messages.
            let pins: Vec<String> = session
                .messages
                .chunks(50)
                .filter_map(|chunk| chunk.iter().find(|m| m.is_human() && m.chars() < 400))
                .map(Message::text)
                .collect();
            let pin = |message: &Message| {
                let pinned = pins.contains(&message.text());
                if pinned { message.clone().pinned() } else { message.clone() }
            };
            let history: Vec<Message> = session.messages.iter().map(pin).collect();
            let protected: Vec<String> =
                session.cuts.iter().flat_map(|cut| cut.needed.iter().take(10).cloned()).collect();
            let ours = ExtractiveSummarizer::default().protecting(protected.clone());
            let context = Method::ours("", ours).compact(&history, budget).await?;
            let count = |all: &[String]| Score {
                asked: all.len(),
                kept: all.iter().filter(|text| context.contains(*text)).count(),
                in_place: 0,
            };
            messages.add(count(&pins));
            strings.add(count(&protected));
        }
        let row = |score: Score| format!("{:.0}% of {}", score.percent().0, score.asked);
        Ok(format!("{}, {}", row(messages), row(strings)))
    }

    /// The share of Han letters before and after.
    async fn language(&self) -> Result<String> {
        let [ours, ..] = methods::extractive();
        let (mut before, mut after) = (String::new(), String::new());
        for session in &self.chinese {
            before.extend(session.messages.iter().map(text));
            after.push_str(&ours.compact(&session.messages, budget(&session.messages, 20)).await?);
        }
        let share = |text: &str| {
            let letters = text.chars().filter(|c| c.is_alphabetic()).count();
            100.0 * text.chars().filter(|c| is_han(*c)).count() as f64 / letters.max(1) as f64
        };
        Ok(format!("{:.0}%, {:.0}%", share(&before), share(&after)))
    }

    async fn print_summaries(&self) -> Result<()> {
        let talk = self.talks.get(1).map(|talk| (&talk.messages, 10));
        let session = self.coding.iter().min_by_key(|session| session.messages.len());
        let coding = session.map(|session| (&session.messages, 5));
        let chinese = self.chinese.first().map(|talk| (&talk.messages, 20));
        for (messages, percent) in [talk, coding, chinese].into_iter().flatten() {
            let sessions = sessions(ExtractiveSummarizer::default())?;
            sessions.add_messages(KEY, messages.clone()).await?;
            shrink(&sessions, budget(messages, percent)).await?;
            let summary = sessions.summary(KEY).await?.unwrap_or_default();
            println!("```text\n{summary}\n```\n");
        }
        Ok(())
    }
}

async fn asked(method: &Method, sets: &[Asked], percent: u64) -> Result<Score> {
    let mut score = Score::default();
    for session in sets {
        let context = method.compact(&session.messages, budget(&session.messages, percent)).await?;
        score.add(answers(&context, &session.answers));
    }
    Ok(score)
}

/// Feeds a session in parts, and compacts it to the same budget after each.
async fn in_rounds(messages: &[Message], rounds: usize, budget: u64) -> Result<String> {
    let sessions = sessions(ExtractiveSummarizer::default())?;
    for part in messages.chunks(messages.len().div_ceil(rounds).max(1)) {
        sessions.add_messages(KEY, part.to_vec()).await?;
        shrink(&sessions, budget).await?;
    }
    context(&sessions).await
}

fn budget(messages: &[Message], percent: u64) -> u64 {
    (messages.iter().map(|message| tokens(&line(message))).sum::<u64>() * percent / 100).max(60)
}

fn both(score: Score) -> String {
    let (kept, in_place) = score.percent();
    format!("{kept:.0} / {in_place:.0}")
}

/// A model behind an endpoint, where there is one.
#[cfg(feature = "providers")]
fn model() -> Result<Vec<Method>> {
    use session_compaction::{LlmSummarizer, OpenAiCompatible, Retrying};
    let Ok(url) = std::env::var("LOCAL_LLM_URL") else { return Ok(Vec::new()) };
    let ask = || Ok::<_, Box<dyn Error>>(Retrying::new(OpenAiCompatible::new(&url)?));
    Ok(vec![
        Method::ours("model", LlmSummarizer::new(ask()?, "local").with_facts(false)),
        Method::ours("model and facts", LlmSummarizer::new(ask()?, "local")),
    ])
}

#[cfg(not(feature = "providers"))]
fn model() -> Result<Vec<Method>> {
    Ok(Vec::new())
}
