//! Writes that share a transaction, and so one sync of the disk.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use sqlx::Connection as _;
use tokio::{runtime::Handle, sync::oneshot};

use super::{
    BACKEND,
    dialect::{self, Clock, Pool},
    group::Group,
    query::Sql,
};
use crate::{
    error::{Error, Result},
    session::SessionKey,
    store::{Retention, sql::Failure},
};

/// A change of what the database holds. It may be applied several times; only
/// one of them is committed.
#[async_trait]
pub(super) trait Write: Send + Sync + 'static {
    type Output: Send + Sync + 'static;

    /// What it does and to what, for errors.
    fn action(&self) -> String;

    /// The session that it appends to, if that is what it does: its header is
    /// then read together with those of others.
    fn appends_to(&self) -> Option<&SessionKey> {
        None
    }

    /// Makes the change. An answer that refuses it comes before the first
    /// statement that writes.
    async fn apply(&self, group: &mut Group<'_>) -> Result<Self::Output, Failure>;
}

/// Applies writes one after another: those that wait at the same time in one
/// transaction.
pub(super) struct Writer {
    pool: Pool,
    sql: Sql,
    retention: Retention,
    clock: Clock,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    jobs: Vec<Box<dyn Job>>,
    /// Whether a task is at work.
    writing: bool,
}

/// How many writes share a transaction at most: so that the first one does not
/// wait for ever.
const MAX_GROUP: usize = 256;

/// How often a transaction is run that others get in the way of.
const MAX_TRIES: u32 = 8;

fn is_passing(failure: &Failure) -> bool {
    matches!(failure, Failure::Database(error) if dialect::is_passing(error))
}

impl Writer {
    pub(super) fn new(pool: Pool, sql: Sql, retention: Retention, clock: Clock) -> Self {
        Self { pool, sql, retention, clock, queue: Mutex::default() }
    }

    /// Waits for the transaction that runs, and closes the connection.
    pub(super) async fn close(&self) {
        self.pool.close().await;
    }

    /// Puts a write in line and waits for its answer. Dropped, the write
    /// happens all the same.
    pub(super) async fn submit<W: Write>(self: &Arc<Self>, write: W) -> Result<W::Output> {
        let runtime = Handle::try_current().map_err(|_| Error::no_runtime())?;
        let (reply, answer) = oneshot::channel();
        let lost = Error::store(BACKEND, write.action(), "the runtime was shut down");
        let idle = {
            let mut queue = self.lock();
            queue.jobs.push(Box::new(Pending { write, outcome: None, reply }));
            !std::mem::replace(&mut queue.writing, true)
        };
        if idle {
            runtime.spawn(Turn(Some(Arc::clone(self))).run());
        }
        answer.await.unwrap_or(Err(lost))
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // Nothing panics while it is held.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what waits; none: the work is over.
    fn take(&self) -> Vec<Box<dyn Job>> {
        let mut queue = self.lock();
        let count = queue.jobs.len().min(MAX_GROUP);
        queue.writing = count > 0;
        queue.jobs.drain(..count).collect()
    }

    /// Lets those who were just answered put their next writes in line, as
    /// long as that makes the group larger.
    async fn gather(&self, last: usize) {
        let mut seen = 0;
        loop {
            tokio::task::yield_now().await;
            let waiting = self.lock().jobs.len();
            if waiting >= last || waiting == seen {
                return;
            }
            seen = waiting;
        }
    }

    async fn write(&self, mut jobs: Vec<Box<dyn Job>>) {
        let written = match self.again(&mut jobs).await {
            Err(Broken::Job(_)) if jobs.len() > 1 => {
                // One of them cannot be written; the others are not to suffer.
                for job in jobs {
                    let mut alone = vec![job];
                    let written = self.again(&mut alone).await;
                    answer(alone, written);
                }
                return;
            }
            written => written,
        };
        answer(jobs, written);
    }

    /// Runs a transaction, and again where another one was in its way. One
    /// whose commit got no answer is not run again: it may have been made.
    async fn again(&self, jobs: &mut [Box<dyn Job>]) -> Result<(), Broken> {
        let mut tries = 1;
        loop {
            match self.transaction(jobs).await {
                Err(Broken::Database(failure) | Broken::Job(failure))
                    if tries < MAX_TRIES && is_passing(&failure) =>
                {
                    tries += 1;
                }
                written => return written,
            }
        }
    }

    async fn transaction(&self, jobs: &mut [Box<dyn Job>]) -> Result<(), Broken> {
        let mut connection = self.pool.acquire().await.map_err(Broken::database)?;
        let begin = connection.begin_with(dialect::BEGIN_WRITE).await;
        let mut transaction = begin.map_err(Broken::database)?;
        let now = dialect::now(&mut transaction, &self.clock).await.map_err(Broken::database)?;
        let mut group = Group::new(&mut transaction, &self.sql, self.retention, now);
        if jobs.len() > 1 {
            let keys: BTreeSet<_> = jobs.iter().filter_map(|job| job.appends_to()).collect();
            let keys: Vec<_> = keys.into_iter().cloned().collect();
            group.read_ahead(&keys).await.map_err(Broken::Job)?;
        }
        for job in jobs.iter_mut() {
            job.run(&mut group).await.map_err(Broken::Job)?;
        }
        group.flush().await.map_err(Broken::Job)?;
        transaction.commit().await.map_err(|error| Broken::Commit(error.into()))
    }
}

fn answer(jobs: Vec<Box<dyn Job>>, written: Result<(), Broken>) {
    let written = written.map_err(|broken| {
        let (Broken::Commit(failure) | Broken::Database(failure) | Broken::Job(failure)) = broken;
        Arc::new(failure)
    });
    for job in jobs {
        job.answer(written.clone());
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Queue { ref jobs, writing } = *self.lock();
        f.debug_struct("Writer")
            .field("waiting", &jobs.len())
            .field("writing", &writing)
            .finish_non_exhaustive()
    }
}

/// Why a transaction was not committed.
enum Broken {
    /// Whether it was committed is not known.
    Commit(Failure),
    /// Whatever was to be written.
    Database(Failure),
    /// While a job wrote.
    Job(Failure),
}

impl Broken {
    fn database(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}

/// The task that writes, as long as something waits.
struct Turn(Option<Arc<Writer>>);

impl Turn {
    async fn run(mut self) {
        while let Some(writer) = &self.0 {
            let jobs = writer.take();
            if jobs.is_empty() {
                // From here on the place may be another's.
                self.0 = None;
                return;
            }
            let count = jobs.len();
            writer.write(jobs).await;
            writer.gather(count).await;
        }
    }
}

impl Drop for Turn {
    /// Where the runtime ends in the middle: those who wait are told, and the
    /// next write finds a free place. The database rolls back by itself.
    fn drop(&mut self) {
        if let Some(writer) = self.0.take() {
            let lost = {
                let mut queue = writer.lock();
                queue.writing = false;
                std::mem::take(&mut queue.jobs)
            };
            drop(lost);
        }
    }
}

/// A write that waits, whatever it gives back.
#[async_trait]
trait Job: Send + Sync {
    fn appends_to(&self) -> Option<&SessionKey>;

    async fn run(&mut self, group: &mut Group<'_>) -> Result<(), Failure>;

    /// Gives the answer, once it is known whether it was committed.
    fn answer(self: Box<Self>, written: Result<(), Arc<Failure>>);
}

struct Pending<W: Write> {
    write: W,
    outcome: Option<Result<W::Output>>,
    reply: oneshot::Sender<Result<W::Output>>,
}

#[async_trait]
impl<W: Write> Job for Pending<W> {
    fn appends_to(&self) -> Option<&SessionKey> {
        self.write.appends_to()
    }

    async fn run(&mut self, group: &mut Group<'_>) -> Result<(), Failure> {
        self.outcome = Some(match self.write.apply(group).await {
            Ok(output) => Ok(output),
            Err(Failure::Refused(error)) => Err(error),
            Err(failure) => return Err(failure),
        });
        Ok(())
    }

    fn answer(self: Box<Self>, written: Result<(), Arc<Failure>>) {
        let Self { write, outcome, reply } = *self;
        let answer = match (written, outcome) {
            (_, Some(Err(refused))) => Err(refused),
            (Err(failure), _) => Err(Error::store(BACKEND, write.action(), failure)),
            (Ok(()), Some(Ok(output))) => Ok(output),
            (Ok(()), None) => Err(Error::store(BACKEND, write.action(), "it was never begun")),
        };
        // Nobody may be waiting any more; the write counts all the same.
        drop(reply.send(answer));
    }
}
