//! What checks do over and over: writing to a session and reading it.

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use super::broken::{Done, Stop, broken, same};
use crate::{
    message::{Message, MessageId},
    session::{Revision, SessionKey, Size, StoredSummary, View},
    store::{
        Archive, Commit, CommitResult, Leases, ListPage, NewMessage, Receipt, Rewrite,
        RewriteResult, SessionStore, StoredMessage, StoredSession, UsageLog,
    },
    tokens::Tokens,
    usage::UsageEvent,
};

/// A store, and one of its sessions.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    pub(super) store: Arc<dyn SessionStore>,
    pub(super) key: SessionKey,
}

impl Probe {
    pub(super) fn new(store: Arc<dyn SessionStore>) -> Result<Self, Stop> {
        Ok(Self { store, key: SessionKey::new("s")? })
    }

    /// Another session of the same store.
    pub(super) fn at(&self, other: &str) -> Result<Self, Stop> {
        Ok(Self { store: Arc::clone(&self.store), key: SessionKey::new(other)? })
    }

    pub(super) fn archive(&self) -> Result<&dyn Archive, Stop> {
        self.store.archive().ok_or(Stop::NotApplicable("archive"))
    }

    pub(super) fn leases(&self) -> Result<&dyn Leases, Stop> {
        self.store.leases().ok_or(Stop::NotApplicable("leases"))
    }

    pub(super) fn usage(&self) -> Result<&dyn UsageLog, Stop> {
        self.store.usage().ok_or(Stop::NotApplicable("usage log"))
    }

    /// Adds messages with these texts.
    pub(super) async fn add(&self, texts: &[&str]) -> Result<Receipt, Stop> {
        self.append(&texts.iter().map(|text| fresh(text)).collect::<Vec<_>>()).await
    }

    pub(super) async fn append(&self, messages: &[NewMessage]) -> Result<Receipt, Stop> {
        Ok(self.store.append(&self.key, messages).await?)
    }

    pub(super) async fn load(&self) -> Result<StoredSession, Stop> {
        let stored = self.store.load(&self.key).await?;
        stored.ok_or_else(|| broken("what was acknowledged is there", "a session", &()))
    }

    pub(super) async fn commit(&self, commit: Commit) -> Result<Revision, Stop> {
        match self.store.commit(&self.key, commit).await? {
            CommitResult::Committed(revision) => Ok(revision),
            stale @ CommitResult::Stale => {
                Err(broken("a commit on the revision that is there is stored", "success", &stale))
            }
        }
    }

    /// Checks that a commit is refused.
    pub(super) async fn stale(&self, what: &str, commit: Commit) -> Done {
        same(what, self.store.commit(&self.key, commit).await?, CommitResult::Stale)
    }

    pub(super) async fn rewrite(&self, rewrite: Rewrite) -> Result<Receipt, Stop> {
        match self.store.rewrite(&self.key, rewrite).await? {
            RewriteResult::Rewritten(receipt) => Ok(receipt),
            stale @ RewriteResult::Stale => {
                Err(broken("a rewrite of what is there is stored", "success", &stale))
            }
        }
    }

    /// Compacts up to a position, and records it.
    pub(super) async fn compact(&self, cut: u64, event: UsageEvent) -> Result<Revision, Stop> {
        let revision = self.load().await?.state.revision;
        self.commit(Commit::on(revision).with_view(summarized(cut)).with_usage(event)).await
    }

    pub(super) async fn is_there(&self) -> Result<bool, Stop> {
        Ok(self.store.load(&self.key).await?.is_some())
    }

    /// Checks what is sent: positions and texts.
    pub(super) async fn sends(&self, what: &str, expected: &[(u64, &str)]) -> Done {
        same(what, texts(&self.load().await?), at(expected))
    }

    /// Lists sessions as texts.
    pub(super) async fn list(&self, page: ListPage) -> Result<Vec<String>, Stop> {
        Ok(self.store.list(page).await?.iter().map(ToString::to_string).collect())
    }

    /// Creates sessions with these keys, and returns the keys in the order of
    /// their bytes.
    pub(super) async fn create(&self, keys: &[&str]) -> Result<Vec<String>, Stop> {
        for key in keys {
            self.at(key)?.add(&[key]).await?;
        }
        let mut sorted: Vec<_> = keys.iter().map(ToString::to_string).collect();
        sorted.sort_unstable();
        Ok(sorted)
    }
}

pub(super) const HOUR: Duration = Duration::from_hours(1);
/// So short that it can be waited for.
pub(super) const SHORT: Duration = Duration::from_millis(50);
/// How long a check waits for what should come soon.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for what should come soon, and gives up where it does not.
pub(super) struct Patience(Instant);

impl Patience {
    pub(super) fn new() -> Self {
        Self(Instant::now())
    }

    pub(super) async fn wait(&self, what: &str) -> Done {
        if self.0.elapsed() > PATIENCE {
            return Err(broken(what, "it within seconds", &self.0.elapsed()));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(())
    }
}

pub(super) type Task<T> = Pin<Box<dyn Future<Output = Result<T, Stop>> + Send>>;

/// Runs futures at once and returns their results in order.
pub(super) async fn all<T: Send + 'static>(
    tasks: impl IntoIterator<Item = Task<T>>,
) -> Result<Vec<T>, Stop> {
    let tasks: Vec<_> = tasks.into_iter().map(tokio::spawn).collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.map_err(|error| broken("a call returns", "an answer", &error))??);
    }
    Ok(results)
}

/// A message whose id was made for it.
pub(super) fn fresh(text: &str) -> NewMessage {
    sized(Message::user(text).with_id(MessageId::generate()), true)
}

/// A message whose id the host chose.
pub(super) fn named(id: &str, text: &str) -> NewMessage {
    sized(Message::user(text).with_id(id), false)
}

/// A message that has an id.
pub(super) fn given(message: Message) -> NewMessage {
    sized(message, false)
}

/// Of 100 characters and 10 tokens, whatever it says.
fn sized(message: Message, fresh_id: bool) -> NewMessage {
    NewMessage::new(Arc::new(message), Size::new(100, Tokens::from_tokens(10)), fresh_id)
}

pub(super) fn view(cut: u64) -> View {
    View { cut, ..View::default() }
}

/// A view with a summary that names its cut.
pub(super) fn summarized(cut: u64) -> View {
    View { cut, summary: Some(StoredSummary::new(format!("up to {cut}"))), ..View::default() }
}

pub(super) fn texts(session: &StoredSession) -> Vec<(u64, String)> {
    let kept = session.carried.iter().chain(&session.window);
    kept.map(|kept| (kept.position, kept.message.text())).collect()
}

pub(super) fn at(expected: &[(u64, &str)]) -> Vec<(u64, String)> {
    expected.iter().map(|(position, text)| (*position, (*text).to_owned())).collect()
}

pub(super) fn positions(messages: &[StoredMessage]) -> Vec<u64> {
    messages.iter().map(|kept| kept.position).collect()
}
