//! What holds for every history, however it came about.

use std::{collections::HashSet, sync::Arc};

use proptest::prelude::*;

use super::{
    force::force,
    prune::{Prune, prune},
    split::{Boundary, Keep, SplitInput, halves, keep_last, split},
    *,
};
use crate::message::Role;

#[path = "../../tests/common/histories.rs"]
pub(crate) mod histories;

use histories::History;

/// A session, with the indexes of the generated history in place of messages.
struct Session<'a> {
    all: Vec<Arc<Message>>,
    made: &'a History,
    /// Carried, then the window.
    history: Vec<usize>,
    carried: usize,
    added: usize,
    gone: HashSet<usize>,
    /// What the host has pinned since it came.
    pins: HashSet<usize>,
}

impl<'a> Session<'a> {
    fn new(made: &'a History) -> Self {
        let all = made.messages.iter().cloned().map(Arc::new).collect();
        let (gone, pins) = (HashSet::new(), HashSet::new());
        Self { all, made, history: vec![], carried: 0, added: 0, gone, pins }
    }

    fn append(&mut self, count: usize) {
        let end = self.added.saturating_add(count).min(self.all.len());
        self.history.extend(self.added..end);
        self.added = end;
    }

    fn messages(&self) -> Vec<Arc<Message>> {
        let marked = |&index: &usize| {
            let message = Arc::clone(&self.all[index]);
            if self.pins.contains(&index) {
                return Arc::new(Arc::unwrap_or_clone(message).pinned());
            }
            message
        };
        self.history.iter().map(marked).collect()
    }

    fn pin(&mut self, nth: usize) {
        if let Some(index) = self.history.get(nth % self.history.len().max(1)) {
            self.pins.insert(*index);
        }
    }

    /// Checks a split against what is true by construction, and applies it.
    fn apply(&mut self, split: &Split) {
        let mut below: Vec<_> = split.carried.iter().chain(&split.replaced).copied().collect();
        below.sort_unstable();
        assert_eq!(below, (0..split.cut).collect::<Vec<_>>(), "each below the cut once");
        assert!(split.cut > self.carried && split.cut <= self.history.len());
        assert!(!split.replaced.is_empty());
        assert!(split.carried.is_sorted() && split.replaced.is_sorted());

        let newest = self.history.iter().rposition(|&index| self.all[index].is_human());
        for &index in &split.replaced {
            let message = &self.all[self.history[index]];
            assert!(!message.is_pinned() && !message.role().is_system());
            assert!(!self.pins.contains(&self.history[index]), "what the host pinned stays");
            assert_ne!(Some(index), newest, "the newest user message stays");
        }
        let before: HashSet<_> = self.history.iter().copied().collect();
        let replaced: HashSet<_> =
            split.replaced.iter().map(|&index| self.history[index]).collect();
        for (call, result) in self.made.pairs.iter().chain(&self.made.duplicates) {
            if before.contains(call) && before.contains(result) {
                let parted = replaced.contains(call) != replaced.contains(result);
                assert!(!parted, "call {call} and result {result} stay together");
            }
        }
        let late = self.made.pairs.iter().filter(|(_, result)| *result >= self.added);
        let open = self.made.open.iter().map(|(call, _)| call);
        for call in late.map(|(call, _)| call).chain(open) {
            let kept = !replaced.contains(call) || self.given_up(*call);
            assert!(kept, "the result of call {call} may still come");
        }

        let tail = self.history.split_off(split.cut);
        let carried = split.carried.iter().map(|&index| self.history[index]);
        self.history = carried.chain(tail).collect();
        self.carried = split.carried.len();
        self.gone.extend(replaced);
    }

    fn given_up(&self, call: usize) -> bool {
        let mut later = self.all[..self.added].iter().skip(call + 1);
        later.any(|m| m.is_human())
            && later.any(|m| m.role() == Role::Assistant)
            && later.any(|m| m.is_human())
    }
}

fn sizes(messages: &[Arc<Message>]) -> Vec<Size> {
    let size = |message: &Arc<Message>| {
        let chars = message.chars() as u64;
        Size::new(chars, Tokens::from_units(chars * 256) + Tokens::from_tokens(4))
    };
    messages.iter().map(size).collect()
}

fn keep() -> impl Strategy<Value = Keep> {
    prop_oneof![(0..9_usize).prop_map(Keep::Messages), (0..4000_u64).prop_map(Keep::Chars)]
}

#[derive(Clone, Debug)]
struct Case {
    steps: Vec<[u8; 4]>,
    /// How many messages are added before each compaction, and whether it is
    /// a forced one.
    rounds: Vec<(usize, bool)>,
    /// What is pinned before each of them.
    pins: Vec<Option<usize>>,
    keep: Keep,
    boundary: Boundary,
    limit: Option<Tokens>,
}

fn case() -> impl Strategy<Value = Case> {
    (
        prop::collection::vec(any::<[u8; 4]>(), 0..90),
        prop::collection::vec((0..60_usize, prop::bool::weighted(0.3)), 1..7),
        prop::collection::vec(prop::option::of(0..90_usize), 7),
        keep(),
        prop_oneof![Just(Boundary::Turn), Just(Boundary::Round)],
        prop::option::of((0..4_000_u64 * 1024).prop_map(Tokens::from_units)),
    )
        .prop_map(|(steps, rounds, pins, keep, boundary, limit)| Case {
            steps,
            rounds,
            pins,
            keep,
            boundary,
            limit,
        })
}

/// Plays a case and returns how many compactions were made.
fn play(case: &Case) -> usize {
    let made = histories::build(&case.steps);
    let mut session = Session::new(&made);
    let mut compactions = 0;
    for (&(count, forced), pin) in case.rounds.iter().zip(&case.pins) {
        session.append(count);
        if let Some(&nth) = pin.as_ref() {
            session.pin(nth);
        }
        let messages = session.messages();
        let sizes = sizes(&messages);
        if forced {
            if let Ok(cut) = force(&messages, session.carried, &sizes, 4) {
                let user_before = cut.carried.iter().any(|&index| messages[index].is_human());
                let opens =
                    messages.get(cut.cut).is_some_and(|m| m.tool_results().next().is_none());
                session.apply(&cut);
                assert!(user_before || opens);
                assert!(!session.history.is_empty());
                compactions += 1;
            }
            continue;
        }
        let input = input(case, &messages, &sizes, session.carried);
        let Ok(cut) = split(&input) else { continue };
        if let Keep::Messages(keep) = case.keep {
            assert!(messages.len() - cut.cut >= keep);
        }
        session.apply(&cut);
        compactions += 1;

        let messages = session.messages();
        let sizes = self::sizes(&messages);
        let again = self::input(case, &messages, &sizes, session.carried);
        assert!(split(&again).is_err(), "a second plan finds nothing to do");
    }
    let left: HashSet<_> = session.history.iter().copied().collect();
    assert!(session.history.is_sorted(), "order is kept");
    for index in 0..session.added {
        assert!(left.contains(&index) != session.gone.contains(&index), "none lost or doubled");
    }
    compactions
}

fn input<'a>(
    case: &Case,
    messages: &'a [Arc<Message>],
    sizes: &'a [Size],
    carried: usize,
) -> SplitInput<'a> {
    SplitInput {
        messages,
        carried,
        sizes,
        keep: case.keep,
        boundary: case.boundary,
        limit: case.limit,
        base: Tokens::ZERO,
        bound: Tokens::from_tokens(100),
        floor: Tokens::from_tokens(16),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn sessions_keep_what_they_must(case in case()) {
        play(&case);
    }

    #[test]
    fn keep_last_and_halves_part_no_round(
        steps in prop::collection::vec(any::<[u8; 4]>(), 0..60),
        len in 0..90_usize,
        keep in 0..9_usize,
    ) {
        let made = histories::build(&steps);
        let messages: Vec<_> = made.messages.iter().cloned().map(Arc::new).collect();
        let len = len.min(messages.len());
        let parts = |cut: usize, below: usize| {
            made.pairs.iter().chain(&made.duplicates).any(|&(call, result)| call < cut && result >= cut && result < below)
        };
        let cut = keep_last(&messages, 0, len, keep);
        prop_assert!(cut + keep <= len || cut == 0);
        prop_assert!(!parts(cut, len));
        if let Some(cut) = halves(&messages) {
            prop_assert!(cut > 0 && cut < messages.len());
            prop_assert!(!parts(cut, messages.len()));
        }
    }

    #[test]
    fn nothing_panics_on_sizes_that_do_not_fit(
        steps in prop::collection::vec(any::<[u8; 4]>(), 0..30),
        tokens in prop::collection::vec(any::<u64>(), 0..40),
        carried in 0..60_usize,
        numbers in any::<[u64; 4]>(),
        keep in keep(),
    ) {
        let made = histories::build(&steps);
        let messages: Vec<_> = made.messages.into_iter().map(Arc::new).collect();
        let sizes: Vec<_> = tokens.iter().map(|&n| Size::new(n, Tokens::from_units(n))).collect();
        let [limit, base, bound, floor] = numbers.map(Tokens::from_units);
        let limit = Some(limit);
        let boundary = Boundary::Turn;
        let input = SplitInput {
            messages: &messages, carried, sizes: &sizes, keep, boundary, limit, base, bound, floor,
        };
        let cuts = [split(&input), force(&messages, carried, &sizes, 0)];
        for cut in cuts.into_iter().flatten() {
            prop_assert!(cut.cut > carried && !cut.replaced.is_empty());
        }
        keep_last(&messages, carried, carried, 3);
    }

    #[test]
    fn pruning_changes_results_alone_and_stays(
        steps in prop::collection::vec(any::<[u8; 4]>(), 0..60),
        keep in 0..6_usize,
        larger_than in 0..600_usize,
        batch in 0..2000_usize,
        cut in 0..90_usize,
    ) {
        let rule = Prune { keep, larger_than, batch };
        let made = histories::build(&steps);
        let messages: Vec<_> = made.messages.into_iter().map(Arc::new).collect();
        let pruned = prune(&messages, &rule);
        for (index, message) in &pruned {
            let old = &messages[*index];
            prop_assert!(message.chars() < old.chars() && !old.is_pinned());
            prop_assert_eq!(message.id(), old.id());
            let ids = |m: &Message| m.tool_results().map(|r| r.call_id.clone()).collect::<Vec<_>>();
            prop_assert_eq!(ids(message), ids(old));
        }
        let earlier = prune(&messages[..cut.min(messages.len())], &rule);
        prop_assert!(pruned.starts_with(&earlier), "what was pruned stays as it was sent");
    }
}

#[test]
fn most_histories_are_compacted() {
    let compacted = (0..400_usize).filter(|&seed| {
        let steps = histories::steps(seed as u64, 80);
        let case = Case {
            steps,
            rounds: vec![(30, false), (30, seed % 3 == 0), (30, false)],
            pins: vec![None, Some(seed), None],
            keep: Keep::Messages(seed % 8 + 1),
            boundary: Boundary::Turn,
            limit: None,
        };
        play(&case) > 0
    });
    let compacted = compacted.count();
    assert!(compacted >= 320, "{compacted} of 400");
}
