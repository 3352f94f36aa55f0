use super::*;

fn turn(n: usize) -> Vec<Message> {
    vec![Message::user(format!("question {n}")), Message::assistant(format!("answer {n}"))]
}

fn round(n: usize) -> Vec<Message> {
    let call = Message::assistant("").with_tool_call(format!("z{n}"), "read", "{}");
    vec![call, Message::tool_result(format!("z{n}"), "done")]
}

fn turns(count: usize) -> Vec<Message> {
    (0..count).flat_map(turn).collect()
}

/// A task and rounds under it.
fn tool_loop(rounds: usize) -> Vec<Message> {
    [Message::user("task")].into_iter().chain((0..rounds).flat_map(round)).collect()
}

struct Plan {
    messages: Vec<Arc<Message>>,
    sizes: Vec<Size>,
    keep: Keep,
    boundary: Boundary,
    limit: Option<u64>,
    carried: usize,
}

/// Each message weighs 10 characters and 10 tokens.
fn plan(messages: Vec<Message>, keep: usize) -> Plan {
    let sizes = vec![Size::new(10, Tokens::from_tokens(10)); messages.len()];
    let messages = messages.into_iter().map(Arc::new).collect();
    let keep = Keep::Messages(keep);
    Plan { messages, sizes, keep, boundary: Boundary::Turn, limit: None, carried: 0 }
}

impl Plan {
    fn split(&self) -> Result<Split, Skip> {
        split(&SplitInput {
            messages: &self.messages,
            carried: self.carried,
            sizes: &self.sizes,
            keep: self.keep,
            boundary: self.boundary,
            limit: self.limit.map(Tokens::from_tokens),
            base: Tokens::ZERO,
            bound: Tokens::from_tokens(20),
            floor: Tokens::from_tokens(12),
        })
    }

    fn cut(&self) -> usize {
        self.split().unwrap().cut
    }
}

#[test]
fn twenty_short_messages() {
    let split = plan(turns(10), 4).split().unwrap();
    assert_eq!(split, Split { cut: 16, carried: vec![], replaced: (0..16).collect() });
}

#[test]
fn a_turn_is_kept_whole() {
    assert_eq!(plan(turns(10), 3).cut(), 16);
    assert_eq!(Plan { boundary: Boundary::Round, ..plan(turns(10), 3) }.cut(), 17);
}

#[test]
fn fewer_messages_than_are_kept() {
    assert_eq!(plan(turns(2), 4).split(), Err(Skip::NothingToCut));
    assert_eq!(plan(vec![], 0).split(), Err(Skip::NothingToCut));
    assert_eq!(Plan { carried: 9, ..plan(turns(2), 1) }.split(), Err(Skip::NothingToCut));
}

#[test]
fn keep_characters() {
    let keep = |chars| Plan { keep: Keep::Chars(chars), ..plan(turns(10), 0) };
    assert_eq!(keep(40).cut(), 16);
    assert_eq!(keep(49).cut(), 16);
    assert_eq!(keep(0).cut(), 18, "at least one, and its turn");
    assert_eq!(keep(200).split(), Err(Skip::NothingToCut));
}

#[test]
fn the_cut_never_falls_between_call_and_result() {
    let mut messages = turns(1);
    messages.extend([vec![Message::user("read")], round(0), turn(1)].concat());
    messages.remove(5);
    let plan = Plan { boundary: Boundary::Round, ..plan(messages, 2) };
    assert_eq!(plan.cut(), 3);
}

#[test]
fn one_turn_without_rounds() {
    let mut messages = vec![Message::user("tell me a story")];
    messages.extend((0..20).map(|n| Message::assistant(format!("chapter {n}"))));
    assert_eq!(plan(messages.clone(), 4).split(), Err(Skip::TooFewTurns));
    // 210 tokens are too many and 70 with a summary are not.
    assert_eq!(Plan { limit: Some(100), ..plan(messages, 4) }.cut(), 17);
}

#[test]
fn a_long_tool_loop_is_cut_between_rounds() {
    let split = plan(tool_loop(25), 4).split().unwrap();
    assert_eq!(split, Split { cut: 47, carried: vec![0], replaced: (1..47).collect() });
    let messages = [turns(1), tool_loop(25)].concat();
    let split = plan(messages, 4).split().unwrap();
    assert_eq!((split.cut, split.carried), (49, vec![2]));
}

#[test]
fn a_tool_loop_that_outweighs_all_before_it_is_cut_as_well() {
    assert_eq!(plan([turns(2), tool_loop(4)].concat(), 4).cut(), 4);
    assert_eq!(plan([turns(1), tool_loop(4)].concat(), 4).cut(), 7);
}

#[test]
fn carried_rounds_do_not_make_a_tool_loop() {
    let mut messages = tool_loop(1);
    messages.extend((0..20).map(|n| Message::assistant(format!("chapter {n}"))));
    let plan = Plan { carried: 3, ..plan(messages, 4) };
    assert_eq!(plan.split(), Err(Skip::TooFewTurns));
}

#[test]
fn a_short_tool_loop_after_long_talk_is_kept_with_its_turn() {
    let messages = [turns(8), tool_loop(3)].concat();
    assert_eq!(plan(messages, 4).cut(), 16);
}

#[test]
fn what_is_left_must_be_below_the_limit() {
    // 7 messages of the last turn and a summary: 90 tokens; 4, the task and a summary: 70.
    let at = |limit| Plan { limit: Some(limit), ..plan([turns(8), tool_loop(3)].concat(), 4) };
    assert_eq!(at(90).cut(), 16);
    assert_eq!(at(89).cut(), 19);
    assert_eq!(at(69).split(), Err(Skip::NoProgress { kept: 90, limit: 69 }));
}

#[test]
fn one_round_too_large_to_cut() {
    let ids = ["a", "b", "c", "d", "e", "f"];
    let mut messages = vec![Message::user("task")];
    messages
        .push(ids.iter().fold(Message::assistant(""), |m, id| m.with_tool_call(*id, "read", "{}")));
    messages.extend(ids.iter().map(|id| Message::tool_result(*id, "done")));
    let skip = plan(messages.clone(), 4).split();
    assert_eq!(skip, Err(Skip::OneIrreducibleRound { tokens: 70 }));
    messages.pop();
    assert_eq!(plan(messages, 4).split(), Err(Skip::OpenCall));
}

#[test]
fn system_pinned_and_newest_user_are_carried() {
    let mut messages = tool_loop(25);
    messages.insert(0, Message::system("prompt"));
    messages.insert(4, Message::user("for ever").pinned());
    messages.insert(7, Message::system("notice"));
    let split = plan(messages, 4).split().unwrap();
    assert_eq!(split.carried, [0, 4, 7]);
    assert!(split.replaced.contains(&1), "a newer user message stands below");
}

#[test]
fn a_pinned_result_carries_its_round() {
    let mut messages = tool_loop(25);
    messages[4] = messages[4].clone().pinned();
    assert_eq!(plan(messages, 4).split().unwrap().carried, [0, 3, 4]);
}

#[test]
fn nothing_to_gain_at_or_below_the_floor() {
    let mut plan = plan(turns(3), 4);
    assert_eq!(plan.cut(), 2);
    plan.sizes.fill(Size::new(1, Tokens::from_tokens(6)));
    assert_eq!(plan.split(), Err(Skip::NothingToGain { replaced: 12, bound: 12 }));
}

#[test]
fn keep_last_looks_at_the_snapshot_alone() {
    let messages: Vec<_> =
        [turns(1), tool_loop(2), turns(3)].concat().into_iter().map(Arc::new).collect();
    assert_eq!(keep_last(&messages, 0, 7, 1), 5, "back before the call");
    assert_eq!(keep_last(&messages, 0, 6, 0), 5, "its result comes after the snapshot");
    assert_eq!(keep_last(&messages, 0, 7, 40), 0);
    assert_eq!(keep_last(&messages, 0, 99, 4), 9);
}

#[test]
fn halves_are_safe_and_even() {
    let arcs = |messages: Vec<Message>| messages.into_iter().map(Arc::new).collect::<Vec<_>>();
    assert_eq!(halves(&arcs(turns(6))), Some(6));
    assert_eq!(halves(&arcs(round(0))), None);
    assert_eq!(halves(&arcs(vec![])), None);
    assert_eq!(halves(&arcs(vec![Message::user("one")])), None);
    let mut messages = turns(6);
    messages[0] = Message::user("long ".repeat(100));
    assert_eq!(halves(&arcs(messages)), Some(1));
}
