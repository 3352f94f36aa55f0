//! Measures a store: durable appends per second, load times, bytes on disk.
//!
//! `cargo run --release --features sqlite --example store_bench -- --store sqlite`
//!
//! The last line is a row of the README's table of stores.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement prints, and ends where something fails"
)]

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use clap::{Parser, ValueEnum};
use session_compaction::{
    Commit, JsonlStore, MemoryStore, Message, MessageId, NewMessage, SessionKey, SessionStore,
    Size, View,
};

#[derive(Debug, Parser)]
struct Arguments {
    /// Which store.
    #[arg(long, value_enum)]
    store: Kind,
    /// The folder in which it keeps its files: on the disk to be measured.
    #[arg(long, default_value = "target/store_bench")]
    folder: PathBuf,
    /// How long each rate is measured, in seconds.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// How many messages the long session has.
    #[arg(long, default_value_t = 100_000)]
    messages: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Jsonl,
    Memory,
    /// The server that `DATABASE_URL` names.
    #[cfg(feature = "postgres")]
    Postgres,
    #[cfg(feature = "sqlite")]
    Sqlite,
}

impl Kind {
    async fn open(self, folder: &Path) -> Arc<dyn SessionStore> {
        match self {
            Self::Jsonl => Arc::new(JsonlStore::open(folder).unwrap()),
            Self::Memory => Arc::new(MemoryStore::keep_transcripts()),
            #[cfg(feature = "postgres")]
            Self::Postgres => {
                let url = std::env::var("DATABASE_URL").unwrap();
                let prefix = format!("bench{}_", MessageId::generate().to_string().to_lowercase());
                let options = session_compaction::PostgresOptions::new().with_table_prefix(prefix);
                Arc::new(options.connect(&url).await.unwrap())
            }
            #[cfg(feature = "sqlite")]
            Self::Sqlite => {
                let path = folder.join("sessions.db");
                Arc::new(session_compaction::SqliteStore::open(path).await.unwrap())
            }
        }
    }
}

/// Where writers write to.
#[derive(Clone, Copy, Debug)]
enum Sessions {
    One,
    OneEach,
}

fn key(text: &str) -> SessionKey {
    SessionKey::new(text).unwrap()
}

/// A message of 200 characters, as a manager hands it over.
fn message() -> NewMessage {
    let message = Message::user("0123456789".repeat(20)).with_id(MessageId::generate());
    let size = Size::estimated(&message);
    NewMessage::new(Arc::new(message), size, true)
}

/// Appends per second of so many writers, each of which waits for its answer.
async fn rate(store: &Arc<dyn SessionStore>, writers: usize, on: Sessions, time: Duration) -> f64 {
    static ROUND: AtomicU64 = AtomicU64::new(0);
    let round = ROUND.fetch_add(1, Ordering::Relaxed);
    let start = Instant::now();
    let end = start + time;
    let tasks = (0..writers).map(|writer| {
        let store = Arc::clone(store);
        let key = match on {
            Sessions::One => key(&format!("rate-{round}")),
            Sessions::OneEach => key(&format!("rate-{round}-{writer}")),
        };
        tokio::spawn(async move {
            let mut count = 0_u32;
            while Instant::now() < end {
                store.append(&key, &[message()]).await.unwrap();
                count += 1;
            }
            count
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut count = 0;
    for task in tasks {
        count += task.await.unwrap();
    }
    f64::from(count) / start.elapsed().as_secs_f64()
}

/// The shortest of several loads.
async fn load(store: &Arc<dyn SessionStore>, key: &SessionKey, messages: u64) -> Duration {
    let mut shortest = Duration::MAX;
    for _ in 0..7 {
        let start = Instant::now();
        let session = store.load(key).await.unwrap().unwrap();
        shortest = shortest.min(start.elapsed());
        assert_eq!(session.window.len() as u64, messages);
    }
    shortest
}

fn files(folder: &Path) -> Vec<(String, u64)> {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap());
    let files = files.map(|file| {
        let name = file.file_name().to_string_lossy().into_owned();
        (name, file.metadata().map_or(0, |file| file.len()))
    });
    files.collect()
}

#[tokio::main]
async fn main() {
    let Arguments { store: kind, folder, seconds, messages } = Arguments::parse();
    let _ = std::fs::remove_dir_all(&folder);
    let time = Duration::from_secs(seconds);
    let rates = folder.join("rates");
    std::fs::create_dir_all(&rates).unwrap();
    let store = kind.open(&rates).await;
    let one = rate(&store, 1, Sessions::One, time).await;
    println!("1 writer: {one:.0} appends per second");
    let together = rate(&store, 64, Sessions::One, time).await;
    let ratio = together / one;
    println!("64 writers on one session: {together:.0} appends per second, {ratio:.1} times");
    let apart = rate(&store, 64, Sessions::OneEach, time).await;
    println!("64 writers on 64 sessions: {apart:.0} appends per second");
    drop(store);

    let long = folder.join("long");
    std::fs::create_dir_all(&long).unwrap();
    let store = kind.open(&long).await;
    let key = key("long");
    for _ in 0..messages / 1_000 {
        let batch: Vec<_> = (0..1_000).map(|_| message()).collect();
        store.append(&key, &batch).await.unwrap();
    }
    let whole = load(&store, &key, messages).await;
    println!("load of {messages} messages: {whole:.1?}");
    let revision = store.load(&key).await.unwrap().unwrap().state.revision;
    let mut view = View::default();
    view.cut = messages - 50;
    let _ = store.commit(&key, Commit::on(revision).with_view(view)).await.unwrap();
    let tail = load(&store, &key, 50).await;
    println!("load of the 50 after a cut: {tail:.2?}");
    drop(store);
    // A database that was closed has no log beside it, once that is written back.
    while files(&long).iter().any(|(name, _)| name.ends_with("-wal")) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let kilobytes = files(&long).iter().map(|(_, bytes)| bytes).sum::<u64>() / 1_000;
    let kilobytes = u32::try_from(kilobytes).unwrap();
    let megabytes = f64::from(kilobytes) / 1e3;
    println!("on disk: {megabytes:.1} MB");
    println!(
        "| {kind:?} | {one:.0} | {together:.0} ({ratio:.0}x) | {apart:.0} | {} ms | {:.2} ms | {megabytes:.1} MB |",
        whole.as_millis(),
        tail.as_secs_f64() * 1e3,
    );
}
