//! What the processes of a slice took, and how large its recording was.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::sample::{Process, Sample};
use super::trend::Trend;

/// Of the first slice of a recording the first minutes are left out, at most a quarter of it: caches fill.
const WARM_UP_SECONDS: f64 = 300.0;
const WARM_UP_SHARE: f64 = 0.25;

/// Growth in an hour that is let pass, as a share of the mean: below it a day costs no more than twice the memory.
const GROWTH_SHARE: f64 = 0.04;

/// Of a table a recording that runs has at most 64 small segments, which are then merged, and those of 12 s (docs/recording.md).
const SMALL_SEGMENTS: u64 = 64 + 8;

/// Small segments that are merged into one at least.
const MERGED_SEGMENTS: u64 = 64;

/// Seconds of a segment.
const SEGMENT_SECONDS: f64 = 1.5;

/// Tables that a recording may have.
const TABLES: u64 = 12;

/// Files beside the tables: the manifest, and what is being written or removed.
const OTHER_FILES: u64 = 4;

const MIB: f64 = 1_048_576.0;

/// How what one process takes went.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Uses {
    pub rss_bytes: Trend,
    pub descriptors: Trend,
    pub threads: Trend,
    /// CPUs that it kept busy.
    pub cpus: Trend,
}

impl Uses {
    /// Of all processes by their names; without the warm-up if this `is_first` in its recording.
    pub fn all(samples: &[Sample], is_first: bool) -> BTreeMap<String, Self> {
        let last = samples.last().map_or(0.0, |sample| sample.seconds);
        let from = if is_first { WARM_UP_SECONDS.min(WARM_UP_SHARE * last) } else { 0.0 };
        let mut by_name: BTreeMap<String, Vec<(f64, Process)>> = BTreeMap::new();
        for sample in samples.iter().filter(|sample| sample.seconds >= from) {
            for (name, process) in &sample.processes {
                by_name.entry(name.clone()).or_default().push((sample.seconds, *process));
            }
        }
        by_name.into_iter().map(|(name, points)| (name, Self::of(&points))).collect()
    }

    fn of(points: &[(f64, Process)]) -> Self {
        let series = |pick: fn(&Process) -> u64| -> Vec<(f64, f64)> {
            points.iter().map(|(at, process)| (*at, pick(process) as f64)).collect()
        };
        let cpus: Vec<(f64, f64)> = points
            .windows(2)
            .map(|pair| (pair[1].0, (pair[1].1.cpu_seconds - pair[0].1.cpu_seconds) / (pair[1].0 - pair[0].0)))
            .collect();
        Self {
            rss_bytes: Trend::of_lowest(&series(|process| process.rss_bytes)),
            descriptors: Trend::of(&series(|process| process.descriptors)),
            threads: Trend::of(&series(|process| process.threads)),
            cpus: Trend::of(&cpus),
        }
    }

    /// One line.
    pub fn text(&self) -> String {
        let Self { rss_bytes, descriptors, threads, cpus } = self;
        format!(
            "memory {:.1} -> {:.1} MiB ({:+.2} ± {:.2} per hour), open files {:.0} -> {:.0}, threads {:.0} -> {:.0}, {:.2} % of a core",
            rss_bytes.first / MIB,
            rss_bytes.last / MIB,
            rss_bytes.slope_per_hour / MIB,
            rss_bytes.error_per_hour / MIB,
            descriptors.first,
            descriptors.last,
            threads.first,
            threads.last,
            cpus.mean * 100.0,
        )
    }

    /// What grows that should not.
    pub fn troubles(&self, name: &str) -> Vec<String> {
        let looked_at = [
            ("MiB of memory", MIB, self.rss_bytes),
            ("open files", 1.0, self.descriptors),
            ("threads", 1.0, self.threads),
        ];
        let growing = looked_at.into_iter().filter(|(.., trend)| trend.grows(GROWTH_SHARE));
        growing
            .map(|(what, unit, trend)| {
                let [slope, error, mean] =
                    [trend.slope_per_hour, trend.error_per_hour, trend.mean].map(|value| value / unit);
                format!("{name}: {slope:.1} ± {error:.1} more {what} an hour, from a mean of {mean:.1}")
            })
            .collect()
    }
}

/// How large the recording of the watch was.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Size {
    pub first_bytes: u64,
    pub last_bytes: u64,
    pub bytes_per_second: f64,
    /// As the documents say; 0 before it is judged.
    pub promised_bytes_per_second: f64,
    pub most_files: u64,
    /// As follows from how segments are merged.
    pub promised_files: u64,
}

impl Size {
    /// Small segments are larger than merged ones, so the slope of the whole slice counts.
    pub fn of(samples: &[Sample]) -> Self {
        let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Self::default() };
        let points: Vec<(f64, f64)> = samples.iter().map(|s| (s.seconds, s.recording_bytes as f64)).collect();
        let merges = (last.seconds / SEGMENT_SECONDS) as u64 / MERGED_SEGMENTS;
        Self {
            first_bytes: first.recording_bytes,
            last_bytes: last.recording_bytes,
            bytes_per_second: Trend::of(&points).slope_per_hour / 3_600.0,
            promised_bytes_per_second: 0.0,
            most_files: samples.iter().map(|sample| sample.recording_files).max().unwrap_or(0),
            promised_files: TABLES * (SMALL_SEGMENTS + 1 + merges) + OTHER_FILES,
        }
    }

    /// One line.
    pub fn text(&self) -> String {
        format!(
            "recording {:.1} -> {:.1} MiB, {:.0} bytes a second (documents: {:.0}), at most {} files (documents: {})",
            self.first_bytes as f64 / MIB,
            self.last_bytes as f64 / MIB,
            self.bytes_per_second,
            self.promised_bytes_per_second,
            self.most_files,
            self.promised_files,
        )
    }
}
