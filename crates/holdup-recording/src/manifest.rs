//! `manifest.json`: what was recorded, when, on which machine, in which phases, and what could not
//! be read.
//!
//! It is replaced by rename, so that at any moment exactly one complete manifest exists.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::files;
use crate::objective::{Judgement, Stretch};
use crate::pipeline::Stage;
pub use crate::threshold::Threshold;

/// File name of the manifest.
pub const MANIFEST: &str = "manifest.json";

/// Rises when old readers would misread new files. Added tables, columns and keys do not raise it.
pub const FORMAT_MAJOR: u32 = 1;

/// Rises with every added table, column or key.
pub const FORMAT_MINOR: u32 = 10;

/// Version of the recording format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Format {
    /// A reader refuses a greater version than its own.
    pub major: u32,
    /// A reader accepts any value.
    pub minor: u32,
}

/// How far a recording got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Being written, or its writer died.
    Running,
    /// Ended as planned.
    Complete,
    /// Ended early (a signal, an objective that ends the run, a disk that refused rows to the end);
    /// the earlier part is kept.
    Interrupted,
}

/// How much a source delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CoverageState {
    /// Everything that holdup asks for.
    Complete,
    /// A part; `why` says what is missing.
    Partial,
    /// Nothing.
    Absent,
    /// Reading it failed during the run; the earlier data exists.
    Failed,
}

/// The beginning of a coverage's source that stands for an output that was pasted. The tool's name
/// follows, as the user knows it, e.g. `pasted iostat`: no verdict may ask for it again.
pub const PASTED: &str = "pasted ";

/// What one source delivered, why not more, and what reading it cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coverage {
    /// The source as named in the tables, e.g. `host`, or a part of it, e.g. `mysql://h:3306 thread
    /// pool`.
    pub source: String,
    /// How much it delivered.
    pub state: CoverageState,
    /// What is missing and why, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The exact command, setting or grant that would enable the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable: Option<String>,
    /// CPU time of holdup's own reads, as a share of one core. Empty if it was not measured
    /// separately.
    #[serde(default)]
    pub cpu_ratio: Option<f64>,
    /// Reads that succeeded.
    #[serde(default)]
    pub reads_total: u64,
    /// Reads that failed: gaps, never zeros.
    #[serde(default)]
    pub gaps_total: u64,
}

impl Coverage {
    /// Coverage of a source of which nothing was read yet, and why that is not all.
    pub fn new(source: impl Into<String>, state: CoverageState, why: Option<String>) -> Self {
        let source = source.into();
        Self { source, state, why, enable: None, cpu_ratio: None, reads_total: 0, gaps_total: 0 }
    }

    /// Coverage of `source` and of its `parts`, which are named `<source> <part>`: complete if no
    /// part is missing.
    pub fn with_parts(source: &str, mut parts: Vec<Coverage>) -> Vec<Coverage> {
        let names: Vec<&str> =
            parts.iter().map(|p| p.source.strip_prefix(source).map_or(p.source.as_str(), str::trim_start)).collect();
        let state = if names.is_empty() { CoverageState::Complete } else { CoverageState::Partial };
        let why = (!names.is_empty()).then(|| format!("without: {}", names.join(", ")));
        let own = Self::new(source, state, why);
        parts.insert(0, own);
        parts
    }
}

/// A phase of the load schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Name, e.g. `step 3: 180/s`.
    pub name: String,
    /// Start, nanoseconds since the Unix epoch.
    pub from: i64,
    /// End, nanoseconds since the Unix epoch.
    pub to: i64,
    /// Offered rate at the start, requests per second.
    pub rate_from: f64,
    /// Offered rate at the end, requests per second (differs from `rate_from` in a ramp).
    pub rate_to: f64,
}

/// The machine that holdup ran on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Kernel release.
    pub kernel: String,
    /// CPUs this process may use.
    pub cpus: u32,
    /// Its name, as `hostname` prints it. Since 1.8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// The load, as far as a diagnosis needs it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadFacts {
    /// Target address, credentials left out.
    pub target: String,
    /// Most connections (requests in flight) of the generator.
    pub connections: u32,
    /// Longest wait of a request for a connection, and then for its response, nanoseconds.
    pub timeout_ns: i64,
    /// Operations in the scenario's order.
    pub operations: Vec<String>,
    /// Objectives, e.g. `p99 < 500ms`, in the scenario's words.
    #[serde(default)]
    pub thresholds: Vec<Threshold>,
    /// CPU time of the generator's own threads over the load's duration, as a share of one core.
    #[serde(default)]
    pub generator_cpu_ratio: Option<f64>,
    /// What decides when the next request is due.
    #[serde(default)]
    pub model: Model,
    /// The unit of the phases' rates if it is not requests: `sessions`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_of: Option<String>,
    /// `http/1.1` or `http/2`, with ` over tls` if so.
    #[serde(default)]
    pub protocol: String,
    /// Loops (threads) that generate the load.
    #[serde(default)]
    pub loops: u32,
    /// A loop wakes at most this often, nanoseconds.
    #[serde(default)]
    pub wake_quantum_ns: i64,
    /// This process's share of the schedule, e.g. `2/5`, if it is not the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<String>,
    /// Warm-up that the scenario excludes, nanoseconds from the start; 0 for none; empty if it is
    /// to be detected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up_ns: Option<i64>,
    /// Exact counts of each operation, in the scenario's order, once the load has ended.
    #[serde(default)]
    pub totals: Vec<Totals>,
    /// Result of each threshold as the generator evaluated it, in order, once the load has ended.
    /// The generator had exact counts of every second, but knew no detected warm-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objectives: Vec<Judgement>,
    /// The objective that ended the load early, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aborted: Option<Aborted>,
}

/// An objective that ended the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Aborted {
    /// The objective in the user's words.
    pub text: String,
    /// Its value then: milliseconds, a ratio 0-1, or successes per second.
    pub value: f64,
    /// The window of that value.
    pub stretch: Stretch,
    /// When the generator was told to end, nanoseconds since the Unix epoch.
    pub at: i64,
}

/// What decides when the next request is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// A schedule, independent of the service.
    #[default]
    Open,
    /// A fixed number of users who each wait for the response: a slow service gets fewer requests.
    Closed,
}

/// Exact counts of one operation, even if its rows were sampled.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Its name.
    pub operation: String,
    /// Requests that were due.
    pub offered: u64,
    /// Requests that succeeded.
    pub completed: u64,
    /// Requests that failed, by kind.
    pub errors: BTreeMap<String, u64>,
}

/// `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Format version.
    pub format: Format,
    /// holdup's version.
    pub holdup: String,
    /// The recording's name: the scenario's, or the variant of a lab.
    pub name: String,
    /// The id that the recordings of one case share on all hosts. Since 1.8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording_id: Option<String>,
    /// How far it got.
    pub state: RunState,
    /// Start, nanoseconds since the Unix epoch.
    pub started_at: i64,
    /// End; empty while it runs or if its writer died.
    #[serde(default)]
    pub ended_at: Option<i64>,
    /// The machine.
    pub host: Host,
    /// The load, if there was one.
    #[serde(default)]
    pub load: Option<LoadFacts>,
    /// What a user said: that something is slow, and when. Since 1.9.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Reported>,
    /// Objectives of what was watched, where no load has its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Threshold>,
    /// The stages of the pipeline in order, if a user named them. Since 1.10.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pipeline: Vec<Stage>,
    /// The load's phases in order.
    #[serde(default)]
    pub phases: Vec<Phase>,
    /// The scenario as text, secrets left out.
    #[serde(default)]
    pub scenario: Option<String>,
    /// What each source delivered.
    #[serde(default)]
    pub coverage: Vec<Coverage>,
    /// Rows per table; filled when the recording ends.
    #[serde(default)]
    pub tables: BTreeMap<String, u64>,
}

/// A user's word that something is slow or fails. A user who hands over evidence says so, with or
/// without a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reported {
    /// Since when, nanoseconds since the Unix epoch; none if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<i64>,
    /// Until when; none if unknown, or if it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<i64>,
    /// The user's words, if there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

impl Manifest {
    /// The manifest of a recording that starts at `started_at`.
    pub fn starting(name: &str, started_at: i64, host: Host) -> Self {
        Self {
            format: Format { major: FORMAT_MAJOR, minor: FORMAT_MINOR },
            holdup: env!("CARGO_PKG_VERSION").to_owned(),
            name: name.to_owned(),
            recording_id: None,
            state: RunState::Running,
            started_at,
            ended_at: None,
            host,
            load: None,
            reported: None,
            thresholds: Vec::new(),
            pipeline: Vec::new(),
            phases: Vec::new(),
            scenario: None,
            coverage: Vec::new(),
            tables: BTreeMap::new(),
        }
    }

    /// The tools whose outputs were pasted, as their users know them, e.g. `iostat`.
    pub fn pasted(&self) -> impl Iterator<Item = &str> {
        self.coverage.iter().filter_map(|part| part.source.strip_prefix(PASTED))
    }

    /// Replaces the manifest in `dir`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, dir: &Path) -> std::io::Result<()> {
        let partial = dir.join("manifest.json.tmp");
        let written = self.write_to(&partial).and_then(|()| fs::rename(&partial, dir.join(MANIFEST)));
        if written.is_err() {
            let _ = fs::remove_file(&partial);
        }
        written
    }

    fn write_to(&self, path: &Path) -> std::io::Result<()> {
        let mut file = files::create(path)?;
        file.write_all(serde_json::to_string_pretty(self)?.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A manifest as holdup wrote it before there were windows.
    const OLD: &str = r#"{"format": {"major": 1, "minor": 1}, "holdup": "0.1.0", "name": "r", "state": "interrupted", "started_at": 5,
        "host": {"kernel": "6.1", "cpus": 2}, "load": {"target": "http://h", "connections": 5, "timeout_ns": 1, "operations": ["a"],
        "thresholds": [{"text": "p99 < 1s", "metric": "p99", "below": 1000.0}]}}"#;

    #[test]
    fn old_manifests_are_read() {
        let load = serde_json::from_str::<Manifest>(OLD).unwrap().load.unwrap();
        assert_eq!((load.thresholds[0].below, load.thresholds[0].window_ns), (1_000.0, None));
        assert_eq!((load.objectives, load.aborted), (Vec::new(), None));
    }

    /// Keys that a reader does not know are left to those who do, and every state is one that old readers know.
    #[test]
    fn old_readers_can_read_the_manifest() {
        let mut manifest: Manifest = serde_json::from_str(OLD).unwrap();
        let stretch = Stretch { from_ns: 0, to_ns: 1_000_000_000 };
        let aborted = Aborted { text: "p99 < 1s".to_owned(), value: 2_000.0, stretch, at: 9 };
        manifest.load.as_mut().unwrap().aborted = Some(aborted.clone());
        let text = serde_json::to_string(&manifest).unwrap();
        assert!(text.contains("\"state\":\"interrupted\""), "{text}");
        assert_eq!(serde_json::from_str::<Manifest>(&text).unwrap().load.unwrap().aborted, Some(aborted));
    }
}
