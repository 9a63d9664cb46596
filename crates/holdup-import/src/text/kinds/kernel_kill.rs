//! The kernel's report of a kill for lack of memory: some fifty lines, of which people paste one or
//! all. It says who asked for memory, which group's limit was reached, and who was killed. All lines
//! on one victim become one event.

use std::sync::OnceLock;

use holdup_recording::{events, words};
use regex::{Captures, Regex};

use super::kernel_event::{KernelEvent, event, part};

/// A limit of more bytes does not count: the kernel prints its largest number.
const NO_LIMIT: u64 = 1 << 50;

/// Facts of a report that stand on lines of their own: the label, words of the line, its pattern.
const FACTS: [(&str, &str, &str); 4] = [
    ("asked_by", "invoked oom-killer", r"(?P<value>\S[^\]]{0,63}?) invoked oom-killer"),
    ("cgroup", "oom_memcg=", r"oom_memcg=(?P<value>[^,\s]{1,255})"),
    ("cgroup", "as a result of limit of", r"as a result of limit of (?P<value>\S{1,255})"),
    ("limit_kib", "memory: usage", r"memory: usage \d+kB, limit (?P<value>\d+)kB"),
];

fn facts() -> &'static [Option<Regex>] {
    static ALL: OnceLock<Vec<Option<Regex>>> = OnceLock::new();
    ALL.get_or_init(|| FACTS.iter().map(|(.., pattern)| Regex::new(pattern).ok()).collect())
}

/// What lines of a report say of its victim to come.
#[derive(Default)]
pub(super) struct KillReport {
    is_group: bool,
    facts: Vec<(&'static str, String)>,
}

impl KillReport {
    /// Takes a line; a line on something else changes nothing.
    pub(super) fn take(&mut self, message: &str) {
        let says = |words: &[&str]| words.iter().any(|words| message.contains(words));
        if says(&["emory cgroup out of memory", "constraint=CONSTRAINT_MEMCG"]) {
            self.is_group = true;
        } else if says(&["Out of memory: Kill", "constraint=CONSTRAINT_"]) {
            self.is_group = false;
        }
        for ((label, ..), pattern) in FACTS.iter().zip(facts()).filter(|((_, words, _), _)| message.contains(words)) {
            let value = pattern.as_ref().and_then(|pattern| part(&pattern.captures(message)?, "value"));
            // A report begins with the process that asked: what was left of the one before is over.
            if *label == "asked_by" {
                *self = Self::default();
            }
            self.facts.extend(value.map(|value| (*label, value.to_owned())));
        }
    }

    /// The kill with what its report said of it. The last line on a victim says most.
    pub(super) fn complete(&self, kill: &mut KernelEvent) {
        let fact = |name: &str| self.facts.iter().find(|(label, _)| *label == name).map(|(_, value)| value.clone());
        let limit = fact("limit_kib").and_then(|kib| kib.parse::<u64>().ok()?.checked_mul(1024));
        let of_group = [
            ("cgroup", fact("cgroup")),
            ("limit_bytes", limit.filter(|limit| *limit < NO_LIMIT).map(|limit| limit.to_string())),
        ];
        let scope = if self.is_group { "cgroup" } else { "host" };
        let all = [("scope", Some(scope.to_owned())), ("asked_by", fact("asked_by"))];
        for (label, value) in all.into_iter().chain(of_group.into_iter().filter(|_| self.is_group)) {
            kill.labels.retain(|(known, _)| *known != label || value.is_none());
            kill.labels.extend(value.map(|value| (label, value)));
        }
        tell(kill);
    }
}

/// Adds to `kill` what `other`, a line on the same victim, knows more; whether it is one.
pub(super) fn merge(kill: &mut KernelEvent, other: &KernelEvent) -> bool {
    let is_same = kill.kind == other.kind
        && match (kill.label("pid"), other.label("pid")) {
            (Some(a), Some(b)) => a == b,
            // systemd says so after the kernel, and names its unit only.
            _ => kill.label("unit").is_none() || kill.label("unit") == other.label("unit"),
        };
    if is_same {
        let new: Vec<_> = other.labels.iter().filter(|(label, _)| kill.label(label).is_none()).cloned().collect();
        kill.labels.extend(new);
        tell(kill);
    }
    is_same
}

/// Says it in a sentence, from its labels.
fn tell(kill: &mut KernelEvent) {
    let bytes = |label: &str| kill.label(label).and_then(|bytes| bytes.parse::<f64>().ok()).map(words::bytes);
    let pid = kill.label("pid").map(|pid| format!("process {pid}"));
    let size = bytes("anonymous_bytes").map(|size| format!("{size} of memory"));
    let about: Vec<String> = pid.into_iter().chain(size).collect();
    let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join(", ")) };
    let why = match (kill.label("scope"), kill.label("cgroup"), bytes("limit_bytes")) {
        (Some("cgroup"), group, limit) => {
            let group = group.map_or_else(String::new, |group| format!(" {group}"));
            let limit = limit.map_or_else(String::new, |limit| format!(" of {limit}"));
            format!(": the cgroup{group} was at its memory limit{limit}")
        }
        (Some("host"), ..) => ": the host had none left".to_owned(),
        _ => String::new(),
    };
    let name = kill.label("process").or(kill.label("unit")).unwrap_or("a process");
    kill.text = format!("the kernel killed {name}{about} for lack of memory{why}");
}

/// A kill, by any line that names its victim.
pub(super) fn kill(found: &Captures<'_>) -> Option<KernelEvent> {
    let bytes = part(found, "kb").and_then(|kb| kb.parse::<u64>().ok()?.checked_mul(1024));
    let bytes = bytes.map(|bytes| bytes.to_string());
    let parts = ["process", "pid", "unit"].map(|name| (name, found.name(name).map(|part| part.as_str())));
    let labels = parts.into_iter().chain([("anonymous_bytes", bytes.as_deref())]).collect::<Vec<_>>();
    let mut kill = event(events::OUT_OF_MEMORY_KILL, String::new(), &labels);
    tell(&mut kill);
    Some(kill)
}
