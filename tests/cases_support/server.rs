//! The fake model behind HTTP: an OpenAI-compatible chat endpoint on loopback
//! that fails in the ways that real ones do.

use std::{io, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use super::{
    case::Llm,
    model::{Asked, Fake},
};

/// Starts the server on the present runtime and returns its base URL.
pub(crate) async fn start(fake: Arc<Fake>) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let fake = Arc::clone(&fake);
            // A client that hangs up is no concern of ours.
            tokio::spawn(async move { serve(stream, &fake).await.ok() });
        }
    });
    Ok(format!("http://{address}/v1"))
}

async fn serve(stream: TcpStream, fake: &Fake) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(body) = read_request(&mut stream).await? {
        let request: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let streamed = request.get("stream") == Some(&Value::Bool(true));
        let text = strings(&request).join("\n");
        let llm = fake.call(Asked::Http(request)).await;
        if llm.hang {
            std::future::pending::<()>().await;
        }
        let answer = Answer::of(&llm, &fake.reply(&llm, &text), streamed);
        let complete = answer.send(&llm, stream.get_mut()).await?;
        if !complete {
            return Ok(());
        }
    }
    Ok(())
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Vec<u8>>> {
    let mut length = 0;
    let mut line = String::new();
    loop {
        line.clear();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(body))
}

struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Answer {
    fn of(llm: &Llm, reply: &str, streamed: bool) -> Self {
        let mut headers: Vec<_> = llm.headers.iter().map(|(k, v)| (k.clone(), plain(v))).collect();
        let given = llm.http.is_some() || llm.body.is_some();
        let sse = !given && (streamed || llm.sse_truncated.is_some());
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            let kind = if sse { "text/event-stream" } else { "application/json" };
            headers.push(("content-type".into(), kind.into()));
        }
        let body = match &llm.body {
            Some(body) => plain(body),
            None if given => String::new(),
            None if sse => events(llm, reply),
            None => completion(llm, reply).to_string(),
        };
        Self { status: llm.http.unwrap_or(200), headers, body }
    }

    /// Sends the answer as the model does; false where the connection ends.
    async fn send(self, llm: &Llm, stream: &mut TcpStream) -> io::Result<bool> {
        let Self { status, headers, body } = self;
        let mut head = format!("HTTP/1.1 {status} Fake\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            head.extend([&name, ": ", &value, "\r\n"]);
        }
        head.push_str("\r\n");
        if let Some(bytes) = llm.reset_after_bytes {
            let all = [head.as_bytes(), body.as_bytes()].concat();
            stream.write_all(&all[..bytes.min(all.len())]).await?;
            stream.flush().await?;
            return Ok(false);
        }
        stream.write_all(head.as_bytes()).await?;
        let Some(rate) = llm.drip_bytes_per_s else {
            stream.write_all(body.as_bytes()).await?;
            stream.flush().await?;
            // A truncated stream ends with the connection, in the middle of an event.
            return Ok(llm.sse_truncated.is_none());
        };
        for byte in body.bytes() {
            stream.write_all(&[byte]).await?;
            stream.flush().await?;
            tokio::time::sleep(Duration::from_secs(1) / u32::try_from(rate.max(1)).unwrap_or(1))
                .await;
        }
        Ok(true)
    }
}

fn completion(llm: &Llm, reply: &str) -> Value {
    let mut message = json!({"role": "assistant", "content": reply});
    if llm.reply.is_none() && (llm.refusal.is_some() || llm.tool_calls.is_some()) {
        message["content"] = Value::Null;
    }
    for (name, value) in [
        ("refusal", llm.refusal.clone().map(Value::from)),
        ("reasoning_content", llm.reasoning_content.clone().map(Value::from)),
        ("tool_calls", llm.tool_calls.clone()),
    ] {
        if let Some(value) = value {
            message[name] = value;
        }
    }
    let default_reason = if llm.tool_calls.is_some() { "tool_calls" } else { "stop" };
    let reason = llm.finish_reason.as_deref().unwrap_or(default_reason);
    let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110});
    json!({
        "id": "chatcmpl-fake", "object": "chat.completion", "created": 0, "model": "fake",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": llm.usage.clone().unwrap_or(usage),
    })
}

fn events(llm: &Llm, reply: &str) -> String {
    let whole = completion(llm, reply);
    let choice = &whole["choices"][0];
    let chunk = |delta: &Value, reason: &Value, usage: &Value| {
        let chunk = json!({
            "id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 0, "model": "fake",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], "usage": usage,
        });
        format!("data: {chunk}\n\n")
    };
    let first = chunk(&choice["message"], &Value::Null, &Value::Null);
    if llm.sse_truncated.is_some() {
        let half = first.floor_char_boundary(first.len() / 2);
        return first[..half].to_owned();
    }
    let last = chunk(&json!({}), &choice["finish_reason"], &whole["usage"]);
    format!("{first}{last}data: [DONE]\n\n")
}

/// Every string of a JSON value.
pub(crate) fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter().flat_map(strings).collect(),
        Value::Object(object) => object.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
