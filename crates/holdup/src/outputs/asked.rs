//! What `--out [FORMAT:]WHERE` asks for. Nothing is opened here.

use std::path::PathBuf;

use holdup_load::yaml::nearest;

use super::endpoint::Endpoint;
use holdup_recording::secret::redact_value;

/// An output as it was asked for.
#[derive(Debug, PartialEq)]
pub enum Asked {
    /// Text in a file or on stdout.
    Text(Format, Place),
    /// Prometheus remote write.
    RemoteWrite(Endpoint),
}

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A row a second and operation.
    Csv,
    /// JSON lines: one a second, and a summary.
    Json,
    /// A test case an objective.
    Junit,
    /// A copy of `latency.hlog`.
    Hlog,
}

/// Where text goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

/// Formats by name; `prometheus` is the one that is no text.
const NAMES: [&str; 5] = ["csv", "json", "prometheus", "junit", "hlog"];

/// File name extensions that say the format.
const EXTENSIONS: [(&str, Format); 6] = [
    ("csv", Format::Csv),
    ("json", Format::Json),
    ("jsonl", Format::Json),
    ("ndjson", Format::Json),
    ("xml", Format::Junit),
    ("hlog", Format::Hlog),
];

/// Reads `[FORMAT:]WHERE`.
///
/// # Errors
/// What is wrong with it and what would be right, without a password that is in it.
pub fn parse(text: &str) -> Result<Asked, String> {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_');
    let (name, place) = match text.split_once(':') {
        Some((name, place)) if is_word(name) && !place.starts_with("//") => (Some(name.to_ascii_lowercase()), place),
        _ => (None, text),
    };
    if place.is_empty() {
        return Err(format!("\"{text}\" does not say where; e.g. csv:seconds.csv, or - for stdout"));
    }
    let format = match name.as_deref() {
        Some("csv") => Format::Csv,
        Some("json") => Format::Json,
        Some("junit") => Format::Junit,
        Some("hlog") => Format::Hlog,
        Some("prometheus") => return Endpoint::parse(place).map(Asked::RemoteWrite),
        Some(other) => {
            let near = nearest(other, &NAMES).map_or_else(String::new, |near| format!("did you mean {near}? "));
            return Err(format!("unknown format \"{other}\"; {near}there are: {}", NAMES.join(", ")));
        }
        None if place == "-" => Format::Json,
        None if place.contains("://") => return Endpoint::parse(place).map(Asked::RemoteWrite),
        None => {
            let extension = place.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
            let known = EXTENSIONS.into_iter().find(|(name, _)| extension.as_deref() == Some(*name));
            known.map(|(_, format)| format).ok_or_else(|| {
                let shown = redact_value(place);
                format!(
                    "\"{shown}\" does not say which format; put one before it, e.g. csv:{shown}: there are {}",
                    NAMES.join(", ")
                )
            })?
        }
    };
    let place = if place == "-" { Place::Stdout } else { Place::File(place.into()) };
    Ok(Asked::Text(format, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_and_places() {
        let file = |format, name: &str| Asked::Text(format, Place::File(name.into()));
        for (text, expected) in [
            ("csv:a.txt", file(Format::Csv, "a.txt")),
            ("CSV:dir/a:b.csv", file(Format::Csv, "dir/a:b.csv")),
            ("json:-", Asked::Text(Format::Json, Place::Stdout)),
            ("-", Asked::Text(Format::Json, Place::Stdout)),
            ("hlog:-", Asked::Text(Format::Hlog, Place::Stdout)),
            ("./x.JSONL", file(Format::Json, "./x.JSONL")),
            ("report.xml", file(Format::Junit, "report.xml")),
            ("/tmp/a:b.hlog", file(Format::Hlog, "/tmp/a:b.hlog")),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        for text in ["prometheus:http://h:9090/api/v1/write", "http://h:9090/api/v1/write"] {
            assert!(matches!(parse(text), Ok(Asked::RemoteWrite(_))), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, words) in [
            ("cvs:a", "did you mean csv? there are: csv, json"),
            ("yaml:a", "unknown format \"yaml\"; there are: csv"),
            ("csv:", "does not say where"),
            ("", "does not say where"),
            ("results.txt", "csv:results.txt"),
            ("results", "which format"),
            ("prometheus:127.0.0.1:9090", "http://"),
            ("prometheus:ftp://u:s3cret@h/", "http://"),
            ("ftp://u:s3cret@h/", "http://"),
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.contains(words) && !why.contains("s3cret"), "{text}: {why}");
        }
    }
}
