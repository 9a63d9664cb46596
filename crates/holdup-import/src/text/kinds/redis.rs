//! Redis' and Valkey's `INFO`, whole or by sections: every number, commands and their CPU time, keys
//! by database, the lag of replicas. Texts are left out but for a few settings.

use holdup_recording::Labels;
use holdup_recording::metrics::{self, Metric};

use super::{Context, Kind, Line, text};

/// The source of what Redis says.
const SOURCE: &str = "redis://pasted";

pub(super) const KIND: Kind = Kind::lines("Redis INFO", recognises, read);

/// Headings of sections.
const SECTIONS: [&str; 16] = [
    "Server",
    "Clients",
    "Memory",
    "Persistence",
    "Stats",
    "Replication",
    "CPU",
    "Modules",
    "Errorstats",
    "Cluster",
    "Keyspace",
    "Commandstats",
    "Latencystats",
    "Sentinel",
    "Threads",
    "Debug",
];

/// Fields that show whose output this is, if its heading is cut off.
const FIRST: [&str; 9] = [
    "redis_version",
    "valkey_version",
    "connected_clients",
    "used_memory",
    "loading",
    "total_connections_received",
    "role",
    "used_cpu_sys",
    "db0",
];

/// Texts that become settings.
const SETTINGS: [&str; 8] = [
    "redis_version",
    "valkey_version",
    "redis_mode",
    "role",
    "maxmemory_policy",
    "mem_allocator",
    "rdb_last_bgsave_status",
    "master_link_status",
];

/// Whether a line is a section's heading, `# Memory`.
pub(in super::super) fn is_section(line: &str) -> bool {
    line.strip_prefix("# ").is_some_and(|name| SECTIONS.iter().any(|section| section.eq_ignore_ascii_case(name.trim())))
}

/// `name:value`
fn field(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.|".contains(&byte));
    (is_name && !value.starts_with([' ', '/'])).then_some((name, value.trim()))
}

fn recognises(lines: &[Line]) -> bool {
    let first = text(lines, 0);
    if is_section(first) {
        let next = lines.iter().skip(1).find(|line| !line.is_blank()).map_or("", |line| line.text.as_str());
        return field(next).is_some() || is_section(next);
    }
    let is_own = |line: &str| field(line).is_some_and(|(name, _)| FIRST.contains(&name));
    is_own(first) && field(text(lines, 1)).is_some()
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let has_first = |line: &Line| field(&line.text).is_some_and(|(name, _)| name == "redis_version");
    let at = match lines.iter().take(3).any(has_first) {
        true => context.instant_of("Redis INFO"),
        false => context.instant(),
    };
    let mut used = 0;
    for (place, line) in lines.iter().enumerate() {
        if line.is_blank() {
            continue;
        }
        if !is_section(&line.text) {
            let Some((name, value)) = field(line.text.trim_end()) else { break };
            put(name, value, at, context);
        }
        used = place + 1;
    }
    context.out.note("holdup has no rules for Redis yet: its figures are kept for those to come");
    used
}

/// The value of `name` in `calls=1,usec=2`.
fn of(values: &str, name: &str) -> Option<f64> {
    values.split(',').find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name))?.1.parse().ok()
}

fn put(name: &str, value: &str, at: i64, context: &mut Context) {
    let mut gauge = |metric: Metric, label: (&str, &str), value: Option<f64>| {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            context.out.gauge(at, SOURCE, metric.name, Labels::new([label]), value);
        }
    };
    if let Some(command) = name.strip_prefix("cmdstat_") {
        gauge(metrics::redis::COMMAND_CALLS, ("command", command), of(value, "calls"));
        gauge(metrics::redis::COMMAND_TIME, ("command", command), of(value, "usec").map(|us| us / 1e6));
        return;
    }
    let is_numbered = |prefix: &str| name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok());
    if is_numbered("db") {
        gauge(metrics::redis::KEYS, ("database", name), of(value, "keys"));
        gauge(metrics::redis::KEYS_EXPIRING, ("database", name), of(value, "expires"));
        return;
    }
    if is_numbered("slave") || is_numbered("replica") {
        gauge(metrics::redis::REPLICA_LAG, ("replica", name), of(value, "lag"));
        return;
    }
    // A port, a process or a date is a number, too, but counts nothing.
    let is_identity =
        matches!(name, "process_id" | "tcp_port" | "run_id" | "master_port" | "arch_bits" | "redis_git_sha1");
    let number = value.trim_end_matches('%').parse::<f64>().ok();
    if let Some(number) = number.filter(|number| number.is_finite() && !is_identity) {
        context.out.gauge(at, SOURCE, metrics::redis::INFO.member(name).as_str(), Labels::none(), number);
    }
    if SETTINGS.contains(&name) {
        context.out.setting(at, SOURCE, name, value);
    }
}
