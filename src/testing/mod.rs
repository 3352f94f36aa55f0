//! For tests of hosts: summarizers and models that answer as they are told to,
//! a store that fails where it is told to, and a clock that stands still.
//!
//! Only with the feature `testing`, which belongs under `[dev-dependencies]`.
//! [`SessionManager::wait_idle`](crate::SessionManager::wait_idle) comes with it.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> session_compaction::Result<()> {
//! use session_compaction::{Message, SessionManager, testing::Stub};
//!
//! let summarizer = Stub::replies(["The orders were shipped."]);
//! let sessions = SessionManager::builder().summarizer(summarizer.clone()).build()?;
//! for n in 0..30 {
//!     sessions.add_message("chat", Message::user(format!("Order {n}?"))).await?;
//!     drop(sessions.maybe_summarize("chat").await); // as an agent's loop does
//! }
//! sessions.wait_idle("chat").await;
//! assert!(!summarizer.requests().is_empty());
//! # Ok(())
//! # }
//! ```

mod clock;
mod fault;
mod model;
mod store;
mod stub;

pub use self::{
    clock::ManualClock,
    fault::{Call, Fault},
    model::StubModel,
    store::FaultyStore,
    stub::{Gate, Stub},
};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What these locks hold is whole between any two statements.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
