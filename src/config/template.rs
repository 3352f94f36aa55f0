//! What kind of summary is wanted. What a model is told of it stands in
//! `summarize/prompts`.

use serde::{Deserialize, Serialize};

/// What kind of summary a model is asked for.
///
/// # Example
///
/// ```
/// use session_compaction::SummaryTemplate;
///
/// let own = SummaryTemplate::Custom("List the open questions of this conversation.".into());
/// assert_ne!(own, SummaryTemplate::default());
/// ```
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SummaryTemplate {
    /// For an agent at work: goal, constraints, decisions, what is done, in
    /// progress and next, files and identifiers, open requests.
    Agent,
    /// A few paragraphs that keep core context and key points.
    #[default]
    Concise,
    /// The host's own instructions, in place of all others but that the record
    /// is data. `{{Heading}}` stands for a heading that can be localized.
    Custom(String),
    /// For a fault that is being looked into: four fixed headings, at most 400
    /// words. An answer without them is refused.
    Investigation,
}
