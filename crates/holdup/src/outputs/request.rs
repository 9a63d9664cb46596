//! Parses `--out [FORMAT:]WHERE`. Opens nothing.

use std::path::PathBuf;

use holdup_load::yaml::nearest;

use super::endpoint::Endpoint;
use holdup_recording::secret::redact_value;

/// A requested output.
#[derive(Debug, PartialEq)]
pub enum OutputRequest {
    /// Text in a file or on stdout.
    Text(Format, Destination),
    /// Prometheus remote write.
    RemoteWrite(Endpoint),
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A row per second and operation.
    Csv,
    /// JSON lines: one per second, and a summary.
    Json,
    /// A test case per objective.
    Junit,
    /// A copy of `latency.hlog`.
    Hlog,
}

/// The destination of text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

/// Formats by name; all but `prometheus` are text.
const NAMES: [&str; 5] = ["csv", "json", "prometheus", "junit", "hlog"];

/// File name extensions that imply a format.
const EXTENSIONS: [(&str, Format); 6] = [
    ("csv", Format::Csv),
    ("json", Format::Json),
    ("jsonl", Format::Json),
    ("ndjson", Format::Json),
    ("xml", Format::Junit),
    ("hlog", Format::Hlog),
];

/// Parses `[FORMAT:]WHERE`.
///
/// # Errors
/// If it is malformed; the message gives a correct form and leaves out any password.
pub fn parse(text: &str) -> Result<OutputRequest, String> {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    let (name, place) = match text.split_once(':') {
        Some((name, place)) if is_word(name) && !place.starts_with("//") => (Some(name.to_ascii_lowercase()), place),
        _ => (None, text),
    };
    if place.is_empty() {
        return Err(format!("\"{text}\" has no destination; use e.g. csv:seconds.csv, or - for stdout"));
    }
    let format = match name.as_deref() {
        Some("csv") => Format::Csv,
        Some("json") => Format::Json,
        Some("junit") => Format::Junit,
        Some("hlog") => Format::Hlog,
        Some("prometheus") => return Endpoint::parse(place).map(OutputRequest::RemoteWrite),
        Some(other) => {
            let near = nearest(other, &NAMES).map_or_else(String::new, |near| format!("did you mean {near}? "));
            return Err(format!("unknown format \"{other}\"; {near}known: {}", NAMES.join(", ")));
        }
        None if place == "-" => Format::Json,
        None if place.contains("://") => return Endpoint::parse(place).map(OutputRequest::RemoteWrite),
        None => {
            let extension = place.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
            let known = EXTENSIONS.into_iter().find(|(name, _)| extension.as_deref() == Some(*name));
            known.map(|(_, format)| format).ok_or_else(|| {
                let shown = redact_value(place);
                format!(
                    "\"{shown}\" implies no format; put one before it, e.g. csv:{shown}; known: {}",
                    NAMES.join(", ")
                )
            })?
        }
    };
    let place = if place == "-" { Destination::Stdout } else { Destination::File(place.into()) };
    Ok(OutputRequest::Text(format, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_places() {
        let file = |format, name: &str| OutputRequest::Text(format, Destination::File(name.into()));
        for (text, expected) in [
            ("csv:a.txt", file(Format::Csv, "a.txt")),
            ("CSV:dir/a:b.csv", file(Format::Csv, "dir/a:b.csv")),
            ("json:-", OutputRequest::Text(Format::Json, Destination::Stdout)),
            ("-", OutputRequest::Text(Format::Json, Destination::Stdout)),
            ("hlog:-", OutputRequest::Text(Format::Hlog, Destination::Stdout)),
            ("./x.JSONL", file(Format::Json, "./x.JSONL")),
            ("report.xml", file(Format::Junit, "report.xml")),
            ("/tmp/a:b.hlog", file(Format::Hlog, "/tmp/a:b.hlog")),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        for text in ["prometheus:http://h:9090/api/v1/write", "http://h:9090/api/v1/write"] {
            assert!(matches!(parse(text), Ok(OutputRequest::RemoteWrite(_))), "{text}");
        }
    }

    #[test]
    fn invalid_requests_give_the_reason() {
        for (text, words) in [
            ("cvs:a", "did you mean csv? known: csv, json"),
            ("yaml:a", "unknown format \"yaml\"; known: csv"),
            ("csv:", "has no destination"),
            ("", "has no destination"),
            ("results.txt", "csv:results.txt"),
            ("results", "implies no format"),
            ("prometheus:127.0.0.1:9090", "http://"),
            ("prometheus:ftp://u:s3cret@h/", "http://"),
            ("ftp://u:s3cret@h/", "http://"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(words) && !why.contains("s3cret"), "{text}: {why}");
        }
    }
}
