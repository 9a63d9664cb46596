//! Turns a logged request into one that can be sent: a known method, and a path that can stand in a
//! request line.

use std::borrow::Cow;

/// Methods that a log's entry is enough to send. Others can't be sent.
pub const METHODS: [&str; 7] = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"];

/// Longest path that is sent: the default limit of servers (Apache `LimitRequestLine`, nginx
/// `large_client_header_buffers`: 8 KiB for the line).
const MAX_PATH: usize = 8_000;

/// A line as what a replay needs of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival<'a> {
    /// Nanoseconds since the Unix epoch.
    pub at: i64,
    /// None if the request can't be sent.
    pub request: Option<Request<'a>>,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// One of [`METHODS`].
    pub method: &'static str,
    /// Path and query: printable ASCII that begins with `/`.
    pub path: Cow<'a, str>,
}

impl Request<'_> {
    /// The same, whatever it was read from.
    pub fn into_owned(self) -> Request<'static> {
        Request { method: self.method, path: Cow::Owned(self.path.into_owned()) }
    }
}

/// Parses a request line, `GET /path HTTP/1.1`; none if it can't be sent.
pub fn line(text: &[u8]) -> Option<Request<'_>> {
    let blank = text.iter().position(|&b| b == b' ')?;
    let (name, rest) = (&text[..blank], &text[blank + 1..]);
    let rest = match rest.iter().rposition(|&b| b == b' ') {
        Some(last) if rest[last + 1..].starts_with(b"HTTP/") => &rest[..last],
        _ => rest,
    };
    request(name, rest)
}

/// Makes a request of a method and a path or an address; none if it can't be sent.
pub fn request<'a>(method: &[u8], target: &'a [u8]) -> Option<Request<'a>> {
    let method = METHODS.into_iter().find(|m| m.as_bytes().eq_ignore_ascii_case(method))?;
    let path = path_of(target.trim_ascii())?;
    if path.len() > MAX_PATH {
        return None;
    }
    let plain = |b: &u8| b.is_ascii_graphic() && !matches!(b, b'"' | b'#' | b'<' | b'>');
    let path = match std::str::from_utf8(path) {
        Ok(text) if path.iter().all(plain) => Cow::Borrowed(text),
        _ => Cow::Owned(
            path.iter().map(|b| if plain(b) { (*b as char).to_string() } else { format!("%{b:02X}") }).collect(),
        ),
    };
    Some(Request { method, path })
}

/// The path of `target`, without `scheme://host` and without a fragment.
pub(crate) fn path_of(target: &[u8]) -> Option<&[u8]> {
    let scheme = target.windows(3).take(12).position(|w| w == b"://");
    let path = match scheme {
        Some(at) if !target.starts_with(b"/") => {
            let rest = &target[at + 3..];
            rest.iter().position(|&b| b == b'/').map_or(&b"/"[..], |slash| &rest[slash..])
        }
        _ => target,
    };
    let path = path.split(|&b| b == b'#').next().unwrap_or(path);
    path.starts_with(b"/").then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_fragments() {
        let path = |target: &str| request(b"get", target.as_bytes()).map(|r| r.path.into_owned());
        assert_eq!(path("https://h:8/a?b#c").unwrap(), "/a?b");
        assert_eq!(path("http://h").unwrap(), "/");
        assert_eq!(path("/r?u=http://x/").unwrap(), "/r?u=http://x/");
        assert_eq!(path("/a\r\nX: y").unwrap(), "/a%0D%0AX:%20y");
        assert_eq!(path("relative"), None);
        assert_eq!(path(&format!("/{}", "x".repeat(9_000))), None);
        assert_eq!(request(b"PURGE", b"/"), None);
    }
}
