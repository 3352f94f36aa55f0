//! What an operator reads.

mod common;

use std::{
    io::{self, Write},
    sync::{Arc, Mutex},
};

use common::stub::{Stub, manager, messages};
use session_compaction::Compact;
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Lines {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn capture() -> (Lines, tracing::subscriber::DefaultGuard) {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(lines.clone())
        .with_ansi(false)
        .without_time()
        .finish();
    (lines, tracing::subscriber::set_default(subscriber))
}

// One thread: the subscriber is this thread's.
#[tokio::test(flavor = "current_thread")]
async fn a_compaction_is_two_lines() {
    let (lines, _guard) = capture();
    let sessions = manager(Stub::says("All parts do well."));
    sessions.add_messages("abc12345def", messages(0..24)).await.unwrap();
    assert!(sessions.compact("abc12345def", Compact::if_due()).await.applied().is_some());
    let chars: usize = messages(0..24).iter().map(|message| message.chars()).sum();
    let removed: usize = messages(0..20).iter().map(|message| message.chars()).sum();
    let text = lines.text();
    let first = format!(
        "[abc12345] summarizer: session={chars} chars, removing 20 msgs ({removed} chars), keeping 4 msgs"
    );
    assert!(text.contains(&first), "{text}");
    assert!(
        text.contains(&format!("[abc12345] summarizer done: -{removed} chars, summary 18 chars, "))
    );
    assert!(!text.contains("machine"), "no text of the conversation: {text}");
}

#[tokio::test(flavor = "current_thread")]
async fn a_failure_is_a_warning_and_a_key_cannot_forge_lines() {
    let (lines, _guard) = capture();
    let sessions = manager(Stub::new(|_| Err("no such model".into())));
    let key = "evil\n WARN forged\u{1b}[2J";
    sessions.add_messages(key, messages(0..24)).await.unwrap();
    assert!(sessions.compact(key, Compact::if_due()).await.applied().is_none());
    let text = lines.text();
    let warnings: Vec<_> = text.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(warnings.len(), 1, "{text}");
    assert!(warnings[0].contains("no such model"));
    assert!(!text.contains("forged") && !text.contains('\u{1b}'), "{text:?}");
}
