//! Four processes on one store, one of which stands still past its lease:
//! every message is folded once, what it brings is stale, and nothing is lost.

#![cfg(all(unix, feature = "sqlite"))]
#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{self, Child, ChildStdin, Command, Stdio},
    sync::{Arc, mpsc as std_mpsc},
    time::{Duration, Instant},
};

use session_compaction::{
    Compact, Consistency, Message, Outcome, Report, SessionManager, SessionStore, SqliteStore,
    SummarizationConfig, SummarizeError, SummaryRequest, summarize_fn,
};
use tokio::sync::{Semaphore, mpsc};

/// Where the store is that a child opens.
const PLACE: &str = "FOUR_PROCESSES_STORE";
/// The session that they share.
const KEY: &str = "FOUR_PROCESSES_KEY";

/// A dead process holds a session for so long.
const LEASE: Duration = Duration::from_secs(2);

/// For so long a child may be silent.
const PATIENCE: Duration = Duration::from_mins(1);

async fn open(place: &str) -> Arc<dyn SessionStore> {
    #[cfg(feature = "postgres")]
    if place.contains("://") {
        return Arc::new(session_compaction::PostgresStore::connect(place).await.unwrap());
    }
    Arc::new(SqliteStore::open(place).await.unwrap())
}

async fn manager(place: &str, answers: Arc<Semaphore>) -> SessionManager {
    let summarizer = summarize_fn(move |request: SummaryRequest| {
        let answers = Arc::clone(&answers);
        async move {
            say("asked");
            answers.acquire().await.map_err(|error| error.to_string())?.forget();
            Ok::<_, SummarizeError>(folded(&request))
        }
    });
    SessionManager::builder()
        .shared_store(open(place).await)
        .summarizer(summarizer)
        .consistency(Consistency::Latest)
        .lease_ttl(LEASE)
        .config(SummarizationConfig {
            // One call a compaction.
            multi_part_batch_threshold: 1_000,
            ..SummarizationConfig::default()
        })
        .build()
        .unwrap()
}

/// Message `n`, longer than its number in a summary.
fn message(n: u64) -> Message {
    Message::user(format!("number {n}, and some words beside it that no summary needs to hold"))
}

fn number(text: &str) -> u64 {
    text.split(['\u{20}', ',']).nth(1).unwrap().parse().unwrap()
}

/// The numbers of the old summary and of the messages.
fn folded(request: &SummaryRequest) -> String {
    let old = request.existing_summary.iter().map(ToString::to_string);
    let new = request.messages.iter().map(|message| number(&message.text()).to_string());
    old.chain(new).collect::<Vec<_>>().join(" ")
}

/// What a child tells its parent. The test harness writes to the same pipe.
fn say(what: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "\n> {what}").and_then(|()| out.flush()).unwrap();
}

#[tokio::test]
#[ignore = "the other processes of this file's tests, which start it"]
async fn child() {
    let (Ok(place), Ok(key)) = (env::var(PLACE), env::var(KEY)) else { return };
    let answers = Arc::new(Semaphore::new(0));
    let sessions = manager(&place, Arc::clone(&answers)).await;
    let (told, mut orders) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if told.send(line).is_err() {
                return;
            }
        }
    });
    say("ready");
    while let Some(order) = orders.recv().await {
        match order.split_once(' ') {
            Some(("append", n)) => {
                sessions.add_message(&key, message(n.parse().unwrap())).await.unwrap();
                say("appended");
            }
            _ if order == "answer" => answers.add_permits(1),
            _ => {
                let (sessions, key) = (sessions.clone(), key.clone());
                tokio::spawn(async move {
                    let report = sessions.compact(&key, Compact::if_due()).await;
                    say(match report {
                        Report::Applied(_) => "applied",
                        Report::Stale => "stale",
                        Report::NotStarted(why) => match *why {
                            Outcome::HeldElsewhere => "held elsewhere",
                            Outcome::BelowThreshold { .. } => "not due",
                            why => panic!("{why}"),
                        },
                        report => panic!("{report}"),
                    });
                });
            }
        }
    }
}

/// A child process, which ends with its input.
struct Process {
    child: Child,
    orders: ChildStdin,
    said: std_mpsc::Receiver<String>,
}

impl Process {
    fn start(place: &str, key: &str) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["child", "--exact", "--ignored", "--nocapture"])
            .envs([(PLACE, place), (KEY, key)])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (tell, said) = std_mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let line = line.strip_prefix("> ").map(str::to_owned);
                if line.is_some_and(|line| tell.send(line).is_err()) {
                    return;
                }
            }
        });
        let process = Self { child, orders, said };
        assert_eq!(process.hear(), "ready");
        process
    }

    fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").and_then(|()| self.orders.flush()).unwrap();
    }

    fn hear(&self) -> String {
        self.said.recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("the child: {error}"))
    }

    fn ask(&mut self, order: &str) -> String {
        self.order(order);
        self.hear()
    }

    fn signal(&self, signal: &str) {
        let kill = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Plays it on a store.
async fn play(place: &str) {
    let sessions = manager(place, Arc::new(Semaphore::new(0))).await;
    // Others may use the same server.
    let key = &format!("four:processes:{}", process::id());
    for n in 0..30 {
        sessions.add_message(key, message(n)).await.unwrap();
    }
    let mut processes: Vec<_> = (0..4).map(|_| Process::start(place, key)).collect();
    let [stopped, second, third, fourth] = processes.as_mut_slice() else { unreachable!() };

    // The first one asks its model, and stands still.
    assert_eq!(stopped.ask("compact"), "asked");
    assert_eq!(second.ask("compact"), "held elsewhere");
    stopped.signal("STOP");
    // Others append all the while, and one takes the work up once it is free.
    assert_eq!(third.ask("append 30"), "appended");
    let deadline = Instant::now() + PATIENCE;
    loop {
        match second.ask("compact").as_str() {
            "asked" => break,
            said => assert_eq!(said, "held elsewhere"),
        }
        assert!(Instant::now() < deadline, "the lease of a stopped process does not end");
    }
    assert_eq!(fourth.ask("append 31"), "appended");
    assert_eq!(third.ask("compact"), "held elsewhere");
    assert_eq!(second.ask("answer"), "applied");
    assert_eq!(fourth.ask("compact"), "not due");

    // It goes on, with an answer to a question that is none any more.
    stopped.order("answer");
    stopped.signal("CONT");
    assert_eq!(stopped.hear(), "stale");

    // And works on as if nothing had been.
    for n in 32..60 {
        let by = if n % 2 == 0 { &mut *stopped } else { &mut *fourth };
        assert_eq!(by.ask(&format!("append {n}")), "appended");
    }
    assert_eq!(stopped.ask("compact"), "asked");
    assert_eq!(stopped.ask("answer"), "applied");

    let summary = sessions.summary(key).await.unwrap().unwrap();
    let mut numbers: Vec<u64> = summary.split(' ').map(|n| n.parse().unwrap()).collect();
    let summarized = numbers.len();
    let window = sessions.history(key).await.unwrap();
    numbers.extend(window.iter().map(|message| number(&message.text())));
    assert!(numbers.iter().copied().eq(0..60), "{numbers:?}");
    assert_eq!(summarized + window.len(), 60);
    drop(processes);
    sessions.remove(key).await.unwrap();
}

#[tokio::test]
async fn one_stopped_past_its_lease_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    play(folder.path().join("sessions.db").to_str().unwrap()).await;
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn one_stopped_past_its_lease_on_postgresql() {
    // ./test says so where there is none.
    let Ok(url) = env::var("DATABASE_URL") else { return };
    play(&url).await;
}
