//! Sizes, statistics, events, configurations.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Check, Held, ensure};
use crate::cases_support::{Stop, crate_api};

impl Check<'_> {
    pub(super) async fn each_stat(
        &self,
        wanted: &BTreeMap<String, u64>,
        holds: fn(u64, u64) -> bool,
    ) -> Held {
        for (name, wanted) in wanted {
            let last = self.record.applied.last();
            let found = match (name.as_str(), last) {
                ("repaired_messages", _) if !self.record.contexts.is_empty() => self.repaired(),
                ("tokens_after", Some(done)) => done.tokens_after,
                _ => self.stat(name).await?,
            };
            ensure(holds(found, *wanted), || format!("{name} is {found}"))?;
        }
        Ok(())
    }

    /// Messages that were healed on the way out, however often.
    pub(super) fn repaired(&self) -> u64 {
        let contexts = self.record.contexts.iter();
        let healed: BTreeSet<_> = contexts.flat_map(|context| &context.sent.repaired).collect();
        healed.len() as u64
    }

    pub(super) async fn stat(&self, name: &str) -> Result<u64, Stop> {
        let sessions = self.sessions.as_ref();
        let sessions = sessions.ok_or_else(|| Stop::Failed("there is no manager".into()))?;
        let stats = crate_api::stats(sessions, &self.run.key()).await?;
        let found = stats.get(name).and_then(Value::as_u64);
        found.ok_or_else(|| Stop::Failed(format!("the statistics lack {name}")))
    }

    pub(super) fn event(&self, name: &str) -> Held {
        if !crate_api::EVENTS_ARE_BUILT {
            return Err(Stop::NotBuilt("events"));
        }
        let events = self.run.events();
        ensure(events.iter().any(|event| event == name), || format!("the events were {events:?}"))
    }

    pub(super) fn tokens_between(&self, (low, high): (u64, u64)) -> Held {
        let estimates = &self.record.estimates;
        let history = estimates.iter().rev().find(|estimate| estimate.text.is_none());
        let last = history.or(estimates.last());
        let tokens = last.map(|last| last.tokens);
        let tokens = tokens.ok_or_else(|| Stop::Failed("nothing was estimated".into()))?;
        ensure((low..=high).contains(&tokens), || format!("{tokens} tokens"))?;
        let texts =
            estimates.iter().filter_map(|estimate| Some((estimate.text.as_ref()?, estimate)));
        texts.into_iter().try_for_each(|(text, estimate)| plausible(text, estimate.tokens))
    }

    /// Each value means what is documented, or is refused by name; none
    /// switches something off in silence.
    pub(super) fn each(&self) -> Held {
        ensure(!self.record.configs.is_empty(), || "nothing was parsed".into())?;
        for tried in &self.record.configs {
            let shown = format!("{} = {} from {}", tried.field, tried.literal, tried.from);
            match &tried.result {
                Ok(config) => {
                    let quiet = config[&tried.field] == "off" && !tried.literal.contains("off");
                    ensure(!quiet && config["enabled"] != false, || {
                        format!("{shown} is a silent off")
                    })?;
                }
                Err(error) => {
                    let named = error.to_lowercase().contains(&tried.field);
                    // What is no JSON at all is named by its place.
                    let placed = serde_json::from_str::<Value>(&tried.literal).is_err()
                        && error.contains("line")
                        && error.contains("column");
                    ensure(named || placed, || format!("{shown} is refused with: {error}"))?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn config_error_or_clamp(&self, field: &str) -> Held {
        let parsed = self.record.configs.last();
        let parsed = parsed.ok_or_else(|| Stop::Failed("nothing was parsed".into()))?;
        match &parsed.result {
            Err(error) => ensure(error.contains(field), || error.clone()),
            Ok(config) => {
                let given = self.run.case.config.get(field).and_then(Value::as_u64);
                let clamped = config[field].as_u64() < given;
                let warned = self.run.bench.logs().contains(field);
                ensure(clamped && warned, || format!("accepted: {config}"))
            }
        }
    }
}

/// Between half a token and two for a Han character, 0.15 and 0.5 for an ASCII
/// one; other texts are not judged.
fn plausible(text: &str, tokens: u64) -> Held {
    let (mut han, mut ascii) = (0u64, 0u64);
    for c in text.chars() {
        match c {
            '\u{4e00}'..='\u{9fff}' => han += 1,
            c if c.is_ascii() => ascii += 1,
            _ => return Ok(()),
        }
    }
    let (low, high) = (han * 50 + ascii * 15, han * 200 + ascii * 50);
    ensure((low..=high).contains(&(tokens * 100)), || {
        format!("{tokens} tokens for {han} Han and {ascii} ASCII characters")
    })
}
