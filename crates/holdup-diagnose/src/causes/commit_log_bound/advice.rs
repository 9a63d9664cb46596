//! What to do about a log that commits wait for: fewer commits, a quicker disk, or commits that do
//! not wait. The last one gives up data: it is advice only where the volume was seen, because a volume at its
//! limit delays everything else as well.

use crate::change;
use crate::change::database::Server;
use crate::change::parameters::{Engine, FLUSH_LOG, Parameter, SYNC_BINLOG, SYNCHRONOUS_COMMIT};
use crate::change::{Direction, Fix, SettingChange, Stay};
use holdup_signals::View;

pub(super) fn fixes(view: &View<'_>, is_postgresql: bool) -> Vec<Fix> {
    let plain = |text: &str| Fix { text: text.to_owned(), command: None, keep: None, risk: None };
    if view.flows().is_ok_and(|flows| !flows.is_empty()) {
        let lazier = if is_postgresql { without_waiting(view) } else { once_a_second(view) };
        return less_often(plain).into_iter().chain([lazier]).collect();
    }
    let unseen = plain(
        "See the log's volume first: reads and writes together against its limits of throughput and operations, and its queue (--watch host on the database's machine, or --watch aws:…).",
    );
    [unseen].into_iter().chain(less_often(plain)).collect()
}

fn less_often(plain: impl Fn(&str) -> Fix) -> [Fix; 2] {
    [
        plain("Commit less often: several rows or steps in one transaction, no single statements in a loop."),
        plain("Put the log on a disk with a power-loss-protected write cache: a flush then takes microseconds."),
    ]
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

#[cfg(test)]
mod tests {
    use super::super::DEFINITION;
    use super::*;
    use crate::causes::Outcome;
    use crate::testing::{Judged as _, SyntheticRecording};

    #[test]
    fn commits_that_lose_data_are_not_advised_while_the_volume_was_not_seen() {
        let made = |volume: bool| {
            let waiting = SyntheticRecording::new(12)
                .requests(50, 400)
                .setting("postgresql://db", "synchronous_commit", "on")
                .setting("postgresql://db", "fsync", "on")
                .waiting(&[("IO:WALSync", 4), ("LWLock:WALWrite", 11)]);
            let waiting = if volume { waiting.disk("vda", (0.0, 0.0, 0.0), (20.0, 4096.0, 0.2)) } else { waiting };
            let Ok(Outcome::Found(found)) = waiting.judge(&DEFINITION) else {
                panic!("{:?}", waiting.explains(&DEFINITION))
            };
            found.fixes
        };
        let says = |fixes: &[Fix], what: &str| fixes.iter().any(|fix| format!("{fix:?}").contains(what));
        let (blind, seen) = (made(false), made(true));
        assert!(blind[0].text.contains("volume first") && !says(&blind, "synchronous_commit"), "{blind:?}");
        assert!(says(&seen, "synchronous_commit") && !says(&seen, "volume first"), "{seen:?}");
    }
}
