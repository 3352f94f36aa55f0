//! Session files of Claude Code: a record a line, an assistant message in as
//! many records as it has blocks.

use std::time::SystemTime;

use super::{SkipReason, loader::Loader};
use crate::{
    formats::anthropic,
    message::{Message, Role, json::Members},
};

#[derive(Default)]
pub(super) struct State {
    /// Whether the file is that of a side chain: then there is nothing else.
    is_side: Option<bool>,
    /// The provider's id of the newest assistant message, and where it is.
    last: Option<(String, usize)>,
}

impl State {
    pub(super) fn forget_last(&mut self) {
        self.last = None;
    }
}

impl Loader {
    pub(super) fn claude_code_line(&mut self, members: &Members<'_>) {
        let kind = members.text("type").unwrap_or_default();
        let Some(inner) = members.object("message") else {
            return self.skip(SkipReason::NotAMessage, format!("a record of type {kind:?}"));
        };
        let is_shown_only = ["isApiErrorMessage", "isVisibleInTranscriptOnly"];
        if is_shown_only.iter().any(|name| members.is_true(name))
            && !members.is_true("isCompactSummary")
        {
            return self.skip(SkipReason::NotAMessage, "shown to the user only");
        }
        let is_side = members.is_true("isSidechain");
        if is_side && !*self.claude_code.is_side.get_or_insert(is_side) {
            return self.skip(SkipReason::SideChain, "a record of another agent");
        }
        self.claude_code.is_side.get_or_insert(is_side);
        let message = match anthropic::read_spoken(&inner) {
            Ok(message) => message,
            Err(problem) => return self.skip(SkipReason::Malformed, problem),
        };
        if members.is_true("isCompactSummary") {
            return self.summarized(Some(message.text()));
        }
        match inner.text("id") {
            Some(id) if message.role() == Role::Assistant => {
                if let Some(at) = self.open_message(&id) {
                    return self.join(at, &message);
                }
                self.claude_code.last = Some((id, self.messages.len()));
            }
            _ => {}
        }
        self.hold(with_origin(message, members));
    }

    fn open_message(&self, id: &str) -> Option<usize> {
        self.claude_code.last.as_ref().filter(|(last, _)| last == id).map(|(_, at)| *at)
    }

    fn join(&mut self, at: usize, more: &Message) {
        if let Some(message) = self.messages.get_mut(at) {
            *message = more.parts().iter().cloned().fold(message.clone(), Message::with_part);
        }
    }
}

fn with_origin(mut message: Message, members: &Members<'_>) -> Message {
    if let Some(id) = members.text("uuid") {
        message = message.with_id(id);
    }
    let time = members.text("timestamp").and_then(|time| time.parse::<jiff::Timestamp>().ok());
    match time.and_then(|time| SystemTime::try_from(time).ok()) {
        Some(time) => message.with_time(time),
        None => message,
    }
}
