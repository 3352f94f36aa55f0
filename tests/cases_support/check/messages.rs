//! What became of the messages that were added.

use std::collections::{BTreeMap, BTreeSet};

use super::{Check, Held, ensure, failed};
use crate::cases_support::{
    Stop,
    model::Asked,
    record::{id_of, source_of},
};

impl Check<'_> {
    /// Added messages that are in neither the summarized range nor the window.
    pub(super) fn lost(&self) -> Vec<String> {
        let key = self.run.key();
        let several = !self.record.keys.is_empty();
        let window: BTreeSet<_> = self.window.iter().map(|message| id_of(message)).collect();
        let summarized = self.summarized();
        let added = self.record.added.iter().filter(|added| !several && added.key == key);
        let lost = added.filter(|added| {
            let replaced = added.position < self.cut
                && (self.record.forced > 0
                    || summarized.as_ref().is_none_or(|ids| ids.contains(&added.id)));
            !window.contains(&added.id) && !replaced && !self.record.destroyed.contains(&added.id)
        });
        let lost: Vec<_> = lost.map(|added| added.source.clone()).collect();
        let archived: BTreeSet<_> = self.archive.iter().collect();
        if lost.is_empty() && !archived.is_empty() {
            let added = self.record.added.iter().filter(|added| !several && added.key == key);
            let gone = added.filter(|added| {
                !archived.contains(&added.id) && !self.record.destroyed.contains(&added.id)
            });
            return gone.map(|added| added.source.clone()).collect();
        }
        lost
    }

    /// Ids that a summarizer was given before something was applied; `None`
    /// where a server was asked, which sees no ids.
    pub(super) fn summarized(&self) -> Option<BTreeSet<String>> {
        let calls = self.record.applied.last().map_or(0, |applied| applied.calls);
        let mut ids = BTreeSet::new();
        for asked in self.asked.iter().take(calls) {
            let Asked::Stub(request) = asked else { return None };
            for message in request.messages.iter() {
                match message.id() {
                    Some(id) => ids.insert(id.to_string()),
                    // An excerpt has no id, nor has a part's summary.
                    None if request.part == session_compaction::SummaryPart::Merge => false,
                    None => return None,
                };
            }
        }
        let range = self.record.applied.last().map_or(0, |applied| applied.range.end);
        (range == self.cut).then_some(ids)
    }

    pub(super) fn doubled(&self) -> usize {
        let doubles = |ids: &[String]| ids.len() - ids.iter().collect::<BTreeSet<_>>().len();
        let window: Vec<_> = self.window.iter().map(|message| id_of(message)).collect();
        doubles(&window).max(doubles(&self.archive))
    }

    pub(super) fn history_unchanged(&self) -> Held {
        let key = self.run.key();
        let mut added: Vec<_> = self.record.added.iter().filter(|added| added.key == key).collect();
        added.sort_by_key(|added| added.position);
        let added: Vec<_> = added.into_iter().map(|added| added.source.clone()).collect();
        let window: Vec<_> = self.window.iter().map(source_of).collect();
        ensure(added == window && self.carried == 0, || {
            format!("{} messages were added, the window holds {}", added.len(), window.len())
        })
    }

    pub(super) fn kept_identical(&self) -> Held {
        let sources: BTreeMap<_, _> =
            self.record.added.iter().map(|added| (&added.id, &added.source)).collect();
        for message in &self.window {
            let (id, source) = (id_of(message), source_of(message));
            match sources.get(&id) {
                Some(added) if **added == source => {}
                Some(added) => return failed(format!("{added} was kept as {source}")),
                None => return failed(format!("{source} was never added")),
            }
        }
        Ok(())
    }

    pub(super) fn acked_equals_recovered(&self) -> Held {
        let acked: Vec<_> = self.record.added.iter().map(|added| added.id.clone()).collect();
        let window: Vec<_> = self.window.iter().map(|message| id_of(message)).collect();
        let recovered = if self.archive.is_empty() { &window } else { &self.archive };
        ensure(acked == *recovered, || {
            format!("{} were acknowledged, {} recovered", acked.len(), recovered.len())
        })
    }

    pub(super) fn append_latency(&self, max: u64) -> Held {
        let worst = self.record.latencies.iter().max();
        let worst = worst.ok_or_else(|| Stop::Failed("nothing was added meanwhile".into()))?;
        ensure(worst.as_millis() <= u128::from(max), || format!("an append took {worst:?}"))
    }
}
