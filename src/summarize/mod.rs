//! What turns messages into a summary.

#[cfg_attr(not(test), expect(dead_code, reason = "the summarizer that calls it comes next"))]
mod extractive;
