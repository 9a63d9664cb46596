//! A recording that has just been made, and how making it ended.

use std::path::Path;
use std::sync::Arc;

use holdup_recording::folder::Folder;
use holdup_recording::writer::SOURCE;
use holdup_recording::{Coverage, CoverageState, Manifest, Recorder, Recording, RunState};

use crate::failure::Failure;
use crate::progress::Progress;
use crate::replay::PlayedFacts;
use crate::storing::Storing;

/// A recording that has just been made.
pub struct Recorded {
    /// The recording, as it is on disk.
    pub recording: Recording,
    /// Its directory, for further files.
    pub folder: Arc<Folder>,
    /// Whether it was stopped early.
    pub interrupted: bool,
    /// The reason the recording was cut off, e.g. a full disk.
    pub trouble: Option<String>,
    /// The failure that ended the load, as the scenario demands.
    pub failed: Option<String>,
    /// The outcome of a replay, if the load was one.
    pub played: Option<PlayedFacts>,
    /// The store that it goes to.
    pub storing: Option<Storing>,
}

impl Recorded {
    /// Sends the rest of it to its store, if it has one, and says how that ended.
    pub fn store_rest(&mut self, progress: &mut Progress) {
        if let Some(storing) = self.storing.take() {
            let rows = self.recording.manifest.tables.values().sum();
            storing.finish(rows, progress);
        }
    }

    /// # Errors
    /// If something other than the user cut the recording off, or reading a source broke down. The
    /// earlier part is kept.
    pub fn whole(&self) -> Result<(), Failure> {
        let Some(trouble) = &self.trouble else { return unbroken(&self.recording.manifest) };
        Err(Failure::Unusable(format!(
            "the recording was cut off: {trouble}; the part in {} is kept, and a verdict covers only that",
            self.recording.dir.display()
        )))
    }
}

/// Ends a recording of other tools' figures, which ends with them at `ended_at`, and not now.
///
/// # Errors
/// If the rows or the manifest cannot be written, or a row was lost.
pub fn end_at(
    recorder: Recorder,
    manifest: Manifest,
    state: RunState,
    ended_at: Option<i64>,
    dir: &Path,
) -> Result<(), Failure> {
    let folder = recorder.folder();
    let mut manifest = Manifest { ended_at, ..recorder.finish(manifest, state).map_err(Failure::unusable)? };
    let of_recording = |part: &&Coverage| part.source == SOURCE && part.state == CoverageState::Failed;
    let lost = manifest.coverage.iter().find(of_recording).and_then(|part| part.why.clone());
    if lost.is_some() {
        manifest.state = RunState::Interrupted;
    }
    manifest.write(&folder.place()).map_err(|e| Failure::Unusable(format!("{}: {e}", dir.display())))?;
    lost.map_or(Ok(()), |why| Err(Failure::Unusable(format!("{}: incomplete: {why}", dir.display()))))
}

/// The coverage of a source that was read from a file: complete unless it `lacks` something.
pub fn coverage(source: &str, lacks: &[String], reads_total: u64, gaps_total: u64) -> Coverage {
    Coverage {
        source: source.to_owned(),
        state: if lacks.is_empty() { CoverageState::Complete } else { CoverageState::Partial },
        why: (!lacks.is_empty()).then(|| lacks.join("; ")),
        enable: None,
        cpu_ratio: None,
        reads_total,
        gaps_total,
    }
}

/// Checks that every source was read to the end.
fn unbroken(manifest: &Manifest) -> Result<(), Failure> {
    let failed = manifest.coverage.iter().filter(|part| part.state == CoverageState::Failed);
    let failed: Vec<String> =
        failed.map(|part| format!("{}: {}", part.source, part.why.as_deref().unwrap_or("it failed"))).collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::Unusable(format!("{}; the other sources are complete", failed.join("; "))))
}

#[cfg(test)]
mod tests {
    use holdup_recording::manifest::Host;
    use holdup_recording::rows::Sample;
    use holdup_recording::{Batch, Coverage};

    use super::*;

    #[test]
    fn a_source_that_failed_is_in_the_exit_code() {
        let mut manifest = Manifest::starting("x", 0, Host::default());
        manifest.coverage = ["host", "otlp"].map(|source| Coverage::with_parts(source, vec![]).remove(0)).into();
        assert!(unbroken(&manifest).is_ok());
        (manifest.coverage[1].state, manifest.coverage[1].why) =
            (CoverageState::Failed, Some("it panicked".to_owned()));
        let Err(Failure::Unusable(said)) = unbroken(&manifest) else { panic!("exit code 2") };
        assert!(said.starts_with("otlp: it panicked; "), "{said}");
    }

    #[test]
    fn rows_that_an_import_lost_are_in_the_exit_code() {
        let place = tempfile::tempdir().unwrap();
        let (dir, away) = (place.path().join("r"), place.path().join("away"));
        let manifest = Manifest::starting("x", 0, Host::default());
        let recorder = Recorder::create(&dir, &manifest).unwrap();
        std::fs::rename(dir.join("segments"), &away).unwrap();
        let rows = vec![Sample { source: "host".into(), ..Sample::default() }; 100_000];
        (0..5).for_each(|_| recorder.sink().push(Batch { samples: rows.clone(), ..Batch::default() }));
        std::fs::rename(&away, dir.join("segments")).unwrap();
        let Err(Failure::Unusable(said)) = end_at(recorder, manifest, RunState::Complete, Some(1), &dir) else {
            panic!("exit code 2")
        };
        assert!(said.contains("incomplete") && said.contains("rows were lost"), "{said}");
        let read = Recording::open(&dir).unwrap();
        assert_eq!((read.manifest.state, read.manifest.ended_at), (RunState::Interrupted, Some(1)));
    }
}
