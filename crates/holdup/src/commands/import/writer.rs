//! Writes the rows of a file into a recording while the file is read. The recording begins with the first rows and
//! ends with the file, not now.

use std::path::Path;

use holdup_recording::manifest::{Host, Manifest, Reported, RunState};
use holdup_recording::writer::Recorder;
use holdup_recording::{Batch, Coverage};

use super::guard;
use crate::failure::Failure;
use crate::recorded;

/// See the module.
pub(super) struct Writer<'d> {
    title: String,
    dir: &'d Path,
    recorder: Option<Recorder>,
    from: i64,
    is_reported: bool,
}

impl<'d> Writer<'d> {
    /// For a recording of this title in `dir`, which is not made yet.
    pub fn new(title: &str, dir: &'d Path) -> Self {
        Self { title: title.to_owned(), dir, recorder: None, from: 0, is_reported: false }
    }

    /// The same, of what a server measured by itself.
    pub fn reported(self) -> Self {
        Self { is_reported: true, ..self }
    }

    /// Whether the recording has been made.
    pub fn has_begun(&self) -> bool {
        self.recorder.is_some()
    }

    /// Makes the recording, if it is not there yet.
    ///
    /// # Errors
    /// If the directory cannot be used.
    pub fn begin(&mut self, from: i64) -> Result<&Recorder, Failure> {
        let recorder = match self.recorder.take() {
            Some(recorder) => recorder,
            None => {
                self.from = from;
                let manifest = Manifest::starting(&self.title, from, Host::default());
                Recorder::create(self.dir, &manifest).map_err(Failure::unusable)?
            }
        };
        Ok(self.recorder.insert(recorder))
    }

    /// Passes rows on as soon as there is room for them; the first ones begin the recording at `from`.
    ///
    /// # Errors
    /// Those of [`Self::begin`].
    pub fn put(&mut self, from: i64, batch: Batch) -> Result<(), Failure> {
        self.begin(from)?.sink().push(batch);
        Ok(())
    }

    /// Ends the recording, which runs from the first moment of `span` to the second.
    ///
    /// # Errors
    /// Without rows, or if they cannot be written.
    pub fn finish(self, span: (i64, Option<i64>), coverage: Vec<Coverage>) -> Result<(), Failure> {
        let Some(recorder) = self.recorder else {
            return Err(Failure::Unusable(format!("{}: no rows in it", self.title)));
        };
        // Who imports a server's own account says that something is wrong there.
        let reported = self.is_reported.then(Reported::default);
        let manifest = Manifest { coverage, reported, ..Manifest::starting(&self.title, span.0, Host::default()) };
        recorded::end_at(recorder, manifest, RunState::Complete, span.1, self.dir)
    }

    /// Ends the recording of a `source` that failed after `reads_total` reads, with the rows so far, if there are any.
    /// Returns the failure, with the place of what is kept. Neither the recording nor the exit code may pass it off as
    /// the whole: the source counts as failed and the recording as interrupted, as with a collector that panics.
    pub fn end_early(self, source: &str, failure: Failure, reads_total: u64) -> Failure {
        let Some(recorder) = self.recorder else { return failure };
        let coverage = vec![guard::failed(source, &failure, reads_total)];
        let manifest = Manifest { coverage, ..Manifest::starting(&self.title, self.from, Host::default()) };
        let kept = match recorder.finish(manifest, RunState::Interrupted) {
            Ok(_) => format!("{}{}", guard::KEPT, self.dir.display()),
            Err(why) => format!("; {why}"),
        };
        Failure::Unusable(format!("{failure}{kept}"))
    }
}
