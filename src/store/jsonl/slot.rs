//! One session's file: its writes one after another, its reads at any time.

use std::{
    ops::Range,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::{runtime::Handle, sync::oneshot};

use super::{
    folder::Folder,
    group::{Answer, Group, Job, Reply, answer},
    names,
    read::{self, Scan},
    state::{Held, Mark, Tip, block_of},
};
use crate::{
    error::{Error, Result},
    session::{SessionKey, View},
    store::{
        Removed, StoredMessage, StoredSession,
        memory::{ID_HORIZON, IdIndex},
    },
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
    queue: Mutex<Queue>,
    /// Says that as many writes wait as the writer waits for.
    gathered: Condvar,
}

#[derive(Clone, Debug, Default)]
struct Known {
    tip: Tip,
    marks: Vec<Mark>,
    /// Set while the file may hold more than was acknowledged: only memory
    /// knows where that ends.
    uncut: bool,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: Vec<Job>,
    /// Whether a writer is at work.
    writing: bool,
    /// How many writes the writer waits for.
    gathering: Option<usize>,
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

    /// Reads what is sent of the session, and its state.
    pub(super) fn load(&self, folder: &Folder) -> Result<Option<StoredSession>> {
        self.read(folder, |reader| {
            let state = reader.held.state.as_ref().clone();
            let View { cut, ref carried, .. } = state.view;
            let mut kept = Vec::with_capacity(carried.len());
            let mut rest = carried.as_slice();
            // Those that share a block are read in one go.
            while let Some((&first, _)) = rest.split_first() {
                let end = reader.block_end(first);
                let in_block = rest.partition_point(|position| *position < end).max(1);
                let (wanted, others) = rest.split_at_checked(in_block).unwrap_or((rest, &[]));
                let last = wanted.last().copied().unwrap_or(first);
                reader.messages(first..last.saturating_add(1), |message| {
                    if wanted.binary_search(&message.position).is_ok() {
                        kept.push(message);
                    }
                })?;
                rest = others;
            }
            let mut window = Vec::new();
            reader.messages(cut..u64::MAX, |message| {
                if !state.view.is_rewound(message.position) {
                    window.push(message);
                }
            })?;
            Ok(StoredSession::new(state, reader.held.next, kept, window))
        })
    }

    /// Reads the messages at some positions.
    pub(super) fn transcript(
        &self,
        folder: &Folder,
        positions: Range<u64>,
    ) -> Result<Vec<StoredMessage>> {
        let read = self.read(folder, |reader| {
            let mut messages = Vec::new();
            reader.messages(positions.clone(), |message| messages.push(message))?;
            Ok(messages)
        });
        read.map(Option::unwrap_or_default)
    }

    /// Reads the file where that was not done yet.
    pub(super) fn tip(&self, folder: &Folder) -> Result<Tip> {
        self.known(folder, |known| known.tip.clone())
    }

    fn read<T>(
        &self,
        folder: &Folder,
        read: impl Fn(&Reader<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        loop {
            let known = self.known(folder, Known::clone)?;
            let Some(held) = known.tip.held.clone() else { return Ok(None) };
            let reader = Reader { slot: self, folder, known, held };
            let result = read(&reader);
            // Removed meanwhile, the file may have been another one.
            let now = self.known(folder, |known| known.tip.held.as_ref().map(Held::incarnation))?;
            if now == Some(reader.held.incarnation()) {
                return result.map(Some);
            }
        }
    }

    fn known<T>(&self, folder: &Folder, look: impl Fn(&Known) -> T) -> Result<T> {
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
        let Scan { tip, marks, damaged } =
            scan.map_err(|error| self.failed("read", folder, error))?;
        folder.count_repaired(damaged);
        let known = Known { tip, marks, uncut: false };
        let seen = look(&known);
        *lock(&self.known) = Some(known);
        Ok(seen)
    }

    /// Puts a write in line and waits for its answer.
    pub(super) async fn submit<T>(
        self: Arc<Self>,
        folder: Arc<Folder>,
        job: impl FnOnce(Reply<T>) -> Job,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let lost = self.failed("write", &folder, "the runtime was shut down");
        let idle = {
            let mut queue = lock(&self.queue);
            queue.jobs.push(job(reply));
            if queue.gathering.is_some_and(|writers| queue.jobs.len() >= writers) {
                self.gathered.notify_one();
            }
            !std::mem::replace(&mut queue.writing, true)
        };
        if idle {
            let writer = Writer(Some(self));
            start(move || writer.run(folder));
        } else {
            drop((self, folder));
        }
        answer.await.unwrap_or(Err(lost))
    }

    /// Ends the writer's work where nothing waits.
    fn rest(&self) -> bool {
        let mut queue = lock(&self.queue);
        queue.writing = !queue.jobs.is_empty();
        !queue.writing
    }

    /// Waits until so many writes wait, but not for long.
    fn gather(&self, writers: usize, patience: Duration) {
        let mut queue = lock(&self.queue);
        queue.gathering = Some(writers);
        let few = |queue: &mut Queue| queue.jobs.len() < writers;
        let waited = self.gathered.wait_timeout_while(queue, patience, few);
        (queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        queue.gathering = None;
    }

    /// Writes what waits, in the order in which it came, and returns the
    /// answers to give.
    fn write(&self, folder: &Folder, jobs: Vec<Job>) -> Vec<Box<dyn FnOnce() + Send>> {
        let mut answers: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
        let mut give = |waiting: Vec<Answer>, result: &Result<()>| {
            for answer in waiting {
                let result = result.clone();
                answers.push(Box::new(move || answer(result)));
            }
        };
        let mut group = Vec::new();
        for job in jobs {
            if let Job::Remove(reply) = job {
                let (waiting, result) = self.write_group(folder, std::mem::take(&mut group));
                give(waiting, &result);
                give(vec![answer(reply, self.remove(folder))], &Ok(()));
            } else {
                group.push(job);
            }
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
            let (bytes, marks, answers) = (Vec::new(), Vec::new(), Vec::new());
            Ok(Group { key: &self.key, ids, tip, bytes, marks, last_mark, answers })
        });
        let mut group = match prepared {
            Ok(group) => group,
            Err(error) => return (jobs.into_iter().map(Job::refuse).collect(), Err(error)),
        };
        for job in jobs {
            group.add(job);
        }
        let Group { mut tip, bytes, marks, answers, .. } = group;
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
        }
        *lock(&self.ids) = ids;
        (answers, Ok(()))
    }

    /// Reads the ids that count, where that was not done yet.
    fn build(&self, ids: &mut IdIndex, folder: &Folder) -> Result<()> {
        if ids.is_built() {
            return Ok(());
        }
        let kept = self.read(folder, |reader| {
            let Held { state, next, ids_from, .. } = &reader.held;
            let from = state.view.cut.min(next.saturating_sub(ID_HORIZON as u64)).max(*ids_from);
            let mut kept = Vec::new();
            reader.messages(from..u64::MAX, |message| {
                if !state.view.is_rewound(message.position) {
                    kept.push(message);
                }
            })?;
            Ok(kept)
        })?;
        ids.build(kept.iter().flatten());
        Ok(())
    }

    fn remove(&self, folder: &Folder) -> Result<Removed> {
        let existing = self.tip(folder)?.held;
        let path = self.path(folder);
        let removed = folder.remove(&path);
        // A failure may come after the file is gone.
        if removed.is_ok() || matches!(path.try_exists(), Ok(false)) {
            *lock(&self.ids) = None;
            *lock(&self.known) = Some(Known::default());
        }
        match removed {
            Ok(_) => {
                Ok(existing.map_or_else(Removed::default, |held| Removed::existing(held.messages)))
            }
            Err(error) => Err(self.failed("remove", folder, error)),
        }
    }

    fn path(&self, folder: &Folder) -> PathBuf {
        folder.path().join(&self.file)
    }

    fn failed(
        &self,
        action: &str,
        folder: &Folder,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Error {
        Error::store("JSONL", format!("{action} {}", self.path(folder).display()), source)
    }
}

/// A session's file as far as it was acknowledged at one moment.
struct Reader<'a> {
    slot: &'a Slot,
    folder: &'a Folder,
    known: Known,
    held: Held,
}

impl Reader<'_> {
    fn messages(&self, positions: Range<u64>, take: impl FnMut(StoredMessage)) -> Result<()> {
        let positions = positions.start..positions.end.min(self.held.next);
        if positions.is_empty() {
            return Ok(());
        }
        let from = block_of(&self.known.marks, positions.start);
        let file = self.folder.read(&self.slot.path(self.folder));
        let read = file.and_then(|file| {
            let file = file.ok_or(std::io::ErrorKind::NotFound)?;
            read::messages(file, from, self.known.tip.len, self.held.incarnation(), positions, take)
        });
        read.map_err(|error| self.slot.failed("read", self.folder, error))
    }

    fn block_end(&self, position: u64) -> u64 {
        let marks = &self.known.marks;
        let after = marks.partition_point(|mark| mark.position <= position);
        marks.get(after).map_or(u64::MAX, |mark| mark.position)
    }
}

/// The one that writes to a session's file, until nothing waits.
struct Writer(Option<Arc<Slot>>);

/// How long a writer waits for those that it has just answered.
const PATIENCE: Duration = Duration::from_millis(2);

impl Writer {
    fn run(mut self, folder: Arc<Folder>) {
        let mut folder = Some(folder);
        while let (Some(slot), Some(held)) = (self.0.clone(), folder.take()) {
            let started = Instant::now();
            let jobs = std::mem::take(&mut lock(&slot.queue).jobs);
            let answers = slot.write(&held, jobs);
            let later = Arc::downgrade(&held);
            // Whoever has the last answer may open the folder again at once.
            drop(held);
            let writers = answers.len();
            if writers <= 1 && slot.rest() {
                self.0 = None;
            }
            for give in answers {
                give();
            }
            if writers > 1 {
                // They come again, as a rule: then they share the next sync too.
                slot.gather(writers, PATIENCE.min(started.elapsed() / 4));
                if slot.rest() {
                    self.0 = None;
                }
            }
            if self.0.is_none() {
                // Not even for a moment: a folder that is held is locked.
                return;
            }
            folder = later.upgrade();
        }
    }
}

impl Drop for Writer {
    /// Lets go of those who wait where the runtime ended before the work did.
    fn drop(&mut self) {
        if let Some(slot) = &self.0 {
            let mut queue = lock(&slot.queue);
            queue.writing = false;
            queue.jobs.clear();
        }
    }
}

/// Runs blocking work where it holds up no task.
pub(super) fn start(work: impl FnOnce() + Send + 'static) {
    match Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(work)),
        Err(_) => drop(std::thread::Builder::new().spawn(work)),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whatever it guards is replaced as a whole: a panic leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
