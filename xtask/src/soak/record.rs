//! What came of slices: kept as JSON, added up by commit.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::sample::Sample;
use super::trend::Trend;
use super::uses::{Size, Uses};

const MIB: f64 = 1_048_576.0;

/// All slices so far.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Record {
    pub slices: Vec<Slice>,
}

/// One slice.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Slice {
    pub commit: String,
    /// When it ended, seconds since the Unix epoch.
    pub ended_at: u64,
    pub minutes: u64,
    /// Its place in its recording, from 0.
    pub number: u64,
    pub cpus: usize,
    /// Each holdup by its name.
    pub processes: BTreeMap<String, Uses>,
    pub size: Size,
    /// What is not as it should be; empty for a good slice.
    pub troubles: Vec<String>,
    /// Of the last slice of a recording: how the watch ended.
    pub end: Option<End>,
}

/// How a watch ended.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct End {
    pub code: i32,
    /// From the end of the last slice to the end of the process: merging and judging.
    pub seconds: f64,
    /// Most memory it had at any time, most of it while it judged.
    pub peak_bytes: u64,
    pub recording_bytes: u64,
    pub recording_files: u64,
    pub reads: u64,
    pub gaps: u64,
    /// Rows of each table.
    pub rows: BTreeMap<String, u64>,
}

impl End {
    /// What is wrong with it.
    pub fn troubles(&self) -> Vec<String> {
        let mut troubles = Vec::new();
        if self.code != 0 {
            troubles.push(format!("the watch ended with {}", self.code));
        }
        if self.reads == 0 || self.rows.values().sum::<u64>() == 0 {
            troubles.push("the recording is empty".to_owned());
        }
        troubles
    }

    /// One line.
    pub fn text(&self) -> String {
        format!(
            "end: code {}, {:.1} s, peak {:.0} MiB; recording {:.1} MiB in {} files, {} rows; {} gaps in {} reads",
            self.code,
            self.seconds,
            self.peak_bytes as f64 / MIB,
            self.recording_bytes as f64 / MIB,
            self.recording_files,
            self.rows.values().sum::<u64>(),
            self.gaps,
            self.reads + self.gaps,
        )
    }
}

impl Slice {
    /// Of what was seen.
    pub fn new(commit: &str, minutes: u64, number: u64, samples: &[Sample]) -> Self {
        Self {
            commit: commit.to_owned(),
            ended_at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs()),
            minutes,
            number,
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            processes: Uses::all(samples, number == 0),
            size: Size::of(samples),
            troubles: Vec::new(),
            end: None,
        }
    }

    /// Some lines.
    pub fn text(&self) -> String {
        let mut text = format!("== slice {} of {} min, commit {}\n", self.number + 1, self.minutes, self.commit);
        for (name, uses) in &self.processes {
            text += &format!("   {name}: {}\n", uses.text());
        }
        text += &format!("   {}\n", self.size.text());
        text += &match self.troubles.as_slice() {
            [] => "   as it should be".to_owned(),
            troubles => format!("   NOT as it should be:\n     {}", troubles.join("\n     ")),
        };
        text
    }
}

impl Record {
    /// # Errors
    /// If the file is there and damaged.
    pub fn load(path: &Path) -> Result<Self> {
        match fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text)
                .with_context(|| format!("{} is damaged; move it away to begin anew", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("could not read {}", path.display())),
        }
    }

    /// Whole or as it was: a run may be ended at any moment.
    pub fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).context("slices")? + "\n";
        let partial = path.with_extension("tmp");
        fs::write(&partial, text)
            .and_then(|()| fs::rename(&partial, path))
            .with_context(|| format!("could not write {}", path.display()))
    }

    /// Hours and slopes by commit, in the order in which they came, and of all.
    pub fn score(&self) -> String {
        let mut commits: Vec<&str> = Vec::new();
        for slice in &self.slices {
            if !commits.contains(&slice.commit.as_str()) {
                commits.push(&slice.commit);
            }
        }
        let mut text = String::new();
        for commit in commits {
            let slices: Vec<&Slice> = self.slices.iter().filter(|slice| slice.commit == commit).collect();
            text += &line(commit, &slices);
        }
        text + &line("all", &self.slices.iter().collect::<Vec<_>>())
    }
}

fn line(name: &str, slices: &[&Slice]) -> String {
    let minutes: u64 = slices.iter().map(|slice| slice.minutes).sum();
    let bad = slices.iter().filter(|slice| !slice.troubles.is_empty()).count();
    let mut text = format!("{name}: {minutes} min in {} slices, {bad} not as they should be\n", slices.len());
    let of = |pick: fn(&Uses) -> Trend| {
        let all: Vec<Trend> = slices.iter().filter_map(|slice| slice.processes.get("watch")).map(pick).collect();
        sum(&all)
    };
    let (rss, files, threads) = (of(|uses| uses.rss_bytes), of(|uses| uses.descriptors), of(|uses| uses.threads));
    text += &format!(
        "   watch, per hour: memory {:+.2} ± {:.2} MiB, open files {:+.2} ± {:.2}, threads {:+.2} ± {:.2}; gaps {}\n",
        rss.0 / MIB,
        rss.1 / MIB,
        files.0,
        files.1,
        threads.0,
        threads.1,
        slices.iter().filter_map(|slice| slice.end.as_ref()).map(|end| end.gaps).sum::<u64>(),
    );
    text
}

/// Mean slope of several slices, and its error. Slices too short to have one are left out.
fn sum(trends: &[Trend]) -> (f64, f64) {
    let with_error: Vec<&Trend> = trends.iter().filter(|trend| trend.error_per_hour < f64::MAX).collect();
    let count = with_error.len().max(1) as f64;
    let slope = with_error.iter().map(|trend| trend.slope_per_hour).sum::<f64>() / count;
    let error = with_error.iter().map(|trend| trend.error_per_hour.powi(2)).sum::<f64>().sqrt() / count;
    (slope, error)
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn slices_add_up_by_commit() {
        let slice = |commit: &str, slope: f64| {
            let rss_bytes = Trend { slope_per_hour: slope * MIB, error_per_hour: MIB, ..Trend::default() };
            let uses = Uses { rss_bytes, ..Uses::default() };
            Slice {
                commit: commit.to_owned(),
                minutes: 20,
                processes: BTreeMap::from([("watch".to_owned(), uses)]),
                ..Slice::default()
            }
        };
        let mut record = Record { slices: vec![slice("b", 1.0), slice("a", 2.0), slice("b", 3.0)] };
        record.slices[1].troubles.push("it grows".to_owned());
        let score = record.score();
        let lines: Vec<&str> = score.lines().collect();
        assert_eq!(lines[0], "b: 40 min in 2 slices, 0 not as they should be");
        assert!(lines[1].contains("memory +2.00 ± 0.71 MiB"), "{score}");
        assert_eq!(lines[2], "a: 20 min in 1 slices, 1 not as they should be");
        assert_eq!(lines[4], "all: 60 min in 3 slices, 1 not as they should be");
    }

    #[test]
    fn a_record_outlives_its_run() {
        let path = std::env::temp_dir().join(format!("holdup-soak-record-{}.json", std::process::id()));
        assert!(Record::load(&path).unwrap().slices.is_empty());
        Record { slices: vec![Slice::default()] }.save(&path).unwrap();
        assert_eq!(Record::load(&path).unwrap().slices.len(), 1);
        fs::write(&path, "{").unwrap();
        assert!(Record::load(&path).is_err());
        fs::remove_file(&path).unwrap();
    }
}
