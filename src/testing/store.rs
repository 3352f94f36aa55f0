//! A store that fails where it is told to.

use std::{
    future::Future,
    ops::Range,
    sync::{Arc, Mutex},
};

use async_trait::async_trait;

use super::{
    fault::{Call, Fault, Faults},
    lock,
};
use crate::{
    error::{Error, Result},
    session::{Revision, SessionKey},
    store::{
        Archive, Commit, CommitResult, Leases, ListPage, NewMessage, Receipt, Removed, Rewrite,
        RewriteResult, SessionExport, SessionStore, Since, StoredCompaction, StoredMessage,
        StoredSession, UsageLog,
    },
};

/// A store around another one that fails where it is told to. Clones are the
/// same one: give one to the manager, and keep one.
///
/// The errors are those of a store ([`Error::is_store`]).
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{
///     MemoryStore, Message, SessionManager, testing::{Call, Fault, FaultyStore},
/// };
///
/// let store = FaultyStore::around(MemoryStore::new());
/// let sessions = SessionManager::builder().store(store.clone()).build()?;
/// store.plan(Fault::on(Call::Append).after_the_work());
///
/// let message = Message::user("hello").with_id("update-981");
/// assert!(sessions.add_message("chat", message.clone()).await.unwrap_err().is_store());
/// // It was the answer that was lost: trying again adds nothing.
/// assert!(sessions.add_message("chat", message).await?.duplicate);
/// assert_eq!(store.calls(Call::Append), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FaultyStore {
    inner: Arc<dyn SessionStore>,
    faults: Arc<Mutex<Faults>>,
}

impl FaultyStore {
    /// Creates a store that fails nowhere yet.
    pub fn around(store: impl SessionStore) -> Self {
        Self::around_shared(Arc::new(store))
    }

    /// Creates one around a store that others hold as well.
    #[must_use]
    pub fn around_shared(inner: Arc<dyn SessionStore>) -> Self {
        Self { inner, faults: Arc::default() }
    }

    /// Adds a fault to those that are to come.
    pub fn plan(&self, fault: Fault) {
        lock(&self.faults).planned.push(fault);
    }

    /// Takes back all faults that are to come.
    pub fn heal(&self) {
        lock(&self.faults).planned.clear();
    }

    /// Returns how many calls of a kind came, those that failed included.
    #[must_use]
    pub fn calls(&self, call: Call) -> u64 {
        lock(&self.faults).calls.get(&call).copied().unwrap_or_default()
    }

    async fn run<T: Send>(
        &self,
        call: Call,
        work: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let fault = lock(&self.faults).next(call);
        let failed = |when| Error::store("faulty", action(call), when);
        match fault {
            None => work.await,
            Some(fault) if fault.after => {
                work.await?;
                Err(failed("the answer was lost, as a test has planned"))
            }
            Some(_) => Err(failed("it failed, as a test has planned")),
        }
    }
}

const fn action(call: Call) -> &'static str {
    match call {
        Call::Append => "append",
        Call::Commit => "commit",
        Call::List => "list sessions",
        Call::Load => "load",
        Call::Remove => "remove",
        Call::Rewrite => "rewrite",
        Call::Transcript => "read a transcript",
    }
}

#[async_trait]
impl SessionStore for FaultyStore {
    async fn append(&self, key: &SessionKey, messages: &[NewMessage]) -> Result<Receipt> {
        self.run(Call::Append, self.inner.append(key, messages)).await
    }

    async fn load(&self, key: &SessionKey) -> Result<Option<StoredSession>> {
        self.run(Call::Load, self.inner.load(key)).await
    }

    async fn commit(&self, key: &SessionKey, commit: Commit) -> Result<CommitResult> {
        self.run(Call::Commit, self.inner.commit(key, commit)).await
    }

    async fn rewrite(&self, key: &SessionKey, rewrite: Rewrite) -> Result<RewriteResult> {
        self.run(Call::Rewrite, self.inner.rewrite(key, rewrite)).await
    }

    async fn remove(&self, key: &SessionKey) -> Result<Removed> {
        self.run(Call::Remove, self.inner.remove(key)).await
    }

    async fn list(&self, page: ListPage) -> Result<Vec<SessionKey>> {
        self.run(Call::List, self.inner.list(page)).await
    }

    async fn load_since(&self, key: &SessionKey, revision: Revision, next: u64) -> Result<Since> {
        self.run(Call::Load, self.inner.load_since(key, revision, next)).await
    }

    async fn purge(&self) -> Result<u64> {
        self.inner.purge().await
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn repaired_lines(&self) -> u64 {
        self.inner.repaired_lines()
    }

    fn leases(&self) -> Option<&dyn Leases> {
        self.inner.leases()
    }

    fn usage(&self) -> Option<&dyn UsageLog> {
        self.inner.usage()
    }

    fn archive(&self) -> Option<&dyn Archive> {
        self.inner.archive().is_some().then_some(self)
    }
}

#[async_trait]
impl Archive for FaultyStore {
    async fn transcript(
        &self,
        key: &SessionKey,
        positions: Range<u64>,
    ) -> Result<Vec<StoredMessage>> {
        let read = async {
            match self.inner.archive() {
                Some(archive) => archive.transcript(key, positions).await,
                None => Ok(Vec::new()),
            }
        };
        self.run(Call::Transcript, read).await
    }

    async fn compactions(
        &self,
        key: &SessionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StoredCompaction>> {
        let read = async {
            match self.inner.archive() {
                Some(archive) => archive.compactions(key, before, limit).await,
                None => Ok(Vec::new()),
            }
        };
        self.run(Call::Transcript, read).await
    }

    async fn import(&self, key: &SessionKey, session: &SessionExport) -> Result<Receipt> {
        let write = async {
            match self.inner.archive() {
                Some(archive) => archive.import(key, session).await,
                None => Err(Error::store("faulty", "import", "the store keeps no transcripts")),
            }
        };
        self.run(Call::Append, write).await
    }
}
