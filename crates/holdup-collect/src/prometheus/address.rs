//! The URL after `prometheus:` in three forms: what is asked, how we prove who we are, and what may be written down.

/// An endpoint's address, taken apart.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// Without user and password; with the query. Not for any output: a query can hold a token.
    pub url: String,
    /// Header `Authorization`, if the URL had user and password. Not for any output.
    pub authorization: Option<String>,
    /// For tables and messages: no user, no password, values of the query hidden where the name says secret.
    pub shown: String,
}

/// Words in a query parameter's name that mark its value as secret.
const SECRET_NAMES: [&str; 6] = ["token", "pass", "secret", "key", "auth", "sig"];

/// Takes `url` apart, or says what is wrong with it, without repeating it.
pub(super) fn parse(url: &str) -> Result<Address, String> {
    let example = "e.g. prometheus:http://127.0.0.1:9090/metrics";
    let (scheme, rest) = url.split_once("://").ok_or(format!("no http:// or https:// URL, {example}"))?;
    let scheme = scheme.to_ascii_lowercase();
    if scheme != "http" && scheme != "https" {
        return Err(format!("only http:// and https:// can be asked, {example}"));
    }
    if rest.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err("the URL holds a blank or a control character".to_owned());
    }
    // A password with a bare `/`, `?` or `#` would end up in what is shown.
    if rest[rest.find(['/', '?', '#']).unwrap_or(rest.len())..].contains('@') {
        return Err("in a password write / as %2F, ? as %3F, # as %23; and @ in a path as %40".to_owned());
    }
    let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    if host.is_empty() || host.starts_with(':') {
        return Err(format!("no host in the URL, {example}"));
    }
    let slash = if path.starts_with('/') { "" } else { "/" };
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let base = format!("{scheme}://{host}{slash}{path}");
    let with = |query: Option<String>| query.map_or(base.clone(), |query| format!("{base}?{query}"));
    Ok(Address {
        url: with(query.map(str::to_owned)),
        authorization: user.map(|user| format!("Basic {}", base64(&percent_decoded(user)))),
        shown: with(query.map(hide)),
    })
}

fn hide(query: &str) -> String {
    let hidden = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if SECRET_NAMES.iter().any(|word| name.to_ascii_lowercase().contains(word)) => {
            format!("{name}=…")
        }
        _ => pair.to_owned(),
    });
    hidden.collect::<Vec<_>>().join("&")
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut decoded = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    decoded
}

/// Base64 with padding (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for position in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * position)) as usize & 63];
            text.push(if position <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_password_are_in_the_header_only() {
        let address = parse("http://me:p%40ss@h:9090/metrics?target=db&api_key=zzz&x").unwrap();
        assert_eq!(address.url, "http://h:9090/metrics?target=db&api_key=zzz&x");
        assert_eq!(address.shown, "http://h:9090/metrics?target=db&api_key=…&x");
        // me:p@ss
        assert_eq!(address.authorization.as_deref(), Some("Basic bWU6cEBzcw=="));
    }

    #[test]
    fn base64_of_every_length() {
        for (plain, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn what_is_no_address() {
        for bad in [
            "",
            "127.0.0.1:9090",
            "ftp://h/",
            "http://",
            "http://:80/",
            "http://u:secret@/",
            "http://h/a b",
            "http://u:1/secret@h",
        ] {
            let why = parse(bad).err().unwrap();
            assert!(!why.contains("secret"), "{why}");
        }
        assert_eq!(parse("HTTPS://h").unwrap().url, "https://h/");
        assert_eq!(parse("http://h?x=1").unwrap().url, "http://h/?x=1");
    }
}
