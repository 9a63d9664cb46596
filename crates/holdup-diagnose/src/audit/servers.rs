//! Advice on MySQL's and MariaDB's own settings: files for all its connections and tables, a log that holds an hour of writes,
//! and what a crash may cost.

use super::facts::{Facts, Product, Server};
use super::{Check, Deviation};
use crate::case::Case;
use crate::cause::Cause;
use crate::change::database::Server as Database;
use crate::change::parameters::{Engine, FLUSH_LOG, Parameter, SYNC_BINLOG};
use crate::change::{Direction, Fix};
use crate::verdict::Note;
use holdup_recording::metrics;
use holdup_recording::words::{bytes, bytes_per_second, thousands};
use holdup_signals::View;

const MYSQL_FILES: &str = "MySQL Reference Manual: Server System Variables, open_files_limit (https://dev.mysql.com/doc/refman/8.4/en/server-system-variables.html)";
const MARIADB_FILES: &str = "MariaDB documentation: Server System Variables, open_files_limit (https://mariadb.com/docs/server/server-management/variables-and-modes/server-system-variables)";
const MYSQL_DURABLE: &str = "MySQL Reference Manual: InnoDB Startup Options and System Variables, innodb_flush_log_at_trx_commit (https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html)";
const MARIADB_DURABLE: &str = "MariaDB documentation: InnoDB System Variables, innodb_flush_log_at_trx_commit (https://mariadb.com/docs/server/server-usage/storage-engines/innodb/innodb-system-variables)";
const LOG_SIZE: &str = "MySQL Reference Manual 8.0: InnoDB Startup Options and System Variables, innodb_log_file_size (https://dev.mysql.com/doc/refman/8.0/en/innodb-parameters.html)";

const FILES_ADVISED: &str = "10 + max_connections + 2 x table_open_cache, or more";
const FILES_WHY: &str = "each connection takes a file, and each open table up to two; with fewer, the server shrinks its caches at startup, or fails to open files";
const DURABLE_ADVISED: &str = "1, and sync_binlog=1 where a binary log is written";
const DURABLE_WHY: &str =
    "with other values commits do not wait for the disk, and a crash of the machine loses about a second of them";

pub(super) const CHECKS: &[Check] = &[
    Check {
        check: "files_for_connections",
        product: Product::MySql,
        against: files,
        advised: FILES_ADVISED,
        why: FILES_WHY,
        reference: MYSQL_FILES,
        matters: &[Cause::ConnectionLimit, Cause::FileDescriptorLimit, Cause::TableCacheSmall],
    },
    Check {
        check: "files_for_connections",
        product: Product::MariaDb,
        against: files,
        advised: FILES_ADVISED,
        why: FILES_WHY,
        reference: MARIADB_FILES,
        matters: &[Cause::ConnectionLimit, Cause::FileDescriptorLimit, Cause::TableCacheSmall],
    },
    Check {
        check: "durability",
        product: Product::MySql,
        against: durability,
        advised: DURABLE_ADVISED,
        why: DURABLE_WHY,
        reference: MYSQL_DURABLE,
        matters: &[],
    },
    Check {
        check: "durability",
        product: Product::MariaDb,
        against: durability,
        advised: DURABLE_ADVISED,
        why: DURABLE_WHY,
        reference: MARIADB_DURABLE,
        matters: &[],
    },
];

fn files(facts: &Facts<'_>, server: &Server<'_>) -> Vec<Deviation> {
    let number = |name: &str| facts.own(server, name).and_then(|v| v.parse::<f64>().ok());
    let (Some(files), Some(connections)) = (number("open_files_limit"), number("max_connections")) else {
        return Vec::new();
    };
    let least = 10.0 + connections + 2.0 * number("table_open_cache").unwrap_or(0.0);
    if files >= least {
        return Vec::new();
    }
    let fix = Fix {
        text: format!("Let the server have {} files.", thousands(least)),
        command: None,
        keep: Some(format!(
            "LimitNOFILE={least:.0} in its systemd unit (systemctl edit UNIT) and open_files_limit={least:.0} below [mysqld]; with a restart."
        )),
        risk: None,
    };
    vec![Deviation {
        subject: "open_files_limit".to_owned(),
        observed: format!("{} for max_connections {}", thousands(files), thousands(connections)),
        fix: Some(fix),
        word: String::new(),
    }]
}

fn durability(facts: &Facts<'_>, server: &Server<'_>) -> Vec<Deviation> {
    let own = |name: &str| facts.own(server, name);
    let mut found = Vec::new();
    let database = Database::among(facts.rows, Engine::MySql);
    let mut put = |parameter: &'static Parameter, value: &str| {
        let name = parameter.name;
        let fix = match database.change(Direction::Set, parameter, 1.0) {
            Ok(change) => change.fix(
                "every commit then waits for the disk",
                database.steps(&[(parameter, &change)]),
                "Commits take as long as a flush.",
            ),
            Err(stay) => stay.fix(&format!("Set {name} to 1.")),
        };
        found.push(Deviation {
            subject: name.to_owned(),
            observed: value.to_owned(),
            fix: Some(fix),
            word: String::new(),
        });
    };
    if let Some(value) = own("innodb_flush_log_at_trx_commit").filter(|v| !matches!(*v, "1" | "3")) {
        put(&FLUSH_LOG, value);
    }
    let has_binlog = own("log_bin").is_some_and(|v| matches!(v, "ON" | "1"));
    if let Some(value) = own("sync_binlog").filter(|v| has_binlog && *v != "1") {
        put(&SYNC_BINLOG, value);
    }
    found
}

/// Seconds of writes that the redo log should hold.
const HOUR_S: f64 = 3_600.0;

/// Notes a redo log that holds less than an hour of the measured writes; `finding` shows whether it
/// matters.
pub(super) fn log_size(case: &Case<'_>, finding: Option<Cause>) -> Option<Note> {
    let view = case.view(case.whole());
    let rate = view.status(metrics::mysql::GLOBAL_STATUS_INNODB_OS_LOG_WRITTEN).ok().filter(|c| c.delta > 0.0)?.rate();
    let capacity = capacity(&view)?;
    let seconds = capacity / rate;
    let whether = match finding {
        Some(found) => format!("it matters here: {found} was found"),
        None => "no measurement shows that it matters here".to_owned(),
    };
    let wanted = 2_f64.powf((rate * HOUR_S).log2().ceil());
    (seconds < HOUR_S).then(|| Note {
        check: "log_size".to_owned(),
        vendor: Product::MySql.vendor().to_owned(),
        subject: "innodb_redo_log_capacity, innodb_log_file_size".to_owned(),
        observed: format!("{}, {:.0} s of writes at {}", bytes(capacity), seconds, bytes_per_second(rate)),
        advised: "an hour of writes".to_owned(),
        text: format!("a log that fills sooner forces pages out early; {whether}."),
        finding,
        fix: Some(Fix {
            text: format!("If that rate lasts, give the redo log {}.", bytes(wanted)),
            command: None,
            keep: Some(format!(
                "innodb_redo_log_capacity={wanted:.0} (MySQL 8.0.30 and later) or innodb_log_file_size below [mysqld]."
            )),
            risk: Some("Takes that much disk. Recovery after a crash reads more log and takes longer.".to_owned()),
        }),
        reference: LOG_SIZE.to_owned(),
    })
}

fn capacity(view: &View<'_>) -> Option<f64> {
    let number = |name: &str| view.setting_number(name).ok().filter(|v| *v > 0.0);
    number("innodb_redo_log_capacity")
        .or_else(|| Some(number("innodb_log_file_size")? * number("innodb_log_files_in_group").unwrap_or(1.0)))
}

#[cfg(test)]
mod tests {
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "mysql://127.0.0.1:3306";

    fn server(files: &str, at_commit: &str, sync_binlog: &str) -> SyntheticRecording {
        SyntheticRecording::new(12)
            .requests(50, 5)
            .setting(DB, "version", "8.0.36")
            .setting(DB, "max_connections", "500")
            .setting(DB, "table_open_cache", "2000")
            .setting(DB, "open_files_limit", files)
            .setting(DB, "innodb_flush_log_at_trx_commit", at_commit)
            .setting(DB, "log_bin", "ON")
            .setting(DB, "sync_binlog", sync_binlog)
            .setting(DB, "innodb_redo_log_capacity", "104857600")
    }

    fn checks(made: &SyntheticRecording) -> Vec<(String, String)> {
        made.diagnose().notes.into_iter().map(|n| (n.check, n.subject)).collect()
    }

    #[test]
    fn files_and_durability_are_held_against_the_manual() {
        assert_eq!(checks(&server("10000", "1", "1")), []);
        let found = checks(&server("4000", "2", "0"));
        let subjects: Vec<&str> = found.iter().map(|(_, subject)| subject.as_str()).collect();
        assert_eq!(subjects, ["open_files_limit", "innodb_flush_log_at_trx_commit", "sync_binlog"]);
    }

    #[test]
    fn a_log_that_fills_within_the_hour_is_noted() {
        let written =
            |rate: f64| server("10000", "1", "1").counter(DB, "mysql_global_status_innodb_os_log_written", &[], rate);
        assert_eq!(checks(&written(10_000.0)), []);
        let diagnosis = written(1e6).diagnose();
        assert_eq!(diagnosis.notes[0].check, "log_size");
        assert!(diagnosis.notes[0].observed.contains("105 s of writes"), "{:?}", diagnosis.notes[0]);
    }
}
