//! What of a message a provider takes. A message that needs no change is
//! borrowed, and so keeps the very text that it was read from.

use std::borrow::Cow;

use super::{
    profile::Profile,
    repair::{Call, is_visible_part},
    wire::stand_in,
};
use crate::message::{
    Fields, Media, MediaSource, Message, Origin, Part, RawJson, Reasoning, Role, Text, ToolCall,
    ToolResult,
    json::Members,
    write::{belongs_to_calls, is_plain, openai_media},
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
    rebuilt(message, parts.collect(), profile)
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
    let mut thoughts = 0;
    let parts = message.parts().iter().enumerate().filter_map(|(index, part)| match part {
        Part::ToolCall(asked) => {
            let (_, id) = call(index)?;
            Some(named(asked, part, id, profile))
        }
        Part::Reasoning(reasoning) if takes_thought(reasoning, profile) => {
            // The OpenAI form has a place for a single thought.
            thoughts += 1;
            (thoughts == 1 || !profile.is_openai_chat()).then_some(Cow::Borrowed(part))
        }
        Part::Reasoning(_) | Part::ToolResult(_) => None,
        part => taken(part, profile),
    });
    let mut parts: Vec<_> = parts.collect();
    let says = |part: &Cow<'_, Part>| is_visible_part(part) || matches!(**part, Part::ToolCall(_));
    if !parts.iter().any(says) {
        return None;
    }
    if profile.is_openai_chat() {
        parts.sort_by_key(|part| place(part));
    }
    Some(rebuilt(message, parts, profile))
}

/// Returns the result at an index of a message's parts as a tool message.
pub(crate) fn answer<'a>(
    message: &'a Message,
    part: usize,
    call_id: &str,
    profile: &Profile,
) -> Option<Cow<'a, Message>> {
    let Some(Part::ToolResult(result)) = message.parts().get(part) else { return None };
    let content = content(result, profile);
    // OpenAI's tool message has room for nothing but what the tool answered.
    let fields = if profile.is_openai_chat() { &Fields::EMPTY } else { &result.fields };
    let stands_alone = message.role() == Role::Tool && message.parts().len() == 1;
    let same = result.call_id == call_id
        && result.fields == *fields
        && is_same(&content, &result.content)
        && own_fields(message.fields(), profile).is_none();
    if stands_alone && same {
        return Some(Cow::Borrowed(message));
    }
    let result = Part::from(ToolResult {
        call_id: call_id.to_owned(),
        content: content.into_iter().map(Cow::into_owned).collect(),
        is_error: result.is_error,
        fields: fields.clone(),
    });
    let parts = vec![Cow::Owned(result)];
    Some(if stands_alone {
        rebuilt(message, parts, profile)
    } else {
        Cow::Owned(Message::new(Role::Tool, parts.into_iter().map(Cow::into_owned)))
    })
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
    if content.is_empty() {
        content.push(Cow::Owned(Part::text(NO_OUTPUT)));
    }
    content
}

/// Returns the part as the provider takes it; none for one that is blank or
/// another provider's.
fn taken<'a>(part: &'a Part, profile: &Profile) -> Option<Cow<'a, Part>> {
    if !is_visible_part(part) {
        return None;
    }
    match part {
        // A custom tool's call cannot be paired with its result.
        Part::Json(_) if profile.is_openai_chat() && belongs_to_calls(part) => None,
        Part::Json(raw) => {
            owner(raw).is_none_or(|owner| owner == profile.origin).then_some(Cow::Borrowed(part))
        }
        Part::Media(media) if profile.is_openai_chat() => Some(openai_part(part, media)),
        Part::Text(text) => {
            let fields = text.fields.as_deref().and_then(|fields| own_fields(fields, profile));
            Some(fields.map_or(Cow::Borrowed(part), |fields| {
                let fields = (!fields.is_empty()).then(|| Box::new(fields));
                Cow::Owned(Part::Text(Text { text: text.text.clone(), fields }))
            }))
        }
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

/// Tells by its type whose item an opaque part is; none where it is not known.
fn owner(raw: &RawJson) -> Option<Origin> {
    let members = Members::of(raw.as_str())?;
    let Some(kind) = members.text("type") else {
        let gemini = ["executableCode", "codeExecutionResult", "toolCall", "toolResponse"];
        return gemini.iter().any(|name| members.get(name).is_some()).then_some(Origin::Gemini);
    };
    Some(match kind.as_str() {
        "compaction" if members.get("encrypted_content").is_some() => Origin::OpenAiResponses,
        "compaction" | "container_upload" | "document" | "mcp_tool_use" | "redacted_thinking"
        | "search_result" | "server_tool_use" | "thinking" | "tool_reference" | "tool_result"
        | "tool_use" => Origin::Anthropic,
        "custom" | "file" | "image_url" | "input_audio" | "refusal" | "video_url" => {
            Origin::OpenAiChat
        }
        "item_reference"
        | "mcp_approval_request"
        | "mcp_approval_response"
        | "mcp_list_tools"
        | "message"
        | "reasoning" => Origin::OpenAiResponses,
        kind if kind.ends_with("_tool_result") => Origin::Anthropic,
        kind if kind.ends_with("_call") || kind.ends_with("_output") => Origin::OpenAiResponses,
        kind if kind.starts_with("input_") || kind.starts_with("output_") => {
            Origin::OpenAiResponses
        }
        _ => return None,
    })
}

fn named<'a>(call: &ToolCall, part: &'a Part, id: &str, profile: &Profile) -> Cow<'a, Part> {
    let fields = own_fields(&call.fields, profile);
    if call.id == id && fields.is_none() {
        return Cow::Borrowed(part);
    }
    let mut call = ToolCall { id: id.to_owned(), ..call.clone() };
    call.fields = fields.unwrap_or(call.fields);
    Cow::Owned(call.into())
}

/// Returns media as a part of OpenAI's, or the text that stands for it.
fn openai_part<'a>(part: &'a Part, media: &Media) -> Cow<'a, Part> {
    if openai_media(media).is_some() {
        return Cow::Borrowed(part);
    }
    let mut known = Media { alt: None, fields: Fields::EMPTY, ..media.clone() };
    if !matches!(known.source, MediaSource::Base64(_)) {
        known.mime = None;
    }
    Cow::Owned(match openai_media(&known) {
        Some(_) => known.into(),
        None => Part::text(stand_in(media)),
    })
}

/// Where a part stands in OpenAI's form: a thought first, the calls last.
fn place(part: &Part) -> u8 {
    match part {
        Part::Reasoning(_) => 0,
        Part::ToolCall(_) => 2,
        _ => 1,
    }
}

/// The names under which parts keep what another provider's format added.
const FOREIGN: [&str; 3] = ["anthropic", "gemini", "openai_responses"];

/// Returns what OpenAI's form may show of the fields, where that is not all.
/// The other formats write only what is kept under their own name.
fn own_fields(fields: &Fields, profile: &Profile) -> Option<Fields> {
    if !profile.is_openai_chat() || !fields.iter().any(|(name, _)| FOREIGN.contains(&name)) {
        return None;
    }
    let mut own = Fields::EMPTY;
    for (name, value) in fields.iter().filter(|(name, _)| !FOREIGN.contains(name)) {
        own.push(name, value.clone());
    }
    Some(own)
}

fn is_same(parts: &[Cow<'_, Part>], stored: &[Part]) -> bool {
    parts.len() == stored.len()
        && parts.iter().zip(stored).all(|(part, stored)| match part {
            Cow::Borrowed(part) => std::ptr::eq(*part, stored),
            Cow::Owned(_) => false,
        })
}

fn rebuilt<'a>(
    message: &'a Message,
    parts: Vec<Cow<'a, Part>>,
    profile: &Profile,
) -> Cow<'a, Message> {
    let fields = own_fields(message.fields(), profile);
    if fields.is_none() && is_same(&parts, message.parts()) {
        return Cow::Borrowed(message);
    }
    let parts = parts.into_iter().map(Cow::into_owned);
    let mut rebuilt = Message::new(message.role(), parts)
        .with_fields(fields.unwrap_or_else(|| message.fields().clone()));
    if let Some(name) = message.name() {
        rebuilt = rebuilt.with_name(name);
    }
    Cow::Owned(rebuilt)
}
