//! Enhanced monitoring: figures that an agent on the instance reads from its kernel, one event per
//! sample. Names are those of the host's metrics with `aws_os_` for `system_`, if the host has an
//! equivalent. Rates stay rates, because the agent reports no counters.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::element::{figure, moment};
use super::name::snake;
use super::{Aws, Key, Kind};

/// Keys of an event.
pub(super) const KEYS: [&str; 18] = [
    "engine",
    "instanceID",
    "instanceResourceID",
    "timestamp",
    "version",
    "uptime",
    "numVCPUs",
    "cpuUtilization",
    "loadAverageMinute",
    "memory",
    "tasks",
    "swap",
    "network",
    "diskIO",
    "physicalDeviceIO",
    "fileSys",
    "processList",
    "disks",
];

const KIB: f64 = 1024.0;

/// A field of a disk, our name for it, and the factor for its values. The last five are Aurora's.
const DISK: [(&str, &str, f64); 19] = [
    ("readKbPS", "read_bytes_per_second", KIB),
    ("writeKbPS", "write_bytes_per_second", KIB),
    ("readKb", "read_bytes", KIB),
    ("writeKb", "write_bytes", KIB),
    ("readIOsPS", "read_iops", 1.0),
    ("writeIOsPS", "write_iops", 1.0),
    ("rrqmPS", "read_merged_per_second", 1.0),
    ("wrqmPS", "write_merged_per_second", 1.0),
    ("tps", "operations_per_second", 1.0),
    ("await", "wait_seconds", 1e-3),
    ("util", "io_time_ratio", 0.01),
    ("avgQueueLen", "queue_depth", 1.0),
    ("avgReqSz", "request_bytes", KIB),
    ("diskQueueDepth", "queue_depth", 1.0),
    ("readLatency", "read_latency_seconds", 1e-3),
    ("writeLatency", "write_latency_seconds", 1e-3),
    ("readThroughput", "read_bytes_per_second", 1.0),
    ("writeThroughput", "write_bytes_per_second", 1.0),
    ("auroraStorageBytesRx", "storage_receive_bytes_per_second", 1.0),
];

const NETWORK: [(&str, &str, f64); 2] =
    [("rx", "receive_bytes_per_second", 1.0), ("tx", "transmit_bytes_per_second", 1.0)];

const FILE_SYSTEM: [(&str, &str, f64); 6] = [
    ("used", "used_bytes", KIB),
    ("total", "size_bytes", KIB),
    ("usedPercent", "used_ratio", 0.01),
    ("usedFiles", "files", 1.0),
    ("maxFiles", "files_max", 1.0),
    ("usedFilePercent", "files_ratio", 0.01),
];

/// One event on its way into series.
struct Event<'a> {
    aws: &'a mut Aws,
    instance: String,
    at: i64,
}

impl Event<'_> {
    fn put(&mut self, name: &str, label: Option<(&str, &str)>, value: Option<f64>) -> Result<(), String> {
        let Some(value) = value else { return Ok(()) };
        let mut labels = vec![("db_instance".to_owned(), self.instance.clone())];
        labels.extend(label.map(|(name, value)| (name.to_owned(), value.chars().take(100).collect::<String>())));
        labels.sort();
        let name = format!("aws_os_{name}");
        self.aws.push(Key { labels, ..Key::new(Kind::Os, name) }, [(self.at, value)])
    }

    /// Fields of each item of a list; the field `by` tells items apart.
    fn list(
        &mut self,
        list: Option<&Value>,
        by: (&str, &str),
        of: &str,
        fields: &[(&str, &str, f64)],
    ) -> Result<(), String> {
        for thing in list.and_then(Value::as_array).into_iter().flatten() {
            // Aurora's volume has no device.
            let which = thing.get(by.0).and_then(Value::as_str).map(|which| (by.1, which));
            for (theirs, ours, factor) in fields {
                let value = thing.get(theirs).and_then(figure).map(|value| value * factor);
                self.put(&format!("{of}_{ours}"), which, value)?;
            }
        }
        Ok(())
    }
}

/// Adds one event.
pub(super) fn take(aws: &mut Aws, facts: &Map<String, Value>) -> Result<(), String> {
    let text = |key: &str| facts.get(key).and_then(Value::as_str).unwrap_or_default();
    let at = moment(facts.get("timestamp").unwrap_or(&Value::Null))?;
    let instance: String = text("instanceID").chars().take(100).collect();
    let resource = text("instanceResourceID");
    if !resource.is_empty() && aws.resource_ids.len() < super::MOST_DESCRIBED {
        aws.resource_ids.insert(resource.to_owned(), instance.clone());
    }
    let mut event = Event { aws, instance, at };
    event.put("cpu_logical_count", None, facts.get("numVCPUs").and_then(figure))?;
    for (mode, value) in fields(facts.get("cpuUtilization")) {
        let value = figure(value).map(|percent| percent / 100.0);
        match mode.as_str() {
            // The sum of the others but idle.
            "total" => event.put("cpu_busy_ratio", None, value)?,
            "wait" => event.put("cpu_utilization_ratio", Some(("cpu_mode", "iowait")), value)?,
            _ => event.put("cpu_utilization_ratio", Some(("cpu_mode", &snake(mode))), value)?,
        }
    }
    for (theirs, minutes) in [("one", "1"), ("five", "5"), ("fifteen", "15")] {
        let value = facts.get("loadAverageMinute").and_then(|load| load.get(theirs)).and_then(figure);
        event.put("load_average", Some(("minutes", minutes)), value)?;
    }
    for (group, of) in [("memory", "memory"), ("swap", "swap")] {
        for (field, value) in fields(facts.get(group)) {
            // All fields but the page size are numbers of pages.
            let is_count = field.starts_with("hugePages") && field != "hugePagesSize";
            let (unit, factor) = if is_count { ("", 1.0) } else { ("_bytes", KIB) };
            event.put(&format!("{of}_{}{unit}", snake(field)), None, figure(value).map(|value| value * factor))?;
        }
    }
    for (state, value) in fields(facts.get("tasks")) {
        match state.as_str() {
            "total" => event.put("task_count", None, figure(value))?,
            _ => event.put("tasks", Some(("state", &snake(state))), figure(value))?,
        }
    }
    event.list(facts.get("diskIO"), ("device", "device"), "disk", &DISK)?;
    event.list(facts.get("physicalDeviceIO"), ("device", "device"), "physical_disk", &DISK)?;
    event.list(facts.get("network"), ("interface", "interface"), "network", &NETWORK)?;
    event.list(facts.get("fileSys"), ("mountPoint", "mountpoint"), "filesystem", &FILE_SYSTEM)?;
    processes(&mut event, facts.get("processList"))
}

/// The numeric fields of an object, at most as many as any object has.
fn fields(group: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    let group = group.and_then(Value::as_object).into_iter().flatten();
    group.filter(|(_, value)| figure(value).is_some()).take(64)
}

/// Processes and threads by kind, since a name holds a user, a database and an address.
fn processes(event: &mut Event<'_>, list: Option<&Value>) -> Result<(), String> {
    #[derive(Default)]
    struct Sums {
        count: f64,
        cpu: f64,
        rss_bytes: f64,
    }
    let mut by_kind: BTreeMap<String, Sums> = BTreeMap::new();
    for process in list.and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = process.get("name").and_then(Value::as_str) else { continue };
        let field = |key: &str| process.get(key).and_then(figure);
        let sums = by_kind.entry(kind(name)).or_default();
        sums.cpu += field("cpuUsedPc").unwrap_or(0.0) / 100.0;
        // A thread repeats its process's figures.
        if field("id") == field("tgid") {
            sums.count += 1.0;
            sums.rss_bytes += field("rss").unwrap_or(0.0) * KIB;
        }
    }
    for (kind, sums) in by_kind.iter().take(64) {
        let label = Some(("process", kind.as_str()));
        event.put("process_count", label, Some(sums.count))?;
        event.put("process_cpu_ratio", label, Some(sums.cpu))?;
        event.put("process_rss_bytes", label, Some(sums.rss_bytes))?;
    }
    Ok(())
}

/// The kind of a process, by the beginning of its name.
fn kind(name: &str) -> String {
    const OF_POSTGRES: [&str; 12] = [
        "autovacuum launcher",
        "autovacuum worker",
        "background writer",
        "checkpointer",
        "logical replication",
        "parallel worker",
        "stats collector",
        "walsender",
        "wal sender",
        "walwriter",
        "wal writer",
        "archiver",
    ];
    if let Some(what) = name.strip_prefix("postgres:") {
        let what = what.trim_start();
        let known = OF_POSTGRES.iter().find(|known| what.starts_with(**known));
        return format!("postgres: {}", known.unwrap_or(&"backend"));
    }
    // The whole of `aurora`, `mysqld` and `OS processes`; the first part of an operating system's
    // name such as `kworker/0:1`.
    let end = name.find(|c: char| !c.is_ascii_alphabetic() && c != ' ' && c != '_' && c != '-').unwrap_or(name.len());
    let kind = name[..end].trim();
    if kind.is_empty() { "other".to_owned() } else { kind.chars().take(40).collect() }
}

#[cfg(test)]
mod tests {
    use super::kind;

    #[test]
    fn names_of_processes_hold_no_user_and_no_address() {
        for (name, known) in [
            ("postgres: app orders 10.0.0.7(50412) SELECT", "postgres: backend"),
            ("postgres: autovacuum worker orders", "postgres: autovacuum worker"),
            ("postgres: checkpointer ", "postgres: checkpointer"),
            ("postgres", "postgres"),
            ("OS processes", "OS processes"),
            ("mysqld", "mysqld"),
            ("kworker/0:1", "kworker"),
            ("10.0.0.7", "other"),
        ] {
            assert_eq!(kind(name), known);
        }
    }
}
