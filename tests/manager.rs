//! The manager beside its store: what touches what, and what survives a
//! future that is dropped.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod common;

use std::{future::poll_fn, sync::Arc, task::Poll};

use async_trait::async_trait;
use common::stub::{Stub, message, messages, texts, texts_of};
use session_compaction::{
    Archive, Commit, CommitResult, Compact, ListPage, MemoryStore, NewMessage, Outcome, Receipt,
    Removed, Result, Rewrite, RewriteResult, SessionKey, SessionManager, SessionStore,
    StoredSession, SummarizationConfig,
};
use tokio::sync::Semaphore;

/// Fails the test when it is touched.
#[derive(Debug)]
struct Untouchable;

#[async_trait]
impl SessionStore for Untouchable {
    async fn append(&self, _: &SessionKey, _: &[NewMessage]) -> Result<Receipt> {
        panic!("append")
    }
    async fn load(&self, _: &SessionKey) -> Result<Option<StoredSession>> {
        panic!("load")
    }
    async fn commit(&self, _: &SessionKey, _: Commit) -> Result<CommitResult> {
        panic!("commit")
    }
    async fn rewrite(&self, _: &SessionKey, _: Rewrite) -> Result<RewriteResult> {
        panic!("rewrite")
    }
    async fn remove(&self, _: &SessionKey) -> Result<Removed> {
        panic!("remove")
    }
    async fn list(&self, _: ListPage) -> Result<Vec<SessionKey>> {
        panic!("list")
    }
}

#[tokio::test]
async fn disabled_returns_at_once() {
    let sessions = SessionManager::builder()
        .store(Untouchable)
        .summarizer(Stub::new(|_| panic!("summarize")))
        .config(SummarizationConfig::default().with_enabled(false))
        .build()
        .unwrap();
    assert!(matches!(sessions.maybe_summarize("chat").await, Outcome::Disabled));
}

/// Holds each append and commit after the store has taken it, until released.
#[derive(Debug)]
struct Slow {
    store: MemoryStore,
    taken: Semaphore,
    released: Arc<Semaphore>,
}

#[async_trait]
impl SessionStore for Slow {
    async fn append(&self, key: &SessionKey, messages: &[NewMessage]) -> Result<Receipt> {
        let receipt = self.store.append(key, messages).await?;
        self.taken.add_permits(1);
        self.released.acquire().await.unwrap().forget();
        Ok(receipt)
    }
    async fn load(&self, key: &SessionKey) -> Result<Option<StoredSession>> {
        self.store.load(key).await
    }
    async fn commit(&self, key: &SessionKey, commit: Commit) -> Result<CommitResult> {
        let result = self.store.commit(key, commit).await?;
        self.taken.add_permits(1);
        self.released.acquire().await.unwrap().forget();
        Ok(result)
    }
    async fn rewrite(&self, key: &SessionKey, rewrite: Rewrite) -> Result<RewriteResult> {
        self.store.rewrite(key, rewrite).await
    }
    async fn remove(&self, key: &SessionKey) -> Result<Removed> {
        self.store.remove(key).await
    }
    async fn list(&self, page: ListPage) -> Result<Vec<SessionKey>> {
        self.store.list(page).await
    }
    fn archive(&self) -> Option<&dyn Archive> {
        self.store.archive()
    }
}

fn slow() -> (Arc<Slow>, SessionManager) {
    let store = Arc::new(Slow {
        store: MemoryStore::keep_transcripts(),
        taken: Semaphore::new(0),
        released: Arc::new(Semaphore::new(0)),
    });
    let shared: Arc<dyn SessionStore> = Arc::clone(&store) as _;
    (store, SessionManager::builder().shared_store(shared).build().unwrap())
}

/// Polls a future once and drops it.
async fn poll_and_drop<F: Future>(future: F) {
    let mut future = Box::pin(future);
    let pending = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await;
    assert!(pending, "there was nothing to drop");
}

#[tokio::test]
async fn append_future_dropped_is_consistent() {
    let (store, sessions) = slow();
    // Memory knows the session before.
    store.released.add_permits(1);
    sessions.add_message("chat", message(0)).await.unwrap();
    assert_eq!(sessions.history("chat").await.unwrap().len(), 1);

    poll_and_drop(sessions.add_message("chat", message(1))).await;
    store.released.add_permits(2);
    sessions.add_message("chat", message(2)).await.unwrap();

    let kept = texts(&sessions, "chat").await;
    assert_eq!(kept, texts_of(&messages(0..3)), "the store has it, so memory has it");
    let transcript = sessions.transcript("chat", 0..10).await.unwrap();
    assert_eq!(transcript.len(), 3);
    assert_eq!(sessions.history("chat").await.unwrap().mark().len, 3);
}

#[tokio::test]
async fn commit_future_dropped_is_consistent() {
    let (store, sessions) = slow();
    store.released.add_permits(1);
    sessions.add_messages("chat", messages(0..20)).await.unwrap();
    assert_eq!(sessions.history("chat").await.unwrap().len(), 20);

    poll_and_drop(sessions.force_compression("chat")).await;
    store.released.add_permits(1);
    while sessions.history("chat").await.unwrap().dropped() == 0 {
        tokio::task::yield_now().await;
    }
    let loaded = store.load(&SessionKey::new("chat").unwrap()).await.unwrap().unwrap();
    let history = sessions.history("chat").await.unwrap();
    assert_eq!(history.mark().revision, loaded.state.revision);
    assert_eq!((history.cut(), history.len()), (loaded.state.view.cut, loaded.window.len()));
}

#[tokio::test]
async fn a_compaction_cancelled_in_mid_commit_is_applied_and_says_so() {
    let (store, _) = slow();
    let shared: Arc<dyn SessionStore> = Arc::clone(&store) as _;
    let sessions = SessionManager::builder()
        .shared_store(shared)
        .summarizer(Stub::says("All parts do well."))
        .build()
        .unwrap();
    store.released.add_permits(1);
    sessions.add_messages("chat", messages(0..24)).await.unwrap();
    store.taken.acquire().await.unwrap().forget();
    let Outcome::Started(handle) = sessions.maybe_summarize("chat").await else { panic!() };
    store.taken.acquire().await.unwrap().forget();
    handle.cancel();
    store.released.add_permits(1);
    assert!(handle.await.applied().is_some());
    assert_eq!(sessions.history("chat").await.unwrap().len(), 4);
}

#[tokio::test]
async fn a_caller_reads_what_it_wrote_however_answers_are_reordered() {
    let (store, sessions) = slow();
    store.released.add_permits(1);
    sessions.add_message("chat", message(0)).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 1..40 {
        let sessions = sessions.clone();
        tasks.spawn(async move {
            let added = sessions.add_message("chat", message(n)).await.unwrap();
            let history = sessions.history("chat").await.unwrap();
            let position = usize::try_from(added.position).unwrap();
            assert_eq!(history.get(position).unwrap().text(), message(n).text());
        });
    }
    for _ in 1..40 {
        store.taken.acquire().await.unwrap().forget();
    }
    store.released.add_permits(39);
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(sessions.history("chat").await.unwrap().len(), 40);
}

#[tokio::test]
async fn another_manager_on_the_same_store_is_noticed() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::keep_transcripts());
    let manager = || SessionManager::builder().shared_store(Arc::clone(&store)).build().unwrap();
    let (one, two) = (manager(), manager());
    one.add_message("chat", message(0)).await.unwrap();
    two.add_message("chat", message(1)).await.unwrap();
    one.add_message("chat", message(2)).await.unwrap();
    assert_eq!(texts(&one, "chat").await, texts_of(&messages(0..3)));
    // A rewrite by the other is noticed as well.
    two.add_message("chat", message(3)).await.unwrap();
    two.truncate_history("chat", 1).await.unwrap();
    one.add_message("chat", message(4)).await.unwrap();
    assert_eq!(texts(&one, "chat").await, texts_of(&messages(3..5)));
}

#[tokio::test]
async fn a_session_is_not_torn_by_writers_and_compactions() {
    let sessions = SessionManager::builder()
        .store(MemoryStore::keep_transcripts())
        .summarizer(Stub::new(|request| Ok(format!("{} messages", request.messages.len()).into())))
        .config(SummarizationConfig::default().with_message_threshold(8).with_keep_last_messages(2))
        .build()
        .unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..6 {
        let sessions = sessions.clone();
        writers.spawn(async move {
            for n in 0..50 {
                sessions.add_message("chat", message(writer * 50 + n)).await.unwrap();
                if n % 3 == 0 {
                    drop(sessions.maybe_summarize("chat").await);
                }
                if n % 20 == 19 {
                    let _ = sessions.force_compression("chat").await.unwrap();
                }
                tokio::task::yield_now().await;
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
    drop(sessions.compact("chat", Compact::if_due()).await);
    let transcript = sessions.transcript("chat", 0..1_000).await.unwrap();
    assert!(transcript.iter().map(|kept| kept.position).eq(0..300));
    let history = sessions.history("chat").await.unwrap();
    let window: Vec<_> = history.iter().skip(history.carried()).map(|m| m.id().cloned()).collect();
    let cut = usize::try_from(history.cut()).unwrap();
    let tail: Vec<_> = transcript[cut..].iter().map(|kept| kept.message.id().cloned()).collect();
    assert_eq!(window, tail, "from the cut on, each message once and in order");
}

#[tokio::test]
async fn unknown_keys_cost_no_memory_and_no_error() {
    let sessions = SessionManager::builder().build().unwrap();
    assert!(sessions.history("nobody").await.unwrap().is_empty());
    assert_eq!(sessions.summary("nobody").await.unwrap(), None);
    sessions.truncate_history("nobody", 3).await.unwrap();
    sessions.clear("nobody").await.unwrap();
    assert!(sessions.list_sessions(ListPage::default()).await.unwrap().is_empty());
    let error = sessions.transcript("nobody", 0..1).await.unwrap_err();
    assert!(error.is_unsupported(), "{error}");
}

#[test]
fn build_outside_a_runtime_says_so() {
    let error = SessionManager::builder().build().unwrap_err();
    assert!(error.is_no_runtime());
    assert!(error.to_string().contains("runtime(handle)"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert!(SessionManager::builder().runtime(runtime.handle().clone()).build().is_ok());
}
