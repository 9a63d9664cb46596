//! `holdup import diagnostic.data/`: turns what a mongod keeps of itself into a recording of its
//! figures and its machine's, once a second. Files are read one after the other, as streams.

use std::io::Read as _;
use std::path::Path;

use holdup_import::ftdc::{Account, Ftdc, SOURCE};
use holdup_recording::manifest::{Host, Manifest, RunState};
use holdup_recording::writer::Recorder;
use holdup_recording::{Batch, Coverage, CoverageState, clock, words};

use super::pace::Pace;
use super::{InputFile, Report, guard};
use crate::failure::Failure;
use crate::session::default_dir;

/// Rows that may wait to be written: above this, reading waits for writing.
const ROWS_WAITING: usize = 400_000;

/// Broken places that are named; the others are counted.
const NAMED: usize = 5;

pub(super) use holdup_import::ftdc::is_one;

/// Whether a file is one of `diagnostic.data` by its name: `metrics.interim` is empty at times, and
/// the beginning of a file may be damaged.
pub(super) fn is_named(name: &str) -> bool {
    name.rsplit('/').next().is_some_and(|own| own.starts_with("metrics."))
}

/// The arguments of an import.
pub(super) struct ImportRequest<'a> {
    pub files: Vec<InputFile>,
    pub dir: Option<&'a Path>,
}

/// Reads the files of one server into a recording, and reports what they contain.
pub(super) fn import(given: ImportRequest<'_>) -> Result<Report, Failure> {
    let names: Vec<String> = given.files.iter().map(|file| file.name.clone()).collect();
    let dir = given.dir.map_or_else(|| default_dir("diagnostic-data"), Path::to_owned);
    let mut writer = Writer { dir: &dir, recorder: None, pace: Pace::new("samples", ROWS_WAITING), failure: None };
    let mut ftdc = Ftdc::default();
    for file in given.files {
        let InputFile { name, shown, head, rest, .. } = file;
        let read = guard::reading(&shown, || {
            let read = ftdc.read(&name, head.as_slice().chain(rest), &mut |batch| writer.put(batch));
            read.map_err(|error| Failure::Unusable(format!("{shown}: {error}")))
        });
        if let Err(failure) = read {
            return Err(writer.end_early(failure, ftdc.finish().chunks));
        }
        if let Some(failure) = writer.failure.take() {
            return Err(failure);
        }
    }
    let account = ftdc.finish();
    let Some((from, to)) = account.span.filter(|_| account.samples > 0) else {
        let why = account.broken.first().map_or("no samples in it", String::as_str);
        return Err(Failure::Unusable(format!("{}: {why}", names.join(", "))));
    };
    writer.finish(&names, &account, (from, to))?;
    let next = vec![format!("next: holdup diagnose {}", dir.display())];
    let (text, json) = (text(&names, &account, (from, to), &dir), json(&names, &account, (from, to), &dir));
    Ok(Report { text, json, next, failed: None, segments: None })
}

/// Writes rows as they come.
struct Writer<'a> {
    dir: &'a Path,
    recorder: Option<Recorder>,
    pace: Pace,
    /// Why the recorder could not be made.
    failure: Option<Failure>,
}

impl Writer<'_> {
    fn put(&mut self, batch: Batch) {
        if self.failure.is_some() || batch.is_empty() {
            return;
        }
        if self.recorder.is_none() {
            let at = batch.samples.first().map_or_else(clock::now_ns, |sample| sample.observed_at);
            match Recorder::create(self.dir, &Manifest::starting("diagnostic.data", at, Host::default())) {
                Ok(recorder) => self.recorder = Some(recorder),
                Err(error) => {
                    self.failure = Some(Failure::unusable(error));
                    return;
                }
            }
        }
        if let Some(recorder) = &self.recorder {
            self.pace.push(&recorder.sink(), batch, self.dir);
        }
    }

    /// Ends it with the rows so far, if there are any.
    fn end_early(mut self, failure: Failure, chunks: u64) -> Failure {
        let Some(recorder) = self.recorder.take() else { return failure };
        let manifest = Manifest::starting("diagnostic.data", clock::now_ns(), Host::default());
        let broken = guard::failed(SOURCE, &failure, chunks);
        guard::end_early(recorder, manifest, broken, failure, self.dir)
    }

    fn finish(mut self, names: &[String], account: &Account, (from, to): (i64, i64)) -> Result<(), Failure> {
        let Some(recorder) = self.recorder.take() else {
            return Err(Failure::Unusable(format!("{}: no samples in it", names.join(", "))));
        };
        let mut manifest = Manifest::starting("diagnostic.data", from, Host::default());
        manifest.coverage = vec![coverage(account)];
        let folder = recorder.folder();
        let mut manifest = recorder.finish(manifest, RunState::Complete).map_err(Failure::unusable)?;
        // The recording ends with the last sample, not now.
        manifest.ended_at = Some(to);
        manifest.write(&folder.place()).map_err(|e| Failure::Unusable(format!("{}: {e}", self.dir.display())))
    }
}

fn coverage(account: &Account) -> Coverage {
    let why = losses(account);
    Coverage {
        source: SOURCE.to_owned(),
        state: if why.is_empty() { CoverageState::Complete } else { CoverageState::Partial },
        why: (!why.is_empty()).then(|| why.join("; ")),
        enable: None,
        cpu_ratio: None,
        reads_total: account.samples,
        gaps_total: account.broken_total,
    }
}

/// What could not be read.
fn losses(account: &Account) -> Vec<String> {
    let mut found: Vec<String> = account.broken.iter().take(NAMED).cloned().collect();
    if account.broken_total > found.len() as u64 {
        found.push(format!("holdup could not read {} in all", counted(account.broken_total, "piece")));
    }
    if account.unknown > 0 {
        found.push(format!("holdup left out {} of a newer kind", counted(account.unknown, "document")));
    }
    found
}

/// A count and its noun.
fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", words::count(count), if count == 1 { "" } else { "s" })
}

fn text(names: &[String], account: &Account, (from, to): (i64, i64), dir: &Path) -> String {
    let mut text = format!(
        "{} in {} of {} from {} to {} -> {}\n",
        counted(account.samples, "sample"),
        counted(account.chunks, "chunk"),
        counted(names.len() as u64, "file"),
        clock::rfc3339(from),
        clock::rfc3339(to),
        dir.display()
    );
    if account.repeated > 0 {
        let repeated = counted(account.repeated, "sample");
        text += &format!("note: {repeated} of metrics.interim stood in another file as well, and count once\n");
    }
    for loss in losses(account) {
        text += &format!("note: {loss}\n");
    }
    text
}

fn json(names: &[String], account: &Account, (from, to): (i64, i64), dir: &Path) -> serde_json::Value {
    serde_json::json!({
        "recording": dir.display().to_string(),
        "files": names,
        "chunks": account.chunks,
        "samples": account.samples,
        "repeated_samples": account.repeated,
        "from": clock::rfc3339(from),
        "to": clock::rfc3339(to),
        "losses": losses(account),
    })
}
