//! Facts: the strings that an agent needs letter by letter.

use super::words::is_dense_char;

/// What a fact looks like.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// An order number or error code: capitals and digits.
    Code,
    /// camelCase.
    Camel,
    Constant,
    File,
    Flag,
    /// A hash or UUID.
    Hash,
    /// A name inside another: `a.b`, `a::b`.
    Member,
    /// Letters and digits otherwise.
    Mixed,
    Number,
    Path,
    /// One slash, which may be a path or "and/or".
    Slashed,
    Snake,
    Url,
    Version,
}

impl Kind {
    /// How likely such a string is needed again.
    pub(super) const fn weight(self) -> f32 {
        match self {
            Self::File => 2.0,
            Self::Path => 1.3,
            Self::Camel | Self::Code | Self::Mixed | Self::Snake | Self::Version => 1.0,
            Self::Constant | Self::Member | Self::Slashed => 0.8,
            Self::Flag => 0.5,
            Self::Url => 0.4,
            Self::Hash => 0.3,
            Self::Number => 0.15,
        }
    }
}

/// A fact in a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fact<'a> {
    pub(super) text: &'a str,
    pub(super) start: usize,
    pub(super) kind: Kind,
}

impl Fact<'_> {
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// Returns the facts of a text in order.
pub(super) fn facts(text: &str) -> impl Iterator<Item = Fact<'_>> {
    Tokens { text, at: 0 }.filter_map(|(start, token)| {
        let closing_tag =
            token.starts_with('/') && text.get(..start).is_some_and(|before| before.ends_with('<'));
        let kept = token.trim_start_matches([':', '!', '?', '*', '&', '\\', '+'].as_slice());
        // One mark belongs to a name (a colour, an order), more open a heading.
        let kept = if kept.starts_with("##") { kept.trim_start_matches('#') } else { kept };
        let start = start + (token.len() - kept.len());
        let fact = kept.trim_end_matches(['.', ':', '!', '?', '*', '-', '\\', '…', '+'].as_slice());
        let kind = classify(fact).filter(|_| !closing_tag)?;
        Some(Fact { text: fact, start, kind })
    })
}

/// Pieces between white space, quotes, brackets and separators.
struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.text.get(self.at..)?;
        let skipped = rest.find(|c: char| !is_boundary(c))?;
        let start = self.at + skipped;
        let rest = self.text.get(start..)?;
        let len = rest.find(is_boundary).unwrap_or(rest.len());
        self.at = start + len;
        Some((start, rest.get(..len)?))
    }
}

fn is_boundary(c: char) -> bool {
    match c {
        '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '{' | '}' | ',' | ';' | '<' | '>' | '|'
        | '=' => true,
        c if c.is_ascii() => c.is_ascii_whitespace() || c.is_ascii_control(),
        c => c.is_whitespace() || is_dense_char(c) || !c.is_alphanumeric(),
    }
}

const LONGEST: usize = 160;

fn classify(token: &str) -> Option<Kind> {
    if token.len() < 3 || token.len() > LONGEST {
        return None;
    }
    let shape = Shape::of(token);
    if !shape.letter {
        // Years, sizes, amounts; a lone small number means nothing.
        let digits = token.bytes().filter(u8::is_ascii_digit).count();
        let plain = token.bytes().all(|b| b.is_ascii_digit() || b".,:-/$%+".contains(&b));
        return (plain && (digits >= 3 || digits >= 2 && shape.dots > 0)).then_some(Kind::Number);
    }
    if token.contains("://") || token.contains('@') && shape.dots > 0 && shape.slashes == 0 {
        return Some(Kind::Url);
    }
    if token.starts_with('-') {
        let flag = token.trim_start_matches('-');
        let plain = flag.starts_with(|c: char| c.is_ascii_alphabetic()) && token.starts_with("--");
        return (plain && flag.len() > 1).then_some(Kind::Flag);
    }
    if shape.slashes > 0 {
        let path = token.starts_with(['/', '~', '.'])
            || shape.slashes > 1
            || shape.dots > 0
            || token.ends_with('/');
        return Some(if path { Kind::Path } else { Kind::Slashed });
    }
    if is_hash(token) {
        return Some(Kind::Hash);
    }
    if shape.dots > 0 {
        return dotted(token, &shape);
    }
    if token.contains("::") {
        return Some(Kind::Member);
    }
    if shape.underscore {
        return Some(if shape.lower { Kind::Snake } else { Kind::Constant });
    }
    if shape.hump {
        return Some(Kind::Camel);
    }
    if !shape.digit {
        return None;
    }
    let code = !shape.lower && token.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    Some(if code && token.len() >= 4 { Kind::Code } else { Kind::Mixed })
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a mark that a token has or has not")]
struct Shape {
    letter: bool,
    lower: bool,
    digit: bool,
    underscore: bool,
    /// A capital after a small letter.
    hump: bool,
    slashes: usize,
    dots: usize,
}

impl Shape {
    fn of(token: &str) -> Self {
        let mut shape = Self::default();
        let mut last = b' ';
        let windows = token.get(1..3) == Some(":\\");
        for byte in token.bytes() {
            shape.letter |= byte.is_ascii_alphabetic() || byte >= 0x80;
            shape.lower |= byte.is_ascii_lowercase();
            shape.digit |= byte.is_ascii_digit();
            shape.underscore |= byte == b'_';
            shape.hump |= byte.is_ascii_uppercase() && last.is_ascii_lowercase();
            shape.slashes += usize::from(byte == b'/' || windows && byte == b'\\');
            shape.dots += usize::from(byte == b'.');
            last = byte;
        }
        shape
    }
}

fn dotted(token: &str, shape: &Shape) -> Option<Kind> {
    let (stem, extension) = token.rsplit_once('.')?;
    if stem.is_empty() || extension.is_empty() {
        return None;
    }
    if EXTENSIONS.contains(&extension.split(':').next().unwrap_or_default()) {
        return Some(Kind::File);
    }
    let numbers = token
        .trim_start_matches('v')
        .split('.')
        .all(|n| n.starts_with(|c: char| c.is_ascii_digit()));
    if numbers {
        return Some(Kind::Version);
    }
    // "e.g." and a missing space behind a full stop are no members.
    let known = shape.hump || shape.underscore || token.split('.').all(|name| name.len() > 1);
    (known && !token.contains("..")).then_some(Kind::Member)
}

fn is_hash(token: &str) -> bool {
    let hex = token.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let digits = token.bytes().filter(u8::is_ascii_digit).count();
    hex && token.len() >= 7 && digits >= 2 && digits < token.len()
}

const EXTENSIONS: [&str; 62] = [
    "c", "cc", "cfg", "conf", "cpp", "cs", "css", "csv", "cjs", "db", "env", "ex", "go", "gz", "h",
    "hpp", "html", "ini", "ipynb", "java", "jpg", "js", "json", "jsonl", "jsx", "kt", "less",
    "lock", "log", "lua", "md", "mdx", "mjs", "mts", "pdf", "php", "pl", "png", "proto", "ps1",
    "py", "rb", "rs", "rst", "scala", "scss", "sh", "sql", "svelte", "svg", "swift", "tf", "toml",
    "ts", "tsx", "txt", "vue", "xml", "yaml", "yml", "zig", "zip",
];
