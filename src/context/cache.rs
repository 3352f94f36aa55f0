//! Where a provider is asked to remember what it has read.

use super::arrange::Arranged;
use crate::message::Part;

/// Which cache marks are set, each at the end of what it names. A request may
/// hold four in all, so that one is left for the tools.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{CachePoints, Message, Request, SessionManager};
///
/// let sessions = SessionManager::builder().build()?;
/// sessions.add_message("chat", Message::user("hello")).await?;
/// let context = sessions.context("chat", &Request::new().system("Be brief.")).await?;
///
/// let body = context.with_cache(CachePoints::ALL).to_anthropic();
/// assert_eq!(body.to_json().matches("cache_control").count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct CachePoints {
    /// Behind the system prompt.
    pub system: bool,
    /// Behind the summary, which stays the same until the next compaction.
    pub summary: bool,
    /// Behind the last message, without the request's notes.
    pub last_message: bool,
}

impl CachePoints {
    /// All marks.
    pub const ALL: Self = Self { system: true, summary: true, last_message: true };

    /// No marks.
    pub const NONE: Self = Self { system: false, summary: false, last_message: false };
}

/// Message and part behind which a mark stands.
pub(crate) type Mark = (usize, usize);

/// Returns the marks among the messages.
pub(crate) fn marks(arranged: &Arranged<'_>, points: CachePoints) -> [Option<Mark>; 2] {
    let summary = (points.summary && arranged.starts_with_summary).then_some((0, 0));
    [summary, last(arranged).filter(|_| points.last_message)]
}

/// Returns the last part that may have a mark. Notes are there for one request
/// only, and what ends with them would never be read from a cache.
fn last(arranged: &Arranged<'_>) -> Option<Mark> {
    arranged.messages.iter().enumerate().rev().find_map(|(index, message)| {
        let notes = usize::from(arranged.noted == Some(index));
        let stored = message.parts().len().saturating_sub(notes);
        let parts = message.parts().iter().take(stored);
        Some((index, parts.collect::<Vec<_>>().into_iter().rposition(takes_mark)?))
    })
}

/// Thinking and opaque blocks go back untouched, and a blank one is refused.
pub(crate) fn takes_mark(part: &Part) -> bool {
    match part {
        Part::Text(text) => !text.text.trim().is_empty(),
        Part::Media(_) | Part::ToolCall(_) | Part::ToolResult(_) => true,
        Part::Json(_) | Part::Reasoning(_) => false,
    }
}
