//! Names for messages.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ulid::Ulid;

/// Names a message within its session.
///
/// A session gives each message an id of 26 characters that sorts by time,
/// unless the host brought its own ([`Message::with_id`](crate::Message::with_id)).
///
/// # Example
///
/// ```
/// use session_compaction::MessageId;
///
/// let id = MessageId::from("telegram-update-981");
/// assert_eq!(id.to_string(), "telegram-update-981");
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct MessageId(Repr);

// A generated id is 16 bytes on the spot, and as bytes needs no room to be aligned.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
enum Repr {
    Generated([u8; 16]),
    Given(Arc<str>),
}

impl MessageId {
    /// Creates an id that no other message has.
    #[must_use]
    pub fn generate() -> Self {
        Self(Repr::Generated(Ulid::new().to_bytes()))
    }
}

impl From<&str> for MessageId {
    fn from(text: &str) -> Self {
        match Ulid::from_string(text) {
            // Lower-case letters parse as well but would come back as capitals.
            Ok(ulid) if ulid.to_string() == text => Self(Repr::Generated(ulid.to_bytes())),
            _ => Self(Repr::Given(text.into())),
        }
    }
}

impl From<String> for MessageId {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Generated(bytes) => Ulid::from_bytes(*bytes).fmt(f),
            Repr::Given(text) => f.pad(text),
        }
    }
}

impl Serialize for MessageId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for MessageId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}
