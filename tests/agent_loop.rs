//! The example of an agent's loop does what its transcript says.

#[allow(
    dead_code,
    clippy::allow_attributes,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "an example is a program of its own"
)]
#[path = "../examples/agent_loop.rs"]
mod agent_loop;

#[tokio::test]
async fn the_transcript_is_line_by_line_what_is_expected() {
    let lines = agent_loop::play().await.unwrap();
    assert_eq!(lines.join("\n"), TRANSCRIPT.trim());
}

#[test]
fn the_example_stays_short() {
    let lines = include_str!("../examples/agent_loop.rs").lines().count();
    assert!(lines < 100, "{lines} lines");
}

const TRANSCRIPT: &str = r#"
user: Is the disk full?
assistant: 1 calls, ""
assistant: 1 calls, ""
assistant: 0 calls, "42% used."
user: Sure?
  failed with 500: taken back
user: Sure?
assistant: 1 calls, ""
  NotCompacted { reason: "there is no summarizer" }
  Forced { messages: 3 }
  Forced { messages: 3 }
assistant: 0 calls, "Yes."
user: Stop it.
assistant: 1 calls, ""
  stopped: taken back
  4 messages taken back
user: Sure?
assistant: 0 calls, "Still 42%."
"#;
