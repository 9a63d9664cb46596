//! A file system or volume has no room left, so writes fail or wait.

mod advice;
mod filling;
mod signs;

use crate::resources::full_disk::{FullDisk, ShownBy};
use advice::fixes;

use std::collections::BTreeMap;

use super::{Cause, CauseFinding, Definition, Doc, Judge, Occurs, Outcome, Role, Trait, ms, of_failures};
use crate::case::Case;
use crate::failures;
use crate::next_command::{Managed, NextCommand};
use crate::resources::is_too_small;
use crate::strength::{CERTAIN, FAIR, STRONG, Strength, WEAK};
use holdup_recording::Labels;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View, Window};

pub const DEFINITION: Definition = Definition {
    occurs: Occurs::Rarely,
    traits: &[Trait::Harm, Trait::WithinStatement, Trait::LongStatement],
    signs: Some(signs::find),
    fixes: |facts| fixes(&facts.view, &facts.full),
    ..Definition::new(Cause::DiskFull, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "A disk is full",
    what: "A file system has no free bytes or no free inodes, or a cloud's volume has no storage left. Each write that needs a new block fails with ENOSPC.",
    hurts: "MySQL and MariaDB wait: a commit that cannot write the binary log stands still until there is room, with its locks. PostgreSQL fails the statement, and stops if it cannot write its log. A managed database refuses writes or connections. Reads go on, so the service looks half alive.",
    needs: "Free bytes and inodes of file systems (--watch host; df and df -i in pasted text), lines of the servers' logs in pasted text, or a cloud's figures of free storage. How requests fared tells what it costs.",
    predicts: "No bytes or inodes are free, or the free space falls at a pace at which it is gone within the day; once it is full, requests fail from then on, or sessions wait at the end of their statements while disks have hardly anything to do.",
    clears: "Every file system has room for a day at the pace at which it is used up; or the full one holds nothing that requests write, and neither failures nor waits begin with it.",
    looks_like: "A saturated disk (disk_saturated) makes writes slow and still does them. A file system that went read-only after an error refuses writes with EROFS and has room. A full tmpfs is a full /tmp, not a full disk.",
    fix: "Make room without deleting files of a server by hand: let the server remove its own logs (binary logs no replica needs, replication slots nothing reads), move or grow the file system, then find what grew.",
    prove: "df and df -i show room, the waiting statements end by themselves, and the same load fails no request.",
    references: "errno(3), ENOSPC; statvfs(3); MySQL reference manual: How MySQL Handles a Full Disk, PURGE BINARY LOGS; PostgreSQL documentation: Disk Full Failure, Replication Slots (max_slot_wal_keep_size); Amazon RDS user guide: storage full; Azure documentation: storage of flexible servers (read-only at 95 %).",
};

/// A provider's figures of free space.
const ROOM: Managed = Managed {
    amazon: "aws cloudwatch get-metric-data with FreeStorageSpace of the last day (holdup import --help)",
    azure: "az monitor metrics list with storage_percent of the last day (holdup import --help)",
    google: "gcloud monitoring time-series list of cloudsql.googleapis.com/database/disk of the last day (holdup import --help)",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand {
    managed: Some(ROOM),
    ..NextCommand::anywhere("df -P; df -i; dmesg -T | tail -20", 1, "which file system has no bytes or no inodes left")
};

/// States of sessions that write: of MySQL's threads, and wait events of PostgreSQL's processes.
const WRITES: [&str; 11] = [
    "query end",
    "commit",
    "waiting for handler commit",
    "update",
    "updating",
    "writing to binlog",
    "copying to tmp table",
    "io:walwrite",
    "io:walsync",
    "io:datafileextend",
    "io:walinitwrite",
];

const SESSIONS: &str = "--watch mysql://USER@HOST:PORT or --watch postgresql://USER@HOST:PORT/DATABASE";

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.view(case.whole());
    let room = crate::resources::full_disk::room(&view)?;
    if room.full.is_empty() {
        return filling::outcome(&view, room);
    }
    let since = room.full.iter().map(|full| full.since.unwrap_or(view.window.from)).min().unwrap_or(view.window.from);
    let after = [Window { from: since, to: i64::MAX }];
    let failed = failures::failed_share(case, &after);
    let waited = waiting(case);
    let (failed, waited) = match (failed, waited) {
        // Nothing shows what it costs: it is full all the same.
        (Err(missing), Err(_)) => return Err(missing),
        (failed, waited) => (failed.unwrap_or(0.0), waited.ok().flatten()),
    };
    let waited = waited.filter(|_| !room.full.iter().all(|full| is_of_others(&view, full)));
    let waits_ms = waited.as_ref().map_or(0.0, |waited| waited.ms);
    let explains_ms = waits_ms.max(case.excess_ms() * failed);
    let mut evidence: Vec<Evidence> = room.full.iter().map(|full| full.evidence.clone()).collect();
    let mut weights: Vec<Strength> =
        room.full.iter().map(|full| if is_of_others(&view, full) { WEAK } else { strength(full.shown_by) }).collect();
    if let Some(waited) = waited.filter(|waited| waited.ms > 0.0) {
        evidence.push(waited.evidence);
        weights.push(STRONG);
    }
    if failed < super::MATTERS && is_too_small(case, explains_ms)? {
        return Ok(Outcome::Cleared(evidence));
    }
    if failed > 0.0 {
        evidence.push(of_failures(case, failed, "failed while it was full"));
        weights.push(FAIR * failed);
    }
    let found = CauseFinding {
        explains_ms,
        evidence,
        weights,
        fixes: fixes(&view, &room.full),
        prove: "df and df -i show room, the waiting statements end, and the same load fails no request.".to_owned(),
        role: Role::Root,
    };
    Ok(Outcome::Fails(found, failed))
}

/// What shows it by itself: a write that failed says all, a full file system may be another's.
pub(crate) fn strength(shown_by: ShownBy) -> Strength {
    match shown_by {
        ShownBy::Write => CERTAIN,
        ShownBy::Cloud | ShownBy::Bytes | ShownBy::Inodes => STRONG,
    }
}

/// Server variables that name where a server writes.
const FOLDERS: [&str; 6] =
    ["datadir", "tmpdir", "log_bin_basename", "innodb_log_group_home_dir", "data_directory", "socket"];

/// Whether no watched server writes to a full file system, as far as their folders are known.
fn is_of_others(view: &View<'_>, full: &FullDisk) -> bool {
    let folders = FOLDERS.iter().flat_map(|name| view.server_directories(name));
    let mounts: Vec<String> = folders.filter_map(|folder| view.mount_of(&folder)).map(|mount| mount.path).collect();
    matches!(full.shown_by, ShownBy::Bytes | ShownBy::Inodes)
        && !mounts.is_empty()
        && mounts.iter().all(|mount| *mount != full.name)
}

/// The wait of sessions that write.
struct Waiting {
    /// Milliseconds of a mean request, more than in the baseline window.
    ms: f64,
    evidence: Evidence,
}

/// Sessions that write, by Little's law; none if no session was in such a state.
fn waiting(case: &Case<'_>) -> Result<Option<Waiting>, Missing> {
    let slow = case.slow();
    let (count, state) = writers(&slow)?;
    let each = |view: &View<'_>, count: f64| -> Result<f64, Missing> {
        Ok(count * view.window.seconds() / case.completed_in(view.window)?.max(1.0) * 1e3)
    };
    let Some(state) = state.filter(|_| count >= 1.0) else { return Ok(None) };
    let baseline = match case.baseline() {
        Some(baseline) => each(&baseline, writers(&baseline).map_or(0.0, |(count, _)| count))?,
        None => 0.0,
    };
    let waits_ms = (each(&slow, count)? - baseline).max(0.0);
    let text = format!(
        "{count:.1} sessions stood at the end of a write on average, most in \"{state}\": {} of a request",
        ms(waits_ms)
    );
    let labels = Labels::new([("state", state.as_str())]);
    let observed = format!("{count:.1} sessions");
    let evidence = Evidence::new("sessions", "state", labels, slow.window, observed, "hardly any", text);
    Ok(Some(Waiting { ms: waits_ms, evidence }))
}

/// Sessions that write, on average, and the state that most of them are in.
fn writers(view: &View<'_>) -> Result<(f64, Option<String>), Missing> {
    let mut rows = view.sessions(&["state", "true_state"])?;
    let instants = view.session_instants().max(1) as f64;
    if rows.is_empty() {
        return Err(Missing::new("sampled sessions", SESSIONS));
    }
    // Those behind a lock wait for its holder, which may write.
    rows.retain(|row| row.true_state == "executing");
    let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
    for state in rows.iter().filter_map(|row| row.state.as_deref()) {
        if is_write(state) {
            *counts.entry(state).or_default() += 1.0 / instants;
        }
    }
    let most = counts.iter().max_by(|a, b| a.1.total_cmp(b.1)).map(|(state, _)| (*state).to_owned());
    Ok((counts.values().sum(), most))
}

/// Whether a session in this state writes.
pub(crate) fn is_write(state: &str) -> bool {
    WRITES.iter().any(|write| state.eq_ignore_ascii_case(write))
}

#[cfg(test)]
mod tests;
