//! Reading a file: damaged lines are passed over, everything else is found.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Take},
    ops::Range,
    path::Path,
};

use super::{
    line,
    record::{Op, Record, VERSION},
    state::{self, At, Mark, Past, Tip},
    usage::Tail,
};
use crate::{session::SessionKey, store::StoredMessage};

/// What a whole file says.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub(super) tip: Tip,
    pub(super) marks: Vec<Mark>,
    pub(super) pasts: Vec<Past>,
    /// Lines that are damaged.
    pub(super) damaged: u64,
}

/// Reads a whole file.
pub(super) fn scan(file: File, key: &SessionKey, path: &Path) -> io::Result<Scan> {
    let mut scan = Scan::default();
    let mut lines = Lines::new(file, 0, u64::MAX)?;
    let mut number = 0_u64;
    while let Some(line) = lines.next()? {
        number += 1;
        let found = line::find(line.bytes);
        let mut sound = found.clean || (line.bytes.is_empty() && line.closed);
        let mut end = None;
        for (ends, text) in found.records {
            let Some(record) = Record::parse(text) else {
                sound = false;
                continue;
            };
            check(&record, key)?;
            let position = matches!(record.op, Op::Append | Op::Rewrite).then_some(record.at);
            if let Ok(past) = scan.tip.apply(record, line.offset) {
                scan.pasts.extend(past);
                if let Some(position) = position {
                    state::mark(&mut scan.marks, None, position, line.offset);
                }
                end = Some(ends);
            } else {
                sound = false;
            }
        }
        if line.closed {
            scan.tip.len = line.end();
        } else if let Some(end) = end {
            scan.tip.len = line.offset.saturating_add(end as u64);
            scan.tip.unclosed = true;
        }
        if !sound {
            scan.damaged += 1;
            tracing::warn!(
                file = %path.display(),
                line = number,
                "jsonl store: a damaged line was passed over"
            );
        }
    }
    Ok(scan)
}

/// Returns the key that a file's first sound header names.
pub(super) fn key_in(file: File) -> io::Result<Option<SessionKey>> {
    let mut lines = Lines::new(file, 0, u64::MAX)?;
    while let Some(line) = lines.next()? {
        let mut records = line::find(line.bytes).records.into_iter();
        let key = records.find_map(|(_, text)| Record::parse(text)?.key);
        if key.is_some() {
            return Ok(key);
        }
    }
    Ok(None)
}

/// Returns the incarnation of the session in a file.
pub(super) fn incarnation_in(file: File) -> io::Result<Option<u64>> {
    let mut lines = Lines::new(file, 0, u64::MAX)?;
    while let Some(line) = lines.next()? {
        let mut records = line::find(line.bytes).records.into_iter();
        if let Some(record) = records.find_map(|(_, text)| Record::parse(text)) {
            return Ok(Some(record.rev.incarnation()));
        }
    }
    Ok(None)
}

/// Reads the records that add messages at some positions, in order. `from` is
/// a mark at or below them, `len` how much of the file is acknowledged.
pub(super) fn added(
    file: File,
    from: Mark,
    len: u64,
    incarnation: u64,
    positions: &Range<u64>,
    mut take: impl FnMut(&Record<'_>),
) -> io::Result<()> {
    let mut lines = Lines::new(file, from.offset, len)?;
    let mut next = from.position;
    while next < positions.end
        && let Some(line) = lines.next()?
    {
        for (_, text) in line::find(line.bytes).records {
            // The same rules as in `Tip::apply`.
            let record = Record::parse(text).filter(|record| {
                matches!(record.op, Op::Append | Op::Rewrite)
                    && record.rev.incarnation() == incarnation
                    && record.at >= next
            });
            let Some(record) = record else { continue };
            next = record.at.saturating_add(record.n);
            if next > positions.start {
                take(&record);
            }
        }
    }
    Ok(())
}

/// Takes the messages of a record that stand at some positions.
pub(super) fn messages(
    record: &Record<'_>,
    positions: &Range<u64>,
    mut take: impl FnMut(StoredMessage),
) {
    for kept in record.messages() {
        match kept {
            Some(kept) if positions.contains(&kept.position) => take(kept),
            Some(_) => {}
            None => tracing::warn!(
                at = record.at,
                "jsonl store: a message that cannot be read was passed over"
            ),
        }
    }
}

/// Reads all records of a part of a file, each with the place of its line,
/// until one of them gives an answer.
pub(super) fn records<T>(
    file: File,
    from: u64,
    len: u64,
    mut take: impl FnMut(&Record<'_>, u64) -> Option<T>,
) -> io::Result<Option<T>> {
    let mut lines = Lines::new(file, from, len)?;
    while let Some(line) = lines.next()? {
        for (_, text) in line::find(line.bytes).records {
            let answer = Record::parse(text).and_then(|record| take(&record, line.offset));
            if answer.is_some() {
                return Ok(answer);
            }
        }
    }
    Ok(None)
}

/// Returns how much of a file is whole lines, or a record without its line
/// break.
pub(super) fn tail(file: File) -> io::Result<Tail> {
    let mut tail = Tail::default();
    let mut lines = Lines::new(file, 0, u64::MAX)?;
    while let Some(line) = lines.next()? {
        if line.closed {
            tail = Tail { len: line.end(), unclosed: false };
        } else if let Some((end, _)) = line::find(line.bytes).records.last() {
            tail = Tail { len: line.offset.saturating_add(*end as u64), unclosed: true };
        }
    }
    Ok(tail)
}

/// Reads the line at a place for a record that gives an answer.
pub(super) fn record_at<T>(
    file: File,
    at: At,
    take: impl Fn(&Record<'_>) -> Option<T>,
) -> io::Result<Option<T>> {
    let mut lines = Lines::new(file, at.line, u64::MAX)?;
    let Some(line) = lines.next()? else { return Ok(None) };
    let mut records = line::find(line.bytes).records.into_iter();
    Ok(records.find_map(|(_, text)| {
        let record = Record::parse(text)?;
        (record.rev.counter() == at.counter).then(|| take(&record)).flatten()
    }))
}

fn check(record: &Record<'_>, key: &SessionKey) -> io::Result<()> {
    if record.version > VERSION {
        return Err(io::Error::other(format!(
            "it has format version {}, which a newer version of this crate writes",
            record.version
        )));
    }
    match &record.key {
        Some(other) if other != key => {
            Err(io::Error::other(format!("it holds another session, {:?}", other.as_str())))
        }
        _ => Ok(()),
    }
}

/// The lines of a part of a file.
struct Lines {
    reader: BufReader<Take<File>>,
    offset: u64,
    line: Vec<u8>,
}

struct Line<'a> {
    offset: u64,
    /// Without the line break.
    bytes: &'a [u8],
    closed: bool,
}

impl Line<'_> {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64 + u64::from(self.closed)
    }
}

impl Lines {
    fn new(mut file: File, from: u64, to: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(from))?;
        let reader = BufReader::with_capacity(64 * 1024, file.take(to.saturating_sub(from)));
        Ok(Self { reader, offset: from, line: Vec::new() })
    }

    fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.offset += self.line.len() as u64;
        self.line.clear();
        if self.reader.read_until(b'\n', &mut self.line)? == 0 {
            return Ok(None);
        }
        let (bytes, closed) = match self.line.as_slice() {
            [bytes @ .., b'\n'] => (bytes, true),
            bytes => (bytes, false),
        };
        Ok(Some(Line { offset: self.offset, bytes, closed }))
    }
}
