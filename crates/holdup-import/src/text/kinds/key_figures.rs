//! Figures by their server's own name in a sentence, in a list or in a file of settings:
//! `Seconds_Behind_Source = 28110`, `max_connections: 151`, `Replica_SQL_Running=No`. A name that
//! servers made up stands for itself, so its value counts wherever it stands.

use holdup_recording::Labels;
use holdup_recording::metrics::{Metric, mysql, postgresql};

use super::{Context, Kind, Line, number, postgresql as pg, processlist, text};

pub(super) const KIND: Kind = Kind::lines("named figures", |lines| !figures(text(lines, 0)).is_empty(), read);

/// What a name stands for.
#[derive(Clone, Copy)]
enum Meaning {
    Gauge(&'static str, Metric),
    /// `Yes` or `No`.
    Running(Metric),
    Setting(&'static str),
}

const MYSQL: &str = processlist::SOURCE;

/// Names in lower case.
const NAMES: [(&str, Meaning); 17] = [
    ("seconds_behind_source", Meaning::Gauge(MYSQL, mysql::REPLICA_LAG)),
    ("seconds_behind_master", Meaning::Gauge(MYSQL, mysql::REPLICA_LAG)),
    ("replica_io_running", Meaning::Running(mysql::REPLICA_IO_RUNNING)),
    ("slave_io_running", Meaning::Running(mysql::REPLICA_IO_RUNNING)),
    ("replica_sql_running", Meaning::Running(mysql::REPLICA_SQL_RUNNING)),
    ("slave_sql_running", Meaning::Running(mysql::REPLICA_SQL_RUNNING)),
    ("threads_connected", Meaning::Gauge(MYSQL, mysql::GLOBAL_STATUS_THREADS_CONNECTED)),
    ("threads_running", Meaning::Gauge(MYSQL, mysql::GLOBAL_STATUS_THREADS_RUNNING)),
    ("innodb_row_lock_current_waits", Meaning::Gauge(MYSQL, mysql::GLOBAL_STATUS_INNODB_ROW_LOCK_CURRENT_WAITS)),
    ("history list length", Meaning::Gauge(MYSQL, mysql::INNODB_HISTORY_LIST_LENGTH)),
    ("replay_lag_bytes", Meaning::Gauge(pg::SOURCE, postgresql::REPLICA_REPLAY_LAG_BYTES)),
    ("max_connections", Meaning::Setting("max_connections")),
    ("max_used_connections", Meaning::Setting("max_used_connections")),
    ("innodb_buffer_pool_size", Meaning::Setting("innodb_buffer_pool_size")),
    ("innodb_flush_log_at_trx_commit", Meaning::Setting("innodb_flush_log_at_trx_commit")),
    ("max_slot_wal_keep_size", Meaning::Setting("max_slot_wal_keep_size")),
    ("thread_handling", Meaning::Setting("thread_handling")),
];

/// Longest value, characters.
const VALUE_CHARS: usize = 32;

/// Longest line that is looked at: prose is shorter.
const LINE_BYTES: usize = 2_000;

/// The figures of a line.
fn figures(line: &str) -> Vec<(Meaning, &str)> {
    if line.len() > LINE_BYTES || !line.bytes().any(|byte| byte.is_ascii_digit() || byte == b'=' || byte == b':') {
        return Vec::new();
    }
    let lower = line.to_ascii_lowercase();
    let found = NAMES.iter().filter_map(|(name, meaning)| {
        let at = lower.find(name)?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (before, after) = (lower.get(..at)?, line.get(at + name.len()..)?);
        if before.ends_with(is_word) || after.starts_with(is_word) {
            return None;
        }
        Some((*meaning, value(after)?)).filter(|(meaning, value)| meaning.fits(value))
    });
    found.collect()
}

/// The value behind a name: a sign, a word such as `is`, or blanks part them.
fn value(after: &str) -> Option<&str> {
    let rest = after.trim_start_matches(['`', '\'', '"', '*', ')', ' ', '\t']);
    let rest = rest.strip_prefix(['=', ':', '|', ',']).unwrap_or(rest).trim_start();
    let rest = ["is ", "of ", "at ", "was ", "to ", "reached ", "~", "= "]
        .iter()
        .find_map(|word| rest.strip_prefix(word))
        .unwrap_or(rest);
    let rest = rest.trim_start_matches(['`', '\'', '"', '*', ' ']);
    let is_value = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let end = rest.find(|c: char| !is_value(c)).unwrap_or(rest.len());
    let value = rest.get(..end)?.trim_end_matches(['.', '-']);
    (!value.is_empty() && value.len() <= VALUE_CHARS).then_some(value)
}

impl Meaning {
    fn fits(self, value: &str) -> bool {
        match self {
            Self::Gauge(..) => number(value).is_some_and(|value| value >= 0.0),
            Self::Running(_) => matches!(value, "Yes" | "No" | "Connecting"),
            Self::Setting("thread_handling") => value.contains('-'),
            Self::Setting(_) => value.starts_with(|c: char| c.is_ascii_digit() || c == '-'),
        }
    }
}

fn read(lines: &[Line], context: &mut Context) -> usize {
    let at = context.instant_of(KIND.name);
    for (meaning, value) in figures(text(lines, 0)) {
        match meaning {
            Meaning::Gauge(source, metric) => {
                if let Some(value) = number(value) {
                    context.out.gauge(at, source, metric.name, Labels::none(), value);
                }
            }
            Meaning::Running(metric) => {
                let runs = f64::from(u8::from(value == "Yes"));
                context.out.gauge(at, MYSQL, metric.name, Labels::new([("channel", "")]), runs);
            }
            Meaning::Setting(name) => context.out.setting(at, "pasted", name, value),
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(line: &str) -> Vec<&str> {
        figures(line).into_iter().map(|(_, value)| value).collect()
    }

    #[test]
    fn a_servers_own_names_tell_their_values_in_prose() {
        assert_eq!(values("lag is lasting (`Seconds_Behind_Source = 28110`) although it runs"), ["28110"]);
        assert_eq!(values("Slave_IO_Running: Yes, Slave_SQL_Running=No"), ["Yes", "No"]);
        assert_eq!(values("until the limit (max_connections 151) is met"), ["151"]);
        assert_eq!(values("max_connections is 500."), ["500"]);
        assert_eq!(values("History list length 1204411"), ["1204411"]);
        assert_eq!(values("Threads_connected\t97"), ["97"]);
    }

    #[test]
    fn names_without_a_value_say_nothing() {
        for line in [
            "Seconds_Behind_Master: NULL",
            "we raised max_connections and it got worse 3 times",
            "mysqlx_max_connections = 100",
            "set max_connections",
        ] {
            assert_eq!(values(line), [""; 0], "{line}");
        }
    }
}
