//! JSON that this crate does not read, kept as its source text.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// A JSON value as the text it was given in.
///
/// Key order, number spelling, duplicate keys and white space survive, which
/// they would not in a tree of values.
///
/// # Example
///
/// ```
/// use session_compaction::RawJson;
///
/// let raw = RawJson::parse("{\"b\": 12345678901234567890123, \"a\": 1.0}")?;
/// assert_eq!(raw.as_str(), "{\"b\": 12345678901234567890123, \"a\": 1.0}");
/// # Ok::<(), session_compaction::Error>(())
/// ```
#[derive(Clone, Eq, PartialEq)]
pub struct RawJson(Arc<str>);

impl RawJson {
    /// Checks that the text is one JSON value and keeps it.
    ///
    /// # Errors
    ///
    /// [`Error::is_message`](crate::Error::is_message) with line and column
    /// where the text is not JSON.
    pub fn parse(text: &str) -> crate::Result<Self> {
        serde_json::from_str::<&RawValue>(text)
            .map(|raw| Self(raw.get().into()))
            .map_err(|error| crate::Error::message("JSON", error.to_string()))
    }

    /// Writes any value as JSON.
    ///
    /// # Errors
    ///
    /// [`Error::is_message`](crate::Error::is_message) where the value has no
    /// JSON form, for example a map whose keys are not text.
    pub fn from_value<T: Serialize + ?Sized>(value: &T) -> crate::Result<Self> {
        serde_json::to_string(value)
            .map(|text| Self(text.into()))
            .map_err(|error| crate::Error::message("JSON", error.to_string()))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads the text as a value.
    ///
    /// # Errors
    ///
    /// Where the JSON has another shape than `T`.
    pub fn to<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(raw: Box<RawValue>) -> Self {
        Self(raw.get().into())
    }
}

impl From<&RawValue> for RawJson {
    fn from(raw: &RawValue) -> Self {
        Self(raw.get().into())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The text was checked when it came in; a `&RawValue` needs no copy.
        serde_json::from_str::<&RawValue>(&self.0)
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

/// The fields of an object that this crate does not know, in their order.
///
/// # Example
///
/// ```
/// use session_compaction::{Fields, RawJson};
///
/// let mut fields = Fields::default();
/// fields.push("cache_control", RawJson::parse(r#"{"type":"ephemeral"}"#)?);
/// assert_eq!(fields.get("cache_control").unwrap().as_str(), r#"{"type":"ephemeral"}"#);
/// # Ok::<(), session_compaction::Error>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Fields(Vec<(Box<str>, RawJson)>);

impl Fields {
    /// No fields.
    pub const EMPTY: Self = Self(Vec::new());

    /// Adds a field at the end.
    pub fn push(&mut self, name: impl Into<Box<str>>, value: RawJson) {
        self.0.push((name.into(), value));
    }

    /// Returns the first field of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RawJson> {
        self.0.iter().find(|(key, _)| &**key == name).map(|(_, value)| value)
    }

    /// Takes the first field of that name out.
    pub fn take(&mut self, name: &str) -> Option<RawJson> {
        let at = self.0.iter().position(|(key, _)| &**key == name)?;
        Some(self.0.remove(at).1)
    }

    /// Returns names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    /// Returns true when there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
