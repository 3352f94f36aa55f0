//! Where messages go, and which of them are there already.

use std::collections::HashMap;

use super::{
    codec::{full, signed},
    error::Failure,
};
use crate::{
    error::Error,
    message::Message,
    session::SessionKey,
    store::{NewMessage, Placed},
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
    pub(crate) payload: Vec<u8>,
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
        let fingerprint = fingerprint(message);
        let id = id_of(message);
        let asked = id.as_ref().filter(|_| !new.fresh_id);
        if let Some(there) = asked.and_then(|id| known.get(id).or_else(|| in_batch.get(id))) {
            if there.fingerprint != fingerprint {
                let id = id.unwrap_or_default();
                return Err(Error::duplicate_id(key, &String::from_utf8_lossy(&id)).into());
            }
            placed.push(Placed::new(there.position, true));
            continue;
        }
        let position = next.saturating_add(added.len() as u64);
        in_batch.extend(asked.map(|id| (id.clone(), Known { position, fingerprint })));
        placed.push(Placed::new(position, false));
        added.push(New {
            position: signed("position", position)?,
            id,
            fingerprint,
            chars: full(new.size.chars),
            tokens: full(new.size.tokens.as_units()),
            payload: message.to_json().into_bytes(),
        });
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
