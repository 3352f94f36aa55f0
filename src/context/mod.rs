//! From a snapshot to what is sent to a model.

pub(crate) mod fence;
mod rules;

pub use self::rules::{Provider, Violation, validate_messages};
