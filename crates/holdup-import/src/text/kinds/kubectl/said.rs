//! Single lines of Kubernetes without the table around them: events of `kubectl describe` cut out or
//! quoted, of any version, and what kubelet logs. A message of kubelet tells by itself what happened.

use super::super::{Context, Kind, Line, clock, text};
use super::events::in_braces;
use super::happened::Happened;
use super::{age_ns, asked_namespace, source};

pub(in super::super) const KIND: Kind =
    Kind::lines("events of Kubernetes", |lines| said(text(lines, 0)).is_some(), read);

/// Words of kubelet's messages in lower case, all of which stand in the line, and the reason of the event.
const SAID: [(&[&str], &str); 12] = [
    (&["liveness probe failed"], "Unhealthy"),
    (&["liveness probe errored"], "Unhealthy"),
    (&["readiness probe failed"], "Unhealthy"),
    (&["readiness probe errored"], "Unhealthy"),
    (&["startup probe failed"], "Unhealthy"),
    (&["failed liveness probe"], "Killing"),
    (&["failed startup probe"], "Killing"),
    (&["spec.containers{", "killing"], "Killing"),
    (&["killing container with id"], "Killing"),
    (&["killing container with docker id"], "Killing"),
    (&["back-off restarting failed"], "BackOff"),
    (&["spec.containers{", "kubelet"], ""),
];

/// How each kind of probe begins its message.
const PROBES: [&str; 3] = ["Liveness probe ", "Readiness probe ", "Startup probe "];

/// The reason of what a line says; empty for one that only says that things go on.
fn said(line: &str) -> Option<&'static str> {
    if line.len() > 4_096 {
        return None;
    }
    let line = line.to_lowercase();
    SAID.iter().find(|(words, _)| words.iter().all(|word| line.contains(word))).map(|(_, reason)| *reason)
}

/// The message: from the probe's name on, or what stands behind the reason.
fn message<'l>(line: &'l str, reason: &str) -> &'l str {
    let at = match reason {
        "Unhealthy" => PROBES.iter().find_map(|probe| line.find(probe)),
        _ => ["Container ", "Killing ", "Back-off "].iter().find_map(|words| line.rfind(words)),
    };
    at.and_then(|at| line.get(at..)).unwrap_or(line).trim()
}

/// When it happened first and last, and how often, by the columns before the message or by `(x5 over 3m)`.
fn times(line: &str, now: i64) -> (Option<i64>, i64, u64) {
    let cells: Vec<&str> = line.split(['\t']).map(str::trim).filter(|cell| !cell.is_empty()).collect();
    let words: Vec<&str> = match cells.len() {
        0..=3 => line.split_whitespace().collect(),
        _ => cells,
    };
    let moment = |text: &str| clock::with_offset(text).or_else(|| Some(now.saturating_sub(age_ns(text)?)));
    let column = |at: usize| words.get(at).copied().unwrap_or_default();
    // FirstSeen, LastSeen, Count
    if let (Some(first), Some(last), Ok(count)) = (moment(column(0)), moment(column(1)), column(2).parse()) {
        return (Some(first), last, count);
    }
    let age = line.split_whitespace().find_map(age_ns).map_or(now, |age| now.saturating_sub(age));
    let over = line.split_once("(x").and_then(|(_, rest)| rest.split_once(')')).map(|(inner, _)| inner);
    let Some((count, over)) = over.and_then(|inner| inner.split_once(" over ")) else { return (None, age, 1) };
    (age_ns(over).map(|over| now.saturating_sub(over)), age, count.trim().parse().unwrap_or(1))
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let Some((line, reason)) = lines.first().and_then(|line| Some((line, said(&line.text)?))) else { return 1 };
    let now = line.stamp.unwrap_or_else(|| context.instant());
    if reason.is_empty() {
        return 1;
    }
    let (first, last, count) = times(&line.text, now);
    let container = line.text.split_whitespace().find_map(|word| in_braces(word.strip_prefix("spec.containers")?));
    Happened {
        source: source(&asked_namespace(context), None),
        first,
        last,
        count,
        reason,
        message: message(&line.text, reason),
        severity: "Warning",
        container,
        object: None,
    }
    .put(context);
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_any_version_tells_what_happened() {
        let now = 10_000_000_000_000;
        let s = |seconds: i64| now - seconds * 1_000_000_000;
        for (line, reason, begins, expected) in [
            (
                "  Warning  Unhealthy  2m (x5 over 10m)  kubelet, node-7  Liveness probe failed: HTTP probe failed with statuscode: 503",
                "Unhealthy",
                "Liveness probe failed: HTTP",
                (Some(s(600)), s(120), 5),
            ),
            (
                "  1h\t10s\t42\t{kubelet node-7}\tspec.containers{web}\tWarning\tUnhealthy\tReadiness probe failed: dial tcp",
                "Unhealthy",
                "Readiness probe failed",
                (Some(s(3_600)), s(10), 42),
            ),
            ("so `Container web failed liveness probe, will be restarted`", "Killing", "Container web", (None, now, 1)),
        ] {
            assert_eq!(said(line), Some(reason), "{line}");
            assert!(message(line, reason).starts_with(begins), "{line}");
            assert_eq!(times(line, now), expected, "{line}");
        }
        for calm in ["livenessProbe:", "Liveness: http-get http://:80/ delay=0s", "Started container web"] {
            assert_eq!(said(calm), None, "{calm}");
        }
    }
}
