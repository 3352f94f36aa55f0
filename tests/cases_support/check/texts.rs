//! All the texts that a case may look into.

use super::{Check, Held, ensure, failed};
use crate::cases_support::{assertion::Rules, crate_api, model::Asked, server::strings};

impl Check<'_> {
    /// All that was recorded.
    pub(super) fn seen(&self) -> Vec<String> {
        let record = &self.record;
        let mut seen: Vec<String> = Vec::new();
        for context in &record.contexts {
            for rules in Rules::ALL {
                let messages = context.sent.messages(rules).unwrap_or_default();
                seen.extend(messages.iter().flat_map(strings).map(str::to_owned));
            }
        }
        seen.push(self.summary.clone());
        seen.extend(record.histories.iter().map(|history| history.text.clone()));
        seen.extend(record.logs.iter().cloned());
        seen.extend(record.stats.iter().map(ToString::to_string));
        seen.extend(record.errors.iter().map(|error| error.text.clone()));
        seen.extend(record.configs.iter().filter_map(|tried| tried.result.clone().err()));
        seen
    }

    pub(super) fn contains_any(&self, texts: &[String]) -> Held {
        // What the model was to repeat must have got through it: an old summary
        // that merely stayed holds the same words.
        let llms = self.run.case.all_steps();
        let mut llms = llms.iter().filter_map(|step| step.llm());
        if llms.any(|llm| llm.echo_markers.is_some()) {
            let applied = !self.record.applied.is_empty();
            ensure(applied, || format!("nothing was applied: {:?}", self.record.reports))?;
        }
        let seen = self.seen();
        let any = texts.iter().any(|text| seen.iter().any(|seen| seen.contains(text)));
        ensure(any, || format!("none of {texts:?} was seen"))
    }

    pub(super) async fn not_contains(&self, texts: &[String]) -> Held {
        let mut seen = self.seen();
        seen.push(self.run.bench.logs());
        seen.extend(self.record.reports.iter().cloned());
        seen.extend(self.window.iter().map(|message| message.text()));
        for asked in &self.asked {
            let body = match asked {
                Asked::Http(body) => body.clone(),
                Asked::Stub(request) => crate_api::request_body(request),
            };
            seen.extend(strings(&body).into_iter().map(str::to_owned));
        }
        if let Some(sessions) = &self.sessions
            && let Ok(stats) = crate_api::stats(sessions, &self.run.key()).await
        {
            seen.push(stats.to_string());
        }
        let found = texts.iter().find(|text| seen.iter().any(|seen| seen.contains(*text)));
        found.map_or(Ok(()), |text| failed(format!("{text:?} was seen")))
    }

    pub(super) fn after_release(&self, texts: &[String]) -> Held {
        let contexts = self.record.contexts.iter().filter(|context| context.after_release);
        let contexts = contexts.map(|context| context.sent.openai_chat.clone());
        let histories = self.record.histories.iter().filter(|history| history.after_release);
        let mut first = contexts.take(1).chain(histories.map(|history| history.text.clone()));
        let held = first.any(|seen| texts.iter().all(|text| seen.contains(text)));
        ensure(held, || format!("not all of {texts:?} were seen after the release"))
    }

    pub(super) fn first_summary(&self) -> String {
        self.run.case.existing_summary.clone().unwrap_or_default()
    }

    pub(super) fn utf8_valid(&self) -> Held {
        let given: Vec<_> = self.record.added.iter().map(|added| &added.source).collect();
        if given.iter().any(|given| given.contains('\u{fffd}')) {
            return Ok(());
        }
        let mut seen = self.seen();
        seen.push(self.run.bench.logs());
        for asked in &self.asked {
            match asked {
                Asked::Http(body) => seen.extend(strings(body).into_iter().map(str::to_owned)),
                Asked::Stub(request) => {
                    seen.extend(request.messages.iter().map(|message| message.text()));
                }
            }
        }
        let broken = seen.iter().find(|text| text.contains('\u{fffd}'));
        broken.map_or(Ok(()), |text| failed(format!("a character was cut: {text}")))
    }
}
