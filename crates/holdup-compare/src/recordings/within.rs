//! The precision of a figure within one recording. Consecutive requests wait in the same queue, so
//! a thousand of them tell less than a thousand independent ones. The run is cut into equal slices
//! of time. Their differences, and how long consecutive slices resemble each other, give the
//! figure's standard error.
//!
//! For percentiles that is Woodruff's interval ("Confidence intervals for medians and other
//! position measures", 1952): the error of the share below the percentile, by slices, is read off
//! the distribution. For sums the series' autocovariances are added as long as two in a row are
//! positive together (C. Geyer, "Practical Markov chain Monte Carlo", 1992). If the schedule has
//! phases, each slice is compared with its own phase: the last step is slower than the first in
//! every run, and that is not chance. Differences between runs are not included here, because no
//! single run can show them.

use std::collections::BTreeMap;

use holdup_signals::Distribution;

/// Most and fewest slices of a run.
const STRETCHES: (usize, usize) = (60, 8);

/// Fewest requests per slice on average.
const A_STRETCH: usize = 5;

/// Whatever the correlation of adjacent slices, the sum's variance is at least this share of the
/// variance of independent ones, because few slices estimate it badly.
const LEAST_OF_ALONE: f64 = 0.1;

/// Standard deviations that a 95 % interval reaches.
pub(super) const REACH: f64 = 1.96;

/// A request: when it was due (nanoseconds), its value, and how many requests it stands for.
pub(super) type Timed = (i64, f64, u64);

/// Percentile `q` (0-1) of `all`, and the standard error of its logarithm by `rows`, for a schedule
/// whose phases begin at `phases`; none without requests. The error is none if they are too few.
pub(super) fn percentile(rows: &[Timed], phases: &[i64], all: &Distribution, q: f64) -> Option<(f64, Option<f64>)> {
    let value = all.quantile(q)?;
    let Some(stretches) = cut(rows, phases, |v| f64::from(v <= value)) else { return Some((value, None)) };
    let share_error = stretches.share_error();
    let at = |share: f64| all.quantile(share.clamp(0.0, 1.0)).unwrap_or(value);
    let (low, high) = (at(q - REACH * share_error), at(q + REACH * share_error));
    let is_measured = low > 0.0 && high > 0.0;
    Some((value, is_measured.then(|| (high.ln() - low.ln()) / (2.0 * REACH))))
}

/// Share (0-1) of the requests of `rows` that `is` counts, and its standard error; none without
/// requests.
pub(super) fn share(rows: &[Timed], phases: &[i64], is: impl Fn(f64) -> bool) -> Option<(f64, Option<f64>)> {
    let (hits, of) = rows.iter().fold((0, 0), |(hits, of), (_, v, n)| (hits + if is(*v) { *n } else { 0 }, of + n));
    let stretches = cut(rows, phases, |v| f64::from(is(v)));
    (of > 0).then(|| (hits as f64 / of as f64, stretches.map(|s| s.share_error())))
}

/// An amount and the count it belongs to, of one slice of time within one phase of the schedule.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stretch {
    pub amount: f64,
    pub count: f64,
    pub phase: usize,
}

/// The total of the amounts of `stretches`, in time order, per counted unit, and the standard error
/// of its logarithm. None without a count.
pub(super) fn per_count(stretches: &[Stretch]) -> Option<(f64, Option<f64>)> {
    let (amount, count) = stretches.iter().fold((0.0, 0.0), |(a, n), s| (a + s.amount, n + s.count));
    if count <= 0.0 {
        return None;
    }
    let is_enough = stretches.len() >= STRETCHES.1 / 2 && amount > 0.0;
    Some((amount / count, is_enough.then(|| sum_error(stretches) / amount)))
}

/// The phase that contains `at`, for phases that begin at `phases`.
pub(super) fn phase(phases: &[i64], at: i64) -> usize {
    phases.partition_point(|from| *from <= at)
}

struct Stretches(Vec<Stretch>);

impl Stretches {
    fn share_error(&self) -> f64 {
        sum_error(&self.0) / self.0.iter().map(|s| s.count).sum::<f64>().max(1.0)
    }
}

/// Cuts `rows` into slices of equal time and sums the values of `of` in each; none for too few.
fn cut(rows: &[Timed], phases: &[i64], of: impl Fn(f64) -> f64) -> Option<Stretches> {
    let count = (rows.len() / A_STRETCH).min(STRETCHES.0);
    let (first, last) = rows.iter().fold((i64::MAX, i64::MIN), |(a, z), (at, ..)| (a.min(*at), z.max(*at)));
    if count < STRETCHES.1 || last <= first {
        return None;
    }
    let width = (last - first) as f64 / count as f64;
    let middle = |i: usize| first + ((i as f64 + 0.5) * width) as i64;
    let mut stretches: Vec<Stretch> =
        (0..count).map(|i| Stretch { phase: phase(phases, middle(i)), ..Stretch::default() }).collect();
    for (at, value, weight) in rows {
        let i = (((at - first) as f64 / width) as usize).min(count - 1);
        stretches[i].amount += of(*value) * *weight as f64;
        stretches[i].count += *weight as f64;
    }
    Some(Stretches(stretches))
}

/// Standard error of the sum of the amounts of `stretches`, which may resemble their neighbours: by
/// each one's deviation from its phase.
fn sum_error(stretches: &[Stretch]) -> f64 {
    let mut usual: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for stretch in stretches {
        let of_phase = usual.entry(stretch.phase).or_default();
        *of_phase = (of_phase.0 + stretch.amount, of_phase.1 + stretch.count);
    }
    let beyond = |s: &Stretch| {
        let (amount, count) = usual.get(&s.phase).copied().unwrap_or_default();
        s.amount - if count > 0.0 { amount / count * s.count } else { 0.0 }
    };
    let rest: Vec<f64> = stretches.iter().map(beyond).collect();
    let (n, freedom) = (rest.len(), rest.len().saturating_sub(usual.len()));
    let covariance = |lag: usize| rest.iter().zip(&rest[lag..]).map(|(a, b)| a * b).sum::<f64>();
    let alone = covariance(0);
    let mut sum = -alone;
    for pair in 0..n.div_ceil(6) {
        let two = covariance(2 * pair) + covariance(2 * pair + 1);
        if two <= 0.0 {
            break;
        }
        sum += 2.0 * two;
    }
    // A negative correlation of adjacent slices is believed only up to here.
    let sum = sum.max(alone * LEAST_OF_ALONE);
    (sum * n as f64 / freedom.max(1) as f64).max(0.0).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recordings::testing::Random;

    /// Share of 200 runs whose interval holds the truth, for a series whose neighbours resemble each other by `phi`.
    fn held(phi: f64, q: f64, truth: f64) -> f64 {
        let mut random = Random::new(7);
        let mut held = 0;
        for _ in 0..200 {
            let mut state = random.normal();
            let rows: Vec<Timed> = (0..2_000)
                .map(|i| {
                    state = phi * state + (1.0 - phi * phi).sqrt() * random.normal();
                    (i, state.exp(), 1)
                })
                .collect();
            let all = Distribution::from_counts(rows.iter().map(|(_, v, n)| (*v, *n)));
            let (value, error) = percentile(&rows, &[], &all, q).unwrap();
            held += i32::from((value.ln() - truth).abs() <= REACH * error.unwrap());
        }
        f64::from(held) / 200.0
    }

    #[test]
    fn the_interval_holds_the_truth_though_requests_resemble_their_neighbours() {
        let shares = [held(0.0, 0.5, 0.0), held(0.9, 0.5, 0.0), held(0.9, 0.95, 1.645), held(0.98, 0.5, 0.0)];
        assert!(shares.iter().all(|share| *share >= 0.85), "{shares:?}");
        assert!(shares[0] <= 0.99, "no wider than it must be: {shares:?}");
    }

    /// Steps of which each is slower than the one before, in every run alike.
    #[test]
    fn changes_by_schedule_do_not_widen_the_interval() {
        let mut random = Random::new(9);
        let rows: Vec<Timed> = (0..5_000).map(|i| (i, 2.0 + (i / 1_000) as f64 + random.uniform(), 1)).collect();
        let all = Distribution::from_counts(rows.iter().map(|(_, v, n)| (*v, *n)));
        let error = |phases: &[i64]| percentile(&rows, phases, &all, 0.5).unwrap().1.unwrap();
        let (blind, told) = (error(&[]), error(&[0, 1_000, 2_000, 3_000, 4_000]));
        assert!(told < 0.02 && blind > 5.0 * told, "{blind} {told}");
    }

    #[test]
    fn sums_by_count_and_shares() {
        let of = |amounts: &[f64], count: f64| {
            amounts.iter().map(|amount| Stretch { amount: *amount, count, phase: 0 }).collect::<Vec<_>>()
        };
        let (ratio, error) = per_count(&of(&[1.0, 2.0, 1.0, 2.0], 10.0)).unwrap();
        assert!((ratio - 0.15).abs() < 1e-12 && error.unwrap() < 0.3);
        assert_eq!(per_count(&of(&[1.0], 0.0)), None);
        let rows: Vec<Timed> = (0..400).map(|i| (i, f64::from(i % 10 == 0), 2)).collect();
        let (share, error) = share(&rows, &[], |v| v > 0.5).unwrap();
        assert!((share - 0.1).abs() < 1e-9 && error.unwrap() < 0.02);
        assert_eq!(percentile(&rows[..3], &[], &Distribution::from_counts([(1.0, 3)]), 0.5), Some((1.0, None)));
    }
}
