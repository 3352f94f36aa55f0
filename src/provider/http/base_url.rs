//! The address of a provider, checked when it is given and again after DNS.

use std::{
    io,
    net::{IpAddr, ToSocketAddrs},
};

use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};

use super::address::{Reach, Refused};
use crate::provider::{ProviderError, ProviderErrorKind};

/// Reads a base URL. A text is never quoted in the error: it may hold a
/// password.
pub(crate) fn parse(text: &str, reach: Reach) -> Result<Url, ProviderError> {
    let config = |what: String| ProviderError::new(ProviderErrorKind::Config, what);
    let mut url = Url::parse(text.trim())
        .map_err(|error| config(format!("the base URL cannot be read ({error}); {HOW}")))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(config(format!("the base URL is neither http nor https; {HOW}")));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(config(format!("the base URL holds a user or a password; {HOW}")));
    }
    url.set_fragment(None);
    check(&url, reach)
        .map_err(|refused| config(format!("the base URL is refused: {refused}; {HOW}")))?;
    Ok(url)
}

const HOW: &str = "write it like https://api.example.com/v1, and give the key apart";

/// Checks the host where it is an address. Any notation of an IPv4 address has
/// been read into four numbers by then.
pub(crate) fn check(url: &Url, reach: Reach) -> Result<(), Refused> {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse::<IpAddr>().map_or(Ok(()), |address| reach.check(address))
}

/// Appends segments to the path and keeps the query.
pub(crate) fn join(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    let whole = format!("{}/{path}", base.path().trim_end_matches('/'));
    url.set_path(&whole);
    url
}

/// Looks names up and leaves out the addresses that are refused, on every new
/// connection: what a name stands for may change between two of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolver(pub(crate) Reach);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0;
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let found = tokio::task::spawn_blocking(move || (name.as_str(), 0).to_socket_addrs());
            let mut refused = None;
            let mut allowed = Vec::new();
            for address in found.await?? {
                match reach.check(address.ip()) {
                    Ok(()) => allowed.push(address),
                    Err(why) => refused = Some(why),
                }
            }
            match refused {
                Some(why) if allowed.is_empty() => Err(why.into()),
                None if allowed.is_empty() => {
                    Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address").into())
                }
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}
