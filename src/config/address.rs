//! Where Longhaul listens and where it forwards to.
//!
//! Both are checked once, here, so that nothing later meets an address it
//! cannot use. An upstream carries no credentials, query or fragment: a
//! request is forwarded to it by appending the request's own path.

use http::Uri;
use http::uri::{Authority, Scheme};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// Why an address was refused; what is accepted is said by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a usable address")]
pub struct BadAddress;

/// A host and port to listen on. Port 0 picks a free one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    host: String,
    port: u16,
}

impl Listen {
    /// An address from its parts; the host of IPv6 is without brackets.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
        }
    }

    /// The name or IP address, IPv6 without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port; 0 picks a free one.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Whether only this machine can connect to it.
    pub fn is_loopback(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost")
            || self
                .host
                .parse::<IpAddr>()
                .is_ok_and(|address| address.to_canonical().is_loopback())
    }
}

impl FromStr for Listen {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        let (host, port) = text.rsplit_once(':').ok_or(BadAddress)?;
        let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|_| digits).ok_or(BadAddress)?;
        let bracketed = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let valid = match bracketed {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => is_host_name(host),
        };
        valid
            .then(|| Self::new(bracketed.unwrap_or(host), port))
            .ok_or(BadAddress)
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(formatter, "[{}]:{}", self.host, self.port)
        } else {
            write!(formatter, "{}:{}", self.host, self.port)
        }
    }
}

fn is_host_name(host: &str) -> bool {
    !host.is_empty()
        && host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'))
}

/// An API to forward to: scheme, authority and a base path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    scheme: Scheme,
    authority: Authority,
    base_path: String,
}

impl Upstream {
    /// The API that requests go to unless told otherwise.
    pub fn anthropic() -> Self {
        Self {
            scheme: Scheme::HTTPS,
            authority: Authority::from_static("api.anthropic.com"),
            base_path: String::new(),
        }
    }

    /// `http` or `https`.
    pub const fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Host and, where one was given, port.
    pub const fn authority(&self) -> &Authority {
        &self.authority
    }

    /// What stands before a request's own path; empty or without a final `/`.
    pub fn base_path(&self) -> &str {
        &self.base_path
    }

    /// Whether the connection is encrypted.
    pub fn is_tls(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// The port, given or implied by the scheme.
    pub fn port(&self) -> u16 {
        let implied = if self.is_tls() { 443 } else { 80 };
        self.authority.port_u16().unwrap_or(implied)
    }

    /// Whether a credential meant for one may be shown to the other.
    pub fn same_origin(&self, other: &Self) -> bool {
        self.scheme == other.scheme
            && self.port() == other.port()
            && self
                .authority
                .host()
                .eq_ignore_ascii_case(other.authority.host())
    }
}

impl FromStr for Upstream {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Self, BadAddress> {
        // The URI parser drops a fragment silently, so it is looked for first.
        if text.contains(['?', '#', '@']) {
            return Err(BadAddress);
        }
        let parts = text.parse::<Uri>().map_err(|_| BadAddress)?.into_parts();
        let scheme = parts.scheme.ok_or(BadAddress)?;
        let authority = parts.authority.ok_or(BadAddress)?;
        let known = scheme == Scheme::HTTP || scheme == Scheme::HTTPS;
        // A port that is no number parses as an authority but cannot be used.
        let port = authority.as_str().strip_prefix(authority.host());
        let port_is_usable = port == Some("") || authority.port_u16().is_some();
        if !known || authority.host().is_empty() || !port_is_usable {
            return Err(BadAddress);
        }
        let base_path = parts.path_and_query.map_or_else(String::new, |path| {
            path.path().trim_end_matches('/').to_owned()
        });
        Ok(Self {
            scheme,
            authority,
            base_path,
        })
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, authority) = (&self.scheme, &self.authority);
        write!(formatter, "{scheme}://{authority}{}", self.base_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_address_is_a_host_and_a_port() {
        for (text, loopback) in [
            ("127.0.0.1:4180", Some(true)),
            ("[::1]:4180", Some(true)),
            ("localhost:0", Some(true)),
            ("0.0.0.0:80", Some(false)),
            ("[::]:80", Some(false)),
            ("[::ffff:127.0.0.1]:80", Some(true)),
            ("proxy.internal:65535", Some(false)),
            ("::1:4180", None),
            ("[127.0.0.1]:80", None),
            (":4180", None),
            ("4180", None),
            ("host:65536", None),
            ("host:+1", None),
            ("host:", None),
            ("http://host:80", None),
            ("", None),
        ] {
            let listen = text.parse::<Listen>().ok();
            assert_eq!(listen.as_ref().map(Listen::is_loopback), loopback, "{text}");
            if let Some(listen) = listen {
                assert_eq!(listen.to_string(), text);
            }
        }
    }

    #[test]
    fn an_upstream_has_a_scheme_a_host_and_a_path_without_final_slash() {
        for (text, shown) in [
            (
                "https://api.anthropic.com",
                Some("https://api.anthropic.com"),
            ),
            (
                "https://api.anthropic.com/",
                Some("https://api.anthropic.com"),
            ),
            ("http://[::1]:8080/a/b//", Some("http://[::1]:8080/a/b")),
            ("HTTP://host", Some("http://host")),
            ("ftp://host", None),
            ("https://", None),
            ("https://:443", None),
            ("https://host:port", None),
            ("https://host:99999", None),
            ("https://key@host", None),
            ("https://host/?a=b", None),
            ("https://host/#top", None),
            ("host:80", None),
            ("/path", None),
            ("", None),
        ] {
            let upstream = text.parse::<Upstream>().ok();
            assert_eq!(
                upstream.map(|it| it.to_string()).as_deref(),
                shown,
                "{text}"
            );
        }
    }

    #[test]
    fn an_implied_port_is_the_same_place() {
        let upstream = |text: &str| text.parse::<Upstream>().unwrap();
        let main = upstream("https://api.anthropic.com");
        assert!(main.same_origin(&upstream("https://API.anthropic.com:443/v2")));
        assert!(!main.same_origin(&upstream("http://api.anthropic.com")));
        assert!(!main.same_origin(&upstream("https://api.anthropic.com:8443")));
        assert!(!main.same_origin(&upstream("https://example.com")));
    }
}
