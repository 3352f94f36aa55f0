//! Work that must end once it has begun.

use std::{
    future::{Future, poll_fn},
    task::Poll,
};

use tokio::runtime::Handle as Runtime;

use crate::{error::Result, summarize};

/// Runs a future to its end, also where the caller's own is dropped. What is
/// ready at once, as with a store in memory, runs on the spot; anything else
/// goes on in a task.
pub(super) async fn run<T: Send + 'static>(
    runtime: &Runtime,
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let mut work = Box::pin(work);
    if let Poll::Ready(done) = poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await {
        return done;
    }
    runtime.spawn(work).await.unwrap_or_else(|error| {
        Err(crate::Error::store("session", "complete a write", summarize::from_join(error)))
    })
}
