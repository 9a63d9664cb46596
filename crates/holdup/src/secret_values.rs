//! Reads values that may be secrets (headers, variables, addresses, bodies) from elsewhere than the
//! command line, which every user of the machine can read: `@FILE` and `@env:NAME` stand for a
//! value, `@@` for an `@`.

use std::path::Path;

use holdup_recording::files;

/// Largest file that stands for a value, in bytes.
const LARGEST_BYTES: u64 = 64 << 20;

/// The values of one argument: the value itself, or the lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values(Vec<String>);

impl Values {
    /// The values of all arguments, in order.
    pub fn all(arguments: &[Self]) -> impl Iterator<Item = &String> {
        arguments.iter().flat_map(|argument| &argument.0)
    }

    /// The same as a list.
    pub fn list(arguments: &[Self]) -> Vec<String> {
        Self::all(arguments).cloned().collect()
    }
}

/// Reads a repeatable argument. Each line of a file or variable counts, except empty lines and
/// those that begin with `#`.
///
/// # Errors
/// If the file or variable cannot be read. The value itself is not parsed here, because clap would
/// print it in the error.
pub fn values(argument: &str) -> Result<Values, String> {
    Ok(Values(match source(argument)? {
        Source::Itself(value) => vec![value.to_owned()],
        Source::Elsewhere(text) => {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
            lines.map(str::to_owned).collect()
        }
    }))
}

/// Reads a single value: the whole file except the line break at its end.
///
/// # Errors
/// See [`values`].
pub fn value(argument: &str) -> Result<String, String> {
    Ok(match source(argument)? {
        Source::Itself(value) => value.to_owned(),
        Source::Elsewhere(text) => {
            let text = text.strip_suffix('\n').unwrap_or(&text);
            text.strip_suffix('\r').unwrap_or(text).to_owned()
        }
    })
}

enum Source<'a> {
    Itself(&'a str),
    Elsewhere(String),
}

fn source(argument: &str) -> Result<Source<'_>, String> {
    let Some(place) = argument.strip_prefix('@') else { return Ok(Source::Itself(argument)) };
    if place.starts_with('@') {
        return Ok(Source::Itself(place));
    }
    let text = match place.strip_prefix("env:") {
        Some(name) => std::env::var(name).map_err(|_| format!("the environment has no {name}"))?,
        None => files::read_text(Path::new(place), LARGEST_BYTES).map_err(|error| format!("{place}: {error}"))?,
    };
    Ok(Source::Elsewhere(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_for_themselves_or_come_from_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "# two\nA: b\n\n  C: d\n").unwrap();
        let at = format!("@{}", file.display());
        assert_eq!(Values::list(&[values("x").unwrap(), values(&at).unwrap()]), ["x", "A: b", "C: d"]);
        assert_eq!(value(&at).unwrap(), "# two\nA: b\n\n  C: d");
        assert_eq!((value("@@x").unwrap().as_str(), value("a@b").unwrap().as_str()), ("@x", "a@b"));
        assert!(value("@/no/such").unwrap_err().contains("/no/such: "));
        assert!(values("@env:HOLDUP_NO_SUCH").unwrap_err().contains("HOLDUP_NO_SUCH"));
        assert!(value("@/dev/zero").unwrap_err().contains("not a regular file"));
    }
}
