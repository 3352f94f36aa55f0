//! The loop of an agent, and what goes wrong in one: a call that fails, a
//! context that is too long, a stop, an answer that is asked for again.

#![allow(clippy::pedantic, clippy::restriction, reason = "a script")]

use std::collections::VecDeque;

use session_compaction::{
    Body, Message, Request, Result, SessionManager, To, formats::openai_chat,
};

const KEY: &str = "telegram:42";
const TOO_LONG: &str = r#"{"error":{"message":"prompt is too long: 900 tokens > 800 maximum"}}"#;

/// A status and a body.
struct Refused(u16, &'static str);

/// Stands in for a provider: what it answers, in turn.
struct Model(VecDeque<Result<String, Refused>>);

impl Model {
    async fn post(&mut self, _request: Body) -> Result<String, Refused> {
        self.0.pop_front().unwrap_or(Err(Refused(503, "the script has ended")))
    }
}

fn says(text: &str) -> Result<String, Refused> {
    let message = format!(r#"{{"role":"assistant","content":"{text}"}}"#);
    Ok(format!(r#"{{"choices":[{{"message":{message}}}]}}"#))
}

fn calls(id: &str) -> Result<String, Refused> {
    let call = format!(r#"{{"id":"{id}","function":{{"name":"df","arguments":"{{}}"}}}}"#);
    let message = format!(r#"{{"role":"assistant","content":null,"tool_calls":[{call}]}}"#);
    Ok(format!(r#"{{"choices":[{{"message":{message}}}]}}"#))
}

/// One turn; with `stop` the user ends it while a tool is about to run.
async fn turn(
    (sessions, model, log): (&SessionManager, &mut Model, &mut Vec<String>),
    message: Message,
    stop: bool,
) -> Result<()> {
    log.push(format!("user: {}", message.text()));
    let request = Request::new().system("You look after a machine.").max_output(500);
    let mut turn = sessions.turn(KEY, message).await?;
    loop {
        let context = turn.context(&request).await?;
        log.extend(context.steps().iter().map(|step| format!("  {step:?}")));
        let json = match model.post(context.to_openai_chat()).await {
            Ok(json) => json,
            Err(Refused(status, body)) if turn.recover(status, body).await? => continue,
            Err(Refused(status, _)) => {
                log.push(format!("  failed with {status}: taken back"));
                return turn.rollback().await;
            }
        };
        let reply = openai_chat::parse_reply(&json)?;
        let text = reply.message.text();
        let calls = turn.reply(&context, reply).await?;
        log.push(format!("assistant: {} calls, {text:?}", calls.len()));
        if calls.is_empty() {
            break;
        }
        if stop {
            log.push("  stopped: taken back".into());
            return turn.rollback().await;
        }
        let result = "42% of 1 TB used ".repeat(20);
        turn.results(calls.into_iter().map(|call| Message::tool_result(call.id, &*result))).await?;
    }
    turn.finish().await;
    Ok(())
}

/// Plays the script, and returns what happened.
pub(crate) async fn play() -> Result<Vec<String>> {
    let first = [calls("c1"), calls("c2"), says("42% used.")];
    let second = [Err(Refused(500, "")), calls("c3"), Err(Refused(400, TOO_LONG)), says("Yes.")];
    let third = [calls("c4"), says("Still 42%.")];
    let mut model = Model(first.into_iter().chain(second).chain(third).collect());
    let (sessions, mut log) = (SessionManager::builder().build()?, Vec::new());
    for text in ["Is the disk full?", "Sure?", "Sure?"] {
        turn((&sessions, &mut model, &mut log), Message::user(text), false).await?;
    }
    turn((&sessions, &mut model, &mut log), Message::user("Stop it."), true).await?;
    let taken = sessions.rewind(KEY, To::BeforeLastUser).await?; // to have it answered again
    log.push(format!("  {} messages taken back", taken.len()));
    if let Some(asked) = taken.first() {
        turn((&sessions, &mut model, &mut log), Message::clone(asked), false).await?;
    }
    Ok(log)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    play().await?.iter().for_each(|line| println!("{line}"));
    Ok(())
}
