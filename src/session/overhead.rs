//! What a request adds to a session, as far as the trigger counts it.

use crate::tokens::Tokens;

/// The sizes of the last request's own parts, remembered in memory alone: a
/// host's system prompt and tools are nearly the same in the next one.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Overhead {
    /// The system prompt.
    pub(crate) system: Tokens,
    /// The stored system messages that it stands in for.
    pub(crate) replaced: Tokens,
    pub(crate) tools: Tokens,
    /// What is kept free for the answer.
    pub(crate) reserve: Tokens,
}

impl Overhead {
    /// Returns the size of what is sent, where history and summary have this
    /// one.
    pub(crate) fn with(self, history: Tokens) -> Tokens {
        history - self.replaced + self.system + self.tools
    }

    /// Returns what comes on top of history and summary, the answer included.
    pub(crate) fn on_top(self) -> Tokens {
        self.system + self.tools + self.reserve - self.replaced
    }
}
