//! What the documents say about the size of a recording: read from them, so that a soak holds them to it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Where it stands.
const DOCUMENT: &str = "docs/recording.md";

/// Bytes a second of each kind of source.
#[derive(Debug, PartialEq)]
pub struct Promise {
    host: f64,
    pid: f64,
    mysql: f64,
    postgresql: f64,
}

impl Promise {
    /// # Errors
    /// If the document does not say it.
    pub fn read(root: &Path) -> Result<Self> {
        let text = fs::read_to_string(root.join(DOCUMENT)).with_context(|| format!("failed to read {DOCUMENT}"))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        let section = text.split("\n## ").find(|section| section.starts_with("How large it gets"));
        let section = section.with_context(|| format!("{DOCUMENT} has no section \"How large it gets\""))?;
        let figure = |source: &str| {
            let row = section.lines().find_map(|line| line.strip_prefix(&format!("| `{source}`")));
            let cell = row.and_then(|row| row.split('|').nth(1)).map(|cell| cell.trim().replace(',', ""));
            let figure = cell.and_then(|cell| cell.parse().ok());
            figure.with_context(|| format!("{DOCUMENT}: no bytes a second of `{source}`"))
        };
        Ok(Self {
            host: figure("host")?,
            pid: figure("pid:N")?,
            mysql: figure("mysql:")?,
            postgresql: figure("postgresql:")?,
        })
    }

    /// Bytes a second of a host, so many processes, a MariaDB and a PostgreSQL.
    pub fn bytes_per_second(&self, processes: usize) -> f64 {
        self.host + self.pid * processes as f64 + self.mysql + self.postgresql
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn the_document_says_it() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let promise = Promise::read(&root).unwrap();
        assert!(promise.bytes_per_second(1) > promise.bytes_per_second(0), "{promise:?}");
        let text = "# A\n\n## How large it gets\n| `host`, two disks | 1,500 |\n| `pid:N` | 2 |\n| `mysql:` | 30 |\n| `postgresql:` | 40 |\n";
        assert_eq!(Promise::parse(text).unwrap().bytes_per_second(10), 1_590.0);
        assert!(Promise::parse("# A\n\n## B\n").is_err());
    }
}
