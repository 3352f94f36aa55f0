//! One session's file: its writes one after another, its reads at any time.

use std::{
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use super::{
    folder::Folder,
    group::{Answer, Group, Job, answer},
    import, names,
    read::{self, Scan},
    record::Days,
    state::{Held, Mark, Past, Tip},
};
use crate::{
    error::{Error, Result},
    session::SessionKey,
    store::{Placed, Receipt, Removed, SessionExport, memory::IdIndex},
};

/// What memory knows of a session, and the writes that wait for it.
#[derive(Debug)]
pub(super) struct Slot {
    key: SessionKey,
    file: String,
    /// `None` until the file was read. Never held across I/O, so that no read
    /// waits for a write.
    known: Mutex<Option<Known>>,
    /// One reads the whole file, the others find it done.
    scanning: Mutex<()>,
    /// The writer's own.
    ids: Mutex<Option<IdIndex>>,
    pub(super) queue: Mutex<Queue>,
    /// Says that as many writes wait as the writer waits for.
    pub(super) gathered: Condvar,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) tip: Tip,
    pub(super) marks: Vec<Mark>,
    pub(super) pasts: Arc<Vec<Past>>,
    /// Set while the file may hold more than was acknowledged: only memory
    /// knows where that ends.
    uncut: bool,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) jobs: Vec<Job>,
    /// Whether a writer is at work.
    pub(super) writing: bool,
    /// How many writes the writer waits for.
    pub(super) gathering: Option<usize>,
}

impl Slot {
    pub(super) fn new(key: SessionKey) -> Self {
        let file = names::file_name(&key);
        Self {
            key,
            file,
            known: Mutex::default(),
            scanning: Mutex::default(),
            ids: Mutex::default(),
            queue: Mutex::default(),
            gathered: Condvar::new(),
        }
    }

    /// Returns true when memory knows of a session; `None` where the file was
    /// not read yet.
    pub(super) fn exists(&self) -> Option<bool> {
        lock(&self.known).as_ref().map(|known| known.tip.held.is_some())
    }

    /// Returns true where the file is one of a session. As a rule the header
    /// says so, and the rest is not read.
    pub(super) fn is_there(&self, folder: &Folder) -> Result<bool> {
        let file = match folder.read(&self.path(folder)) {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(false),
            Err(error) => return Err(self.failed("read", folder, error)),
        };
        match read::key_in(file) {
            Ok(Some(key)) => Ok(key == self.key),
            _ => self.tip(folder).map(|tip| tip.held.is_some()),
        }
    }

    /// Returns true when nothing is lost by forgetting what memory knows, as
    /// long as nobody uses it.
    pub(super) fn is_clean(&self) -> bool {
        lock(&self.known).as_ref().is_none_or(|known| !known.uncut)
    }

    pub(super) const fn key(&self) -> &SessionKey {
        &self.key
    }

    pub(super) const fn known_cell(&self) -> &Mutex<Option<Known>> {
        &self.known
    }

    /// Returns the incarnation of the session, if there is one.
    pub(super) fn incarnation(&self, folder: &Folder) -> Result<Option<u64>> {
        self.known(folder, |known| known.tip.held.as_ref().map(Held::incarnation))
    }

    /// Reads the file where that was not done yet.
    fn tip(&self, folder: &Folder) -> Result<Tip> {
        self.known(folder, |known| known.tip.clone())
    }

    pub(super) fn known<T>(&self, folder: &Folder, look: impl Fn(&Known) -> T) -> Result<T> {
        if let Some(known) = &*lock(&self.known) {
            return Ok(look(known));
        }
        let _one = lock(&self.scanning);
        if let Some(known) = &*lock(&self.known) {
            return Ok(look(known));
        }
        let path = self.path(folder);
        let scan = folder.read(&path).and_then(|file| {
            file.map_or_else(|| Ok(Scan::default()), |file| read::scan(file, &self.key, &path))
        });
        let Scan { tip, marks, pasts, damaged } =
            scan.map_err(|error| self.failed("read", folder, error))?;
        folder.count_repaired(damaged);
        let known = Known { tip, marks, pasts: Arc::new(pasts), uncut: false };
        let seen = look(&known);
        *lock(&self.known) = Some(known);
        Ok(seen)
    }

    /// Writes what waits, in the order in which it came, and returns the
    /// answers to give.
    pub(super) fn write(&self, folder: &Folder, jobs: Vec<Job>) -> Vec<Box<dyn FnOnce() + Send>> {
        let mut answers: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
        let mut give = |waiting: Vec<Answer>, result: &Result<()>| {
            for answer in waiting {
                let result = result.clone();
                answers.push(Box::new(move || answer(result)));
            }
        };
        let mut group = Vec::new();
        for job in jobs {
            let alone: Box<dyn FnOnce() -> Answer + '_> = match job {
                Job::Remove(reply) => Box::new(|| answer(reply, self.remove(folder))),
                Job::Import(session, reply) => {
                    Box::new(move || answer(reply, self.import(folder, &session)))
                }
                job => {
                    group.push(job);
                    continue;
                }
            };
            let (waiting, result) = self.write_group(folder, std::mem::take(&mut group));
            give(waiting, &result);
            give(vec![alone()], &Ok(()));
        }
        let (waiting, result) = self.write_group(folder, group);
        give(waiting, &result);
        answers
    }

    fn write_group(&self, folder: &Folder, jobs: Vec<Job>) -> (Vec<Answer>, Result<()>) {
        // Put back only where all went well: it must not have ids of messages
        // that are not kept.
        let mut ids = lock(&self.ids).take();
        let prepared = self.known(folder, |known| (known.tip.clone(), known.marks.last().copied()));
        let prepared = prepared.and_then(|(tip, last_mark)| {
            let ids_from = tip.held.as_ref().map_or(0, |held| held.ids_from);
            let ids = ids.get_or_insert_with(|| IdIndex::starting_at(ids_from));
            if jobs.iter().any(Job::brings_ids) {
                self.build(ids, folder)?;
            }
            Ok(Group {
                key: &self.key,
                folder,
                now: super::now(),
                ids,
                tip,
                bytes: Vec::new(),
                marks: Vec::new(),
                last_mark,
                pasts: Vec::new(),
                events: Vec::new(),
                answers: Vec::new(),
            })
        });
        let mut group = match prepared {
            Ok(group) => group,
            Err(error) => return (jobs.into_iter().map(Job::refuse).collect(), Err(error)),
        };
        for job in jobs {
            group.add(job);
        }
        let Group { mut tip, bytes, marks, pasts, events, answers, .. } = group;
        if bytes.is_empty() {
            *lock(&self.ids) = ids;
            return (answers, Ok(()));
        }
        let path = self.path(folder);
        if let Err(error) = folder.write_at(&path, tip.len, &bytes) {
            // Where this fails as well, the next write cuts first, or fails.
            let uncut = folder.cut_back(&path, tip.len);
            if let Err(error) = &uncut {
                tracing::warn!(file = %path.display(), %error, "jsonl store: could not cut back");
            }
            if let Some(known) = &mut *lock(&self.known) {
                known.uncut = uncut.is_err();
            }
            return (answers, Err(self.failed("write", folder, error)));
        }
        tip.len = tip.len.saturating_add(bytes.len() as u64);
        if let Some(known) = &mut *lock(&self.known) {
            known.tip = tip;
            known.uncut = false;
            known.marks.extend(marks);
            if !pasts.is_empty() {
                Arc::make_mut(&mut known.pasts).extend(pasts);
            }
        }
        folder.usage.note(&self.key, events);
        *lock(&self.ids) = ids;
        (answers, Ok(()))
    }

    /// Reads the ids that count, where that was not done yet.
    fn build(&self, ids: &mut IdIndex, folder: &Folder) -> Result<()> {
        if ids.is_built() {
            return Ok(());
        }
        ids.build(&self.known_by_id(folder)?);
        Ok(())
    }

    fn remove(&self, folder: &Folder) -> Result<Removed> {
        let existing = self.tip(folder)?.held;
        let mut days = Days::new();
        for noted in self.events(folder)? {
            noted.add_to(&mut days);
        }
        let (path, revision) = (self.path(folder), existing.as_ref().map(|it| it.state.revision));
        let removed = folder.usage.removing(folder, &self.key, revision, &days, || {
            let removed = folder.remove(&path);
            // A failure may come after the file is gone.
            let is_gone = removed.is_ok() || matches!(path.try_exists(), Ok(false));
            if is_gone {
                *lock(&self.ids) = None;
                *lock(&self.known) = Some(Known::default());
                folder.leases.forget(&self.key);
            }
            (is_gone, removed)
        })?;
        match removed {
            Ok(_) => {
                Ok(existing.map_or_else(Removed::default, |held| Removed::existing(held.messages)))
            }
            Err(error) => Err(self.failed("remove", folder, error)),
        }
    }

    /// Puts a prepared session in place, as a file that is written as a whole.
    fn import(&self, folder: &Folder, session: &SessionExport) -> Result<Receipt> {
        if self.tip(folder)?.held.is_some() {
            return Err(Error::exists(&self.key));
        }
        let bytes = import::file(&self.key, folder, session)?;
        let put = folder.put(&self.path(folder), &bytes);
        *lock(&self.ids) = None;
        // What is there is what the file says, also after a failure.
        *lock(&self.known) = None;
        if let Err(error) = put {
            let known = self.tip(folder).map(|tip| tip.held);
            if known.is_ok_and(|held| held.is_some()) {
                self.remove(folder)?;
            }
            return Err(self.failed("import", folder, error));
        }
        let events = self.events(folder)?;
        folder.usage.note(&self.key, events);
        let placed = session.messages.iter().map(|kept| Placed::new(kept.position, false));
        Ok(Receipt::new(session.state.revision, placed.collect()))
    }

    pub(super) fn path(&self, folder: &Folder) -> PathBuf {
        folder.path().join(&self.file)
    }

    pub(super) fn failed(
        &self,
        action: &str,
        folder: &Folder,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Error {
        Error::store("JSONL", format!("{action} {}", self.path(folder).display()), source)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whatever it guards is replaced as a whole: a panic leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
