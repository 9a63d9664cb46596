//! The URL of a Prometheus server or endpoint in three forms: for the request, for authentication,
//! and for display. Readers and writers use it; it makes no request itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdup_recording::secret::is_secret_name;
use percent_encoding::percent_decode_str;

/// The parsed address of an endpoint.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// Without user and password; with the query. Never output it: a query can contain a token.
    pub url: String,
    /// Header `Authorization`, if the URL has a user. Never output it.
    pub authorization: Option<String>,
    /// For tables and messages: no user, no password, and values of secret query parameters hidden.
    pub shown: String,
    /// The same without the query: scheme, host and path.
    pub place: String,
}

impl Address {
    /// Parses `url`. `path` is a usual path, for an example in messages.
    ///
    /// # Errors
    /// What is wrong with it, without repeating it.
    pub fn parse(url: &str, path: &str) -> Result<Self, String> {
        Self::parse_like(url, &format!("prometheus:http://127.0.0.1:9090{path}"))
    }

    /// The same for endpoints other than Prometheus; `example` is a complete address.
    ///
    /// # Errors
    /// What is wrong with it, without repeating it.
    pub fn parse_like(url: &str, example: &str) -> Result<Self, String> {
        let example = format!("e.g. {example}");
        let not_http = || format!("expected an http:// or https:// URL, {example}");
        let (scheme, rest) = url.split_once("://").ok_or_else(not_http)?;
        let scheme = scheme.to_ascii_lowercase();
        if scheme != "http" && scheme != "https" {
            return Err(not_http());
        }
        if rest.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err("the URL contains a blank or a control character: write them as %20 and the like".to_owned());
        }
        // A password with an unescaped `/`, `?` or `#` would end up in the displayed text.
        if rest[rest.find(['/', '?', '#']).unwrap_or(rest.len())..].contains('@') {
            return Err("in a password write / as %2F, ? as %3F, # as %23; and @ in a path as %40".to_owned());
        }
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        if host.is_empty() || host.starts_with(':') {
            return Err(format!("no host in the URL, {example}"));
        }
        let port = host.rsplit_once(':').map(|(_, port)| port).filter(|port| !port.ends_with(']'));
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return Err(format!("the port in the URL is not a port number, {example}"));
        }
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let place = format!("{scheme}://{host}{}", if path.is_empty() { "/" } else { path });
        let with = |query: Option<String>| query.map_or(place.clone(), |query| format!("{place}?{query}"));
        Ok(Self {
            url: with(query.map(str::to_owned)),
            // A `%` without two digits stands for itself.
            authorization: user
                .map(|user| format!("Basic {}", STANDARD.encode(percent_decode_str(user).collect::<Vec<u8>>()))),
            shown: with(query.map(hide)),
            place,
        })
    }
}

fn hide(query: &str) -> String {
    let hidden = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_secret_name(name) => format!("{name}=…"),
        _ => pair.to_owned(),
    });
    hidden.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Address, String> {
        Address::parse(url, "/metrics")
    }

    #[test]
    fn user_and_password_are_in_the_header_only() {
        let address = parse("http://me:p%40ss@h:9090/metrics?target=db&api_key=zzz&pwd=yyy&x").unwrap();
        assert_eq!(address.url, "http://h:9090/metrics?target=db&api_key=zzz&pwd=yyy&x");
        assert_eq!(address.shown, "http://h:9090/metrics?target=db&api_key=…&pwd=…&x");
        assert_eq!(address.place, "http://h:9090/metrics");
        // me:p@ss
        assert_eq!(address.authorization.as_deref(), Some("Basic bWU6cEBzcw=="));
    }

    #[test]
    fn invalid_addresses_are_refused() {
        for bad in [
            "",
            "127.0.0.1:9090",
            "ftp://h/",
            "http://",
            "http://:80/",
            "http://u:secret@/",
            "http://h/a b",
            "http://u:1/secret@h",
            "http://u:secret@h:x/",
        ] {
            let why = parse(bad).err().unwrap();
            assert!(!why.contains("secret"), "{why}");
        }
        assert_eq!(parse("HTTPS://h").unwrap().url, "https://h/");
        assert_eq!(parse("http://[::1]:80").unwrap().url, "http://[::1]:80/");
        assert_eq!(parse("HTTP://[::1]").unwrap().authorization, None);
        assert_eq!(parse("http://h?x=1").unwrap().url, "http://h/?x=1");
    }
}
