//! `serverStatus` as figures. Every number becomes a member of a family, named after its path; a section
//! that moved between versions keeps the name of its older place. Latencies and memory have metrics of
//! their own.

use holdup_recording::{Labels, metrics};

use crate::Figure;
use crate::value::Value;
use crate::versions::SECTIONS;

/// Most figures of one status.
const FIGURES_MAX: usize = 5_000;

/// Most bytes of a name.
const NAME_BYTES_MAX: usize = 200;

/// Identities, and figures that have their own metric.
const LEFT_OUT: [&str; 9] =
    ["pid", "ok", "uptime", "uptimeMillis", "uptimeEstimate", "mem", "opLatencies", "$clusterTime", "operationTime"];

/// What a status holds.
#[derive(Debug, Default, PartialEq)]
pub struct Status {
    /// Its numbers.
    pub figures: Vec<Figure>,
    /// Names and values of what does not change while the server runs.
    pub settings: Vec<(&'static str, String)>,
}

/// Reads a status.
#[must_use]
pub fn status(status: &Value) -> Status {
    let mut found = Status::default();
    let places = SECTIONS.iter().filter_map(|section| Some(section.find(status)?.0));
    let moved: Vec<(String, &str)> = places.map(|place| (snake_path(place.path), place.prefix)).collect();
    let mut members = Vec::new();
    for (name, value) in status.entries() {
        if !LEFT_OUT.contains(&name.as_str()) {
            gather(&snake(name), value, &mut members);
        }
    }
    for (name, value) in members {
        let name = renamed(&name, &moved).unwrap_or(name);
        found.put(metrics::mongodb::SERVER_STATUS.member(name).as_str(), Labels::none(), Some(value));
    }
    for kind in ["reads", "writes", "commands", "transactions"] {
        let number = |field: &str| status.at(&["opLatencies", kind, field]).and_then(Value::number);
        let labels = Labels::new([("kind", kind)]);
        found.put(metrics::mongodb::OPERATIONS.name, labels.clone(), number("ops"));
        // Latencies are sums in microseconds.
        found.put(metrics::mongodb::OPERATION_TIME.name, labels, number("latency").map(|us| us / 1e6));
    }
    let resident = status.at(&["mem", "resident"]).and_then(Value::number).map(|mib| mib * 1_048_576.0);
    found.put(metrics::mongodb::MEMORY_RESIDENT_BYTES.name, Labels::none(), resident);
    found.put(metrics::mongodb::UPTIME.name, Labels::none(), status.get("uptime").and_then(Value::number));
    for (setting, path) in
        [("version", &["version"][..]), ("storage_engine", &["storageEngine", "name"]), ("process", &["process"])]
    {
        if let Some(value) = status.at(path).and_then(Value::text) {
            found.settings.push((setting, value.to_owned()));
        }
    }
    found
}

impl Status {
    fn put(&mut self, metric: &str, labels: Labels, value: Option<f64>) {
        // A product of odd numbers may be out of range.
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.figures.push(Figure { metric: metric.to_owned(), labels, value });
        }
    }
}

/// Figures that moved alone (8.0), and where they were before.
const MOVED: [(&str, &str); 3] = [
    ("wired_tiger_checkpoint_progress_state", "wired_tiger_transaction_transaction_checkpoint_currently_running"),
    (
        "wired_tiger_cache_application_thread_time_evicting_usecs",
        "wired_tiger_thread_yield_application_thread_time_evicting_usecs",
    ),
    (
        "wired_tiger_cache_application_thread_time_waiting_for_cache_usecs",
        "wired_tiger_thread_yield_application_thread_time_waiting_for_cache_usecs",
    ),
];

/// The name of a figure that has moved, alone or with its section.
fn renamed(name: &str, moved: &[(String, &str)]) -> Option<String> {
    if let Some((_, before)) = MOVED.iter().find(|(now, _)| *now == name) {
        return Some((*before).to_owned());
    }
    let (old, new, rest) = moved.iter().find_map(|(old, new)| Some((old, new, name.strip_prefix(old.as_str())?)))?;
    (old != new && rest.starts_with('_')).then(|| format!("{new}{rest}"))
}

fn snake_path(path: &[&str]) -> String {
    path.iter().map(|part| snake(part)).collect::<Vec<_>>().join("_")
}

/// `bytes currently in the cache` and `globalLock` as parts of a metric's name.
pub(crate) fn snake(name: &str) -> String {
    // Modes of locks: `R` and `W` lock all of a resource, `r` and `w` announce a lock below it.
    match name {
        "R" => return "shared".to_owned(),
        "W" => return "exclusive".to_owned(),
        _ => {}
    }
    let mut out = String::new();
    let mut before = ' ';
    for c in name.chars() {
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            out.push('_');
        }
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.ends_with('_') && !out.is_empty() {
            out.push('_');
        }
        before = c;
    }
    out.trim_end_matches('_').to_owned()
}

/// All numbers below `value`, by path.
fn gather(path: &str, value: &Value, into: &mut Vec<(String, f64)>) {
    if into.len() >= FIGURES_MAX || path.len() > NAME_BYTES_MAX {
        return;
    }
    match value {
        Value::Number(number) => into.push((path.to_owned(), *number)),
        Value::Map(entries) => {
            for (name, value) in entries {
                gather(&format!("{path}_{}", snake(name)), value, into);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
