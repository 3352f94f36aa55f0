//! Puts a healed history in the order that a provider takes.
//!
//! Messages are only ever added at the end: a filler stands between what may
//! not be neighbours, rather than one message growing after it was sent. So
//! each context extends the one before it.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use super::{
    clean,
    profile::Profile,
    repair::{Call, Healed, Step},
};
use crate::{
    formats::openai_chat::native_part,
    message::{Message, Part, Role},
};

/// The first message where a conversation does not begin with a person.
const LEAD: &str = "(the conversation starts here)";
/// What stands between two messages of the model, or after the last one.
const GO_ON: &str = "Continue.";
/// What stands between a tool's result and a person, in strict templates.
const PAUSE: &str = "(no reply)";
/// What stands in place of a blank message of a person.
const EMPTY: &str = "(empty message)";
/// What stands in place of a result that has not come.
pub(crate) const NO_RESULT: &str = "(no result: this call has not been answered)";

/// What surrounds a history in a request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Around<'a> {
    /// In place of the system messages that the history begins with.
    pub(crate) system: Option<&'a str>,
    /// Ends the system prompt.
    pub(crate) system_end: Option<&'a str>,
    /// Opens the first user message.
    pub(crate) user_start: Option<&'a str>,
    /// Ends the newest user message.
    pub(crate) notes: Option<&'a str>,
}

/// A conversation as a provider takes it: each assistant message with calls
/// is followed by its results, one tool message each, in the order of the calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arranged<'a> {
    pub(crate) system: Option<Cow<'a, Message>>,
    pub(crate) messages: Vec<Cow<'a, Message>>,
    /// Which message the notes ended up in.
    pub(crate) noted: Option<usize>,
    /// The first part of the first message is a summary.
    pub(crate) starts_with_summary: bool,
    /// .. and there is nothing else in it yet.
    opened: bool,
}

/// Returns the system prompt alone, where there is nothing to arrange.
pub(crate) fn arrange_nothing<'a>(around: Around<'_>, profile: &Profile) -> Arranged<'a> {
    Arranged { system: system(&[], around, profile), ..Arranged::default() }
}

/// Arranges a history for a provider.
pub(crate) fn arrange<'a>(
    healed: &'a Healed,
    around: Around<'_>,
    profile: &Profile,
) -> Arranged<'a> {
    let system = system(&healed.system, around, profile);
    let mut arranged = Arranged { system, ..Arranged::default() };
    if let Some(block) = around.user_start {
        arranged.push(Cow::Owned(Message::user(block)));
        arranged.starts_with_summary = true;
        arranged.opened = true;
    }
    let newest = healed.steps.iter().rposition(|step| matches!(step, Step::User(_)));
    for (index, step) in healed.steps.iter().enumerate() {
        match step {
            Step::Assistant { message, calls } => arranged.assistant(message, calls, profile),
            Step::Notice(message) => arranged.notice(message, profile),
            Step::User(message) => arranged.user(user(message, profile), profile),
        }
        if newest == Some(index) {
            arranged.note(arranged.messages.len().checked_sub(1), around.notes, profile);
        }
    }
    if arranged.messages.is_empty() {
        arranged.push(Cow::Owned(Message::user(LEAD)));
    }
    if newest.is_none() {
        arranged.note(Some(0), around.notes, profile);
    }
    if profile.ends_with_user && arranged.last() == Some(Role::Assistant) {
        arranged.push(Cow::Owned(Message::user(GO_ON)));
    }
    arranged
}

impl<'a> Arranged<'a> {
    fn assistant(&mut self, message: &'a Message, calls: &'a [Call], profile: &Profile) {
        let calls = with_ids(message, calls, profile);
        let Some(said) = clean::assistant(message, &calls, profile) else { return };
        if self.messages.is_empty() {
            self.push(Cow::Owned(Message::user(LEAD)));
        } else if profile.alternates && self.last() == Some(Role::Assistant) {
            self.push(Cow::Owned(Message::user(GO_ON)));
        }
        self.push(said);
        for (call, id) in &calls {
            let result = call.result.as_ref();
            let answer =
                result.and_then(|(message, part)| clean::answer(message, *part, id, profile));
            self.push(answer.unwrap_or_else(|| Cow::Owned(Message::tool_error(id, NO_RESULT))));
        }
    }

    /// A late system message: only the first message may have that role, and
    /// that one was sent already.
    fn notice(&mut self, message: &Message, profile: &Profile) {
        let text = message.text();
        if !text.trim().is_empty() {
            self.user(Cow::Owned(Message::user(format!("[system] {text}"))), profile);
        }
    }

    fn user(&mut self, message: Cow<'a, Message>, profile: &Profile) {
        match self.last() {
            Some(Role::User) if self.opened => {
                let start = self.messages.pop().map(|start| start.parts().to_vec());
                self.push(with_parts(message, start.unwrap_or_default(), Vec::new(), profile));
            }
            Some(Role::User) if profile.is_strict => {
                if let Some(before) = self.messages.pop() {
                    self.push(with_parts(before, Vec::new(), message.parts().to_vec(), profile));
                }
            }
            Some(Role::Tool) if profile.is_strict => {
                self.push(Cow::Owned(Message::assistant(PAUSE)));
                self.push(message);
            }
            _ => self.push(message),
        }
    }

    /// Ends a message with the host's notes.
    fn note(&mut self, index: Option<usize>, notes: Option<&str>, profile: &Profile) {
        let message = index.and_then(|index| self.messages.get_mut(index));
        if let (Some(message), Some(notes)) = (message, notes) {
            let before = std::mem::replace(message, Cow::Owned(Message::user("")));
            *message = with_parts(before, Vec::new(), vec![Part::text(notes)], profile);
            self.noted = index;
        }
    }

    fn last(&self) -> Option<Role> {
        self.messages.last().map(|message| message.role())
    }

    fn push(&mut self, message: Cow<'a, Message>) {
        self.opened = false;
        self.messages.push(message);
    }
}

fn user<'a>(message: &'a Message, profile: &Profile) -> Cow<'a, Message> {
    let message = clean::user(message, profile);
    if message.parts().is_empty() {
        return Cow::Owned(message.into_owned().with_parts(vec![Part::text(EMPTY)]));
    }
    message
}

fn system<'a>(
    stored: &'a [Arc<Message>],
    around: Around<'_>,
    profile: &Profile,
) -> Option<Cow<'a, Message>> {
    let end = around.system_end.map(Part::text);
    let mut stored = stored.iter().map(|message| clean::user(message, profile));
    let first = match around.system {
        Some(text) => Cow::Owned(Message::system(text)),
        None => stored
            .find(|message| !message.parts().is_empty())
            .or_else(|| end.as_ref().map(|_| Cow::Owned(Message::new(Role::System, []))))?,
    };
    let others = stored.filter(|_| around.system.is_none());
    let more: Vec<_> = others.flat_map(|message| message.parts().to_vec()).chain(end).collect();
    let system = if more.is_empty() { first } else { with_parts(first, Vec::new(), more, profile) };
    if profile.is_strict && system.role() != Role::System {
        let same = Message::new(Role::System, system.parts().iter().cloned());
        return Some(Cow::Owned(same));
    }
    Some(system)
}

/// Puts parts before and after those of a message. In OpenAI's form texts
/// become one, since many endpoints take no list of them.
fn with_parts<'a>(
    message: Cow<'a, Message>,
    before: Vec<Part>,
    after: Vec<Part>,
    profile: &Profile,
) -> Cow<'a, Message> {
    let mut parts = before;
    parts.extend(message.parts().iter().cloned());
    parts.extend(after);
    if profile.is_openai_chat() {
        let native = parts.iter().filter_map(native_part);
        let texts: Option<Vec<_>> = native.map(|part| plain_text(&part)).collect();
        if let Some(texts) = texts {
            parts = vec![Part::text(texts.join("\n\n"))];
        }
    }
    Cow::Owned(message.into_owned().with_parts(parts))
}

fn plain_text(part: &Part) -> Option<String> {
    match part {
        Part::Text(text) if text.fields.is_none() => Some(text.text.clone()),
        _ => None,
    }
}

/// Gives each call an id that no other call of the message has.
fn with_ids<'a>(
    message: &Message,
    calls: &'a [Call],
    profile: &Profile,
) -> Vec<(&'a Call, String)> {
    let mut named = Vec::with_capacity(calls.len());
    let mut taken = HashSet::new();
    for call in calls {
        let Some(asked) = call.of(message) else { continue };
        let wanted = match asked.id.as_str() {
            id if id.trim().is_empty() => "call".to_owned(),
            id if profile.has_plain_ids() => id.replace(|c| !is_plain_id(c), "_"),
            id => id.to_owned(),
        };
        let mut id = wanted.clone();
        let mut count = 1_usize;
        while !taken.insert(id.clone()) {
            count = count.saturating_add(1);
            id = format!("{wanted}-{count}");
        }
        named.push((call, id));
    }
    named
}

const fn is_plain_id(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}
