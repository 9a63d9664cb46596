//! What to do about a log that commits wait for: fewer commits, a quicker disk, or commits that do
//! not wait.

use crate::change;
use crate::change::database::Server;
use crate::change::parameters::{Engine, FLUSH_LOG, Parameter, SYNC_BINLOG, SYNCHRONOUS_COMMIT};
use crate::change::{Direction, Fix, SettingChange, Stay};
use holdup_signals::View;

pub(super) fn fixes(view: &View<'_>, is_postgresql: bool) -> Vec<Fix> {
    let plain = |text: &str| Fix { text: text.to_owned(), command: None, keep: None, risk: None };
    let mut fixes = vec![
        plain("Commit less often: several rows or steps in one transaction, no single statements in a loop."),
        plain("Put the log on a disk with a power-loss-protected write cache: a flush then takes microseconds."),
    ];
    fixes.push(if is_postgresql { without_waiting(view) } else { once_a_second(view) });
    fixes
}

/// PostgreSQL: commits that do not wait for the log.
fn without_waiting(view: &View<'_>) -> Fix {
    let server = Server::find(view, Engine::PostgreSql);
    match server.change(Direction::Lower, &SYNCHRONOUS_COMMIT, 0.0) {
        Ok(change) => change.fix(
            "commits then do not wait for the log, if losing the last fraction of a second is acceptable; one role can have this alone (ALTER ROLE)",
            server.steps(&[(&SYNCHRONOUS_COMMIT, &change)]),
            "After a crash up to three times wal_writer_delay (0.6 s) of committed transactions are gone; nothing is corrupt.",
        ),
        Err(stay) => stay.fix("Commits cannot wait less for the log."),
    }
}

/// MySQL and MariaDB: the log and the binary log, flushed once a second instead of with each
/// commit.
fn once_a_second(view: &View<'_>) -> Fix {
    let server = Server::find(view, Engine::MySql);
    let is_durable = |value: f64| value == 1.0 || value == 3.0;
    let log = match server.number(&FLUSH_LOG) {
        // 0 and 2 do not wait for the disk as it is.
        Some(value) if !is_durable(value) => Err(Stay::There(format!("{} is {value:.0}", FLUSH_LOG.name))),
        _ => server.change(Direction::Set, &FLUSH_LOG, 2.0),
    };
    let binlog = match server.number(&SYNC_BINLOG) {
        Some(value) if value > 0.0 => server.change(Direction::Set, &SYNC_BINLOG, 0.0),
        _ => Err(Stay::There(SYNC_BINLOG.name.to_owned())),
    };
    let both = [(&FLUSH_LOG, &log), (&SYNC_BINLOG, &binlog)];
    let moved: Vec<(&'static Parameter, &SettingChange)> =
        both.into_iter().filter_map(|(of, change)| Some((of, change.as_ref().ok()?))).collect();
    if moved.is_empty() {
        let stay = log.err().unwrap_or_else(|| Stay::Unknown(FLUSH_LOG.name.to_owned()));
        return stay.fix("Commits cannot wait less for the log.");
    }
    let changes: Vec<SettingChange> = moved.iter().map(|(_, change)| (*change).clone()).collect();
    let risk = "After a crash of the machine about a second of committed transactions is gone, and a replica or binary log may have more of them than the server.";
    change::fix(
        &changes,
        "the log is then flushed once a second, if losing the last second is acceptable",
        server.steps(&moved),
        risk,
    )
}
