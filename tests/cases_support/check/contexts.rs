//! What was built to be sent.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Check, Held, ensure, equal, failed, regex};
use crate::cases_support::{
    Stop,
    assertion::Rules,
    crate_api,
    record::{BuiltContext, minified},
    server::strings,
};

impl Check<'_> {
    pub(super) fn has_context(&self) -> Held {
        ensure(!self.record.contexts.is_empty(), || "no context was built".into())
    }

    pub(super) fn each_context(&self, check: impl Fn(&BuiltContext, Rules) -> Held) -> Held {
        self.has_context()?;
        for context in &self.record.contexts {
            for rules in Rules::ALL {
                check(context, rules)?;
            }
        }
        Ok(())
    }

    pub(super) fn last(&self) -> Result<&BuiltContext, Stop> {
        self.record.contexts.last().ok_or_else(|| Stop::Failed("no context was built".into()))
    }

    pub(super) fn last_messages(&self) -> Result<Vec<Value>, Stop> {
        self.last()?.sent.messages(Rules::Openai).map_err(Stop::Failed)
    }

    pub(super) fn last_roles(&self) -> Result<Vec<String>, Stop> {
        let messages = self.last_messages()?;
        let roles = messages.iter().filter_map(|message| message["role"].as_str());
        Ok(roles.map(str::to_owned).collect())
    }

    pub(super) fn last_text(&self) -> Result<String, Stop> {
        Ok(self.last_messages()?.iter().flat_map(strings).collect::<Vec<_>>().join("\n"))
    }

    pub(super) fn count_role(&self, counts: &BTreeMap<String, usize>) -> Held {
        let roles = self.last_roles()?;
        counts.iter().try_for_each(|(role, n)| {
            equal(&format!("{role} messages"), roles.iter().filter(|own| *own == role).count(), *n)
        })
    }

    pub(super) fn contexts_equal(&self) -> Held {
        let contexts = &self.record.contexts;
        let pairs = contexts.iter().zip(contexts.iter().skip(1));
        let across: Vec<_> = pairs.filter(|(a, b)| a.life != b.life).collect();
        if across.is_empty() {
            return failed("no context before and after a restart".into());
        }
        across.into_iter().try_for_each(|(before, after)| {
            ensure(before.sent == after.sent, || {
                format!("{} became {}", before.sent.openai_chat, after.sent.openai_chat)
            })
        })
    }

    /// Up to the first open call, or else through the last assistant message,
    /// each context is the beginning of the next, in each provider's form.
    pub(super) fn contexts_prefix_stable(&self) -> Held {
        let contexts = &self.record.contexts;
        let pairs = contexts.iter().zip(contexts.iter().skip(1));
        let pairs: Vec<_> = pairs.filter(|(a, b)| a.commits == b.commits).collect();
        ensure(!pairs.is_empty(), || "no two contexts without a compaction between".into())?;
        for (index, (before, after)) in pairs.into_iter().enumerate() {
            for rules in Rules::ALL {
                let (head, old) = before.sent.pieces(rules);
                let (next_head, new) = after.sent.pieces(rules);
                let stable = stable_prefix(&old, &before.open_calls);
                if head != next_head || !new.starts_with(old.get(..stable).unwrap_or_default()) {
                    return failed(format!(
                        "{rules:?} context {index} is no beginning of the next"
                    ));
                }
            }
        }
        Ok(())
    }

    pub(super) fn note_count(&self, max: usize) -> Held {
        let note = regex(crate_api::DROPPED_NOTE)?;
        let stored: Vec<_> = self.window.iter().map(|message| message.text()).collect();
        let stored = note.find_iter(&stored.join("\n")).count();
        let sent = note.find_iter(&self.last_text()?).count();
        ensure(stored == 0 && sent <= max, || format!("{stored} notes stored, {sent} sent"))?;
        let dropped = self.record.forced > 0;
        ensure(!dropped || sent > 0, || "messages were dropped without a note".into())
    }

    pub(super) fn fence_holds(&self) -> Held {
        let tag = regex(crate_api::SUMMARY_TAG)?;
        let messages = self.last_messages()?;
        let texts: Vec<_> = messages.iter().flat_map(strings).collect();
        for text in texts {
            let Some(found) = tag.captures(text) else { continue };
            let (open, name) = (found.get(0).map_or("", |m| m.as_str()), &found[1]);
            let close = format!("</{name}>");
            let inside = text.split_once(open).and_then(|(_, rest)| rest.split_once(&close));
            let (inside, after) = inside.unwrap_or_default();
            return ensure(inside.contains(&self.summary) && !after.contains(&close), || {
                format!("the summary is not all between {open} and {close}")
            });
        }
        failed("there is no summary block".into())
    }

    pub(super) fn system_message(&self) -> Held {
        let is_system = |source: &&String| {
            serde_json::from_str::<Value>(source).is_ok_and(|json| json["role"] == "system")
        };
        let added = self.record.added.iter().map(|added| &added.source);
        let original = added.into_iter().find(is_system);
        let original = original.ok_or_else(|| Stop::Failed("none was added".into()))?;
        let sent = self.last()?.sent.pieces(Rules::Openai).1;
        let first = sent.first().map(|first| minified(first)).unwrap_or_default();
        ensure(first == *original, || format!("{original} was sent as {first}"))
    }
}

/// How many messages the next context must repeat.
fn stable_prefix(messages: &[String], open_calls: &[String]) -> usize {
    let role = |source: &String| -> String {
        let json: Value = serde_json::from_str(source).unwrap_or_default();
        json["role"].as_str().unwrap_or_default().to_owned()
    };
    let says = |source: &String| matches!(role(source).as_str(), "assistant" | "model");
    let calls = |source: &String| {
        says(source) && open_calls.iter().any(|id| source.contains(&format!("\"{id}\"")))
    };
    let open = messages.iter().position(calls);
    open.or(messages.iter().rposition(says).map(|last| last + 1)).unwrap_or(0)
}
