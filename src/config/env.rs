//! The `SUMMARIZATION_*` variables.

use serde_json::Number;

use super::{
    layer::Layer,
    node::{Node, join},
    rule::{RULES, Rule},
    suggest,
};
use crate::error::{Error, Result};

const ORIGIN: &str = "environment";
pub(super) const PREFIX: &str = "SUMMARIZATION_";

/// Reads one variable into the layer; others than ours are passed over.
pub(super) fn read(layer: &mut Layer, name: &str, value: &str) -> Result<()> {
    if !name.starts_with(PREFIX) {
        return Ok(());
    }
    let Some((field, rule)) = RULES.into_iter().find(|(field, _)| variable(field) == name) else {
        let known = RULES.map(|(field, _)| variable(field));
        let problem = suggest::unknown("variable", name, &known);
        return Err(Error::config(ORIGIN, join("", name), problem));
    };
    layer.set(field, &node(rule, value.trim()), ORIGIN, name)
}

fn variable(field: &str) -> String {
    format!("{PREFIX}{}", field.to_ascii_uppercase())
}

/// A variable has no types: what reads as a number or a truth value is one.
/// Not so a duration, whose bare number could mean seconds.
fn node(rule: Rule, text: &str) -> Node {
    match text {
        "" => return Node::Null,
        "true" => return Node::Flag(true),
        "false" => return Node::Flag(false),
        _ => {}
    }
    let number = serde_json::from_str::<Number>(text).ok().filter(|_| rule != Rule::Time);
    match number {
        Some(number) => match (number.as_i128(), number.as_f64()) {
            (Some(whole), _) => Node::Whole(whole),
            (None, Some(real)) => Node::Real(real),
            (None, None) => Node::Text(text.into()),
        },
        None => Node::Text(text.into()),
    }
}
