//! The folder that a store writes to, and what can happen to it.

use std::{
    collections::BTreeMap,
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU64, Ordering},
};

use session_compaction::{Message, SessionManager};

use super::{
    Stop,
    case::{Place, Step, Which},
    play::Run,
};

/// A folder of its own, a few levels deep so that a key such as `../..` stays
/// inside what is looked at.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    base: PathBuf,
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

impl Folder {
    pub(crate) fn create() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("cases-{}-{n}", std::process::id()));
        let base = root.join("a/b/base");
        fs::create_dir_all(&base)?;
        Ok(Self { root, base })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    /// Whatever lies beside the base.
    pub(crate) fn strays(&self) -> io::Result<Vec<String>> {
        let mut strays = Vec::new();
        for path in files(&self.root)?.into_keys() {
            if !path.starts_with(&self.base) {
                strays.push(format!("{} lies outside of the base", path.display()));
            }
        }
        Ok(strays)
    }

    pub(crate) fn insert(&self, at: Place, bytes: &[u8]) -> Result<(), Stop> {
        let (path, content) = self.session_file()?;
        let lines = lines(&content);
        let at = match at {
            Place::Start => 0,
            Place::End => content.len(),
            Place::MiddleLineBoundary => lines.get(lines.len() / 2).map_or(0, |line| line.start),
            Place::Offset(offset) => offset.min(content.len()),
        };
        let (head, tail) = content.split_at(at);
        fs::write(path, [head, bytes, tail].concat())?;
        Ok(())
    }

    pub(crate) fn mount_tmpfs(&self, bytes: u64) -> Result<(), Stop> {
        let saved = files(&self.base)?;
        let base = self.base.display().to_string();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs", &base])
            .output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            return Err(Stop::Skipped("a full disk needs root, to mount a small one".into()));
        }
        restore(&self.base, &saved)?;
        Ok(())
    }

    pub(crate) fn grow_tmpfs(&self) -> Result<(), Stop> {
        let grown = Command::new("mount")
            .args(["-o", "remount,size=64m", &self.base.display().to_string()])
            .output()?;
        let failed = || Stop::Failed(String::from_utf8_lossy(&grown.stderr).into_owned());
        if grown.status.success() { Ok(()) } else { Err(failed()) }
    }

    /// The largest file: a case that damages one has one session.
    fn session_file(&self) -> Result<(PathBuf, Vec<u8>), Stop> {
        let largest = files(&self.base)?.into_iter().max_by_key(|(_, content)| content.len());
        largest.ok_or_else(|| Stop::Failed("the store has written no file".into()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let base = self.base.display().to_string();
        if mounts.contains(&base) {
            let _ = Command::new("umount").arg(&base).output();
        }
        let _ = fs::remove_dir_all(&self.root);
    }
}

impl Run {
    /// Writes bytes in place of a session's file.
    pub(crate) async fn write_raw(
        &self,
        key: &str,
        text: &str,
        sessions: &SessionManager,
    ) -> Result<(), Stop> {
        // The store names the file; a message shows which one it is.
        let before = files(self.folder.base())?;
        sessions.add_message(key, Message::user("x")).await?;
        self.close(true).await?;
        let after = files(self.folder.base())?;
        let longer = |(path, content): &(&PathBuf, &Vec<u8>)| {
            before.get(*path).map_or(0, Vec::len) < content.len()
        };
        let file = after.iter().filter(longer).max_by_key(|(_, content)| content.len());
        let (file, _) = file.ok_or_else(|| Stop::Failed("the store has written no file".into()))?;
        fs::write(file, text)?;
        Ok(())
    }

    /// Ends the file at each byte of a record in turn; what follows is cut too.
    pub(crate) async fn truncate_each_byte(&self, of: Which, then: &[Step]) -> Result<(), Stop> {
        self.close(true).await?;
        let saved = files(self.folder.base())?;
        let (path, content) = self.folder.session_file()?;
        let lines = lines(&content);
        let index = match of {
            Which::First => 0,
            Which::Middle => lines.len() / 2,
            Which::Last => lines.len().saturating_sub(1),
        };
        let record = lines.get(index).cloned().unwrap_or_default();
        let added = self.record().added.clone();
        let cut = String::from_utf8_lossy(content.get(record.start..).unwrap_or_default());
        let destroyed: Vec<_> = added
            .iter()
            .filter(|added| cut.contains(&added.id))
            .map(|added| added.id.clone())
            .collect();
        for at in record {
            self.close(false).await?;
            restore(self.folder.base(), &saved)?;
            fs::write(&path, content.get(..at).unwrap_or_default())?;
            {
                let mut record = self.record();
                record.added.clone_from(&added);
                record.destroyed.clone_from(&destroyed);
            }
            self.steps(then).await?;
            self.close(true).await?;
            self.compare_with_added(at).await?;
        }
        Ok(())
    }

    async fn compare_with_added(&self, at: usize) -> Result<(), Stop> {
        let Some(sessions) = self.sessions().await? else { return Ok(()) };
        let found = self.window_ids(&sessions).await?;
        let mut record = self.record();
        let added: Vec<_> = record.added.iter().map(|added| added.id.clone()).collect();
        let destroyed = record.destroyed.clone();
        let survivors: Vec<_> = found.iter().filter(|id| !destroyed.contains(id)).collect();
        let wanted: Vec<_> = added.iter().filter(|id| !destroyed.contains(id)).collect();
        if survivors != wanted {
            let problem =
                format!("cut at byte {at}: {} of {} messages found", survivors.len(), wanted.len());
            record.problems.push(problem);
        }
        Ok(())
    }
}

fn files(folder: &Path) -> io::Result<Files> {
    let mut found = Files::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            } else {
                found.insert(entry.path(), fs::read(entry.path())?);
            }
        }
    }
    Ok(found)
}

fn restore(folder: &Path, saved: &Files) -> io::Result<()> {
    for path in files(folder)?.into_keys() {
        fs::remove_file(path)?;
    }
    for (path, content) in saved {
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, content)?;
    }
    Ok(())
}

/// Where each line is, with its end.
fn lines(content: &[u8]) -> Vec<Range<usize>> {
    let mut start = 0;
    let lines = content.split_inclusive(|byte| *byte == b'\n').map(|line| {
        let from = start;
        start += line.len();
        from..start
    });
    lines.collect()
}
