//! What happens when the disk fails, and how often it is asked.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
};

use super::{JsonlStore, checksum::crc32, folder::Step};
use crate::{
    error::Result,
    message::Message,
    session::{SessionKey, Size, StoredSummary, View},
    store::{Commit, MemoryStore, NewMessage, Rewrite, SessionStore},
};

struct Temp(PathBuf);

impl Temp {
    fn new(name: &str) -> Self {
        let unique = format!("jsonl-unit-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(unique);
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn key() -> SessionKey {
    SessionKey::new("s").unwrap()
}

fn named(text: &str) -> NewMessage {
    NewMessage::new(Arc::new(Message::user(text).with_id(text)), Size::default(), false)
}

/// What a session shows, in a form that is equal for equal sessions of two
/// stores.
type Seen = Option<(u64, Option<StoredSummary>, Vec<(u64, String)>)>;

async fn seen(store: &dyn SessionStore) -> Seen {
    let session = store.load(&key()).await.unwrap()?;
    let kept = session.carried.iter().chain(&session.window);
    let kept = kept.map(|kept| (kept.position, kept.message.text())).collect();
    Some((session.state.revision.counter(), session.state.view.summary, kept))
}

const WRITES: usize = 8;

/// Plays one write of a session's life. It is named by its number.
async fn play(store: &dyn SessionStore, write: usize) -> Result<()> {
    let append = async |texts: &[&str]| {
        let messages: Vec<_> = texts.iter().map(|text| named(text)).collect();
        store.append(&key(), &messages).await.map(drop)
    };
    match write {
        0 => append(&["a", "b", "c"]).await,
        1 => append(&["c", "d"]).await,
        2 => {
            let Some(session) = store.load(&key()).await? else { return Ok(()) };
            let summary = Some(StoredSummary::new("sum"));
            let view = View { cut: 2, carried: vec![0], summary, ..View::default() };
            let commit = Commit::on(session.state.revision).with_view(view);
            store.commit(&key(), commit).await.map(drop)
        }
        3 => append(&["e"]).await,
        4 => {
            let rewrite = Rewrite::new(vec![named("x"), named("a")], None);
            store.rewrite(&key(), rewrite).await.map(drop)
        }
        5 => append(&["b"]).await,
        6 => store.remove(&key()).await.map(drop),
        _ => append(&["new"]).await,
    }
}

/// Fails the n-th step: once, or from then on.
#[derive(Clone, Default)]
struct Faults {
    steps: Arc<AtomicUsize>,
    fails_at: usize,
    for_ever: bool,
    healed: Arc<AtomicUsize>,
}

impl Faults {
    fn check(&self) -> io::Result<()> {
        let step = self.steps.fetch_add(1, Ordering::SeqCst) + 1;
        let fails = step == self.fails_at || (self.for_ever && step > self.fails_at);
        if fails && self.healed.load(Ordering::SeqCst) == 0 {
            return Err(io::Error::other("no space left"));
        }
        Ok(())
    }
}

/// Returns true where no step failed.
async fn survives(faults: Faults) -> bool {
    let folder = Temp::new(&format!("fault-{}-{}", faults.for_ever, faults.fails_at));
    let hook = faults.clone();
    let store = JsonlStore::with_hook(&folder.0, Some(Box::new(move |_| hook.check()))).unwrap();
    let model = MemoryStore::keep_transcripts();
    let mut clean = true;
    for write in 0..WRITES {
        let result = play(&store, write).await;
        let error = result.is_err();
        clean &= !error;
        let gone = write == 6 && error && {
            let healed = faults.healed.swap(1, Ordering::SeqCst);
            let gone = seen(&store).await.is_none();
            faults.healed.store(healed, Ordering::SeqCst);
            gone
        };
        // A removal that could not be made durable may have happened.
        if !error || gone {
            play(&model, write).await.unwrap();
        }
    }
    faults.healed.store(1, Ordering::SeqCst);
    assert_eq!(seen(&store).await, seen(&model).await, "{}", faults.fails_at);

    // Work goes on, also with ids of messages that were refused.
    for store in [&store as &dyn SessionStore, &model] {
        let messages = [named("e"), named("after")];
        store.append(&key(), &messages).await.unwrap();
    }
    let expected = seen(&model).await;
    assert_eq!(seen(&store).await, expected, "{}", faults.fails_at);
    drop(store);
    let store = JsonlStore::open(&folder.0).unwrap();
    assert_eq!(seen(&store).await, expected, "{}", faults.fails_at);
    assert_eq!(store.repaired().lines, 0);
    clean
}

#[tokio::test]
async fn any_step_may_fail_once() {
    let mut fails_at = 1;
    while !survives(Faults { fails_at, ..Faults::default() }).await {
        fails_at += 1;
    }
    assert!(fails_at > 3 * WRITES, "{fails_at}");
}

#[tokio::test]
async fn the_disk_may_fail_for_ever() {
    let mut fails_at = 1;
    while !survives(Faults { fails_at, for_ever: true, ..Faults::default() }).await {
        fails_at += 1;
    }
    assert!(fails_at > 3 * WRITES, "{fails_at}");
}

/// Holds the first write of the store until it is told to go on.
fn held(folder: &Temp) -> (JsonlStore, mpsc::Sender<()>, mpsc::Receiver<()>, Arc<AtomicUsize>) {
    let (release, gate) = mpsc::channel::<()>();
    let (arrive, arrived) = mpsc::channel::<()>();
    let (gate, syncs) = (Mutex::new(Some(gate)), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&syncs);
    let hook = move |step| {
        if step == Step::Sync {
            count.fetch_add(1, Ordering::SeqCst);
        }
        let gate = (step == Step::Write).then(|| gate.lock().unwrap().take()).flatten();
        if let Some(gate) = gate {
            arrive.send(()).unwrap();
            gate.recv().unwrap();
        }
        Ok(())
    };
    let store = JsonlStore::with_hook(&folder.0, Some(Box::new(hook))).unwrap();
    (store, release, arrived, syncs)
}

#[tokio::test]
async fn concurrent_writers_share_a_sync() {
    let folder = Temp::new("group");
    let (store, release, _arrived, syncs) = held(&folder);
    let store = Arc::new(store);
    let tasks: Vec<_> = (0..64)
        .map(|n| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                store.append(&key(), &[named(&n.to_string())]).await.unwrap().placed[0].position
            })
        })
        .collect();
    // With one thread, all of them have asked once this comes back.
    tokio::task::yield_now().await;
    release.send(()).unwrap();
    let mut positions = Vec::new();
    for task in tasks {
        positions.push(task.await.unwrap());
    }
    assert_eq!(positions, (0..64).collect::<Vec<u64>>());
    assert!(syncs.load(Ordering::SeqCst) <= 2);
    drop(store);
    let store = JsonlStore::open(&folder.0).unwrap();
    let (_, _, kept) = seen(&store).await.unwrap();
    assert!(kept.into_iter().eq((0..64).map(|n| (n, n.to_string()))));
}

#[tokio::test]
async fn a_read_does_not_wait_for_a_write() {
    let folder = Temp::new("read");
    let (first, ..) = (JsonlStore::open(&folder.0).unwrap(), ());
    first.append(&key(), &[named("a")]).await.unwrap();
    let before = seen(&first).await;
    drop(first);
    let (store, release, arrived, _) = held(&folder);
    let store = Arc::new(store);
    let writer = Arc::clone(&store);
    let append = tokio::spawn(async move { writer.append(&key(), &[named("b")]).await });
    tokio::task::spawn_blocking(move || arrived.recv().unwrap()).await.unwrap();
    assert_eq!(seen(&*store).await, before);
    assert_eq!(store.archive().unwrap().transcript(&key(), 0..9).await.unwrap().len(), 1);
    release.send(()).unwrap();
    append.await.unwrap().unwrap();
    assert_eq!(seen(&*store).await.unwrap().2.len(), 2);
}

#[tokio::test]
async fn a_dropped_append_is_whole_and_its_answer_is_found_by_its_id() {
    let folder = Temp::new("dropped");
    let (store, release, arrived, _) = held(&folder);
    let store = Arc::new(store);
    let writer = Arc::clone(&store);
    let append = tokio::spawn(async move { writer.append(&key(), &[named("a")]).await });
    tokio::task::spawn_blocking(move || arrived.recv().unwrap()).await.unwrap();
    append.abort();
    assert!(append.await.unwrap_err().is_cancelled());
    release.send(()).unwrap();
    let again = store.append(&key(), &[named("a")]).await.unwrap();
    assert!(again.placed[0].duplicate);
    assert_eq!(seen(&*store).await.unwrap().2, [(0, "a".to_owned())]);
}

#[tokio::test]
async fn a_newer_format_is_refused_and_left_as_it_is() {
    let folder = Temp::new("version");
    let store = JsonlStore::open(&folder.0).unwrap();
    store.append(&key(), &[named("a")]).await.unwrap();
    drop(store);
    let file = folder.0.join("s.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    let members = text.lines().next().unwrap().split_once(',').unwrap().1;
    let members = members.replace(r#""version":1"#, r#""version":2"#);
    let newer = format!("{{\"crc\":\"{:08x}\",{members}\n", crc32(members.as_bytes()));
    std::fs::write(&file, &newer).unwrap();
    let store = JsonlStore::open(&folder.0).unwrap();
    let error = store.append(&key(), &[named("b")]).await.unwrap_err();
    assert!(std::error::Error::source(&error).unwrap().to_string().contains("version 2"));
    assert!(store.load(&key()).await.is_err());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), newer);
}

#[test]
fn another_runtime_and_none_at_all_will_do() {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let folder = Temp::new("runtime");
    let store = JsonlStore::open(&folder.0).unwrap();
    for text in ["a", "b"] {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(store.append(&key(), &[named(text)])).unwrap();
    }
    let (key, messages) = (key(), [named("c")]);
    let mut append = store.append(&key, &messages);
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let receipt = loop {
        match append.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(receipt) => break receipt.unwrap(),
            std::task::Poll::Pending => std::thread::park(),
        }
    };
    assert_eq!(receipt.placed[0].position, 2);
}
