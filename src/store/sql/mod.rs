//! What the stores on SQL share: the layout of their tables, and all that
//! needs no database.
//!
//! # Tables
//!
//! Their names may begin with a prefix. Keys, ids and JSON are kept as bytes:
//! a key or an id may hold NUL, and JSON comes back as the very text that it
//! was. Beside each JSON document there is a column for queries, `.._json`
//! (of `payload` it is `json`), which the store never reads. Whole numbers
//! have 64 bits with sign; a value beyond that is an error and not stored.
//! Times are milliseconds since 1970, tokens of sizes units of 1/1024 token.
//!
//! | table | a row is | columns |
//! |---|---|---|
//! | `sessions` | a session | `key`; `incarnation` (the 64 bits of the revision's, as a signed number) and `counter`; `cut`, `next`; `window_messages`, `window_chars`, `window_tokens`, `carried_tokens`: how large what is sent is; `marked`, `dormant`, `own_limits`, `limit_messages`, `limit_chars`, `limit_tokens`, `pause_tokens`, `pause_millis`: when a compaction is due; `lease_token`, `lease_until`, `lease_holder`; `created_millis`, `updated_millis`; `options`, `pause`, `view`: JSON |
//! | `lease_tokens` | the newest token of all leases (one row, or a sequence) | `last` |
//! | `messages` | a message | `session` (the incarnation), `position`; `chars`, `tokens`, `unix_millis`; `payload`: JSON |
//! | `message_ids` | an id that is taken | `session`, `id`; `position`; `fingerprint` of the content |
//! | `compactions` | a compaction | `session`, `number`; `revision`, `unix_millis`; `view_before`, `view_after`, `event`: JSON |
//! | `usage_events` | a usage event | `number`; `key`, `unix_millis`; `event`: JSON |
//! | `usage_sums` | a sum over all sessions | `day` (since 1970; -1 for all days), `shard`, `counter`; `value` |
//! | `usage_of_sessions` | a sum of one session | `key`, `counter`; `value` |
//!
//! Rows of a session are found by its incarnation, so that those of a removed
//! session can never be taken for those of one that has its key again. Usage
//! is found by the key: it may be recorded before there is a session.
//!
//! `message_ids` has the ids of the window and of the last 1,024 messages, as
//! long as they are not free again; so ids are recognized also where retention
//! dropped the message, and the index does not grow with the transcript. A sum
//! over all sessions may be spread over several shards, so that transactions
//! do not wait for one row; a reader adds them up.

mod codec;
mod due;
mod error;
mod keys;
mod place;
mod rows;
mod spans;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    codec::{ALL_DAYS, bound, document, parse, signed, unsigned},
    due::DUE,
    error::Failure,
    keys::{KeyRange, key_of, ranges},
    place::{Known, New, asked, place},
    rows::{CompactionRow, EventRow, Header, MessageRow, StateRow, SumRow},
    spans::{first_free, hidden, ids_from, sent},
    tables::{Prefix, migrator},
};
