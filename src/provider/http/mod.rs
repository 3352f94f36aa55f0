//! What the providers share of HTTP: one client with deadlines and bounds,
//! the addresses it may reach, the key, and what a refusal means.

mod address;
pub(super) mod answer;
mod base_url;
mod client;
mod failure;
mod key;
mod retry_after;

pub(super) use self::{
    client::{Client, Names},
    failure::{ApiError, Failure},
};

#[cfg(test)]
mod tests;
