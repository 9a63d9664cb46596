//! The scenario's `http` section: how requests are sent and responses are taken.

use std::path::PathBuf;

use super::Scenario;
use crate::model::Load;
use crate::yaml::{Node, YamlError};

/// Redirects that are followed if the scenario does not say: as in other tools of this kind.
pub const DEFAULT_REDIRECTS: u32 = 10;

/// [`Http::max_response_bytes`] if the scenario does not say.
pub const DEFAULT_MAX_RESPONSE_BYTES: u64 = 1 << 30;

/// Most streams on one HTTP/2 connection.
pub const MAX_STREAMS: u32 = 1_000;

/// Keys of the section.
const KEYS: [&str; 8] =
    ["version", "streams", "redirects", "keep_alive", "cookies", "compression", "max_response", "tls"];

/// Version of the protocol. It is given, not negotiated: the result should not depend on what the
/// server prefers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1, one request at a time on a connection.
    #[default]
    Http1,
    /// HTTP/2, by ALPN over TLS, with prior knowledge in clear text.
    Http2,
}

impl HttpVersion {
    /// Its name in TLS (RFC 7301).
    pub fn alpn(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
        }
    }

    /// Its name in a recording.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "http/2",
        }
    }

    /// Reads `1.1` or `2`.
    ///
    /// # Errors
    /// A message that lists the accepted versions.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "1" | "1.1" => Ok(Self::Http1),
            "2" => Ok(Self::Http2),
            _ => Err(format!("\"{text}\" is not an HTTP version that holdup supports; use 1.1 or 2")),
        }
    }
}

/// Which certificates are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Trust any certificate.
    pub insecure: bool,
    /// Trust the certificates of this PEM file instead of the machine's.
    pub ca: Option<PathBuf>,
}

/// How requests are sent and responses are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    /// Version of the protocol.
    pub version: HttpVersion,
    /// Streams on each HTTP/2 connection: requests in flight on it.
    pub streams: u32,
    /// Redirects within the target that are followed; with 0 the redirect itself is the response.
    pub redirects: u32,
    /// Whether a connection carries further requests after the first. If not, each request or
    /// statement opens its own.
    pub keep_alive: bool,
    /// Whether each connection, as one user, keeps its cookies.
    pub cookies: bool,
    /// Whether to ask for compressed responses. They are not unpacked; bytes are as on the wire.
    pub compression: bool,
    /// Most bytes of a response.
    pub max_response_bytes: u64,
    /// Which certificates are trusted.
    pub trust: Trust,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            version: HttpVersion::default(),
            streams: 1,
            redirects: DEFAULT_REDIRECTS,
            keep_alive: true,
            cookies: false,
            compression: false,
            max_response_bytes: DEFAULT_MAX_RESPONSE_BYTES,
            trust: Trust::default(),
        }
    }
}

impl Http {
    /// Reads the section.
    ///
    /// # Errors
    /// The first thing wrong, with its line and what would be right.
    pub fn parse(node: &Node) -> Result<Self, YamlError> {
        let map = node.map(&KEYS)?;
        let mut http = Self::default();
        if let Some(version) = map.get("version") {
            http.version = HttpVersion::parse(version.text()?).map_err(|why| version.error(why))?;
        }
        if let Some(streams) = map.get("streams") {
            http.streams = streams.integer("streams on a connection", 1..=MAX_STREAMS)?;
            if http.streams > 1 && http.version == HttpVersion::Http1 {
                return Err(streams.error("HTTP/1.1 allows one request at a time on a connection; add version: 2"));
            }
        }
        if let Some(redirects) = map.get("redirects") {
            http.redirects = redirects.integer("redirects", 0..=100)?;
        }
        http.keep_alive = map.get("keep_alive").map_or(Ok(true), |node| flag(Some(node)))?;
        http.cookies = flag(map.get("cookies"))?;
        http.compression = flag(map.get("compression"))?;
        if let Some(limit) = map.get("max_response") {
            http.max_response_bytes = parse_bytes(limit.text()?).map_err(|why| limit.error(why))?;
        }
        if let Some(tls) = map.get("tls") {
            let map = tls.map(&["insecure", "ca"])?;
            http.trust.insecure = flag(map.get("insecure"))?;
            http.trust.ca = map.get("ca").map(Node::text).transpose()?.map(PathBuf::from);
            if http.trust.insecure && http.trust.ca.is_some() {
                return Err(tls.error("\"insecure\" trusts every certificate, \"ca\" only some; keep one"));
            }
        }
        Ok(http)
    }
}

impl Scenario {
    /// # Errors
    /// If each request opens its own connection, and another setting needs connections that last.
    pub fn check_keep_alive(&self) -> Result<(), String> {
        let is_of_users = matches!(self.load, Load::Closed(_));
        let why = if self.http.keep_alive {
            return Ok(());
        } else if self.http.streams > 1 {
            "a connection that carries one request has one stream; remove \"streams\", or keep connections"
        } else if self.generator.open_all {
            "\"open_all\" opens connections that later requests use; remove \"open_all\", or keep connections"
        } else if self.http.cookies && self.sessions.is_none() && !is_of_users {
            "without sessions, cookies belong to a connection, and each ends after one request; \
             use \"sessions\" or \"steps\", or remove \"cookies\""
        } else {
            return Ok(());
        };
        Err(why.to_owned())
    }
}

pub(super) fn flag(node: Option<&Node>) -> Result<bool, YamlError> {
    let Some(node) = node else { return Ok(false) };
    match node.text()? {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(node.error(format!("expected true or false, found \"{other}\""))),
    }
}

/// Reads a number of bytes: `65536`, `64KiB`, `100MB`, `1GiB`.
///
/// # Errors
/// A message that says what is accepted.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 8] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("B", 1),
    ];
    let (number, unit) =
        UNITS.iter().find_map(|(name, size)| Some((text.strip_suffix(name)?.trim(), *size))).unwrap_or((text, 1));
    let wrong = || format!("\"{text}\" is not a size such as 64KiB, 100MB or 1GiB");
    let value: f64 = number.parse().map_err(|_| wrong())?;
    let bytes = value * unit as f64;
    if value.is_finite() && (1.0..=1e18).contains(&bytes) { Ok(bytes as u64) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Http, String> {
        Http::parse(&Node::parse(text, "s.yaml").unwrap()).map_err(|e| e.to_string())
    }

    #[test]
    fn reads_the_section() {
        let http =
            read("{version: 2, streams: 10, redirects: 0, cookies: true, max_response: 10MB, tls: {insecure: true}}");
        let expected = Http {
            version: HttpVersion::Http2,
            streams: 10,
            redirects: 0,
            cookies: true,
            max_response_bytes: 10_000_000,
            trust: Trust { insecure: true, ca: None },
            ..Http::default()
        };
        assert_eq!(http, Ok(expected));
    }

    #[test]
    fn errors_say_the_way_out() {
        for (text, words) in [
            ("{version: 3}", "use 1.1 or 2"),
            ("{streams: 4}", "add version: 2"),
            ("{cookies: maybe}", "expected true or false"),
            ("{max_response: big}", "such as 64KiB"),
            ("{max_response: -1}", "such as 64KiB"),
            ("{tls: {insecure: true, ca: x.pem}}", "keep one"),
            ("{cokies: true}", "did you mean \"cookies\"?"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert_eq!((parse_bytes("64KiB"), parse_bytes("1.5 MB"), parse_bytes("7")), (Ok(65_536), Ok(1_500_000), Ok(7)));
    }
}
