//! Sessions in files of JSON lines.

mod checksum;
mod folder;
mod group;
mod import;
mod leases;
mod line;
mod log;
mod names;
mod read;
mod reader;
mod record;
mod slot;
mod state;
#[cfg(test)]
mod tests;
mod usage;
mod writer;

use std::{
    collections::BTreeSet,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use dashmap::DashMap;
use tokio::sync::oneshot;

use self::{
    folder::Folder,
    group::{Job, Reply},
    names::{Named, file_name, key_of},
    slot::Slot,
};
use super::{
    Archive, Commit, CommitResult, Leases, ListPage, NewMessage, Receipt, Removed, Rewrite,
    RewriteResult, SessionExport, SessionStore, Since, StoredCompaction, StoredMessage,
    StoredSession, UsageLog,
};
use crate::{
    error::{Error, Result},
    session::{Revision, SessionKey},
};

/// Keeps sessions in a folder, one append-only file each.
///
/// # Durability
///
/// What a call acknowledged survives a crash of the process and a loss of
/// power: it was written and synced (`fdatasync`; the folder too where a file
/// was created or removed). Writers that come while a sync runs share the next
/// one. After a failed write or sync the file is cut back to what was
/// acknowledged, at the latest by the next write.
///
/// # Files
///
/// A file is named after its key: lower-case letters, digits, `-` and `_` as
/// they are, any other byte as `%` and two hex digits, long names shortened to
/// a hash; so no two keys share a file on any file system, and none lies
/// outside the folder. Files are readable for their owner alone (on Unix). A
/// link or a pipe in place of a file is refused. One store at a time works in
/// a folder; the lock is free again when the store is dropped or its process
/// ends, however it ends.
///
/// # Format
///
/// Each line is one JSON object. `crc` is the CRC-32 of all that follows its
/// comma up to the line's end, `rev` the revision after the record, `op` what
/// it does:
///
/// | `op` | other members |
/// |---|---|
/// | `session` | `key`, `version` (1): the file's header |
/// | `append` | `at`: position of the first message, `n`: how many, `messages`: each as the text that it was given in (as a string, where that has line breaks) |
/// | `commit` | what changes: `view`, `options`; `pause`, which ends where there is none; `usage` |
/// | `rewrite` | `at`, `n`, `messages`, `view`: a new history |
///
/// # Damage
///
/// A line that is torn or damaged is passed over, counted ([`Self::repaired`])
/// and logged; all others are read. Since records carry positions, a lost
/// message leaves a gap and moves no other; only what was lost at the very end
/// leaves none. Where a change of state is lost, the state before it holds;
/// its messages are all there. A torn end is cut off by the next write.
///
/// # Retention
///
/// The transcript is kept until the session is removed.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{JsonlStore, Message, SessionManager};
///
/// let folder = std::env::temp_dir().join(format!("jsonl-example-{}", std::process::id()));
/// let sessions = SessionManager::builder().store(JsonlStore::open(&folder)?).build()?;
/// sessions.add_message("chat", Message::user("hello")).await?;
/// drop(sessions);
///
/// let sessions = SessionManager::builder().store(JsonlStore::open(&folder)?).build()?;
/// assert_eq!(sessions.history("chat").await?.len(), 1);
/// # std::fs::remove_dir_all(folder).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct JsonlStore {
    folder: Arc<Folder>,
    slots: Arc<Slots>,
}

type Slots = DashMap<SessionKey, Arc<Slot>>;

/// What a [`JsonlStore`] has repaired since it was opened.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::JsonlStore;
///
/// let folder = std::env::temp_dir().join(format!("jsonl-repaired-{}", std::process::id()));
/// let store = JsonlStore::open(&folder)?;
/// assert_eq!(store.repaired().lines, 0);
/// # drop(store);
/// # std::fs::remove_dir_all(folder).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Repaired {
    /// Lines that were torn or damaged. What of them could be read was read.
    pub lines: u64,
}

/// How many sessions are kept in mind; the file of any other one is read again
/// on its next use.
const MAX_SLOTS: usize = 4_096;

impl JsonlStore {
    /// Opens a folder, which is created where there is none. Files are read
    /// when they are first used.
    ///
    /// # Errors
    ///
    /// [`Error::is_locked`] where another store works in the folder,
    /// [`Error::is_store`] where it cannot be created or opened.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self> {
        Self::with_hook(folder.as_ref(), None)
    }

    fn with_hook(folder: &Path, hook: Option<Box<folder::Hook>>) -> Result<Self> {
        Ok(Self { folder: Arc::new(Folder::open(folder, hook)?), slots: Arc::default() })
    }

    /// Returns what was repaired in the files that were read so far.
    #[must_use]
    pub fn repaired(&self) -> Repaired {
        Repaired { lines: self.folder.repaired() }
    }

    /// Returns the file that keeps a session, whether it exists or not: for
    /// backups and for people. Only this store may write to it.
    #[must_use]
    pub fn file(&self, key: &SessionKey) -> PathBuf {
        self.folder.path().join(file_name(key))
    }

    /// Has the session's writer do a job.
    async fn write<T>(
        &self,
        key: &SessionKey,
        job: impl FnOnce(Reply<T>) -> Job + Send,
    ) -> Result<T> {
        let result = slot(&self.slots, key).submit(Arc::clone(&self.folder), job).await;
        release(&self.slots, key);
        result
    }

    /// Runs blocking work on a session.
    async fn read<T: Send + 'static>(
        &self,
        key: &SessionKey,
        read: impl FnOnce(&Slot, &Folder) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let slot = slot(&self.slots, key);
        let result = blocking(&self.folder, move |folder| read(&slot, folder)).await;
        release(&self.slots, key);
        result
    }
}

#[async_trait]
impl SessionStore for JsonlStore {
    async fn append(&self, key: &SessionKey, messages: &[NewMessage]) -> Result<Receipt> {
        self.write(key, |reply| Job::Append(messages.to_vec(), reply)).await
    }

    async fn load(&self, key: &SessionKey) -> Result<Option<StoredSession>> {
        self.read(key, Slot::load).await
    }

    async fn commit(&self, key: &SessionKey, commit: Commit) -> Result<CommitResult> {
        self.write(key, |reply| Job::Commit(Box::new(commit), reply)).await
    }

    async fn rewrite(&self, key: &SessionKey, rewrite: Rewrite) -> Result<RewriteResult> {
        self.write(key, |reply| Job::Rewrite(rewrite, reply)).await
    }

    async fn remove(&self, key: &SessionKey) -> Result<Removed> {
        self.write(key, Job::Remove).await
    }

    async fn list(&self, page: ListPage) -> Result<Vec<SessionKey>> {
        let limit = page.limit;
        let keys = blocking(&self.folder, move |folder| {
            let mut keys = keys(folder)?;
            keys.retain(|key| page.has(key));
            Ok(keys)
        });
        let mut listed = Vec::new();
        // A file is a session only where something was acknowledged in it.
        for key in keys.await? {
            if listed.len() >= limit {
                break;
            }
            let known = self.slots.get(&key).and_then(|slot| slot.exists());
            let exists = match known {
                Some(exists) => exists,
                None => self.read(&key, Slot::is_there).await?,
            };
            if exists {
                listed.push(key);
            }
        }
        Ok(listed)
    }

    async fn load_since(&self, key: &SessionKey, revision: Revision, next: u64) -> Result<Since> {
        self.read(key, move |slot, folder| slot.load_since(folder, revision, next)).await
    }

    fn repaired_lines(&self) -> u64 {
        self.repaired().lines
    }

    fn archive(&self) -> Option<&dyn Archive> {
        Some(self)
    }

    fn leases(&self) -> Option<&dyn Leases> {
        Some(self)
    }

    fn usage(&self) -> Option<&dyn UsageLog> {
        Some(self)
    }
}

#[async_trait]
impl Archive for JsonlStore {
    async fn transcript(
        &self,
        key: &SessionKey,
        positions: Range<u64>,
    ) -> Result<Vec<StoredMessage>> {
        self.read(key, move |slot, folder| slot.transcript(folder, positions)).await
    }

    async fn compactions(
        &self,
        key: &SessionKey,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<StoredCompaction>> {
        self.read(key, move |slot, folder| slot.compactions(folder, before, limit)).await
    }

    async fn import(&self, key: &SessionKey, session: &SessionExport) -> Result<Receipt> {
        let session = Box::new(session.prepared()?);
        self.write(key, |reply| Job::Import(session, reply)).await
    }
}

/// Returns what memory knows of a session.
fn slot(slots: &Slots, key: &SessionKey) -> Arc<Slot> {
    if let Some(slot) = slots.get(key) {
        return Arc::clone(&slot);
    }
    if slots.len() >= MAX_SLOTS {
        slots.retain(|_, slot| !is_idle(slot));
    }
    Arc::clone(&slots.entry(key.clone()).or_insert_with(|| Arc::new(Slot::new(key.clone()))))
}

/// Forgets a session that does not exist.
fn release(slots: &Slots, key: &SessionKey) {
    slots.remove_if(key, |_, slot| is_idle(slot) && slot.exists() != Some(true));
}

/// In milliseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// The time of so many milliseconds since 1970.
fn time(unix_millis: u64) -> SystemTime {
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(unix_millis));
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Returns true when a slot can be forgotten. The map's lock is held
/// meanwhile: nobody can take it.
fn is_idle(slot: &Arc<Slot>) -> bool {
    Arc::strong_count(slot) == 1 && slot.is_clean()
}

/// Returns the keys of all files, in the order of their bytes.
fn keys(folder: &Folder) -> Result<BTreeSet<SessionKey>> {
    let failed = |error| Error::store("JSONL", format!("list {}", folder.path().display()), error);
    let mut keys = BTreeSet::new();
    for entry in std::fs::read_dir(folder.path()).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_type().map_err(failed)?.is_file() {
            continue;
        }
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        match key_of(name) {
            None => {}
            Some(Named::Key(key)) => {
                keys.insert(key);
            }
            Some(Named::Hash) => {
                // It may be gone by now.
                let file = folder.read(&entry.path()).ok().flatten();
                let key = file.map_or(Ok(None), read::key_in).map_err(failed)?;
                keys.extend(key.filter(|key| file_name(key) == name));
            }
        }
    }
    Ok(keys)
}

/// Runs work that blocks where it holds up no task.
async fn blocking<T: Send + 'static>(
    folder: &Arc<Folder>,
    work: impl FnOnce(&Folder) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (reply, answer) = oneshot::channel();
    let lost = Error::store(
        "JSONL",
        format!("read {}", folder.path().display()),
        "the runtime was shut down",
    );
    let folder = Arc::clone(folder);
    writer::start(move || {
        let result = work(&folder);
        // Whoever has the answer may open the folder again at once.
        drop(folder);
        drop(reply.send(result));
    });
    answer.await.unwrap_or(Err(lost))
}
