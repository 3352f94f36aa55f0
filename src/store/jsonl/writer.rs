//! Who writes to a session's file.

use std::{
    sync::{Arc, PoisonError},
    time::{Duration, Instant},
};

use tokio::{runtime::Handle, sync::oneshot};

use super::{
    folder::Folder,
    group::{Job, Reply},
    slot::{Queue, Slot, lock},
};
use crate::error::Result;

impl Slot {
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
