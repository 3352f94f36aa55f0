//! What a host learns from its provider, and what a session can say of itself.

use super::{SessionManager, trigger::measured};
use crate::{
    error::Result,
    session::{SessionKey, SnapshotMark},
    usage::TokenUsage,
};

/// What one session looks like, and what was done to it since this manager
/// first used it.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Message, SessionManager};
///
/// let sessions = SessionManager::builder().build()?;
/// sessions.add_message("chat", Message::user("hello")).await?;
/// let stats = sessions.session_stats("chat").await?;
/// assert_eq!((stats.messages, stats.compactions), (1, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct SessionStats {
    /// Messages in the window.
    pub messages: u64,
    /// Characters in the window.
    pub chars: u64,
    /// Tokens of what is sent: the estimate, or what the provider counted and
    /// the estimate of what came since.
    pub tokens: u64,
    /// Compactions that were applied.
    pub compactions: u64,
    /// Tokens that were left by the last of them.
    pub tokens_after: u64,
    /// Different messages that had to be healed on their way to a model,
    /// however often a context was built.
    pub repaired_messages: u64,
    /// Damaged records that the store has passed over since it was opened, in
    /// all of its sessions.
    pub repaired_lines: u64,
}

impl SessionManager {
    /// Tells a session how many tokens the provider counted for a context,
    /// whose [`mark`](crate::Context::mark) says which one it was. The trigger
    /// then goes by the larger of the estimate and this count, with the
    /// estimate of what was appended since.
    ///
    /// Returns false where the report does not count: the session was
    /// compacted or rewritten since, or the count is zero (some local servers
    /// report none) or absurd.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`].
    ///
    /// # Example
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> session_compaction::Result<()> {
    /// use session_compaction::{Message, Request, SessionManager, TokenUsage};
    ///
    /// let sessions = SessionManager::builder().build()?;
    /// sessions.add_message("chat", Message::user("hello")).await?;
    /// let context = sessions.context("chat", &Request::new()).await?;
    /// // .. the model is asked, and its provider counts 57 tokens ..
    /// assert!(sessions.report_usage("chat", context.mark(), TokenUsage::new(57, 12)).await?);
    /// assert_eq!(sessions.session_stats("chat").await?.tokens, 57);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn report_usage(
        &self,
        key: &str,
        mark: SnapshotMark,
        usage: TokenUsage,
    ) -> Result<bool> {
        let cell = self.0.cell(&SessionKey::new(key)?);
        let counts = self.0.with(&cell, |session| session.report(mark, usage.input)).await;
        self.0.release(cell);
        counts
    }

    /// Returns what one session looks like and what was done to it.
    ///
    /// # Errors
    ///
    /// As for all methods, see [`SessionManager`].
    pub async fn session_stats(&self, key: &str) -> Result<SessionStats> {
        let cell = self.0.cell(&SessionKey::new(key)?);
        let measured = self.0.with(&cell, |session| measured(session)).await;
        let counted = cell.counted();
        self.0.release(cell);
        let measured = measured?;
        Ok(SessionStats {
            messages: measured.messages,
            chars: measured.chars,
            tokens: measured.tokens,
            compactions: counted.compactions,
            tokens_after: counted.tokens_after,
            repaired_messages: counted.healed.len() as u64,
            repaired_lines: self.0.store.repaired_lines(),
        })
    }
}
