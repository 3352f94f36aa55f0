//! From a snapshot to what is sent to a model.

pub(crate) mod fence;
