//! Rollout files of Codex: a record a line, items of OpenAI Responses inside.

use super::{SkipReason, loader::Loader};
use crate::message::json::{Members, elements};

impl Loader {
    pub(super) fn codex_line(&mut self, members: &Members<'_>) {
        let kind = members.text("type").unwrap_or_default();
        let (Some(payload), Some(value)) = (members.object("payload"), members.get("payload"))
        else {
            return self.skip(SkipReason::NotAMessage, "a record without a payload");
        };
        match kind.as_str() {
            "response_item" if payload.text("type").as_deref() != Some("ghost_snapshot") => {
                self.item(value);
            }
            "compacted" => self.codex_compacted(&payload),
            _ => self.skip(SkipReason::NotAMessage, format!("a record of type {kind:?}")),
        }
    }

    /// What stands for the history so far: its new items, or else a summary.
    fn codex_compacted(&mut self, payload: &Members<'_>) {
        let Some(items) = payload.get("replacement_history").and_then(elements) else {
            return self.summarized(payload.text("message"));
        };
        self.summarized(None);
        for item in items {
            self.item(item);
        }
    }
}
