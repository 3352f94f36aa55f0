//! Old, large tool results give way to a marker, before a summary is paid for.

use std::{collections::HashMap, sync::Arc};

use crate::message::{Message, Part};

/// Which tool results a [`Request`](crate::Request) sends as a short marker:
/// old, large ones, in batches.
///
/// # Default
///
/// The newest 3 are kept, results above 2,000 characters are large, and a
/// batch spares 20,000 characters.
///
/// # Example
///
/// ```
/// use session_compaction::{Prune, Request};
///
/// let request = Request::new().prune(Prune { keep: 5, ..Prune::default() });
/// # let _ = request;
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Prune {
    /// How many of the newest tool results are never touched.
    pub keep: usize,
    /// Results of more characters than this are large.
    pub larger_than: usize,
    /// Characters that a batch spares at least. A batch changes what was sent
    /// before, so a provider's prompt cache is lost once for each batch.
    pub batch: usize,
}

impl Default for Prune {
    fn default() -> Self {
        Self { keep: 3, larger_than: 2_000, batch: 20_000 }
    }
}

/// Returns, by index, the messages to send in place of stored ones: ids, flags
/// and all other fields are the same, and the content of old, large results is
/// a marker such as `[result of read_file left out: 48213 characters]`.
///
/// Batches are counted from the oldest message on. As long as only newer ones
/// are added, what was pruned once stays so and nothing is pruned between two
/// batches. Pinned messages and results with images or files stay whole.
pub(crate) fn prune(messages: &[Arc<Message>], rule: &Prune) -> Vec<(usize, Arc<Message>)> {
    let results = messages.iter().flat_map(|message| message.tool_results()).count();
    let old = results.saturating_sub(rule.keep);
    let mut tools: HashMap<&str, &str> = HashMap::new();
    let mut seen = 0_usize;
    let mut spared = 0_usize;
    let mut pruned = Vec::new();
    let mut batch = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        tools.extend(message.tool_calls().map(|call| (&*call.id, &*call.name)));
        seen = seen.saturating_add(message.tool_results().count());
        if seen > old {
            break;
        }
        let markers = if message.is_pinned() {
            HashMap::new()
        } else {
            markers(message, &tools, rule.larger_than, &mut spared)
        };
        if !markers.is_empty() {
            batch.push((index, markers));
        }
        if spared >= rule.batch.max(1) {
            let whole = batch.drain(..).filter_map(|(index, markers)| {
                Some((index, Arc::new(with_markers(messages.get(index)?, markers))))
            });
            pruned.extend(whole);
            spared = 0;
        }
    }
    pruned
}

/// What stands in for the large results of a message, by the index of the part.
fn markers(
    message: &Message,
    tools: &HashMap<&str, &str>,
    larger_than: usize,
    spared: &mut usize,
) -> HashMap<usize, String> {
    let mut markers = HashMap::new();
    for (at, part) in message.parts().iter().enumerate() {
        let Part::ToolResult(result) = part else { continue };
        let chars = result.content.iter().map(Part::chars).fold(0, usize::saturating_add);
        let media = result.content.iter().any(|part| matches!(part, Part::Media(_)));
        if chars <= larger_than || media {
            continue;
        }
        let tool = tools.get(&*result.call_id).copied().unwrap_or("an unknown tool");
        let marker = format!("[result of {tool} left out: {chars} characters]");
        let gain = chars.saturating_sub(marker.chars().count());
        if gain > 0 {
            *spared = spared.saturating_add(gain);
            markers.insert(at, marker);
        }
    }
    markers
}

fn with_markers(message: &Message, mut markers: HashMap<usize, String>) -> Message {
    let parts = message.parts().iter().enumerate().map(|(at, part)| match part {
        Part::ToolResult(result) => {
            let mut result = result.clone();
            if let Some(marker) = markers.remove(&at) {
                result.content = vec![Part::text(marker)];
            }
            Part::ToolResult(result)
        }
        part => part.clone(),
    });
    message.clone().with_parts(parts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Media, Role, ToolResult};

    fn rounds(count: usize, chars: usize) -> Vec<Arc<Message>> {
        let round = |n| {
            let id = format!("call_{n}");
            let call = Message::assistant("").with_tool_call(&id, "read_file", "{}");
            [call, Message::tool_result(&id, "x".repeat(chars)).with_id(format!("r{n}"))]
        };
        (0..count).flat_map(round).map(Arc::new).collect()
    }

    fn indexes(messages: &[Arc<Message>], rule: &Prune) -> Vec<usize> {
        prune(messages, rule).into_iter().map(|(index, _)| index).collect()
    }

    const RULE: Prune = Prune { keep: 2, larger_than: 500, batch: 1 };

    #[test]
    fn old_large_results_become_markers() {
        let messages = rounds(3, 1000);
        let pruned = prune(&messages, &RULE);
        let marker = "[result of read_file left out: 1000 characters]";
        assert_eq!(pruned.len(), 1);
        assert_eq!(pruned[0].0, 1);
        assert_eq!(*pruned[0].1, Message::tool_result("call_0", marker));
        assert_eq!(pruned[0].1.id(), messages[1].id());
    }

    #[test]
    fn small_new_pinned_and_media_results_stay() {
        assert_eq!(indexes(&rounds(9, 500), &RULE), [0_usize; 0]);
        assert_eq!(indexes(&rounds(2, 1000), &RULE), [0_usize; 0]);
        let mut messages = rounds(4, 1000);
        messages[1] = Arc::new(Message::clone(&messages[1]).pinned());
        assert_eq!(indexes(&messages, &RULE), [3]);
        let mut result = ToolResult::new("call_1", "x".repeat(1000));
        result.content.push(Media::image_url("https://example.org/a.png").into());
        messages[3] = Arc::new(Message::new(Role::Tool, [result.into()]));
        assert_eq!(indexes(&messages, &RULE), [0_usize; 0]);
    }

    #[test]
    fn nothing_changes_between_two_batches() {
        let rule = Prune { batch: 3 * 953, ..RULE };
        let pruned = |rounds| indexes(&self::rounds(rounds, 1000), &rule);
        assert_eq!(pruned(4), [0_usize; 0]);
        assert_eq!(pruned(5), [1, 3, 5]);
        assert_eq!(pruned(7), [1, 3, 5]);
        assert_eq!(pruned(8), [1, 3, 5, 7, 9, 11]);
    }
}
