//! What goes when the context is too large and there is no time for a model.

use std::sync::Arc;

use super::{Size, Skip, Split, stuck};
use crate::message::{Message, structure::Structure};

/// Decides what emergency compression drops: the older half of the window,
/// system and pinned messages aside, moved back to the nearest safe cut, or
/// forward where that would drop nothing. [`Split::replaced`] is what is
/// dropped; the carried messages, among them the newest user message, stay.
///
/// What is left is never empty, and opens with a tool result only where a
/// carried user message stands before it.
///
/// # Errors
///
/// [`Skip::TooFewMessages`] where the history has, system messages aside, no
/// more than `min_messages`; else the reason why no cut drops anything.
pub(crate) fn force(
    messages: &[Arc<Message>],
    carried: usize,
    sizes: &[Size],
    min_messages: usize,
) -> Result<Split, Skip> {
    let spoken = messages.iter().filter(|message| !message.role().is_system()).count();
    if spoken <= min_messages {
        return Err(Skip::TooFewMessages { messages: spoken, min: min_messages });
    }
    let structure = Structure::of_history(messages, carried);
    let wanted = middle(messages, carried);
    // What the largest cut does not drop, no cut drops.
    let all = Split::at(messages, &structure, messages.len());
    let first = all.replaced.first().copied().ok_or(Skip::NothingToCut)?;
    let drops = |cut: &usize| *cut > first && *cut > carried;
    let (before, after): (Vec<_>, Vec<_>) = structure
        .cuts()
        .filter(|cut| drops(cut) && leaves_opening(messages, &structure, *cut))
        .partition(|&cut| cut <= wanted);
    let cut = before.last().or(after.first());
    cut.map(|&cut| Split::at(messages, &structure, cut))
        .ok_or_else(|| stuck(&structure, wanted.max(first.saturating_add(1)), sizes))
}

/// The index below which half of what may be dropped stands, rounded down.
fn middle(messages: &[Arc<Message>], carried: usize) -> usize {
    let free: Vec<_> = (carried..)
        .zip(messages.iter().skip(carried))
        .filter(|(_, message)| !message.role().is_system() && !message.is_pinned())
        .map(|(index, _)| index)
        .collect();
    free.get(free.len() / 2).copied().unwrap_or(carried)
}

/// True when what stays does not begin with a tool result, or a carried user
/// message stands before it.
fn leaves_opening(messages: &[Arc<Message>], structure: &Structure, cut: usize) -> bool {
    let user_carried = structure.turn_starts().last().is_some_and(|&newest| newest < cut);
    let opens = messages.get(cut).is_some_and(|message| message.tool_results().next().is_none());
    opens || user_carried
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{message::Part, tokens::Tokens};

    fn task_with_rounds(rounds: usize) -> Vec<Arc<Message>> {
        let mut messages = vec![Message::user("long task")];
        for n in 0..rounds {
            messages.push(Message::assistant("").with_tool_call(format!("z{n}"), "read", "{}"));
            messages.push(Message::tool_result(format!("z{n}"), "res"));
        }
        messages.into_iter().map(Arc::new).collect()
    }

    fn turns(count: usize) -> Vec<Arc<Message>> {
        let turn = |n| [Message::user(format!("q{n}")), Message::assistant(format!("a{n}"))];
        (0..count).flat_map(turn).map(Arc::new).collect()
    }

    fn force(messages: &[Arc<Message>], carried: usize, min: usize) -> Result<Split, Skip> {
        super::force(messages, carried, &vec![Size::new(8, Tokens::from_tokens(2)); 60], min)
    }

    #[test]
    fn older_half_goes() {
        let split = force(&turns(10), 0, 4).unwrap();
        assert_eq!(split, Split { cut: 10, carried: vec![], replaced: (0..10).collect() });
    }

    #[test]
    fn the_task_stays_and_rounds_stay_whole() {
        let split = force(&task_with_rounds(25), 0, 4).unwrap();
        assert_eq!(split, Split { cut: 25, carried: vec![0], replaced: (1..25).collect() });
        let again: Vec<_> = [0].into_iter().chain(25..51).collect();
        let messages = task_with_rounds(25);
        let rest: Vec<_> = again.iter().map(|&index| Arc::clone(&messages[index])).collect();
        let split = force(&rest, 1, 4).unwrap();
        assert_eq!((split.cut, split.carried), (13, vec![0]));
    }

    #[test]
    fn system_and_pinned_stay_and_are_not_counted() {
        let mut messages = turns(4);
        messages.insert(1, Arc::new(Message::system("notice")));
        messages.insert(3, Arc::new(Message::user("for ever").pinned()));
        let split = force(&messages, 0, 4).unwrap();
        assert_eq!(split.carried, [1, 3]);
        assert_eq!(split.replaced, [0, 2, 4, 5]);
    }

    #[test]
    fn too_few() {
        let mut messages = turns(2);
        messages.insert(0, Arc::new(Message::system("prompt")));
        let skip = Err(Skip::TooFewMessages { messages: 4, min: 4 });
        assert_eq!(force(&messages, 0, 4), skip);
    }

    #[test]
    fn a_round_across_the_middle_goes_only_where_nothing_else_does() {
        let mut messages = vec![Message::user("task")];
        let ids = ["a", "b", "c", "d", "e"];
        messages.push(
            ids.iter().fold(Message::assistant(""), |m, id| m.with_tool_call(*id, "read", "{}")),
        );
        messages.extend(ids.iter().map(|id| Message::tool_result(*id, "res")));
        let messages: Vec<_> = messages.into_iter().map(Arc::new).collect();
        let split = force(&messages, 0, 4).unwrap();
        assert_eq!(split, Split { cut: 7, carried: vec![0], replaced: (1..7).collect() });
        assert_eq!(force(&messages[..6], 0, 4), Err(Skip::OpenCall));
    }

    #[test]
    fn no_orphan_opens_what_is_left_without_a_user_before_it() {
        let mut messages = turns(4);
        messages.insert(4, Arc::new(Message::tool_result("nobody", "orphan")));
        assert_eq!(force(&messages, 0, 4).unwrap().cut, 3);
        let results = Message::new(
            crate::message::Role::User,
            [Part::ToolResult(Box::new(crate::message::ToolResult::new("nobody", "orphan")))],
        );
        messages[4] = Arc::new(results);
        assert_eq!(force(&messages, 0, 4).unwrap().cut, 3);
    }
}
