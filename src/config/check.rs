//! What a complete configuration must hold to.

use super::{duration, rule::Rule, summarization::SummarizationConfig, threshold::Threshold};
use crate::error::{Error, Result};

impl SummarizationConfig {
    /// Checks every value, and that no two clash, as
    /// [`with_defaults`](Self::with_defaults) fills them.
    ///
    /// # Errors
    ///
    /// [`Error::is_config`], with the field's name and what it allows: a
    /// number out of its range, NaN, a percentage above 100;
    /// `keep_last_messages` not below `message_threshold`, `keep_chars` not
    /// below `threshold_chars`, or `output_reserve` and `summary_max_tokens`
    /// not below `context_window`.
    pub fn check(&self) -> Result<()> {
        let filled = self.clone().with_defaults();
        filled.check_ranges().map_err(|(field, problem)| refused(field, problem))?;
        filled.check_clashes().map_err(|clash| refused(clash.field, clash.problem))
    }

    /// Finds two fields that cannot both hold.
    pub(super) fn check_clashes(&self) -> Result<(), Clash> {
        let (keep, keep_chars) = (widen(self.keep_last_messages), widen(self.keep_chars));
        if let Threshold::Above(limit) = self.message_threshold
            && keep_chars == 0
            && keep >= limit
        {
            return Err(Clash::new("keep_last_messages", keep, "message_threshold", limit));
        }
        if let Threshold::Above(limit) = self.threshold_chars
            && keep_chars >= limit
        {
            return Err(Clash::new("keep_chars", keep_chars, "threshold_chars", limit));
        }
        if self.output_reserve >= self.context_window {
            let (reserve, window) = (self.output_reserve, self.context_window);
            return Err(Clash::new("output_reserve", reserve, "context_window", window));
        }
        if self.summary_max_tokens >= self.room() {
            let other = if self.output_reserve == 0 {
                "context_window"
            } else {
                "context_window less output_reserve"
            };
            return Err(Clash {
                other: "context_window",
                ..Clash::new("summary_max_tokens", self.summary_max_tokens, other, self.room())
            });
        }
        Ok(())
    }

    fn check_ranges(&self) -> Result<(), (&'static str, String)> {
        let wholes = [
            ("message_threshold", self.message_threshold.limit()),
            ("token_percent", self.token_percent.limit()),
            ("threshold_chars", self.threshold_chars.limit()),
            ("keep_last_messages", Some(widen(self.keep_last_messages))),
            ("keep_chars", Some(widen(self.keep_chars)).filter(|chars| *chars > 0)),
            ("context_window", Some(self.context_window)),
            ("output_reserve", Some(self.output_reserve)),
            ("summary_max_tokens", Some(self.summary_max_tokens)),
            ("multi_part_batch_threshold", Some(widen(self.multi_part_batch_threshold))),
            ("force_compression_min_messages", Some(widen(self.force_compression_min_messages))),
        ];
        for (field, value) in wholes {
            judge(field, value, Rule::admits_whole)?;
        }
        let reals = [
            ("summary_temperature", Some(self.summary_temperature)),
            ("max_single_msg_token_ratio", Some(self.max_single_msg_token_ratio)),
            ("chars_per_token", self.chars_per_token),
        ];
        for (field, value) in reals {
            judge(field, value, Rule::admits_real)?;
        }
        if !Rule::Time.admits_time(self.timeout) {
            let shown = duration::format(self.timeout);
            return Err(("timeout", Rule::Time.refuse(shown, "")));
        }
        Ok(())
    }
}

/// Two fields that cannot both hold; the problem is written about the first.
#[derive(Debug)]
pub(super) struct Clash {
    pub(super) field: &'static str,
    pub(super) other: &'static str,
    pub(super) problem: String,
}

impl Clash {
    fn new(field: &'static str, value: u64, other: &'static str, limit: u64) -> Self {
        let problem = format!(
            "{field} {value} is not allowed; allowed is a value below {other}, which is {limit}; change one of them"
        );
        Self { field, other, problem }
    }
}

fn refused(field: &str, problem: String) -> Error {
    Error::config("SummarizationConfig", field, problem)
}

fn judge<T: Copy + std::fmt::Debug>(
    field: &'static str,
    value: Option<T>,
    admits: fn(Rule, T) -> bool,
) -> Result<(), (&'static str, String)> {
    match (value, Rule::find(field)) {
        (Some(value), Some((_, rule))) if !admits(rule, value) => {
            Err((field, rule.refuse(format_args!("{value:?}"), "")))
        }
        _ => Ok(()),
    }
}

fn widen(value: usize) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}
