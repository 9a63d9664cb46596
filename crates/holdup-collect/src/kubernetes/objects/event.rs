//! Turns Kubernetes events into events of the recording. Failed probes and killed containers have
//! kinds of their own; any other event has kind `kubernetes`, with its reason. A repeated event is
//! recorded at its first and its last occurrence.

use holdup_recording::{Batch, Labels, clock};

use crate::kubernetes::objects::document::Event;
use crate::kubernetes::objects::{ReadTime, shown};
use crate::reading;

/// The rows for the new occurrences of `event`, which had happened `before` times at the last read.
pub(crate) fn rows(
    event: &Event,
    source: String,
    before: Option<u64>,
    since: Option<i64>,
    read: ReadTime,
    batch: &mut Batch,
) {
    let moment = |text: &Option<String>| text.as_deref().and_then(clock::parse_rfc3339);
    let last = moment(&event.last).unwrap_or(read.at);
    let first = moment(&event.first).unwrap_or(last);
    let happened = match before {
        Some(before) => vec![(last, event.count().saturating_sub(before))],
        None if event.count() == 1 => vec![(last, 1)],
        // The other occurrences lie between these two, at unknown times.
        None => vec![(first, 1), (last, event.count() - 1)],
    };
    let (kind, text, labels) = describe(event);
    for (at, count) in happened.into_iter().filter(|(at, count)| *count > 0 && since.is_none_or(|since| *at >= since)) {
        let times = if count > 1 { format!(" ({count} times until then)") } else { String::new() };
        let labels = labels.clone().with("count", count.to_string());
        batch.events.push(reading::event(&source, at, kind, format!("{text}{times}"), labels));
    }
}

/// Kind, text and facts of an event.
fn describe(event: &Event) -> (&'static str, String, Labels) {
    let message = shown(&event.message);
    let mut labels = Labels::none();
    if let Some(container) = event.container() {
        labels = labels.with("container", container);
    }
    if let Some(object) = event.object() {
        labels = labels.with("object", object);
    }
    if let Some((probe, why)) = probe(event, &message) {
        return ("probe_failed", message.clone(), labels.with("probe", probe).with("reason", why));
    }
    if event.reason == "Killing" {
        let why = killed(&message).to_owned();
        return ("container_killed", message, labels.with("why", why));
    }
    if !event.severity.is_empty() {
        labels = labels.with("type", shown(&event.severity));
    }
    let reason = shown(&event.reason);
    let text = if message.is_empty() { reason.clone() } else { message };
    ("kubernetes", text, labels.with("reason", reason))
}

/// The kind of the failed probe, and the rest of its message: `Liveness probe failed: HTTP probe
/// failed with statuscode: 500`.
fn probe<'a>(event: &Event, message: &'a str) -> Option<(&'static str, &'a str)> {
    if !matches!(event.reason.as_str(), "Unhealthy" | "ProbeWarning") {
        return None;
    }
    let kinds = [("Liveness", "liveness"), ("Readiness", "readiness"), ("Startup", "startup")];
    let (word, kind) = kinds.into_iter().find(|(word, _)| message.starts_with(word))?;
    let rest = message[word.len()..].trim_start().strip_prefix("probe").unwrap_or_default();
    // A probe's warning is not a failure.
    let rest = rest.trim_start();
    let rest = rest.strip_prefix("failed").or_else(|| rest.strip_prefix("errored"))?;
    Some((kind, rest.split_once(':').map_or("", |(_, why)| why).trim()))
}

/// The reason in `Container app failed liveness probe, will be restarted` and `Stopping container
/// app`.
fn killed(message: &str) -> &str {
    if message.starts_with("Stopping container") {
        return "stopped";
    }
    let rest =
        message.strip_prefix("Container ").and_then(|rest| rest.split_once(' ')).map_or(message, |(_, rest)| rest);
    rest.split(',').next().unwrap_or(rest).trim()
}

/// All times in it, nanoseconds since 1970.
pub(crate) fn moments(event: &Event) -> Vec<i64> {
    [&event.first, &event.last].into_iter().flatten().filter_map(|text| clock::parse_rfc3339(text)).collect()
}
