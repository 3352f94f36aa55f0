//! The configuration while every field is still optional, so that what a user
//! did not write is known.

use std::{collections::BTreeMap, time::Duration};

use super::{
    node::{Node, join},
    rule::{RULES, Rule},
    suggest,
    summarization::SummarizationConfig,
    threshold::Threshold,
};
use crate::error::{Error, Result};

/// What was set so far. Sources are read into one layer from the weakest to
/// the strongest; each replaces only what it sets itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer {
    enabled: Option<bool>,
    message_threshold: Option<Threshold>,
    token_percent: Option<Threshold>,
    threshold_chars: Option<Threshold>,
    keep_last_messages: Option<u64>,
    keep_chars: Option<Threshold>,
    context_window: Option<u64>,
    output_reserve: Option<u64>,
    summary_max_tokens: Option<u64>,
    summary_temperature: Option<f64>,
    multi_part_batch_threshold: Option<u64>,
    timeout: Option<Duration>,
    max_single_msg_token_ratio: Option<f64>,
    force_compression_min_messages: Option<u64>,
    chars_per_token: Option<f64>,
    /// Where each field was last set: origin and path, for errors.
    places: BTreeMap<&'static str, (String, String)>,
}

impl Layer {
    /// Reads a `summarization` block that stands at a path.
    pub(super) fn read_block(&mut self, origin: &str, path: &str, block: &Node) -> Result<()> {
        for (name, value) in block.members(path).map_err(|problem| problem.at(origin))? {
            let place = join(path, name);
            let Some((field, _)) = Rule::find(name) else {
                let known = RULES.map(|(field, _)| field.to_owned());
                return Err(Error::config(origin, place, suggest::unknown("field", name, &known)));
            };
            block.member(path, name).map_err(|problem| problem.at(origin))?;
            self.set(field, value, origin, &place)?;
        }
        Ok(())
    }

    /// Sets a field, unless the value means "not set".
    pub(super) fn set(&mut self, field: &str, value: &Node, origin: &str, at: &str) -> Result<()> {
        let Some((field, rule)) = Rule::find(field) else { return Ok(()) };
        let is_set =
            self.read(field, rule, value).map_err(|problem| Error::config(origin, at, problem))?;
        if is_set {
            self.places.insert(field, (origin.into(), at.into()));
        }
        Ok(())
    }

    fn read(&mut self, field: &str, rule: Rule, value: &Node) -> Result<bool, String> {
        Ok(match field {
            "enabled" => put(&mut self.enabled, rule.flag(value)?),
            "message_threshold" => put(&mut self.message_threshold, rule.threshold(value)?),
            "token_percent" => put(&mut self.token_percent, rule.threshold(value)?),
            "threshold_chars" => put(&mut self.threshold_chars, rule.threshold(value)?),
            "keep_last_messages" => put(&mut self.keep_last_messages, rule.whole(value)?),
            "keep_chars" => put(&mut self.keep_chars, rule.threshold(value)?),
            "context_window" => put(&mut self.context_window, rule.whole(value)?),
            "output_reserve" => put(&mut self.output_reserve, rule.whole(value)?),
            "summary_max_tokens" => put(&mut self.summary_max_tokens, rule.whole(value)?),
            "summary_temperature" => put(&mut self.summary_temperature, rule.real(value)?),
            "multi_part_batch_threshold" => {
                put(&mut self.multi_part_batch_threshold, rule.whole(value)?)
            }
            "timeout" => put(&mut self.timeout, rule.time(value)?),
            "max_single_msg_token_ratio" => {
                put(&mut self.max_single_msg_token_ratio, rule.real(value)?)
            }
            "force_compression_min_messages" => {
                put(&mut self.force_compression_min_messages, rule.whole(value)?)
            }
            "chars_per_token" => put(&mut self.chars_per_token, rule.real(value)?),
            _ => false,
        })
    }

    /// Fills in the defaults, lowers those that clash with what was set, and
    /// refuses what was set and clashes.
    pub(super) fn resolve(&self) -> Result<SummarizationConfig> {
        let default = SummarizationConfig::default();
        let only_characters = matches!(self.threshold_chars, Some(Threshold::Above(_)))
            && self.message_threshold.is_none()
            && self.token_percent.is_none();
        let trigger = |set: Option<Threshold>, default| {
            set.unwrap_or(if only_characters { Threshold::Off } else { default })
        };
        let mut config = SummarizationConfig {
            enabled: self.enabled.unwrap_or(default.enabled),
            message_threshold: trigger(self.message_threshold, default.message_threshold),
            token_percent: trigger(self.token_percent, default.token_percent),
            threshold_chars: self.threshold_chars.unwrap_or(default.threshold_chars),
            keep_last_messages: size(self.keep_last_messages, default.keep_last_messages),
            keep_chars: size(self.keep_chars.and_then(Threshold::limit), default.keep_chars),
            context_window: self.context_window.unwrap_or(default.context_window),
            output_reserve: self.output_reserve.unwrap_or(default.output_reserve),
            summary_max_tokens: self.summary_max_tokens.unwrap_or(default.summary_max_tokens),
            summary_temperature: self.summary_temperature.unwrap_or(default.summary_temperature),
            multi_part_batch_threshold: size(
                self.multi_part_batch_threshold,
                default.multi_part_batch_threshold,
            ),
            timeout: self.timeout.unwrap_or(default.timeout),
            max_single_msg_token_ratio: self
                .max_single_msg_token_ratio
                .unwrap_or(default.max_single_msg_token_ratio),
            force_compression_min_messages: size(
                self.force_compression_min_messages,
                default.force_compression_min_messages,
            ),
            chars_per_token: self.chars_per_token.or(default.chars_per_token),
        };
        if self.keep_last_messages.is_none() {
            config.fit_keep();
        }
        if self.summary_max_tokens.is_none() {
            config.fit_summary();
        }
        config.check_clashes().map_err(|clash| {
            let place = self.places.get(clash.field).or_else(|| self.places.get(clash.other));
            let (origin, path) =
                place.cloned().unwrap_or_else(|| ("defaults".into(), clash.field.into()));
            Error::config(origin, path, clash.problem)
        })?;
        Ok(config)
    }
}

fn put<T>(slot: &mut Option<T>, value: Option<T>) -> bool {
    let is_set = value.is_some();
    if is_set {
        *slot = value;
    }
    is_set
}

fn size(set: Option<u64>, default: usize) -> usize {
    set.map_or(default, |value| usize::try_from(value).unwrap_or(usize::MAX))
}
