//! Where messages go, and which of them are there already.

use std::{collections::HashMap, time::UNIX_EPOCH};

use super::{
    codec::{bound, full, signed},
    error::Failure,
};
use crate::{
    error::Error,
    message::Message,
    session::{SessionKey, Size, View},
    store::{NewMessage, Placed, StoredMessage},
};

/// A message that a session holds under an id.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Known {
    pub(crate) position: u64,
    pub(crate) fingerprint: i64,
}

/// A message to be stored, column by column.
#[derive(Clone, Debug)]
pub(crate) struct New {
    pub(crate) position: i64,
    pub(crate) id: Option<Vec<u8>>,
    pub(crate) fingerprint: i64,
    pub(crate) chars: i64,
    pub(crate) tokens: i64,
    /// When another store took it; else it is taken now.
    pub(crate) unix_millis: Option<i64>,
    pub(crate) payload: Vec<u8>,
}

impl New {
    fn of(message: &Message, position: u64, size: Size) -> Result<Self, Failure> {
        Ok(Self {
            position: signed("position", position)?,
            id: id_of(message),
            fingerprint: fingerprint(message),
            chars: full(size.chars),
            tokens: full(size.tokens.as_units()),
            unix_millis: None,
            payload: message.to_json().into_bytes(),
        })
    }

    /// Returns a message of an export, for a session with this view.
    pub(crate) fn imported(
        kept: &StoredMessage,
        view: &View,
        ids_from: i64,
    ) -> Result<Self, Failure> {
        let mut new = Self::of(&kept.message, kept.position, Size::estimated(&kept.message))?;
        let carried = kept.message.time().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let carried = carried.and_then(|time| u64::try_from(time.as_millis()).ok());
        new.unix_millis = Some(kept.unix_millis).filter(|time| *time > 0).or(carried).map(bound);
        if view.is_rewound(kept.position) || new.position < ids_from {
            new.id = None;
        }
        Ok(new)
    }

    /// Returns the id that it takes.
    pub(crate) fn taken(&self) -> Option<(Vec<u8>, Known)> {
        let position = u64::try_from(self.position).ok()?;
        Some((self.id.clone()?, Known { position, fingerprint: self.fingerprint }))
    }
}

/// Returns the ids that have to be looked up before messages are placed: those
/// that the host chose.
pub(crate) fn asked(messages: &[NewMessage]) -> impl Iterator<Item = Vec<u8>> {
    messages.iter().filter(|new| !new.fresh_id).filter_map(|new| id_of(&new.message))
}

/// Gives messages their places from `next` on, and returns those that are new.
/// `known` has what the session holds of the ids that are [`asked`] for.
///
/// # Errors
///
/// [`Error::is_duplicate_id`] where an id names other content.
pub(crate) fn place(
    key: &SessionKey,
    next: u64,
    messages: &[NewMessage],
    known: &HashMap<Vec<u8>, Known>,
) -> Result<(Vec<Placed>, Vec<New>), Failure> {
    let mut placed = Vec::with_capacity(messages.len());
    let mut added: Vec<New> = Vec::with_capacity(messages.len());
    let mut in_batch: HashMap<Vec<u8>, Known> = HashMap::new();
    for new in messages {
        let message = &*new.message;
        let position = next.saturating_add(added.len() as u64);
        let row = New::of(message, position, new.size)?;
        let asked = row.id.as_ref().filter(|_| !new.fresh_id);
        if let Some(there) = asked.and_then(|id| known.get(id).or_else(|| in_batch.get(id))) {
            if there.fingerprint != row.fingerprint {
                let id = row.id.unwrap_or_default();
                return Err(Error::duplicate_id(key, &String::from_utf8_lossy(&id)).into());
            }
            placed.push(Placed::new(there.position, true));
            continue;
        }
        if !new.fresh_id {
            in_batch.extend(row.taken());
        }
        placed.push(Placed::new(position, false));
        added.push(row);
    }
    Ok((placed, added))
}

fn id_of(message: &Message) -> Option<Vec<u8>> {
    message.id().map(|id| id.to_string().into_bytes())
}

/// Tells contents apart: equal for equal messages, in every process and on
/// every machine.
pub(crate) fn fingerprint(message: &Message) -> i64 {
    // FNV-1a with 64 bits.
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let text = message.content_json();
    let hash = text.bytes().fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    hash.cast_signed()
}
