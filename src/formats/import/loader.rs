//! Takes up one record after the other.

use std::mem;

use serde_json::value::RawValue;

use super::{
    Import, MAX_MESSAGE, Meta, NAME, SkipReason, Skipped, body::LISTS, claude_code, langchain,
    room::Room, scanner::Piece, shape::Shape, sharegpt,
};
use crate::{
    error::{Error, Result},
    formats::{Format, anthropic, gemini, openai_chat, openai_responses::Reader, without_spelling},
    message::{
        Message,
        json::{Members, elements, has_too_many_members, has_too_many_values},
        read::kind,
    },
};

const NO_ROOM: &str = "more than 64 MiB over the size of what was read";
const TOO_MANY: &str = "more values than a message has";

pub(super) struct Loader {
    pub(super) format: Option<Format>,
    pub(super) forced: bool,
    pub(super) messages: Vec<Message>,
    pub(super) summary: Option<String>,
    skipped: Vec<Skipped>,
    repaired_lines: usize,
    /// The record that is being read, and how many there were.
    at: usize,
    records: usize,
    /// Where in the record: `messages[3]: `.
    pub(super) place: String,
    items: Reader,
    pub(super) room: Room,
    pub(super) claude_code: claude_code::State,
    pub(super) sharegpt: sharegpt::State,
}

impl Loader {
    pub(super) fn new(format: Option<Format>) -> Self {
        Self {
            format,
            forced: format.is_some(),
            messages: Vec::new(),
            summary: None,
            skipped: Vec::new(),
            repaired_lines: 0,
            at: 0,
            records: 0,
            place: String::new(),
            items: Reader::default(),
            room: Room::default(),
            claude_code: claude_code::State::default(),
            sharegpt: sharegpt::State::default(),
        }
    }

    /// Reads a line, which may be a whole document. The first `summarized`
    /// lines are not read at all, broken or not.
    pub(super) fn line(&mut self, number: usize, json: &str, repaired: bool, summarized: usize) {
        self.begin_record(number);
        self.repaired(repaired);
        if self.records <= summarized {
            return self.skip(SkipReason::AlreadySummarized, "the meta file says so");
        }
        self.json(json);
    }

    /// Reads the whole of a record.
    pub(super) fn json(&mut self, json: &str) {
        self.room.read(json);
        match serde_json::from_str::<&RawValue>(json) {
            Ok(value) => self.record(value),
            Err(error) => self.skip(SkipReason::Malformed, error.to_string()),
        }
    }

    /// Counts a line that had to be repaired.
    pub(super) fn repaired(&mut self, repaired: bool) {
        self.repaired_lines = self.repaired_lines.saturating_add(usize::from(repaired));
    }

    pub(super) const fn begin_record(&mut self, number: usize) {
        self.at = number;
        self.records = self.records.saturating_add(1);
    }

    /// Forgets the records so far, of which nothing was taken up.
    pub(super) const fn begin_again(&mut self) {
        self.records = 0;
    }

    /// Begins an element of a list that is a file's only record.
    pub(super) const fn begin_element(&mut self, number: usize) {
        if self.records <= 1 {
            self.at = number;
        }
    }

    /// Reads an element of a list that is a document of its own.
    pub(super) fn record_of(&mut self, number: usize, piece: Piece) {
        self.begin_element(number);
        match piece {
            Piece::Json(value) => {
                self.room.read(value.get());
                self.object(&value);
            }
            Piece::TooLong => self.skip_too_long(),
        }
    }

    pub(super) fn skip_too_long(&mut self) {
        self.skip(SkipReason::TooLong, format!("more than {MAX_MESSAGE} bytes"));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.items.is_empty() && self.summary.is_none()
    }

    pub(super) fn skip(&mut self, reason: SkipReason, detail: impl Into<String>) {
        if let Some(known) = self.skipped.iter_mut().find(|known| known.reason == reason) {
            known.count = known.count.saturating_add(1);
            return;
        }
        let detail = self.place.clone() + &detail.into();
        self.skipped.push(Skipped { reason, count: 1, first: self.at, detail });
    }

    /// Begins anew after a summary that stands for all messages so far.
    pub(super) fn summarized(&mut self, summary: Option<String>) {
        self.flush();
        self.room.clear();
        for _ in mem::take(&mut self.messages) {
            self.skip(SkipReason::AlreadySummarized, "a summary follows");
        }
        self.claude_code.forget_last();
        self.summary = summary;
    }

    pub(super) fn finish(mut self, meta: Option<Meta>) -> Result<Import> {
        self.flush();
        if let Some(meta) = meta {
            self.summary = meta.summary.or(self.summary);
            self.format = Some(Format::PicoClaw);
        }
        match self.format {
            Some(format) if !self.messages.is_empty() || self.summary.is_some() => Ok(Import {
                format,
                messages: self.messages,
                summary: self.summary,
                skipped: self.skipped,
                repaired_lines: self.repaired_lines,
            }),
            _ => {
                let formats = Format::ALL.map(Format::as_str).join(", ");
                let why = self.skipped.first().map(|it| format!("; {it}")).unwrap_or_default();
                Err(Error::message(NAME, format!("no message of a known format ({formats}){why}")))
            }
        }
    }

    fn record(&mut self, value: &RawValue) {
        let Some(list) = elements(value) else { return self.object(value) };
        for (at, value) in (1..).zip(list) {
            self.begin_element(at);
            self.object(value);
        }
    }

    pub(super) fn object(&mut self, value: &RawValue) {
        let json = value.get();
        let is_large = has_too_many_values(json);
        if is_large && has_too_many_members(json) {
            return self.skip(SkipReason::TooLong, TOO_MANY);
        }
        let Some(members) = Members::of(json) else {
            let detail = format!("a record is a JSON object, this is {}", kind(value.get()));
            return self.skip(SkipReason::Malformed, detail);
        };
        let is_list = |name: &&str| members.get(name).is_some_and(|it| it.get().starts_with('['));
        if is_large && !LISTS.iter().any(is_list) {
            return self.skip(SkipReason::TooLong, TOO_MANY);
        }
        let Some(shape) = Shape::of(&members) else {
            return self.skip(SkipReason::NotAMessage, "no known kind of record");
        };
        match shape {
            Shape::Message(_) => self.message(value),
            _ if !self.accept(shape.format()) => {}
            Shape::Body(format) => self.body(format, &members),
            Shape::Line(Format::Codex) => self.codex_line(&members),
            Shape::Line(_) => self.claude_code_line(&members),
        }
    }

    /// Notes the format. A record of one that is not asked for is skipped.
    pub(super) fn accept(&mut self, found: Format) -> bool {
        if self.forced {
            let wanted = self.format.unwrap_or(found);
            if family(wanted) != family(found) {
                self.skip(SkipReason::NotAMessage, format!("this is {found}, not {wanted}"));
                return false;
            }
        } else {
            self.format = Some(match (self.format, found) {
                (None | Some(Format::OpenAiChat), Format::Anthropic) => Format::Anthropic,
                (None | Some(Format::OpenAiResponses), Format::Codex) => Format::Codex,
                (Some(Format::OpenAiChat), Format::OpenAiResponses) => found,
                (Some(format), _) => format,
                (None, found) => found,
            });
        }
        true
    }

    pub(super) fn message(&mut self, value: &RawValue) {
        let json = value.get();
        if self.is_too_much(json) {
            return;
        }
        let Some(members) = Members::of(json) else {
            let detail = format!("a message is a JSON object, this is {}", kind(json));
            return self.skip(SkipReason::Malformed, detail);
        };
        let found = match (Shape::of(&members), self.format) {
            // Among items a message looks like one of OpenAI's chat.
            (
                Some(Shape::Message(Format::OpenAiChat)),
                Some(Format::Codex | Format::OpenAiResponses),
            ) => Format::OpenAiResponses,
            (Some(Shape::Message(found)), _) => found,
            _ => return self.skip(SkipReason::NotAMessage, "no known kind of message"),
        };
        if !self.accept(found) {
            return;
        }
        if found == Format::OpenAiResponses {
            return self.item(value);
        }
        self.flush();
        let read = match found {
            Format::Gemini => gemini::read_message(value),
            Format::LangChain => langchain::read_message(&members),
            Format::ShareGpt => self.sharegpt.read_turn(&members),
            _ if self.is_anthropic(&members) => {
                if members.only(&["role", "content"]) {
                    anthropic::read_message(value)
                } else {
                    anthropic::read_spoken(&members)
                }
            }
            _ => openai_chat::read_message(json),
        };
        self.add(read);
    }

    /// Passes over what would take far more memory than it takes in the file.
    fn is_too_much(&mut self, json: &str) -> bool {
        if json.len() > MAX_MESSAGE {
            self.skip(SkipReason::TooLong, format!("{} bytes", json.len()));
        } else if has_too_many_values(json) {
            self.skip(SkipReason::TooLong, TOO_MANY);
        } else if !self.room.is_enough_for(json) {
            self.skip(SkipReason::NoRoom, NO_ROOM);
        } else {
            return false;
        }
        true
    }

    /// Takes up an item of OpenAI Responses.
    pub(super) fn item(&mut self, value: &RawValue) {
        if self.is_too_much(value.get()) {
            return;
        }
        if !self.room.open(value.get()) {
            return self.skip(SkipReason::NoRoom, NO_ROOM);
        }
        if let Err(problem) = self.items.push(value) {
            return self.skip(SkipReason::Malformed, problem);
        }
        self.hold_items();
    }

    /// Plain messages look the same in both formats: what was found decides.
    fn is_anthropic(&self, members: &Members<'_>) -> bool {
        let role = members.text("role");
        self.format == Some(Format::Anthropic)
            && matches!(role.as_deref(), Some("assistant" | "system" | "user"))
    }

    pub(super) fn add(&mut self, read: Result<Message, String>) {
        match read {
            Ok(message) => self.hold(message),
            Err(problem) => self.skip(SkipReason::Malformed, problem),
        }
    }

    /// Takes up a message, where there is room for it.
    pub(super) fn hold(&mut self, message: Message) {
        let message = without_spelling(message);
        if self.room.take(message.footprint()) {
            self.messages.push(message);
        } else {
            self.skip(SkipReason::NoRoom, NO_ROOM);
        }
    }

    /// Ends the messages that are made of items.
    pub(super) fn flush(&mut self) {
        self.items.close();
        self.hold_items();
    }

    fn hold_items(&mut self) {
        let messages = self.items.complete();
        if !messages.is_empty() {
            self.room.close();
        }
        for message in messages {
            self.hold(message);
        }
    }
}

/// Formats whose records look alike.
const fn family(format: Format) -> Format {
    match format {
        Format::Anthropic | Format::PicoClaw => Format::OpenAiChat,
        Format::Codex => Format::OpenAiResponses,
        other => other,
    }
}
