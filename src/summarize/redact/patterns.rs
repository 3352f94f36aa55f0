//! The usual shapes of secrets.

use std::{borrow::Cow, sync::LazyLock};

use regex_lite::{Captures, Regex};

const REDACTED: &str = "[redacted]";

/// A shape: a text without any of the needles cannot have it, and most texts
/// have none of them.
struct Pattern {
    /// In lower case.
    needles: &'static [&'static str],
    /// The group `secret` is what goes.
    regex: &'static str,
    /// What must be true of a match besides.
    check: fn(&Captures<'_>) -> bool,
}

/// In this order: what an earlier one took out a later one does not see.
const PATTERNS: [Pattern; 10] = [
    Pattern {
        needles: &["private key-----"],
        regex: r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?P<secret>.*?)-----END [A-Z0-9 ]*PRIVATE KEY-----",
        check: |_| true,
    },
    // The end may be cut off.
    Pattern {
        needles: &["private key-----"],
        regex: r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?P<secret>[A-Za-z0-9+/=\s\\]+)",
        check: |_| true,
    },
    Pattern {
        needles: &["://"],
        regex: r#"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>]*:(?P<secret>[^\s/"'<>]+)@"#,
        check: |_| true,
    },
    Pattern {
        needles: &["authorization"],
        regex: r#"(?i)authorization\\?["']?\s*[:=]\s*\\?["']?(?:(?:bearer|basic|digest|token)\s+)?(?P<secret>[^\s"'\\,;\[\]]{6,})"#,
        check: is_no_scheme,
    },
    Pattern {
        needles: &["bearer"],
        regex: r"(?i)\bbearer\s+(?P<secret>[A-Za-z0-9._~+/-]{8,}=*)",
        check: has_digit_or_capital,
    },
    Pattern {
        needles: &["eyj"],
        regex: r"\b(?P<secret>eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{2,}(?:\.[A-Za-z0-9_-]*)?)",
        check: |_| true,
    },
    Pattern {
        needles: &["sk-", "k_live_", "k_test_"],
        regex: r"\b(?P<secret>sk-[A-Za-z0-9_-]{16,}|[srp]k_(?:live|test)_[A-Za-z0-9]{10,})",
        check: has_digit_or_capital,
    },
    Pattern {
        needles: &["akia", "asia", "aroa", "aida"],
        regex: r"\b(?P<secret>(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,})\b",
        check: has_digit_or_capital,
    },
    Pattern {
        needles: &["gh", "glpat-", "xox", "aiza", "npm_", "hf_", "sg."],
        regex: r"\b(?P<secret>gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{30,}|npm_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{30,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})",
        check: has_digit_or_capital,
    },
    Pattern {
        needles: &["key", "secret", "passw", "pwd", "token", "credential"],
        regex: r#"(?i)(?P<name>[a-z0-9_.-]*(?:api[_-]?key|access[_-]?key|private[_-]?key|secret|passwd|password|pwd|token|credential)[a-z0-9_]*)\\?["']?(?P<sep>\s*[:=]\s*)(?P<quote>\\?["'])?(?P<secret>[^\s"'\\,;&\[\](){}<>]{4,})"#,
        check: is_assigned,
    },
];

static COMPILED: LazyLock<Vec<(&'static Pattern, Regex)>> = LazyLock::new(|| {
    let compiled = PATTERNS.iter().map(|p| Some((p, Regex::new(p.regex).ok()?)));
    compiled.flatten().collect()
});

pub(super) fn redact(text: &str) -> Cow<'_, str> {
    let folded = text.to_ascii_lowercase();
    let mut text = Cow::Borrowed(text);
    for (pattern, regex) in COMPILED.iter() {
        if pattern.needles.iter().any(|needle| folded.contains(needle))
            && let Some(new) = replace(&text, pattern, regex)
        {
            text = Cow::Owned(new);
        }
    }
    text
}

fn replace(text: &str, pattern: &Pattern, regex: &Regex) -> Option<String> {
    let mut new = String::new();
    let mut done = 0;
    for found in regex.captures_iter(text) {
        let Some(secret) = found.name("secret") else { continue };
        if secret.as_str() != REDACTED && (pattern.check)(&found) {
            new.push_str(text.get(done..secret.start()).unwrap_or_default());
            new.push_str(REDACTED);
            done = secret.end();
        }
    }
    if done == 0 {
        return None;
    }
    new.push_str(text.get(done..).unwrap_or_default());
    Some(new)
}

/// Words look like keys otherwise: `sk-learn-contrib-example`.
fn has_digit_or_capital(found: &Captures<'_>) -> bool {
    found.name("secret").is_some_and(|secret| {
        secret.as_str().bytes().any(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
    })
}

/// The scheme itself, where what follows it is gone already.
fn is_no_scheme(found: &Captures<'_>) -> bool {
    found.name("secret").is_some_and(|secret| {
        let schemes = ["bearer", "digest"];
        !schemes.iter().any(|scheme| secret.as_str().eq_ignore_ascii_case(scheme))
    })
}

/// Tells `API_KEY=xyz` and `"password": "xyz"` from `max_tokens: 1024` and
/// from "the password: required".
fn is_assigned(found: &Captures<'_>) -> bool {
    let part = |name| found.name(name).map_or("", |part| part.as_str());
    let (name, value) = (part("name").to_ascii_lowercase(), part("secret"));
    let has = |test: fn(&u8) -> bool| value.as_bytes().iter().any(test);
    let (letters, digits) = (has(u8::is_ascii_alphabetic), has(u8::is_ascii_digit));
    // A count of tokens, and a value that is looked up and not written down.
    let looked_up = value.starts_with('$') || value.contains("environ") || value.contains("env.");
    if name.ends_with("tokens") || looked_up {
        return false;
    }
    let mixed = letters && digits;
    let password = ["passw", "pwd", "secret"].iter().any(|word| name.contains(word));
    let quoted = found.name("quote").is_some();
    let tight = part("sep") == "=";
    match (password, quoted || tight) {
        (true, true) => true,
        (true, false) => mixed,
        (false, true) => value.len() >= 8 && (mixed || value.len() >= 20),
        (false, false) => value.len() >= 12 && mixed,
    }
}

#[cfg(test)]
mod tests {
    use super::{COMPILED, PATTERNS};

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(COMPILED.len(), PATTERNS.len());
    }
}
