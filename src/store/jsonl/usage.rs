//! Usage events: which there are, where they stand, and their sums.
//!
//! Events of commits stand in the files of their sessions. Others, and the
//! sums of sessions that were removed, stand in a file of their own.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io,
    sync::{Mutex, PoisonError},
};

use super::{
    folder::Folder,
    names::file_name,
    read,
    record::{self, Days, Op},
};
use crate::{
    error::{Error, Result},
    session::{Revision, SessionKey},
    store::DayTotals,
    usage::{UsageEvent, UsageTotals},
};

/// No session has this name.
const LOG: &str = ".usage";

/// What memory knows of usage events.
#[derive(Debug, Default)]
pub(super) struct Usage {
    known: Mutex<Known>,
    /// The number that was given out last.
    number: Mutex<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Known {
    /// `None` until it was read.
    log: Option<Tail>,
    /// Whether the files of sessions were read as well.
    pub(super) is_whole: bool,
    /// Sessions with events in the log.
    recorded: HashSet<SessionKey>,
    pub(super) totals: UsageTotals,
    pub(super) days: Days,
    pub(super) sessions: HashMap<SessionKey, UsageTotals>,
    /// By their numbers.
    pub(super) events: BTreeMap<u64, Place>,
}

/// How much of a file is acknowledged, and whether its last line lacks its
/// line break.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    pub(super) len: u64,
    pub(super) unclosed: bool,
}

/// Where an event stands.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) key: SessionKey,
    /// Where its line begins.
    line: u64,
    in_log: bool,
}

/// An event that was written to its session's file.
#[derive(Debug)]
pub(super) struct Noted {
    number: u64,
    line: u64,
    day: u64,
    totals: UsageTotals,
}

impl Noted {
    pub(super) fn new(number: Option<u64>, line: u64, event: Option<&UsageEvent>) -> Option<Self> {
        let (number, event) = (number?, event?);
        let (day, totals) = (DayTotals::day_of(event.unix_millis), UsageTotals::of_event(event));
        Some(Self { number, line, day, totals })
    }

    pub(super) fn add_to(&self, days: &mut Days) {
        days.entry(self.day).or_default().merge(&self.totals);
    }
}

impl Usage {
    /// Returns the number for a new event: by the clock, so that it rises over
    /// restarts, and above all that were given out.
    pub(super) fn number(&self, now: u64) -> u64 {
        let mut last = self.number.lock().unwrap_or_else(PoisonError::into_inner);
        *last = last.saturating_add(1).max(now.saturating_mul(1 << 10));
        *last
    }

    /// Looks at what is known, which is what the log says at least.
    pub(super) fn look<T>(
        &self,
        folder: &Folder,
        look: impl FnOnce(&mut Known) -> Result<T>,
    ) -> Result<T> {
        // Whatever is half done in there is read again, or was acknowledged.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.read_log(folder).map_err(|error| failed(folder, "read", error))?;
        look(&mut known)
    }

    /// Adds events that were written to a session's file.
    pub(super) fn note(&self, key: &SessionKey, events: Vec<Noted>) {
        if events.is_empty() {
            return;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Otherwise they are found when the files are read.
        if known.is_whole {
            for noted in events {
                known.add(key, &noted, false);
            }
        }
    }

    /// Writes an event to the log.
    pub(super) fn record(
        &self,
        folder: &Folder,
        key: &SessionKey,
        event: &UsageEvent,
        now: u64,
    ) -> Result<()> {
        self.look(folder, |known| {
            let number = self.number(now);
            let text = record::usage(Revision::none(), key, number, event)?;
            let line = known.write(folder, &text)?;
            if let Some(noted) = Noted::new(Some(number), line, Some(event)) {
                known.recorded.insert(key.clone());
                known.add(key, &noted, true);
            }
            Ok(())
        })
    }

    /// Removes a session, whose file has these sums; they stay those of the
    /// store. Where the removal is cut short, the file counts as long as it is
    /// there, and then what the log says of it.
    pub(super) fn removing(
        &self,
        folder: &Folder,
        key: &SessionKey,
        revision: Option<Revision>,
        days: &Days,
        remove: impl FnOnce() -> (bool, io::Result<bool>),
    ) -> Result<io::Result<bool>> {
        self.look(folder, |known| {
            if !days.is_empty() || known.recorded.contains(key) {
                let revision = revision.unwrap_or_else(Revision::none);
                known.write(folder, &record::removed(revision, key, days)?)?;
            }
            let (is_gone, result) = remove();
            if is_gone {
                if !known.is_whole {
                    known.add_days(days);
                }
                known.forget(key);
            }
            Ok(result)
        })
    }
}

impl Place {
    /// Reads the event of this number; `None` where it is gone.
    pub(super) fn read(&self, folder: &Folder, number: u64) -> Result<Option<UsageEvent>> {
        let path = if self.in_log { LOG.to_owned() } else { file_name(&self.key) };
        let file = folder.read(&folder.path().join(path));
        let event = file.and_then(|file| {
            let Some(file) = file else { return Ok(None) };
            let take = |record: &record::Record<'_>, at: u64| {
                (at != self.line).then_some(None).or_else(|| {
                    let is_it = record.number == number || record.number == 0;
                    is_it.then(|| record.event())
                })
            };
            read::records(file, self.line, u64::MAX, take)
        });
        Ok(event.map_err(|error| failed(folder, "read", error))?.flatten())
    }
}

impl Known {
    fn read_log(&mut self, folder: &Folder) -> io::Result<()> {
        if self.log.is_some() {
            return Ok(());
        }
        let path = folder.path().join(LOG);
        let Some(file) = folder.read(&path)? else {
            self.log = Some(Tail::default());
            return Ok(());
        };
        let mut known = Self::default();
        // By incarnation: an attempt that failed is followed by another.
        let mut removed: HashMap<u64, Days> = HashMap::new();
        let mut broken = None;
        read::records(file, 0, u64::MAX, |record, line| {
            let key = record.key.as_ref()?;
            match record.op {
                Op::Usage => {
                    let event = record.event();
                    let noted = Noted::new(Some(record.number), line, event.as_ref())?;
                    known.recorded.insert(key.clone());
                    known.add(key, &noted, true);
                }
                Op::Removed => match exists(folder, key, record.rev) {
                    Ok(true) => {}
                    Ok(false) => {
                        known.forget(key);
                        removed.insert(record.rev.incarnation(), record.days());
                    }
                    Err(error) => broken = Some(error),
                },
                _ => {}
            }
            None::<()>
        })?;
        if let Some(error) = broken {
            return Err(error);
        }
        for days in removed.values() {
            known.add_days(days);
        }
        let tail = folder.read(&path)?.map(read::tail).transpose()?;
        known.log = Some(tail.unwrap_or_default());
        *self = known;
        Ok(())
    }

    fn write(&mut self, folder: &Folder, line: &str) -> Result<u64> {
        let (path, Tail { len, unclosed }) =
            (folder.path().join(LOG), self.log.unwrap_or_default());
        let bytes = if unclosed { format!("\n{line}") } else { line.to_owned() };
        if let Err(error) = folder.write_at(&path, len, bytes.as_bytes()) {
            // Where this fails as well, the next write cuts first, or fails.
            if let Err(error) = folder.cut_back(&path, len) {
                tracing::warn!(file = %path.display(), %error, "jsonl store: could not cut back");
            }
            return Err(failed(folder, "write", error));
        }
        let end = len.saturating_add(bytes.len() as u64);
        self.log = Some(Tail { len: end, unclosed: false });
        Ok(len.saturating_add(u64::from(unclosed)))
    }

    /// Adds the events that a session's file has, where they are not known yet.
    pub(super) fn add_all(&mut self, key: &SessionKey, events: Vec<Noted>) {
        for mut noted in events {
            if noted.number == 0 {
                // It was written without one.
                noted.number = noted.day.saturating_mul(86_400_000 << 10);
                while self.events.contains_key(&noted.number) {
                    noted.number = noted.number.saturating_add(1);
                }
            }
            self.add(key, &noted, false);
        }
    }

    /// Adds an event that is not known yet.
    fn add(&mut self, key: &SessionKey, noted: &Noted, in_log: bool) {
        let place = Place { key: key.clone(), line: noted.line, in_log };
        if self.events.insert(noted.number, place).is_none() {
            self.totals.merge(&noted.totals);
            noted.add_to(&mut self.days);
            self.sessions.entry(key.clone()).or_default().merge(&noted.totals);
        }
    }

    fn add_days(&mut self, days: &Days) {
        for (day, totals) in days {
            self.totals.merge(totals);
            self.days.entry(*day).or_default().merge(totals);
        }
    }

    fn forget(&mut self, key: &SessionKey) {
        if self.sessions.remove(key).is_some() {
            self.recorded.remove(key);
            self.events.retain(|_, place| place.key != *key);
        }
    }
}

/// Returns true where the session that was to be removed is still there.
fn exists(folder: &Folder, key: &SessionKey, revision: Revision) -> io::Result<bool> {
    match folder.read(&folder.path().join(file_name(key)))? {
        Some(file) => Ok(read::incarnation_in(file)? == Some(revision.incarnation())),
        None => Ok(false),
    }
}

fn failed(folder: &Folder, action: &str, error: io::Error) -> Error {
    Error::store("JSONL", format!("{action} {}", folder.path().join(LOG).display()), error)
}
