//! How much each digest's time changed, beyond the change that all of them share.
//!
//! The figure of a pair is the logarithm of the ratio of its times. The median over the pairs of
//! one second is the effect of the machine and of the new server on all statements: it is
//! subtracted, and reported separately. The rest of a digest's figures is averaged without its
//! tails (Yuen, "The two-sample trimmed t for unequal population variances", 1974). It counts as a
//! change if it is significant among all digests (Benjamini and Hochberg) and large enough to
//! matter.

use std::collections::BTreeMap;

use serde::Serialize;

use super::pairs::Pairs;
use crate::recordings::{benjamini_hochberg, median, student_quantile, student_two_sided};

/// Share of false ones among the reported changes.
const FALSE_ONES: f64 = 0.05;

/// A smaller change of a statement's time does not count: two builds of the same server differ that
/// much.
const LEAST_CHANGE: f64 = 0.05;

/// Share of the pairs that is trimmed at each end.
const TRIMMED: f64 = 0.15;

/// Fewest pairs for a verdict.
const FEWEST_PAIRS: usize = 8;

/// Length of a window of pairs, seconds: a machine's disturbances last about that long.
const MOMENT_S: f64 = 1.0;

/// Fewest pairs of a window for its own median; otherwise the round's median is used.
const FEWEST_OF_A_MOMENT: usize = 20;

/// Fewest statements among which the usual variation is known.
const FEWEST_STATEMENTS: usize = 20;

/// Standard deviation of a normal distribution as a multiple of the median deviation.
const NORMAL_OF_MEDIAN: f64 = 1.4826;

/// The change of a statement's time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// `slower`, `faster`, `same`, or `unknown`: too few executions to tell.
    pub verdict: Verdict,
    /// Its time on the new server as a multiple of that on the old one, beyond the common change; 1
    /// means no change.
    pub ratio: f64,
    /// 95 % interval of `ratio`.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// Chance that nothing changed, corrected for all digests (0-1).
    pub chance: f64,
}

/// See [`Change::verdict`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It takes longer.
    Slower,
    /// It takes less time.
    Faster,
    /// As far as can be measured, it takes as long.
    Same,
    /// Too few executions.
    Unknown,
}

/// The change that all statements share.
#[derive(Clone, Debug, Serialize)]
pub struct Common {
    /// The new server's time as a multiple of the old one's, for the median statement.
    pub ratio: f64,
    /// The smallest and largest of a round: the machine's state differs from round to round.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// The median of each window of each round, as a logarithm.
    #[serde(skip)]
    moments: BTreeMap<(usize, i64), f64>,
    #[serde(skip)]
    rounds: Vec<f64>,
}

impl Common {
    pub(super) fn from_pairs(pairs: &Pairs) -> Self {
        let mut by_moment: BTreeMap<(usize, i64), Vec<f64>> = BTreeMap::new();
        let mut by_round: Vec<Vec<f64>> = vec![Vec::new(); pairs.rounds];
        for pair in pairs.digests.iter().flat_map(|of| &of.all) {
            if let Some(change) = logarithm(pair.times_ns) {
                by_moment.entry((pair.round, moment(pair.due_s))).or_default().push(change);
                by_round[pair.round].push(change);
            }
        }
        let rounds: Vec<f64> = by_round.into_iter().map(median).collect();
        let moments = by_moment.into_iter().filter(|(_, all)| all.len() >= FEWEST_OF_A_MOMENT);
        let least = rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self {
            ratio: median(rounds.clone()).exp(),
            low: least.exp(),
            high: most.exp(),
            moments: moments.map(|(at, all)| (at, median(all))).collect(),
            rounds,
        }
    }

    fn at(&self, round: usize, due_s: f64) -> f64 {
        self.moments.get(&(round, moment(due_s))).copied().unwrap_or(self.rounds[round])
    }
}

/// The change of each digest, in their order.
pub(super) fn all(pairs: &Pairs, common: &Common) -> Vec<Change> {
    let mut estimates: Vec<Option<Estimate>> = pairs
        .digests
        .iter()
        .map(|of| {
            let beyond = of
                .all
                .iter()
                .filter_map(|pair| logarithm(pair.times_ns).map(|change| change - common.at(pair.round, pair.due_s)));
            Estimate::trimmed(beyond.collect())
        })
        .collect();
    against_each_other(&mut estimates);
    let chances: Vec<f64> = estimates.iter().map(|e| e.as_ref().map_or(1.0, Estimate::chance)).collect();
    let among_all = benjamini_hochberg(&chances);
    estimates.into_iter().zip(among_all).map(|(estimate, chance)| change(estimate, chance)).collect()
}

/// Most statements have not changed, so their median is no change. Their deviations from it show
/// what the pairs alone do not: executions that are disturbed together count as fewer than they are
/// (B. Efron, "Large-Scale Simultaneous Hypothesis Testing: The Choice of a Null Hypothesis",
/// 2004).
fn against_each_other(estimates: &mut [Option<Estimate>]) {
    let known = || estimates.iter().flatten();
    if known().count() < FEWEST_STATEMENTS {
        return;
    }
    let middle = median(known().map(|e| e.mean).collect());
    let apart = median(known().map(|e| ((e.mean - middle) / e.error).abs()).collect());
    let wider = (apart * NORMAL_OF_MEDIAN).max(1.0);
    for estimate in estimates.iter_mut().flatten() {
        estimate.mean -= middle;
        estimate.error *= wider;
    }
}

fn change(estimate: Option<Estimate>, chance: f64) -> Change {
    let Some(Estimate { mean, error, freedom }) = estimate else {
        return Change { verdict: Verdict::Unknown, ratio: 1.0, low: 0.0, high: f64::MAX, chance: 1.0 };
    };
    let reach = student_quantile(0.05, freedom) * error;
    let (ratio, low, high) = (mean.exp(), (mean - reach).exp(), (mean + reach).exp());
    let is_sure = chance < FALSE_ONES;
    let verdict = match () {
        () if is_sure && ratio >= 1.0 + LEAST_CHANGE => Verdict::Slower,
        () if is_sure && ratio <= 1.0 / (1.0 + LEAST_CHANGE) => Verdict::Faster,
        // A change of a tenth could hide in it.
        () if high / low > 1.2 => Verdict::Unknown,
        () => Verdict::Same,
    };
    Change { verdict, ratio, low, high, chance }
}

/// A trimmed mean and its uncertainty.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    mean: f64,
    error: f64,
    freedom: f64,
}

impl Estimate {
    fn trimmed(mut all: Vec<f64>) -> Option<Self> {
        if all.len() < FEWEST_PAIRS {
            return None;
        }
        all.sort_by(f64::total_cmp);
        let cut = (all.len() as f64 * TRIMMED).floor() as usize;
        let kept = &all[cut..all.len() - cut];
        let mean = kept.iter().sum::<f64>() / kept.len() as f64;
        // Trimmed values count as the nearest kept one.
        let (first, last) = (kept[0], kept[kept.len() - 1]);
        let count = all.len() as f64;
        let winsorized: Vec<f64> = all.iter().map(|value| value.clamp(first, last)).collect();
        let middle = winsorized.iter().sum::<f64>() / count;
        let squares: f64 = winsorized.iter().map(|value| (value - middle).powi(2)).sum();
        let freedom = kept.len() as f64 - 1.0;
        let error = (squares / (kept.len() as f64 * freedom)).sqrt();
        Some(Self { mean, error: error.max(1e-9), freedom })
    }

    /// Probability (0-1) of such a value without any change.
    fn chance(&self) -> f64 {
        student_two_sided(self.mean / self.error, self.freedom)
    }
}

fn logarithm(times_ns: Option<(i64, i64)>) -> Option<f64> {
    times_ns.map(|(old, new)| (new as f64 / old as f64).ln())
}

fn moment(due_s: f64) -> i64 {
    (due_s / MOMENT_S).floor() as i64
}
