//! A document that is not held: its list is taken up element by element.

use std::{
    fmt::Write as _,
    io::{self, BufRead, Cursor, Read as _},
};

use super::{
    SkipReason,
    body::{LISTS, lists},
    lines::repair,
    loader::Loader,
    scanner::{Fault, Piece, Scanner},
    shape::Shape,
};
use crate::{
    formats::Format,
    message::json::{Members, has_too_many_members},
};

/// By how much of its list a body's format is told, in bytes.
const SAMPLE: usize = 1 << 16;

/// What became of a document.
pub(super) enum Read {
    /// It was read to its end.
    Whole,
    /// It is broken, and nothing of it was taken up: so it may be lines. These
    /// are the bytes that were read, where they are not too many.
    Nothing(String, Option<Vec<u8>>),
}

/// Reads a list, or an object.
pub(super) fn read<R: BufRead>(
    loader: &mut Loader,
    scanner: &mut Scanner<R>,
) -> Result<Read, Fault> {
    loader.begin_record(scanner.line());
    let read = match scanner.peek()? {
        b'[' => list(loader, scanner).map(|()| Read::Whole),
        _ => object(loader, scanner),
    }?;
    loader.repaired(scanner.is_repaired());
    Ok(read)
}

fn list<R: BufRead>(loader: &mut Loader, scanner: &mut Scanner<R>) -> Result<(), Fault> {
    scanner.expect(b'[')?;
    let mut at = 0_usize;
    while scanner.next(at == 0, b']')? {
        at = at.saturating_add(1);
        let piece = scanner.value()?;
        loader.record_of(at, piece);
    }
    Ok(())
}

fn object<R: BufRead>(loader: &mut Loader, scanner: &mut Scanner<R>) -> Result<Read, Fault> {
    scanner.record();
    match before_list(scanner) {
        Ok(Some(body)) => {
            rest(loader, scanner, body)?;
            return Ok(Read::Whole);
        }
        Ok(None) => {}
        Err(Fault::Syntax(problem)) => {
            return Ok(Read::Nothing(problem, scanner.take_record()));
        }
        Err(fault) => return Err(fault),
    }
    match scanner.take_record() {
        Some(bytes) => loader.json(&repair(bytes).0),
        None => loader.skip_too_long(),
    }
    Ok(Read::Whole)
}

/// A body whose list is being read.
struct Body {
    format: Format,
    name: String,
    /// An object of the members before the list and the sample of it.
    head: String,
    sample: Vec<Piece>,
    /// Whether the list ended within the sample.
    ended: bool,
}

/// Reads on until the list of a body begins, or to the end of an object that
/// has none.
fn before_list<R: BufRead>(scanner: &mut Scanner<R>) -> Result<Option<Body>, Fault> {
    scanner.expect(b'{')?;
    let mut first = true;
    while scanner.next(first, b'}')? {
        first = false;
        let name = name(scanner)?;
        if scanner.peek()? != b'[' || !LISTS.contains(&name.as_str()) {
            scanner.value()?;
            continue;
        }
        let Some(head) = scanner.recorded().map(<[u8]>::to_vec) else {
            // Too much stands before the list to tell what it is.
            scanner.value()?;
            continue;
        };
        let (sample, ended) = sample(scanner)?;
        let head = closed(head, &sample);
        let format = members(&head).as_ref().and_then(Shape::of);
        if let Some(Shape::Body(format)) = format
            && lists(format).contains(&name.as_str())
        {
            scanner.take_record();
            return Ok(Some(Body { format, name, head, sample, ended }));
        }
        drop(sample);
        if !ended {
            while scanner.next(false, b']')? {
                scanner.value()?;
            }
        }
    }
    Ok(None)
}

fn name<R: BufRead>(scanner: &mut Scanner<R>) -> Result<String, Fault> {
    // One that is no text, or too long, is the name of nothing.
    if scanner.peek()? != b'"' {
        scanner.expect(b'"')?;
    }
    let name = match scanner.value()? {
        Piece::Json(name) => serde_json::from_str(name.get()).unwrap_or_default(),
        Piece::TooLong => String::new(),
    };
    scanner.expect(b':')?;
    Ok(name)
}

/// Reads the first elements of a list, and says whether these are all.
fn sample<R: BufRead>(scanner: &mut Scanner<R>) -> Result<(Vec<Piece>, bool), Fault> {
    scanner.expect(b'[')?;
    let mut sample = Vec::new();
    let mut len = 0_usize;
    while len < SAMPLE {
        if !scanner.next(sample.is_empty(), b']')? {
            return Ok((sample, true));
        }
        let piece = scanner.value()?;
        len = len.saturating_add(match &piece {
            Piece::Json(value) => value.get().len(),
            Piece::TooLong => SAMPLE,
        });
        sample.push(piece);
    }
    Ok((sample, false))
}

/// Makes an object of its beginning and the sample of the list.
fn closed(head: Vec<u8>, sample: &[Piece]) -> String {
    let (mut text, _) = repair(head);
    text.push('[');
    let known = sample.iter().filter_map(|piece| match piece {
        Piece::Json(value) => Some(value.get()),
        Piece::TooLong => None,
    });
    for (at, value) in known.enumerate() {
        // Text into memory: there is nothing that can fail.
        let _ = write!(text, "{}{value}", if at == 0 { "" } else { "," });
    }
    text.push_str("]}");
    text
}

/// Takes up the list, and what stands behind it.
fn rest<R: BufRead>(
    loader: &mut Loader,
    scanner: &mut Scanner<R>,
    body: Body,
) -> Result<(), Fault> {
    let Body { format, name, head, sample, ended } = body;
    let head = members(&head).unwrap_or_default();
    let start = loader.open_body(format, &head);
    let mut at = 0;
    let mut take = |loader: &mut Loader, piece: Piece| {
        loader.element(format, &name, at, piece);
        at = at.saturating_add(1);
    };
    let is_empty = sample.is_empty();
    for piece in sample {
        take(loader, piece);
    }
    if !ended {
        let mut first = is_empty;
        while scanner.next(first, b']')? {
            first = false;
            take(loader, scanner.value()?);
        }
    }
    let mut tail = String::from("{");
    while scanner.next(false, b'}')? {
        let name = self::name(scanner)?;
        match scanner.value()? {
            Piece::Json(value) => {
                let comma = if tail.len() > 1 { "," } else { "" };
                let name = serde_json::Value::from(name);
                let _ = write!(tail, "{comma}{name}:{value}");
            }
            Piece::TooLong => loader.skip(SkipReason::TooLong, "a field behind the list"),
        }
    }
    tail.push('}');
    loader.close_body(format, start, &head, &members(&tail).unwrap_or_default());
    Ok(())
}

fn members(json: &str) -> Option<Members<'_>> {
    if has_too_many_members(json) { None } else { Members::of(json) }
}

/// A reader of bytes that were read before, and what follows them.
pub(super) fn again<R: BufRead>(bytes: Vec<u8>, reader: R) -> io::Chain<Cursor<Vec<u8>>, R> {
    Cursor::new(bytes).chain(reader)
}
