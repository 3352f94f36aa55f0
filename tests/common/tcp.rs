//! A server that speaks HTTP as badly as it is told to.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking"
)]

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::interval,
};

/// What the server does on a connection, one after the other, once it has read
/// the request. After the last it closes.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends bytes one by one, one in each while.
    Drip(Vec<u8>, Duration),
    /// Sends a chunk again and again.
    Flood(Vec<u8>, usize),
    /// Does nothing more, and keeps the connection.
    Stall,
    /// Breaks the connection.
    Reset,
}

pub(crate) struct Server {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    task: JoinHandle<Infallible>,
}

impl Server {
    pub(crate) async fn start(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(stream, steps.clone(), Arc::clone(&counter)));
            }
        });
        Self { address, requests, task }
    }

    /// Returns an address at which nobody listens.
    pub(crate) async fn nobody() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns how many requests were read.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, steps: Vec<Step>, requests: Arc<AtomicUsize>) {
    if !read_request(&mut stream).await {
        return;
    }
    requests.fetch_add(1, Ordering::SeqCst);
    for step in steps {
        // The client may be gone, which is what many tests are about.
        let sent = match step {
            Step::Send(bytes) => stream.write_all(&bytes).await,
            Step::Drip(bytes, every) => drip(&mut stream, &bytes, every).await,
            Step::Flood(chunk, times) => flood(&mut stream, &chunk, times).await,
            Step::Stall => std::future::pending().await,
            Step::Reset => stream.set_zero_linger(),
        };
        if sent.is_err() {
            return;
        }
    }
}

async fn drip(stream: &mut TcpStream, bytes: &[u8], every: Duration) -> std::io::Result<()> {
    let mut clock = interval(every);
    for byte in bytes {
        clock.tick().await;
        stream.write_all(&[*byte]).await?;
    }
    Ok(())
}

async fn flood(stream: &mut TcpStream, chunk: &[u8], times: usize) -> std::io::Result<()> {
    for _ in 0..times {
        stream.write_all(chunk).await?;
    }
    Ok(())
}

/// Reads a request to its end: closing before would break the connection.
async fn read_request(stream: &mut TcpStream) -> bool {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer).await {
            Ok(read) if read > 0 => request.extend_from_slice(&buffer[..read]),
            _ => return false,
        }
        let text = String::from_utf8_lossy(&request).to_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        if body.len() >= length.map_or(0, |length| length.trim().parse().unwrap()) {
            return true;
        }
    }
}
