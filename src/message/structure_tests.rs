use std::sync::Arc;

use super::*;
use crate::message::{Role, ToolResult};

fn calls(ids: &[&str]) -> Message {
    ids.iter().fold(Message::assistant(""), |m, id| m.with_tool_call(*id, "read", "{}"))
}

fn result(id: &str) -> Message {
    Message::tool_result(id, "done")
}

fn user() -> Message {
    Message::user("and now?")
}

fn text() -> Message {
    Message::assistant("so it is")
}

fn structure(messages: Vec<Message>) -> Structure {
    Structure::of(&messages.into_iter().map(Arc::new).collect::<Vec<_>>())
}

fn cuts(messages: Vec<Message>) -> Vec<usize> {
    structure(messages).cuts().collect()
}

#[test]
fn empty() {
    let structure = structure(vec![]);
    assert_eq!(structure.cuts().collect::<Vec<_>>(), [0]);
    assert_eq!(structure.rounds().count(), 0);
    assert_eq!(structure.safe_cut_at_or_before(9), 0);
    assert_eq!(structure.safe_cut_at_or_after(1), None);
}

#[test]
fn parallel_calls_in_any_order_are_one_round() {
    let structure =
        structure(vec![user(), calls(&["a", "b"]), result("b"), result("a"), text(), user()]);
    assert_eq!(structure.turn_starts(), [0, 5]);
    assert_eq!(structure.rounds().collect::<Vec<_>>(), [Range { start: 1, end: 4 }]);
    assert_eq!(structure.cuts().collect::<Vec<_>>(), [0, 1, 4, 5, 6]);
    assert_eq!(structure.safe_cut_at_or_before(3), 1);
    assert_eq!(structure.safe_cut_at_or_after(2), Some(4));
    assert_eq!(structure.unit(2), 1..4);
    assert_eq!(structure.unit(4), 4..5);
}

#[test]
fn two_calling_assistants_before_both_results_are_one_round() {
    let messages = vec![user(), calls(&["a"]), calls(&["b"]), result("a"), result("b")];
    assert_eq!(cuts(messages), [0, 1, 5]);
    let messages = vec![user(), calls(&["a"]), calls(&["b"]), result("b"), result("a")];
    assert_eq!(cuts(messages), [0, 1, 5]);
}

#[test]
fn ids_used_again_pair_within_their_round() {
    let round = || vec![calls(&["call_0"]), result("call_0")];
    let structure = structure([round(), round(), round()].concat());
    assert_eq!(structure.rounds().collect::<Vec<_>>(), [0..2, 2..4, 4..6]);
    assert_eq!(structure.open_calls(), [0_usize; 0]);
}

#[test]
fn same_id_twice_before_both_results() {
    let messages = vec![calls(&["a"]), calls(&["a"]), result("a"), user(), result("a"), user()];
    assert_eq!(cuts(messages), [0, 5, 6]);
}

#[test]
fn results_in_user_messages() {
    let both = Message::new(
        Role::User,
        [ToolResult::new("a", "1").into(), ToolResult::new("b", "2").into()],
    );
    let structure = structure(vec![user(), calls(&["a", "b"]), both, text()]);
    assert_eq!(structure.turn_starts(), [0]);
    assert_eq!(structure.cuts().collect::<Vec<_>>(), [0, 1, 3, 4]);
}

#[test]
fn duplicates_stay_with_their_call_and_orphans_bind_to_nothing() {
    let messages = vec![user(), calls(&["a"]), result("a"), result("a"), text()];
    assert_eq!(cuts(messages), [0, 1, 4, 5]);
    assert_eq!(cuts(vec![user(), result("a"), calls(&["a"]), result("a")]), [0, 1, 2, 4]);
}

#[test]
fn an_open_call_and_all_after_it_stay_together() {
    let structure = structure(vec![user(), calls(&["a", "b"]), result("a"), user()]);
    assert_eq!(structure.open_calls(), [1]);
    assert_eq!(structure.cuts().collect::<Vec<_>>(), [0, 1]);
    assert_eq!(structure.rounds().collect::<Vec<_>>(), [Range { start: 1, end: 4 }]);
    assert_eq!(structure.safe_cut_at_or_after(2), None);
}

#[test]
fn a_call_is_given_up_once_the_conversation_has_gone_on() {
    let mut messages = vec![user(), calls(&["a"]), user(), user(), text()];
    assert_eq!(cuts(messages.clone()), [0, 1]);
    messages.push(user());
    assert_eq!(cuts(messages.clone()), [0, 1, 2, 3, 4, 5, 6]);
    messages.push(result("a"));
    assert_eq!(cuts(messages), [0, 1, 7]);
}

#[test]
fn a_call_that_was_given_up_takes_no_result_of_a_later_one() {
    let mut messages = vec![calls(&["call_0"]), user(), text(), user()];
    messages.extend([calls(&["call_0"]), result("call_0"), result("call_0")]);
    assert_eq!(cuts(messages), [0, 1, 2, 3, 4, 7]);
}

#[test]
fn calls_of_a_partial_message_are_not_waited_for() {
    assert_eq!(cuts(vec![user(), calls(&["a"]).partial(), user()]), [0, 1, 2, 3]);
    assert_eq!(cuts(vec![user(), calls(&["a"]).partial(), user(), result("a")]), [0, 1, 4]);
}

#[test]
fn a_carried_call_is_not_open() {
    let messages: Vec<_> = [calls(&["a"]), user(), text()].into_iter().map(Arc::new).collect();
    assert_eq!(Structure::of(&messages).cuts().collect::<Vec<_>>(), [0]);
    assert_eq!(Structure::of_history(&messages, 1).cuts().count(), 4);
}
