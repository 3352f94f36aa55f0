//! Statistics: their shape, that they are the sums of what was reported, and
//! that no text of a conversation is in them.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use common::stub::{Stub, messages};
use serde_json::Value;
use session_compaction::{
    Compact, Compaction, Counter, MemoryStore, Message, SessionManager, SessionOptions,
    SessionStore, TimelinePointKind, TokenUsage, UsageEvent,
};

const MARKER: &str = "the heron nests behind the mill";

fn manager(store: Arc<dyn SessionStore>) -> SessionManager {
    SessionManager::builder()
        .summarizer(Stub::new(|_| Ok(MARKER.into())))
        .shared_store(store)
        .clock(|| UNIX_EPOCH + Duration::from_hours(20_000 * 24))
        .build()
        .unwrap()
}

async fn compact(sessions: &SessionManager, key: &str) -> Compaction {
    sessions.add_messages(key, messages(0..30)).await.unwrap();
    sessions.add_message(key, Message::user(MARKER)).await.unwrap();
    let report = sessions.compact(key, Compact::if_due()).await;
    report.applied().unwrap().clone()
}

/// Three compactions in two sessions, and a call of the host's.
async fn fill(sessions: &SessionManager) -> Vec<Compaction> {
    let done = vec![
        compact(sessions, "one").await,
        compact(sessions, "one").await,
        compact(sessions, "two").await,
    ];
    let usage = TokenUsage::new(1_200, 80).with_cached(1_000);
    let call = UsageEvent::query("gpt-5", usage, Duration::from_secs(4)).with_tools(3, 1);
    sessions.record_usage("two", call).await.unwrap();
    done
}

fn parse(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

fn sum(done: &[Compaction], of: fn(&Compaction) -> u64) -> u64 {
    done.iter().map(of).sum()
}

#[tokio::test]
async fn statistics_are_the_sums_of_what_was_reported() {
    let sessions = manager(Arc::new(MemoryStore::new()));
    let done = fill(&sessions).await;
    let stats = parse(&sessions.stats().await.unwrap().to_json());

    let summary = &stats["summary"];
    assert_eq!(summary["total_sessions"], 2);
    assert_eq!(summary["total_queries"], 1);
    assert_eq!(summary["total_tool_calls"], 3);
    assert_eq!(summary["total_tool_errors"], 1);
    assert_eq!(summary["total_input_tokens"], 1_200);
    assert_eq!(summary["total_output_tokens"], 80);
    assert_eq!(summary["total_cached_tokens"], 1_000);
    assert_eq!(summary["total_cost_usd"], 0.0);
    assert_eq!(summary["total_summarizations"], 3);
    assert_eq!(summary["total_chars_compacted"], sum(&done, |done| done.chars_removed));
    assert_eq!(summary["total_messages_compacted"], sum(&done, |done| done.messages_removed));
    let saved = sum(&done, |done| done.tokens_before - done.tokens_after);
    assert_eq!(summary["total_tokens_saved"], saved);
    assert_eq!(stats["outcomes"]["applied"], 3);
    assert_eq!(stats["activity"].as_array().unwrap().len(), 1);
    assert_eq!(stats["activity"][0]["date"], "2024-10-04");
    assert_eq!(stats["activity"][0]["summarizations"], 3);
    let recent = stats["recent"].as_array().unwrap();
    assert_eq!((recent.len(), &recent[0]["kind"]), (4, &"query".into()));
    assert_eq!((&recent[1]["session"], &recent[1]["trigger"]), (&"two".into(), &"messages".into()));
    assert_eq!(stats["largest"][0]["key"], "one");
    assert_eq!(stats["slowest"][0]["key"], "two");
    assert!(stats["slowest"][0]["latency_ms"].as_u64().unwrap() >= 4_000);
}

#[tokio::test]
async fn sessions_come_in_pages_and_removed_ones_stay_in_the_sums() {
    let sessions = manager(Arc::new(MemoryStore::new()));
    fill(&sessions).await;
    let page = sessions.stats_sessions(None, 1).await.unwrap();
    assert_eq!((page.len(), &*page[0].session), (1, "one"));
    assert_eq!(page[0].totals.of(Counter::Summarizations), 2);
    let page = sessions.stats_sessions(Some("one"), 10).await.unwrap();
    assert_eq!((page.len(), &*page[0].session), (1, "two"));
    assert!(sessions.stats_sessions(Some(""), 10).await.unwrap_err().is_key());

    sessions.remove("one").await.unwrap();
    let stats = sessions.stats().await.unwrap();
    assert_eq!((stats.sessions, stats.totals.of(Counter::Summarizations)), (1, 3));
    assert_eq!(stats.largest.len(), 1);
}

#[tokio::test]
async fn a_timeline_is_a_saw_tooth() {
    let sessions = manager(Arc::new(MemoryStore::new()));
    sessions.configure("two", SessionOptions::new().context_window(10_000)).await.unwrap();
    let done = fill(&sessions).await.pop().unwrap();
    let timeline = sessions.session_timeline("two").await.unwrap();
    let points: Vec<_> = timeline.points.iter().map(|point| (point.kind, point.tokens)).collect();
    let expected = [
        (TimelinePointKind::Before, done.tokens_before),
        (TimelinePointKind::After, done.tokens_after),
        (TimelinePointKind::Reported, 1_200),
    ];
    assert_eq!(points, expected);

    let json = parse(&timeline.to_json());
    assert_eq!((&json["key"], &json["context_window"]), (&"two".into(), &10_000.into()));
    let trigger = json["trigger"].as_u64().unwrap();
    assert!(trigger > 0 && trigger < 10_000);
    assert_eq!(json["now"]["messages"], done.messages_kept);
    assert_eq!(json["points"][1]["kind"], "after");
    assert_eq!(json["compactions"][0]["messages_removed"], done.messages_removed);
    assert_eq!(json["totals"]["queries"], 1);

    let unknown = sessions.session_timeline("never seen").await.unwrap();
    assert!(unknown.points.is_empty() && unknown.compactions.is_empty());
}

#[tokio::test]
async fn no_text_of_a_conversation_is_in_them() {
    let sessions = manager(Arc::new(MemoryStore::new()));
    fill(&sessions).await;
    let page = sessions.stats_sessions(None, 10).await.unwrap();
    let mut all = vec![
        sessions.stats().await.unwrap().to_json(),
        sessions.session_timeline("one").await.unwrap().to_json(),
    ];
    all.extend(page.iter().map(session_compaction::SessionTotals::to_json));
    assert_eq!(sessions.summary("one").await.unwrap().as_deref(), Some(MARKER));
    for json in all {
        assert!(!json.contains("heron") && !json.contains("machine"), "{json}");
        parse(&json);
    }
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn another_process_on_the_same_file_sees_the_same() {
    use session_compaction::SqliteStore;

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sessions.db");
    let sessions = manager(Arc::new(SqliteStore::open(&file).await.unwrap()));
    fill(&sessions).await;
    let before = sessions.stats().await.unwrap();
    assert_eq!(before.totals.of(Counter::Summarizations), 3);
    drop(sessions);
    let sessions = manager(Arc::new(SqliteStore::open(&file).await.unwrap()));
    assert_eq!(sessions.stats().await.unwrap(), before);
}
