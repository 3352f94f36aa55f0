//! The contract of `SessionStore`, checked on each store of the crate: one test
//! for each store and check.
//!
//! PostgreSQL takes part where `DATABASE_URL` names a server.

#![expect(
    clippy::unwrap_used,
    reason = "it is a test, which clippy does not see without the standard harness"
)]

#[path = "common/folder.rs"]
mod folder;

use std::{future::Future, pin::Pin, process::ExitCode, sync::Arc};

use folder::Folder;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
#[cfg(feature = "sqlite")]
use session_compaction::SqliteStore;
use session_compaction::{
    JsonlStore, MemoryStore, SessionStore,
    conformance::{CHECKS, Check, Verdict},
};
#[cfg(feature = "postgres")]
use session_compaction::{MessageId, PostgresOptions};

/// A new, empty store, and what must outlive it.
type Opened = (Arc<dyn SessionStore>, Option<Folder>);
type Opening = Pin<Box<dyn Future<Output = Opened>>>;

/// A store by its name, and how one is opened.
struct Kind {
    name: &'static str,
    open: fn() -> Opening,
    /// Whether it offers all that there is, so that no check is passed over.
    whole: bool,
}

/// All stores that this build has and this machine can play. A new one is a
/// line here.
fn kinds() -> Vec<Kind> {
    vec![
        Kind {
            name: "memory",
            open: || Box::pin(async { (Arc::new(MemoryStore::new()) as _, None) }),
            whole: false,
        },
        Kind {
            name: "memory_with_transcripts",
            open: || Box::pin(async { (Arc::new(MemoryStore::keep_transcripts()) as _, None) }),
            whole: true,
        },
        Kind {
            name: "jsonl",
            open: || {
                Box::pin(async {
                    let folder = Folder::new();
                    (Arc::new(JsonlStore::open(folder.path()).unwrap()) as _, Some(folder))
                })
            },
            whole: true,
        },
        #[cfg(feature = "sqlite")]
        Kind {
            name: "sqlite",
            open: || {
                Box::pin(async {
                    let folder = Folder::new();
                    std::fs::create_dir(folder.path()).unwrap();
                    let path = folder.path().join("sessions.db");
                    (Arc::new(SqliteStore::open(path).await.unwrap()) as _, Some(folder))
                })
            },
            whole: true,
        },
        #[cfg(feature = "sqlite")]
        Kind {
            name: "sqlite_in_memory",
            open: || {
                Box::pin(async { (Arc::new(SqliteStore::in_memory().await.unwrap()) as _, None) })
            },
            whole: true,
        },
    ]
    .into_iter()
    .chain(servers())
    .collect()
}

/// The stores on a server, where the environment names one.
fn servers() -> Vec<Kind> {
    #[cfg_attr(not(feature = "postgres"), expect(unused_mut, reason = "no server then"))]
    let mut kinds = Vec::new();
    #[cfg(feature = "postgres")]
    if std::env::var_os("DATABASE_URL").is_some() {
        kinds.push(Kind {
            name: "postgres",
            open: || {
                Box::pin(async {
                    let url = std::env::var("DATABASE_URL").unwrap();
                    // Tables of its own: checks run side by side.
                    let prefix = format!("t{}_", MessageId::generate().to_string().to_lowercase());
                    let options = PostgresOptions::new().with_table_prefix(prefix);
                    (
                        Arc::new(options.with_max_connections(3).connect(&url).await.unwrap()) as _,
                        None,
                    )
                })
            },
            whole: true,
        });
    }
    kinds
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for kind in kinds() {
        for check in CHECKS {
            let (open, whole) = (kind.open, kind.whole);
            let name = format!("{}::{}", kind.name, check.name);
            trials.push(Trial::ignorable_test(name, move || run(*check, open, whole)));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn run(check: Check, open: fn() -> Opening, whole: bool) -> Result<Completion, Failed> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let verdict = runtime.block_on(async {
        let (store, _folder) = open().await;
        check.run(store).await
    });
    match verdict? {
        Verdict::Passed => Ok(Completion::Completed),
        Verdict::NotApplicable(what) if !whole => {
            Ok(Completion::ignored_with(format!("it has no {what}")))
        }
        other => Err(format!("{other:?}, but it offers all that there is").into()),
    }
}
