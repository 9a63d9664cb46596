//! Plays many draws in slices: goes on where the last slice ended, however that ended, and lets Ctrl-C finish a draw.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use crate::bench::Bench;
use crate::corpus::Corpus;
use crate::draw::Draw;
use crate::play::{Outcome, play};

/// A draw that failed so often is left alone.
const TRIES: usize = 2;

/// What became of a draw, a line of the state file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Line {
    seed: u64,
    /// `played`, `skipped` or `failed`.
    outcome: String,
    /// Why, or what clients felt.
    note: String,
    seconds: f64,
}

/// Which draws, into which corpus, for how long.
pub struct Slice {
    /// Seeds.
    pub seeds: Range<u64>,
    /// Wall time after which no draw begins.
    pub most: Option<Duration>,
    /// Where they go.
    pub corpus: Corpus,
    /// The file of lines.
    pub state: PathBuf,
    /// Only draws with this fault.
    pub only: Option<String>,
}

impl Slice {
    /// Seeds that are still to be played.
    fn open(&self) -> Result<Vec<u64>> {
        let lines = read(&self.state)?;
        let is_done = |seed: u64| {
            let own = lines.iter().filter(|line| line.seed == seed);
            let failures = own.clone().filter(|line| line.outcome == "failed").count();
            self.corpus.has(seed) || own.clone().any(|line| line.outcome == "skipped") || failures >= TRIES
        };
        let has_fault = |seed: u64| {
            self.only.as_ref().is_none_or(|name| Draw::new(seed).doses.iter().any(|dose| dose.fault == *name))
        };
        Ok(self.seeds.clone().filter(|seed| !is_done(*seed) && has_fault(*seed)).collect())
    }

    /// Plays them.
    pub fn play(&self, root: &Path, holdup: &Path) -> Result<()> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop)).context("can't handle signals")?;
        }
        let (begun, open) = (Instant::now(), self.open()?);
        println!("{} of {} draws are to be played", open.len(), self.seeds.end.saturating_sub(self.seeds.start));
        if open.is_empty() {
            return Ok(());
        }
        let mut bench = Bench::start(root, holdup)?;
        println!("bench ready after {:.1} s", begun.elapsed().as_secs_f64());
        for seed in open {
            let is_over = self.most.is_some_and(|most| begun.elapsed() >= most);
            if is_over || stop.load(Ordering::Relaxed) {
                break;
            }
            let draw = Draw::new(seed);
            print!("{draw} ... ");
            let _ = std::io::stdout().flush();
            let line = one(&mut bench, &draw, &self.corpus);
            println!("{}: {} ({:.1} s)", line.outcome, line.note, line.seconds);
            append(&self.state, &line)?;
            if line.outcome == "failed" {
                // What it left is unknown: the next draw gets a new bench.
                drop(bench);
                bench = Bench::start(root, holdup)?;
            }
        }
        Ok(())
    }
}

fn one(bench: &mut Bench, draw: &Draw, corpus: &Corpus) -> Line {
    let begun = Instant::now();
    let (outcome, note) = match play(bench, draw, corpus) {
        Ok(Outcome::Played(truth)) => {
            let (symptom, kib) = (truth.symptom, truth.bytes / 1_024);
            let (before, during) = (symptom.baseline.mean_ms, symptom.fault.mean_ms);
            let failed = symptom.fault.failed_ratio * 1e2;
            ("played", format!("{before:.1} ms -> {during:.1} ms, {failed:.1} % failed, {kib} KiB"))
        }
        Ok(Outcome::Skipped(why)) => ("skipped", why),
        Err(error) => ("failed", format!("{error:#}")),
    };
    Line { seed: draw.seed, outcome: outcome.to_owned(), note, seconds: begun.elapsed().as_secs_f64() }
}

fn read(path: &Path) -> Result<Vec<Line>> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    // A line that was cut off when the bench was killed is of a draw that did not end.
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn append(path: &Path, line: &Line) -> Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    }
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("failed to open {}", path.display()))?;
    // The line break comes first: so a line that was cut off does not swallow this one.
    write!(file, "\n{}", serde_json::to_string(line)?).with_context(|| format!("failed to write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_goes_on_where_the_last_one_was_killed() {
        let dir = tempfile::tempdir().unwrap();
        let corpus = Corpus { folder: dir.path().join("corpus") };
        std::fs::create_dir_all(corpus.draw(3)).unwrap();
        std::fs::write(corpus.draw(3).join(crate::truth::FILE), "{}").unwrap();
        // A draw whose folder is there without truth was cut off.
        std::fs::create_dir_all(corpus.draw(4)).unwrap();
        let state = dir.path().join("state/lines");
        let line = |seed, outcome: &str| Line { seed, outcome: outcome.to_owned(), note: String::new(), seconds: 1.0 };
        let slice = Slice { seeds: 0..6, most: None, corpus, state: state.clone(), only: None };
        assert_eq!(slice.open().unwrap(), [0, 1, 2, 4, 5]);
        append(&state, &line(0, "skipped")).unwrap();
        append(&state, &line(1, "failed")).unwrap();
        let mut file = OpenOptions::new().append(true).open(&state).unwrap();
        write!(file, "\n{{\"seed\": 2, \"outc").unwrap();
        append(&state, &line(5, "failed")).unwrap();
        append(&state, &line(5, "failed")).unwrap();
        assert_eq!(slice.open().unwrap(), [1, 2, 4]);
    }
}
