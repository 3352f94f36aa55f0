#![allow(dead_code, clippy::allow_attributes, reason = "each test file uses a part of it")]

pub(crate) mod histories;
pub(crate) mod logs;
pub(crate) mod model;
pub(crate) mod secrets;
pub(crate) mod stub;
