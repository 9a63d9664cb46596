//! Resolves redirects. Only those to the target's own origin are followed: holdup puts load on
//! nothing else.

/// Scheme, host and port of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// `https` rather than `http`.
    pub tls: bool,
    /// `host[:port]`, as in a `Host` header.
    pub authority: String,
}

impl Origin {
    /// Path and query of `location`, relative to the path `base`, if it is on this origin.
    pub fn resolve(&self, base: &str, location: &str) -> Option<String> {
        let location = location.split('#').next().unwrap_or(location).trim();
        if location.bytes().any(|b| b <= b' ' || b == 0x7f || !b.is_ascii()) {
            return None;
        }
        let path = if let Some((scheme, rest)) = location.split_once("://").filter(|(s, _)| !s.contains(['/', '?'])) {
            if !scheme.eq_ignore_ascii_case(if self.tls { "https" } else { "http" }) {
                return None;
            }
            self.path_on_origin(rest)?
        } else if let Some(rest) = location.strip_prefix("//") {
            self.path_on_origin(rest)?
        } else if location.starts_with('/') {
            location.to_owned()
        } else if location.starts_with('?') {
            format!("{}{location}", base.split('?').next().unwrap_or("/"))
        } else if location.is_empty() {
            base.to_owned()
        } else {
            let folder = base.split('?').next().unwrap_or("/");
            let folder = folder.rfind('/').map_or("/", |slash| &folder[..=slash]);
            format!("{folder}{location}")
        };
        Some(without_dots(&path))
    }

    /// The path after the authority in `rest`, if that is this origin's.
    fn path_on_origin(&self, rest: &str) -> Option<String> {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let default = if self.tls { ":443" } else { ":80" };
        let bare = |a: &str| a.strip_suffix(default).unwrap_or(a).to_ascii_lowercase();
        if bare(authority) != bare(&self.authority) {
            return None;
        }
        Some(if path.starts_with('/') { path.to_owned() } else { format!("/{path}") })
    }
}

/// The path without `.` and `..` segments: RFC 3986, section 5.2.4.
fn without_dots(path: &str) -> String {
    let (path, query) = path.find('?').map_or((path, ""), |at| path.split_at(at));
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    for (i, segment) in segments.iter().enumerate() {
        match *segment {
            "." | ".." => {
                if *segment == ".." {
                    kept.pop();
                }
                if i + 1 == segments.len() {
                    kept.push("");
                }
            }
            other => kept.push(other),
        }
    }
    format!("/{}{query}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_resolved_and_other_origins_are_left_alone() {
        let origin = Origin { tls: false, authority: "h:8080".to_owned() };
        let cases = [
            ("/b?x=1", Some("/b?x=1")),
            ("http://h:8080/c#part", Some("/c")),
            ("HTTP://H:8080", Some("/")),
            ("//h:8080?q", Some("/?q")),
            ("c", Some("/dir/c")),
            ("../c/./d", Some("/c/d")),
            ("..", Some("/")),
            ("?y=2", Some("/dir/a?y=2")),
            ("", Some("/dir/a?q=/x/")),
            ("https://h:8080/", None),
            ("http://other/", None),
            ("http://h/", None),
            ("/a b", None),
            ("/x\r\nEvil: 1", None),
            ("/?next=http://other/", Some("/?next=http://other/")),
        ];
        for (location, expected) in cases {
            assert_eq!(origin.resolve("/dir/a?q=/x/", location).as_deref(), expected, "{location}");
        }
        let plain = Origin { tls: false, authority: "h".to_owned() };
        assert_eq!(plain.resolve("/", "http://h:80/z").as_deref(), Some("/z"));
    }
}
