//! PostgreSQL: what happens when connections are cut and clients are killed.
//! Runs where `DATABASE_URL` names a server, as `./test` starts one.

#![cfg(feature = "postgres")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "common/kill.rs"]
mod kill;

use std::{env, sync::Arc};

use session_compaction::{
    Commit, CommitResult, ExtractiveSummarizer, Message, MessageId, NewMessage, PostgresOptions,
    PostgresStore, SessionKey, SessionManager, SessionStore, Size, UsageEvent, View,
};
use sqlx::{Connection as _, PgConnection};

/// The server, where there is one; and a prefix that no other test has.
fn server() -> Option<(String, String)> {
    let prefix = format!("t{}_", MessageId::generate().to_string().to_lowercase());
    let url = env::var("DATABASE_URL").ok()?;
    // So that a test can cut its own connections and no others.
    let separator = if url.contains('?') { '&' } else { '?' };
    Some((format!("{url}{separator}application_name={prefix}"), prefix))
}

async fn open(url: &str, prefix: &str) -> PostgresStore {
    let options = PostgresOptions::new().with_table_prefix(prefix).with_max_connections(2);
    options.connect(url).await.unwrap()
}

fn key() -> SessionKey {
    SessionKey::new("s").unwrap()
}

fn named(id: &str) -> NewMessage {
    let message = Message::user(format!("message {id}")).with_id(id);
    NewMessage::new(Arc::new(message), Size::default(), false)
}

/// Cuts every connection of the store, as a restart of the server does.
async fn cut(url: &str, prefix: &str) {
    let mut other = PgConnection::connect(url).await.unwrap();
    let cut = sqlx::query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE pid <> pg_backend_pid() AND application_name = $1",
    );
    cut.bind(prefix).execute(&mut other).await.unwrap();
}

#[tokio::test]
async fn cut_connections_lose_nothing_and_double_nothing() {
    let Some((url, prefix)) = server() else { return };
    let store = Arc::new(open(&url, &prefix).await);
    let mut acknowledged = Vec::new();
    for n in 0..40 {
        let id = format!("m{n}");
        let writing = {
            let (store, id) = (Arc::clone(&store), id.clone());
            tokio::spawn(async move { store.append(&key(), &[named(&id)]).await })
        };
        cut(&url, &prefix).await;
        // Whatever became of it, a retry with the same id settles it.
        let first = writing.await.unwrap();
        if let Err(error) = &first {
            assert!(error.is_store(), "{error}");
        }
        let mut again = store.append(&key(), &[named(&id)]).await;
        for _ in 0..5 {
            if again.is_ok() {
                break;
            }
            again = store.append(&key(), &[named(&id)]).await;
        }
        let placed = again.unwrap().placed.remove(0);
        if let Ok(receipt) = first {
            assert!(placed.duplicate);
            assert_eq!(receipt.placed.first().unwrap().position, placed.position);
        }
        acknowledged.push((placed.position, id));
    }
    let stored = store.load(&key()).await.unwrap().unwrap();
    let there = stored.window.iter().map(|kept| {
        (kept.position, kept.message.id().map(ToString::to_string).unwrap_or_default())
    });
    assert_eq!(there.collect::<Vec<_>>(), acknowledged);
}

#[tokio::test]
async fn two_stores_agree_on_positions_and_on_one_winner() {
    let Some((url, prefix)) = server() else { return };
    let stores = [Arc::new(open(&url, &prefix).await), Arc::new(open(&url, &prefix).await)];
    let mut writing = Vec::new();
    for (at, store) in stores.iter().enumerate() {
        for n in 0..50 {
            let store = Arc::clone(store);
            writing.push(tokio::spawn(async move {
                let receipt = store.append(&key(), &[named(&format!("{at}-{n}"))]).await.unwrap();
                receipt.placed.first().unwrap().position
            }));
        }
    }
    let mut positions = Vec::new();
    for write in writing {
        positions.push(write.await.unwrap());
    }
    positions.sort_unstable();
    assert_eq!(positions, (0..100).collect::<Vec<u64>>());

    let revision = stores[0].load(&key()).await.unwrap().unwrap().state.revision;
    let commit = |cut| {
        let mut view = View::default();
        view.cut = cut;
        Commit::on(revision).with_view(view).with_usage(UsageEvent::default())
    };
    let key = key();
    let (one, other) =
        tokio::join!(stores[0].commit(&key, commit(10)), stores[1].commit(&key, commit(20)));
    let won = |result: &CommitResult| matches!(result, CommitResult::Committed(_));
    assert_ne!(won(&one.unwrap()), won(&other.unwrap()));
    let kept = stores[0].archive().unwrap().compactions(&key, None, 9).await.unwrap();
    assert_eq!(kept.len(), 1);
}

#[tokio::test]
async fn a_write_waits_for_another_transaction_and_reads_do_not() {
    let Some((url, prefix)) = server() else { return };
    let store = open(&url, &prefix).await;
    store.append(&key(), &[named("a")]).await.unwrap();
    let mut other = PgConnection::connect(&url).await.unwrap();
    let mut held = other.begin().await.unwrap();
    let lock = sqlx::AssertSqlSafe(format!("SELECT 1 FROM {prefix}sessions FOR UPDATE"));
    sqlx::query(lock).execute(&mut *held).await.unwrap();
    let store = Arc::new(store);
    let waiting = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.append(&key(), &[named("b")]).await })
    };
    // Reads do not wait for it.
    assert_eq!(store.load(&key()).await.unwrap().unwrap().window.len(), 1);
    held.rollback().await.unwrap();
    waiting.await.unwrap().unwrap();
    assert_eq!(store.load(&key()).await.unwrap().unwrap().window.len(), 2);
}

#[tokio::test]
async fn a_manager_goes_on_after_its_connections_were_cut() {
    let Some((url, prefix)) = server() else { return };
    let sessions = SessionManager::builder()
        .store(open(&url, &prefix).await)
        .summarizer(ExtractiveSummarizer::default())
        .build()
        .unwrap();
    for n in 0..30 {
        let text = format!("Order {n} was shipped on Monday.");
        sessions.add_message("chat", Message::user(text)).await.unwrap();
    }
    cut(&url, &prefix).await;
    let report = sessions.compact("chat", session_compaction::Compact::now()).await;
    assert!(report.applied().is_some(), "{report}");
    assert_eq!(sessions.history("chat").await.unwrap().len(), 4);
}

#[tokio::test]
#[ignore = "it is started by the kill tests"]
async fn child() {
    let Some(place) = kill::place() else { return };
    let (url, prefix) = place.rsplit_once(' ').unwrap();
    kill::live(&open(url, prefix).await).await;
}

async fn kills(count: u64) {
    let Some((url, _)) = server() else { return };
    let fresh = || {
        let (url, prefix) = server().unwrap();
        format!("{url} {prefix}")
    };
    let open = async |place: &str| {
        let (url, prefix) = place.rsplit_once(' ').unwrap();
        let store: Arc<dyn SessionStore> = Arc::new(open(url, prefix).await);
        store
    };
    let account = kill::kills(count, fresh, open, |_, _| {}).await;
    eprintln!("{account:?} on {}", url.split('@').next_back().unwrap_or_default());
    assert_eq!(account.kills, count);
}

#[tokio::test]
async fn what_was_acknowledged_survives_killed_clients() {
    kills(200).await;
}

#[tokio::test]
#[ignore = "takes minutes: cargo test --features postgres --test store_postgres -- --ignored thousand"]
async fn what_was_acknowledged_survives_a_thousand_killed_clients() {
    kills(1_000).await;
}
