//! Tells lines from a document, and reads either.

use std::io::{self, BufRead, Read as _};

use serde::de::IgnoredAny;

use super::{
    MAX_MESSAGE,
    document::{self, Read, again},
    lines::{Line, Lines, repair, skip_blank},
    loader::Loader,
    scanner::{Fault, Scanner, placed},
};

/// By how much of a file lines are told from a document, in bytes.
const HEAD: usize = 1 << 18;

/// Tells lines from a document by the first of what there is, and reads it.
pub(super) fn read_any(
    loader: &mut Loader,
    mut reader: impl BufRead,
    skip: usize,
) -> Result<(), Fault> {
    let blank = skip_blank(&mut reader)?;
    let mut head = Vec::new();
    let limit = u64::try_from(HEAD).unwrap_or(u64::MAX);
    let is_all = reader.by_ref().take(limit).read_to_end(&mut head)? < HEAD;
    if head.is_empty() {
        return Err(Fault::Syntax("there is nothing to read".into()));
    }
    let end = head.iter().position(|byte| *byte == b'\n');
    let first = head.get(..end.unwrap_or(head.len())).unwrap_or_default().to_vec();
    let (first, _) = repair(first);
    let is_line = (end.is_some() || is_all) && serde_json::from_str::<IgnoredAny>(&first).is_ok();
    let kind = Kind::of(&first);
    if !is_line {
        match begins_with_json(&head, is_all) {
            Ok(()) => return read_document(loader, head, reader, blank, skip, kind),
            Err(error) if kind.is_document(error.is_eof()) => {
                return Err(Fault::Syntax(placed(&error, blank, 0)));
            }
            Err(error) => {
                let reader = again(head, reader);
                return read_broken(loader, reader, blank, skip, placed(&error, blank, 0));
            }
        }
    }
    drop(first);
    read_lines(loader, &mut Lines::new(again(head, reader)).after(blank), skip)?;
    Ok(())
}

/// What a file is that is broken, by its first line.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Kind {
    Document,
    Lines,
    /// Lines whose first is broken, or an object that begins with more than a bracket.
    Open,
}

impl Kind {
    fn of(first: &str) -> Self {
        let first = first.trim();
        if first.starts_with('[') || first == "{" {
            Self::Document
        } else if first.ends_with([',', ':', '[', '{']) {
            Self::Open
        } else {
            Self::Lines
        }
    }

    /// Lines do not fit together, so that what breaks at its end only is a document.
    fn is_document(self, is_cut_off: bool) -> bool {
        self == Self::Document || (self == Self::Open && is_cut_off)
    }
}

/// Checks that a document begins, and ends as well where this is all.
fn begins_with_json(head: &[u8], is_all: bool) -> serde_json::Result<()> {
    let (text, _) = repair(head.to_vec());
    let value = if is_all {
        serde_json::from_str::<IgnoredAny>(&text).map(drop)
    } else {
        let mut values = serde_json::Deserializer::from_str(&text).into_iter::<IgnoredAny>();
        values.next().unwrap_or(Ok(IgnoredAny)).map(drop)
    };
    value.or_else(|error| if error.is_eof() && !is_all { Ok(()) } else { Err(error) })
}

fn read_document<R: BufRead>(
    loader: &mut Loader,
    head: Vec<u8>,
    reader: R,
    blank: usize,
    skip: usize,
    kind: Kind,
) -> Result<(), Fault> {
    let mut scanner = Scanner::new(again(head, reader), blank.saturating_add(1));
    let (problem, seen) = match document::read(loader, &mut scanner)? {
        Read::Nothing(problem, seen) => (problem, seen),
        Read::Whole => {
            let line = scanner.line().saturating_sub(1);
            let mut lines = Lines::new(scanner.into_reader()).after(line);
            return Ok(read_lines(loader, &mut lines, skip)?);
        }
    };
    if kind.is_document(scanner.is_at_end()?) {
        return Err(Fault::Syntax(problem));
    }
    loader.begin_again();
    if let Some(seen) = seen {
        let reader = again(seen, scanner.into_reader());
        return read_broken(loader, reader, blank, skip, problem);
    }
    loader.begin_record(scanner.line());
    loader.skip_too_long();
    scanner.skip_line()?;
    let line = scanner.line().saturating_sub(1);
    read_broken(loader, scanner.into_reader(), line, skip, problem)
}

/// Reads lines of which the first is broken.
fn read_broken(
    loader: &mut Loader,
    reader: impl BufRead,
    before: usize,
    skip: usize,
    problem: String,
) -> Result<(), Fault> {
    read_lines(loader, &mut Lines::new(reader).after(before), skip)?;
    if loader.is_empty() { Err(Fault::Syntax(problem)) } else { Ok(()) }
}

fn read_lines<R: BufRead>(
    loader: &mut Loader,
    lines: &mut Lines<R>,
    skip: usize,
) -> io::Result<()> {
    while let Some(line) = lines.next_filled(MAX_MESSAGE)? {
        match line {
            Line::Text(bytes) => {
                let (text, repaired) = repair(bytes);
                loader.line(lines.number(), &text, repaired, skip);
            }
            Line::TooLong => {
                loader.begin_record(lines.number());
                loader.skip_too_long();
            }
        }
    }
    Ok(())
}
