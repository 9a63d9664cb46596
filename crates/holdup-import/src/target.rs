//! Addresses: separates scheme, host and port from path and query.

/// `http://host:port`, as a scenario's target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// `http` or `https`.
    pub scheme: String,
    pub host: String,
    /// None if it is the scheme's default.
    pub port: Option<u16>,
}

impl Origin {
    /// From parts; none if a target cannot have them.
    pub fn new(scheme: &str, host: &str, port: Option<u16>) -> Option<Self> {
        let scheme = scheme.to_ascii_lowercase();
        let own = match scheme.as_str() {
            "http" => 80,
            "https" => 443,
            _ => return None,
        };
        let host = host.trim().to_ascii_lowercase();
        let inner = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(&host);
        let is_good = !inner.is_empty()
            && inner.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:".contains(&b))
            && (!inner.contains(':') || inner != host);
        is_good.then(|| Self { scheme, host: host.clone(), port: port.filter(|p| *p != own && *p != 0) })
    }

    /// Splits an absolute address into its origin, and the path with query and without fragment
    /// (`/` at least).
    pub fn split(url: &str) -> Option<(Self, String)> {
        let (scheme, rest) = url.trim().split_once("://")?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let authority = authority.rsplit('@').next().unwrap_or(authority);
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port.parse().ok()?)),
            _ => (authority, None),
        };
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Some((Self::new(scheme, host, port)?, path))
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// The origin of `--base-url`, and the path that it puts before all others (may be empty).
///
/// # Errors
///
/// If a scenario cannot have that address as its target.
pub fn base(url: &str) -> Result<(Origin, String), String> {
    let (origin, path) =
        Origin::split(url).ok_or_else(|| "--base-url: use http://host[:port] or https://host[:port]".to_owned())?;
    if path.contains('?') {
        return Err("--base-url can't have a query".to_owned());
    }
    Ok((origin, path_part(path.trim_end_matches('/'))))
}

/// Percent-encodes the characters of a path or query that cannot stand in it. Encoded characters
/// and templates (`${...}`) stay as they are.
pub fn path_part(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if rest.starts_with("${") {
            let end = template_end(rest).unwrap_or(2);
            out.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        if rest.starts_with("$${") {
            out.push_str("$%7B");
            rest = &rest[3..];
            continue;
        }
        let mut bytes = [0; 4];
        if c.is_ascii_graphic() && !"\"<>\\^`{|}".contains(c) {
            out.push(c);
        } else {
            c.encode_utf8(&mut bytes).bytes().for_each(|b| out.push_str(&format!("%{b:02X}")));
        }
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// End of the template at the start of `text`, with regard to braces and quotes within it.
pub fn template_end(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices().skip(2) {
        match (quote, c) {
            (Some(open), _) if open == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '}') => return Some(at + 1),
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let (origin, path) = Origin::split("https://u:p@Shop.test:8443/a?b=c#d").unwrap();
        assert_eq!((origin.to_string().as_str(), path.as_str()), ("https://shop.test:8443", "/a?b=c"));
        assert_eq!(Origin::split("http://[::1]:80").unwrap().0.to_string(), "http://[::1]");
        assert_eq!(Origin::split("http://h?x").unwrap().1, "/?x");
        for wrong in ["ftp://h", "h", "http://", "http://a b/", "http://h:99999"] {
            assert_eq!(Origin::split(wrong), None, "{wrong}");
        }
        assert_eq!(base("http://h:8080/api/").unwrap().1, "/api");
    }

    #[test]
    fn paths_are_encoded_but_templates_are_not() {
        assert_eq!(path_part("/a b/${pick('x y', '}')}?ö=%20|"), "/a%20b/${pick('x y', '}')}?%C3%B6=%20%7C");
    }
}
