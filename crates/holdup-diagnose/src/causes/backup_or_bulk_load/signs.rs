//! Large reads in a row, statements that copy or rewrite whole tables, and programs that make backups.

use holdup_signals::evidence::Evidence;

use holdup_recording::Labels;

use crate::instant::Signs;
use crate::instant::facts::{DiskWork, Facts};
use crate::strength::{FAIR, WEAK};

/// How statements begin that read or write a table as a whole.
const STATEMENTS: [&str; 9] = [
    "COPY ",
    "LOAD DATA",
    "ALTER TABLE",
    "CREATE INDEX",
    "CREATE UNIQUE INDEX",
    "OPTIMIZE TABLE",
    "REINDEX",
    "VACUUM FULL",
    "CREATE TABLE",
];

/// One that is done sooner does not burden, seconds.
const LONG_S: f64 = 60.0;

/// Programs that read all there is.
const PROGRAMS: [&str; 12] = [
    "mysqldump",
    "mariadb-dump",
    "mydumper",
    "pg_dump",
    "pg_basebackup",
    "xtrabackup",
    "mariabackup",
    "mongodump",
    "restic",
    "borg",
    "rsync",
    "updatedb",
];

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    signs.extend(WEAK, facts.disk_that(|work| work == DiskWork::ReadsMuch));
    signs.extend(FAIR, statement(facts));
    signs.extend(WEAK, program(facts));
}

/// The longest statement of that kind.
fn statement(facts: &Facts<'_>) -> Option<Evidence> {
    let rows = facts.view.sessions(&["true_state", "age_ns", "digest_text"]).ok()?;
    let longest = rows.into_iter().filter_map(|row| {
        let text = row.digest_text.as_deref().filter(|_| row.true_state == "executing")?;
        let is_one =
            STATEMENTS.iter().any(|begin| text.get(..begin.len()).is_some_and(|of| of.eq_ignore_ascii_case(begin)));
        let seconds = row.age_ns? as f64 / 1e9;
        (is_one && seconds >= LONG_S).then_some((seconds, text))
    });
    let (seconds, text) = longest.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let shown: String = text.chars().take(80).collect();
    let text = format!("a statement on a whole table has run for {seconds:.0} s: {shown}");
    let labels = Labels::new([("true_state", "executing")]);
    let observed = format!("{seconds:.0} s");
    Some(Evidence::new("sessions", "digest_text", labels, facts.view.window, observed, "none", text))
}

/// A program that was listed with its share of the CPUs, or that waits for a disk.
fn program(facts: &Facts<'_>) -> Option<Evidence> {
    let tables = &facts.view.recording.tables;
    let is_one = |name: &str| PROGRAMS.contains(&name);
    let waiting = tables.threads.rows.iter().find(|row| is_one(&row.process) && row.state.starts_with(['D', 'R']));
    let named = || tables.settings.rows.iter().find(|row| row.name == "comm" && is_one(&row.value));
    let name = waiting.map(|row| row.process.as_str()).or_else(|| named().map(|row| row.value.as_str()))?;
    let (table, column, labels) = match waiting {
        Some(row) => ("threads", "process", Labels::new([("process", row.process.as_str())])),
        None => ("settings", "value", Labels::new([("name", "comm")])),
    };
    let text = format!("{name} ran, which reads all there is");
    Some(Evidence::new(table, column, labels, facts.view.window, name.to_owned(), "none", text))
}

#[cfg(test)]
mod tests {
    use holdup_recording::rows::Session;

    use super::*;
    use crate::testing::SyntheticRecording;

    #[test]
    fn a_statement_on_a_whole_table_counts_once_it_is_long() {
        let chance = |text: &str, seconds: i64| {
            let session = Session {
                observed_at: 1_000_000_000,
                source: "mysql://x".into(),
                session_id: 7,
                command: "Query".into(),
                true_state: "executing".into(),
                age_ns: Some(seconds * 1_000_000_000),
                digest_text: Some(text.into()),
                ..Session::default()
            };
            let counted = SyntheticRecording::new(2).gauge("mysql://x", "mysql_sessions", &[], 1.0);
            let made = counted.tables(|tables| {
                tables.sessions.present = true;
                tables.sessions.rows = vec![session.clone()];
            });
            made.seen(|view| {
                let mut signs = Signs::default();
                find(&Facts::read(*view), &mut signs);
                signs.weigh().map_or(0.0, |weighed| weighed.chance)
            })
        };
        assert!((chance("ALTER TABLE orders ADD COLUMN x int", 700) - FAIR.chance()).abs() < 1e-9);
        assert_eq!(chance("ALTER TABLE orders ADD COLUMN x int", 2), 0.0);
        assert_eq!(chance("SELECT * FROM orders WHERE id = ?", 700), 0.0);
    }
}
