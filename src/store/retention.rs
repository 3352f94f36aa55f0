//! How long a store keeps what is no longer sent.

use std::time::Duration;

/// How long a store keeps messages that are no longer sent: those that a
/// summary stands for, and those that were taken back or rewritten.
///
/// What is sent stays under each of them, and so do messages that
/// `force_compression` left out, until a summary stands for them.
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use session_compaction::Retention;
///
/// let thirty_days = Retention::DropAfter(Duration::from_secs(30 * 24 * 60 * 60));
/// assert_ne!(Retention::default(), thirty_days);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Retention {
    /// They are dropped in the step that replaces them.
    Drop,
    /// They are dropped by the first
    /// [`purge`](crate::SessionStore::purge) that finds the store to have had
    /// them for longer than this.
    DropAfter(Duration),
    /// They are kept until the session is removed.
    #[default]
    Keep,
}
