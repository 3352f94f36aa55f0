//! Heals a history on its way out: brings each call and its result together,
//! and finds what no provider would take.
//!
//! What is decided for a message depends on the messages before it, as far as
//! possible, so that a later message does not change what was sent already.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use crate::{
    message::{
        Message, Part, Role, ToolCall,
        structure::{Place, Structure},
    },
    session::{Entry, Snapshot},
};

/// A history in which each call has its answer beside it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Healed {
    /// The system messages that it begins with.
    pub(crate) system: Vec<Arc<Message>>,
    pub(crate) steps: Vec<Step>,
    pub(crate) open_calls: Vec<OpenCall>,
    /// Positions of the stored messages that are not sent as they are.
    pub(crate) repaired: BTreeSet<u64>,
}

/// What happened next in a conversation.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// The model spoke, and perhaps asked for tools.
    Assistant { message: Arc<Message>, calls: Vec<Call> },
    /// A system message in the middle of the conversation.
    Notice(Arc<Message>),
    /// A person spoke.
    User(Arc<Message>),
}

/// A call of an assistant message and where its answer is.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// The index among the message's parts.
    pub(crate) part: usize,
    /// The message with the result, and the index among its parts.
    pub(crate) result: Option<(Arc<Message>, usize)>,
}

impl Call {
    /// Returns the call, which is one of the message's parts.
    pub(crate) fn of<'a>(&self, message: &'a Message) -> Option<&'a ToolCall> {
        match message.parts().get(self.part)? {
            Part::ToolCall(call) => Some(call),
            _ => None,
        }
    }
}

/// A tool call whose result has not come; the context says so in its place.
///
/// # Example
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> session_compaction::Result<()> {
/// use session_compaction::{Message, Request, SessionManager};
///
/// let sessions = SessionManager::builder().build()?;
/// sessions.add_message("chat", Message::user("Is the disk full?")).await?;
/// let call = Message::assistant("").with_tool_call("c1", "shell", r#"{"cmd":"df"}"#);
/// sessions.add_message("chat", call).await?;
///
/// let context = sessions.context("chat", &Request::new()).await?;
/// let [open] = context.open_calls() else { unreachable!() };
/// assert_eq!((&*open.id, &*open.tool, open.position), ("c1", "shell", 1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct OpenCall {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Where the assistant message with the call stands in the transcript.
    pub position: u64,
}

impl Healed {
    /// Heals the history of a snapshot.
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let messages = snapshot.to_vec();
        let structure = Structure::of_history(&messages, snapshot.carried());
        let answers = Answers::of(&structure, &messages);
        let leading = messages.iter().take_while(|message| message.role().is_system());
        let mut healed = Self { system: leading.cloned().collect(), ..Self::default() };
        for (index, entry) in snapshot.entries().enumerate().skip(healed.system.len()) {
            let sound = match entry.message.role() {
                Role::Assistant => healed.assistant(index, entry, &answers),
                Role::Developer | Role::System => {
                    healed.steps.push(Step::Notice(Arc::clone(&entry.message)));
                    is_visible(&entry.message)
                }
                Role::Tool => !entry.message.parts().is_empty(),
                Role::User => healed.user(&entry.message),
            };
            if !sound || !answers.has_all(index, &entry.message) {
                healed.repaired.insert(entry.position);
            }
        }
        healed
    }

    /// Takes a user message; the results in it go to their calls.
    fn user(&mut self, message: &Arc<Message>) -> bool {
        let results = message.tool_results().count();
        let visible = is_visible(message);
        if visible || results == 0 {
            self.steps.push(Step::User(Arc::clone(message)));
        }
        visible || (results > 0 && results == message.parts().len())
    }

    fn assistant(&mut self, index: usize, entry: &Entry, answers: &Answers) -> bool {
        let message = &entry.message;
        let mut sound = true;
        let mut calls = Vec::new();
        let mut ids = HashSet::new();
        for (part, call) in message.parts().iter().enumerate() {
            let Part::ToolCall(call) = call else { continue };
            let result = answers.of.get(&Place { message: index, part }).cloned();
            if result.is_none() {
                sound = false;
                if message.is_partial() {
                    continue;
                }
                self.open_calls.push(OpenCall {
                    id: call.id.clone(),
                    tool: call.name.clone(),
                    position: entry.position,
                });
            }
            sound &= ids.insert(&call.id) && !call.id.trim().is_empty();
            calls.push(Call { part, result });
        }
        sound &= !calls.is_empty() || is_visible(message);
        self.steps.push(Step::Assistant { message: Arc::clone(message), calls });
        sound
    }
}

/// The result that is sent for each call.
struct Answers {
    of: HashMap<Place, (Arc<Message>, usize)>,
    sent: HashSet<Place>,
}

impl Answers {
    fn of(structure: &Structure, messages: &[Arc<Message>]) -> Self {
        let message = |place: &Place| messages.get(place.message);
        let mut chosen: HashMap<Place, Place> = HashMap::new();
        for (call, result) in structure.pairs() {
            if message(call).is_none_or(|message| message.role() != Role::Assistant) {
                continue;
            }
            // The first complete one; one of a stream that was cut off only
            // where there is no other.
            let complete = |place: &Place| message(place).is_some_and(|it| !it.is_partial());
            let best = chosen.entry(*call).or_insert(*result);
            if !complete(best) && complete(result) {
                *best = *result;
            }
        }
        let sent = chosen.values().copied().collect();
        let of = chosen.into_iter().filter_map(|(call, result)| {
            Some((call, (Arc::clone(message(&result)?), result.part)))
        });
        Self { of: of.collect(), sent }
    }

    /// Returns true when every result in a message is sent as it is.
    fn has_all(&self, index: usize, message: &Message) -> bool {
        message.parts().iter().enumerate().all(|(part, content)| match content {
            Part::ToolResult(result) => {
                self.sent.contains(&Place { message: index, part })
                    && result.content.iter().any(is_visible_part)
            }
            _ => message.role() != Role::Tool,
        })
    }
}

/// Returns true when a message says or shows something.
pub(crate) fn is_visible(message: &Message) -> bool {
    message.parts().iter().any(is_visible_part)
}

pub(crate) fn is_visible_part(part: &Part) -> bool {
    match part {
        Part::Json(_) | Part::Media(_) => true,
        Part::Text(text) => !text.text.trim().is_empty(),
        Part::Reasoning(_) | Part::ToolCall(_) | Part::ToolResult(_) => false,
    }
}
