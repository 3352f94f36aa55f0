//! What counts as kept: rules that share nothing with the summarizer.

use std::collections::{HashMap, HashSet};

use session_compaction::Message;

const STOP: &str = "a an the and or but if to of in on at for with from by as is am are was were be been it its this that these those i you he she we they me my your our his her their him them not no so do does did have has had will would can could should may might just very really about into over after before up down out what when where which who how why";

/// The text of a message, with the names and arguments of its tool calls.
pub(crate) fn text(message: &Message) -> String {
    let calls = message.tool_calls().map(|call| format!("{} {}", call.name, call.arguments));
    let lines = std::iter::once(message.text()).chain(calls);
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// The content words of a text, without their endings.
pub(crate) fn keys(text: &str) -> HashSet<String> {
    let stop: HashSet<&str> = STOP.split(' ').collect();
    words(text)
        .into_iter()
        .map(str::to_lowercase)
        .filter(|word| !stop.contains(word.as_str()))
        .map(|word| stem(&word))
        .collect()
}

/// Runs of ASCII letters and digits; each Han character by itself.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        if c.is_ascii_alphanumeric() {
            start.get_or_insert(at);
            continue;
        }
        if let Some(start) = start.take() {
            words.push(&text[start..at]);
        }
        if is_han(c) {
            words.push(&text[at..at + c.len_utf8()]);
        }
    }
    words
}

pub(crate) fn is_han(c: char) -> bool {
    ('\u{4e00}'..='\u{9fff}').contains(&c)
}

fn stem(word: &str) -> String {
    let ending = (word.len() > 4)
        .then(|| ["ies", "ing", "ed", "es", "s", "ly"].into_iter().find(|e| word.ends_with(e)))
        .flatten();
    word[..word.len() - ending.map_or(0, str::len)].to_owned()
}

/// Lines, parted behind the end of a sentence.
pub(crate) fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut start = 0;
        let mut last = ' ';
        for (at, c) in line.char_indices() {
            // Chinese has no space behind a full stop.
            let behind = matches!(last, '.' | '!' | '?') && c.is_whitespace();
            if behind || matches!(last, '。' | '！' | '？') {
                found.push(&line[start..at]);
                start = at;
            }
            last = c;
        }
        found.push(&line[start..]);
    }
    found.iter().map(|s| s.trim()).filter(|s| !s.is_empty()).collect()
}

/// Says whether a text holds an answer as words of their own, whatever the case.
pub(crate) fn has(text: &str, answer: &str) -> bool {
    let (text, answer) = (text.to_lowercase(), answer.to_lowercase());
    let plain = |c: char| c.is_ascii_alphanumeric();
    text.match_indices(&answer).any(|(at, _)| {
        !text[..at].ends_with(plain) && !text[at + answer.len()..].starts_with(plain)
    })
}

/// What looks like no word of prose: with a digit, slash, dot, underscore, two
/// dashes or an inner capital.
pub(crate) fn facts(text: &str) -> HashSet<&str> {
    let part = |c: char| c.is_whitespace() || "\"'`()[]{},;<>|=".contains(c);
    let odd = |word: &str| {
        let bytes = word.as_bytes();
        bytes.iter().any(u8::is_ascii_alphabetic)
            && (word.contains(['/', '.', '_'])
                || word.contains("--")
                || bytes.iter().any(u8::is_ascii_digit)
                || bytes.windows(2).any(|w| w[0].is_ascii_lowercase() && w[1].is_ascii_uppercase()))
    };
    text.split(part)
        .map(|word| word.trim_matches(['.', ':', '!', '?', '*', '-']))
        .filter(|word| (4..=120).contains(&word.chars().count()))
        .filter(|word| odd(word) && !word.contains("\\n"))
        .collect()
}

/// How much of what was asked for is there.
#[derive(Clone, Copy, Default)]
pub(crate) struct Score {
    pub(crate) asked: usize,
    pub(crate) kept: usize,
    /// Kept beside two words of what stood around it.
    pub(crate) in_place: usize,
}

impl Score {
    pub(crate) fn add(&mut self, other: Self) {
        self.asked += other.asked;
        self.kept += other.kept;
        self.in_place += other.in_place;
    }

    pub(crate) fn percent(self) -> (f64, f64) {
        let of = |n: usize| 100.0 * n as f64 / self.asked.max(1) as f64;
        (of(self.kept), of(self.in_place))
    }
}

/// An answer in any of its spellings, and the sentences that gave it.
pub(crate) struct Answer {
    pub(crate) spellings: Vec<String>,
    pub(crate) sources: Vec<String>,
}

/// Judges by answers: anywhere, and on a line with two words of its source.
pub(crate) fn answers(context: &str, answers: &[Answer]) -> Score {
    let lines = sentences(context);
    let keyed: Vec<_> = lines.iter().map(|line| (*line, keys(line))).collect();
    let mut score = Score { asked: answers.len(), ..Score::default() };
    for answer in answers {
        let own: HashSet<_> = answer.spellings.iter().flat_map(|s| keys(s)).collect();
        let spelled = |line: &str, keyed: &HashSet<String>| {
            answer.spellings.iter().any(|spelling| {
                has(line, spelling) || is_latin(spelling) && keys(spelling).is_subset(keyed)
            })
        };
        let hits: Vec<_> = keyed.iter().filter(|(line, keys)| spelled(line, keys)).collect();
        let beside = |source: &String| {
            let around: HashSet<_> = keys(source).difference(&own).cloned().collect();
            hits.iter().any(|(_, keys)| keys.intersection(&around).count() >= 2)
        };
        score.kept += usize::from(!hits.is_empty());
        score.in_place += usize::from(answer.sources.iter().any(beside));
    }
    score
}

fn is_latin(text: &str) -> bool {
    text.chars().any(|c| c.is_ascii_alphabetic())
}

/// Where a session is cut: what the agent later writes of the past before a
/// message shows it again.
pub(crate) struct Cut {
    pub(crate) past: usize,
    pub(crate) needed: Vec<String>,
}

pub(crate) fn cuts(messages: &[Message], tokens: impl Fn(&str) -> u64) -> Vec<Cut> {
    let texts: Vec<String> = messages.iter().map(text).collect();
    let sizes: Vec<u64> = texts.iter().map(|text| tokens(text)).collect();
    let all: u64 = sizes.iter().sum();
    let mut cuts = Vec::new();
    for share in [40, 60, 80] {
        let mut sum = 0;
        let past = sizes.iter().take_while(|size| {
            let more = sum < all * share / 100;
            sum += *size;
            more
        });
        let past = past.count();
        let known: HashSet<&str> = texts[..past].iter().flat_map(|text| facts(text)).collect();
        let (mut seen, mut needed) = (HashSet::new(), HashSet::new());
        for (message, text) in messages.iter().zip(&texts).skip(past) {
            let found = facts(text);
            if message.role() == session_compaction::Role::Assistant {
                needed.extend(found.intersection(&known).filter(|fact| !seen.contains(*fact)));
            }
            seen.extend(found);
        }
        if needed.len() >= 2 {
            let mut needed: Vec<String> = needed.into_iter().map(str::to_owned).collect();
            needed.sort_unstable();
            cuts.push(Cut { past, needed });
        }
    }
    cuts
}

/// Judges by what is needed later.
pub(crate) fn look_ahead(context: &str, past: &[Message], needed: &[String]) -> Score {
    let lines: Vec<&str> = context.lines().collect();
    let texts: Vec<String> = past.iter().map(text).collect();
    let mut sources: HashMap<&str, Vec<HashSet<String>>> = HashMap::new();
    for line in texts.iter().flat_map(|text| text.lines()) {
        for fact in needed.iter().filter(|fact| line.contains(*fact)) {
            let found = sources.entry(fact).or_default();
            if found.len() < 60 {
                let start: String = line.chars().take(600).collect();
                found.push(keys(&start.replace(fact, " ")));
            }
        }
    }
    let mut score = Score { asked: needed.len(), ..Score::default() };
    for fact in needed {
        let parted = fact.rsplit_once('/').filter(|(_, base)| !base.is_empty());
        let in_parts = parted.is_some_and(|(folder, base)| {
            lines.iter().any(|line| line.contains(folder) && line.contains(base))
        });
        if !context.contains(fact) && !in_parts {
            continue;
        }
        score.kept += 1;
        let around: Vec<_> = lines
            .iter()
            .filter(|line| line.contains(fact))
            .map(|line| keys(&line.replace(fact, " ")))
            .collect();
        let told = sources.get(fact.as_str()).into_iter().flatten().filter(|s| !s.is_empty()).any(
            |source| {
                let least = source.len().min(2);
                around.iter().any(|line| line.intersection(source).count() >= least)
            },
        );
        score.in_place += usize::from(told);
    }
    score
}
