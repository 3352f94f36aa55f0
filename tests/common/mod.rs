#![allow(
    dead_code,
    clippy::allow_attributes,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "each test file uses a part of it, and helpers of tests fail by panicking"
)]

#[cfg(feature = "providers")]
pub(crate) mod faults;
pub(crate) mod histories;
pub(crate) mod logs;
pub(crate) mod model;
pub(crate) mod secrets;
pub(crate) mod stub;
pub(crate) mod tcp;
