//! What of a message a provider takes. A message that needs no change is
//! borrowed, and so keeps the very text that it was read from.

use std::borrow::Cow;

use super::{
    profile::Profile,
    repair::{Call, is_visible_part},
};
use crate::{
    formats::{accepts, anthropic::unmarked},
    message::{Message, Origin, Part, Reasoning, Role, ToolResult, write::is_plain},
};

/// What stands in place of a tool's silence.
pub(crate) const NO_OUTPUT: &str = "(no output)";

/// Returns a user message without what the provider does not take, perhaps
/// with nothing left in it.
pub(crate) fn user<'a>(message: &'a Message, profile: &Profile) -> Cow<'a, Message> {
    let parts = message.parts().iter().filter_map(|part| match part {
        Part::Reasoning(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
        part => taken(part, profile),
    });
    rebuilt(message, parts.collect())
}

/// Returns an assistant message with these calls, each under the id beside it;
/// none where nothing would be said.
pub(crate) fn assistant<'a>(
    message: &'a Message,
    calls: &[(&Call, String)],
    profile: &Profile,
) -> Option<Cow<'a, Message>> {
    let call =
        |index: usize| calls.get(calls.binary_search_by_key(&index, |(call, _)| call.part).ok()?);
    let parts = message.parts().iter().enumerate().filter_map(|(index, part)| match part {
        Part::ToolCall(asked) => {
            let (_, id) = call(index)?;
            let mut part = fitting(part, profile)?;
            if asked.id != *id
                && let Part::ToolCall(renamed) = part.to_mut()
            {
                renamed.id.clone_from(id);
            }
            Some(part)
        }
        Part::Reasoning(reasoning) if takes_thought(reasoning, profile) => {
            Some(Cow::Borrowed(part))
        }
        Part::Reasoning(_) | Part::ToolResult(_) => None,
        part => taken(part, profile),
    });
    let parts: Vec<_> = parts.collect();
    let says = |part: &Cow<'_, Part>| is_visible_part(part) || matches!(**part, Part::ToolCall(_));
    parts.iter().any(says).then(|| rebuilt(message, parts))
}

/// Returns the result at an index of a message's parts as a tool message.
pub(crate) fn answer<'a>(
    message: &'a Message,
    part: usize,
    call_id: &str,
    profile: &Profile,
) -> Option<Cow<'a, Message>> {
    let part = fitting(message.parts().get(part)?, profile)?;
    let Part::ToolResult(result) = &*part else { return None };
    let content = content(result, profile);
    let stands_alone = message.role() == Role::Tool && message.parts().len() == 1;
    let same = matches!(part, Cow::Borrowed(_))
        && result.call_id == call_id
        && is_same(&content, &result.content);
    if stands_alone && same {
        return Some(Cow::Borrowed(message));
    }
    let answer = vec![Part::from(ToolResult {
        call_id: call_id.to_owned(),
        content: content.into_iter().map(Cow::into_owned).collect(),
        is_error: result.is_error,
        fields: result.fields.clone(),
    })];
    let answer =
        if stands_alone { message.of_parts(answer) } else { Message::new(Role::Tool, answer) };
    Some(Cow::Owned(answer))
}

/// Returns what a tool answered, which is never nothing.
fn content<'a>(result: &'a ToolResult, profile: &Profile) -> Vec<Cow<'a, Part>> {
    let mut content = Vec::new();
    for part in &result.content {
        match part {
            Part::Reasoning(_) | Part::ToolCall(_) => {}
            Part::ToolResult(_) => {
                let texts = part.texts().into_iter().filter(|text| !text.trim().is_empty());
                content.extend(texts.map(|text| Cow::Owned(Part::text(text))));
            }
            part => content.extend(taken(part, profile)),
        }
    }
    // Gemini's answer is a text or an object, with media beside it.
    let silent = |part: &Cow<'_, Part>| part.texts().is_empty();
    if content.is_empty() || (profile.origin == Origin::Gemini && content.iter().all(silent)) {
        content.push(Cow::Owned(Part::text(NO_OUTPUT)));
    }
    content
}

/// Returns the part as the provider takes it; none for one that is blank or
/// another provider's.
fn taken<'a>(part: &'a Part, profile: &Profile) -> Option<Cow<'a, Part>> {
    is_visible_part(part).then(|| fitting(part, profile))?
}

fn fitting<'a>(part: &'a Part, profile: &Profile) -> Option<Cow<'a, Part>> {
    match part {
        Part::Json(raw) if !accepts(&profile.origin, raw) => None,
        part if profile.origin == Origin::Anthropic => Some(unmarked(part)),
        part => Some(Cow::Borrowed(part)),
    }
}

/// A thought goes back to the one who had it: with its signature, or not at all.
fn takes_thought(reasoning: &Reasoning, profile: &Profile) -> bool {
    let signed = reasoning.signature.as_ref().is_some_and(|signature| !signature.is_empty());
    let visible = !reasoning.text.trim().is_empty();
    reasoning.origin == profile.origin
        && match profile.origin {
            Origin::OpenAiChat => visible && is_plain(reasoning),
            Origin::OpenAiResponses => signed || !reasoning.fields.is_empty(),
            Origin::Gemini => signed || visible,
            _ => signed,
        }
}

fn is_same(parts: &[Cow<'_, Part>], stored: &[Part]) -> bool {
    parts.len() == stored.len()
        && parts.iter().zip(stored).all(|(part, stored)| match part {
            Cow::Borrowed(part) => std::ptr::eq(*part, stored),
            Cow::Owned(_) => false,
        })
}

fn rebuilt<'a>(message: &'a Message, parts: Vec<Cow<'a, Part>>) -> Cow<'a, Message> {
    if is_same(&parts, message.parts()) {
        return Cow::Borrowed(message);
    }
    Cow::Owned(message.of_parts(parts.into_iter().map(Cow::into_owned)))
}
