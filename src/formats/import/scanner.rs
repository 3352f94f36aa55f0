//! Takes a JSON document apart as it is read.

use std::io::{self, BufRead};

use serde_json::value::RawValue;

use super::{
    MAX_MESSAGE,
    lines::{newlines, repair},
};

/// Why a document could not be read on.
#[derive(Debug)]
pub(super) enum Fault {
    Io(io::Error),
    /// It is no JSON: what is wrong, with line and column.
    Syntax(String),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A value of a document.
pub(super) enum Piece {
    /// It was checked to be JSON.
    Json(Box<RawValue>),
    /// It was passed over without being held.
    TooLong,
}

/// Reads the tokens and values of a document, and knows where it is.
pub(super) struct Scanner<R> {
    reader: R,
    place: Place,
    repaired: bool,
    /// What was read, as long as it is of use.
    record: Option<Vec<u8>>,
}

/// Counts as `serde_json` does: lines from 1, the bytes of the line so far.
#[derive(Clone, Copy)]
struct Place {
    line: usize,
    column: usize,
}

impl<R: BufRead> Scanner<R> {
    pub(super) fn new(reader: R, line: usize) -> Self {
        Self { reader, place: Place { line, column: 0 }, repaired: false, record: None }
    }

    /// Keeps from here on what is read, up to the length of a message.
    pub(super) fn record(&mut self) {
        self.record = Some(Vec::new());
    }

    /// Returns what was read since; `None` where that was too long.
    pub(super) fn take_record(&mut self) -> Option<Vec<u8>> {
        self.record.take()
    }

    pub(super) fn recorded(&self) -> Option<&[u8]> {
        self.record.as_deref()
    }

    /// Returns true where anything had to be repaired.
    pub(super) const fn is_repaired(&self) -> bool {
        self.repaired
    }

    pub(super) const fn line(&self) -> usize {
        self.place.line
    }

    pub(super) fn into_reader(self) -> R {
        self.reader
    }

    /// Returns the next byte that is not blank and leaves it there.
    pub(super) fn peek(&mut self) -> Result<u8, Fault> {
        loop {
            let buffer = self.reader.fill_buf()?;
            let Some(byte) = buffer.first().copied() else {
                return Err(self.fault("EOF while parsing a document"));
            };
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {}
                0 => self.repaired = true,
                // A byte order mark.
                0xEF | 0xBB | 0xBF if self.place.column < 3 => {}
                _ => return Ok(byte),
            }
            self.consume(1);
        }
    }

    /// Takes a token that has to stand here.
    pub(super) fn expect(&mut self, token: u8) -> Result<(), Fault> {
        if self.peek()? != token {
            return Err(self.fault(&format!("expected `{}`", char::from(token))));
        }
        self.consume(1);
        Ok(())
    }

    /// Goes on to the next element or member, or past the end of them.
    pub(super) fn next(&mut self, first: bool, end: u8) -> Result<bool, Fault> {
        let found = self.peek()?;
        if found == end {
            self.consume(1);
            return Ok(false);
        }
        if !first {
            if found != b',' {
                let end = char::from(end);
                return Err(self.fault(&format!("expected `,` or `{end}`")));
            }
            self.consume(1);
        }
        Ok(true)
    }

    /// Reads a value.
    pub(super) fn value(&mut self) -> Result<Piece, Fault> {
        self.peek()?;
        let start = self.place;
        let mut bytes = Some(Vec::new());
        let mut nesting = Nesting::default();
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                if nesting.is_scalar() {
                    break;
                }
                return Err(self.fault("EOF while parsing a value"));
            }
            let end = nesting.end(buffer);
            let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            let len = part.len();
            keep(&mut bytes, part);
            self.consume(len);
            if nesting.broken {
                return Err(self.fault("a line break within a text"));
            }
            if end.is_some() {
                break;
            }
        }
        let Some(bytes) = bytes else { return Ok(Piece::TooLong) };
        let (mut text, repaired) = repair(bytes);
        self.repaired |= repaired;
        text.shrink_to_fit();
        RawValue::from_string(text).map(Piece::Json).map_err(|error| {
            Fault::Syntax(placed(&error, start.line.saturating_sub(1), start.column))
        })
    }

    /// Returns true where nothing follows.
    pub(super) fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(self.reader.fill_buf()?.is_empty())
    }

    /// Goes on to the next line.
    pub(super) fn skip_line(&mut self) -> io::Result<()> {
        let line = self.place.line;
        while self.place.line == line {
            let buffer = self.reader.fill_buf()?;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let len = end.map_or(buffer.len(), |end| end.saturating_add(1));
            if len == 0 {
                return Ok(());
            }
            self.consume(len);
        }
        Ok(())
    }

    fn consume(&mut self, len: usize) {
        // The buffer is filled: whoever consumes has looked into it.
        if let Ok(buffer) = self.reader.fill_buf() {
            let part = buffer.get(..len).unwrap_or(buffer);
            keep(&mut self.record, part);
            self.place.line = self.place.line.saturating_add(newlines(part));
            self.place.column = match part.iter().rposition(|byte| *byte == b'\n') {
                Some(last) => part.len().saturating_sub(last.saturating_add(1)),
                None => self.place.column.saturating_add(part.len()),
            };
        }
        self.reader.consume(len);
    }

    fn fault(&self, what: &str) -> Fault {
        let Place { line, column } = self.place;
        Fault::Syntax(format!("{what} at line {line} column {column}"))
    }
}

/// Adds bytes to what is kept, and lets go of it where it grows too long.
fn keep(kept: &mut Option<Vec<u8>>, part: &[u8]) {
    if let Some(bytes) = kept {
        if bytes.len().saturating_add(part.len()) > MAX_MESSAGE {
            *kept = None;
        } else {
            bytes.extend_from_slice(part);
        }
    }
}

/// Says where in a file an error is, after that many lines and, on its first
/// line, bytes.
pub(super) fn placed(error: &serde_json::Error, lines: usize, columns: usize) -> String {
    let said = error.to_string();
    let own = format!(" at line {} column {}", error.line(), error.column());
    let what = said.strip_suffix(&own).unwrap_or(&said);
    let line = lines.saturating_add(error.line());
    let before = if error.line() <= 1 { columns } else { 0 };
    format!("{what} at line {line} column {}", before.saturating_add(error.column()))
}

/// Finds the end of a value. What else is wrong with it is found when it is parsed.
#[derive(Default)]
struct Nesting {
    depth: usize,
    text: Text,
    begun: bool,
    /// A line ends within a text: it was cut off there.
    broken: bool,
}

#[derive(Clone, Copy, Default, Eq, PartialEq)]
enum Text {
    AfterBackslash,
    Inside,
    #[default]
    Outside,
}

impl Nesting {
    /// A number or word, which ends where the file ends.
    fn is_scalar(&self) -> bool {
        self.begun && self.depth == 0 && self.text == Text::Outside
    }

    /// Returns how many bytes belong to the value, where it ends among them.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        for (at, byte) in bytes.iter().enumerate() {
            let past = Some(at.saturating_add(1));
            match (self.text, byte) {
                (Text::AfterBackslash, _) | (Text::Inside, b'\\' | b'"' | b'\n') => {
                    self.text = match (self.text, byte) {
                        (Text::AfterBackslash, _) => Text::Inside,
                        (_, b'\\') => Text::AfterBackslash,
                        _ => Text::Outside,
                    };
                    self.broken = *byte == b'\n';
                    if self.broken {
                        return Some(at);
                    }
                    if self.text == Text::Outside && self.depth == 0 {
                        return past;
                    }
                }
                (Text::Outside, b'"' | b'[' | b'{') if self.depth == 0 && self.begun => {
                    return Some(at);
                }
                (Text::Outside, b'"') => self.text = Text::Inside,
                (Text::Outside, b'[' | b'{') => self.depth = self.depth.saturating_add(1),
                (Text::Outside, b']' | b'}') if self.depth == 1 => return past,
                (Text::Outside, b']' | b'}') if self.depth > 1 => {
                    self.depth = self.depth.saturating_sub(1);
                }
                (Text::Outside, b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' | b']' | b'}')
                    if self.depth == 0 =>
                {
                    return Some(at);
                }
                _ => {}
            }
            self.begun = true;
        }
        None
    }
}
