//! When a session compacts, what it keeps, and what a summary may cost; read
//! from a file, from the environment, or set in code.

mod agent_defaults;
mod check;
mod duration;
mod env;
mod layer;
mod load;
mod models;
mod node;
mod overrides;
mod rule;
mod setters;
mod suggest;
mod summarization;
mod template;
mod threshold;

pub(crate) use self::models::context_window;
pub use self::{
    agent_defaults::AgentDefaults, overrides::ConfigOverrides, summarization::SummarizationConfig,
    template::SummaryTemplate, threshold::Threshold,
};
