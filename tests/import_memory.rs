//! The memory of an import is bounded, whatever a file holds: at most 64 MiB
//! over its size. Each test runs in a process of its own, since the peak that
//! the kernel reports is that of the whole process.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::{
    env, fs,
    io::{self, BufReader, Read},
    iter,
    process::Command,
};

use session_compaction::formats::{Format, Import, Importer, SkipReason};

const MIB: usize = 1 << 20;
const CHILD: &str = "IMPORT_MEMORY_CHILD";

/// A file that is made as it is read.
struct Made<I> {
    pieces: I,
    piece: io::Cursor<Vec<u8>>,
    len: usize,
}

impl<I: Iterator<Item = String>> Read for Made<I> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let len = self.piece.read(out)?;
            if len > 0 {
                self.len += len;
                return Ok(len);
            }
            match self.pieces.next() {
                Some(piece) => self.piece = io::Cursor::new(piece.into_bytes()),
                None => return Ok(0),
            }
        }
    }
}

fn peak() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
}

/// Runs a test in a process of its own.
fn alone(test: &str, run: impl FnOnce()) {
    if env::var_os(CHILD).is_some() {
        return run();
    }
    let status = Command::new(env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{test}: {status}");
}

/// Reads what the pieces make. Checks that memory grew by no more than what was
/// read, if that is `kept`, and 64 MiB.
fn import(
    pieces: impl IntoIterator<Item = String>,
    kept: bool,
) -> session_compaction::Result<Import> {
    let mut made = Made { pieces: pieces.into_iter(), piece: io::Cursor::default(), len: 0 };
    let before = peak();
    let import = Importer::new().read(BufReader::new(&mut made));
    let more = peak() - before;
    let bound = 64 * MIB + if kept { made.len } else { 0 };
    eprintln!("{} kB for {} kB, at most {}", more >> 10, made.len >> 10, bound >> 10);
    assert!(more <= bound, "{more} bytes for {} bytes, at most {bound}", made.len);
    import
}

/// A message of that many bytes of text, in small pieces.
fn message(bytes: usize) -> impl Iterator<Item = String> {
    let text = iter::repeat_n("x".repeat(MIB / 4), bytes / (MIB / 4));
    around("{\"role\":\"user\",\"content\":\"", text, "\"}")
}

fn around(
    head: &str,
    body: impl Iterator<Item = String>,
    tail: &str,
) -> impl Iterator<Item = String> {
    iter::once(head.to_owned()).chain(body).chain(iter::once(tail.to_owned()))
}

/// Elements with something between them.
fn list<I: Iterator<Item = String>>(
    count: usize,
    between: &'static str,
    element: impl Fn() -> I,
) -> impl Iterator<Item = String> {
    (0..count).flat_map(move |at| {
        let comma = if at == 0 { "" } else { between };
        iter::once(comma.to_owned()).chain(element())
    })
}

fn once(text: &'static str) -> impl Fn() -> iter::Once<String> {
    move || iter::once(text.to_owned())
}

fn texts(import: &Import) -> Vec<usize> {
    import.messages.iter().map(|message| message.text().len()).collect()
}

#[test]
fn a_long_line() {
    alone("a_long_line", || {
        let lines = around("{\"role\":\"user\",\"content\":\"a\"}\n", message(100 * MIB), "\n")
            .chain(message(0));
        let import = import(lines, false).unwrap();
        assert_eq!(texts(&import), [1, 0]);
        assert_eq!((import.skipped[0].reason, import.skipped[0].first), (SkipReason::TooLong, 2));
    });
}

#[test]
fn a_long_first_line() {
    alone("a_long_first_line", || {
        let lines = around("", message(100 * MIB), "\n").chain(message(0));
        let import = import(lines, false).unwrap();
        assert_eq!(texts(&import), [0]);
        assert_eq!((import.skipped[0].reason, import.skipped[0].first), (SkipReason::TooLong, 1));
    });
}

#[test]
fn a_message_just_short_enough() {
    alone("a_message_just_short_enough", || {
        let import = import(message(15 * MIB), true).unwrap();
        assert_eq!(texts(&import), [15 * MIB]);
    });
}

#[test]
fn a_list_on_one_line() {
    alone("a_list_on_one_line", || {
        let document = around("[", list(25, ",", || message(4 * MIB)), "]");
        let import = import(document, true).unwrap();
        assert_eq!(texts(&import), [4 * MIB; 25]);
        assert!(import.skipped.is_empty());
    });
}

#[test]
fn a_list_on_many_lines() {
    alone("a_list_on_many_lines", || {
        let spaced = || {
            let text = iter::repeat_n("x".repeat(MIB / 4), 16);
            around("  {\n    \"content\": \"", text, "\",\n    \"role\": \"user\"\n  }")
        };
        let document = around("[\n", list(25, ",\n", spaced), "\n]\n");
        let import = import(document, true).unwrap();
        assert_eq!(texts(&import), [4 * MIB; 25]);
    });
}

#[test]
fn a_list_within_an_object() {
    alone("a_list_within_an_object", || {
        let document = around(
            "{\"key\":\"telegram:1\",\"messages\":[",
            list(25, ",", || message(4 * MIB)),
            "],\"summary\":\"They met.\",\"created\":\"2026-01-01T00:00:00Z\"}",
        );
        let import = import(document, true).unwrap();
        assert_eq!((import.format, texts(&import)), (Format::PicoClaw, vec![4 * MIB; 25]));
        assert_eq!(import.summary.as_deref(), Some("They met."));
    });
}

#[test]
fn an_element_too_long() {
    alone("an_element_too_long", || {
        let document = around("[", message(100 * MIB), ",").chain(message(0)).chain(["]".into()]);
        let import = import(document, false).unwrap();
        assert_eq!(texts(&import), [0]);
        assert_eq!((import.skipped[0].reason, import.skipped[0].first), (SkipReason::TooLong, 1));
    });
}

#[test]
fn an_element_too_long_within_an_object() {
    alone("an_element_too_long_within_an_object", || {
        let document = around("{\n\"messages\":[", message(100 * MIB), ",")
            .chain(message(0))
            .chain(["],\n\"system\":\"Be brief.\"}".into()]);
        let import = import(document, false).unwrap();
        assert_eq!(texts(&import), [9, 0]);
        assert_eq!(import.format, Format::Anthropic);
        assert_eq!(import.skipped[0].reason, SkipReason::TooLong);
    });
}

#[test]
fn a_list_cut_off() {
    alone("a_list_cut_off", || {
        let document = around("[", list(25, ",", || message(4 * MIB)), ",{\"role\"");
        let error = import(document, true).unwrap_err();
        assert!(error.to_string().contains("line 1 column 1048"), "{error}");
    });
}

#[test]
fn a_million_tiny_messages() {
    alone("a_million_tiny_messages", || {
        let tiny = once("{\"role\":\"user\",\"content\":\"x\"}");
        let document = around("[", list(1_000_000, ",", tiny), "]");
        let import = import(document, true).unwrap();
        assert_eq!(import.messages.len(), 1_000_000);
    });
}

#[test]
fn a_million_tiny_lines() {
    alone("a_million_tiny_lines", || {
        let tiny = once("{\"content\":\"x\",\"role\":\"user\"}");
        let import = import(list(1_000_000, "\n", tiny), true).unwrap();
        assert_eq!(import.messages.len(), 1_000_000);
    });
}

#[test]
fn tiny_messages_on_many_lines() {
    alone("tiny_messages_on_many_lines", || {
        let tiny = once("  {\n    \"role\": \"user\",\n    \"content\": \"x\"\n  }");
        let document = around("{\n\"messages\": [\n", list(500_000, ",\n", tiny), "\n]\n}\n");
        let import = import(document, true).unwrap();
        assert_eq!(import.messages.len(), 500_000);
    });
}

/// Each part costs many times what it takes in the file.
#[test]
fn a_message_of_a_million_parts() {
    alone("a_message_of_a_million_parts", || {
        let parts = list(7_000_000, ",", once("1"));
        let lines = around("{\"role\":\"user\",\"content\":[", parts, "]}\n").chain(message(0));
        let import = import(lines, false).unwrap();
        assert_eq!(texts(&import), [0]);
        assert_eq!(import.skipped[0].reason, SkipReason::TooLong);
    });
}

/// A tiny message takes three times what it has in the file: beyond a million
/// of them there is no room for more.
#[test]
fn more_messages_than_there_is_room_for() {
    alone("more_messages_than_there_is_room_for", || {
        let tiny = once("{\"role\":\"user\",\"content\":\"x\"}");
        let import = import(list(3_000_000, "\n", tiny), true).unwrap();
        let skipped = &import.skipped[0];
        assert_eq!(skipped.reason, SkipReason::NoRoom);
        assert_eq!(import.messages.len() + skipped.count, 3_000_000);
        assert!(import.messages.len() > 1_000_000, "{}", import.messages.len());
    });
}

#[test]
fn many_messages_of_many_parts() {
    alone("many_messages_of_many_parts", || {
        let lines = list(100, "\n", || {
            around("{\"role\":\"user\",\"content\":[", list(100_000, ",", once("1")), "]}")
        });
        let import = import(lines, true).unwrap();
        assert_eq!(import.skipped[0].reason, SkipReason::NoRoom);
        assert!(import.messages.len() >= 2, "{}", import.messages.len());
    });
}

#[test]
fn an_item_list_without_end() {
    alone("an_item_list_without_end", || {
        let items = list(3_000_000, ",", once("{\"type\":\"x_call\"}"));
        let import = import(around("{\"input\":[", items, "]}"), true);
        assert!(import.is_err() || !import.unwrap().skipped.is_empty());
    });
}
