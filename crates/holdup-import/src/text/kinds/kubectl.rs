//! What `kubectl` prints of pods, events and usage, as text. The rows are those of the live source
//! `kubernetes:`, so that rules judge both alike. Environment variables, labels, annotations and
//! arguments of commands are left out: they may hold secrets.

pub(super) mod describe;
pub(super) mod docker;
pub(super) mod events;
mod happened;
pub(super) mod pods;
mod probe;
pub(super) mod said;
pub(super) mod state;
pub(super) mod top;

use super::{Columns, Context, Line, Row, rows, size, spaced, text};

/// Longest message that is kept, characters.
const TEXT_CHARS: usize = 300;

const SECOND_NS: f64 = 1e9;

/// The source of a pod's rows; of a namespace's without one.
fn source(namespace: &str, pod: Option<&str>) -> String {
    match pod {
        Some(pod) => format!("kubernetes:{namespace}/{pod}"),
        None => format!("kubernetes:{namespace}"),
    }
}

/// The namespace that the command asked for, else the default one.
fn asked_namespace(context: &Context) -> String {
    let words: Vec<&str> = context.words().collect();
    let flag = words.iter().position(|word| matches!(*word, "-n" | "--namespace"));
    let next = flag.and_then(|at| words.get(at + 1)).copied();
    let joined = || words.iter().find_map(|word| word.strip_prefix("--namespace=").or(word.strip_prefix("-n=")));
    next.or_else(joined).unwrap_or("default").to_owned()
}

/// Passes each row below a header to `read`, which says whether it understood it. Returns the lines
/// used.
fn each_row(
    lines: &[Line],
    context: &mut Context,
    recognises: fn(&[Line]) -> bool,
    mut read: impl FnMut(&Row<'_, '_>, &mut Context) -> Option<()>,
) -> usize {
    let header = spaced(text(lines, 0));
    let columns = Columns::above_cells(&header);
    let below = rows(lines, recognises);
    for (place, line) in (1..).zip(below) {
        if columns.cells(&spaced(&line.text)).and_then(|row| read(&row, context)).is_none() {
            context.unread.push(place);
        }
    }
    1 + below.len()
}

/// Whether a table begins here that has all of these columns, the last one written as it is here.
fn has_columns(lines: &[Line], names: &[&str]) -> bool {
    let header = text(lines, 0);
    names.last().is_some_and(|last| header.contains(last)) && Columns::above_cells(&spaced(header)).has(names)
}

/// Nanoseconds of an age: `45s`, `2m5s`, `3d4h`, `5y12d`; none if it is unknown.
fn age_ns(text: &str) -> Option<i64> {
    let mut rest = text.trim().trim_end_matches("ago").trim_end();
    let mut seconds = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|at| (1..=9).contains(at))?;
        let (number, after) = rest.split_at(digits);
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, left) = after.split_at(end);
        seconds += number.parse::<f64>().ok()?
            * match unit {
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3_600.0,
                "d" => 86_400.0,
                "y" => 365.0 * 86_400.0,
                _ => return None,
            };
        rest = left;
    }
    Some((seconds * SECOND_NS) as i64)
}

/// An age with repetitions: `2m5s (x12 over 30m)`; the last, the first, how often.
fn repeated(text: &str) -> Option<(i64, Option<i64>, u64)> {
    let (last, rest) = text.split_once('(').map_or((text, None), |(last, rest)| (last, Some(rest)));
    let last = age_ns(last)?;
    let Some(rest) = rest else { return Some((last, None, 1)) };
    let (count, over) = rest.trim_end().strip_suffix(')')?.strip_prefix('x')?.split_once(" over ")?;
    Some((last, age_ns(over), count.trim().parse().ok()?))
}

/// Millicores of a quantity of CPU: `250m`, `2`, `1.5`.
fn millicores(text: &str) -> Option<f64> {
    let cores = match text.strip_suffix('m') {
        Some(thousandths) => thousandths.parse::<f64>().ok()? / 1e3,
        None => match text.strip_suffix('n') {
            Some(billionths) => billionths.parse::<f64>().ok()? / 1e9,
            None => text.parse().ok()?,
        },
    };
    (cores.is_finite() && cores >= 0.0).then(|| (cores * 1e6).round() / 1e3)
}

/// Bytes of a quantity of memory: `64Mi`, `1G`, `1048576`; only units with an `i` are binary.
fn bytes(text: &str) -> Option<f64> {
    // `k` of Kubernetes is decimal; its `m` is a thousandth, which some tools write for bytes.
    if let Some(thousandths) = text.strip_suffix('m') {
        return thousandths.parse::<f64>().ok().map(|value| (value / 1e3).round());
    }
    let base = if text.ends_with('i') { 1024.0 } else { 1000.0 };
    size(text, 1.0, base).filter(|bytes| *bytes >= 0.0).map(f64::round)
}

/// A message as it may be kept: short, without the queries of URLs.
fn shown(text: &str) -> String {
    let mut kept = String::new();
    let mut hides = false;
    for c in text.chars().take(TEXT_CHARS) {
        hides &= !matches!(c, ' ' | '"' | '\'' | '>');
        if hides {
            continue;
        }
        kept.push(c);
        let word = kept.rsplit([' ', '"', '\'']).next().unwrap_or_default();
        if c == '?' && (word.contains("://") || word.starts_with('/')) {
            kept.push('…');
            hides = true;
        }
    }
    kept.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_quantities() {
        let s = |seconds: i64| Some(seconds * 1_000_000_000);
        for (text, expected) in [
            ("45s", s(45)),
            ("2m5s", s(125)),
            ("3d4h", s(273_600)),
            ("1y", s(31_536_000)),
            ("2m ago", s(120)),
            ("<unknown>", None),
            ("", None),
            ("5", None),
            ("9999999999s", None),
        ] {
            assert_eq!(age_ns(text), expected, "{text}");
        }
        assert_eq!(repeated("2m (x12 over 30m)"), Some((120 * 1_000_000_000, s(1_800), 12)));
        assert_eq!(repeated("2m"), Some((120 * 1_000_000_000, None, 1)));
        assert_eq!(repeated("2m (x over 30m)"), None);
        assert_eq!(
            (millicores("250m"), millicores("2"), millicores("1.5")),
            (Some(250.0), Some(2_000.0), Some(1_500.0))
        );
        assert_eq!((millicores("12345678n"), millicores("x")), (Some(12.346), None));
        assert_eq!(
            (bytes("64Mi"), bytes("1G"), bytes("128974848")),
            (Some(67_108_864.0), Some(1e9), Some(128_974_848.0))
        );
        assert_eq!((bytes("1k"), bytes("2000m"), bytes("-1")), (Some(1000.0), Some(2.0), None));
    }

    #[test]
    fn no_query_is_kept() {
        assert_eq!(shown("Get \"http://x/health?token=hush\": EOF"), "Get \"http://x/health?…\": EOF");
        assert_eq!(shown("why? because"), "why? because");
    }
}
