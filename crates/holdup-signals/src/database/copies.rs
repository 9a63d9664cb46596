//! Copying: backups, dumps and bulk loads, from a server's progress reports, from sessions, and
//! from programs beside the server.

use std::collections::{BTreeMap, BTreeSet};

use crate::database::server_waits::{SessionWait, at};
use crate::{Evidence, View};
use holdup_recording::{Labels, metrics};

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

/// Prefixes of statements that copy tables, in capitals and without spaces around brackets.
const STATEMENTS: &[&str] = &[
    "COPY ",
    "LOAD DATA",
    "SELECT /*!40001 SQL_NO_CACHE */",
    "SELECT SQL_NO_CACHE",
    "BACKUP ",
    // Rebuilding a table copies it.
    "ALTER TABLE ",
    "OPTIMIZE TABLE ",
    "VACUUM FULL",
    "VACUUM (FULL",
    "CLUSTER ",
    "REINDEX ",
    // Building an index reads all of its table.
    "CREATE INDEX ",
    "CREATE UNIQUE INDEX ",
    "REFRESH MATERIALIZED VIEW ",
];

/// Whether a statement copies a table.
pub fn is_copy(text: &str) -> bool {
    let begins = |word: &&str| text.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word));
    STATEMENTS.iter().any(begins)
}

const WAITED: &str = "of the sessions that waited for the disk";

/// Columns needed of threads.
pub const THREADS: &[&str] = &["observed_at", "source", "process", "state"];

/// Bytes that a process had read from disks and written to them (/proc/PID/io).
const IO: &str = metrics::process::DISK_IO_BYTES.name;

/// Something that copies.
pub struct Copying {
    /// Its name, e.g. `pg_basebackup`, `COPY public.article`.
    pub name: String,
    /// Share (0-1) of the instants at which it was seen.
    pub seen_ratio: f64,
    /// Bytes per second that it moved, if known.
    pub bytes_per_second: Option<f64>,
    /// Its share (0-1) of the threads or sessions that wait for the disk, or if the server does not
    /// report waits, of the active sessions. With the words for that group; only if nothing better
    /// is known.
    pub waits_share: Option<(f64, &'static str)>,
    /// Whether it is a program beside the database. If it is not watched, its bytes are those that
    /// the watched processes did not read.
    pub is_program: bool,
    /// Its evidence.
    pub evidence: Evidence,
}

/// Everything that copies, as far as seen.
pub fn copying(view: &View<'_>, device: Option<&str>) -> Vec<Copying> {
    let mut all = progress(view);
    all.extend(statements(view));
    all.extend(processes(view, device));
    all
}

/// PostgreSQL's own progress: bytes streamed by base backups, bytes processed by COPY.
fn progress(view: &View<'_>) -> Vec<Copying> {
    const VIEWS: [(&str, &str, &str); 2] = [
        ("a base backup", metrics::postgresql::PROGRESS_BASEBACKUP_BACKUP_STREAMED.name, ""),
        ("COPY", metrics::postgresql::PROGRESS_COPY_BYTES_PROCESSED.name, "table"),
    ];
    let instants = activity_instants(view);
    let mut found = Vec::new();
    for (name, metric, label) in VIEWS {
        // A process is known by its number: the phase is a label, so one copy is several series.
        let mut runs: BTreeMap<(String, String), BTreeMap<i64, f64>> = BTreeMap::new();
        for ((_, labels), series) in view.index.series(metric, &[]) {
            let key = |name: &str| labels.get(name).unwrap_or_default().to_owned();
            let run = runs.entry((key("pid"), key(label))).or_default();
            run.extend(series.iter().filter(|(at, _)| view.window.contains(*at)).copied());
        }
        for ((_, table), run) in runs.into_iter().filter(|(_, run)| !run.is_empty()) {
            let values: Vec<f64> = run.values().copied().collect();
            let grew: f64 = values.windows(2).map(|pair| (pair[1] - pair[0]).max(0.0)).sum();
            let labels = Labels::new([("metric", metric)]);
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
    let series = view.index.series(metrics::postgresql::ACTIVITY_SESSIONS.name, &[]).flat_map(|(_, series)| series);
    let all: BTreeSet<i64> = series.map(|(at, _)| *at).filter(|at| view.window.contains(*at)).collect();
    if all.is_empty() { view.session_instants() } else { all.len() }
}

/// Sessions that copy tables, by their statement; their share of the sessions that waited for the
/// disk at the same instants, or of the active ones if the server does not report waits.
fn statements(view: &View<'_>) -> Vec<Copying> {
    let rows = view.sessions(&["observed_at", "source", "true_state", "state", "digest_text"]).unwrap_or_default();
    let instants = view.session_instants().max(1) as f64;
    // For each statement: the instants at which it ran, and its count among `all`.
    let mut found: BTreeMap<&str, (BTreeSet<i64>, f64)> = BTreeMap::new();
    let executing = || rows.iter().filter(|row| row.true_state == "executing");
    // PostgreSQL reports what each session waits for.
    let tells = executing().next().is_some() && executing().all(|row| row.source.starts_with("postgresql"));
    let mut all = 0.0;
    for row in executing() {
        let waits = matches!(at(row.state.as_deref().unwrap_or_default()), SessionWait::Disk | SessionWait::Behind);
        let counts = f64::from(u8::from(!tells || waits));
        all += counts;
        let text = row.digest_text.as_deref().unwrap_or_default();
        if is_copy(text) {
            let of = found.entry(text).or_default();
            of.0.insert(row.observed_at);
            of.1 += counts;
        }
    }
    let whose = if tells { WAITED } else { "of the active sessions" };
    let of = |(text, (seen, count)): (&str, (BTreeSet<i64>, f64))| {
        let labels = Labels::new([("true_state", "executing")]);
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

/// Programs that copy: by their disk I/O if they are watched, else by their threads among all in
/// uninterruptible sleep.
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
        let labels = Labels::new([("state", "D"), ("process", program)]);
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

/// Reads of unwatched processes.
struct Unwatched {
    /// Bytes per second that the disk read beyond the watched processes' reads, over all disks. A
    /// read is charged to the process that requests it, so others requested the rest.
    bytes_per_second: f64,
    /// Their threads in uninterruptible sleep, over all samples: those reads are divided in
    /// proportion.
    asleep: f64,
}

/// None if no process that reads is watched, or the disk was not: the service's part is then
/// unknown.
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
