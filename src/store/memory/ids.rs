//! Finds messages by their ids.

use std::{collections::HashMap, sync::Arc};

use crate::{
    error::{Error, Result},
    message::{Message, MessageId},
    session::{SessionKey, View},
    store::{NewMessage, Placed, StoredMessage},
};

/// Ids are recognized among the window and this many of the newest messages.
pub(crate) const ID_HORIZON: usize = 1_024;

/// Finds messages by id. Built when the first message comes whose id the host
/// chose: the ids that this crate makes cannot clash.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdIndex {
    built: bool,
    by_id: HashMap<MessageId, (u64, u64)>,
    /// Ids of messages below this position are free again.
    from: u64,
}

impl IdIndex {
    /// An index of the messages from this position on.
    pub(crate) fn starting_at(from: u64) -> Self {
        Self { from, ..Self::default() }
    }

    pub(crate) const fn is_built(&self) -> bool {
        self.built
    }

    pub(crate) fn build<'a>(&mut self, messages: impl IntoIterator<Item = &'a StoredMessage>) {
        if !self.built {
            self.built = true;
            let from = self.from;
            self.add(messages.into_iter().filter(|kept| kept.position >= from));
        }
    }

    /// Gives messages their places from `next` on, and returns those that are
    /// new, taken at this time; an error where an id names other content.
    pub(crate) fn place(
        &self,
        key: &SessionKey,
        next: u64,
        messages: &[NewMessage],
        unix_millis: u64,
    ) -> Result<(Vec<Placed>, Vec<StoredMessage>)> {
        let mut placed = Vec::with_capacity(messages.len());
        let mut added: Vec<StoredMessage> = Vec::with_capacity(messages.len());
        let mut in_batch: HashMap<&MessageId, (u64, &Message)> = HashMap::new();
        for new in messages {
            let id = new.message.id().filter(|_| !new.fresh_id);
            let known = if id.is_some() { self.find(key, &new.message)? } else { None };
            let position = match (known, id.and_then(|id| in_batch.get(id))) {
                (Some(position), _) => position,
                (None, Some((position, other))) if **other == *new.message => *position,
                (None, Some(_)) => return Err(duplicate(key, &new.message)),
                (None, None) => {
                    let position = next.saturating_add(added.len() as u64);
                    in_batch.extend(id.map(|id| (id, (position, &*new.message))));
                    let kept = StoredMessage::new(position, Arc::clone(&new.message));
                    added.push(kept.at(unix_millis));
                    placed.push(Placed::new(position, false));
                    continue;
                }
            };
            placed.push(Placed::new(position, true));
        }
        Ok((placed, added))
    }

    pub(crate) fn add<'a>(&mut self, messages: impl IntoIterator<Item = &'a StoredMessage>) {
        if !self.built {
            return;
        }
        for kept in messages {
            if let Some(id) = kept.message.id() {
                self.by_id.insert(id.clone(), (kept.position, kept.message.fingerprint()));
            }
        }
    }

    /// Where the message stands already; an error where its id names another.
    pub(crate) fn find(&self, key: &SessionKey, message: &Message) -> Result<Option<u64>> {
        match message.id().and_then(|id| self.by_id.get(id)) {
            None => Ok(None),
            Some((position, print)) if *print == message.fingerprint() => Ok(Some(*position)),
            Some(_) => Err(duplicate(key, message)),
        }
    }

    /// The ids of messages that were taken back are free again.
    pub(crate) fn forget_rewound(&mut self, view: &View) {
        if !view.rewound.is_empty() {
            self.by_id.retain(|_, (at, _)| !view.is_rewound(*at));
        }
    }

    pub(crate) fn forget_below(&mut self, position: u64) {
        self.by_id.retain(|_, (at, _)| *at >= position);
    }
}

fn duplicate(key: &SessionKey, message: &Message) -> Error {
    Error::duplicate_id(key, &message.id().map(ToString::to_string).unwrap_or_default())
}
