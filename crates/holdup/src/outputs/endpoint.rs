//! The URL of a remote write receiver in three forms: what is asked, how we prove who we are, what may be shown.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A receiver's address, taken apart.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Without user and password; with the query. Not for any output: a query can hold a token.
    pub url: String,
    /// Header `Authorization`, if the URL had a user. Not for any output.
    pub authorization: Option<String>,
    /// Scheme, host and path, for messages.
    pub shown: String,
}

/// As it may be shown.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Endpoint {
    /// Takes `url` apart.
    ///
    /// # Errors
    /// What is wrong with it, without repeating it.
    pub fn parse(url: &str) -> Result<Self, String> {
        let example = "e.g. prometheus:http://127.0.0.1:9090/api/v1/write";
        let not_http = || format!("remote write needs an http:// or https:// URL, {example}");
        let (scheme, rest) = url.split_once("://").ok_or_else(not_http)?;
        let scheme = scheme.to_ascii_lowercase();
        if scheme != "http" && scheme != "https" {
            return Err(not_http());
        }
        if rest.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err("the URL holds a blank or a control character".to_owned());
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        // What is left of a password with such a character in it would be shown as a part of the path.
        if path.contains('@') {
            return Err("in a password write / as %2F, ? as %3F, # as %23; and @ in a path as %40".to_owned());
        }
        let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
        if host.is_empty() || host.starts_with(':') {
            return Err(format!("no host in the URL, {example}"));
        }
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return Err(format!("the port in the URL is none, {example}"));
        }
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let path = if path.is_empty() { "/" } else { path };
        let shown = format!("{scheme}://{host}{path}");
        Ok(Self {
            url: query.map_or_else(|| shown.clone(), |query| format!("{shown}?{query}")),
            authorization: user.map(|user| format!("Basic {}", STANDARD.encode(percent_decoded(user)))),
            shown,
        })
    }
}

/// The bytes that `text` stands for (RFC 3986, section 2.1). A `%` without two digits stands for itself.
fn percent_decoded(text: &str) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|b| char::from(*b).to_digit(16));
    let mut rest = text.as_bytes();
    let mut decoded = Vec::with_capacity(rest.len());
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if let (b'%', Some(high), Some(low)) = (byte, digit(after.first()), digit(after.get(1))) {
            decoded.push((high * 16 + low) as u8);
            rest = &after[2..];
        } else {
            decoded.push(byte);
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_in_the_header_alone() {
        let endpoint = Endpoint::parse("https://me:p%40ss@h:9090/api/v1/write?token=zzz#x").unwrap();
        assert_eq!(endpoint.url, "https://h:9090/api/v1/write?token=zzz");
        assert_eq!(endpoint.shown, "https://h:9090/api/v1/write");
        // me:p@ss
        assert_eq!(endpoint.authorization.as_deref(), Some("Basic bWU6cEBzcw=="));
        assert_eq!(format!("{endpoint:?}"), "https://h:9090/api/v1/write");
        assert_eq!(Endpoint::parse("http://[::1]:80").unwrap().url, "http://[::1]:80/");
        assert_eq!(Endpoint::parse("HTTP://[::1]").unwrap().authorization, None);
    }

    #[test]
    fn what_is_no_address() {
        for bad in ["", "h:9090", "ftp://h/", "http://", "http://:80/", "http://u:s3@/", "http://h/ b", "http://h:x/"] {
            assert!(!Endpoint::parse(bad).unwrap_err().contains("s3"), "{bad}");
        }
        assert!(Endpoint::parse("http://u:s3/cret@h").unwrap_err().contains("%2F"));
    }
}
