//! What a model is asked for a summary.

use std::sync::Arc;

use super::{SummaryPart, extractive, transcript};
use crate::{config::SummaryTemplate, message::Message};

impl SummaryTemplate {
    fn instructions(&self) -> &str {
        match self {
            Self::Agent => include_str!("prompts/agent.md"),
            Self::Concise => include_str!("prompts/concise.md"),
            Self::Custom(own) => own,
            Self::Investigation => include_str!("prompts/investigation.md"),
        }
    }

    fn most_words(&self) -> u64 {
        if *self == Self::Investigation { 400 } else { u64::MAX }
    }

    /// Returns the headings as they are written out, in the order of the
    /// template: the host's where it gave some.
    fn headings(&self, own: &[String]) -> Vec<(String, String)> {
        let names = names(self.instructions());
        let mut own = own.iter();
        let written = |name: &str| match own.next() {
            Some(heading) => heading.clone(),
            None => format!("**{name}:**"),
        };
        let written: Vec<String> = names.iter().copied().map(written).collect();
        names.into_iter().map(str::to_owned).zip(written).collect()
    }

    /// Returns what must stand in an answer: only where the template is strict
    /// and its headings are known.
    pub(super) fn required(&self, own: &[String], language: Option<&str>) -> Vec<String> {
        let headings = self.headings(own);
        let known = language.is_none() || own.len() >= headings.len();
        if *self == Self::Investigation && known {
            headings.into_iter().map(|(_, heading)| heading).collect()
        } else {
            Vec::new()
        }
    }
}

/// The names between double braces, in order.
fn names(instructions: &str) -> Vec<&str> {
    let open = instructions.split("{{").skip(1);
    open.filter_map(|rest| Some(rest.split_once("}}")?.0)).collect()
}

/// How the answer is to be. The instructions are the same in each request of a
/// summarizer, so that a provider can cache them; what differs stands behind
/// the record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    pub(super) template: &'a SummaryTemplate,
    /// The headings in the words of the host.
    pub(super) headings: &'a [String],
    /// The language of the conversation, where the host named it.
    pub(super) language: Option<&'a str>,
    /// .. and where it was found: one of a few fixed names.
    pub(super) detected: Option<&'static str>,
    /// What the host wants the summary to dwell on.
    pub(super) focus: Option<&'a str>,
    pub(super) part: SummaryPart,
    pub(super) max_tokens: u64,
}

impl Wanted<'_> {
    /// Writes the instructions. They depend on nothing that stands in the
    /// conversation.
    pub(super) fn instructions(self) -> String {
        let mut text = self.template.instructions().trim_end().to_owned();
        for (at, (name, heading)) in self.template.headings(self.headings).iter().enumerate() {
            let heading = match self.language {
                Some(language) if at >= self.headings.len() => {
                    format!("a heading in bold, in {language}, for \"{}\":", name.to_lowercase())
                }
                _ => heading.clone(),
            };
            text = text.replacen(&format!("{{{{{name}}}}}"), &heading, 1);
        }
        text.push_str("\n\n");
        text.push_str(include_str!("prompts/rules.md").trim_end());
        let which = self.language.map(|language| format!(", which is {language}"));
        let which = which.unwrap_or_default();
        format!(
            "{text}\n\nWrite in the same language as the conversation{which}. Answer with the text of the summary alone."
        )
    }

    /// Writes what stands behind the record: what the host wants most, what of
    /// the conversation it is, in which language it was found to be, and how long
    /// the answer may be.
    pub(super) fn task(self) -> String {
        let what = match self.part {
            SummaryPart::Whole => "Summarize the record above".into(),
            SummaryPart::Part { index, of } => format!(
                "Summarize the record above, which is part {} of {of} of a longer conversation,",
                index.saturating_add(1)
            ),
            SummaryPart::Merge => "The parts in the record above are summaries of consecutive parts of one conversation. Make one summary of them that says nothing twice,".into(),
        };
        // A word takes between one and two tokens in most languages.
        let words = (self.max_tokens.saturating_mul(3) / 5).clamp(20, self.template.most_words());
        let language = self.detected.filter(|_| self.language.is_none());
        let language = language.map(|language| format!(" in {language} and"));
        // One line, so that it is seen to end where it ends.
        let focus = self.focus.map(|focus| focus.split_whitespace().collect::<Vec<_>>().join(" "));
        let focus = focus.filter(|focus| !focus.is_empty()).map(|focus| {
            format!("Give the most room to this, as far as it stands in the record: {focus}. ")
        });
        let (focus, language) = (focus.unwrap_or_default(), language.unwrap_or_default());
        format!("{focus}{what}{language} in at most {words} words.")
    }
}

/// Returns a prompt for a summary of the messages, for hosts that call their
/// model themselves: instructions, then the summary so far and the
/// conversation as role-labelled lines, fenced in as data.
///
/// # Example
///
/// ```
/// use session_compaction::{Message, build_summarization_prompt};
///
/// let messages = [Message::user("Is the disk full?"), Message::assistant("42% used.")];
/// let prompt = build_summarization_prompt(&messages, Some("The user runs a file server."));
/// assert!(prompt.contains("user: Is the disk full?\nassistant: 42% used."));
/// assert!(prompt.contains("The user runs a file server."));
/// ```
#[must_use]
pub fn build_summarization_prompt<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
    existing: Option<&str>,
) -> String {
    let messages: Vec<Arc<Message>> = messages.into_iter().cloned().map(Arc::new).collect();
    let wanted = Wanted {
        template: &SummaryTemplate::Concise,
        headings: &[],
        language: None,
        detected: extractive::sure_language(&messages),
        focus: None,
        part: SummaryPart::Whole,
        max_tokens: 1_024,
    };
    let lines = transcript::lines(&messages, SummaryPart::Whole);
    let record = transcript::fenced(existing, None, &lines);
    format!("{}\n\n{record}\n\n{}", wanted.instructions(), wanted.task())
}

#[cfg(test)]
mod tests {
    use super::Wanted;
    use crate::{config::SummaryTemplate, summarize::SummaryPart};

    fn wanted(template: &SummaryTemplate) -> Wanted<'_> {
        let part = SummaryPart::Whole;
        let (headings, language, detected, focus) = (&[], None, None, None);
        Wanted { template, headings, language, detected, focus, part, max_tokens: 1_024 }
    }

    #[test]
    fn an_investigation_has_its_exact_headings() {
        let headings =
            ["**Investigating:**", "**Key findings:**", "**Ruled out:**", "**Current state:**"];
        let template = SummaryTemplate::Investigation;
        assert_eq!(template.required(&[], None), headings);
        let text = wanted(&template).instructions();
        let mut rest = &*text;
        for heading in headings {
            rest = rest.split_once(heading).unwrap().1;
        }
        assert!(text.contains("nothing ruled out yet") && text.contains("At most 400 words"));
        assert!(wanted(&template).task().ends_with("in at most 400 words."));
        assert!(!text.contains("{{"));
    }

    #[test]
    fn headings_are_the_hosts_or_the_languages() {
        let template = SummaryTemplate::Investigation;
        let own = ["Untersucht:", "Befunde:", "Ausgeschlossen:", "Stand:"].map(String::from);
        let german = Wanted { headings: &own, language: Some("German"), ..wanted(&template) };
        let text = german.instructions();
        assert!(own.iter().all(|heading| text.contains(heading)));
        assert!(text.contains("same language as the conversation, which is German"));
        assert_eq!(template.required(&own, Some("German")), own);

        let text = Wanted { headings: &[], ..german }.instructions();
        assert!(!text.contains("**"), "no fixed heading: {text}");
        assert!(text.contains("in German, for \"key findings\""));
        assert!(template.required(&[], Some("German")).is_empty());
    }

    #[test]
    fn a_language_that_was_found_stands_behind_the_record() {
        let template = SummaryTemplate::Agent;
        let found = Wanted { detected: Some("Korean"), ..wanted(&template) };
        assert!(found.task().contains("the record above in Korean and in at most"));
        assert_eq!(found.instructions(), wanted(&template).instructions());
        let named = Wanted { language: Some("Thai"), ..found };
        assert!(!named.task().contains("Korean"), "the host knows better");
    }

    #[test]
    fn what_the_host_wants_most_is_one_line_behind_the_record() {
        let template = SummaryTemplate::Agent;
        let focused = Wanted { focus: Some("the API\n and its errors"), ..wanted(&template) };
        let (focus, task) =
            focused.task().split_once(". ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        assert!(focus.ends_with("the API and its errors"), "{focus}");
        assert_eq!(task, wanted(&template).task());
        assert_eq!(focused.instructions(), wanted(&template).instructions());
        let blank = Wanted { focus: Some(" \n"), ..focused };
        assert_eq!(blank.task(), wanted(&template).task());
    }

    #[test]
    fn every_template_names_what_the_agent_needs() {
        let text = wanted(&SummaryTemplate::Agent).instructions();
        for heading in [
            "Goal",
            "Constraints",
            "Decisions",
            "Done",
            "In progress",
            "Next",
            "Files and identifiers",
            "Open requests",
        ] {
            assert!(text.contains(&format!("**{heading}:**")), "{heading}");
        }
        assert!(text.contains("answered as answered"));
        let own = SummaryTemplate::Custom("List the {{Open questions}}".into());
        let text = wanted(&own).instructions();
        assert!(
            text.starts_with("List the **Open questions:**\n\nThe user message holds a record")
        );
    }
}
