//! The parts of one message.

use std::{mem, slice};

use super::Part;

/// Parts in order. Most messages have a single one, which is held on the spot.
#[derive(Clone, Debug)]
pub(super) enum Parts {
    Many(Vec<Part>),
    One(Part),
}

impl Parts {
    pub(super) fn as_slice(&self) -> &[Part] {
        match self {
            Self::Many(parts) => parts,
            Self::One(part) => slice::from_ref(part),
        }
    }

    pub(super) fn push(&mut self, part: Part) {
        let mut parts = match mem::replace(self, Self::Many(Vec::new())) {
            Self::Many(parts) => parts,
            Self::One(first) => vec![first],
        };
        parts.push(part);
        *self = Self::from(parts);
    }
}

impl From<Vec<Part>> for Parts {
    fn from(mut parts: Vec<Part>) -> Self {
        match parts.pop() {
            Some(part) if parts.is_empty() => return Self::One(part),
            part => parts.extend(part),
        }
        Self::Many(parts)
    }
}

impl FromIterator<Part> for Parts {
    fn from_iter<I: IntoIterator<Item = Part>>(parts: I) -> Self {
        let mut parts = parts.into_iter();
        let (Some(first), second) = (parts.next(), parts.next()) else {
            return Self::Many(Vec::new());
        };
        let Some(second) = second else { return Self::One(first) };
        let mut parts: Vec<Part> = [first, second].into_iter().chain(parts).collect();
        // A session holds many messages.
        parts.shrink_to_fit();
        Self::Many(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Message, MessageId};

    /// A session and an import hold many messages: see `tests/import_memory.rs`.
    #[test]
    fn messages_are_small() {
        assert_eq!(size_of::<Parts>(), size_of::<Part>());
        assert_eq!(size_of::<Part>(), 32);
        assert_eq!(size_of::<Option<MessageId>>(), 24);
        assert_eq!(size_of::<Message>(), 56);
    }

    #[test]
    fn parts_keep_their_order() {
        let all = ["a", "b", "c"].map(Part::text);
        for count in 0..=3 {
            let wanted = &all[..count];
            let collected: Parts = wanted.iter().cloned().collect();
            assert_eq!(collected.as_slice(), wanted);
            assert_eq!(Parts::from(wanted.to_vec()).as_slice(), wanted);
            let mut pushed = Parts::from(Vec::new());
            wanted.iter().cloned().for_each(|part| pushed.push(part));
            assert_eq!(pushed.as_slice(), wanted);
        }
    }
}
