//! Judges the corpus offline: each draw as each watcher would have recorded it, by the library that `holdup diagnose`
//! calls.

use holdup_diagnose::Cause;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use holdup_diagnose::verdict::{Answer as Verdict, Diagnosis};
use holdup_recording::Recording;
use holdup_recording::watchers::Watcher;
use serde::{Deserialize, Serialize};

use crate::truth::Truth;

/// Causes of an answer that are kept.
const RANKED: usize = 5;

/// What the judge said of one recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// `found`, `healthy` or `undecided`.
    pub verdict: Verdict,
    /// Whether a culprit is named.
    pub is_named: bool,
    /// How sure of the first cause of the ranking, 0-1.
    pub confidence: f64,
    /// Causes, likeliest first.
    pub ranking: Vec<String>,
}

impl Answer {
    /// The named culprit.
    pub fn culprit(&self) -> Option<&str> {
        self.ranking.first().filter(|_| self.is_named).map(String::as_str)
    }
}

/// Answers by `SEED/WATCHER`.
pub type Answers = BTreeMap<String, Answer>;

/// The key of a draw as one watcher saw it.
pub fn key(seed: u64, watcher: Watcher) -> String {
    format!("{seed}/{watcher}")
}

/// Judges every draw for every watcher, on all CPUs.
pub fn all(draws: &[(PathBuf, Truth)]) -> Result<Answers> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let every = |first: usize| draws.iter().skip(first).step_by(threads);
    let judge = |first: usize| every(first).map(|(folder, truth)| one(folder, truth)).collect::<Result<Vec<_>>>();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|first| scope.spawn(move || judge(first))).collect();
        let mut answers = Answers::new();
        for worker in workers {
            let judged = worker.join().unwrap_or_else(|_| bail!("the judge panicked"))?;
            answers.extend(judged.into_iter().flatten());
        }
        Ok(answers)
    })
}

fn one(folder: &Path, truth: &Truth) -> Result<Answers> {
    let recording =
        Recording::open(folder).with_context(|| format!("failed to open the draw in {}", folder.display()))?;
    let seen = Watcher::ALL.into_iter().filter(|watcher| watcher.differs(&recording, &truth.sources));
    let judge = |watcher: Watcher| {
        let mut seen = recording.clone();
        watcher.take(&mut seen, &truth.sources);
        (key(truth.draw.seed, watcher), answer(&holdup_diagnose::diagnose(&seen, None)))
    };
    Ok(seen.map(judge).collect())
}

/// What is scored of a diagnosis.
pub fn answer(diagnosis: &Diagnosis) -> Answer {
    let mut findings: Vec<(&str, f64)> = diagnosis.findings.iter().map(|f| (f.cause.slug(), f.confidence)).collect();
    findings.sort_by(|a, b| b.1.total_cmp(&a.1));
    // What counters alone say comes after what was found with milliseconds.
    let suspects = diagnosis.by_counters.iter().filter_map(|report| report.episodes.first());
    let suspects = suspects.flat_map(|episode| &episode.suspects);
    let mut suspects: Vec<(&str, f64)> =
        suspects.filter_map(|s| Some((s.cause.slug(), s.score.filter(|score| *score > 0.0)?))).collect();
    suspects.sort_by(|a, b| b.1.total_cmp(&a.1));
    // A minor slowdown is named, too, although the verdict is healthy.
    let named = diagnosis.culprit.or(diagnosis.minor).map(Cause::slug);
    let culprit = named.map(|cause| {
        let sure = findings.iter().chain(&suspects).find(|(other, _)| *other == cause);
        (cause, sure.map_or(1.0, |(_, sure)| *sure))
    });
    let mut ranking: Vec<(&str, f64)> = Vec::new();
    for (cause, sure) in culprit.into_iter().chain(findings).chain(suspects) {
        if !ranking.iter().any(|(other, _)| *other == cause) {
            ranking.push((cause, sure));
        }
    }
    ranking.truncate(RANKED);
    Answer {
        verdict: diagnosis.verdict,
        is_named: diagnosis.is_named() && culprit.is_some() || diagnosis.minor.is_some(),
        confidence: ranking.first().map_or(0.0, |(_, sure)| sure.clamp(0.0, 1.0)),
        ranking: ranking.into_iter().map(|(cause, _)| cause.to_owned()).collect(),
    }
}
