//! The case's configuration, and how others of its kind are read.

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde_json::Value;
use session_compaction::SummarizationConfig;

use super::{Stop, case::Case, crate_api::Deadlines, record::Tried};

/// Fields that set the provider's deadlines, not the crate's own.
const PROVIDER: [&str; 2] = ["timeout_secs", "idle_timeout_secs"];

/// How long a call that hangs is waited for where the case does not say.
const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) fn of_case(case: &Case) -> Result<SummarizationConfig, String> {
    let config = SummarizationConfig::from_json_str(&json(case, None));
    let config = config.map_err(|error| error.to_string())?;
    let hangs = case.all_steps().iter().filter_map(|step| step.llm()).any(hangs);
    let patience = (hangs && !case.config.contains_key("timeout")).then_some(PATIENCE);
    Ok(match deadlines(case).total.or(patience) {
        Some(timeout) => config.with_timeout(timeout),
        None => config,
    })
}

pub(crate) fn deadlines(case: &Case) -> Deadlines {
    let [total, idle] =
        PROVIDER.map(|name| case.config.get(name)?.as_f64().map(Duration::from_secs_f64));
    Deadlines { total, idle }
}

pub(crate) fn parse(case: &Case) -> Tried {
    tried("", "", "JSON", SummarizationConfig::from_json_str(&json(case, None)))
}

/// Parses the configuration with each literal in turn, from JSON and from the
/// environment.
pub(crate) fn matrix(
    case: &Case,
    fields: &BTreeMap<String, Vec<String>>,
    folder: &Path,
) -> Result<Vec<Tried>, Stop> {
    let mut all = Vec::new();
    for (field, literals) in fields {
        for literal in literals {
            let read = SummarizationConfig::from_json_str(&json(case, Some((field, literal))));
            all.push(tried(field, literal, "JSON", read));

            let others: BTreeMap<_, _> =
                case.config.iter().filter(|(name, _)| *name != field).collect();
            let file = folder.join("config.json");
            std::fs::write(&file, serde_json::json!(without_provider(others)).to_string())?;
            let variable =
                (format!("SUMMARIZATION_{}", field.to_ascii_uppercase()), literal.clone());
            let read = SummarizationConfig::load_with(Some(&file), [variable]);
            std::fs::remove_file(&file)?;
            all.push(tried(field, literal, "environment", read));
        }
    }
    Ok(all)
}

fn hangs(llm: &super::case::Llm) -> bool {
    llm.hang || llm.script.iter().any(hangs)
}

/// The configuration as JSON, one field replaced by a literal that need not be
/// JSON.
fn json(case: &Case, replaced: Option<(&str, &str)>) -> String {
    let mut members: BTreeMap<&str, String> = without_provider(case.config.iter().collect())
        .into_iter()
        .map(|(name, value)| (name.as_str(), value.to_string()))
        .collect();
    if let Some((field, literal)) = replaced {
        members.insert(field, literal.to_owned());
    }
    let members: Vec<_> = members.iter().map(|(name, value)| format!("{name:?}:{value}")).collect();
    format!("{{{}}}", members.join(","))
}

fn without_provider<'a>(
    mut config: BTreeMap<&'a String, &'a Value>,
) -> BTreeMap<&'a String, &'a Value> {
    config.retain(|name, _| !PROVIDER.contains(&name.as_str()));
    config
}

fn tried(
    field: &str,
    literal: &str,
    from: &'static str,
    read: session_compaction::Result<SummarizationConfig>,
) -> Tried {
    let result = match read {
        Ok(config) => Ok(serde_json::to_value(config).unwrap_or_default()),
        Err(error) => Err(error.to_string()),
    };
    Tried { field: field.to_owned(), literal: literal.to_owned(), from, result }
}
