//! Finds the kind of a file from its first lines and its name.

use serde::Serialize;

/// A kind of file that can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A test plan of JMeter.
    Jmx,
    /// An HTTP archive, as browsers and proxies record it.
    Har,
    /// An OpenAPI description, version 3.
    OpenApi,
}

/// How much of the file it reads, bytes.
const LOOKED_AT_BYTES: usize = 64 << 10;

impl Source {
    /// The kind with this name of `--from`.
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "jmx" => Some(Self::Jmx),
            "har" => Some(Self::Har),
            "openapi" => Some(Self::OpenApi),
            _ => None,
        }
    }

    /// Its name in messages.
    pub fn words(self) -> &'static str {
        match self {
            Self::Jmx => "JMeter plan",
            Self::Har => "HAR file",
            Self::OpenApi => "OpenAPI description",
        }
    }

    /// The kind that `text`, the contents of `file`, looks like.
    pub(crate) fn detect(text: &str, file: &str) -> Option<Self> {
        let mut end = text.len().min(LOOKED_AT_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let start = text[..end].trim_start();
        if start.starts_with('<') {
            return Some(Self::Jmx);
        }
        let name = file.to_ascii_lowercase();
        if name.ends_with(".har") {
            return Some(Self::Har);
        }
        let has_key = |key: &str| {
            let quoted = format!("\"{key}\"");
            let mut lines = start.lines();
            start.contains(&quoted) || lines.any(|l| l.trim_end().starts_with(&format!("{key}:")))
        };
        if has_key("openapi") || has_key("swagger") {
            return Some(Self::OpenApi);
        }
        (start.starts_with('{') && (has_key("log") || has_key("entries"))).then_some(Self::Har)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_files_apart() {
        assert_eq!(Source::detect("<?xml version=\"1.0\"?>", "x"), Some(Source::Jmx));
        assert_eq!(Source::detect("{\"log\": {}}", "x"), Some(Source::Har));
        assert_eq!(Source::detect("{\"a\": {}}", "shop.HAR"), Some(Source::Har));
        assert_eq!(Source::detect("# shop\nopenapi: 3.1.0\n", "x"), Some(Source::OpenApi));
        assert_eq!(Source::detect("{\"openapi\": \"3.0.3\"}", "x"), Some(Source::OpenApi));
        assert_eq!(Source::detect("hello", "x"), None);
    }
}
