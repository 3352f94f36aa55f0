//! A summary without a model: the sentences, snippets and facts that cover the
//! most of a conversation within a budget.

mod build;
mod concepts;
mod coverage;
mod draft;
mod facts;
mod language;
mod lexicon;
mod merge;
mod prose;
mod protected;
mod sentences;
mod snippets;
mod summarizer;
mod telegraph;
#[cfg(test)]
mod tests;
mod tools;
mod words;

use std::sync::Arc;

pub use self::summarizer::ExtractiveSummarizer;
use self::{
    build::{Builder, Source, Who},
    coverage::Choice,
    draft::{Draft, Pool},
    language::{Language, Section},
    lexicon::Lexicon,
    protected::Protected,
    telegraph::Form,
    words::words,
};
use crate::{
    message::{Message, Part, Role},
    summarize::SummarizeError,
    tokens::{TokenCounter, Tokens},
};

/// What a host asks for.
#[derive(Clone, Debug, Default)]
struct Wishes {
    /// None: by the budget.
    form: Option<Form>,
    /// Strings that come out in full.
    protected: Arc<[String]>,
}

/// Summarizes messages and the summary before them, in at most `budget` tokens
/// as `counter` counts them. The same input gives the same text; it is empty
/// where there is nothing to say or no room to say it.
fn extract(
    messages: &[Arc<Message>],
    existing: Option<&str>,
    budget: Tokens,
    counter: &dyn TokenCounter,
    wishes: &Wishes,
) -> Result<String, SummarizeError> {
    let language = language_of(messages, existing);
    let shape = Shape::of(messages, existing, counter);
    let lexicon = Lexicon::of(language);
    let form = wishes.form.unwrap_or_else(|| shape.form(budget));
    let mut builder = Builder::new(lexicon, form, shape.agent);
    builder.two_voices = shape.user > 0 && shape.assistant > 0;
    if let Some(existing) = existing {
        builder.add_summary(existing);
    }
    // What was there before comes first in every section.
    let earlier = existing.map_or(0, |text| text.lines().count());
    builder.total = earlier + messages.len();
    let answered = last_answer(messages);
    let mut behind = shape.size;
    for (at, message) in messages.iter().enumerate() {
        behind = behind.saturating_sub(size_of(message));
        add_message(
            &mut builder,
            message,
            earlier + at,
            recency(behind, shape.size),
            at < answered,
        );
    }
    if builder.agent {
        builder.add_index();
    }
    let Builder { draft, concepts, agent, .. } = builder;
    let prose = shape.prose_percent();
    let weights = concepts.weights(if agent { words_beside_facts(prose) } else { 1.0 });
    let repeats = concepts.repeats();
    let choice = Choice::new(&draft, &weights, &repeats, counter);
    let chosen = choose(choice, shape.agent.then_some(prose), budget);
    let protected = Protected::of(&wishes.protected, messages, existing);
    fit(&draft, &chosen, language, &protected, budget, counter)
}

/// What a word is worth where facts count: the more of it is prose, the more.
fn words_beside_facts(prose_percent: u8) -> f32 {
    0.01 + 0.99 * f32::from(prose_percent.clamp(50, 90) - 50) / 40.0
}

/// How much there is of what, in bytes.
#[derive(Default)]
struct Shape {
    user: usize,
    assistant: usize,
    tools: usize,
    size: usize,
    tokens: Tokens,
    agent: bool,
}

impl Shape {
    fn of(messages: &[Arc<Message>], existing: Option<&str>, counter: &dyn TokenCounter) -> Self {
        // A summary stands for several times its size.
        let before = existing.map_or(0, |text| counter.text(text).as_units().saturating_mul(5));
        let mut shape = Self { tokens: Tokens::from_units(before), ..Self::default() };
        for message in messages {
            shape.tokens += counter.message(message);
            shape.size += size_of(message);
            for part in message.parts() {
                match (part, message.role()) {
                    (Part::Text(text), Role::User) => shape.user += text.text.len(),
                    (Part::Text(text), Role::Assistant) => shape.assistant += text.text.len(),
                    (Part::ToolCall(_) | Part::ToolResult(_), _) => shape.tools += 1,
                    _ => {}
                }
            }
        }
        let files = Section::Files;
        let before = existing
            .is_some_and(|text| text.lines().any(|line| Language::section_of(line) == Some(files)));
        shape.agent = shape.tools > 0 || before;
        shape
    }

    /// How much of it was said rather than done.
    fn prose_percent(&self) -> u8 {
        let said = self.user.saturating_add(self.assistant).saturating_mul(100);
        u8::try_from(said / self.size.max(1)).unwrap_or(100).min(100)
    }

    /// The tighter the budget, the more telegraphic.
    fn form(&self, budget: Tokens) -> Form {
        let share = budget.as_units().saturating_mul(100) / self.tokens.as_units().max(1);
        match share {
            0..=14 => Form::Tight,
            15..=39 => Form::Light,
            _ => Form::Full,
        }
    }
}

fn size_of(message: &Message) -> usize {
    let of = |part: &Part| match part {
        Part::ToolCall(call) => call.arguments.len(),
        part => part.texts().iter().map(|text| text.len()).sum(),
    };
    message.parts().iter().map(of).sum()
}

/// From 1.8 for the newest text down to 0.8, the excess halved with every
/// fifth.
#[expect(clippy::cast_precision_loss, reason = "a weight")]
fn recency(behind: usize, size: usize) -> f32 {
    0.8 + 0.5_f32.powf(5.0 * behind as f32 / size.max(1) as f32)
}

fn language_of(messages: &[Arc<Message>], existing: Option<&str>) -> Language {
    Language::detect(existing.into_iter().chain(spoken(messages)))
}

/// Returns the English name of the language that a conversation is in, where
/// there is no doubt.
pub(super) fn sure_language(messages: &[Arc<Message>]) -> Option<&'static str> {
    Language::detect_sure(spoken(messages))
}

/// What people and models said.
fn spoken(messages: &[Arc<Message>]) -> impl Iterator<Item = &str> {
    let spoken =
        messages.iter().filter(|message| matches!(message.role(), Role::User | Role::Assistant));
    spoken.flat_map(|message| message.parts()).filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    })
}

/// Returns the place of the last answer in words that calls no tool.
fn last_answer(messages: &[Arc<Message>]) -> usize {
    let answer = |message: &Arc<Message>| {
        message.role() == Role::Assistant
            && message.tool_calls().next().is_none()
            && !message.text().trim().is_empty()
    };
    messages.iter().rposition(answer).unwrap_or_default()
}

fn add_message<'a>(
    builder: &mut Builder<'a>,
    message: &'a Message,
    at: usize,
    recency: f32,
    answered: bool,
) {
    if message.role().is_system() {
        return;
    }
    let date = message.time().and_then(date_of);
    let who = match message.role() {
        Role::Assistant => Who::Assistant,
        Role::Tool => Who::Tool,
        _ => Who::User,
    };
    let narration = message.tool_calls().next().is_some();
    let source =
        |who| Source { who, narration, name: message.name(), date: date.as_deref(), at, recency };
    for part in message.parts() {
        match part {
            Part::Text(text) if who == Who::Tool => {
                builder.add_result("", &text.text, false, &source(Who::Tool));
            }
            Part::Text(text) => {
                if builder.agent && who == Who::User {
                    builder.add_request(&text.text, &source(who), answered);
                }
                builder.add_prose(&text.text, &source(who));
            }
            Part::ToolCall(call) => builder.add_call(call, &source(Who::Call)),
            Part::ToolResult(result) => {
                for text in part.texts() {
                    builder.add_result(&result.call_id, text, result.is_error, &source(Who::Tool));
                }
            }
            Part::Media(media) => {
                if let Some(alt) = &media.alt {
                    builder.add_prose(alt, &source(who));
                }
            }
            _ => {}
        }
    }
}

fn date_of(time: std::time::SystemTime) -> Option<String> {
    let time = jiff::Timestamp::try_from(time).ok()?;
    Some(time.to_string().get(..10)?.to_owned())
}

/// Chooses a little more than the budget, the least needed last.
fn choose(mut choice: Choice<'_>, agent_prose: Option<u8>, budget: Tokens) -> Vec<usize> {
    let share = |of: Tokens, percent: u64| Tokens::from_units(of.as_units() / 100 * percent);
    let mut left = budget;
    if let Some(prose) = agent_prose {
        left = left - choice.choose(&[Pool::Requests], share(budget, 4));
        left = left
            - choice.choose(&[Pool::Prose], share(budget, u64::from(prose.clamp(50, 90) - 48)));
        left = left - choice.choose(&[Pool::Prose, Pool::Facts], share(left, 50));
    }
    let all = [Pool::Requests, Pool::Prose, Pool::Facts, Pool::Index];
    choice.choose(&all, left + share(budget, 30));
    if choice.is_empty() {
        // The best of them is clipped to what room there is.
        choice.choose(&all, Tokens::MAX);
    }
    choice.into_chosen()
}

/// Renders as many of the chosen units as fit beside what is protected.
fn fit(
    draft: &Draft,
    chosen: &[usize],
    language: Language,
    protected: &Protected<'_>,
    budget: Tokens,
    counter: &dyn TokenCounter,
) -> Result<String, SummarizeError> {
    let fits = |text: &str| counter.text(text) <= budget;
    let render = |chosen: &[usize]| protected.complete(draft.render(chosen, language), language);
    let least = render(&[]);
    if !fits(&least) {
        return Err(protected.too_long(counter.text(&least), budget));
    }
    let (mut low, mut high) = (0, chosen.len() + 1);
    while high - low > 1 {
        let middle = low.midpoint(high);
        let text = render(chosen.get(..middle).unwrap_or(chosen));
        *(if fits(&text) { &mut low } else { &mut high }) = middle;
    }
    let (kept, rest) = chosen.split_at_checked(low).unwrap_or((chosen, &[]));
    let mut kept = kept.to_vec();
    // What is left may hold a smaller one.
    for index in rest.iter().take(FILLERS) {
        kept.push(*index);
        if !fits(&render(&kept)) {
            kept.pop();
        }
    }
    if !kept.is_empty() || !least.is_empty() {
        return Ok(render(&kept));
    }
    let first = chosen.first().and_then(|index| draft.units.get(*index));
    Ok(first.map(|unit| clip_to_fit(&unit.text, &fits)).unwrap_or_default())
}

/// How many more units are tried in what is left of the budget.
const FILLERS: usize = 16;

/// Returns the longest start of a text that ends with a word and fits.
fn clip_to_fit(text: &str, fits: &dyn Fn(&str) -> bool) -> String {
    let ends: Vec<usize> = words(text).map(|(start, word)| start + word.len()).collect();
    let start = |end: &usize| text.get(..*end).unwrap_or_default();
    let count = ends.partition_point(|end| fits(start(end)));
    let end = count.checked_sub(1).and_then(|last| ends.get(last));
    end.map(start).filter(|text| fits(text)).unwrap_or_default().to_owned()
}
