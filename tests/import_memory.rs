//! The memory of an import is bounded, whatever a line holds. Alone in its
//! file: the peak that the kernel reports is that of the whole process.

#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{self, BufReader, Read},
};

use session_compaction::formats::{Importer, SkipReason};

/// A line of 100 MB between two others, made as it is read.
struct LongLine {
    head: io::Cursor<&'static [u8]>,
    left: usize,
    tail: io::Cursor<&'static [u8]>,
}

impl Read for LongLine {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.head.read(out)? {
            0 if self.left == 0 => self.tail.read(out),
            0 => {
                let len = out.len().min(self.left);
                out.iter_mut().take(len).for_each(|byte| *byte = b'x');
                self.left -= len;
                Ok(len)
            }
            len => Ok(len),
        }
    }
}

#[test]
fn a_line_of_100_mb_is_not_held() {
    let peak = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10
    };
    let reader = LongLine {
        head: io::Cursor::new(
            b"{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"user\",\"content\":\"",
        ),
        left: 100 << 20,
        tail: io::Cursor::new(b"\"}\n{\"role\":\"user\",\"content\":\"b\"}\n"),
    };
    let before = peak();
    let import = Importer::new().read(BufReader::new(reader)).unwrap();
    let more = peak() - before;
    assert_eq!(import.messages.len(), 2);
    assert_eq!((import.skipped[0].reason, import.skipped[0].first), (SkipReason::TooLong, 2));
    assert!(more < 64 << 20, "{more} bytes");
}
