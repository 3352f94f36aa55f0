//! Lines of bounded length, and what is done about bytes that are no text.

use std::io::{self, BufRead, Read as _};

/// Reads line by line.
pub(super) struct Lines<R> {
    reader: R,
    number: usize,
}

pub(super) enum Line {
    Text(Vec<u8>),
    /// Was passed over without being held.
    TooLong,
}

impl<R: BufRead> Lines<R> {
    pub(super) const fn new(reader: R) -> Self {
        Self { reader, number: 0 }
    }

    /// Counts on from a line.
    pub(super) fn after(mut self, number: usize) -> Self {
        self.number = number;
        self
    }

    /// Returns the number of the line that was read last, from 1.
    pub(super) const fn number(&self) -> usize {
        self.number
    }

    /// Returns the next line that is not blank.
    pub(super) fn next_filled(&mut self, limit: usize) -> io::Result<Option<Line>> {
        loop {
            match self.next(limit)? {
                Some(Line::Text(bytes)) if bytes.iter().copied().all(is_blank) => {}
                line => return Ok(line),
            }
        }
    }

    fn next(&mut self, limit: usize) -> io::Result<Option<Line>> {
        let mut bytes = Vec::new();
        if self.read(limit.saturating_add(1), &mut bytes)? == 0 {
            return Ok(None);
        }
        self.number = self.number.saturating_add(1);
        if bytes.pop_if(|last| *last == b'\n').is_some() || bytes.len() <= limit {
            return Ok(Some(Line::Text(bytes)));
        }
        loop {
            bytes.clear();
            if self.read(1 << 16, &mut bytes)? == 0 || bytes.last() == Some(&b'\n') {
                return Ok(Some(Line::TooLong));
            }
        }
    }

    fn read(&mut self, limit: usize, bytes: &mut Vec<u8>) -> io::Result<usize> {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        self.reader.by_ref().take(limit).read_until(b'\n', bytes)
    }
}

/// Passes over blank lines, and returns how many there are.
pub(super) fn skip_blank(reader: &mut impl BufRead) -> io::Result<usize> {
    let mut lines = 0_usize;
    loop {
        let buffer = reader.fill_buf()?;
        let filled = buffer.iter().position(|byte| !is_blank(*byte));
        let blank = buffer.get(..filled.unwrap_or(buffer.len())).unwrap_or_default();
        // What stands before the first filled line's text is part of that line.
        lines = lines.saturating_add(newlines(blank));
        let len = match (blank.iter().rposition(|byte| *byte == b'\n'), filled) {
            (Some(last), Some(_)) => last.saturating_add(1),
            (None, Some(_)) => 0,
            (_, None) => blank.len(),
        };
        let is_end = filled.is_some() || buffer.is_empty();
        reader.consume(len);
        if is_end {
            return Ok(lines);
        }
    }
}

pub(super) fn newlines(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').skip(1).count()
}

const fn is_blank(byte: u8) -> bool {
    byte == 0 || byte.is_ascii_whitespace()
}

/// Makes text of bytes, and says whether anything had to be taken out or
/// replaced: NUL bytes, which a crash leaves behind, bytes that are no UTF-8,
/// and halves of surrogate pairs, which are JSON but no text. A byte order mark
/// is taken out without a word.
pub(super) fn repair(mut bytes: Vec<u8>) -> (String, bool) {
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        bytes.drain(..3);
    }
    let len = bytes.len();
    bytes.retain(|byte| *byte != 0);
    let mut repaired = bytes.len() != len;
    let text = String::from_utf8(bytes).unwrap_or_else(|error| {
        repaired = true;
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    });
    match mend_surrogates(&text) {
        Some(mended) => (mended, true),
        None => (text, repaired),
    }
}

fn mend_surrogates(text: &str) -> Option<String> {
    const REPLACEMENT: &str = "\\ufffd";
    let mut mended = String::new();
    let (mut done, mut at) = (0, 0);
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        let start = at.saturating_add(found);
        let next = start.saturating_add(6);
        at = match (unit(text, start), unit(text, next)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => next.saturating_add(6),
            (Some(0xD800..=0xDFFF), _) => {
                mended.push_str(text.get(done..start)?);
                mended.push_str(REPLACEMENT);
                done = next;
                next
            }
            (Some(_), _) => next,
            // A backslash and the byte that it escapes, which is ASCII in JSON.
            (None, _) => text.ceil_char_boundary(start.saturating_add(2)),
        };
    }
    (done > 0).then(|| mended + text.get(done..).unwrap_or_default())
}

/// Reads `\uXXXX`.
fn unit(text: &str, at: usize) -> Option<u16> {
    let hex = text.get(at..at.checked_add(6)?)?.strip_prefix("\\u")?;
    u16::from_str_radix(hex, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_pairs_are_replaced_and_nothing_else() {
        for (was, is) in [
            (r"\ud83d\ude00", None),
            (r"\\ud83d", None),
            (r"\n\u00e9 \", None),
            (r"a\ud83d", Some(r"a\ufffd")),
            (r"\ude00\ud83d\ude00b", Some(r"\ufffd\ud83d\ude00b")),
            (r"\ud83d\ud83d\ude00", Some(r"\ufffd\ud83d\ude00")),
            (r"\ud83d\u0041é\ud8", Some(r"\ufffd\u0041é\ud8")),
            (r"\é\udfff", Some(r"\é\ufffd")),
        ] {
            assert_eq!(mend_surrogates(was).as_deref(), is, "{was}");
        }
    }

    #[test]
    fn long_lines_are_not_held() {
        let mut lines = Lines::new(&b"ab\nabcd\n\nabc\nx"[..]);
        let mut seen = Vec::new();
        while let Some(line) = lines.next_filled(3).unwrap() {
            seen.push(match line {
                Line::Text(bytes) => format!("{} {}", lines.number(), bytes.len()),
                Line::TooLong => format!("{} long", lines.number()),
            });
        }
        assert_eq!(seen, ["1 2", "2 long", "4 3", "5 1"]);
    }
}
