//! Reads transcripts that other tools wrote.

mod body;
mod claude_code;
mod codex;
mod document;
mod langchain;
mod lines;
mod loader;
mod room;
mod scanner;
mod shape;
mod sharegpt;
mod source;

use std::{
    fmt,
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::Path,
};

use self::{loader::Loader, scanner::Fault, source::read_any};
use super::Format;
use crate::{
    error::{Error, Result},
    message::{Message, json::Members},
};

const NAME: &str = "imported";

/// The longest message that is read, in bytes of JSON. No model's window holds
/// as much, and memory stays bounded whatever a line holds.
const MAX_MESSAGE: usize = 16 << 20;

/// Reads a transcript of any known format. See [`Importer`].
///
/// # Errors
///
/// Those of [`Importer::read`].
///
/// # Example
///
/// ```
/// use session_compaction::formats::{self, Format};
///
/// let dump = br#"[{"type":"human","data":{"content":"hi"}},{"type":"ai","data":{"content":"hello"}}]"#;
/// let import = formats::import(dump)?;
/// assert_eq!(import.format, Format::LangChain);
/// assert_eq!(import.messages[1].text(), "hello");
/// # Ok::<(), session_compaction::Error>(())
/// ```
pub fn import(bytes: &[u8]) -> Result<Import> {
    Importer::new().read(bytes)
}

/// What an import gave.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Import {
    /// The format that was found, or asked for.
    pub format: Format,
    /// The messages in order. A file of several conversations gives them one
    /// after the other.
    pub messages: Vec<Message>,
    /// The summary of what came before the messages, where the tool keeps one.
    pub summary: Option<String>,
    /// What was passed over, one entry a reason.
    pub skipped: Vec<Skipped>,
    /// How many lines held NUL bytes, text that is no UTF-8, or halves of
    /// surrogate pairs, which were taken out or replaced by U+FFFD. A document
    /// counts as one line.
    pub repaired_lines: usize,
}

/// How much was passed over for one reason.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Skipped {
    /// The reason.
    pub reason: SkipReason,
    /// How many records.
    pub count: usize,
    /// The first of them: its line, or in a single JSON document its number;
    /// both count from 1.
    pub first: usize,
    /// What was wrong with the first of them.
    pub detail: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reason, count, first, detail } = self;
        write!(f, "{count} skipped, {reason}, first at {first}: {detail}")
    }
}

/// Why a record was passed over.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum SkipReason {
    /// It is in the summary.
    AlreadySummarized,
    /// It is broken JSON, or a message of a shape that the format has not.
    Malformed,
    /// With it, memory would grow by more than 64 MiB over the size of what was
    /// read: it is one of more than a million tiny messages or parts.
    NoRoom,
    /// It is something else: an event, a snapshot, a title.
    NotAMessage,
    /// It belongs to an agent that this one started.
    SideChain,
    /// It is longer than 16 MiB, or of more than 131,072 values.
    TooLong,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::AlreadySummarized => "already summarized",
            Self::Malformed => "malformed",
            Self::NoRoom => "no room",
            Self::NotAMessage => "not a message",
            Self::SideChain => "side chain",
            Self::TooLong => "too long",
        })
    }
}

/// Reads transcripts: JSON lines, or one JSON document.
///
/// A file loads as far as it can; what was passed over is counted by reason.
/// Lines are read one at a time, and so are the elements of a document's list,
/// so that memory holds the messages and one line or element: at most 64 MiB
/// over what was read. A message takes 56 bytes and its texts, each of at least
/// 32; where more than a million tiny ones would take more than that, the rest
/// is skipped ([`SkipReason::NoRoom`]). Of a message's spelling (white space,
/// the order of keys) nothing is kept.
///
/// What is read is what a model saw: of a tool's own records, such as token
/// counts and working folders, nothing is kept.
///
/// # Example
///
/// ```
/// use session_compaction::formats::{Format, Importer};
///
/// let lines = "{\"role\":\"user\",\"content\":\"hi\"}\n{\"role\":\"assis";
/// let import = Importer::new().with_format(Format::OpenAiChat).read(lines.as_bytes())?;
/// assert_eq!(import.messages.len(), 1);
/// assert_eq!(import.skipped[0].first, 2);
/// # Ok::<(), session_compaction::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Importer {
    format: Option<Format>,
    meta: Option<Meta>,
}

/// What picoclaw keeps beside its JSON lines.
#[derive(Clone, Debug)]
struct Meta {
    summary: Option<String>,
    skip: usize,
}

impl Importer {
    /// Creates an importer that finds the format out by itself.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads as this format; records of another are skipped.
    #[must_use]
    pub const fn with_format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// Takes up picoclaw's meta file, which says how many lines of the JSON
    /// lines file are summarized already, and how.
    ///
    /// # Errors
    ///
    /// [`Error::is_message`] where it is no JSON object.
    pub fn with_meta(mut self, json: &str) -> Result<Self> {
        let members: Members<'_> = serde_json::from_str(json.trim_start_matches('\u{feff}'))
            .map_err(|error| Error::message("picoclaw meta", error.to_string()))?;
        let skip = members.text_or_number("skip").unwrap_or_default();
        let summary = members.text("summary").filter(|text| !text.trim().is_empty());
        self.meta = Some(Meta { summary, skip: skip.parse().unwrap_or_default() });
        Ok(self)
    }

    /// Reads a file. Beside `NAME.jsonl` a file `NAME.meta.json` is taken up as
    /// picoclaw's, unless [`Importer::with_meta`] was called.
    ///
    /// # Errors
    ///
    /// Those of [`Importer::read`], and where the file cannot be read.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Import> {
        let path = path.as_ref();
        let named = |error: io::Error| Error::message(NAME, format!("{}: {error}", path.display()));
        let meta = path.with_extension("meta.json");
        let importer = if self.meta.is_none()
            && path.extension().is_some_and(|it| it == "jsonl")
            && meta.is_file()
        {
            self.with_meta(&fs::read_to_string(meta).map_err(named)?)?
        } else {
            self
        };
        importer.read(BufReader::new(File::open(path).map_err(named)?))
    }

    /// Reads a transcript.
    ///
    /// # Errors
    ///
    /// [`Error::is_message`] where no message was found, with line and column
    /// where the JSON is broken, and where the reader fails.
    pub fn read(self, reader: impl BufRead) -> Result<Import> {
        let mut loader = Loader::new(self.format);
        let skip = self.meta.as_ref().map_or(0, |meta| meta.skip);
        read_any(&mut loader, reader, skip).map_err(failed)?;
        loader.finish(self.meta)
    }
}

fn failed(fault: Fault) -> Error {
    match fault {
        Fault::Io(error) => Error::message(NAME, error.to_string()),
        Fault::Syntax(problem) => Error::message(NAME, problem),
    }
}
