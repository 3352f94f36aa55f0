//! A web process that answers, two worker processes that compact, and one
//! PostgreSQL between them. One worker is killed in the middle of its work.
//!
//! ```console
//! $ DATABASE_URL=postgres://localhost/agents cargo run --features postgres --example postgres_workers
//! ```
//!
//! Prints an account at the end: every message that went in is in a summary or
//! in a window, exactly once.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::{env, process::Stdio, time::Duration};

use session_compaction::{
    ExtractiveSummarizer, Message, Outcome, PostgresStore, RunIn, SessionManager, SummarizeError,
    Summarizer, Summary, SummaryRequest, Worker,
};
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep},
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const SESSIONS: usize = 24;
const MESSAGES: usize = 90;

#[tokio::main]
async fn main() -> Result<()> {
    let Ok(url) = env::var("DATABASE_URL") else {
        return Err("set DATABASE_URL to a PostgreSQL database; ./test starts one".into());
    };
    match env::args().nth(1).as_deref() {
        Some("worker") => work(&url).await,
        _ => serve(&url).await,
    }
}

/// What a worker process does, until it is killed.
async fn work(url: &str) -> Result<()> {
    let sessions = SessionManager::builder()
        .store(PostgresStore::connect(url).await?)
        .summarizer(Slow(ExtractiveSummarizer::default()))
        .build()?;
    let worker = Worker::new(sessions).idle(Duration::from_millis(50));
    let shutdown = worker.run(async { drop(tokio::signal::ctrl_c().await) }).await;
    println!("worker stopped, {} compactions finished", shutdown.finished.len());
    Ok(())
}

/// What the web process does: it appends, and leaves compactions to others.
async fn serve(url: &str) -> Result<()> {
    let web = SessionManager::builder()
        .store(PostgresStore::connect(url).await?)
        .summarizer(ExtractiveSummarizer::default())
        .run_in(RunIn::Elsewhere)
        .build()?;
    web.remove_scope("fleet").await?;

    let (mut first, mut second) = (spawn_worker()?, spawn_worker()?);
    println!("workers {:?} and {:?} started", first.id(), second.id());
    let mut deferred = 0;
    for n in 0..MESSAGES {
        for session in 0..SESSIONS {
            let key = format!("fleet:{session}");
            web.add_message(&key, message(session, n)).await?;
            if n % 2 == 1 && matches!(web.maybe_summarize(&key).await, Outcome::Deferred) {
                deferred += 1;
            }
        }
        if n == MESSAGES / 2 {
            first.kill().await?;
            println!("worker killed in the middle of its work; what it held is free in 30 s");
        }
    }
    wait_until_idle(&web).await?;
    second.kill().await?;
    account(&web, deferred).await
}

fn spawn_worker() -> Result<Child> {
    let worker = Command::new(env::current_exe()?)
        .arg("worker")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    Ok(worker)
}

fn message(session: usize, n: usize) -> Message {
    if n.is_multiple_of(2) {
        Message::user(format!("Order {n} of customer {session}: where is it?"))
    } else {
        Message::assistant(format!("Order {n} was shipped from hall {} on Monday.", n % 7))
    }
}

async fn wait_until_idle(web: &SessionManager) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(90);
    loop {
        let mut due = 0;
        for session in 0..SESSIONS {
            let outcome = web.maybe_summarize(&format!("fleet:{session}")).await;
            due += usize::from(matches!(outcome, Outcome::Deferred));
        }
        if due == 0 {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(format!("{due} sessions are still due").into());
        }
        sleep(Duration::from_millis(200)).await;
    }
}

async fn account(web: &SessionManager, deferred: usize) -> Result<()> {
    let (mut added, mut summarized, mut kept, mut compactions) = (0, 0, 0, 0);
    for session in 0..SESSIONS {
        let key = format!("fleet:{session}");
        let of_session = web.compactions(&key, None, 1_000).await?;
        compactions += of_session.len();
        summarized += of_session.iter().map(|done| done.usage.messages_removed).sum::<u64>();
        kept += web.history(&key).await?.len() as u64;
        added += web.transcript(&key, 0..u64::MAX).await?.len() as u64;
    }
    println!("left to the workers {deferred} times, {compactions} compactions");
    println!("{added} messages in = {summarized} in summaries + {kept} in windows");
    if added != summarized + kept || added != (SESSIONS * MESSAGES) as u64 {
        return Err("the account does not add up".into());
    }
    Ok(())
}

/// Takes its time, as a model does.
#[derive(Debug)]
struct Slow(ExtractiveSummarizer);

#[async_trait::async_trait]
impl Summarizer for Slow {
    async fn summarize(
        &self,
        request: SummaryRequest,
    ) -> std::result::Result<Summary, SummarizeError> {
        sleep(Duration::from_millis(150)).await;
        self.0.summarize(request).await
    }
}
