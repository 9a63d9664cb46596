//! A backup, or a load or export of much data, is at work on the same server or disk while requests are slow.

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::Labels;

use super::parts::clearing::or_by_disk;
use super::{Doc, Found, Judge, MATTERS, Outcome, Rule, bytes, ms, percent};
use crate::case::Case;
use crate::resources::volume::demand::{demand, share_text};
use crate::rules::Role;
use holdup_signals::evidence::{Evidence, Fix};
use holdup_signals::server_waits::{At, at};
use holdup_signals::{Missing, View};

/// The rule.
pub const RULE: Rule = Rule {
    cause: "backup_or_bulk_load",
    doc: Doc {
        title: "A backup or a bulk load takes a good part of the disk",
        what: "Somebody reads all of the data once (pg_basebackup, pg_dump, mysqldump, xtrabackup, tar, rsync) or writes much of it (COPY, LOAD DATA, a restore) while requests are served from the same disk.",
        hurts: "It reads or writes as fast as it may. Requests wait behind it, and what they need is pushed out of memory by data that is read once.",
        needs: "PostgreSQL's progress of base backups and COPY and its sessions, or MySQL's sessions; of copies by processes their disk I/O (--watch pid:N) or the threads of the host (--watch host); what passes through the disk.",
        predicts: "It is under way while requests are slow and not when they are quick, and what it reads and writes, or its sessions that wait for the disk, are a good part of all.",
        clears: "None was seen; or it is a small part of what the disk moved; or requests do not wait for the disk.",
        looks_like: "A report that reads a table whole (its statement says so). Vacuum reads whole tables, too. A spike changes more rows, each request as many as ever; a restore has no requests.",
        fix: "At another time, from a replica, or slower: pg_basebackup --max-rate, rsync --bwlimit, ionice, smaller batches.",
        prove: "The same load without it: response time is that of the calm stretch.",
        references: "PostgreSQL documentation: Base Backup Progress Reporting, COPY Progress Reporting, pg_basebackup (--max-rate), pg_dump; MySQL Reference Manual: mysqldump (SQL_NO_CACHE in its statements), LOAD DATA.",
    },
    judge: Judge::Alone(judge),
};

/// Programs that copy whole files or databases.
const PROGRAMS: &[&str] = &[
    "tar",
    "rsync",
    "cp",
    "dd",
    "xtrabackup",
    "mariabackup",
    "mariadb-backup",
    "pg_basebackup",
    "pg_dump",
    "pg_restore",
    "pgbackrest",
    "barman",
    "wal-g",
    "mysqldump",
    "mariadb-dump",
    "mydumper",
    "myloader",
    "restic",
    "borg",
];

/// Beginnings of statements that copy tables, in capitals and without spaces around brackets.
const STATEMENTS: &[&str] =
    &["COPY ", "LOAD DATA", "SELECT /*!40001 SQL_NO_CACHE */", "SELECT SQL_NO_CACHE", "BACKUP "];

/// What is there for a smaller share (0-1) of the time than this holds up nobody for long.
const RUNS: f64 = 0.1;

/// What has to be known of threads.
const THREADS: &[&str] = &["observed_at", "source", "process", "state"];

/// Bytes that a process had read from disks and written to them (/proc/PID/io).
const IO: &str = "process_disk_io_bytes_total";

const WAITED: &str = "of those who waited for the disk";

/// Something that copies.
struct Copying {
    /// Who or what, e.g. `pg_basebackup`, `COPY public.article`.
    name: String,
    /// Share (0-1) of the instants at which it was seen.
    seen_ratio: f64,
    /// Its share (0-1) of what the disk moved, where its bytes are known; with those, a second.
    bytes_per_second: Option<f64>,
    /// Its share (0-1) of those who wait for the disk, or where the server does not tell who does of those at work; where that is all
    /// that is known, with whose.
    waits_share: Option<(f64, &'static str)>,
    /// Whether it is a program beside the database.
    is_program: bool,
    evidence: Evidence,
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    or_by_disk(case, from_records(case))
}

fn from_records(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let demanded = demand(case);
    let device = demanded.as_ref().ok().map(|demand| demand.flow.name.as_str());
    let mut all = copying(&view, device);
    let was_looked_at = !view.sources_of("postgresql_activity_sessions").is_empty()
        || view.session_instants() > 0 && !view.sources_of("system_threads").is_empty();
    let are_threads_told = view.recording.tables.threads.with_columns(THREADS).is_ok();
    if all.is_empty() && !(was_looked_at && are_threads_told) {
        let enable = "--watch host and the database (mysql:// or postgresql://)";
        return Err(Missing::new("who else was at work: sessions and the threads of the host", enable));
    }
    let demand = demanded?;
    let share =
        |of: &Copying| of.bytes_per_second.map_or(of.waits_share.map_or(0.0, |(share, _)| share), |b| demand.share(b));
    all.retain(|of| of.seen_ratio >= RUNS);
    all.sort_by(|a, b| share(b).total_cmp(&share(a)));
    let Some(most) = all.first() else {
        let slow = view.window;
        let text = "no backup, dump or bulk load was seen while requests were slow".to_owned();
        let unit = holdup_signals::throttle::Unit::Bytes;
        let none = demand.flow.evidence(unit, slow, "none".into(), "one, if it were the cause".into(), text);
        return Ok(Outcome::Cleared(vec![none]));
    };
    let waited = demand.waited_ms(case)?;
    let explains_ms = waited * share(most);
    let how = match most.bytes_per_second {
        Some(b) => format!("{}/s: {}", bytes(b), share_text(&demand, share(most))),
        None => format!("{} {}", percent(share(most)), most.waits_share.map_or("of the disk", |(_, whose)| whose)),
    };
    let text = format!(
        "{} was at work in {} of the samples, {how}; a request waits {} for {}",
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
        // A few threads that read much at a time wait as rarely as a few that read little.
        let what = format!("how much {} reads: what the service's own processes do of it", most.name);
        return Err(Missing::new(what, "--watch host, and pid:N for the app and the database"));
    }
    if share(most) < MATTERS || case.share_inside(waited) < MATTERS {
        return Ok(Outcome::Cleared(vec![told]));
    }
    // What was at work in the same way when all was well is no reason.
    let before = case.calm().map(|calm| copying(&calm, Some(&demand.flow.name))).unwrap_or_default();
    let usual = before.iter().find(|b| b.name == most.name).map_or(0.0, |b| b.seen_ratio);
    if usual >= 0.8 * most.seen_ratio {
        let text = format!("{} was at work as much when requests were quick", most.name);
        return Ok(Outcome::Cleared(vec![told.saying("", text)]));
    }
    Ok(Outcome::Found(Found {
        explains_ms,
        evidence: vec![told],
        weights: vec![0.8, if most.bytes_per_second.is_some() { 0.7 } else { 0.4 }],
        fixes: vec![Fix {
            text: format!(
                "Let {} run at another time or from a replica, or slower: pg_basebackup --max-rate=…, rsync --bwlimit=…, ionice -c3, smaller batches.",
                most.name
            ),
            command: None,
            keep: None,
            risk: Some(
                "A slower backup takes longer, and holds what it holds (a snapshot, log files) for as long.".to_owned(),
            ),
        }],
        prove: format!("The same load without {}: response time is that of the calm stretch.", most.name),
        role: Role::Root,
    }))
}

/// Everything that copies, as far as it was seen.
fn copying(view: &View<'_>, device: Option<&str>) -> Vec<Copying> {
    let mut all = progress(view);
    all.extend(statements(view));
    all.extend(processes(view, device));
    all
}

/// PostgreSQL's own progress: bytes streamed by base backups, bytes processed by COPY.
fn progress(view: &View<'_>) -> Vec<Copying> {
    const VIEWS: [(&str, &str, &str); 2] = [
        ("a base backup", "postgresql_progress_basebackup_backup_streamed", ""),
        ("COPY", "postgresql_progress_copy_bytes_processed", "table"),
    ];
    let instants = activity_instants(view);
    let mut found = Vec::new();
    for (name, metric, label) in VIEWS {
        // A process by its number: the phase is a label, so one copy is several series.
        let mut runs: BTreeMap<(String, String), BTreeMap<i64, f64>> = BTreeMap::new();
        for ((_, labels), series) in view.index.series(metric, &[]) {
            let key = |name: &str| labels.get(name).unwrap_or_default().to_owned();
            let run = runs.entry((key("pid"), key(label))).or_default();
            run.extend(series.iter().filter(|(at, _)| view.window.contains(*at)).copied());
        }
        for ((_, table), run) in runs.into_iter().filter(|(_, run)| !run.is_empty()) {
            let values: Vec<f64> = run.values().copied().collect();
            let grew: f64 = values.windows(2).map(|pair| (pair[1] - pair[0]).max(0.0)).sum();
            let labels = Labels::of([("metric", metric)]);
            found.push(Copying {
                name: if table.is_empty() { name.to_owned() } else { format!("{name} of {table}") },
                seen_ratio: (run.len() as f64 / instants.max(1) as f64).min(1.0),
                bytes_per_second: Some(grew / view.window.seconds().max(1e-9)),
                waits_share: None,
                is_program: false,
                evidence: Evidence::new("samples", "value", labels, view.window, "", "", ""),
            });
        }
    }
    found
}

fn activity_instants(view: &View<'_>) -> usize {
    let series = view.index.series("postgresql_activity_sessions", &[]).flat_map(|(_, series)| series);
    let all: BTreeSet<i64> = series.map(|(at, _)| *at).filter(|at| view.window.contains(*at)).collect();
    if all.is_empty() { view.session_instants() } else { all.len() }
}

/// Sessions that copy tables, by their statement; their share of those that waited for the disk at the same instants, or of those
/// at work where the server does not say what for.
fn statements(view: &View<'_>) -> Vec<Copying> {
    let rows = view.sessions(&["observed_at", "source", "true_state", "state", "digest_text"]).unwrap_or_default();
    let instants = view.session_instants().max(1) as f64;
    // Of those with this statement: at how many instants, and how many of `all`.
    let mut found: BTreeMap<&str, (BTreeSet<i64>, f64)> = BTreeMap::new();
    let executing = || rows.iter().filter(|row| row.true_state == "executing");
    // PostgreSQL says of each what it waits for.
    let tells = executing().next().is_some() && executing().all(|row| row.source.starts_with("postgresql"));
    let mut all = 0.0;
    for row in executing() {
        let waits = matches!(at(row.state.as_deref().unwrap_or_default()), At::Disk | At::Behind);
        let counts = f64::from(u8::from(!tells || waits));
        all += counts;
        let text = row.digest_text.as_deref().unwrap_or_default();
        let begins = |word: &&str| text.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word));
        if STATEMENTS.iter().any(begins) {
            let of = found.entry(text).or_default();
            of.0.insert(row.observed_at);
            of.1 += counts;
        }
    }
    let whose = if tells { WAITED } else { "of the sessions at work" };
    let of = |(text, (seen, count)): (&str, (BTreeSet<i64>, f64))| {
        let labels = Labels::of([("true_state", "executing")]);
        let short: String = text.chars().take(60).collect();
        Copying {
            name: short,
            seen_ratio: (seen.len() as f64 / instants).min(1.0),
            bytes_per_second: None,
            waits_share: Some((count / f64::max(all, 1.0), whose)),
            is_program: false,
            evidence: Evidence::new("sessions", "digest_text", labels, view.window, "", "", ""),
        }
    };
    found.into_iter().map(of).collect()
}

/// Programs that copy: by their disk I/O where they are watched, else by their threads in uninterruptible sleep among all.
fn processes(view: &View<'_>, device: Option<&str>) -> Vec<Copying> {
    let mut found = Vec::new();
    for process in view.processes_with(IO).into_iter().filter(|p| PROGRAMS.contains(&p.name)) {
        let Ok(done) = view.counter_where(|s| s == process.source, IO, &[], "") else { continue };
        found.push(Copying {
            name: process.name.to_owned(),
            seen_ratio: (done.seconds / view.window.seconds().max(1e-9)).min(1.0),
            bytes_per_second: Some(done.rate()),
            waits_share: None,
            is_program: true,
            evidence: done.evidence("", "", ""),
        });
    }
    let rows = view.recording.tables.threads.with_columns(THREADS).unwrap_or_default();
    let mut asleep = 0.0;
    let mut by_program: BTreeMap<&str, (f64, BTreeSet<i64>)> = BTreeMap::new();
    let mut instants = BTreeSet::new();
    for row in rows.iter().filter(|r| r.state == "D" && view.window.contains(r.observed_at)) {
        asleep += row.count() as f64;
        instants.insert(row.observed_at);
        if PROGRAMS.contains(&row.process.as_str()) && !found.iter().any(|f| f.name == row.process) {
            let of = by_program.entry(&row.process).or_default();
            of.0 += row.count() as f64;
            of.1.insert(row.observed_at);
        }
    }
    let unwatched = device.and_then(|device| unwatched_reads(view, device));
    for (program, (count, seen)) in by_program {
        let labels = Labels::of([("state", "D"), ("process", program)]);
        found.push(Copying {
            name: program.to_owned(),
            seen_ratio: seen.len() as f64 / instants.len().max(1) as f64,
            bytes_per_second: unwatched.as_ref().map(|reads| reads.bytes_per_second * count / reads.asleep.max(count)),
            waits_share: Some((count / f64::max(asleep, 1.0), WAITED)),
            is_program: true,
            evidence: Evidence::new("threads", "process", labels, view.window, "", "", ""),
        });
    }
    found
}

/// What was read by processes that nobody watches.
struct Unwatched {
    /// Bytes a second that the disk read beyond what the watched processes did, on all disks: a read is charged to the process that
    /// asks for it, so others asked for the rest.
    bytes_per_second: f64,
    /// Their threads in uninterruptible sleep, over all samples: whose reads those are, in proportion.
    asleep: f64,
}

/// None where no process that reads is watched, or the disk was not: then nothing says what is the service's.
fn unwatched_reads(view: &View<'_>, device: &str) -> Option<Unwatched> {
    const READ: [(&str, &str); 1] = [("direction", "read")];
    let watched = view.processes_with(IO);
    let own = watched.iter().filter_map(|p| view.counter_where(|s| s == p.source, IO, &READ, "").ok());
    let own = own.map(|read| read.rate()).reduce(|sum, rate| sum + rate)?;
    let disks = view.disks().ok()?;
    let disk = disks.named(device)?;
    let all = disk.read.bytes / disk.seconds.max(1e-9);
    let rows = view.recording.tables.threads.with_columns(THREADS).ok()?;
    let is_others = |process: &str| watched.iter().all(|p| p.name != process);
    let asleep = rows.iter().filter(|r| r.state == "D" && r.source == "host" && view.window.contains(r.observed_at));
    let asleep = asleep.filter(|r| is_others(&r.process)).map(|r| r.count()).sum::<u64>() as f64;
    (asleep > 0.0).then(|| Unwatched { bytes_per_second: (all - own).max(0.0), asleep })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, Made};

    const DB: &str = "postgresql://db";
    const READ: &str = "io_schedule < __iomap_dio_rw < vfs_read";

    /// 100 requests a second of 400 ms that wait for a disk of 10 MB/s.
    fn disk() -> Made {
        Made::new(30)
            .requests(100, 400)
            .asleep(40, "io_schedule", READ, None)
            .disk("vda", (60.0, 100e3, 100.0), (40.0, 100e3, 100.0))
            .gauge(DB, "postgresql_activity_sessions", &[("backend_type", "client backend")], 40.0)
    }

    fn backup(made: Made, bytes: f64) -> Made {
        let labels = [("pid", "44"), ("phase", "streaming database files")];
        made.counter(DB, "postgresql_progress_basebackup_backup_streamed", &labels, bytes)
    }

    #[test]
    fn a_base_backup_is_told_by_what_it_streams() {
        let made = backup(disk(), 6e6);
        assert!((made.explains(&RULE).unwrap() - 0.6 * 400.0).abs() < 15.0);
        let Ok(Outcome::Found(found)) = made.judge(&RULE) else { panic!("not found") };
        assert!(found.evidence[0].text.contains("a base backup was at work in 100 %"), "{:?}", found.evidence);
        assert_eq!(made.diagnose().culprit.as_deref(), Some(RULE.cause));
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
        assert!((tar.explains(&RULE).unwrap() - 200.0).abs() < 10.0);
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
        assert_eq!(from_memory.explains(&RULE), Some(0.0), "it reads nothing of the disk");
        let dumped = tar.session_rows(rows().collect());
        assert!((dumped.explains(&RULE).unwrap() - 200.0).abs() < 10.0, "{:?}", dumped.explains(&RULE));
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
            made.counter("pid:7", IO, &[("direction", "read")], own)
        };
        assert!(
            (made(0.6e6).explains(&RULE).unwrap() - 0.54 * 400.0).abs() < 15.0,
            "{:?}",
            made(0.6e6).explains(&RULE)
        );
        assert_eq!(made(6e6).explains(&RULE), Some(0.0), "the service reads all of it");
        assert_eq!(disk().threads((0..=30).map(dd).collect()).explains(&RULE), None, "nobody says who reads");
    }

    #[test]
    fn nobody_and_a_small_one_clear_it() {
        assert_eq!(disk().explains(&RULE), Some(0.0));
        assert_eq!(backup(disk(), 0.4e6).explains(&RULE), Some(0.0));
    }

    #[test]
    fn without_a_fact_it_is_not_judged() {
        assert_eq!(disk().without("postgresql_activity_sessions").explains(&RULE), None);
        assert_eq!(backup(disk(), 6e6).without("system_disk_io_bytes_total").explains(&RULE), None);
    }
}
