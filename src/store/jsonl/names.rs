//! File names: one for each key, the same on every file system.

use std::fmt::Write as _;

use crate::session::SessionKey;

const SUFFIX: &str = ".jsonl";
/// Longest name before the suffix; some encrypted file systems stop at 143.
const LONGEST: usize = 120;
/// How much of a long key stays readable.
const READABLE: usize = 80;
/// Device names that Windows reserves, whatever follows the first dot.
const RESERVED: &[&str] = &["aux", "con", "nul", "prn"];

/// Returns the file name of a key: lower-case letters, digits, `-` and `_` as
/// they are, every other byte as `%` and two hex digits. Names that get too
/// long end in a hash instead; such a file says in its header whose it is.
pub(super) fn file_name(key: &SessionKey) -> String {
    let mut stem = String::new();
    let mut readable = 0;
    for &byte in key.as_bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => stem.push(char::from(byte)),
            _ => escape(&mut stem, byte),
        }
        if stem.len() <= READABLE {
            readable = stem.len();
        }
    }
    if stem.len() > LONGEST {
        stem.truncate(readable);
        // A tilde stands in no other name.
        let _ = write!(stem, "~{:032x}", fnv1a(key.as_bytes()));
    }
    if is_reserved(&stem) {
        let mut escaped = String::new();
        let mut bytes = stem.bytes();
        bytes.next().into_iter().for_each(|first| escape(&mut escaped, first));
        escaped.extend(bytes.map(char::from));
        stem = escaped;
    }
    stem + SUFFIX
}

/// What a file name says about its key.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Named {
    /// The key.
    Key(SessionKey),
    /// Its hash: the header has it.
    Hash,
}

/// Reads a file name; `None` where it is not one that [`file_name`] gives.
pub(super) fn key_of(name: &str) -> Option<Named> {
    let stem = name.strip_suffix(SUFFIX)?;
    if let Some((_, hash)) = stem.split_once('~') {
        return (hash.len() == 32).then_some(Named::Hash);
    }
    let mut bytes = Vec::new();
    let mut rest = stem.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex(rest.next()?)? << 4 | hex(rest.next()?)?,
            other => other,
        });
    }
    let key = SessionKey::new(String::from_utf8(bytes).ok()?).ok()?;
    // Another spelling of the same key is a foreign file.
    (file_name(&key) == name).then_some(Named::Key(key))
}

fn escape(stem: &mut String, byte: u8) {
    // Writing to a string cannot fail.
    let _ = write!(stem, "%{byte:02x}");
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

fn is_reserved(stem: &str) -> bool {
    let port = |name: &str| {
        stem.strip_prefix(name)
            .is_some_and(|n| n.len() == 1 && n.bytes().all(|b| b.is_ascii_digit()))
    };
    RESERVED.contains(&stem) || port("com") || port("lpt")
}

/// FNV-1a with 128 bits.
fn fnv1a(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn name(key: &str) -> String {
        file_name(&SessionKey::new(key).unwrap())
    }

    #[test]
    fn readable_where_that_is_portable() {
        assert_eq!(name("cli-session_7"), "cli-session_7.jsonl");
        assert_eq!(name("telegram:42"), "telegram%3a42.jsonl");
        assert_eq!(name("../x"), "%2e%2e%2fx.jsonl");
        assert_eq!(name("Ab"), "%41b.jsonl");
        assert_eq!(name("con"), "%63on.jsonl");
        assert_eq!(name("com1"), "%63om1.jsonl");
        assert_eq!(name("\0"), "%00.jsonl");
        let long = name(&"k".repeat(300));
        assert!(long.starts_with(&"k".repeat(80)) && long.len() < 143, "{long}");
    }

    #[test]
    fn every_key_has_a_name_of_its_own_also_without_case() {
        let long = "k".repeat(300);
        let other = format!("{}j", "k".repeat(299));
        let keys = [
            "a:b",
            "a_b",
            "a/b",
            "a\\b",
            "A:B",
            "a%3Ab",
            "a%3ab",
            "\u{e9}",
            "e\u{301}",
            "CON",
            "con",
            "nul.txt",
            "x.",
            "x ",
            " ",
            "..",
            ".",
            "\u{202e}a",
            "\0",
            "~",
            &long,
            &other,
        ];
        let names: HashSet<String> = keys.iter().map(|key| name(key)).collect();
        assert_eq!(names.len(), keys.len());
        for key in keys {
            let name = name(key);
            assert_eq!(name, name.to_lowercase());
            assert!(name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/'), "{name}");
            match key_of(&name).unwrap() {
                Named::Key(read) => assert_eq!(&*read, key),
                Named::Hash => assert!(key.len() > 120),
            }
        }
    }

    #[test]
    fn foreign_names_are_passed_over() {
        for name in ["x", ".lock", "A.jsonl", "%6.jsonl", "%61.jsonl", "%ff.jsonl", ".jsonl"] {
            assert_eq!(key_of(name), None, "{name}");
        }
    }
}
