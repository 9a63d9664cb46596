//! Keeps the results of `holdup digest` runs as recordings in a folder, one per run: a review
//! history without a server. The table `statements` has each statement's counters twice: zeros when
//! it was first seen, and its totals when it was last seen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use holdup_logs::digest::history::EarlierCalls;
use holdup_logs::digest::report::{Query, Report};
use holdup_logs::digest::time::date_time;
use holdup_recording::Batch;
use holdup_recording::manifest::{Host, MANIFEST};
use holdup_recording::rows::Statement;
use holdup_recording::{Manifest, Recorder, Recording, RunState};

use crate::failure::Failure;
use crate::recorded::{coverage, end_at};

/// Kind of the rows: cumulative counters.
const KIND: &str = "digest_total";

/// Earlier runs.
pub struct History {
    dir: PathBuf,
    /// Whether this run is stored, too: not if a single recording was named.
    keeps: bool,
    known: BTreeMap<String, EarlierCalls>,
    runs: u64,
    last: Vec<String>,
}

impl History {
    /// Reads the runs in `dir`, or `dir` itself if it is a run. A missing folder has no runs.
    ///
    /// # Errors
    /// If a run cannot be read.
    pub fn open(dir: &Path) -> Result<Self, Failure> {
        let is_one = dir.join(MANIFEST).exists();
        let mut paths = if is_one { vec![dir.to_owned()] } else { Vec::new() };
        if !is_one && dir.exists() {
            let entries = dir.read_dir().map_err(|e| Failure::Unusable(format!("{}: {e}", dir.display())))?;
            paths.extend(entries.filter_map(Result::ok).map(|entry| entry.path()));
            paths.retain(|path| path.join(MANIFEST).exists());
            paths.sort();
        }
        let mut history =
            Self { dir: dir.to_owned(), keeps: !is_one, known: BTreeMap::new(), runs: 0, last: Vec::new() };
        for path in paths {
            history.add(&Recording::open(&path).map_err(Failure::unusable)?);
        }
        Ok(history)
    }

    fn add(&mut self, recording: &Recording) {
        let mut run: BTreeMap<&str, EarlierCalls> = BTreeMap::new();
        for row in &recording.tables.statements.rows {
            let known = run.entry(row.digest.as_str()).or_default();
            let at_us = row.observed_at / 1_000;
            known.seen_us =
                Some(known.seen_us.map_or((at_us, at_us), |(first, last)| (first.min(at_us), last.max(at_us))));
            let (calls, total_us) =
                (u64::try_from(row.calls).unwrap_or(0), u128::try_from(row.duration_ns / 1_000).unwrap_or(0));
            if row.kind == KIND {
                // Counters only grow.
                (known.calls, known.total_us) = (known.calls.max(calls), known.total_us.max(total_us));
            } else {
                (known.calls, known.total_us) = (known.calls + calls, known.total_us + total_us);
            }
        }
        self.runs += 1;
        self.last = run.keys().map(|id| (*id).to_owned()).collect();
        for (id, one) in run {
            let all = self.known.entry(id.to_owned()).or_default();
            all.runs += 1;
            all.calls += one.calls;
            all.total_us += one.total_us;
            all.seen_us = match (all.seen_us, one.seen_us) {
                (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
                (a, b) => a.or(b),
            };
        }
    }

    /// Adds to `report`, which lists all statements, what earlier runs knew of them; then stores
    /// this run.
    ///
    /// # Errors
    /// If the run cannot be written.
    pub fn compare(&self, report: &mut Report) -> Result<(), Failure> {
        report.compare(&self.known, self.runs, &self.last);
        if self.keeps && !report.queries.is_empty() { self.keep(report) } else { Ok(()) }
    }

    fn keep(&self, report: &Report) -> Result<(), Failure> {
        let now = holdup_recording::clock::now_ns();
        let at = |text: &Option<String>| {
            let known = text.as_deref().and_then(|text| date_time(text.as_bytes()));
            known.map_or(now, |(at_us, _)| at_us.saturating_mul(1_000))
        };
        let name = report.files.first().map_or("digest", |file| file.path.rsplit('/').next().unwrap_or("digest"));
        let source = format!("log:{name}");
        let (first, last) = (at(&report.first_seen), at(&report.last_seen));
        let mut rows = Vec::with_capacity(2 * report.queries.len());
        for query in &report.queries {
            rows.push(row(query, &source, at(&query.first_seen), false));
            rows.push(row(query, &source, at(&query.last_seen), true));
        }
        let problems: Vec<String> =
            report.problems.iter().map(|problem| format!("{} {}", problem.count, problem.what)).collect();
        let gaps_total = report.problems.iter().map(|problem| problem.count).sum();
        let coverage = vec![coverage(&source, &problems, report.events, gaps_total)];
        let manifest = Manifest { coverage, ..Manifest::starting(&source, first, Host::default()) };
        // Named by the time of the run, so that names sort in order of time.
        let dir = self.dir.join(format!("{now}"));
        let recorder = Recorder::create(&dir, &manifest).map_err(Failure::unusable)?;
        recorder.sink().push(Batch { statements: rows, ..Batch::default() });
        end_at(recorder, manifest, RunState::Complete, Some(last.max(first)), &dir)
    }
}

fn row(query: &Query, source: &str, observed_at: i64, is_end: bool) -> Statement {
    let whole = |value: u128| if is_end { i64::try_from(value).unwrap_or(i64::MAX) } else { 0 };
    let sum = |name: &str| whole(query.attributes.get(name).map_or(0, |figures| figures.sum));
    let yes = |name: &str| whole(query.flags.get(name).map_or(0, |flag| flag.yes.into()));
    Statement {
        observed_at,
        source: source.to_owned(),
        kind: KIND.to_owned(),
        session_id: None,
        digest: query.id.clone(),
        digest_text: query.fingerprint.clone(),
        database: query.databases.first().filter(|_| query.databases.len() == 1).map(|one| one.name.clone()),
        calls: whole(query.calls.into()),
        duration_ns: whole(query.total_us.saturating_mul(1_000)),
        lock_ns: sum("Lock_time").saturating_mul(1_000),
        rows_examined: sum("Rows_examined"),
        rows_sent: sum("Rows_sent"),
        errors: sum("Errors"),
        rows_affected: sum("Rows_affected"),
        no_index: yes("No_index_used").max(yes("Full_scan")),
        temporary_tables: sum("Tmp_tables"),
        temporary_disk_tables: sum("Tmp_disk_tables"),
        trace_id: None,
    }
}
