//! The arithmetic of a score: what an answer is worth beside the truth, and sums of that.

use holdup_diagnose::verdict::Answer as Verdict;

use crate::judge::Answer;
use crate::truth::Truth;

/// What would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected<'a> {
    /// One of these causes. Of a compound, those of each fault.
    Cause(Vec<&'a [String]>),
    /// A fault that was felt and that holdup has no cause for: no name is right.
    Nameless,
    /// Nothing was felt: a name is a false accusation, unless a fault was there and it is that one.
    Nothing(Vec<&'a [String]>),
}

impl<'a> Expected<'a> {
    /// That of a draw; none if it was a control that clients felt, which is neither.
    pub fn new(truth: &'a Truth) -> Option<Self> {
        let causes: Vec<&[String]> =
            truth.played.iter().map(|played| played.causes.as_slice()).filter(|causes| !causes.is_empty()).collect();
        match (truth.symptom.is_felt(), truth.draw.is_control()) {
            (true, true) => None,
            (true, false) if causes.is_empty() => Some(Self::Nameless),
            (true, false) => Some(Self::Cause(causes)),
            (false, _) => Some(Self::Nothing(causes)),
        }
    }

    fn accepts(&self, cause: &str) -> bool {
        match self {
            Self::Cause(sets) | Self::Nothing(sets) => sets.iter().any(|set| set.iter().any(|own| own == cause)),
            Self::Nameless => false,
        }
    }
}

/// Sums over answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Score {
    /// Faults that were felt and have a cause.
    pub faults: usize,
    /// Of these, the culprit that was named is right.
    pub top1: usize,
    /// The right one is among the first three causes; of a compound, those of all its faults.
    pub top3: usize,
    /// No culprit was named.
    pub undecided: usize,
    /// Of these, the answer was that all is well.
    pub missed: usize,
    /// A wrong culprit was named.
    pub wrong: usize,
    /// Faults that were felt and have no cause yet.
    pub nameless: usize,
    /// Of these, a culprit was named.
    pub nameless_wrong: usize,
    /// Draws in which nothing was felt.
    pub quiet: usize,
    /// Of these, a culprit was named that was not there.
    pub accused: usize,
    /// Confidences of first causes, and whether they were right.
    pub forecasts: Vec<(f64, bool)>,
}

impl Score {
    /// Adds one answer.
    pub fn add(&mut self, expected: &Expected<'_>, answer: &Answer) {
        let culprit = answer.culprit();
        let is_right = culprit.is_some_and(|cause| expected.accepts(cause));
        if let Some(first) = answer.ranking.first() {
            self.forecasts.push((answer.confidence, expected.accepts(first)));
        }
        match expected {
            Expected::Cause(sets) => {
                self.faults += 1;
                self.top1 += usize::from(is_right);
                let among = |set: &&[String]| answer.ranking.iter().take(3).any(|cause| set.contains(cause));
                self.top3 += usize::from(sets.iter().all(among));
                self.undecided += usize::from(culprit.is_none());
                self.missed += usize::from(culprit.is_none() && answer.verdict == Verdict::Healthy);
                self.wrong += usize::from(culprit.is_some() && !is_right);
            }
            Expected::Nameless => {
                self.nameless += 1;
                self.nameless_wrong += usize::from(culprit.is_some());
            }
            Expected::Nothing(_) => {
                self.quiet += 1;
                self.accused += usize::from(culprit.is_some() && !is_right);
            }
        }
    }

    fn counts(&mut self) -> [&mut usize; 10] {
        let Self { faults, top1, top3, undecided, missed, wrong, nameless, nameless_wrong, quiet, accused, .. } = self;
        [faults, top1, top3, undecided, missed, wrong, nameless, nameless_wrong, quiet, accused]
    }

    /// Adds another score.
    pub fn merge(&mut self, other: &Self) {
        for (own, more) in self.counts().into_iter().zip(other.clone().counts()) {
            *own += *more;
        }
        self.forecasts.extend(&other.forecasts);
    }

    /// Mean squared distance of confidence and outcome, over answers that rank a cause; none without any.
    pub fn brier(&self) -> Option<f64> {
        let squares = self.forecasts.iter().map(|(sure, is_right)| (sure - f64::from(u8::from(*is_right))).powi(2));
        (!self.forecasts.is_empty()).then(|| squares.sum::<f64>() / self.forecasts.len() as f64)
    }

    /// For each fifth of confidence: forecasts, their mean confidence, and the share that was right.
    pub fn reliability(&self) -> Vec<(usize, f64, f64)> {
        let fifth = |number: usize| {
            let low = number as f64 / 5.0;
            let inside = |sure: f64| sure >= low && (sure < low + 0.2 || number == 4);
            let chosen: Vec<&(f64, bool)> = self.forecasts.iter().filter(|(sure, _)| inside(*sure)).collect();
            let count = chosen.len().max(1) as f64;
            let sure = chosen.iter().map(|(sure, _)| sure).sum::<f64>() / count;
            let right = chosen.iter().filter(|(_, is_right)| *is_right).count() as f64 / count;
            (chosen.len(), sure, right)
        };
        (0..5).map(fifth).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(ranking: &[&str], confidence: f64) -> Answer {
        let is_named = confidence >= 0.5;
        let verdict = if is_named { Verdict::Found } else { Verdict::Healthy };
        Answer { verdict, is_named, confidence, ranking: ranking.iter().map(|&c| c.to_owned()).collect() }
    }

    #[test]
    fn each_answer_counts_once() {
        let (locks, disk) = (["lock_contention".to_owned()], ["disk_saturated".to_owned()]);
        let one = Expected::Cause(vec![&locks]);
        let both = Expected::Cause(vec![&locks, &disk]);
        let mut score = Score::default();
        score.add(&one, &answer(&["lock_contention"], 0.9));
        score.add(&one, &answer(&["cpu_saturated", "x", "lock_contention"], 0.8));
        score.add(&one, &answer(&[], 0.0));
        score.add(&both, &answer(&["disk_saturated", "cpu_saturated"], 0.7));
        assert_eq!((score.faults, score.top1, score.top3), (4, 2, 2));
        assert_eq!((score.undecided, score.missed, score.wrong), (1, 1, 1));
        score.add(&Expected::Nameless, &answer(&["cpu_saturated"], 0.6));
        score.add(&Expected::Nameless, &answer(&["cpu_saturated"], 0.4));
        assert_eq!((score.nameless, score.nameless_wrong), (2, 1));
        score.add(&Expected::Nothing(vec![&locks]), &answer(&["lock_contention"], 0.6));
        score.add(&Expected::Nothing(vec![]), &answer(&["lock_contention"], 0.6));
        assert_eq!((score.quiet, score.accused), (2, 1));
    }

    #[test]
    fn confidence_is_held_against_outcomes() {
        let forecasts = vec![(0.9, true), (0.9, false), (0.1, false), (1.0, true)];
        let score = Score { forecasts, ..Score::default() };
        assert!((score.brier().unwrap() - (0.01 + 0.81 + 0.01) / 4.0).abs() < 1e-9);
        let fifths = score.reliability();
        assert_eq!(fifths.iter().map(|(count, ..)| *count).collect::<Vec<_>>(), [1, 0, 0, 0, 3]);
        assert!((fifths[4].2 - 2.0 / 3.0).abs() < 1e-9);
        let mut twice = score.clone();
        twice.merge(&score);
        assert_eq!(twice.forecasts.len(), 8);
        assert_eq!(Score::default().brier(), None);
    }
}
