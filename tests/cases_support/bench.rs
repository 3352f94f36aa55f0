//! Where a case is played: threads with a name, captured logs, counted panics.

use std::{
    collections::HashMap,
    future::Future,
    io::{self, Write},
    panic,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use tokio::runtime::{Builder, Runtime};
use tracing::{Level, subscriber};

use super::{
    Stop,
    case::{Case, Step},
    model::INJECTED,
    play::Run,
};

/// Which store a case is played on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StoreKind {
    Jsonl,
    Memory,
}

/// Keys and transcripts are every store's business; what survives a restart is
/// the JSONL store's; the rest is played in memory.
pub(crate) fn stores(case: &Case) -> Vec<StoreKind> {
    let steps = case.all_steps();
    let on_all = |step: &&Step| matches!(step, Step::Archive | Step::ForEachKey { .. });
    let on_disk = |step: &&Step| {
        matches!(
            step,
            Step::AppendUntilError
                | Step::AssertNoFilesOutsideBase
                | Step::Crash
                | Step::FreeSpace
                | Step::InsertBytes { .. }
                | Step::Load(_)
                | Step::MountTmpfs(_)
                | Step::Restart
                | Step::TruncateEachByte { .. }
                | Step::WriteRaw { .. }
        )
    };
    if steps.iter().any(on_all) {
        vec![StoreKind::Memory, StoreKind::Jsonl]
    } else if steps.iter().any(on_disk) {
        vec![StoreKind::Jsonl]
    } else {
        vec![StoreKind::Memory]
    }
}

/// What threads of a case share, whichever run of it they belong to.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    name: String,
    logs: Arc<Mutex<Vec<u8>>>,
}

impl Bench {
    /// A runtime whose threads log to this bench and panic on its account.
    pub(crate) fn runtime(&self) -> io::Result<Runtime> {
        let bench = self.clone();
        Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name(&self.name)
            // The guard is not dropped: the thread logs here as long as it lives.
            .on_thread_start(move || std::mem::forget(bench.capture()))
            .enable_all()
            .build()
    }

    pub(crate) fn logs(&self) -> String {
        let logs = self.logs.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&logs).into_owned()
    }

    /// Panics that the case did not ask for.
    pub(crate) fn panics(&self) -> Vec<String> {
        with_panics(|panics| panics.get(&self.name).cloned().unwrap_or_default())
    }

    fn capture(&self) -> subscriber::DefaultGuard {
        let logs = Arc::clone(&self.logs);
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(Level::TRACE)
            .with_ansi(false)
            .with_writer(move || Log(Arc::clone(&logs)))
            .finish();
        subscriber::set_default(subscriber)
    }
}

/// Plays a case on threads of its own.
pub(crate) fn on_runtime<F>(case: &Case, store: StoreKind, play: fn(Run) -> F) -> Result<(), Stop>
where
    F: Future<Output = Result<(), Stop>> + 'static,
{
    let name = format!("case-{}-{store:?}", case.id);
    let bench = Bench { name: name.clone(), logs: Arc::default() };
    let work = {
        let (case, bench) = (case.clone(), bench.clone());
        move || -> Result<(), Stop> {
            let _capture = bench.capture();
            let runtime = bench.runtime()?;
            let ended = runtime.block_on(async { play(Run::start(case, store, bench)?).await });
            runtime.shutdown_background();
            ended
        }
    };
    let thread = thread::Builder::new().name(name).spawn(work)?;
    let ended = thread.join();
    let panics = bench.panics().join(", ");
    match ended {
        Err(_) => Err(Stop::Failed(format!("panicked: {panics}"))),
        Ok(Err(Stop::Failed(why))) if !panics.is_empty() => {
            Err(Stop::Failed(format!("{why}; panicked: {panics}")))
        }
        Ok(Ok(())) if !panics.is_empty() => Err(Stop::Failed(format!("panicked: {panics}"))),
        Ok(ended) => ended,
    }
}

type Panics = HashMap<String, Vec<String>>;

fn with_panics<T>(f: impl FnOnce(&mut Panics) -> T) -> T {
    static PANICS: Mutex<Option<Panics>> = Mutex::new(None);
    let mut panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
    f(panics.get_or_insert_default())
}

/// Notes every panic on the account of its thread's case.
pub(crate) fn watch_panics() {
    panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
        if !text.starts_with(INJECTED) {
            let name = thread::current().name().unwrap_or_default().to_owned();
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            with_panics(|panics| panics.entry(name).or_default().push(format!("{place}: {text}")));
        }
    }));
}

struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
