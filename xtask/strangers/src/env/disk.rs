//! The disk under all servers: the labs' disk on FUSE, whose limits can be moved while it serves.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::process::{self, Guarded};
use super::running::Running;

/// What a small cloud volume does: the disk of draws with throttled storage.
pub const SMALL_VOLUME: Limits = Limits { megabytes: Some(24.0), operations: Some(1_500.0), latency_ms: None };

/// Limits of reads and writes together, and how long each takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Megabytes (10^6 bytes) per second.
    pub megabytes: Option<f64>,
    /// Operations per second.
    pub operations: Option<f64>,
    /// Milliseconds that each operation takes at least.
    pub latency_ms: Option<f64>,
}

impl Limits {
    /// As fast as the machine.
    pub const NONE: Self = Self { megabytes: None, operations: None, latency_ms: None };

    fn text(self) -> String {
        let line =
            |value: Option<f64>| value.map_or_else(|| "none".to_owned(), |value| format!("{:.0}", value.max(1.0)));
        let bytes = self.megabytes.map(|megabytes| megabytes * 1e6);
        let latency = self.latency_ms.map(|ms| ms * 1e3);
        format!("bytes_per_second: {}\niops: {}\nlatency_us: {}\n", line(bytes), line(self.operations), line(latency))
    }
}

/// A handle on the disk's limits, for faults.
#[derive(Clone, Debug)]
pub struct Disk {
    /// Where it is mounted.
    pub folder: PathBuf,
    file: PathBuf,
}

impl Disk {
    /// Puts limits in force.
    pub fn limit(&self, limits: Limits) -> Result<()> {
        // Put in place at once: the disk reads the file ten times a second.
        let new = self.file.with_extension("new");
        fs::write(&new, limits.text()).and_then(|()| fs::rename(&new, &self.file)).context("failed to limit the disk")
    }

    /// Puts limits in force until the fault ends.
    pub fn limit_until(&self, limits: Limits, before: Limits) -> Result<Running> {
        self.limit(limits)?;
        let disk = self.clone();
        Ok(Running::until(move || disk.limit(before)))
    }
}

/// The process that serves it.
pub struct Served {
    _process: Guarded,
    /// The handle.
    pub disk: Disk,
}

impl Served {
    /// Makes the disk in `dir` with the program `holdup`, which has to have the feature `labs`.
    pub fn start(holdup: &Path, dir: &Path) -> Result<Self> {
        let folder = dir.join("disk");
        let file = dir.join("disk.limits");
        let words = [
            holdup.display().to_string(),
            "disk".to_owned(),
            format!("--dir={}", folder.display()),
            "--size=3000M".to_owned(),
            format!("--limits={}", file.display()),
        ];
        let process = Guarded::start(dir, "disk", "TERM", &words, &[])?;
        let served = Self { _process: process, disk: Disk { folder: folder.join("mnt"), file } };
        let log = dir.join("disk.log");
        let is_ready = || fs::read_to_string(&log).is_ok_and(|text| text.starts_with("ready "));
        process::until("the throttled disk", Duration::from_secs(30), is_ready)
            .with_context(|| fs::read_to_string(&log).unwrap_or_default())?;
        Ok(served)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // What is still to be written is not to wait for the last draw's limits.
        let _ = self.disk.limit(Limits::NONE);
    }
}
