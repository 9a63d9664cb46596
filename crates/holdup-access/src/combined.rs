//! The common and the combined log format of Apache and nginx: `client ident user [date] "request
//! line" status bytes`, with anything before and after it.

use std::borrow::Cow;

use super::request::{self, Arrival, Request};
use super::time;

/// Most brackets that are tried for the date: a user name or a host may contain one.
const BRACKETS: usize = 8;

/// Reads a line.
///
/// # Errors
/// What is missing.
pub fn arrival(line: &[u8]) -> Result<Arrival<'_>, &'static str> {
    let (at, rest) = date(line).ok_or("no date in brackets such as [10/Oct/2000:13:55:36 -0700]")?;
    let quote = rest.iter().position(|&b| b == b'"').ok_or("no request in quotes after the date")?;
    let quoted = &rest[quote + 1..];
    let end = closing_quote(quoted).ok_or("the quotes of the request are not closed")?;
    let request = match unescaped(&quoted[..end]) {
        Cow::Borrowed(text) => request::line(text),
        Cow::Owned(text) => request::line(&text).map(Request::into_owned),
    };
    Ok(Arrival { at, request })
}

/// The first date in brackets, and the text after it.
fn date(line: &[u8]) -> Option<(i64, &[u8])> {
    let mut rest = line;
    for _ in 0..BRACKETS {
        let open = rest.iter().position(|&b| b == b'[')?;
        rest = &rest[open + 1..];
        // The longest date format has 40 characters.
        let window = &rest[..rest.len().min(48)];
        if let Some(close) = window.iter().position(|&b| b == b']')
            && let Some(at) = std::str::from_utf8(&rest[..close]).ok().and_then(time::parse)
        {
            return Some((at, &rest[close + 1..]));
        }
    }
    None
}

fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|&b| {
        let closes = b == b'"' && !escaped;
        escaped = b == b'\\' && !escaped;
        closes
    })
}

/// `text` with the escapes of Apache (`\"`, `\\`, `\n`, `\x16`) and nginx (`\x22`) decoded.
fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'\\' {
            out.push(first);
            continue;
        }
        match rest {
            [b'x', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digit = |b: u8| (b as char).to_digit(16).unwrap_or(0) as u8;
                out.push(digit(*high) << 4 | digit(*low));
                rest = after;
            }
            [escape, after @ ..] => {
                out.push(match escape {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => *other,
                });
                rest = after;
            }
            [] => out.push(b'\\'),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> (i64, Option<String>) {
        let entry = arrival(line.as_bytes()).unwrap();
        (entry.at / 1_000_000_000, entry.request.map(|r| format!("{} {}", r.method, r.path)))
    }

    #[test]
    fn reads_common_and_combined() {
        let common = r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326"#;
        assert_eq!(parsed(common), (971_211_336, Some("GET /apache_pb.gif".to_owned())));
        let combined = r#"shop.example:443 ::1 - [x] [10/Oct/2000:13:55:36 -0700] "POST /a?b=c%20d HTTP/2.0" 200 - "http://r/\"" "M \"x\"""#;
        assert_eq!(parsed(combined), (971_211_336, Some("POST /a?b=c%20d".to_owned())));
        let iso = r#"- [2000-10-10T20:55:36+00:00] "HEAD / HTTP/1.1""#;
        assert_eq!(parsed(iso), (971_211_336, Some("HEAD /".to_owned())));
        // The request may be anything; the line still counts as an arrival.
        for request in ["-", "", r"\x16\x03\x01\x02", "quit", "GET", "CONNECT h:443 HTTP/1.1", "OPTIONS * HTTP/1.0"] {
            let line = format!("h - - [10/Oct/2000:13:55:36 -0700] \"{request}\" 400 0");
            assert_eq!(parsed(&line), (971_211_336, None), "{request}");
        }
        let escaped = r#"h - - [10/Oct/2000:13:55:36 -0700] "GET /a\"b\\c\xc3\xa9 d HTTP/1.1" 200 0"#;
        assert_eq!(parsed(escaped).1.unwrap(), "GET /a%22b\\c%C3%A9%20d");
    }

    #[test]
    fn says_what_is_missing() {
        for (line, word) in [
            ("", "date"),
            ("h - - [10/Oct/2000] \"GET / HTTP/1.1\"", "date"),
            ("h - - [10/Oct/2000:13:55:36 -0700", "date"),
            ("h - - [10/Oct/2000:13:55:36 -0700] GET /", "in quotes"),
            ("h - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\\\"", "closed"),
        ] {
            assert!(arrival(line.as_bytes()).err().unwrap().contains(word), "{line}");
        }
    }
}
