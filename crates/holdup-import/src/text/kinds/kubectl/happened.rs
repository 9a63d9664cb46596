//! One thing that Kubernetes reports, as an event of the recording. Failed probes and killed
//! containers have kinds of their own. A repeated one is recorded at its first and its last time,
//! because the others lie between these at unknown times.

use holdup_recording::Labels;
use holdup_recording::rows::Event;

use super::super::{Context, kernel_events};
use super::shown;

/// A report, once or several times.
pub(super) struct Happened<'a> {
    pub(super) source: String,
    pub(super) first: Option<i64>,
    pub(super) last: i64,
    pub(super) count: u64,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
    /// `Normal` or `Warning`.
    pub(super) severity: &'a str,
    pub(super) container: Option<&'a str>,
    /// Kind and name of an object other than a pod.
    pub(super) object: Option<String>,
}

impl Happened<'_> {
    /// Adds its rows.
    pub(super) fn put(&self, context: &mut Context) {
        let times = match self.first.filter(|first| self.count > 1 && *first < self.last) {
            Some(first) => vec![(first, 1), (self.last, self.count - 1)],
            None => vec![(self.last, self.count)],
        };
        let (kind, text, labels) = self.describe();
        for (at, count) in times {
            let times = if count > 1 { format!(" ({count} times until then)") } else { String::new() };
            let text = format!("{text}{times}");
            let labels = labels.clone().with("count", count.to_string());
            put(context, at, &self.source, kind, text, labels);
        }
    }

    fn describe(&self) -> (&'static str, String, Labels) {
        let message = shown(self.message);
        let mut labels = Labels::none();
        if let Some(container) = self.container.map(str::to_owned).or_else(|| named_in(self.message)) {
            labels = labels.with("container", container);
        }
        if let Some(object) = &self.object {
            labels = labels.with("object", object.as_str());
        }
        if let Some((probe, why)) = probe(self.reason, &message) {
            return ("probe_failed", message.clone(), labels.with("probe", probe).with("reason", why));
        }
        // Kubelet and the node's problem detector repeat what the kernel said.
        if matches!(self.reason, "OOMKilling" | "SystemOOM")
            && let Some(kill) = kernel_events::parse(self.message)
        {
            let known = kill.labels.iter().map(|(name, value)| (*name, value.as_str()));
            return (
                kill.kind,
                kill.text.clone(),
                known.fold(labels, |labels, (name, value)| labels.with(name, value)),
            );
        }
        if self.reason == "Killing" {
            let why = killed(&message).to_owned();
            return ("container_killed", message, labels.with("why", why));
        }
        if !self.severity.is_empty() {
            labels = labels.with("type", shown(self.severity));
        }
        let reason = shown(self.reason);
        let text = if message.is_empty() { reason.clone() } else { message };
        ("kubernetes", text, labels.with("reason", reason))
    }
}

/// Adds an event of a pod or a namespace.
pub(super) fn put(context: &mut Context, at: i64, source: &str, kind: &str, text: String, labels: Labels) {
    let (source, kind) = (source.to_owned(), kind.to_owned());
    context.out.batch.events.push(Event { observed_at: at, source, kind, text, labels });
}

/// The container in `Container app failed liveness probe` and `failed container app in pod`.
fn named_in(message: &str) -> Option<String> {
    let words: Vec<&str> = message.split_whitespace().collect();
    let at = words.iter().position(|word| word.eq_ignore_ascii_case("container"))?;
    let name = words.get(at + 1)?.trim_end_matches([',', '.']);
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    // Of `Error: failed to start container "app"` and of prose the next word is something else.
    (is_name && !matches!(name, "in" | "is" | "was" | "has" | "image" | "with")).then(|| name.to_owned())
}

/// The failed probe in a message such as `Liveness probe failed: …`, and why.
fn probe<'a>(reason: &str, message: &'a str) -> Option<(&'static str, &'a str)> {
    if !matches!(reason, "Unhealthy" | "ProbeWarning") {
        return None;
    }
    let kinds = [("Liveness", "liveness"), ("Readiness", "readiness"), ("Startup", "startup")];
    let (rest, kind) = kinds.into_iter().find_map(|(word, kind)| Some((message.strip_prefix(word)?, kind)))?;
    let rest = rest.trim_start().strip_prefix("probe")?.trim_start();
    // A probe's warning is not a failure.
    let rest = rest.strip_prefix("failed").or_else(|| rest.strip_prefix("errored"))?;
    Some((kind, rest.split_once(':').map_or("", |(_, why)| why).trim()))
}

/// Why a container is killed: `failed liveness probe`, `stopped`.
fn killed(message: &str) -> &str {
    if message.starts_with("Stopping container") {
        return "stopped";
    }
    let rest = message.strip_prefix("Container ").and_then(|rest| rest.split_once(' ')).map_or(message, |(_, it)| it);
    // Versions before 1.15: `Killing container with id docker://app:Container failed liveness probe..`.
    let rest = rest.rsplit_once(":Container ").map_or(rest, |(_, it)| it);
    rest.split([',', '.']).next().unwrap_or(rest).trim()
}
