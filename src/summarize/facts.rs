//! What a summary must hold letter by letter: the identifiers of the replaced
//! messages that it left out, as a short list at its end.

use std::{collections::HashMap, sync::Arc};

use super::guard;
use crate::{
    message::{Message, Part, Role},
    tokens::{TokenCounter, Tokens},
};

/// Share of a summary's bound that the list may take.
pub(super) const PERCENT: u64 = 15;

/// Only so many are looked at, the most useful first: a log holds thousands.
const CANDIDATES: usize = 500;

/// Adds the missing facts to a summary, within the budget. The same input gives
/// the same list.
pub(super) fn add(
    text: &str,
    heading: &str,
    existing: Option<&str>,
    messages: &[Arc<Message>],
    (budget, counter): (Tokens, &dyn TokenCounter),
) -> String {
    let text = without_list(text, heading);
    let mut list = String::new();
    for fact in ranked(existing, messages).into_iter().take(CANDIDATES) {
        if mentions(text, &fact) || mentions(&list, &fact) {
            continue;
        }
        let separator = if list.is_empty() { "" } else { "; " };
        let longer = format!("{list}{separator}{fact}");
        if counter.text(&format!("\n\n{heading} {longer}")) <= budget {
            list = longer;
        }
    }
    if list.is_empty() { text.to_owned() } else { format!("{text}\n\n{heading} {list}") }
}

/// Takes off a list that the model copied from the summary before: it is made
/// anew, from the same facts and the newer ones.
fn without_list<'a>(text: &'a str, heading: &str) -> &'a str {
    let text = text.trim_end();
    let last = text.rsplit_once('\n').filter(|(_, line)| line.starts_with(heading));
    last.map_or(text, |(before, _)| before.trim_end())
}

/// How often and how late a fact was used.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    weight: u64,
    /// In how many messages it stands.
    messages: u64,
    first: usize,
    last: usize,
    /// Whether a person or the model said it, not only a tool.
    spoken: bool,
}

/// Returns the facts, the most useful first.
fn ranked(existing: Option<&str>, messages: &[Arc<Message>]) -> Vec<String> {
    let mut uses: HashMap<String, Use> = HashMap::new();
    let mut at = 0;
    let mut note = |text: &str, message: usize, spoken: bool| {
        for (fact, weight) in facts(text) {
            at += 1;
            let known = uses.entry(fact.to_owned()).or_insert_with(|| Use {
                weight,
                first: at,
                last: usize::MAX,
                ..Use::default()
            });
            known.messages += u64::from(known.last != message);
            known.last = message;
            known.spoken |= spoken;
        }
    };
    note(existing.unwrap_or_default(), 0, true);
    for (index, message) in messages.iter().enumerate() {
        if message.role().is_system() {
            continue;
        }
        for part in message.parts() {
            match part {
                Part::ToolCall(call) => note(&call.arguments, index + 1, true),
                Part::Reasoning(_) | Part::Json(_) => {}
                part => {
                    let spoken =
                        message.role() != Role::Tool && !matches!(part, Part::ToolResult(_));
                    part.texts().into_iter().for_each(|text| note(text, index + 1, spoken));
                }
            }
        }
    }
    let all = messages.len().saturating_add(1) as u64;
    let score = |used: &Use| {
        let often = 2 + u64::from(used.messages.max(1).ilog2());
        let recent = (used.last as u64).saturating_mul(20) / all;
        let score = used.weight.saturating_mul(10).saturating_mul(often) + recent;
        // Tools print such things by the thousand; few are needed again.
        if used.spoken || used.messages > 1 { score } else { score / 3 }
    };
    let mut ranked: Vec<(String, Use)> = uses.into_iter().collect();
    ranked.sort_by_key(|(_, used)| (std::cmp::Reverse(score(used)), used.first));
    ranked.into_iter().map(|(fact, _)| fact).collect()
}

/// Returns true where the fact stands in the text as a word of its own.
fn mentions(text: &str, fact: &str) -> bool {
    text.match_indices(fact).any(|(start, _)| {
        let before = text.get(..start).and_then(|before| before.chars().next_back());
        let after = text.get(start + fact.len()..).and_then(|after| after.chars().next());
        let inside = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        !inside(before) && !inside(after)
    })
}

/// Returns the facts of a text in order, with what each is worth: commands in
/// backquotes, then words that look like one.
fn facts(text: &str) -> impl Iterator<Item = (&str, u64)> {
    let commands = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let commands = commands.filter(|command| {
        command.len() <= LONGEST && command.contains(' ') && !guard::is_blank(command)
    });
    commands.map(|command| (command, 3)).chain(words(text))
}

const LONGEST: usize = 160;

/// Pieces between white space, quotes, brackets and separators that are facts.
fn words(text: &str) -> impl Iterator<Item = (&str, u64)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = rest.trim_start_matches(is_boundary);
            let end = rest.find(is_boundary).unwrap_or(rest.len());
            let (word, behind) = rest.split_at_checked(end).filter(|(word, _)| !word.is_empty())?;
            if let Some(len) = with_unit(word, behind) {
                let (whole, behind) = rest.split_at_checked(len)?;
                rest = behind;
                return Some((whole, 2));
            }
            rest = behind;
            let word = word.trim_start_matches(['*', '#', ':']);
            let word = word.trim_end_matches(['.', ':', '!', '?', '*', '-']);
            if let Some(weight) = weight(word) {
                return Some((word, weight));
            }
        }
    })
}

fn is_boundary(c: char) -> bool {
    match c {
        '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' | '<' | '>' | '|'
        | '=' | '\\' => true,
        c if c.is_ascii() => c.is_ascii_whitespace() || c.is_ascii_control(),
        // Scripts without spaces part words by themselves.
        c => c >= '\u{2E80}' || !c.is_alphanumeric(),
    }
}

const UNITS: [&str; 34] = [
    "B", "KB", "kB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "ns", "us", "ms", "s", "sec",
    "min", "h", "hours", "minutes", "seconds", "days", "m", "mm", "cm", "km", "kg", "g", "W", "V",
    "Hz", "EUR", "USD", "rps", "tokens",
];

/// Returns the length of a number with the unit behind it: "15 ms" is one fact.
fn with_unit(word: &str, behind: &str) -> Option<usize> {
    let after = behind.strip_prefix(' ').filter(|_| is_number(word))?;
    let end = after.find(|c: char| !c.is_alphanumeric()).unwrap_or(after.len());
    let unit = after.get(..end).filter(|unit| UNITS.contains(unit))?;
    Some(word.len() + 1 + unit.len())
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// Returns what a word is worth as a fact; none where it is just a word.
fn weight(word: &str) -> Option<u64> {
    if word.len() < 2 || word.len() > LONGEST {
        return None;
    }
    let has = |test: fn(&u8) -> bool| word.as_bytes().iter().any(test);
    let (letter, digit) = (has(u8::is_ascii_alphabetic), has(u8::is_ascii_digit));
    let count = |byte: u8| word.bytes().filter(|b| *b == byte).count();
    if word.contains("://") || word.contains('@') && word.contains('.') && letter {
        return Some(3);
    }
    let slashes = count(b'/');
    if slashes > 0 && letter {
        let path = slashes > 1 || word.starts_with(['/', '~', '.']) || is_file(word);
        return path.then_some(3);
    }
    if is_file(word) {
        return Some(3);
    }
    if digit && letter {
        let measured = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        if UNITS.contains(&measured) {
            return Some(2);
        }
        // Ids, hashes, versions, codes, times.
        return (word.len() >= 3).then_some(if has(u8::is_ascii_uppercase) { 3 } else { 2 });
    }
    if digit {
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        // Dates, versions, addresses, shares, amounts; a small number means nothing alone.
        let built = count(b'.') + count(b'-') + count(b':') > 0 && digits >= 3;
        let share = word.ends_with('%') || word.starts_with(['$', '€', '£']);
        return (built || share || digits >= 4).then_some(if digits >= 4 { 2 } else { 1 });
    }
    // snake_case, CONSTANT, camelCase, module::name
    let bytes = word.as_bytes();
    let hump = bytes
        .iter()
        .zip(bytes.iter().skip(1))
        .any(|(a, b)| a.is_ascii_lowercase() && b.is_ascii_uppercase());
    let joined = word.trim_matches('_').contains('_') || word.contains("::");
    (letter && word.len() >= 4 && (joined || hump)).then_some(2)
}

fn is_file(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    // A line number may follow.
    let name = name.split(':').next().unwrap_or(name);
    name.rsplit_once('.').is_some_and(|(stem, extension)| {
        stem.bytes().any(|b| b.is_ascii_alphanumeric()) && EXTENSIONS.contains(&extension)
    })
}

const EXTENSIONS: [&str; 50] = [
    "c", "cc", "cfg", "conf", "cpp", "cs", "css", "csv", "db", "env", "go", "gz", "h", "hpp",
    "html", "ini", "ipynb", "java", "jpg", "js", "json", "jsonl", "jsx", "kt", "lock", "log",
    "lua", "md", "pdf", "php", "png", "proto", "py", "rb", "rs", "sh", "sql", "svg", "swift",
    "tar", "tf", "toml", "ts", "tsx", "txt", "vue", "xml", "yaml", "yml", "zip",
];

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{add, facts};
    use crate::{
        message::Message,
        tokens::{ByteEstimate, TokenCounter, Tokens},
    };

    fn found(text: &str) -> Vec<&str> {
        facts(text).map(|(fact, _)| fact).collect()
    }

    #[test]
    fn facts_are_told_from_words() {
        for (text, expected) in [
            (
                "See https://example.org/a?b, then /etc/nginx/nginx.conf.",
                vec!["https://example.org/a?b", "/etc/nginx/nginx.conf"],
            ),
            ("src/main.rs:42 fails with E0432", vec!["src/main.rs:42", "E0432"]),
            ("ticket OPS-4711 of 2026-11-30, v1.2.3", vec!["OPS-4711", "2026-11-30", "v1.2.3"]),
            ("commit 9fceb02 took 15 ms and 512MB, 87%", vec!["9fceb02", "15 ms", "512MB", "87%"]),
            ("run `cargo test --lib` first", vec!["cargo test --lib"]),
            ("端口是8443，文件是config.yaml。", vec!["8443", "config.yaml"]),
            ("call max_retries or parseConfig", vec!["max_retries", "parseConfig"]),
            ("and/or e.g. this, in 3 of 10 cases", vec![]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }

    fn messages() -> Vec<Arc<Message>> {
        let list = (0..300).map(|n| format!("/var/log/app-{n}.log")).collect::<Vec<_>>().join("\n");
        [
            Message::user("The host is db-7.example.org, look at /etc/app/config.toml"),
            Message::assistant("").with_tool_call("c", "ls", r#"{"path":"/var/log"}"#),
            Message::tool_result("c", list),
            Message::assistant("/etc/app/config.toml sets pool_size; error E1042 is in the log"),
            Message::user("Then raise pool_size to 64 in /etc/app/config.toml"),
        ]
        .map(Arc::new)
        .to_vec()
    }

    #[test]
    fn missing_facts_are_added_within_the_budget_and_present_ones_are_not() {
        let counter = ByteEstimate::default();
        let budget = Tokens::from_tokens(40);
        let summary = "The pool of /etc/app/config.toml is to be raised.";
        let made = add(summary, "Facts:", None, &messages(), (budget, &counter));
        let list = made.strip_prefix(summary).unwrap();
        assert!(counter.text(list) <= budget);
        assert!(list.starts_with("\n\nFacts: pool_size; "), "{list}");
        assert!(list.contains("E1042") && !list.contains("config.toml"), "{list}");
        let again = add(&made, "Facts:", None, &messages(), (budget, &counter));
        assert_eq!(again, made, "a copied list is made anew");
    }

    #[test]
    fn facts_of_the_old_summary_are_kept_as_well() {
        let counter = ByteEstimate::default();
        let old = Some("The order is ORD-9913.\n\nFacts: OPS-4711");
        let budget = Tokens::from_tokens(200);
        let made = add("Work goes on.", "Facts:", old, &messages(), (budget, &counter));
        assert!(made.contains("ORD-9913") && made.contains("OPS-4711"), "{made}");
        let none = add("All is well.", "Facts:", None, &[], (budget, &counter));
        assert_eq!(none, "All is well.");
    }
}
