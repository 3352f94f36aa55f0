//! Keys as bytes, and pages of keys as ranges of them.

use super::error::Failure;
use crate::{session::SessionKey, store::ListPage};

/// Keys from `from` on and below `to`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct KeyRange {
    pub(crate) from: Vec<u8>,
    /// `None`: all that follow.
    pub(crate) to: Option<Vec<u8>>,
}

/// Returns the keys that a page is about as ranges, in order: each is one read
/// of an index.
pub(crate) fn ranges(page: &ListPage) -> Vec<KeyRange> {
    let mut ranges = match &page.scope {
        None => vec![KeyRange { from: Vec::new(), to: None }],
        Some(scope) => {
            let with = |end: u8| [scope.as_bytes(), &[end]].concat();
            vec![
                KeyRange { from: scope.as_bytes().to_vec(), to: Some(with(0)) },
                // Up to the byte that follows the separator.
                KeyRange { from: with(b'/'), to: Some(with(b'/' + 1)) },
                KeyRange { from: with(b':'), to: Some(with(b':' + 1)) },
            ]
        }
    };
    if let Some(after) = &page.after {
        // The first key that can follow.
        let first = [after.as_bytes(), &[0]].concat();
        ranges.retain_mut(|range| {
            if range.from < first {
                range.from.clone_from(&first);
            }
            range.to.as_ref().is_none_or(|to| range.from < *to)
        });
    }
    ranges
}

/// Reads a key.
pub(crate) fn key_of(bytes: Vec<u8>) -> Result<SessionKey, Failure> {
    let problem = |problem: String| Failure::Column { column: "key", problem };
    let text = String::from_utf8(bytes).map_err(|error| problem(error.to_string()))?;
    SessionKey::new(text).map_err(|error| problem(error.to_string()))
}
