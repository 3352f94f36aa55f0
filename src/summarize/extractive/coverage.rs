//! Choosing: the most new concepts for the tokens, again and again.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, binary_heap::PeekMut},
};

use super::draft::{Draft, Pool, SENTENCES};
use crate::tokens::{TokenCounter, Tokens};

/// How much of its cost a unit is held to: below 1, since longer units read
/// better.
const THRIFT: f32 = 0.9;

/// So many in a row that do not fit, and no more are tried.
const MOST_MISSES: usize = 1_000;

/// The units that were chosen so far, in the order of the choice.
pub(super) struct Choice<'a> {
    draft: &'a Draft,
    weights: &'a [f32],
    /// What another mention of each concept is worth, against the one before.
    repeat: &'a [f32],
    /// What one more mention of each concept is worth, from 1 down.
    fresh: Vec<f32>,
    costs: Vec<u64>,
    lead_costs: Vec<u64>,
    units_of: Vec<Vec<usize>>,
    paid: Vec<bool>,
    taken: Vec<bool>,
    chosen: Vec<usize>,
}

impl<'a> Choice<'a> {
    pub(super) fn new(
        draft: &'a Draft,
        weights: &'a [f32],
        repeat: &'a [f32],
        counter: &dyn TokenCounter,
    ) -> Self {
        let joint_cost = counter.text(SENTENCES).as_units();
        let cost = |text: &str| counter.text(text).as_units().saturating_add(joint_cost);
        let mut units_of = vec![Vec::new(); draft.lines.len()];
        for (index, unit) in draft.units.iter().enumerate() {
            if let Some(units) = units_of.get_mut(unit.line) {
                units.push(index);
            }
        }
        Self {
            draft,
            weights,
            repeat,
            fresh: vec![1.0; weights.len()],
            costs: draft
                .units
                .iter()
                .map(|unit| match unit.pool {
                    Pool::Facts | Pool::Index if !unit.text.contains(' ') => {
                        counter.text(&unit.text).as_units().saturating_add(joint_cost / 4)
                    }
                    _ => cost(&unit.text),
                })
                .collect(),
            lead_costs: draft.lines.iter().map(|line| cost(&line.lead)).collect(),
            units_of,
            paid: vec![false; draft.lines.len()],
            taken: vec![false; draft.units.len()],
            chosen: Vec::new(),
        }
    }

    /// Returns the chosen units, the best first within each pool.
    pub(super) fn into_chosen(self) -> Vec<usize> {
        self.chosen
    }

    /// Returns true when nothing was chosen so far.
    pub(super) fn is_empty(&self) -> bool {
        self.chosen.is_empty()
    }

    /// Chooses from the pools, and returns what that cost.
    pub(super) fn choose(&mut self, pools: &[Pool], budget: Tokens) -> Tokens {
        let mut left = budget.as_units();
        let mut heap: BinaryHeap<Offer> = (0..self.draft.units.len())
            .filter(|index| {
                self.draft.units.get(*index).is_some_and(|unit| pools.contains(&unit.pool))
            })
            .filter_map(|index| self.offer(index))
            .collect();
        let mut misses = 0;
        loop {
            let Some(mut best) = heap.peek_mut() else { break };
            let Some(price) = self.price(best.index).filter(|price| *price <= left) else {
                PeekMut::pop(best);
                misses += 1;
                // Nearly spent: the many that are too large are not looked at.
                if misses == MOST_MISSES {
                    break;
                }
                continue;
            };
            // Offers only fall as others are taken, apart from those of a line
            // whose lead gets paid, which are made again below.
            let Some(now) = self.offer(best.index) else {
                PeekMut::pop(best);
                continue;
            };
            if now < *best {
                *best = now;
                continue;
            }
            PeekMut::pop(best);
            misses = 0;
            left -= price;
            if let Some(line) = self.take(now.index) {
                let others = self.units_of.get(line).into_iter().flatten();
                let offers: Vec<Offer> = others.filter_map(|index| self.offer(*index)).collect();
                heap.extend(offers.into_iter().filter(|offer| {
                    self.draft.units.get(offer.index).is_some_and(|unit| pools.contains(&unit.pool))
                }));
            }
        }
        budget - Tokens::from_units(left)
    }

    /// Takes a unit; returns its line where that was empty before.
    fn take(&mut self, index: usize) -> Option<usize> {
        let unit = self.draft.units.get(index)?;
        let line = self.draft.lines.get(unit.line)?;
        let paid = self.paid.get_mut(unit.line)?;
        let opened = !*paid;
        *paid = true;
        let led = if opened { line.concepts.as_slice() } else { &[] };
        for concept in unit.concepts.iter().chain(led) {
            if let Some(fresh) = self.fresh.get_mut(*concept as usize) {
                *fresh *= self.repeat.get(*concept as usize).copied().unwrap_or_default();
            }
        }
        self.chosen.push(index);
        if let Some(taken) = self.taken.get_mut(index) {
            *taken = true;
        }
        opened.then_some(unit.line)
    }

    /// What the unit costs, with its line's lead where that is not there yet.
    fn price(&self, index: usize) -> Option<u64> {
        let unit = self.draft.units.get(index)?;
        let lead = if *self.paid.get(unit.line)? { 0 } else { *self.lead_costs.get(unit.line)? };
        Some(self.costs.get(index)?.saturating_add(lead))
    }

    fn offer(&self, index: usize) -> Option<Offer> {
        if *self.taken.get(index)? {
            return None;
        }
        let unit = self.draft.units.get(index)?;
        let worth = |concepts: &[u32]| -> f32 {
            let of =
                |id: &u32| Some(self.weights.get(*id as usize)? * self.fresh.get(*id as usize)?);
            concepts.iter().filter_map(of).sum()
        };
        let mut gain = unit.prior * worth(&unit.concepts);
        let mut cost = *self.costs.get(index)?;
        if !*self.paid.get(unit.line)? {
            // A lead serves the units that follow: it is charged in parts.
            let shared = self.units_of.get(unit.line)?.len().clamp(1, 3) as u64;
            gain += worth(&self.draft.lines.get(unit.line)?.concepts);
            cost = cost.saturating_add(*self.lead_costs.get(unit.line)? / shared);
        }
        #[expect(clippy::cast_precision_loss, reason = "a ratio to compare by")]
        let ratio = gain / (cost.max(1) as f32 / 1024.0).powf(THRIFT);
        (gain > 0.0).then_some(Offer { ratio, index })
    }
}

struct Offer {
    ratio: f32,
    index: usize,
}

impl Ord for Offer {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ratio.total_cmp(&other.ratio).then_with(|| other.index.cmp(&self.index))
    }
}

impl PartialOrd for Offer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Offer {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Offer {}
