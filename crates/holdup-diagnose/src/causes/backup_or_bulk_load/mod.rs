//! A backup, or a load or export of much data, uses the same server or disk while requests are
//! slow.

mod backup_read;
mod began;
mod bulk_load;
mod index_build;
mod neighbour;
mod signs;

use super::parts::clearing::or_by_disk;
use super::{
    Cause, CauseFinding, Definition, Doc, Judge, MATTERS, Others, Outcome, Role, Trait, bytes_per_second, ms, percent,
};
use crate::case::Case;
use crate::change::Fix;
use crate::next_command::NextCommand;
use crate::resources::is_felt;
use crate::resources::volume::demand::{demand, share_text};
use crate::strength::{STRONG, WEAK};
use holdup_recording::metrics;
use holdup_signals::Missing;
use holdup_signals::database::copies::{Copying, THREADS, copying};
use holdup_signals::evidence::Evidence;

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::DiskDemand, Trait::WithinStatement, Trait::LongStatement],
    traces: &[backup_read::PATTERN, bulk_load::PATTERN],
    signs: Some(signs::find),
    ..Definition::new(Cause::BackupOrBulkLoad, DOC, Judge::Beside(judge), &NEXT)
};

const DOC: Doc = Doc {
    title: "A backup or bulk load uses much of the disk",
    what: "A program reads all of the data once (pg_basebackup, pg_dump, mysqldump, xtrabackup, tar, rsync) or writes much of it (COPY, LOAD DATA, a restore, an import, a purge, the rebuild of a table, the build of an index in MongoDB) while requests use the same server.",
    hurts: "It reads or writes as fast as it may. Requests wait behind it for the disk, the log or the CPUs, and data that is read once pushes what they need out of memory.",
    needs: "PostgreSQL's progress of base backups and COPY and its sessions, or MySQL's sessions; for programs that copy, their disk I/O (--watch pid:N), or the threads of the host (--watch host) and the disk I/O of the service's own processes (--watch pid:N), which show a program on no list as well; the disk's throughput. Or the server's counters by statement, with a baseline window. Or MongoDB's index builds (--watch mongodb://…) and its own account of operations.",
    predicts: "It began with the episode: it runs while requests are slow and not when they are fast, and its reads and writes, or its sessions that wait for the disk, are a large part of all. Or statements that hardly ran before change many rows at a time, and most of all changed rows, while the log grows faster and the requests' own statements take longer. Or MongoDB's operations take longer while an index is built than at other times.",
    clears: "None was seen; or it is a small part of the disk's throughput; or requests do not wait for the disk.",
    looks_like: "A program that waits for a disk which the service itself fills: it moves hardly anything. A report that reads a whole table (its statement shows that). Vacuum reads whole tables, too. A spike changes more rows, but as many per request as before; a restore has no requests.",
    fix: "Run it at another time, from a replica, or slower: pg_basebackup --max-rate, rsync --bwlimit, ionice, smaller batches.",
    prove: "The same load without it: response time is that of the baseline window.",
    references: "PostgreSQL documentation: Base Backup Progress Reporting, COPY Progress Reporting, pg_basebackup (--max-rate), pg_dump; MySQL Reference Manual: mysqldump (SQL_NO_CACHE in its statements), LOAD DATA; MongoDB manual: Index Builds on Populated Collections, serverStatus (indexBuilds).",
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::on_machine("pidstat -d 1 10", 10, "which process reads and writes");

/// A copy present for a smaller share (0-1) of the time does not delay requests for long.
const RUNS: f64 = 0.1;

/// One that ran for a smaller part (0-1) of that in the baseline window came with the episode.
const HARDLY: f64 = 0.2;

fn judge(case: &Case<'_>, others: &Others) -> Result<Outcome, Missing> {
    let recorded = from_records(case);
    let explained = |outcome: &Outcome| match outcome {
        Outcome::Found(found) => found.explains_ms,
        _ => 0.0,
    };
    // It may hurt in several ways: the one that costs requests most counts.
    let began = [
        began::by_changes(case),
        began::by_cpu(case, others),
        began::by_statements(case),
        index_build::by_operations(case),
        neighbour::by_threads(case),
    ];
    let began = began.into_iter().flatten();
    let most = began.max_by(|a, b| explained(a).total_cmp(&explained(b)));
    match most.filter(|most| recorded.as_ref().map_or(0.0, explained) < explained(most)) {
        Some(most) => Ok(most),
        None => match (or_by_disk(case, recorded), unread(case)) {
            (Ok(Outcome::Cleared(_)), Some(missing)) => Err(missing),
            (outcome, _) => outcome,
        },
    }
}

/// What statements lack to show what a newcomer cost them; none without statements.
fn unread(case: &Case<'_>) -> Option<Missing> {
    let statements = &case.recording.tables.statements;
    let missing = statements.with_columns(&["duration_ns"]).err().filter(|_| statements.present)?;
    Some(Missing::new(missing, "a recording of a newer holdup"))
}

fn from_records(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let demanded = demand(case);
    let device = demanded.as_ref().ok().map(|demand| demand.flow.name.as_str());
    let mut all = copying(&view, device);
    let was_looked_at = !view.sources_of(metrics::postgresql::ACTIVITY_SESSIONS.name).is_empty()
        || view.session_instants() > 0 && !view.sources_of(metrics::host::THREADS.name).is_empty();
    let are_threads_told = view.recording.tables.threads.with_columns(THREADS).is_ok();
    if all.is_empty() && !(was_looked_at && are_threads_told) {
        let enable = "--watch host and --watch mysql://USER@HOST:PORT or --watch postgresql://USER@HOST:PORT/DATABASE";
        return Err(Missing::new("what else was running: sessions and the threads of the host", enable));
    }
    let demand = demanded?;
    // A copy that ran in the same way in the baseline window is not the reason.
    let before = case.baseline().map(|baseline| copying(&baseline, Some(&demand.flow.name))).unwrap_or_default();
    let usual = |of: &Copying| before.iter().find(|b| b.name == of.name).map_or(0.0, |b| b.seen_ratio);
    let share = |of: &Copying| match of.bytes_per_second {
        Some(bytes) if usual(of) < HARDLY * of.seen_ratio => demand.share_of_newcomer(case, bytes),
        Some(bytes) => demand.share(bytes),
        None => of.waits_share.map_or(0.0, |(share, _)| share),
    };
    all.retain(|of| of.seen_ratio >= RUNS);
    all.sort_by(|a, b| share(b).total_cmp(&share(a)));
    let Some(most) = all.first() else {
        let slow = view.window;
        let text = "no backup, dump or bulk load was seen while requests were slow".to_owned();
        let unit = holdup_signals::host::throttle::Unit::Bytes;
        let none = demand.flow.evidence(unit, slow, "none".into(), "one, if it were the cause".into(), text);
        return Ok(Outcome::Cleared(vec![none]));
    };
    let waited = demand.waited_ms(case)?;
    let explains_ms = waited * share(most);
    let how = match most.bytes_per_second {
        // The program itself was not measured.
        Some(_) if most.is_program && most.waits_share.is_some() => {
            format!("and no watched process read {}", share_text(&demand, share(most)))
        }
        Some(b) => format!("{}: {}", bytes_per_second(b), share_text(&demand, share(most))),
        None => format!("{} {}", percent(share(most)), most.waits_share.map_or("of the disk", |(_, whose)| whose)),
    };
    let text = format!(
        "{} was running in {} of the samples, {how}; a request waits {} for {}",
        most.name,
        percent(most.seen_ratio),
        ms(waited),
        demand.flow.name
    );
    let mut told = most.evidence.clone().saying("nothing of it", text);
    told.observed = ms(explains_ms);
    if share(most) < MATTERS
        && case.share_inside(waited) >= MATTERS
        && all.iter().any(|of| of.is_program && of.bytes_per_second.is_none())
    {
        // A few threads that read large amounts wait as rarely as a few that read little.
        let what = format!("how much {} reads, compared with the service's own processes", most.name);
        return Err(Missing::new(what, "--watch host, and pid:N for the app and the database"));
    }
    if share(most) < MATTERS || !is_felt(case, waited)? {
        return Ok(Outcome::Cleared(vec![told]));
    }
    if usual(most) >= 0.8 * most.seen_ratio {
        let text = format!("{} was running as much while requests were fast", most.name);
        return Ok(Outcome::Cleared(vec![told.saying("", text)]));
    }
    Ok(Outcome::Found(found(most, explains_ms, told)))
}

fn found(most: &Copying, explains_ms: f64, told: Evidence) -> CauseFinding {
    CauseFinding {
        explains_ms,
        evidence: vec![told],
        weights: vec![STRONG, if most.bytes_per_second.is_some() { STRONG } else { WEAK }],
        fixes: vec![Fix {
            text: format!(
                "Let {} run at another time or from a replica, or slower: pg_basebackup --max-rate=…, rsync --bwlimit=…, ionice -c3, smaller batches.",
                most.name
            ),
            command: None,
            keep: None,
            risk: Some("A slower backup takes longer, and keeps its snapshot and log files for as long.".to_owned()),
        }],
        prove: format!("The same load without {}: response time is that of the baseline window.", most.name),
        role: Role::Root,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "postgresql://db";
    const READ: &str = "io_schedule < __iomap_dio_rw < vfs_read";

    /// 100 requests a second of 400 ms that wait for a disk of 10 MB/s.
    fn disk() -> SyntheticRecording {
        SyntheticRecording::new(30)
            .requests(100, 400)
            .asleep(40, "io_schedule", READ, None)
            .disk("vda", (60.0, 100e3, 100.0), (40.0, 100e3, 100.0))
            .gauge(DB, "postgresql_activity_sessions", &[("backend_type", "client backend")], 40.0)
    }

    fn backup(made: SyntheticRecording, bytes: f64) -> SyntheticRecording {
        let labels = [("pid", "44"), ("phase", "streaming database files")];
        made.counter(DB, "postgresql_progress_basebackup_backup_streamed", &labels, bytes)
    }

    #[test]
    fn a_base_backup_is_told_by_what_it_streams() {
        let made = backup(disk(), 6e6);
        assert!((made.explains(&DEFINITION).unwrap() - 0.6 * 400.0).abs() < 15.0);
        let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
        assert!(found.evidence[0].text.contains("a base backup was running in 100 %"), "{:?}", found.evidence);
        assert_eq!(made.diagnose().culprit, Some(DEFINITION.cause));
    }

    #[test]
    fn a_dump_and_a_copying_program_are_told_by_who_waits() {
        let mut tar = disk().threads(
            (0..=30)
                .map(|s| holdup_recording::rows::Thread {
                    observed_at: s * 1_000_000_000,
                    source: "host".into(),
                    process: "tar".into(),
                    state: "D".into(),
                    count: 40,
                    ..Default::default()
                })
                .collect(),
        );
        assert!((tar.explains(&DEFINITION).unwrap() - 200.0).abs() < 10.0);
        tar = disk();
        let dump = |id: i64, s: i64| holdup_recording::rows::Session {
            observed_at: s * 1_000_000_000,
            source: DB.into(),
            session_id: id,
            command: "active".into(),
            true_state: "executing".into(),
            state: Some("IO:DataFileRead".into()),
            digest_text: Some(if id == 1 { "COPY public.article (id, body) TO stdout" } else { "SELECT 1" }.into()),
            ..Default::default()
        };
        let rows = || (0..=30).flat_map(|s| [dump(1, s), dump(2, s)]);
        let from_memory = rows()
            .map(|row| holdup_recording::rows::Session { state: row.state.filter(|_| row.session_id != 1), ..row });
        let from_memory = disk().session_rows(from_memory.collect());
        assert_eq!(from_memory.explains(&DEFINITION), Some(0.0), "it reads nothing of the disk");
        let dumped = tar.session_rows(rows().collect());
        assert!((dumped.explains(&DEFINITION).unwrap() - 200.0).abs() < 10.0, "{:?}", dumped.explains(&DEFINITION));
    }

    #[test]
    fn a_program_that_copies_with_few_threads_is_told_by_what_the_service_did_not_read() {
        // One thread of a backup beside 40 of the service that sleep, at a disk that reads 6 MB a second.
        let dd = |s: i64| holdup_recording::rows::Thread {
            observed_at: s * 1_000_000_000,
            source: "host".into(),
            process: "dd".into(),
            state: "D".into(),
            count: 1,
            ..Default::default()
        };
        let made = |own: f64| {
            let made = disk().threads((0..=30).map(dd).collect()).setting("pid:7", "process.name", "postgres");
            made.counter("pid:7", "process_disk_io_bytes_total", &[("direction", "read")], own)
        };
        assert!(
            (made(0.6e6).explains(&DEFINITION).unwrap() - 0.54 * 400.0).abs() < 15.0,
            "{:?}",
            made(0.6e6).explains(&DEFINITION)
        );
        assert_eq!(made(6e6).explains(&DEFINITION), Some(0.0), "the service reads all of it");
        assert_eq!(disk().threads((0..=30).map(dd).collect()).explains(&DEFINITION), None, "nobody says who reads");
    }

    #[test]
    fn no_backup_and_a_small_backup_clear_it() {
        assert_eq!(disk().explains(&DEFINITION), Some(0.0));
        assert_eq!(backup(disk(), 0.4e6).explains(&DEFINITION), Some(0.0));
    }

    #[test]
    fn without_a_fact_it_is_not_judged() {
        assert_eq!(disk().without("postgresql_activity_sessions").explains(&DEFINITION), None);
        assert_eq!(backup(disk(), 6e6).without("system_disk_io_bytes_total").explains(&DEFINITION), None);
    }
}
