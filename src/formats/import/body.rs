//! Bodies and sessions: a list of messages, and what stands beside it.

use serde_json::value::RawValue;

use super::{loader::Loader, scanner::Piece, shape::Shape, sharegpt};
use crate::{
    formats::{Format, anthropic, gemini},
    message::{
        Message,
        json::{Members, elements},
    },
};

/// Where a body may have its messages.
pub(super) const LISTS: [&str; 5] =
    ["messages", "contents", "conversations", "conversation", "input"];

/// Returns the names of the lists that hold the messages of a format's body.
pub(super) const fn lists(format: Format) -> &'static [&'static str] {
    match format {
        Format::Gemini => &["contents"],
        Format::OpenAiResponses => &["input"],
        Format::ShareGpt => &["conversations", "conversation"],
        _ => &["messages"],
    }
}

impl Loader {
    pub(super) fn body(&mut self, format: Format, members: &Members<'_>) {
        self.open_body(format, members);
        for name in lists(format) {
            let list = members.get(name).and_then(elements).unwrap_or_default();
            for (at, value) in list.into_iter().enumerate() {
                self.place = format!("{name}[{at}]: ");
                self.take(format, value);
            }
        }
        self.end_body(format);
    }

    /// Takes up what stands beside the list. Returns where its messages begin.
    pub(super) fn open_body(&mut self, format: Format, members: &Members<'_>) -> usize {
        self.flush();
        self.sharegpt = sharegpt::State::default();
        let start = self.messages.len();
        match format {
            Format::Gemini => {
                let system = members.get("systemInstruction");
                self.system(
                    system.or_else(|| members.get("system_instruction")),
                    gemini::read_system,
                );
            }
            Format::OpenAiResponses => {
                self.messages.extend(members.text("instructions").map(Message::system));
                self.messages.extend(members.text("input").map(Message::user));
            }
            Format::ShareGpt => {
                self.messages.extend(members.text("system").map(Message::system));
            }
            _ => {
                if format == Format::PicoClaw {
                    let summary = members.text("summary");
                    self.summary = summary.filter(|text| !text.trim().is_empty());
                }
                self.system(members.get("system"), anthropic::read_system);
            }
        }
        start
    }

    /// Takes up an element of a body's list.
    pub(super) fn element(&mut self, format: Format, name: &str, at: usize, piece: Piece) {
        self.place = format!("{name}[{at}]: ");
        match piece {
            Piece::Json(value) => {
                self.room.read(value.get());
                self.take(format, &value);
            }
            Piece::TooLong => self.skip_too_long(),
        }
    }

    /// Takes up what stands behind the list of a body that is not held: what
    /// it is may be told only there, and its system prompt comes first.
    pub(super) fn close_body(
        &mut self,
        format: Format,
        start: usize,
        head: &Members<'_>,
        tail: &Members<'_>,
    ) {
        self.end_body(format);
        if tail.0.is_empty() {
            return;
        }
        let all = Members([head, tail].iter().flat_map(|it| it.0.iter().cloned()).collect());
        let format = Shape::of(&all).map_or(format, Shape::format);
        if !self.accept(format) {
            return;
        }
        if format == Format::PicoClaw && !self.forced {
            self.format = Some(format);
        }
        let end = self.messages.len();
        let summary = self.summary.take();
        self.open_body(format, tail);
        if format == Format::PicoClaw && self.summary.is_none() {
            self.summary = all.text("summary").filter(|text| !text.trim().is_empty());
        }
        self.summary = self.summary.take().or(summary);
        let added = self.messages.len().saturating_sub(end);
        if let Some(messages) = self.messages.get_mut(start..) {
            messages.rotate_right(added);
        }
    }

    fn end_body(&mut self, format: Format) {
        self.place.clear();
        if format == Format::OpenAiResponses {
            self.flush();
        }
    }

    fn take(&mut self, format: Format, value: &RawValue) {
        match format {
            Format::OpenAiResponses => self.item(value),
            _ => self.message(value),
        }
    }

    fn system(&mut self, value: Option<&RawValue>, read: fn(&RawValue) -> Result<Message, String>) {
        if let Some(value) = value {
            self.add(read(value));
        }
    }
}
