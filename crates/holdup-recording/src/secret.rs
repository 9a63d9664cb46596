//! Finds secrets in texts: in addresses, behind telling names, and in the notations of JSON, forms,
//! markup and header fields. It may find too many, but never too few. It does not resolve names.

pub mod settings;

use std::ops::Range;

/// The text that replaces a secret.
pub const HIDDEN: &str = "***";

/// Parts of a name that mark its value as secret, whatever else the name has; compared without case
/// and punctuation.
const PARTS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "authorization",
    "cookie",
    "apikey",
    "credential",
    "signature",
    "accesskey",
    "privatekey",
];

/// Words of a name that mark its value as secret.
const WORDS: [&str; 14] =
    ["pwd", "pw", "pass", "auth", "key", "keys", "sig", "otp", "pin", "jwt", "sid", "csrf", "xsrf", "bearer"];

/// Last words of a name whose value is only the place of a secret.
const PLACES: [&str; 4] = ["env", "file", "path", "variable"];

/// Schemes of addresses in which the user is an account's name, not a secret itself.
const DATABASES: [&str; 13] = [
    "mysql",
    "mariadb",
    "postgres",
    "postgresql",
    "clickhouse",
    "pgbouncer",
    "proxysql",
    "mongodb",
    "redis",
    "rediss",
    "kafka",
    "elasticsearch",
    "opensearch",
];

/// The first words of credentials in a header field (RFC 9110, section 11).
const SCHEMES: [&str; 6] = ["bearer", "basic", "digest", "apikey", "negotiate", "hmac"];

/// Whether the value of `name` (a header field, a parameter, a key) is a secret.
pub fn is_secret_name(name: &str) -> bool {
    let words = words(name);
    if words.last().is_some_and(|last| PLACES.contains(&last.as_str())) {
        return false;
    }
    let joined = words.concat();
    PARTS.iter().any(|part| joined.contains(part)) || words.iter().any(|word| WORDS.contains(&word.as_str()))
}

/// `apiKey`, `api_key` and `API-Key` as `api`, `key`.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut last = ' ';
    for c in name.chars() {
        if c.is_alphanumeric() {
            if !last.is_alphanumeric() || last.is_lowercase() && c.is_uppercase() {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(c.to_lowercase());
            }
        }
        last = c;
    }
    words
}

/// Any `text`, with its secrets redacted.
pub fn redact(text: &str) -> String {
    replaced(text, &[addresses(text), pairs(text)].concat())
}

/// One whole value with its secrets redacted: an argument, a text of a scenario. In an address,
/// everything up to the last `@` belongs to the account, blanks and quotes included, as in the
/// address parsers.
pub fn redact_value(text: &str) -> String {
    replaced(text, &spans(text))
}

/// The positions of secrets in one whole value, ordered and disjoint.
pub fn spans(text: &str) -> Vec<Range<usize>> {
    let whole = [whole_address(text), credentials(text)].into_iter().flatten();
    joined(whole.chain(addresses(text)).chain(pairs(text)).collect())
}

fn replaced(text: &str, spans: &[Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for span in joined(spans.to_vec()) {
        out.push_str(&text[done..span.start]);
        out.push_str(HIDDEN);
        done = span.end;
    }
    out + &text[done..]
}

fn joined(mut spans: Vec<Range<usize>>) -> Vec<Range<usize>> {
    spans.retain(|span| !span.is_empty());
    spans.sort_by_key(|span| span.start);
    let mut apart: Vec<Range<usize>> = Vec::new();
    for span in spans {
        match apart.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => apart.push(span),
        }
    }
    apart
}

/// The secret in `text`, if that is a database's address as a whole.
fn whole_address(text: &str) -> Option<Range<usize>> {
    let from = text.find("://").filter(|at| is_database(&text[..*at]))? + 3;
    let (end, has_host) = text[from..].rfind('@').map_or((text.len(), false), |at| (from + at, true));
    let colon = text[from..end].find(':').map(|colon| from + colon + 1)?;
    // Without an `@`, a wrong port is a password whose host was forgotten.
    let port_end = text[colon..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |at| colon + at);
    let is_port = port_end > colon && text[port_end..].chars().next().is_none_or(|c| matches!(c, '/' | '?'));
    (has_host || !is_port).then_some(colon..end)
}

/// The text after `Bearer` and the like at the beginning of a value.
fn credentials(text: &str) -> Option<Range<usize>> {
    let (first, rest) = text.trim_start().split_once(char::is_whitespace)?;
    let from = text.len() - rest.len();
    let is_scheme = SCHEMES.iter().any(|scheme| first.eq_ignore_ascii_case(scheme));
    is_scheme.then_some(from..text.trim_end().len().max(from))
}

fn is_database(before: &str) -> bool {
    let name = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
    DATABASES.iter().any(|scheme| name.eq_ignore_ascii_case(scheme))
}

/// The passwords of all addresses in `text`. In web addresses, where the user may be a token, user
/// and password.
fn addresses(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("://") {
        let (before, from) = (&text[..at], at + 3);
        let is_database = is_database(before);
        // In a web address the account ends before the path; a database's password may hold a raw
        // `/` or `@`.
        let ends =
            |c: char| c.is_whitespace() || matches!(c, '"' | '\'') || !is_database && matches!(c, '/' | '?' | '#');
        let address = &text[from..][..text[from..].find(ends).unwrap_or(text.len() - from)];
        let Some(host) = address.rfind('@') else { continue };
        let begin = if is_database { address[..host].find(':').map(|colon| colon + 1) } else { Some(0) };
        found.extend(begin.map(|begin| from + begin..from + host));
    }
    found
}

/// The values behind secrets' names: `"password": "x"`, `token=x`, `Cookie: x`,
/// `<password>x</password>`.
fn pairs(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find(is_of_name).map(|start| at + start) {
        let end = text[start..].find(|c| !is_of_name(c)).map_or(text.len(), |end| start + end);
        at = end;
        if !is_secret_name(&text[start..end]) {
            continue;
        }
        if let Some(value) = value(text, start, end) {
            at = value.end.max(end);
            found.push(value);
        }
    }
    found
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// The value of the name at `start..end`, if one follows.
fn value(text: &str, start: usize, end: usize) -> Option<Range<usize>> {
    let behind =
        |from: usize, skipped: fn(char) -> bool| text[from..].find(|c| !skipped(c)).map_or(text.len(), |at| from + at);
    let sign = behind(end, |c| c.is_whitespace() || matches!(c, '"' | '\'' | '\\' | ']'));
    let kind = text[sign..].chars().next().filter(|c| matches!(c, ':' | '=' | '>'))?;
    if kind == '>' {
        return Some(sign + 1..text[sign..].find('<').map_or(text.len(), |at| sign + at));
    }
    let from = behind(sign, |c| c.is_whitespace() || matches!(c, ':' | '=' | '>'));
    let rest = &text[from..];
    let open = rest.trim_start_matches('\\');
    let value = from + (rest.len() - open.len());
    let length = match open.chars().next()? {
        quote @ ('"' | '\'') => {
            let escapes = rest.len() - open.len();
            let inside = value + 1;
            return Some(inside..inside + quoted_bytes(&text[inside..], quote, escapes));
        }
        '[' | '{' => nested_bytes(open),
        _ if kind == '=' => open.find(|c: char| c.is_whitespace() || "&\"';)}]<>".contains(c)).unwrap_or(open.len()),
        // A key of JSON or the like; otherwise a header field, which takes its whole line.
        _ if text[..start].ends_with(['"', '\'']) => open.find([',', '}', ']', '\n']).unwrap_or(open.len()),
        _ => open.find('\n').unwrap_or(open.len()),
    };
    Some(value..value + length)
}

/// Length of the text in `quote` that begins here and whose closing quote has exactly `escapes`
/// backslashes.
fn quoted_bytes(text: &str, quote: char, escapes: usize) -> usize {
    let mut slashes = 0;
    let mut letters = text.char_indices().peekable();
    while let Some((at, c)) = letters.next() {
        match c {
            '\\' => slashes += 1,
            // A doubled quote stands for itself.
            c if c == quote && escapes == 0 && slashes == 0 && letters.next_if(|(_, next)| *next == c).is_some() => {}
            c if c == quote && slashes == escapes => return at - slashes,
            _ => slashes = 0,
        }
    }
    text.len()
}

/// Length of the list or object that begins here.
fn nested_bytes(text: &str) -> usize {
    let (mut depth, mut quoted, mut is_escaped) = (0_u32, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in
            ["Authorization", "X-Api-Key", "apiKey", "pwd", "sig", "X-Amz-Signature", "access_token", "passwords"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["author", "monkey", "passenger", "password_env", "token-file", "page", "signal", "keyboard", "q"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn secrets_go_and_the_rest_stays() {
        for (text, expected) in [
            ("mysql://u:s3cr3t@h:3306/db", "mysql://u:***@h:3306/db"),
            ("mysql://u:a b\"c'd/e@f@h:3306/db", "mysql://u:***@h:3306/db"),
            ("new=postgres://u:a b@h/db?tls=on", "new=postgres://u:***@h/db?tls=on"),
            ("mysql://u:canary", "mysql://u:***"),
            ("opensearch://u:p/w?d@h:9200?tls=verify", "opensearch://u:***@h:9200?tls=verify"),
            ("elasticsearch://h?api_key=canary&tls=off", "elasticsearch://h?api_key=***&tls=off"),
            ("elasticsearch://h?api_key_env=VAR", "elasticsearch://h?api_key_env=VAR"),
            ("rediss://u:p/w@h", "rediss://u:***@h"),
            ("kafka://u:p/w@a:1,b:2", "kafka://u:***@a:1,b:2"),
            ("mongodb://u:p/w@h/", "mongodb://u:***@h/"),
            ("mysql://h:3306/db", "mysql://h:3306/db"),
            ("mysql://u@h", "mysql://u@h"),
            ("clickhouse://u:s3 cr/3t@h:8123/db", "clickhouse://u:***@h:8123/db"),
            ("prometheus:https://ghp_canary@h/metrics", "prometheus:https://***@h/metrics"),
            ("http://h:80/x?mail=a@b", "http://h:80/x?mail=a@b"),
            ("puma:http://h:9293?token=s3cr3t&x=1", "puma:http://h:9293?token=***&x=1"),
            ("/p?sig=a,b&pwd=c&page=2", "/p?sig=***&pwd=***&page=2"),
            ("user=u&password=p%2Cw", "user=u&password=***"),
            ("{\"user\": \"u\", \"password\": \"p,\\\"w\"}", "{\"user\": \"u\", \"password\": \"***\"}"),
            ("{\\\"password\\\": \\\"pw\\\", \\\"n\\\": 1}", "{\\\"password\\\": \\\"***\\\", \\\"n\\\": 1}"),
            ("{\"tokens\":[\"a\",{\"b\":\"]\"}],\"n\":1}", "{\"tokens\":***,\"n\":1}"),
            ("{\"pin\":\n  1234, \"n\": 2}", "{\"pin\":\n  ***, \"n\": 2}"),
            ("Cookie: a=b; c=d\nAccept: x", "Cookie: ***\nAccept: x"),
            ("<password>x y</password><n>1</n>", "<password>***</password><n>1</n>"),
            ("Digest username=\"u\", response=\"x\"", "Digest ***"),
            ("token refresh", "token refresh"),
            // Letters and blanks of several bytes.
            ("\u{e4}://u:p@h", "\u{e4}://***@h"),
            ("\u{e4}mysql://u:p@h", "\u{e4}mysql://u:***@h"),
            ("Bearer\u{a0}s3cr3t", "Bearer\u{a0}***"),
            ("mysql://u@h?password_env=VAR", "mysql://u@h?password_env=VAR"),
            ("UPDATE t SET pwd = 'it''s' WHERE id = 1", "UPDATE t SET pwd = '***' WHERE id = 1"),
        ] {
            assert_eq!(redact_value(text), expected, "{text}");
        }
    }

    #[test]
    fn texts_may_hold_several() {
        for (text, expected) in [
            ("mysql://a:1@h mysql://b:2@i", "mysql://a:***@h mysql://b:***@i"),
            ("[\"mysql://u:p@ss/w@h\", http://h/m]", "[\"mysql://u:***@h\", http://h/m]"),
            ("mysql://127.0.0.1:3306: Access denied for 'a'@'b'", "mysql://127.0.0.1:3306: Access denied for 'a'@'b'"),
        ] {
            assert_eq!(redact(text), expected, "{text}");
        }
    }
}
