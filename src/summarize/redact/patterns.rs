//! The usual shapes of secrets.

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use regex_lite::{Captures, Regex};

const REDACTED: &str = "[redacted]";

/// A shape. Without one of the needles there is no match, and most texts have
/// none of them.
struct Pattern {
    /// In lower case.
    needles: &'static [&'static str],
    /// The group `secret` is what goes.
    regex: &'static str,
    /// What stands near a needle in each match besides.
    also: &'static str,
    /// Whether it goes on over the end of the line.
    lines: bool,
    /// What must be true of a match besides.
    check: fn(&Captures<'_>) -> bool,
}

/// In this order: what an earlier one took out a later one does not see.
const PATTERNS: [Pattern; 10] = [
    Pattern {
        needles: &["private key-----"],
        also: "-----BEGIN",
        lines: true,
        regex: r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?P<secret>.*?)-----END [A-Z0-9 ]*PRIVATE KEY-----",
        check: |_| true,
    },
    // The end may be cut off.
    Pattern {
        needles: &["private key-----"],
        also: "-----BEGIN",
        lines: true,
        regex: r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?P<secret>[A-Za-z0-9+/=\s\\]+)",
        check: |_| true,
    },
    Pattern {
        needles: &["://"],
        also: "@",
        lines: false,
        regex: r#"[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>]*:(?P<secret>[^\s/"'<>]+)@"#,
        check: |_| true,
    },
    Pattern {
        needles: &["authorization"],
        also: "",
        lines: false,
        regex: r#"(?i)authorization\\?["']?\s*[:=]\s*\\?["']?(?:(?:bearer|basic|digest|token)\s+)?(?P<secret>[^\s"'\\,;\[\]]{6,})"#,
        check: is_no_scheme,
    },
    Pattern {
        needles: &["bearer"],
        also: "",
        lines: false,
        regex: r"(?i)\bbearer\s+(?P<secret>[A-Za-z0-9._~+/-]{8,}=*)",
        check: has_digit_or_capital,
    },
    Pattern {
        needles: &["eyj"],
        also: "",
        lines: false,
        regex: r"\b(?P<secret>eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{2,}(?:\.[A-Za-z0-9_-]*)?)",
        check: |_| true,
    },
    Pattern {
        needles: &["sk-", "k_live_", "k_test_"],
        also: "",
        lines: false,
        regex: r"\b(?P<secret>sk-[A-Za-z0-9_-]{16,}|[srp]k_(?:live|test)_[A-Za-z0-9]{10,})",
        check: has_digit_or_capital,
    },
    Pattern {
        needles: &["akia", "asia", "aroa", "aida"],
        also: "",
        lines: false,
        regex: r"\b(?P<secret>(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,})\b",
        check: has_digit_or_capital,
    },
    Pattern {
        needles: &["gh", "glpat-", "xox", "aiza", "npm_", "hf_", "sg."],
        also: "",
        lines: false,
        regex: r"\b(?P<secret>gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{30,}|npm_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{30,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,})",
        check: has_digit_or_capital,
    },
    Pattern {
        needles: &["key", "secret", "passw", "pwd", "token", "credential"],
        also: "",
        lines: false,
        regex: r#"(?i)(?P<name>[a-z0-9_.-]*(?:api[_-]?key|access[_-]?key|private[_-]?key|secret|passwd|password|pwd|token|credential)[a-z0-9_]*)\\?["']?(?P<sep>\s*[:=]\s*)(?P<quote>\\?["'])?(?P<secret>[^\s"'\\,;&\[\](){}<>]{4,})"#,
        check: is_assigned,
    },
];

static COMPILED: LazyLock<Vec<(&'static Pattern, Regex)>> = LazyLock::new(|| {
    let compiled = PATTERNS.iter().map(|p| Some((p, Regex::new(p.regex).ok()?)));
    compiled.flatten().collect()
});

pub(super) fn redact(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    let mut folded = text.to_ascii_lowercase();
    for (pattern, regex) in COMPILED.iter() {
        let secrets = secrets(&text, &folded, pattern, regex);
        if !secrets.is_empty() {
            text = Cow::Owned(without(&text, secrets));
            folded = text.to_ascii_lowercase();
        }
    }
    text
}

/// Finds what is to go. The expression is slow, so it sees only the lines that
/// hold a needle, and of a long line only what is near it.
fn secrets(text: &str, folded: &str, pattern: &Pattern, regex: &Regex) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for needle in pattern.needles {
        let mut from = 0;
        while let Some(at) = folded.get(from..).and_then(|rest| rest.find(needle)) {
            let at = from + at;
            let near = if pattern.lines { whole_lines(text, at) } else { one_line(text, at) };
            // What begins in the last part of a window is looked at with what
            // follows it; so no byte is looked at more than a few times.
            from = near.end.saturating_sub(BEHIND / 2).max(at + needle.len());
            if text.get(near.end..).is_none_or(|rest| rest.is_empty() || rest.starts_with('\n')) {
                from = near.end.max(at + needle.len());
            }
            let Some(window) = text.get(near.clone()).filter(|near| near.contains(pattern.also))
            else {
                continue;
            };
            for captures in regex.captures_iter(window) {
                let Some(secret) = captures.name("secret") else { continue };
                if secret.as_str() != REDACTED && (pattern.check)(&captures) {
                    found.push(near.start + secret.start()..near.start + secret.end());
                }
            }
        }
    }
    found.sort_unstable_by_key(|range| (range.start, range.end));
    found
}

/// How many bytes before and behind a needle are looked at, at least.
const BEFORE: usize = 100;
const BEHIND: usize = 600;

/// From a little before a place to the end of its line, or of the word there
/// where that is far away.
fn one_line(text: &str, at: usize) -> Range<usize> {
    let start = text.floor_char_boundary(at.saturating_sub(BEFORE));
    let start =
        text.get(start..at).and_then(|near| near.rfind('\n')).map_or(start, |n| start + n + 1);
    let end = text.get(at..).and_then(|rest| rest.find('\n')).map_or(text.len(), |n| at + n);
    let far = text.ceil_char_boundary(at.saturating_add(BEHIND));
    let word =
        text.get(far..end).and_then(|rest| rest.find(|c: char| c.is_whitespace() || c == '"'));
    start..word.map_or(end, |word| far + word)
}

/// From a place's line to the end: keys in PEM have many lines.
fn whole_lines(text: &str, at: usize) -> Range<usize> {
    one_line(text, at).start..text.len()
}

fn without(text: &str, secrets: Vec<Range<usize>>) -> String {
    let mut new = String::with_capacity(text.len());
    let mut done = 0;
    for Range { start, end } in secrets {
        if let Some(before) = text.get(done..start) {
            new.push_str(before);
            new.push_str(REDACTED);
        }
        done = done.max(end);
    }
    new.push_str(text.get(done..).unwrap_or_default());
    new
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
