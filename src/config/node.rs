//! A value as it stands in a configuration, before its field judges it.

use std::{cell::RefCell, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::rule::Rule;
use crate::error::Error;

const MAX_DEPTH: usize = 128;
const SHOWN_CHARS: usize = 40;

/// A tree that keeps repeated names, so that they can be refused, and forgets
/// what is in lists, since no field is one.
#[derive(Debug)]
pub(super) enum Node {
    Flag(bool),
    List,
    Null,
    Object(Vec<(String, Self)>),
    Real(f64),
    Text(String),
    Whole(i128),
}

/// Where a configuration is wrong, and how.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) path: String,
    pub(super) text: String,
}

impl Problem {
    pub(super) fn at(self, origin: &str) -> Error {
        let path = if self.path.is_empty() { "top level".into() } else { self.path };
        Error::config(origin, path, self.text)
    }
}

impl Node {
    /// Reads a whole JSON text. A problem names the field that was being read
    /// when the JSON broke.
    pub(super) fn from_json(text: &str) -> Result<Self, Problem> {
        let path = RefCell::default();
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let node = Seed(&path)
            .deserialize(&mut deserializer)
            .and_then(|node| deserializer.end().map(|()| node));
        node.map_err(|error| {
            let path = path.into_inner();
            let allowed = path.last().and_then(|field| Rule::find(field)).map_or_else(
                || "a JSON object: a whole file with agents.defaults.summarization, or just that block".into(),
                |(_, rule)| rule.allowed(),
            );
            Problem { path: dotted(&path), text: format!("broken JSON: {error}; allowed is {allowed}") }
        })
    }

    /// Returns the members of an object; null counts as an empty one.
    pub(super) fn members(&self, path: &str) -> Result<&[(String, Self)], Problem> {
        match self {
            Self::Null => Ok(&[]),
            Self::Object(members) => Ok(members),
            _ => Err(Problem {
                path: path.into(),
                text: format!("{self} is not allowed; allowed is an object"),
            }),
        }
    }

    /// Returns one member of an object, which must not be there twice.
    pub(super) fn member(&self, path: &str, name: &str) -> Result<Option<&Self>, Problem> {
        let mut found = self.members(path)?.iter().filter(|(key, _)| key == name);
        let first = found.next();
        if found.next().is_some() {
            return Err(Problem { path: join(path, name), text: "is there twice".into() });
        }
        Ok(first.map(|(_, node)| node))
    }
}

/// Shows a value in an error, shortened.
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::List => f.write_str("a list"),
            Self::Null => f.write_str("null"),
            Self::Object(_) => f.write_str("an object"),
            // Its debug form writes very large and very small numbers short.
            Self::Real(number) => write!(f, "{number:?}"),
            Self::Text(text) => write!(f, "the text {:?}", shorten(text)),
            Self::Whole(number) => write!(f, "{number}"),
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Seed(&RefCell::default()).deserialize(deserializer)
    }
}

pub(super) fn join(path: &str, name: &str) -> String {
    let name = shorten(name).escape_debug().to_string();
    if path.is_empty() { name } else { format!("{path}.{name}") }
}

fn dotted(path: &[String]) -> String {
    path.iter().fold(String::new(), |path, name| join(&path, name))
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}..", text.get(..end).unwrap_or_default()),
        None => text.into(),
    }
}

/// Builds a node and notes the way down to it; after an error the way stays.
struct Seed<'a>(&'a RefCell<Vec<String>>);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a configuration value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Flag(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Whole(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Whole(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Real(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Node::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        if self.0.borrow().len() >= MAX_DEPTH {
            return Err(A::Error::custom("nested too deeply"));
        }
        let mut members = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            self.0.borrow_mut().push(name.clone());
            members.push((name, map.next_value_seed(Seed(self.0))?));
            self.0.borrow_mut().pop();
        }
        Ok(Node::Object(members))
    }
}
