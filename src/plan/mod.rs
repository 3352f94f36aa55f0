//! Pure decisions: is a compaction due, where is the cut, what is carried, is
//! it worth paying for, and what goes when there is no time to ask a model.

mod force;
mod prune;
mod split;
mod trigger;

use std::{fmt, sync::Arc};

pub(crate) use self::{
    force::force,
    prune::prune,
    split::{Boundary, Keep, SplitInput, cut_at, halves, keep_last, split},
};
pub use self::{
    prune::Prune,
    trigger::{Limits, Measured, Trigger},
};
use crate::{
    message::{Message, structure::Structure},
    session::Size,
    tokens::Tokens,
};

/// A history parted in two by a cut.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Split {
    /// Everything from this index of the history on stays as it is.
    pub(crate) cut: usize,
    /// What is below the cut and still sent word for word, ascending: system
    /// messages, pinned ones, and the newest user message if it is below. Where
    /// one of them is part of a round, the whole round.
    pub(crate) carried: Vec<usize>,
    /// The rest below the cut, ascending: what a summary stands for, or what
    /// is dropped.
    pub(crate) replaced: Vec<usize>,
}

impl Split {
    /// Parts a history at a safe cut of its structure.
    pub(crate) fn at(messages: &[Arc<Message>], structure: &Structure, cut: usize) -> Self {
        let newest = structure.turn_starts().last().copied();
        let below = messages.iter().take(cut).enumerate();
        let mut keep: Vec<bool> = below
            .map(|(i, m)| m.role().is_system() || m.is_pinned() || newest == Some(i))
            .collect();
        // A carried result needs its call, and a carried call its results.
        let mut done = 0;
        for index in 0..keep.len() {
            if index >= done && structure.is_tool(index) && keep.get(index) == Some(&true) {
                let round = structure.unit(index);
                done = round.end;
                for member in round.filter(|&member| structure.is_tool(member)) {
                    if let Some(keep) = keep.get_mut(member) {
                        *keep = true;
                    }
                }
            }
        }
        let (carried, replaced) =
            (0..keep.len()).partition(|&index| keep.get(index) == Some(&true));
        Self { cut, carried, replaced }
    }
}

/// Why no cut was made. Nothing was changed and nothing paid.
///
/// # Example
///
/// ```
/// use session_compaction::Skip;
///
/// assert_eq!(
///     Skip::TooFewTurns.to_string(),
///     "the conversation has fewer than two turns, and no tool rounds worth a cut"
/// );
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Skip {
    /// What is sent is not above the target that the host asked for.
    AlreadyFits {
        /// Tokens of history and summary.
        tokens: u64,
        /// The target.
        target: u64,
    },
    /// What would stay word for word, with the summary, is still above the
    /// limit that made the compaction due. Keep less, or use a larger window.
    NoProgress {
        /// Tokens after the compaction.
        kept: u64,
        /// The trigger's limit in tokens.
        limit: u64,
    },
    /// What lies below the messages to keep must be carried, or is nothing.
    NothingToCut,
    /// A summary could not be smaller than what it would replace, or the cut
    /// would go into a turn for less than what it keeps of it.
    NothingToGain {
        /// Tokens that would be replaced.
        replaced: u64,
        /// Tokens that they would have to exceed.
        bound: u64,
    },
    /// One round of tool calls and results fills the history below the
    /// messages to keep, and is never split. Prune its results, or keep less.
    OneIrreducibleRound {
        /// Tokens of the round.
        tokens: u64,
    },
    /// A tool call waits for its result, and everything from it on must stay.
    OpenCall,
    /// There are too few messages for an emergency compression.
    TooFewMessages {
        /// How many there are, system messages aside.
        messages: usize,
        /// How many it takes to be more than.
        min: usize,
    },
    /// Cuts are made between turns, and there is no second one yet.
    TooFewTurns,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlreadyFits { tokens, target } => {
                write!(f, "{tokens} tokens already fit into {target}")
            }
            Self::NoProgress { kept, limit } => write!(
                f,
                "what is kept and the summary would take {kept} tokens, still above the limit of {limit}"
            ),
            Self::NothingToCut => f.write_str("there is nothing below the messages to keep"),
            Self::NothingToGain { replaced, bound } => write!(
                f,
                "the {replaced} tokens to replace are not more than the {bound} that make it worth it"
            ),
            Self::OneIrreducibleRound { tokens } => write!(
                f,
                "one round of tool calls and results holds {tokens} tokens and cannot be split"
            ),
            Self::OpenCall => {
                f.write_str("a tool call waits for its result, and nothing before it can go")
            }
            Self::TooFewMessages { messages, min } => {
                write!(f, "{messages} messages are too few, it takes more than {min}")
            }
            Self::TooFewTurns => f.write_str(
                "the conversation has fewer than two turns, and no tool rounds worth a cut",
            ),
        }
    }
}

/// Why no safe cut takes anything away, where one was wanted at this index.
fn stuck(structure: &Structure, wanted: usize, sizes: &[Size]) -> Skip {
    if structure.is_safe_cut(wanted) {
        Skip::NothingToCut
    } else if structure.open_calls().first().is_some_and(|&open| open < wanted) {
        Skip::OpenCall
    } else {
        Skip::OneIrreducibleRound { tokens: tokens(sizes, structure.unit(wanted)).count() }
    }
}

/// Sums up the messages at these indexes, in 1/1024 tokens.
fn tokens(sizes: &[Size], indexes: impl IntoIterator<Item = usize>) -> Tokens {
    let sizes = indexes.into_iter().filter_map(|index| sizes.get(index));
    sizes.map(|size| size.tokens).sum()
}

#[cfg(test)]
pub(crate) mod properties;
