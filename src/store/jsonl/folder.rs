//! The folder, and the few things that are done to files in it.

use std::{
    fmt,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use super::{leases::Table, usage::Usage};
use crate::error::{Error, Result};

/// Is locked while a store works in the folder. No session has this name.
const LOCK: &str = ".lock";
/// Ends the name of a file that is not yet in place. That of no session does.
const UNFINISHED: &str = ".unfinished";

/// What is done to a file; a test can make any of them fail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    Create,
    Open,
    Remove,
    Rename,
    Sync,
    SyncFolder,
    Truncate,
    Write,
}

/// Is asked before each step.
pub(super) type Hook = dyn Fn(Step) -> io::Result<()> + Send + Sync;

/// A folder that this process alone writes to, until it is dropped.
pub(super) struct Folder {
    pub(super) leases: Table,
    pub(super) usage: Usage,
    path: PathBuf,
    hook: Option<Box<Hook>>,
    repaired: AtomicU64,
    _lock: File,
}

impl Folder {
    /// Takes the folder, which is created where there is none.
    pub(super) fn open(path: &Path, hook: Option<Box<Hook>>) -> Result<Self> {
        let failed =
            |error: io::Error| Error::store("JSONL", format!("open {}", path.display()), error);
        // What the process does to its working directory later is no matter.
        let path = std::path::absolute(path).map_err(failed)?;
        create_folder(&path).map_err(failed)?;
        let lock = path.join(LOCK);
        let file = open_regular(&lock, true).and_then(|file| match file {
            Some(file) => Ok(file),
            None => new_file(&lock).or_else(|error| match open_regular(&lock, true) {
                // Another process was faster.
                Ok(Some(file)) => Ok(file),
                _ => Err(error),
            }),
        });
        let file = file.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {
                remove_unfinished(&path).map_err(failed)?;
                Ok(Self {
                    leases: Table::default(),
                    usage: Usage::default(),
                    path,
                    hook,
                    repaired: AtomicU64::new(0),
                    _lock: file,
                })
            }
            Err(TryLockError::WouldBlock) => Err(Error::locked(path.display().to_string())),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn repaired(&self) -> u64 {
        self.repaired.load(Ordering::Relaxed)
    }

    pub(super) fn count_repaired(&self, lines: u64) {
        self.repaired.fetch_add(lines, Ordering::Relaxed);
    }

    /// Opens a file to read it; `None` where there is none.
    pub(super) fn read(&self, path: &Path) -> io::Result<Option<File>> {
        self.step(Step::Open)?;
        open_regular(path, false)
    }

    /// Writes bytes at a place, which is the file's end from then on, and makes
    /// them durable. What a failure leaves is for [`Self::cut_back`].
    pub(super) fn write_at(&self, path: &Path, place: u64, bytes: &[u8]) -> io::Result<()> {
        self.step(Step::Open)?;
        match open_regular(path, true)? {
            Some(mut file) => self.write_end(&mut file, place, bytes),
            None if place == 0 => {
                self.step(Step::Create)?;
                self.write_end(&mut new_file(path)?, place, bytes)?;
                self.sync_folder()
            }
            None => Err(io::Error::new(io::ErrorKind::NotFound, "it was removed")),
        }
    }

    /// Puts a file in place as a whole, and makes it durable.
    pub(super) fn put(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut unfinished = path.to_path_buf().into_os_string();
        unfinished.push(UNFINISHED);
        let unfinished = Path::new(&unfinished);
        let put = self.put_by(unfinished, path, bytes);
        if put.is_err() {
            // Where this fails, it is gone when the folder is opened again.
            let _ = fs::remove_file(unfinished);
        }
        put
    }

    fn put_by(&self, unfinished: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if fs::symlink_metadata(unfinished).is_ok() {
            self.unlink(unfinished)?;
        }
        self.step(Step::Create)?;
        self.write_end(&mut new_file(unfinished)?, 0, bytes)?;
        self.step(Step::Rename)?;
        fs::rename(unfinished, path)?;
        self.sync_folder()
    }

    /// Takes back what a failed write may have left behind a place.
    pub(super) fn cut_back(&self, path: &Path, place: u64) -> io::Result<()> {
        if place == 0 {
            return self.remove(path).map(drop);
        }
        self.step(Step::Open)?;
        let Some(file) = open_regular(path, true)? else { return Ok(()) };
        self.cut(&file, place)?;
        self.sync(&file)
    }

    fn write_end(&self, file: &mut File, place: u64, bytes: &[u8]) -> io::Result<()> {
        let len = file.metadata()?.len();
        if len < place {
            return Err(io::Error::other("it was cut short by something else"));
        }
        if len > place {
            self.cut(file, place)?;
        }
        file.seek(SeekFrom::Start(place))?;
        if let Err(error) = self.step(Step::Write) {
            // An injected failure leaves what a real one may leave.
            let (half, _) = bytes.split_at_checked(bytes.len() / 2).unwrap_or_default();
            file.write_all(half)?;
            return Err(error);
        }
        file.write_all(bytes)?;
        self.sync(file)
    }

    /// Removes a file for good; false where there is none.
    pub(super) fn remove(&self, path: &Path) -> io::Result<bool> {
        match self.unlink(path) {
            Ok(()) => self.sync_folder().map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.step(Step::Remove)?;
        fs::remove_file(path)
    }

    fn cut(&self, file: &File, len: u64) -> io::Result<()> {
        self.step(Step::Truncate)?;
        file.set_len(len)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        self.step(Step::Sync)?;
        file.sync_data()
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.step(Step::SyncFolder)?;
        sync_folder(&self.path)
    }

    fn step(&self, step: Step) -> io::Result<()> {
        self.hook.as_ref().map_or(Ok(()), |hook| hook(step))
    }
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Folder").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Removes files that were not put in place before a crash.
fn remove_unfinished(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_some_and(|name| name.ends_with(UNFINISHED)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    builder.create(path)?;
    missing.into_iter().filter_map(Path::parent).try_for_each(sync_folder)
}

/// Makes it durable which files a folder has.
fn sync_folder(path: &Path) -> io::Result<()> {
    // Elsewhere a folder cannot be opened, and need not be.
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

/// Creates a file that only this user can read. A link in its place is not
/// followed.
fn new_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Opens what must be a plain file; a pipe or a link to elsewhere is refused.
fn open_regular(path: &Path, write: bool) -> io::Result<Option<File>> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => return Err(not_regular()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let file = match OpenOptions::new().read(true).write(write).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // Somebody may have put a link in its place in between.
    match fs::symlink_metadata(path) {
        Ok(found) if same(&found, &file.metadata()?) => Ok(Some(file)),
        Ok(_) => Err(not_regular()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(unix)]
fn same(path: &fs::Metadata, file: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    path.is_file() && (path.dev(), path.ino()) == (file.dev(), file.ino())
}

#[cfg(not(unix))]
fn same(path: &fs::Metadata, _file: &fs::Metadata) -> bool {
    path.is_file()
}

fn not_regular() -> io::Error {
    io::Error::other("it is not a plain file of this store; remove it")
}
