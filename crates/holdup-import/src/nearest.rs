//! What a file looks like that no reader knows, and what would make it readable. It is for a
//! sentence only: nothing is read because of it.

/// A kind of file, and what to do with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// The kind, e.g. `a picture`.
    pub kind: &'static str,
    /// What would make it readable, as an imperative.
    pub remedy: &'static str,
}

const UNPACK: &str = "unpack it first, e.g. zcat FILE | holdup import -";
const SCENARIO: &str = "make a scenario of it: holdup import scenario FILE";
const DIGEST: &str = "rank its statements: holdup digest FILE";
const TYPE: &str = "paste the text itself";

/// First bytes of files that hold no text.
const MAGICS: &[(&[u8], Nearest)] = &[
    (b"\x1f\x8b", Nearest { kind: "gzip", remedy: UNPACK }),
    (b"BZh", Nearest { kind: "bzip2", remedy: UNPACK }),
    (b"\xfd7zXZ", Nearest { kind: "xz", remedy: UNPACK }),
    (b"\x28\xb5\x2f\xfd", Nearest { kind: "Zstandard", remedy: UNPACK }),
    (b"PK\x03\x04", Nearest { kind: "a ZIP archive", remedy: UNPACK }),
    (b"\x89PNG", Nearest { kind: "a picture", remedy: TYPE }),
    (b"\xff\xd8\xff", Nearest { kind: "a picture", remedy: TYPE }),
    (b"GIF8", Nearest { kind: "a picture", remedy: TYPE }),
    (b"%PDF", Nearest { kind: "PDF", remedy: TYPE }),
    (b"\x7fELF", Nearest { kind: "a program or a core dump", remedy: "give the outputs of tools instead" }),
    (b"PAR1", Nearest { kind: "Parquet", remedy: "give the whole recording: its directory" }),
    (b"SQLite format 3", Nearest { kind: "an SQLite database", remedy: "export its rows as CSV" }),
];

/// Words that a text of a kind holds, all of them.
const WORDS: &[(&[&str], Nearest)] = &[
    (&["<jmeterTestPlan"], Nearest { kind: "a JMeter plan", remedy: SCENARIO }),
    (&["\"openapi\""], Nearest { kind: "an OpenAPI description", remedy: SCENARIO }),
    (&["openapi:", "paths:"], Nearest { kind: "an OpenAPI description", remedy: SCENARIO }),
    (&["\"log\"", "\"entries\"", "\"request\""], Nearest { kind: "a HAR file", remedy: SCENARIO }),
    (&["# Query_time:"], Nearest { kind: "MySQL's slow query log", remedy: DIGEST }),
    (&["LOG:  duration:"], Nearest { kind: "PostgreSQL's log", remedy: DIGEST }),
    (&["\"Slow query\""], Nearest { kind: "mongod's log", remedy: DIGEST }),
    (
        &["| Sleep ", "| Query "],
        Nearest {
            kind: "SHOW PROCESSLIST without its header",
            remedy: "paste its header, too: Id | User | Host | db | Command | Time | State | Info",
        },
    ),
    (
        &["idle in transaction", "active"],
        Nearest { kind: "pg_stat_activity without its header", remedy: "paste the names of its columns, too" },
    ),
    (
        &["CREATE TABLE ", "INSERT INTO "],
        Nearest { kind: "a dump of a database", remedy: "give what the server's views show instead" },
    ),
    (&["[GC "], Nearest { kind: "a garbage collector's log", remedy: "watch the app's own metrics: --watch otlp" }),
    (
        &["Pause Young"],
        Nearest { kind: "a garbage collector's log", remedy: "watch the app's own metrics: --watch otlp" },
    ),
    (&["<html"], Nearest { kind: "a web page", remedy: TYPE }),
];

/// Bytes that are looked at.
const LOOKED_AT: usize = 64 << 10;

/// Bytes without a line break or a NUL in text.
const TEXT_PROOF: usize = 1 << 10;

/// The kind that the beginning of a file looks most like; none if it looks like prose.
#[must_use]
pub fn nearest(head: &[u8]) -> Option<Nearest> {
    if head.iter().all(u8::is_ascii_whitespace) {
        return Some(Nearest { kind: "an empty file", remedy: "give the output itself" });
    }
    if let Some((_, found)) = MAGICS.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(*found);
    }
    if head.iter().take(TEXT_PROOF).any(|byte| *byte == 0) {
        return Some(Nearest { kind: "a file that is not text", remedy: "give the outputs of tools instead" });
    }
    let text = String::from_utf8_lossy(head.get(..LOOKED_AT).unwrap_or(head));
    let by_words = WORDS.iter().find(|(words, _)| words.iter().all(|word| text.contains(word)));
    by_words.map(|(_, found)| *found).or_else(|| by_form(&text))
}

/// The kind by its form: JSON, or rows of as many fields as their header.
fn by_form(text: &str) -> Option<Nearest> {
    if text.trim_start().starts_with(['{', '[']) {
        let remedy = "give the whole document, as the tool printed it (aws, kubectl, mongosh, OTLP)";
        return Some(Nearest { kind: "JSON of another tool", remedy });
    }
    let mut rows = text.lines().filter(|line| !line.trim().is_empty()).map(|line| line.split(',').count());
    let columns = rows.next().filter(|columns| *columns >= 3)?;
    let remedy = "name the columns of spans with --columns, or give the table as the tool printed it";
    rows.take(3).all(|row| row == columns).then_some(Nearest { kind: "CSV", remedy })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_file_is_said_to_look_like_its_nearest_kind() {
        let kind = |head: &[u8]| nearest(head).map(|nearest| nearest.kind);
        for (head, expected) in [
            (&b"\x1f\x8b\x08\x00"[..], Some("gzip")),
            (b"\x89PNG\r\n\x1a\n", Some("a picture")),
            (b"abc\0def", Some("a file that is not text")),
            (b"  \n", Some("an empty file")),
            (b"<?xml version=\"1.0\"?><jmeterTestPlan version=\"1.2\">", Some("a JMeter plan")),
            (
                b"| 4 | app | h:1 | shop | Sleep | 3 | | NULL |\n| 5 | app | h:2 | shop | Query | 9 | | SELECT 1 |",
                Some("SHOW PROCESSLIST without its header"),
            ),
            (b"{\"name\": \"x\"}", Some("JSON of another tool")),
            (b"a,b,c\n1,2,3\n4,5,6\n", Some("CSV")),
            (b"It is slow, sometimes, as I said.\nNo idea why.\n", None),
        ] {
            assert_eq!(kind(head), expected, "{}", String::from_utf8_lossy(head));
        }
    }
}
