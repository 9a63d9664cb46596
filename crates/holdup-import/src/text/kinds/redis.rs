//! Redis' and Valkey's `INFO`, whole or by sections: every number, commands and their CPU time, keys
//! by database, the lag of replicas. Texts are left out but for a few settings.

use holdup_recording::layouts::redis::{SETTINGS, field, figures};

use super::{Context, Kind, Line, text};

/// The source of what Redis says.
pub(super) const SOURCE: &str = "redis://pasted";

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

/// Whether a line is a section's heading, `# Memory`.
pub(in super::super) fn is_section(line: &str) -> bool {
    line.strip_prefix("# ").is_some_and(|name| SECTIONS.iter().any(|section| section.eq_ignore_ascii_case(name.trim())))
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
    used
}

fn put(name: &str, value: &str, at: i64, context: &mut Context) {
    for (metric, labels, value) in figures(name, value) {
        context.out.gauge(at, SOURCE, &metric, labels, value);
    }
    if SETTINGS.contains(&name) {
        context.out.setting(at, SOURCE, name, value);
    }
}
