//! The difference between two groups of figures, and its uncertainty.
//!
//! One recording shows how precisely it measures its own figure. It cannot show how much the next
//! recording of the same thing would differ: other noise on the machine, other places in memory.
//! For single recordings that spread is assumed from our own measurements ([`super::run`]'s
//! spreads). Repeats show it themselves: interleaved ones by the differences within rounds, which
//! exclude slow changes, others by the spread around each group's mean. Two or three repeats
//! estimate a spread badly, so the assumed spread counts like a few further repeats unless the
//! repeats refute it.

use super::measure::{Measure, Scale};
use super::student;

/// Degrees of freedom of the assumed spread besides those of the repeats.
const ASSUMED: f64 = 3.0;

/// Its degrees of freedom if nothing else is known: it was measured on at least this many runs.
const ASSUMED_ALONE: f64 = 30.0;

/// Repeats that differ by more than this many assumed spreads refute it and count alone. With this
/// and [`ASSUMED`], five rounds of the same thing are called different in at most 5.6 % of cases,
/// however much rounds differ, and in less than 3 % with the assumed spread.
const REFUTED: f64 = 1.2;

/// Chance of calling a normal round outlying.
const OUTLYING: f64 = 0.01;

/// Fewest rounds among which one can be outlying.
const FEWEST_ROUNDS: usize = 5;

/// One figure of one recording.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample<'m> {
    pub round: Option<u32>,
    pub measure: &'m Measure,
}

/// A difference on its measure's scale.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Estimate {
    pub shift: f64,
    /// Standard error.
    pub error: f64,
    /// Degrees of freedom of the standard error.
    pub freedom: f64,
    /// Number of repeats behind it: rounds, or those of the smaller group.
    pub repeats: usize,
    /// Standard deviation of one more round.
    pub of_one: f64,
    /// The round that was left out as outlying.
    pub outlying: Option<u32>,
}

impl Estimate {
    /// The difference of `mine` from `base`; none if one of both has no figure on the scale.
    pub fn between(base: &[Sample<'_>], mine: &[Sample<'_>]) -> Option<Self> {
        // The offset for values near 0 is the baseline's, because it may be a part of another
        // figure of the baseline.
        let scale = base.first()?.measure.scale;
        let (a, b) = (values(base, scale)?, values(mine, scale)?);
        match paired(base, mine, scale) {
            Some(rounds) => Some(Self::from_rounds(&rounds, assumed_of_two(base, mine))),
            None => Some(Self::from_groups(&a, &b, assumed_of_two(base, mine))),
        }
    }

    /// From differences within rounds. A round whose recordings measure the figure imprecisely
    /// counts less.
    fn from_rounds(rounds: &[Round], assumed: f64) -> Self {
        let outlier = outlying(&rounds.iter().map(|round| round.difference).collect::<Vec<_>>());
        let kept: Vec<&Round> =
            rounds.iter().enumerate().filter(|(i, _)| Some(*i) != outlier).map(|(_, r)| r).collect();
        let count = kept.len() as f64;
        let weight = |round: &Round| 1.0 / (assumed.powi(2) + round.shown.powi(2)).max(f64::MIN_POSITIVE);
        let whole: f64 = kept.iter().map(|r| weight(r)).sum();
        // Weights that are 1 on average.
        let of = |round: &Round| if whole > 0.0 { weight(round) / whole * count } else { 1.0 };
        let shift = kept.iter().map(|r| of(r) * r.difference).sum::<f64>() / count;
        let squares = kept.iter().map(|r| of(r) * (r.difference - shift).powi(2)).sum::<f64>();
        let (of_one, freedom) = with_assumed(squares, count - 1.0, assumed);
        let outlying = outlier.map(|i| rounds[i].number);
        Self { shift, error: of_one / count.sqrt(), freedom, repeats: kept.len(), of_one, outlying }
    }

    fn from_groups(a: &[f64], b: &[f64], assumed: f64) -> Self {
        let freedom = (a.len() + b.len()) as f64 - 2.0;
        // For one value of one group: a difference of two has twice the variance.
        let (one, freedom) = with_assumed(square_sum(a) + square_sum(b), freedom, assumed / 2.0_f64.sqrt());
        Self {
            shift: mean(b) - mean(a),
            error: one * (1.0 / a.len() as f64 + 1.0 / b.len() as f64).sqrt(),
            freedom,
            repeats: a.len().min(b.len()),
            of_one: one * 2.0_f64.sqrt(),
            outlying: None,
        }
    }

    /// Chance of a difference this large between recordings of the same thing.
    pub fn chance(&self) -> f64 {
        match () {
            () if self.shift == 0.0 => 1.0,
            () if self.error <= 0.0 => 0.0,
            () => student::two_sided(self.shift / self.error, self.freedom),
        }
    }

    /// How far the 95 % interval reaches to either side.
    pub fn reach(&self) -> f64 {
        student::quantile(0.05, self.freedom) * self.error
    }

    /// Rounds that would prove a difference of `wanted`; none if they are too many to ask for.
    pub fn repeats_for(&self, wanted: f64) -> Option<u32> {
        (3..=MOST_REPEATS).find(|n| {
            let n = f64::from(*n);
            student::quantile(0.02, n - 1.0 + ASSUMED) * self.of_one / n.sqrt() <= wanted
        })
    }
}

/// Most repeats that a user is asked for.
const MOST_REPEATS: u32 = 50;

fn values(samples: &[Sample<'_>], scale: Scale) -> Option<Vec<f64>> {
    let values: Option<Vec<f64>> = samples.iter().map(|s| s.measure.on(scale)).collect();
    values.filter(|v| !v.is_empty())
}

/// Differences within common rounds, if all samples have rounds and at least two are common.
fn paired(base: &[Sample<'_>], mine: &[Sample<'_>], scale: Scale) -> Option<Vec<Round>> {
    let mut rounds = Vec::new();
    for sample in mine {
        let number = sample.round?;
        let Some(other) = base.iter().find(|b| b.round == Some(number)) else { continue };
        let difference = sample.measure.on(scale)? - other.measure.on(scale)?;
        let shown = sample.measure.error.hypot(other.measure.error);
        rounds.push(Round { number, difference, shown });
    }
    (rounds.len() >= 2).then_some(rounds)
}

/// Two recordings made one after the other.
struct Round {
    number: u32,
    difference: f64,
    /// Standard error of the difference, as far as the two recordings show it themselves.
    shown: f64,
}

/// Standard deviation of a difference of two recordings: the assumed one and, for single
/// recordings, also what each shows itself, which the differences of repeats already include.
fn assumed_of_two(base: &[Sample<'_>], mine: &[Sample<'_>]) -> f64 {
    let are_single = base.len() == 1 && mine.len() == 1;
    let one = |samples: &[Sample<'_>]| {
        let squares = samples.iter().map(|s| {
            let shown = if are_single { s.measure.error } else { 0.0 };
            shown.powi(2) + s.measure.spread.powi(2)
        });
        squares.sum::<f64>() / samples.len() as f64
    };
    (one(base) + one(mine)).sqrt()
}

/// Standard deviation and its degrees of freedom, from the observed squares and the assumed spread.
fn with_assumed(squares: f64, freedom: f64, assumed: f64) -> (f64, f64) {
    if freedom <= 0.0 {
        return (assumed, ASSUMED_ALONE);
    }
    let seen = squares / freedom;
    if seen > (REFUTED * assumed).powi(2) {
        return (seen.sqrt(), freedom);
    }
    (((squares + ASSUMED * assumed * assumed) / (freedom + ASSUMED)).sqrt(), freedom + ASSUMED)
}

/// The one value that is further from the others than chance allows (F. Grubbs, "Procedures for
/// detecting outlying observations in samples", 1969); none if no value is, or there are too few.
fn outlying(values: &[f64]) -> Option<usize> {
    let n = values.len();
    if n < FEWEST_ROUNDS {
        return None;
    }
    let (centre, count) = (mean(values), n as f64);
    let deviation = (square_sum(values) / (count - 1.0)).sqrt();
    let (i, furthest) = values.iter().map(|v| (v - centre).abs()).enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let t = student::quantile(OUTLYING / count, count - 2.0);
    let limit = (count - 1.0) / count.sqrt() * (t * t / (count - 2.0 + t * t)).sqrt();
    (deviation > 0.0 && furthest / deviation > limit).then_some(i)
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The middle value, or the mean of the two in the middle; 0 without any.
pub(crate) fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    match all.len() {
        0 => 0.0,
        n if n % 2 == 1 => all[n / 2],
        n => f64::midpoint(all[n / 2 - 1], all[n / 2]),
    }
}

/// Sum of squares around the mean.
fn square_sum(values: &[f64]) -> f64 {
    let centre = mean(values);
    values.iter().map(|v| (v - centre).powi(2)).sum()
}

/// The middle of a group's values, in the unit; none for an empty group.
pub(super) fn middle(samples: &[Sample<'_>]) -> Option<f64> {
    let first = samples.first()?.measure;
    let plain: Vec<f64> = samples.iter().map(|s| s.measure.value).collect();
    match (first.scale, values(samples, first.scale).filter(|v| v.len() > 1)) {
        (Scale::Ratio { plus }, Some(logarithms)) => Some(mean(&logarithms).exp() - plus),
        _ => Some(mean(&plain)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings::outcome::Section;

    fn measures(values: &[f64]) -> Vec<Measure> {
        let one = |value: &f64| Measure { spread: 0.04, ..Measure::new(Section::Requests, "p95", "ms", *value) };
        values.iter().map(one).collect()
    }

    fn samples(measures: &[Measure], rounds: bool) -> Vec<Sample<'_>> {
        let one = |(i, measure)| Sample { round: rounds.then_some(i as u32), measure };
        measures.iter().enumerate().map(one).collect()
    }

    fn estimate(a: &[f64], b: &[f64], rounds: bool) -> Estimate {
        let (a, b) = (measures(a), measures(b));
        Estimate::between(&samples(&a, rounds), &samples(&b, rounds)).unwrap()
    }

    #[test]
    fn one_of_each_is_as_far_off_as_is_assumed() {
        let one = estimate(&[100.0], &[110.0], false);
        assert!((one.shift - 1.1_f64.ln()).abs() < 1e-12 && (one.error - 0.04 * 2.0_f64.sqrt()).abs() < 1e-12);
        assert!(one.chance() > 0.05, "a tenth is not beyond what two runs differ by");
        assert_eq!(one.repeats_for(0.08), Some(5));
    }

    #[test]
    fn rounds_leave_out_what_changes_from_round_to_round() {
        let (a, b) = ([100.0, 150.0, 80.0, 220.0, 120.0], [110.5, 164.0, 88.4, 241.0, 132.6]);
        let (by_round, by_group) = (estimate(&a, &b, true), estimate(&a, &b, false));
        assert!(by_round.chance() < 0.01 && by_group.chance() > 0.5, "{by_round:?} {by_group:?}");
        assert_eq!((by_round.repeats, by_round.outlying), (5, None));
    }

    #[test]
    fn a_round_that_is_like_no_other_is_left_out() {
        let a = [100.0; 6];
        let one = estimate(&a, &[110.0, 111.0, 109.0, 110.5, 400.0, 110.0], true);
        assert_eq!((one.outlying, one.repeats), (Some(4), 5));
        assert!((one.shift - 1.101_f64.ln()).abs() < 0.002);
        assert_eq!(estimate(&a, &[110.0, 125.0, 99.0, 117.0, 104.0, 131.0], true).outlying, None);
    }

    #[test]
    fn repeats_that_differ_more_than_was_assumed_count_alone() {
        let wild = estimate(&[100.0; 4], &[60.0, 150.0, 90.0, 210.0], true);
        assert_eq!(wild.freedom, 3.0);
        let even = estimate(&[100.0; 4], &[101.0, 102.0, 100.0, 101.0], true);
        assert_eq!(even.freedom, 6.0);
        assert!(even.of_one > 0.02, "three even rounds are no proof that there is no spread");
    }
}
