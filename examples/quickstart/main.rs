//! Replays a long agent session turn by turn through a manager whose window is
//! far too small for it, and shows what a model would have been sent.
//!
//!     cargo run --example quickstart             a real coding session, no key, no network
//!     cargo run --example quickstart -- FILE     a transcript of your own

#![expect(clippy::print_stdout, reason = "it is there to be looked at")]

mod chart;

use std::{env, error::Error, fs};

use session_compaction::{
    ByteEstimate, Compact, ExtractiveSummarizer, Message, Report, Request, Role, SessionManager,
    SummarizationConfig, Threshold, TokenCounter, formats,
};

const SESSION: &str = include_str!("../data/coding-session.jsonl");
const KEY: &str = "quickstart";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (name, text) = match env::args().nth(1) {
        Some(file) => (file.clone(), fs::read(&file).map_err(|error| format!("{file}: {error}"))?),
        None => ("a coding session".into(), SESSION.as_bytes().to_vec()),
    };
    let messages = formats::import(&text)?.messages;

    let config = SummarizationConfig {
        context_window: 48_000,
        message_threshold: Threshold::Off,
        keep_last_messages: 8,
        ..SummarizationConfig::default()
    };
    println!(
        "Replaying {name}: {} messages, a window of {} tokens.\n",
        messages.len(),
        config.context_window
    );
    let sessions = SessionManager::builder()
        .config(config)
        .summarizer(ExtractiveSummarizer::default())
        .build()?;

    let mut replay = Replay::default();
    for message in messages {
        replay.add(&sessions, message).await?;
    }
    replay.print(&sessions).await
}

/// What was sent, and what would have been.
#[derive(Default)]
struct Replay {
    turns: usize,
    compactions: usize,
    /// Tokens of the context of each model call.
    sent: Vec<u64>,
    /// The calls before which a compaction was applied.
    marks: Vec<usize>,
    /// Tokens of the history that was never cut.
    whole: u64,
    whole_sent: u64,
}

impl Replay {
    async fn add(
        &mut self,
        sessions: &SessionManager,
        message: Message,
    ) -> Result<(), Box<dyn Error>> {
        if message.is_human() {
            self.turns += 1;
        }
        if message.role() == Role::Assistant {
            // This is what a model answered: it was sent the context until here.
            let context = sessions.context(KEY, &Request::new()).await?;
            self.sent.push(context.tokens());
            self.whole_sent += self.whole;
        }
        self.whole += ByteEstimate::default().message(&message).count();
        sessions.add_message(KEY, message).await?;

        // An agent calls maybe_summarize, which does this in the background.
        if let Report::Applied(done) = sessions.compact(KEY, Compact::if_due()).await {
            self.compactions += 1;
            self.marks.push(self.sent.len());
            println!(
                "turn {:>3}: {:>3} messages ({:>6} chars) summarized, {:>2} kept word for word, {:>6} -> {:>5} tokens",
                self.turns,
                done.messages_removed,
                done.chars_removed,
                done.messages_kept,
                done.tokens_before,
                done.tokens_after,
            );
        }
        Ok(())
    }

    async fn print(&self, sessions: &SessionManager) -> Result<(), Box<dyn Error>> {
        let window = sessions.config().context_window;
        println!("\nTokens of the context at each of {} model calls:\n", self.sent.len());
        print!("{}", chart::saw_tooth(&self.sent, &self.marks, window));
        match sessions.summary(KEY).await? {
            Some(summary) => println!("\nThe summary at the end:\n\n{summary}\n"),
            None => println!("\nNothing had to be summarized.\n"),
        }
        let sent: u64 = self.sent.iter().sum();
        println!(
            "{} turns, {} compactions. {} model calls were sent {sent} tokens in place of {}: {} spared.",
            self.turns,
            self.compactions,
            self.sent.len(),
            self.whole_sent,
            percent(self.whole_sent.saturating_sub(sent), self.whole_sent),
        );
        let last = sessions.context(KEY, &Request::new()).await?.tokens();
        println!("The next call: {} tokens before, {last} tokens after.", self.whole);
        Ok(())
    }
}

fn percent(part: u64, of: u64) -> String {
    format!("{}%", part * 100 / of.max(1))
}
