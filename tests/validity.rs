//! Whatever agents leave behind, and however it is compacted: every context is
//! valid, and nothing that must stay is lost. The rules are checked on what
//! would be sent, by code that shares nothing with what arranges it.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "all of it is a test, also outside of the test functions"
)]

#[path = "common/histories.rs"]
#[expect(dead_code, reason = "the planner's tests use the rest")]
mod histories;
#[path = "common/wire.rs"]
mod wire;

use std::{
    collections::BTreeMap,
    fmt::Write,
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use histories::History;
use session_compaction::{
    Compact, Forced, Message, Part, Provider, Request, SessionManager, SummarizationConfig,
    Threshold, summarize_fn, validate_messages,
};
use tokio::runtime;

#[test]
fn every_context_is_valid() {
    mass(0..20_000);
}

#[test]
#[ignore = "takes minutes: cargo test --release --test validity -- --ignored million"]
fn million() {
    mass(0..1_000_000);
}

/// What a provider would get.
type Bodies = [(Provider, String); 4];

/// Builds the session's context for each provider.
async fn bodies(sessions: &SessionManager, key: &str) -> Bodies {
    let context = sessions.context(key, &Request::new()).await.unwrap();
    [
        (Provider::OpenAiChat, context.to_openai_chat().to_json()),
        (Provider::Anthropic, context.to_anthropic().to_json()),
        (Provider::Gemini, context.to_gemini().to_json()),
        (Provider::StrictTemplate, context.to_strict_template().to_json()),
    ]
}

/// What random choices make of one history.
#[derive(Clone, Copy, Debug)]
struct Plan {
    keep: usize,
    rounds: usize,
    /// One bit a round: force compression instead of a summary.
    forces: u64,
}

impl Plan {
    const MOST_ROUNDS: usize = 6;

    fn of(seed: u64) -> Self {
        let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
        let pick = |shift: u32, of: u64| usize::try_from((mixed >> shift) % of).unwrap();
        Self {
            keep: pick(0, 8) + 1,
            rounds: pick(8, Self::MOST_ROUNDS as u64) + 1,
            forces: (mixed >> 16) & (mixed >> 24),
        }
    }
}

/// How often something came up, by how many of it a history had.
#[derive(Debug, Default)]
struct Histogram(BTreeMap<(&'static str, usize), u64>);

impl Histogram {
    fn count(&mut self, what: &'static str, n: usize) {
        *self.0.entry((what, n)).or_default() += 1;
    }

    fn add(&mut self, other: Self) {
        for (key, n) in other.0 {
            *self.0.entry(key).or_default() += n;
        }
    }

    fn without(&self, what: &'static str) -> u64 {
        self.0.get(&(what, 0)).copied().unwrap_or_default()
    }

    fn show(&self) -> String {
        let mut lines: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
        for ((what, n), count) in &self.0 {
            // Single figures up to 8, then powers of two.
            let bucket = if *n <= 8 { *n } else { n.next_power_of_two() };
            let name = if *n <= 8 { format!("{bucket:2}") } else { format!("<={bucket}") };
            *lines.entry(what).or_default().entry(name).or_default() += count;
        }
        let mut shown = String::new();
        for (what, buckets) in lines {
            let _ = write!(shown, "{what:>20}:");
            for (bucket, count) in buckets {
                let _ = write!(shown, "  {bucket}: {count}");
            }
            shown.push('\n');
        }
        shown
    }
}

/// Plays a history for each seed, on all cores.
fn mass(seeds: Range<u64>) {
    let next = AtomicU64::new(seeds.start);
    let workers = thread::available_parallelism().map_or(2, usize::from);
    let histogram = thread::scope(|scope| {
        let work = || {
            let bench = Bench::new();
            let mut histogram = Histogram::default();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= seeds.end {
                    return histogram;
                }
                bench.judge(seed, &mut histogram);
            }
        };
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut all = Histogram::default();
        for worker in workers {
            all.add(worker.join().unwrap());
        }
        all
    });
    let played = seeds.end - seeds.start;
    println!("{played} histories, by how many of each they had:\n{}", histogram.show());
    let compacted = played - histogram.without("compactions");
    assert!(compacted * 10 >= played * 8, "only {compacted} of {played} were compacted");
}

/// One manager for each number of messages to keep.
struct Bench {
    runtime: runtime::Runtime,
    managers: Vec<SessionManager>,
}

impl Bench {
    fn new() -> Self {
        let runtime = runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let manager = |keep| {
            let summarizer = summarize_fn(|_| async { Ok("All went as it was asked.") });
            let config = SummarizationConfig {
                keep_last_messages: keep,
                message_threshold: Threshold::Off,
                token_percent: Threshold::Off,
                threshold_chars: Threshold::Above(1_000_000),
                ..SummarizationConfig::default()
            };
            let builder = SessionManager::builder().config(config).summarizer(summarizer);
            builder.runtime(runtime.handle().clone()).build().unwrap()
        };
        let managers = (1..=8).map(manager).collect();
        Self { runtime, managers }
    }

    /// Plays the history of a seed, and shows the smallest one that fails in
    /// the same plan.
    fn judge(&self, seed: u64, histogram: &mut Histogram) {
        let plan = Plan::of(seed);
        // Two halves, so that few histories are too short to be compacted.
        let mut steps = histories::steps(seed, 16);
        steps.extend(histories::steps(!seed, 16));
        let Err(mut why) = self.play(&steps, plan, histogram) else { return };
        let mut index = 0;
        while index < steps.len() {
            let mut fewer = steps.clone();
            fewer.remove(index);
            match self.play(&fewer, plan, &mut Histogram::default()) {
                Err(still) => (steps, why) = (fewer, still),
                Ok(()) => index += 1,
            }
        }
        panic!("seed {seed}, {plan:?}, steps {steps:?}: {why}");
    }

    fn play(&self, steps: &[[u8; 4]], plan: Plan, histogram: &mut Histogram) -> Result<(), String> {
        let sessions = &self.managers[plan.keep - 1];
        self.runtime.block_on(async {
            let played = play(sessions, steps, plan, histogram).await;
            sessions.remove("session").await.unwrap();
            played
        })
    }
}

async fn play(
    sessions: &SessionManager,
    steps: &[[u8; 4]],
    plan: Plan,
    histogram: &mut Histogram,
) -> Result<(), String> {
    let mut history = History::default();
    let (mut compactions, mut forces, mut contexts) = (0, 0, 0);
    let a_round = steps.len().div_ceil(plan.rounds).max(1);
    for (round, steps) in steps.chunks(a_round).enumerate() {
        let added = history.messages.len();
        for step in steps {
            history.grow(*step);
        }
        let new = history.messages[added..].to_vec();
        sessions.add_messages("session", new).await.map_err(|error| error.to_string())?;
        if plan.forces >> round & 1 == 1 {
            let outcome = sessions.force_compression("session").await;
            let outcome = outcome.map_err(|error| error.to_string())?;
            forces += usize::from(matches!(outcome, Forced::Dropped { .. }));
        } else {
            let report = sessions.compact("session", Compact::now()).await;
            compactions += usize::from(report.applied().is_some());
        }
        let carried = kept(sessions, &history.messages).await?;
        histogram.count("carried messages", carried);
        if history.messages.is_empty() {
            continue;
        }
        contexts += 1;
        for (provider, body) in bodies(sessions, "session").await {
            sent(provider, &body, &history.messages)
                .map_err(|why| format!("after round {round}, {provider:?}: {why}"))?;
        }
    }
    let rounds = history.messages.iter().filter(|message| message.tool_calls().next().is_some());
    histogram.count("rounds", rounds.count());
    histogram.count("parallel calls", history.parallel_calls);
    histogram.count("open calls", history.open.len());
    histogram.count("compactions", compactions + forces);
    histogram.count("forced", forces);
    histogram.count("contexts", contexts);
    Ok(())
}

/// Checks what the session keeps; returns how many messages are carried.
async fn kept(sessions: &SessionManager, added: &[Message]) -> Result<usize, String> {
    let snapshot = sessions.history("session").await.map_err(|error| error.to_string())?;
    let by_id: BTreeMap<_, _> = snapshot.iter().map(|message| (message.id(), message)).collect();
    if by_id.len() != snapshot.len() {
        return Err("a message is there twice".into());
    }
    for (position, message) in added.iter().enumerate() {
        match by_id.get(&message.id()) {
            Some(kept) if ***kept == *message => {}
            Some(kept) => return Err(format!("{message:?} was kept as {kept:?}")),
            None if message.is_pinned() => return Err(format!("pinned {message:?} was lost")),
            None if position as u64 >= snapshot.cut() => {
                return Err(format!("{message:?} is neither kept nor below the cut"));
            }
            None => {}
        }
    }
    let newest = newest_user(added);
    match newest {
        Some(newest) if !by_id.contains_key(&newest.id()) => {
            Err(format!("the newest user message {newest:?} was lost"))
        }
        _ => Ok(snapshot.carried()),
    }
}

/// Checks what a provider would get.
fn sent(provider: Provider, body: &str, added: &[Message]) -> Result<(), String> {
    let messages = wire::messages(body, provider)?;
    if let Some(violation) = validate_messages(&messages, provider).first() {
        return Err(format!("{violation}: {body}"));
    }
    let spoken = |message: &&Message| {
        message.tool_calls().next().is_none() && message.tool_results().next().is_none()
    };
    let must_stay = added.iter().filter(|message| message.is_pinned()).filter(spoken);
    for message in must_stay.chain(newest_user(added)) {
        for part in message.parts() {
            let Part::Text(text) = part else { continue };
            if !body.contains(text.text.trim()) {
                return Err(format!("{message:?} is not sent: {body}"));
            }
        }
    }
    Ok(())
}

fn newest_user(added: &[Message]) -> Option<&Message> {
    added.iter().rev().find(|message| message.is_human())
}
