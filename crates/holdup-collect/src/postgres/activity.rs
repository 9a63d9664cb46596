//! The activity of all server processes, counted: many such counts give the mean number of active
//! ones and what they waited for. Also the session with the oldest snapshot, which keeps dead rows
//! from being removed.

use std::collections::BTreeMap;

use holdup_recording::{Labels, metrics};

use super::server::{MARKER, Row};
use crate::reading::Out;

/// Counts the rows that `sessions` reads: 4 database, 5 state, 6 and 7 its wait event, 9 its
/// statement, 11 kind of process, 13 the age of the oldest transaction visible to it, 14 the age of
/// its own in seconds, 15 its application's name.
pub(super) fn count(rows: &[Row], out: &mut Out) {
    let mut counts: BTreeMap<[&str; 4], f64> = BTreeMap::new();
    // Plus one for holdup's own connection.
    let mut connections = 1.0;
    for row in rows.iter().filter(|row| !is_ours(row)) {
        let part = |index| row.text(index).unwrap_or_default();
        *counts.entry([part(5), part(6), part(7), part(11)]).or_default() += 1.0;
        connections += f64::from(u8::from(part(11) == "client backend"));
    }
    for ([state, wait_type, wait, kind], count) in counts {
        let labels = Labels::new([
            ("state", state),
            ("wait_event_type", wait_type),
            ("wait_event", wait),
            ("backend_type", kind),
        ]);
        out.put(metrics::postgresql::ACTIVITY_SESSIONS, labels, count);
    }
    out.put_plain(metrics::postgresql::CONNECTIONS, connections);
    for (holder, row) in oldest(rows) {
        // A replica is identified by the name it reports, a session by its process.
        let name = row.text(15).filter(|name| holder == "replica" && !name.is_empty()).or(row.text(0));
        let mut labels = Labels::new([("holder", holder), ("name", name.unwrap_or_default())]);
        if let Some(database) = row.text(4) {
            labels = labels.with("database", database);
        }
        let age = row.float(13).unwrap_or(0.0);
        out.put(metrics::postgresql::OLDEST_XMIN_AGE_TRANSACTIONS, labels, age);
    }
    let others = rows.iter().filter(|row| !is_ours(row) && row.text(11) != Some("autovacuum worker"));
    let seconds = others.filter_map(|row| row.float(14)).fold(0.0, f64::max);
    out.put_plain(metrics::postgresql::OLDEST_TRANSACTION, seconds);
}

/// The oldest among sessions, and the oldest among replicas.
fn oldest(rows: &[Row]) -> Vec<(&'static str, &Row)> {
    let mut found: BTreeMap<&'static str, &Row> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.int(13).is_some() && !is_ours(row)) {
        let holder = match row.text(11) {
            Some("walsender") => "replica",
            // A snapshot of vacuum does not hold back other vacuums.
            Some("autovacuum worker") => continue,
            _ if starts_with_vacuum(row.text(9).unwrap_or_default()) => continue,
            _ => "session",
        };
        let kept = found.entry(holder).or_insert(row);
        if row.int(13) > kept.int(13) {
            *kept = row;
        }
    }
    found.into_iter().collect()
}

fn starts_with_vacuum(text: &str) -> bool {
    text.trim_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("vacuum"))
}

/// A session of another holdup.
fn is_ours(row: &Row) -> bool {
    row.text(9).is_some_and(|text| text.starts_with(MARKER))
}

#[cfg(test)]
mod tests {
    use holdup_recording::Batch;

    use super::*;

    fn row(pid: &str, kind: &str, state: &str, wait: Option<&str>, age: Option<&str>, query: &str) -> Row {
        let mut values = vec![None; 16];
        for (place, value) in [
            (0, Some(pid)),
            (5, Some(state)),
            (6, wait),
            (7, wait),
            (9, Some(query)),
            (11, Some(kind)),
            (13, age),
            (14, age),
        ] {
            values[place] = value.map(str::to_owned);
        }
        Row(values)
    }

    #[test]
    fn processes_are_counted_and_the_oldest_named() {
        let rows = [
            row("1", "client backend", "active", Some("IO"), Some("50"), "SELECT"),
            row("2", "client backend", "active", Some("IO"), Some("9"), "SELECT"),
            row("3", "client backend", "idle", None, None, ""),
            row("4", "autovacuum worker", "active", Some("IO"), Some("900"), "autovacuum: VACUUM public.t"),
            row("5", "client backend", "active", None, Some("800"), "vacuum t"),
            row("6", "walwriter", "", Some("Activity"), None, ""),
            row("7", "walsender", "active", Some("Activity"), Some("70"), ""),
            row("8", "client backend", "idle", None, Some("999"), "/* holdup */ SELECT"),
        ];
        let mut batch = Batch::default();
        count(&rows, &mut Out::new(&mut batch, "postgresql://h:1"));
        let value = |metric: &str, labels: &[(&str, &str)]| {
            let is = |row: &&holdup_recording::rows::Sample| row.metric == metric && row.labels.contains(labels);
            batch.samples.iter().find(is).map(|row| row.value)
        };
        let io = [("state", "active"), ("wait_event_type", "IO"), ("backend_type", "client backend")];
        assert_eq!(value("postgresql_activity_sessions", &io), Some(2.0));
        assert_eq!(value("postgresql_activity_sessions", &[("backend_type", "walwriter")]), Some(1.0));
        assert_eq!(value("postgresql_connections", &[]), Some(5.0), "four and ours");
        let age =
            |holder, name| value("postgresql_oldest_xmin_age_transactions", &[("holder", holder), ("name", name)]);
        assert_eq!((age("session", "1"), age("replica", "7"), age("session", "5")), (Some(50.0), Some(70.0), None));
        assert_eq!(value("postgresql_oldest_transaction_seconds", &[]), Some(800.0));
    }
}
