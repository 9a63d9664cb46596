//! The votes on one pattern, and their score. Each vote keeps its figures, so that a verdict can
//! print what supports a cause and what clears it.

use crate::trace::view::Observation;
use holdup_signals::time::counters::jitter::Jitter;

/// Most by which side effects can multiply what was seen of the mechanism itself: a cause whose
/// mechanism was not seen is not named, whatever else fits.
pub const CARRIED: f64 = 2.0;

/// What a vote does to a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The mechanism: without the telemetry to see it, the cause can't be judged.
    Defines,
    /// A side effect of it.
    Supports,
    /// What it cannot do.
    Refutes,
    /// What must hold before anything else counts.
    Gates,
}

/// One vote of an account.
#[derive(Debug, Clone, PartialEq)]
pub struct Vote {
    /// What it does to the score.
    pub part: Part,
    /// Its weight beside the others.
    pub weight: f64,
    /// The expectation, as a sentence.
    pub what: &'static str,
    /// The observation; `None` if the telemetry is missing.
    pub reading: Option<Observation>,
}

/// All votes on one cause, as its file lists them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Votes {
    votes: Vec<Vote>,
}

impl Votes {
    /// An account without votes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The mechanism itself.
    #[must_use]
    pub fn defines(self, weight: f64, what: &'static str, reading: Option<Observation>) -> Self {
        self.vote(Part::Defines, weight, what, reading)
    }

    /// A side effect of the mechanism.
    #[must_use]
    pub fn supports(self, weight: f64, what: &'static str, reading: Option<Observation>) -> Self {
        self.vote(Part::Supports, weight, what, reading)
    }

    /// What the mechanism cannot do.
    #[must_use]
    pub fn refutes(self, weight: f64, what: &'static str, reading: Option<Observation>) -> Self {
        self.vote(Part::Refutes, weight, what, reading)
    }

    /// What must hold before anything else counts.
    #[must_use]
    pub fn gates(self, what: &'static str, reading: Option<Observation>) -> Self {
        self.vote(Part::Gates, 1.0, what, reading)
    }

    /// The votes in order.
    pub fn votes(&self) -> impl Iterator<Item = &Vote> {
        self.votes.iter()
    }

    /// The same, to keep.
    #[must_use]
    pub fn into_votes(self) -> Vec<Vote> {
        self.votes
    }

    fn vote(mut self, part: Part, weight: f64, what: &'static str, reading: Option<Observation>) -> Self {
        self.votes.push(Vote { part, weight, what, reading });
        self
    }

    /// From -1 to 1: the share of the expected weight that was found, minus the weight of what
    /// refutes it, times the gates. `None` if nothing that defines the cause was recorded.
    #[must_use]
    pub fn score(&self, jitter: Jitter, pattern: &str) -> Option<f64> {
        let weight = |vote: &Vote| jitter.apply(&format!("{pattern}/{}", vote.what), vote.weight);
        let (mut found, mut looked_for, mut refuted, mut gate) = (0.0, 0.0, 0.0, 1.0);
        let mut defined: Option<f64> = None;
        for vote in &self.votes {
            let Some(reading) = &vote.reading else { continue };
            match vote.part {
                Part::Gates => gate *= reading.strength,
                Part::Refutes => refuted += weight(vote) * reading.strength,
                Part::Defines | Part::Supports => {
                    if vote.part == Part::Defines {
                        defined = Some(defined.unwrap_or(0.0).max(reading.strength));
                    }
                    found += weight(vote) * reading.strength;
                    looked_for += weight(vote);
                }
            }
        }
        let defined = defined.filter(|_| looked_for > 0.0)?;
        let found = (found / looked_for).min(CARRIED * defined);
        Some((gate * found - refuted / looked_for).clamp(-1.0, 1.0))
    }
}
