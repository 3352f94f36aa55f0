//! What holds for every history and every provider, by a reading of their
//! rules that shares nothing with the code that arranges.

use std::{collections::BTreeSet, sync::Arc};

use proptest::prelude::*;
use serde_json::{Value, value::RawValue};

use super::{arrange::NO_RESULT, *};
use crate::{
    Message, Role,
    message::Part,
    plan::{self, properties::histories},
    session::{Entry, Session, SessionState, Size, StoredSummary},
    tokens::ByteEstimate,
};

/// A session that is appended to and compacted.
pub(super) struct Play {
    pub(super) all: Vec<Arc<Message>>,
    state: SessionState,
    added: usize,
}

impl Play {
    pub(super) fn new(messages: impl IntoIterator<Item = Message>) -> Self {
        let all: Vec<_> = messages.into_iter().map(Arc::new).collect();
        Self { added: all.len(), all, state: SessionState::fresh() }
    }

    fn positions(&self) -> Vec<usize> {
        let carried = self.state.view.carried.iter().map(|&at| usize::try_from(at).unwrap());
        let cut = usize::try_from(self.state.view.cut).unwrap();
        carried.chain(cut..self.added).collect()
    }

    fn messages(&self) -> Vec<Arc<Message>> {
        self.positions().into_iter().map(|at| Arc::clone(&self.all[at])).collect()
    }

    pub(super) fn compact(&mut self, keep: usize, summarize: bool) -> bool {
        let (positions, messages) = (self.positions(), self.messages());
        let carried = self.state.view.carried.len();
        let cut = plan::keep_last(&messages, carried, messages.len(), keep);
        let Ok(split) = plan::cut_at(&messages, carried, cut) else {
            return false;
        };
        let view = &mut self.state.view;
        view.carried = split.carried.iter().map(|&index| positions[index] as u64).collect();
        view.cut = positions.get(split.cut).map_or(self.added, |&at| at) as u64;
        if summarize {
            view.summary = Some(StoredSummary::new("They talked about files."));
        } else {
            view.dropped.messages += split.replaced.len() as u64;
        }
        true
    }

    pub(super) fn context(&self, request: &Request) -> Context {
        let entry = |at: usize| Entry {
            position: at as u64,
            message: Arc::clone(&self.all[at]),
            size: Size::default(),
        };
        let carried = self.state.view.carried.len();
        let positions = self.positions();
        let (carried, window) = positions.split_at(carried);
        let entries = |positions: &[usize]| positions.iter().map(|&at| entry(at)).collect();
        let mut session = Session::unknown();
        let state = Some(self.state.clone());
        let (carried, window) = (entries(carried), entries(window));
        let next = self.added as u64;
        session.load(session.version(), state, next, carried, window, Tokens::ZERO);
        Context::new(&session.snapshot(), request, &ByteEstimate::default()).unwrap()
    }
}

type Write = fn(&Context) -> Body;
type Check = fn(&[Value]) -> Result<(), String>;

pub(super) const PROVIDERS: [(&str, Write, Check); 5] = [
    ("openai chat", Context::to_openai_chat, openai_chat),
    ("strict template", Context::to_strict_template, strict_template),
    ("openai responses", Context::to_openai_responses, openai_responses),
    ("anthropic", Context::to_anthropic, anthropic),
    ("gemini", Context::to_gemini, gemini),
];

const RULES: [Provider; 5] = [
    Provider::Anthropic,
    Provider::Gemini,
    Provider::OpenAiChat,
    Provider::OpenAiResponses,
    Provider::StrictTemplate,
];

pub(super) fn elements(body: &Body) -> Vec<Value> {
    serde_json::from_str(body.messages()).unwrap()
}

macro_rules! ensure {
    ($what:expr, $($text:tt)*) => { if !$what { return Err(format!($($text)*)) } };
}

fn role(element: &Value) -> &str {
    element["role"].as_str().unwrap_or_default()
}

fn ids<'a>(list: &'a Value, kind: &str, id: &str) -> Vec<&'a str> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let of_kind = list.iter().filter(|it| kind.is_empty() || it["type"] == *kind);
    of_kind.map(|it| it[id].as_str().unwrap()).collect()
}

fn unique(ids: &[&str]) -> bool {
    ids.iter().collect::<BTreeSet<_>>().len() == ids.len()
}

/// No text anywhere is blank; null is no text.
fn no_blank(value: &Value) -> Result<(), String> {
    match value {
        Value::Array(list) => list.iter().try_for_each(no_blank),
        Value::Object(members) => members.values().try_for_each(no_blank),
        Value::String(text) => {
            ensure!(!text.trim().is_empty(), "a blank text");
            Ok(())
        }
        _ => Ok(()),
    }
}

fn openai_chat(messages: &[Value]) -> Result<(), String> {
    let systems = messages.iter().filter(|it| matches!(role(it), "system" | "developer")).count();
    ensure!(systems <= 1, "{systems} system messages");
    ensure!(systems == 0 || matches!(role(&messages[0]), "system" | "developer"), "a late one");
    let rest = &messages[systems..];
    ensure!(rest.first().is_some_and(|it| role(it) == "user"), "no user message first");
    let mut waiting: Vec<&str> = Vec::new();
    for message in rest {
        no_blank(message)?;
        if role(message) == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            ensure!(waiting.first() == Some(&id), "{id} answers nothing, or too early");
            waiting.remove(0);
            continue;
        }
        ensure!(waiting.is_empty(), "{waiting:?} not answered");
        waiting = ids(&message["tool_calls"], "", "id");
        ensure!(unique(&waiting), "two calls named alike");
        let silent = message["content"].is_null() && waiting.is_empty();
        ensure!(!silent, "a blank message");
        let content = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let known = |part: &Value| matches!(part["type"].as_str(), Some("text" | "image_url"));
        ensure!(content.iter().all(known), "a part that OpenAI does not know: {message}");
    }
    ensure!(waiting.is_empty(), "{waiting:?} not answered at the end");
    Ok(())
}

fn strict_template(messages: &[Value]) -> Result<(), String> {
    openai_chat(messages)?;
    let mut visible = "assistant";
    let mut before = "";
    for message in messages.iter().filter(|it| role(it) != "system") {
        let now = role(message);
        if now == "user" || (now == "assistant" && message.get("tool_calls").is_none()) {
            ensure!(now != visible, "two {now} messages in a row");
            visible = now;
        }
        ensure!(!(before == "tool" && now == "user"), "a user message after a tool message");
        before = now;
    }
    Ok(())
}

fn openai_responses(items: &[Value]) -> Result<(), String> {
    ensure!(items.first().is_some_and(|it| role(it) == "user"), "no user message first");
    let mut calls: Vec<&str> = Vec::new();
    for item in items {
        no_blank(item)?;
        match item["type"].as_str() {
            Some("function_call") => calls.push(item["call_id"].as_str().unwrap()),
            Some("function_call_output") => {
                let id = item["call_id"].as_str().unwrap();
                ensure!(calls.first() == Some(&id), "{id} answers nothing, or too early");
                calls.remove(0);
            }
            _ => ensure!(calls.is_empty(), "{calls:?} not answered"),
        }
    }
    ensure!(calls.is_empty(), "{calls:?} not answered at the end");
    Ok(())
}

fn anthropic(messages: &[Value]) -> Result<(), String> {
    ensure!(messages.first().is_some_and(|it| role(it) == "user"), "no user message first");
    let mut waiting: Vec<&str> = Vec::new();
    let mut before = "assistant";
    for message in messages {
        no_blank(&message["content"])?;
        ensure!(role(message) != before, "two {before} messages in a row");
        before = role(message);
        let content = message["content"].as_array().unwrap();
        ensure!(!content.is_empty(), "an empty message");
        let first = content.iter().take_while(|it| it["type"] == "tool_result").count();
        let results = ids(&message["content"], "tool_result", "tool_use_id");
        ensure!(results.len() == first, "results after other blocks");
        ensure!(results == waiting, "{waiting:?} answered by {results:?}");
        waiting = ids(&message["content"], "tool_use", "id");
        ensure!(unique(&waiting), "two calls named alike");
        ensure!(waiting.is_empty() || before == "assistant", "a user calls tools");
        for block in content.iter().filter(|block| block["type"] == "thinking") {
            ensure!(block["signature"] == "sig" && before == "assistant", "a broken thought");
        }
        let thoughts = content.iter().all(|block| block["type"] == "thinking");
        ensure!(!thoughts, "nothing but thoughts");
    }
    ensure!(waiting.is_empty(), "{waiting:?} not answered at the end");
    Ok(())
}

fn gemini(contents: &[Value]) -> Result<(), String> {
    ensure!(contents.first().is_some_and(|it| role(it) == "user"), "no user content first");
    ensure!(contents.last().is_some_and(|it| role(it) == "user"), "the model is last");
    let names = |content: &Value, kind: &str| -> Vec<String> {
        let parts = content["parts"].as_array().unwrap().iter();
        parts
            .filter_map(|part| part.get(kind))
            .map(|it| format!("{}{}", it["id"], it["name"]))
            .collect()
    };
    let mut waiting = Vec::new();
    let mut before = "";
    for content in contents {
        no_blank(&content["parts"])?;
        ensure!(!content["parts"].as_array().unwrap().is_empty(), "an empty content");
        let answers = names(content, "functionResponse");
        ensure!(answers == waiting, "{waiting:?} answered by {answers:?}");
        waiting = names(content, "functionCall");
        ensure!(waiting.is_empty() || before == "user", "a call after {before}");
        before = role(content);
    }
    Ok(())
}

/// Returns how many elements of a body the next one must repeat.
fn stable(elements: &[Value]) -> usize {
    let is_model = |it: &Value| {
        matches!(role(it), "assistant" | "model")
            || matches!(it["type"].as_str(), Some("function_call" | "function_call_output"))
    };
    let open = elements.iter().position(|it| it.to_string().contains(NO_RESULT));
    let Some(open) = open else {
        return elements.iter().rposition(is_model).map_or(0, |last| last + 1);
    };
    let mut first = open;
    while first > 0 && (!is_model(&elements[first]) || elements[first]["type"].is_string()) {
        first -= 1;
    }
    if is_model(&elements[first]) { first } else { first + 1 }
}

fn raw(body: &Body) -> Vec<&RawValue> {
    serde_json::from_str(body.messages()).unwrap()
}

#[derive(Clone, Debug)]
struct Case {
    steps: Vec<[u8; 4]>,
    /// How many messages are added, then perhaps a compaction: how many are
    /// kept, and whether there is a summary.
    rounds: Vec<(usize, Option<(usize, bool)>)>,
    request: Request,
}

fn case() -> impl Strategy<Value = Case> {
    let request = prop_oneof![
        Just(Request::new()),
        Just(Request::new().system("You are terse.")),
        Just(Request::new().summary_role(SummaryRole::System)),
    ];
    let compaction = prop::option::weighted(0.3, (1..9_usize, prop::bool::weighted(0.7)));
    (
        prop::collection::vec(any::<[u8; 4]>(), 0..40),
        prop::collection::vec((0..20_usize, compaction), 1..5),
        request,
    )
        .prop_map(|(steps, rounds, request)| Case { steps, rounds, request })
}

fn play(case: &Case) {
    let mut play = Play::new(histories::build(&case.steps).messages);
    play.added = 0;
    let mut before: Vec<(Body, usize)> = Vec::new();
    for (count, compaction) in &case.rounds {
        play.added = (play.added + count).min(play.all.len());
        if let Some((keep, summarize)) = compaction
            && play.compact(*keep, *summarize)
        {
            before.clear();
        }
        let context = play.context(&case.request);
        if context.is_empty() {
            continue;
        }
        for provider in RULES {
            assert_eq!(validate(&context, provider), [], "{provider:?}");
        }
        let mut sent = Vec::new();
        for (name, write, check) in PROVIDERS {
            let body = write(&context);
            let elements = elements(&body);
            let problem = check(&elements).err();
            assert_eq!(problem, None, "{name}: {}", body.messages());
            sent.push((body, stable(&elements)));
        }
        for ((old, stable), (new, _)) in before.iter().zip(&sent) {
            let (old, new) = (raw(old), raw(new));
            for (at, old) in old.iter().enumerate().take(*stable) {
                let new = new.get(at).map_or("", |new| new.get());
                assert_eq!(old.get(), new, "element {at} of {stable} changed");
            }
        }
        says_what_it_must(&play, &context, &sent);
        before = sent;
    }
}

fn says_what_it_must(play: &Play, context: &Context, sent: &[(Body, usize)]) {
    let messages = play.messages();
    let newest = messages.iter().rfind(|message| message.is_human());
    let pinned =
        messages.iter().filter(|message| message.is_pinned() && message.role() == Role::User);
    for ((name, ..), (body, _)) in PROVIDERS.iter().zip(sent) {
        for message in newest.into_iter().chain(pinned.clone()) {
            for part in message.parts() {
                if let Part::Text(text) = part
                    && !text.text.trim().is_empty()
                {
                    assert!(body.messages().contains(&text.text), "{name}: lost {}", text.text);
                }
            }
        }
    }
    let thoughts = messages.iter().flat_map(|message| message.parts());
    let thoughts = thoughts.filter(|part| matches!(part, Part::Reasoning(_))).count();
    for ((name, ..), (body, _)) in PROVIDERS.iter().zip(sent) {
        let own = if *name == "anthropic" { thoughts } else { 0 };
        assert_eq!(body.messages().matches("\"thought\"").count(), own, "{name}: thoughts");
    }
    let sent: BTreeSet<_> = raw(&sent[0].0).into_iter().map(RawValue::get).collect();
    let repaired: BTreeSet<_> = context.repaired().collect();
    for (position, message) in play.positions().into_iter().zip(&messages) {
        let plain = message.parts().iter().all(|part| !matches!(part, Part::Reasoning(_)));
        let single = message.role() == Role::Tool && message.parts().len() == 1;
        if (message.role() == Role::Assistant && plain || single)
            && !repaired.contains(&(position as u64))
        {
            assert!(sent.contains(&*message.wire_json()), "changed: {}", message.wire_json());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn every_provider_takes_every_history(case in case()) {
        play(&case);
    }
}
