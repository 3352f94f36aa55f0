//! Reading and writing JSON without a tree of values in between.

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::fmt;

use super::raw::{Fields, RawJson};

/// The members of an object in their order, doubles included, each value still
/// as its source text.
#[derive(Debug, Default)]
pub(crate) struct Members<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Reads an object; `None` for any other value.
    pub(crate) fn of(text: &'a str) -> Option<Self> {
        parse(text, '{')
    }

    /// Returns the last member of that name that is not null, as JSON readers
    /// commonly do.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let (_, value) = self.0.iter().rev().find(|(key, _)| key == name)?;
        (value.get() != "null").then_some(*value)
    }

    /// Returns the text of a member; `None` where it is no string.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        text_of(self.get(name)?)
    }

    /// Returns the text of a member, or the source of a number that stands
    /// where an id belongs.
    pub(crate) fn text_or_number(&self, name: &str) -> Option<String> {
        let value = self.get(name)?;
        text_of(value).or_else(|| {
            value
                .get()
                .starts_with(|c: char| c == '-' || c.is_ascii_digit())
                .then(|| value.get().to_owned())
        })
    }

    /// Returns true for a member that is `true`.
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get() == "true")
    }

    /// Returns a member's value as an object.
    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        Self::of(self.get(name)?.get())
    }

    /// Returns the members that are not among `known`.
    pub(crate) fn others(&self, known: &[&str]) -> Fields {
        let mut fields = Fields::EMPTY;
        for (key, value) in self.0.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
            fields.push(key.as_str(), RawJson::from(*value));
        }
        fields
    }

    /// Returns true when every member is among `known`.
    pub(crate) fn only(&self, known: &[&str]) -> bool {
        self.0.iter().all(|(key, _)| known.contains(&key.as_str()))
    }
}

/// Returns the text of a JSON string.
pub(crate) fn text_of(value: &RawValue) -> Option<String> {
    parse(value.get(), '"')
}

/// Returns the elements of a JSON array.
pub(crate) fn elements(value: &RawValue) -> Option<Vec<&RawValue>> {
    list_of(value.get())
}

fn list_of(json: &str) -> Option<Vec<&RawValue>> {
    parse(json, '[')
}

/// Returns true for two texts of one value, which differ at most in white
/// space, in the order of members and in how texts are escaped.
pub(crate) fn alike(one: &str, other: &str) -> bool {
    alike_at(one.trim_ascii(), other.trim_ascii(), 0)
}

fn alike_at(one: &str, other: &str, depth: usize) -> bool {
    // Whatever lies deeper has to be spelled alike.
    const MAX_DEPTH: usize = 16;

    if one == other || depth > MAX_DEPTH {
        return one == other;
    }
    let next = |(one, other): (&RawValue, &RawValue)| {
        alike_at(one.get(), other.get(), depth.saturating_add(1))
    };
    if let (Some(mut one), Some(mut other)) = (Members::of(one), Members::of(other)) {
        one.0.sort_by(|a, b| a.0.cmp(&b.0));
        other.0.sort_by(|a, b| a.0.cmp(&b.0));
        return one.0.len() == other.0.len()
            && one.0.iter().zip(&other.0).all(|(a, b)| a.0 == b.0 && next((a.1, b.1)));
    }
    if let (Some(one), Some(other)) = (list_of(one), list_of(other)) {
        return one.len() == other.len() && one.into_iter().zip(other).all(next);
    }
    match (parse::<String>(one, '"'), parse::<String>(other, '"')) {
        (Some(one), Some(other)) => one == other,
        _ => false,
    }
}

/// How many values a text of JSON may hold where each costs many times its
/// length when it is read.
const MAX_VALUES: usize = 1 << 17;

/// Returns true for JSON of more values than any message has.
pub(crate) fn has_too_many_values(json: &str) -> bool {
    json.len() > MAX_VALUES && values(json, usize::MAX) > MAX_VALUES
}

/// Returns true for an object of more members than any that is read.
pub(crate) fn has_too_many_members(json: &str) -> bool {
    json.len() > MAX_VALUES && values(json, 1) > MAX_VALUES / 16
}

/// Counts values down to a depth, closely enough: by commas and brackets.
pub(crate) fn values(json: &str, deepest: usize) -> usize {
    let (mut values, mut depth, mut in_text, mut escaped) = (0_usize, 0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => depth = depth.saturating_add(1),
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if !in_text && depth <= deepest && matches!(byte, b',' | b'[' | b'{') {
            values = values.saturating_add(1);
        }
    }
    values
}

/// Parses a value that begins so. Asked for another, `serde_json` would copy the
/// whole of it into an error.
fn parse<'a, T: Deserialize<'a>>(json: &'a str, begins: char) -> Option<T> {
    json.trim_ascii_start().starts_with(begins).then(|| serde_json::from_str(json).ok())?
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

/// How JSON is spelled.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Style {
    /// Without spaces, as most libraries write it.
    #[default]
    Compact,
    /// With a space after each comma and colon, as Python writes it.
    Spaced,
    /// So, and with everything but ASCII escaped: Python's default.
    SpacedAscii,
}

/// Writes JSON text piece by piece and sets the commas.
#[derive(Debug, Default)]
pub(crate) struct JsonWriter {
    out: Vec<u8>,
    comma: bool,
    style: Style,
}

impl JsonWriter {
    pub(crate) fn with_style(style: Style) -> Self {
        Self { style, ..Self::default() }
    }

    /// Makes room for about as much as a text that is written again.
    pub(crate) fn with_room_for(mut self, text: &str) -> Self {
        self.out.reserve(text.len());
        self
    }

    pub(crate) fn begin(&mut self, bracket: u8) {
        self.separate();
        self.out.push(bracket);
        self.comma = false;
    }

    pub(crate) fn end(&mut self, bracket: u8) {
        self.out.push(bracket);
        self.comma = true;
    }

    pub(crate) fn key(&mut self, name: &str) {
        self.text(name);
        self.out.extend_from_slice(if self.style == Style::Compact { b":" } else { b": " });
        self.comma = false;
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.separate();
        let start = self.out.len();
        // Text into memory: there is nothing that can fail.
        let _ = serde_json::to_writer(&mut self.out, text);
        if self.style == Style::SpacedAscii {
            self.escape_from(start);
        }
    }

    /// Writes what is JSON already.
    pub(crate) fn raw(&mut self, json: &str) {
        self.separate();
        self.out.extend_from_slice(json.as_bytes());
    }

    pub(crate) fn text_member(&mut self, name: &str, text: &str) {
        self.key(name);
        self.text(text);
    }

    pub(crate) fn raw_member(&mut self, name: &str, json: &str) {
        self.key(name);
        self.raw(json);
    }

    /// Writes fields beside those that the format itself has; a field that
    /// took a name of the format would make an object that reads differently.
    pub(crate) fn fields(&mut self, fields: &Fields, taken: &[&str]) {
        for (name, value) in fields.iter().filter(|(name, _)| !taken.contains(name)) {
            self.raw_member(name, value.as_str());
        }
    }

    pub(crate) fn finish(self) -> String {
        // Only text was written, so nothing is ever replaced.
        String::from_utf8(self.out).unwrap_or_default()
    }

    fn escape_from(&mut self, start: usize) {
        let written = self.out.split_off(start.min(self.out.len()));
        for c in String::from_utf8_lossy(&written).chars() {
            if matches!(c, ' '..='~') {
                self.out.extend(u8::try_from(c));
                continue;
            }
            for unit in c.encode_utf16(&mut [0; 2]) {
                self.out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
            }
        }
    }

    fn separate(&mut self) {
        if self.comma {
            self.out.extend_from_slice(if self.style == Style::Compact { b"," } else { b", " });
        }
        self.comma = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_is_no_difference() {
        for (one, other, is) in [
            (r#"{"a":1,"b":[2,"\u00e9"]}"#, "{ \"b\": [2, \"é\"],\n\"a\": 1 }", true),
            (r#"{"a":1}"#, r#"{"a":1.0}"#, false),
            (r#"{"a":null}"#, "{}", false),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#, false),
            ("[1,2]", "[2,1]", false),
            ("[]", "{}", false),
            (r#""a""#, r#""b""#, false),
        ] {
            assert_eq!(alike(one, other), is, "{one} {other}");
        }
    }

    #[test]
    fn values_are_counted_outside_texts() {
        let texts = format!("[\"{}\\\"\"]", ",".repeat(2 * MAX_VALUES));
        assert!(!has_too_many_values(&texts));
        let many = format!("[1{}]", ",1".repeat(MAX_VALUES));
        assert!(has_too_many_values(&many) && has_too_many_members(&many));
        assert!(!has_too_many_members(&format!("{{\"a\":{many}}}")));
    }
}
