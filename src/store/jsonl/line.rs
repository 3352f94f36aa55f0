//! Lines: the sound records in them.

use super::checksum::crc32;

const START: &[u8] = b"{\"crc\":\"";

/// The intact records of a line.
#[derive(Debug)]
pub(super) struct Found<'a> {
    /// Each with the place in the line where it ends.
    pub(super) records: Vec<(usize, &'a str)>,
    /// Whether the line is one record and nothing else.
    pub(super) clean: bool,
}

/// Finds the records of a line, also where zeros were written before one or
/// the line break between two was lost.
pub(super) fn find(line: &[u8]) -> Found<'_> {
    if let Some(text) = verified(line) {
        return Found { records: vec![(line.len(), text)], clean: true };
    }
    let starts = line.windows(START.len()).enumerate();
    let starts = starts.filter(|(_, bytes)| *bytes == START).map(|(at, _)| at);
    let mut starts = starts.peekable();
    let mut records = Vec::new();
    while let Some(start) = starts.next() {
        let end = starts.peek().copied().unwrap_or(line.len());
        let segment = line.get(start..end).unwrap_or_default();
        let ends = segment.iter().enumerate().rev().filter(|(_, byte)| **byte == b'}');
        let whole = ends.take(2).find_map(|(last, _)| {
            let text = verified(segment.get(..=last)?)?;
            Some((start.saturating_add(text.len()), text))
        });
        records.extend(whole);
    }
    Found { records, clean: false }
}

fn verified(line: &[u8]) -> Option<&str> {
    let (crc, rest) = line.strip_prefix(START)?.split_at_checked(8)?;
    let rest = rest.strip_prefix(b"\",")?;
    let crc = u32::from_str_radix(std::str::from_utf8(crc).ok()?, 16).ok()?;
    (crc == crc32(rest)).then(|| std::str::from_utf8(line).ok()).flatten()
}
