//! Where to cut for a summary, and whether it is worth paying for.

use std::sync::Arc;

use super::{Size, Skip, Split, stuck, tokens};
use crate::{
    message::{Message, structure::Structure},
    tokens::Tokens,
};

/// How much of the newest part stays word for word, at least.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Keep {
    /// As many messages as fit into this many characters, at least one.
    Chars(u64),
    Messages(usize),
    /// As many messages as fit into this many tokens, perhaps none.
    Tokens(Tokens),
}

/// Where cuts are made. Never through a round or an open call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Boundary {
    Round,
    /// Before a user message; in a long tool loop as [`Boundary::Round`].
    Turn,
}

/// All that the decision depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitInput<'a> {
    /// The history: the carried messages, then the window.
    pub(crate) messages: &'a [Arc<Message>],
    /// How many of them are carried.
    pub(crate) carried: usize,
    /// The size of each message.
    pub(crate) sizes: &'a [Size],
    pub(crate) keep: Keep,
    pub(crate) boundary: Boundary,
    /// The trigger's limit. None: a compaction is wanted whatever is left.
    pub(crate) limit: Option<Tokens>,
    /// What is sent beside history and summary: prompt, tools.
    pub(crate) base: Tokens,
    /// The most that a new summary takes, fence included.
    pub(crate) bound: Tokens,
    /// The least that one takes: its empty fence. Whether an answer is smaller
    /// than what it replaces is checked once it is there; here only those
    /// compactions are refused that could not gain whatever the answer is.
    pub(crate) floor: Tokens,
}

/// Decides where to cut: before the newest messages that the rule keeps, moved
/// back to the nearest safe cut and, with [`Boundary::Turn`], further back to
/// the start of a turn.
///
/// The cut goes between two rounds of the turn instead where the turn is a long
/// tool loop, that is where its rounds below this cut weigh more than what is
/// kept of it, or more than all that a cut before the turn replaces; and where
/// a cut before the turn would leave more than the limit and this one does not.
/// None of it holds for what a cut before a turn has left, so that planning
/// again right after a compaction finds nothing to do.
///
/// # Errors
///
/// The reason why no cut helps. What is returned replaces at least one message
/// and cuts at least one from the window.
pub(crate) fn split(input: &SplitInput<'_>) -> Result<Split, Skip> {
    let wanted = input.wanted();
    if wanted <= input.carried {
        return Err(Skip::NothingToCut);
    }
    let structure = Structure::of_history(input.messages, input.carried);
    let at_round = structure.safe_cut_at_or_before(wanted);
    let Some(round) = input.candidate(&structure, at_round) else {
        return Err(stuck(&structure, wanted, input.sizes));
    };
    let chosen = match input.boundary {
        Boundary::Round => round,
        Boundary::Turn => input.prefer_turn(&structure, round)?,
    };
    if chosen.replaced <= input.floor {
        return Err(Skip::NothingToGain {
            replaced: chosen.replaced.count(),
            bound: input.floor.count(),
        });
    }
    match input.limit {
        Some(limit) if chosen.kept > limit => {
            Err(Skip::NoProgress { kept: chosen.kept.count(), limit: limit.count() })
        }
        _ => Ok(chosen.split),
    }
}

struct Candidate {
    split: Split,
    /// Tokens that a summary would stand for.
    replaced: Tokens,
    /// Tokens of everything that is sent afterwards.
    kept: Tokens,
}

impl SplitInput<'_> {
    /// The first message that the keep rule asks for.
    fn wanted(&self) -> usize {
        let len = self.messages.len();
        let keep = match self.keep {
            Keep::Messages(keep) => keep,
            Keep::Tokens(limit) => {
                let mut tokens = Tokens::ZERO;
                let fits = self.sizes.iter().take(len).rev().take_while(|size| {
                    tokens += size.tokens;
                    tokens <= limit
                });
                fits.count()
            }
            Keep::Chars(limit) => {
                let mut chars = 0_u64;
                let fits = self.sizes.iter().take(len).rev().take_while(|size| {
                    chars = chars.saturating_add(size.chars);
                    chars <= limit
                });
                fits.count().max(1)
            }
        };
        len.saturating_sub(keep)
    }

    /// The cut at this index, if it takes anything away.
    fn candidate(&self, structure: &Structure, cut: usize) -> Option<Candidate> {
        let split = Split::at(self.messages, structure, cut);
        if cut <= self.carried || split.replaced.is_empty() {
            return None;
        }
        let replaced = tokens(self.sizes, split.replaced.iter().copied());
        let kept = self.sent() - replaced;
        Some(Candidate { split, replaced, kept })
    }

    /// Tokens of everything, with a summary as large as it may be.
    fn sent(&self) -> Tokens {
        let all = tokens(self.sizes, 0..self.messages.len());
        all + self.base + self.bound
    }

    /// Chooses between this cut and the one before its turn.
    fn prefer_turn(&self, structure: &Structure, round: Candidate) -> Result<Candidate, Skip> {
        let at_round = round.split.cut;
        let starts = structure.turn_starts();
        let start = starts
            .iter()
            .rev()
            .copied()
            .find(|&start| start <= at_round && structure.is_safe_cut(start))
            .filter(|&start| start > self.carried)
            .unwrap_or(self.carried);
        let turn = self.candidate(structure, start);

        let gained = turn.as_ref().map(|turn| turn.replaced);
        let rest = round.replaced - gained.unwrap_or_default();
        let stays = tokens(self.sizes, at_round..self.messages.len());
        let long_loop = structure.has_tools(start..at_round)
            && rest > gained.map_or(stays, |gained| gained.min(stays));
        let left = turn.as_ref().map_or_else(|| self.sent(), |turn| turn.kept);
        let too_much = self.limit.is_some_and(|limit| left > limit && round.kept <= limit);
        match turn {
            _ if long_loop || too_much => Ok(round),
            Some(turn) => Ok(turn),
            None if starts.len() < 2 => Err(Skip::TooFewTurns),
            None => Err(Skip::NothingToGain { replaced: rest.count(), bound: stays.count() }),
        }
    }
}

/// Returns where the last `keep` messages of a snapshot begin, moved back to
/// the nearest safe cut of the snapshot. What was appended after it does not
/// matter.
pub(crate) fn keep_last(
    messages: &[Arc<Message>],
    carried: usize,
    snapshot_len: usize,
    keep: usize,
) -> usize {
    let snapshot = messages.get(..snapshot_len).unwrap_or(messages);
    let wanted = snapshot.len().saturating_sub(keep);
    Structure::of_history(snapshot, carried).safe_cut_at_or_before(wanted)
}

/// Parts a history where the host wants it, at a safe cut.
///
/// # Errors
///
/// [`Skip::NothingToCut`] where nothing but carried messages lies below.
pub(crate) fn cut_at(messages: &[Arc<Message>], carried: usize, cut: usize) -> Result<Split, Skip> {
    let split = Split::at(messages, &Structure::of_history(messages, carried), cut);
    if cut <= carried || split.replaced.is_empty() {
        return Err(Skip::NothingToCut);
    }
    Ok(split)
}

/// Returns the safe cut that parts the messages into the most equal halves by
/// characters; none where there is no safe cut inside. A call without a result
/// does not matter here: what is summarized has been given up.
pub(crate) fn halves(messages: &[Arc<Message>]) -> Option<usize> {
    // So that short messages count as well.
    const OVERHEAD: usize = 16;
    let structure = Structure::of_history(messages, messages.len());
    let mut below = vec![0_usize];
    for message in messages {
        let sum = below.last().copied().unwrap_or(0);
        below.push(sum.saturating_add(message.chars()).saturating_add(OVERHEAD));
    }
    let all = below.last().copied().unwrap_or(0);
    structure
        .cuts()
        .filter(|&cut| cut > 0 && cut < messages.len())
        .min_by_key(|&cut| below.get(cut).map(|below| all.abs_diff(below.saturating_mul(2))))
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;
