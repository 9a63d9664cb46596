//! A recording while it is made: what is new meanwhile, and how long it watches.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdup_collect::run::Running;
use holdup_recording::{Manifest, Recorder};

use crate::progress::Progress;

/// A recording that is being made.
pub struct Underway {
    /// Writes the rows.
    pub recorder: Recorder,
    /// Reads the sources.
    pub running: Running,
}

impl Underway {
    /// Shows what is new. The manifest on disk learns of sources that answer late: a recording that is
    /// cut off has their rows.
    pub fn show_news(&self, manifest: &mut Manifest, progress: &mut Progress) {
        self.recorder.notices().iter().for_each(|notice| progress.warn(notice));
        let news = self.running.news();
        news.iter().for_each(|text| progress.warn(text));
        if !news.is_empty() {
            manifest.coverage = self.running.coverage();
            if let Err(error) = manifest.write(&self.recorder.folder().place()) {
                progress.warn(&format!("the coverage is not in the manifest yet: {error}"));
            }
        }
    }

    /// Watches until the end. True if it was stopped early.
    pub fn wait(
        &self,
        length: Option<Duration>,
        manifest: &mut Manifest,
        progress: &mut Progress,
        stop: &AtomicBool,
    ) -> bool {
        let begun = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            self.show_news(manifest, progress);
            if self.recorder.is_full() || length.is_some_and(|l| begun.elapsed() >= l) {
                progress.end();
                return false;
            }
            progress.watching(begun.elapsed(), length);
            std::thread::sleep(Duration::from_millis(100));
        }
        progress.end();
        // Without a length, Ctrl-C is the normal end of watching.
        length.is_some()
    }
}
