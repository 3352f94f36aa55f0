//! Where a history may be cut: turns, rounds, open calls and safe cuts.
//!
//! A cut at index `i` parts the messages below `i` from those at or above it.
//! It is safe when no tool call is parted from its results and no open call
//! is left below it.

use std::{collections::HashMap, ops::Range, sync::Arc};

use crate::message::{Message, Part, Role};

/// The turns, rounds and safe cuts of a history. Built in one pass.
///
/// A result belongs to the newest earlier call of its id that still waits for
/// one, so that ids may be used again in later rounds; else it is a duplicate
/// and stays with the newest earlier call of that id. A result without any
/// earlier call binds to nothing.
///
/// A call without a result is open: its result may still come, and everything
/// from it on stays together. It is given up once the conversation has gone on
/// without it, that is after a later user message, an answer to it, and one
/// more user message: otherwise one lost result would block every cut for ever.
/// The calls of a partial message were never complete and are not waited for.
#[derive(Clone, Debug)]
pub(crate) struct Structure {
    turn_starts: Vec<usize>,
    /// Messages with a call that is open, ascending.
    open_calls: Vec<usize>,
    /// Each call and a result of it, in the order of the results.
    pairs: Vec<(Place, Place)>,
    /// Messages that hold a call or a result.
    tool: Vec<bool>,
    /// One entry for each cut, from 0 to the number of messages.
    safe: Vec<bool>,
}

/// Where a part stands: the index of its message, and its own in there.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Place {
    pub(crate) message: usize,
    pub(crate) part: usize,
}

impl Structure {
    /// Reads a conversation.
    #[cfg(test)]
    pub(crate) fn of(messages: &[Arc<Message>]) -> Self {
        Self::of_history(messages, 0)
    }

    /// Reads a history whose first `carried` messages come from below an
    /// earlier cut: a call among them that has no result was given up then.
    pub(crate) fn of_history(messages: &[Arc<Message>], carried: usize) -> Self {
        let len = messages.len();
        let mut calls = Calls::default();
        let mut turn_starts = Vec::new();
        let mut tool = vec![false; len];
        for ((index, message), tool) in messages.iter().enumerate().zip(&mut tool) {
            if message.is_human() {
                turn_starts.push(index);
            }
            calls.turn(index, message);
            for (part, content) in message.parts().iter().enumerate() {
                let place = Place { message: index, part };
                match content {
                    Part::ToolCall(call) => calls.call(&call.id, place),
                    Part::ToolResult(result) => calls.result(&result.call_id, place),
                    _ => continue,
                }
                *tool = true;
            }
        }
        let mut open_calls = calls.open(carried);
        open_calls.retain(|&call| messages.get(call).is_some_and(|message| !message.is_partial()));
        let mut safe = vec![true; len.saturating_add(1)];
        let rest = open_calls.first().map(|&first| (first, len));
        let pairs = calls.pairs.iter().map(|(call, result)| (call.message, result.message));
        for (first, last) in merged(pairs.chain(rest).collect()) {
            let blocked = first.saturating_add(1)..=last;
            safe.get_mut(blocked).unwrap_or_default().fill(false);
        }
        Self { turn_starts, open_calls, pairs: calls.pairs, tool, safe }
    }

    /// Returns the number of messages.
    pub(crate) fn len(&self) -> usize {
        self.tool.len()
    }

    /// Returns where turns start: the messages of a person.
    pub(crate) fn turn_starts(&self) -> &[usize] {
        &self.turn_starts
    }

    /// Returns the messages that hold an open call, in order.
    pub(crate) fn open_calls(&self) -> &[usize] {
        &self.open_calls
    }

    /// Returns each call with a result of it, in the order of the results; a
    /// call with duplicate results comes several times.
    pub(crate) fn pairs(&self) -> &[(Place, Place)] {
        &self.pairs
    }

    /// Returns the ranges that no cut may part, in order: an assistant message
    /// with calls and all their results, or several that interleave. The last
    /// one reaches to the end where a call is open; an orphan is one of its own.
    #[cfg(test)]
    pub(crate) fn rounds(&self) -> impl Iterator<Item = Range<usize>> {
        let ends = self.cuts().skip(1).chain([self.len()]);
        let ranges = self.cuts().zip(ends).map(|(start, end)| start..end);
        ranges.filter(|range| self.has_tools(range.clone()))
    }

    /// Returns the smallest range around a message that no cut may part.
    pub(crate) fn unit(&self, index: usize) -> Range<usize> {
        let end = self.safe_cut_at_or_after(index.saturating_add(1)).unwrap_or(self.len());
        self.safe_cut_at_or_before(index)..end
    }

    /// Returns true when the message holds a tool call or a tool result.
    pub(crate) fn is_tool(&self, index: usize) -> bool {
        self.tool.get(index).copied().unwrap_or(false)
    }

    /// Returns true when a message of the range holds a tool call or result.
    pub(crate) fn has_tools(&self, range: Range<usize>) -> bool {
        self.tool.get(range).unwrap_or_default().contains(&true)
    }

    /// Returns true when a cut at this index parts no call from its results
    /// and leaves no open call below it. False beyond the end.
    pub(crate) fn is_safe_cut(&self, index: usize) -> bool {
        self.safe.get(index).copied().unwrap_or(false)
    }

    /// Returns the nearest safe cut that leaves no more below it than this one.
    pub(crate) fn safe_cut_at_or_before(&self, index: usize) -> usize {
        (0..=index.min(self.len())).rev().find(|&cut| self.is_safe_cut(cut)).unwrap_or(0)
    }

    /// Returns the nearest safe cut that leaves no less below it than this
    /// one; none where an open call forbids it, or beyond the end.
    pub(crate) fn safe_cut_at_or_after(&self, index: usize) -> Option<usize> {
        (index..=self.len()).find(|&cut| self.is_safe_cut(cut))
    }

    /// Returns the safe cuts, ascending; 0 is always one.
    pub(crate) fn cuts(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.safe.iter().enumerate().filter_map(|(cut, safe)| safe.then_some(cut))
    }
}

/// What is known of the calls while reading forward.
#[derive(Default)]
struct Calls<'a> {
    /// The calls of an id that wait for a result, oldest first.
    waiting: HashMap<&'a str, Vec<Place>>,
    newest: HashMap<&'a str, Place>,
    /// Call and result.
    pairs: Vec<(Place, Place)>,
    /// The newest user message that was answered, and the newest one at all.
    answered: Option<usize>,
    asked: Option<usize>,
    /// Waiting calls below this message are given up.
    given_up: usize,
}

impl<'a> Calls<'a> {
    fn turn(&mut self, index: usize, message: &Message) {
        if message.is_human() {
            self.given_up = self.answered.unwrap_or(self.given_up);
            self.asked = Some(index);
        } else if message.role() == Role::Assistant {
            self.answered = self.asked;
        }
    }

    fn call(&mut self, id: &'a str, place: Place) {
        self.waiting.entry(id).or_default().push(place);
        self.newest.insert(id, place);
    }

    fn result(&mut self, id: &'a str, place: Place) {
        let waiting = self.waiting.get_mut(id).and_then(|calls| {
            let newest = calls.last()?.message;
            // Calls of one message that share an id are answered in their order.
            let first = calls.partition_point(|call| call.message < newest);
            // A call that was given up takes no duplicate away from a newer one.
            (newest >= self.given_up).then(|| calls.remove(first))
        });
        if let Some(call) = waiting.or_else(|| self.newest.get(id).copied()) {
            self.pairs.push((call, place));
        }
    }

    fn open(&self, carried: usize) -> Vec<usize> {
        let from = self.given_up.max(carried);
        let waiting = self.waiting.values().flatten().map(|call| call.message);
        let mut open: Vec<_> = waiting.filter(|&call| call >= from).collect();
        open.sort_unstable();
        open.dedup();
        open
    }
}

/// Joins ranges (first and last message) that overlap, so that each cut is
/// looked at once, however many results one call has.
fn merged(mut ranges: Vec<(usize, usize)>) -> Vec<(usize, usize)> {
    ranges.sort_unstable();
    let mut merged: Vec<(usize, usize)> = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match merged.last_mut() {
            Some((_, end)) if first <= *end => *end = last.max(*end),
            _ => merged.push((first, last)),
        }
    }
    merged
}

#[cfg(test)]
#[path = "structure_tests.rs"]
mod tests;
