//! A recording that has just been made, and how making it ended.

use std::sync::Arc;

use holdup_recording::folder::Folder;
use holdup_recording::{CoverageState, Manifest, Recording};

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
    use holdup_recording::Coverage;
    use holdup_recording::manifest::Host;

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
}
