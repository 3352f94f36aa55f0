//! One conversation in memory: no I/O, nothing async.

mod key;

pub use self::key::SessionKey;
