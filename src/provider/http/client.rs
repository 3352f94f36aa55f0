//! One request and its whole answer, within bounds.

use std::{error::Error as StdError, fmt, time::Duration};

use jiff::Timestamp;
use reqwest::{
    Response, Url,
    header::{CONTENT_ENCODING, HeaderMap, HeaderName},
    redirect::Policy,
};
use serde_json::Value;
use tokio::time::timeout;

use super::{
    address::{Reach, Refused},
    base_url::{self, Resolver},
    failure::{ApiError, Failure},
    key::Key,
    retry_after,
};
use crate::provider::{ProviderError, ProviderErrorKind};

/// The most bytes of an answer that are read.
const MOST: usize = 4 << 20;
/// How long a whole call may take, unless told otherwise.
const TOTAL: Duration = Duration::from_mins(2);
/// How long an answer that has begun may stand still, unless told otherwise.
const IDLE: Duration = Duration::from_mins(1);
const CONNECT: Duration = Duration::from_secs(10);

/// What a provider's settings are called, for the errors.
#[derive(Debug)]
pub(crate) struct Names {
    /// The variable of the key.
    pub(crate) key: &'static str,
    /// The variable of the base URL.
    pub(crate) url: &'static str,
    /// The header of the key.
    pub(crate) header: &'static str,
    /// What stands before the key in its header.
    pub(crate) prefix: &'static str,
}

/// Talks to one base URL.
pub(crate) struct Client {
    http: reqwest::Client,
    base: Url,
    key: Key,
    names: &'static Names,
    total: Duration,
    idle: Duration,
}

impl Client {
    pub(crate) fn new(base_url: &str, names: &'static Names) -> Result<Self, ProviderError> {
        let base = base_url::parse(base_url, Reach::Any)?;
        let http = build(&base, Reach::Any)?;
        Ok(Self { http, base, key: Key::default(), names, total: TOTAL, idle: IDLE })
    }

    /// Reads the key and the base URL from the environment. A key is only
    /// needed where no base URL is given: a local server wants none.
    pub(crate) fn from_env(
        names: &'static Names,
        default_url: &str,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ProviderError> {
        let set = |name: &str| env(name).filter(|text| !text.trim().is_empty());
        let (key, url) = (set(names.key), set(names.url));
        if key.is_none() && url.is_none() {
            let Names { key, url, .. } = names;
            let what = format!("set {key}, or {url} for a server that needs no key");
            return Err(ProviderError::new(ProviderErrorKind::Config, what));
        }
        Ok(Self::new(url.as_deref().unwrap_or(default_url), names)?
            .with_key(key.as_deref().unwrap_or_default()))
    }

    pub(crate) fn with_key(mut self, key: &str) -> Self {
        self.key = Key::new(key);
        self
    }

    pub(crate) fn with_timeouts(mut self, total: Duration, idle: Duration) -> Self {
        self.total = total;
        self.idle = idle;
        self
    }

    pub(crate) fn public_only(mut self) -> Result<Self, ProviderError> {
        self.base = base_url::parse(self.base.as_str(), Reach::Public)?;
        self.http = build(&self.base, Reach::Public)?;
        Ok(self)
    }

    /// Returns the path of the base URL.
    pub(crate) fn base_path(&self) -> &str {
        self.base.path()
    }

    /// Sends a body and returns the answer, where it is JSON and no error.
    pub(crate) async fn post(
        &self,
        path: &str,
        headers: HeaderMap,
        body: &Value,
    ) -> Result<Value, Failure> {
        let mut request =
            self.http.post(base_url::join(&self.base, path)).headers(headers).json(body);
        if let Some(key) = self.key.header(self.names.prefix, self.names.key)? {
            request = request.header(HeaderName::from_static(self.names.header), key);
        }
        self.exchange(request).await
    }

    /// Ends a call, with all its requests, at the deadline.
    pub(crate) async fn within<T>(
        &self,
        call: impl Future<Output = Result<T, ProviderError>>,
    ) -> Result<T, ProviderError> {
        match timeout(self.total, call).await {
            Ok(done) => done,
            Err(_) => Err(timed_out(&format!("it took more than {:?}", self.total))),
        }
    }

    /// Turns a failure into an error that says what to do.
    pub(crate) fn error(&self, failure: Failure) -> ProviderError {
        match failure {
            Failure::Refused(said) => said.into_error(self.names, &self.key),
            Failure::Failed(error) => error,
        }
    }

    async fn exchange(&self, request: reqwest::RequestBuilder) -> Result<Value, Failure> {
        let mut response = request.send().await.map_err(|error| self.broke(error))?;
        let status = response.status();
        let retry_after = retry_after::read(response.headers(), Timestamp::now());
        let body = self.read(&mut response).await;
        if !status.is_success() {
            // The status says enough where the body cannot be read.
            let body = body.unwrap_or_default();
            let said = ApiError::read(status.as_u16(), retry_after, &body);
            return Err(Failure::Refused(Box::new(said)));
        }
        let value = self.parse(&body?)?;
        match ApiError::find(&value, retry_after) {
            Some(said) => Err(Failure::Refused(Box::new(said))),
            None => Ok(value),
        }
    }

    /// Reads the body piece by piece: neither its announced length nor what it
    /// unpacks to is to be trusted.
    async fn read(&self, response: &mut Response) -> Result<Vec<u8>, ProviderError> {
        let too_large = || malformed(format!("it is larger than {} MiB; ask for less", MOST >> 20));
        if response.headers().get(CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
            let url = self.names.url;
            return Err(malformed(format!("it is compressed, unasked; check {url}")));
        }
        if response.content_length().is_some_and(|length| length > MOST as u64) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        loop {
            let chunk = match timeout(self.idle, response.chunk()).await {
                Ok(chunk) => chunk.map_err(|error| self.broke(error))?,
                Err(_) => return Err(timed_out(&format!("it paused for {:?}", self.idle))),
            };
            let Some(chunk) = chunk else { return Ok(body) };
            if body.len().saturating_add(chunk.len()) > MOST {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
    }

    fn parse(&self, body: &[u8]) -> Result<Value, ProviderError> {
        // Not every server writes the UTF-8 that JSON asks for.
        let text = String::from_utf8_lossy(body);
        let text = text.trim_start_matches('\u{feff}').trim();
        let url = self.names.url;
        serde_json::from_str(text).map_err(|error| {
            malformed(match text.as_bytes() {
                [] => format!("it is empty; check {url}"),
                [b'<', ..] => format!("it is a web page and no JSON; check {url}"),
                _ if error.is_eof() => "its JSON is cut off; try again".into(),
                _ => format!("it is no JSON; check {url}"),
            })
        })
    }

    /// Says why there is no connection. The URL is left out of it: its query
    /// may hold a secret.
    fn broke(&self, error: reqwest::Error) -> ProviderError {
        let error = error.without_url();
        let url = self.names.url;
        if let Some(refused) = cause::<Refused>(&error) {
            let what = format!("the base URL's name is refused: {refused}; check {url}");
            return ProviderError::new(ProviderErrorKind::Config, what);
        }
        let (kind, what) = if error.is_builder() {
            (ProviderErrorKind::Config, format!("the request cannot be built; check {url}"))
        } else if error.is_connect() {
            let what = format!("no connection; check {url}, and that a server runs there");
            (ProviderErrorKind::Unreachable, what)
        } else {
            (ProviderErrorKind::Unreachable, "the connection broke; try again".into())
        };
        ProviderError::new(kind, what).with_source(error)
    }
}

/// Builds the client. It follows no redirect, uses no proxy (which would look
/// names up where no filter of ours is) and unpacks nothing.
fn build(base: &Url, reach: Reach) -> Result<reqwest::Client, ProviderError> {
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("session-compaction/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .referer(false)
        .no_proxy()
        .no_gzip()
        .no_brotli()
        .no_deflate()
        .no_zstd()
        .connect_timeout(CONNECT)
        .dns_resolver(Resolver(reach));
    if base.scheme() == "http" {
        // A machine with a local model may have no certificates, and needs none.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| {
        let what = "TLS cannot be set up; install the system's CA certificates and leave the \
                    process's crypto provider as it is";
        ProviderError::new(ProviderErrorKind::Config, what).with_source(error.without_url())
    })
}

pub(crate) fn malformed(what: String) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Malformed, what)
}

fn timed_out(what: &str) -> ProviderError {
    let what = format!("{what}; ask for less, or allow more with `with_timeouts`");
    ProviderError::new(ProviderErrorKind::TimedOut, what)
}

fn cause<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No query: it may hold a secret.
        f.debug_struct("Client")
            .field("host", &self.base.host_str())
            .field("key", &self.key)
            .field("total", &self.total)
            .field("idle", &self.idle)
            .finish_non_exhaustive()
    }
}
