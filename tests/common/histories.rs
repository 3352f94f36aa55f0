//! Random histories as agents leave them: parallel calls, results that
//! interleave or never come, ids used again, results in Anthropic's form,
//! duplicates, orphans, blanks, images, reasoning, pinned messages, system
//! notices in the middle.
//!
//! A history is built from steps of four random bytes, so that a property test
//! can shrink it and a mass test can make it from a seed.

use std::collections::HashMap;

use session_compaction::{Media, Message, Origin, Part, Reasoning, Role, ToolResult};

/// A history, and what is true of it by construction.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) messages: Vec<Message>,
    /// Index of a message with a call, index of one with its result.
    pub(crate) pairs: Vec<(usize, usize)>,
    /// The same of further results, with the newest call of their id.
    pub(crate) duplicates: Vec<(usize, usize)>,
    /// Calls whose result has not come: message index and id.
    pub(crate) open: Vec<(usize, String)>,
    pub(crate) parallel_calls: usize,
    newest_call: HashMap<String, usize>,
    last_answered: Option<String>,
    calls: usize,
}

/// Builds a history from random steps.
pub(crate) fn build(steps: &[[u8; 4]]) -> History {
    let mut history = History::default();
    for &step in steps {
        history.grow(step);
    }
    history
}

/// Makes random steps from a seed, for mass tests.
pub(crate) fn steps(seed: u64, max: u32) -> Vec<[u8; 4]> {
    let mut state = seed;
    let mut next = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let mut step = || {
        let [a, b, c, d, ..] = next().to_le_bytes();
        [a, b, c, d]
    };
    let count = u32::from_le_bytes(step()) % (max + 1);
    (0..count).map(|_| step()).collect()
}

impl History {
    /// Adds what one step asks for: a message, a round, or a part of one.
    pub(crate) fn grow(&mut self, [kind, a, b, c]: [u8; 4]) {
        match kind % 16 {
            0..=3 => self.user(a, b),
            4..=5 => self.assistant(a, b),
            6..=9 => self.round(a, b, c),
            10..=11 => self.late_result(a, b),
            12 => self.late_results_in_one(a, b),
            13 => self.push(a, Message::system(format!("notice {b}"))),
            14 => self.duplicate(a, b),
            _ => self.push(a, Message::tool_result(format!("nobody-{b}"), "orphan")),
        }
    }

    fn push(&mut self, pin: u8, message: Message) {
        let message = message.with_id(format!("m{}", self.messages.len()));
        self.messages.push(if pin.is_multiple_of(16) { message.pinned() } else { message });
    }

    fn user(&mut self, a: u8, b: u8) {
        let index = self.messages.len();
        let message = match b % 12 {
            0 => Message::user("  "),
            1 => Message::new(
                Role::User,
                [Part::text("look"), Media::image_url("https://example.org/a.png").into()],
            ),
            _ => Message::user(format!("question {index} {}", "x".repeat(b.into()))),
        };
        self.push(a, message);
    }

    fn assistant(&mut self, a: u8, b: u8) {
        let message = match b % 6 {
            0 => Message::assistant(""),
            1 => Message::new(
                Role::Assistant,
                [
                    Reasoning::new("thought", Origin::Anthropic).with_signature("sig").into(),
                    Part::text("answer"),
                ],
            ),
            _ => Message::assistant(format!("answer {b}")),
        };
        self.push(a, message);
    }

    fn round(&mut self, a: u8, b: u8, c: u8) {
        let index = self.messages.len();
        let count = usize::from(b % 4) + 1;
        let mut message = Message::assistant(if b & 64 == 0 { "" } else { "let me look" });
        for n in 0..count {
            self.calls += 1;
            let again = format!("call_{n}");
            let waits = self.open.iter().any(|(_, id)| *id == again);
            let id = if b & 128 == 0 && !waits { again } else { format!("c{}", self.calls) };
            message = message.with_tool_call(&id, "read_file", r#"{"path":"a"}"#);
            self.newest_call.insert(id.clone(), index);
            self.open.push((index, id));
        }
        self.parallel_calls += usize::from(count > 1);
        self.push(a, message);
        let from = self.open.len() - count;
        match c % 8 {
            0..=2 => (0..count).for_each(|_| self.answer(from, c)),
            3 => (0..count).rev().for_each(|n| self.answer(from + n, c)),
            4..=5 => self.answer_in_one(from, c),
            6 => self.answer(from, c),
            _ => {}
        }
    }

    fn late_result(&mut self, a: u8, b: u8) {
        if !self.open.is_empty() {
            self.answer(usize::from(a) % self.open.len(), b);
        }
    }

    fn late_results_in_one(&mut self, a: u8, b: u8) {
        if !self.open.is_empty() {
            self.answer_in_one(usize::from(a) % self.open.len(), b);
        }
    }

    fn duplicate(&mut self, a: u8, b: u8) {
        let Some(id) = self.last_answered.clone() else { return };
        if self.open.iter().any(|(_, open)| *open == id) {
            return;
        }
        self.duplicates.push((self.newest_call[&id], self.messages.len()));
        self.push(a, result_message(&[id], b));
    }

    fn answer(&mut self, open: usize, b: u8) {
        let (call, id) = self.open.remove(open);
        self.pairs.push((call, self.messages.len()));
        self.last_answered = Some(id.clone());
        self.push(b / 2, result_message(&[id], b));
    }

    /// All open calls from an index on, answered in one user message.
    fn answer_in_one(&mut self, from: usize, b: u8) {
        let answered = self.open.split_off(from);
        let index = self.messages.len();
        self.pairs.extend(answered.iter().map(|&(call, _)| (call, index)));
        self.last_answered = answered.last().map(|(_, id)| id.clone());
        let ids: Vec<_> = answered.into_iter().map(|(_, id)| id).collect();
        self.push(b / 2, result_message(&ids, b | 1));
    }
}

/// Results as a tool message, or (odd `b`) as parts of a user message, to
/// which a person may have added words.
fn result_message(ids: &[String], b: u8) -> Message {
    let role = if b & 1 == 0 { Role::Tool } else { Role::User };
    let text = format!("result {}", "y".repeat(usize::from(b) * 4));
    let results = ids.iter().map(|id| ToolResult::new(id, text.clone()).into());
    let words = (role == Role::User && b & 32 != 0).then(|| Part::text("and hurry"));
    Message::new(role, results.chain(words))
}
