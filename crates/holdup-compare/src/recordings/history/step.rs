//! Lasting steps in a series of figures, one for each build: where its level changed, and stayed.
//!
//! A step is put where two medians describe the series best: where the sum of distances from them is
//! smallest. Single builds that were slow (spikes) hardly move a median, and a drift has no such
//! place that passes what follows. The step counts if builds after it differ from those before it
//! in rank (H. B. Mann and D. R. Whitney, 1947), by more than the search over all places can explain (Bonferroni), and if the two sides
//! hardly overlap. The two sides are searched in the same way for further steps.

use crate::recordings::estimate::median;
use crate::recordings::student::two_sided_normal;

/// Fewest builds before a step, and since it. Two or three slow builds in a row are common where a
/// build is measured once: a busy machine, a cold cache.
pub(super) const BEFORE: usize = 10;
pub(super) const SINCE: usize = 5;

/// Of all pairs of a build before and one since, so many must differ in the step's direction (0-1).
const APART: f64 = 0.9;

/// If either side has at most so many values, orders are counted; beyond that the normal
/// approximation with its correction for ties is as good.
const FEW: usize = 20;

/// A change of the level that lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Index of the first value of the new level.
    pub at: usize,
    /// Median of the level before.
    pub before: f64,
    /// Median of the new level.
    pub after: f64,
    /// Chance that the order of values without any change shows such a step anywhere (0-1).
    pub chance: f64,
    /// Whether the newest level still differs from the one before, in the same direction.
    pub stands: bool,
}

/// The steps of `values`, in order: those that `matters(before, after)` accepts by their size, and
/// that chance makes with a probability below `false_alarms` (0-1).
pub fn steps(values: &[f64], false_alarms: f64, matters: &dyn Fn(f64, f64) -> bool) -> Vec<Step> {
    let mut found = Vec::new();
    search(values, 0, &mut |values, offset| {
        let step = likeliest(values).filter(|step| step.chance < false_alarms && matters(step.before, step.after))?;
        found.push(Step { at: offset + step.at, ..step });
        Some(step.at)
    });
    found.sort_by_key(|step| step.at);
    // The levels on both sides of a step are those up to its neighbours.
    let ends: Vec<usize> = [0].into_iter().chain(found.iter().map(|s| s.at)).chain([values.len()]).collect();
    for (step, ends) in found.iter_mut().zip(ends.windows(3)) {
        step.before = median(values[ends[0]..ends[1]].to_vec());
        step.after = median(values[ends[1]..ends[2]].to_vec());
    }
    let newest = found.last().map_or(0.0, |step| step.after);
    for step in &mut found {
        step.stands = matters(step.before, newest) && (newest > step.before) == (step.after > step.before);
    }
    found
}

fn search(values: &[f64], offset: usize, split: &mut dyn FnMut(&[f64], usize) -> Option<usize>) {
    if let Some(at) = split(values, offset) {
        search(&values[..at], offset, split);
        search(&values[at..], offset + at, split);
    }
}

/// The place where two medians describe `values` best; none if the sides overlap there, or if it is too new to tell.
fn likeliest(values: &[f64]) -> Option<Step> {
    let places = BEFORE..values.len();
    let before = scatter(values.iter());
    let after = scatter(values.iter().rev());
    let cost = |at: usize| before[at] + after[values.len() - at];
    let at = places.clone().min_by(|a, b| cost(*a).total_cmp(&cost(*b)))?;
    let (old, new) = values.split_at_checked(at).filter(|(_, new)| new.len() >= SINCE)?;
    let (above, chance) = ranks(old, new);
    let is_apart = above >= APART || above <= 1.0 - APART;
    let chance = (chance * places.count() as f64).min(1.0);
    is_apart.then(|| Step { at, before: median(old.to_vec()), after: median(new.to_vec()), chance, stands: false })
}

/// Sum of distances from the median of the first 0, 1, 2, … of `values`.
fn scatter<'v>(values: impl Iterator<Item = &'v f64>) -> Vec<f64> {
    let mut sorted: Vec<f64> = Vec::new();
    let mut sums = vec![0.0];
    for value in values {
        sorted.insert(sorted.partition_point(|other| other < value), *value);
        let (half, rest) = (sorted.len() / 2, sorted.len().div_ceil(2));
        sums.push(sorted[rest..].iter().sum::<f64>() - sorted[..half].iter().sum::<f64>());
    }
    sums
}

/// The share of pairs in which the new value is greater, ties as half; and the chance that order
/// alone puts that share so far from a half, to either side.
fn ranks(old: &[f64], new: &[f64]) -> (f64, f64) {
    let mut sorted = old.to_vec();
    sorted.sort_by(f64::total_cmp);
    let below = |value: &f64| sorted.partition_point(|other| other < value) as f64;
    let up_to = |value: &f64| sorted.partition_point(|other| other <= value) as f64;
    let wins: f64 = new.iter().map(|value| f64::midpoint(below(value), up_to(value))).sum();
    let (n, m) = (old.len() as f64, new.len() as f64);
    let all = n + m;
    let mut together = [old, new].concat();
    together.sort_by(f64::total_cmp);
    let tied: f64 = together.chunk_by(|a, b| a == b).map(|same| (same.len() as f64).powi(3) - same.len() as f64).sum();
    let variance = n * m / 12.0 * (all + 1.0 - tied / (all * (all - 1.0)));
    if variance <= 0.0 {
        return (0.5, 1.0);
    }
    let chance = if old.len().min(new.len()) <= FEW {
        (2.0 * up_to_wins(wins.min(n * m - wins).ceil() as usize, old.len(), new.len())).min(1.0)
    } else {
        two_sided_normal((wins - n * m / 2.0) / variance.sqrt())
    };
    (wins / (n * m), chance)
}

/// The chance of at most `wins` of all pairs of `n` and `m` values without ties. The orders with
/// each number of wins are the coefficients of the product of `(1 - q^(n + i)) / (1 - q^i)` for `i`
/// from 1 to `m`.
fn up_to_wins(wins: usize, n: usize, m: usize) -> f64 {
    let (many, few) = (n.max(m), n.min(m));
    let mut orders = vec![0.0; wins + 1];
    orders[0] = 1.0;
    let mut all = 1.0;
    for i in 1..=few {
        for u in (many + i..=wins).rev() {
            orders[u] -= orders[u - many - i];
        }
        for u in i..=wins {
            orders[u] += orders[u - i];
        }
        all *= (many + i) as f64 / i as f64;
    }
    orders.iter().sum::<f64>() / all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise of one percent that never repeats.
    fn noisy(level: f64, count: usize, seed: usize) -> Vec<f64> {
        (0..count).map(|i| level * (1.0 + 0.02 * (((i + seed) as f64 * 0.618_034).fract() - 0.5))).collect()
    }

    fn found(values: &[f64]) -> Vec<usize> {
        steps(values, 0.01, &|before, after| (after / before - 1.0).abs() > 0.03).iter().map(|s| s.at).collect()
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let values = [noisy(100.0, 30, 0), noisy(108.0, 5, 30)].concat();
        assert_eq!(found(&values), [30]);
        let step = steps(&values, 0.01, &|_, _| true)[0];
        assert!((step.before - 100.0).abs() < 0.3 && (step.after - 108.0).abs() < 1.0, "{step:?}");
        // Four builds are no proof yet.
        assert_eq!(found(&values[..34]), [0; 0]);
    }

    #[test]
    fn there_and_back_are_two_steps() {
        let values = [noisy(100.0, 20, 0), noisy(120.0, 12, 20), noisy(101.0, 12, 32)].concat();
        assert_eq!(found(&values), [20, 32]);
    }

    #[test]
    fn neither_spikes_nor_a_drift_nor_noise_are_steps() {
        let mut spikes = noisy(100.0, 60, 0);
        for at in [20, 21, 22, 41, 58, 59] {
            spikes[at] = 190.0;
        }
        assert_eq!(found(&spikes), [0; 0]);
        assert_eq!(found(&noisy(100.0, 200, 3)), [0; 0]);
        // Two levels in turn, as where builds of two branches are measured.
        let branches: Vec<f64> = (0..80).map(|i| if i / 4 % 2 == 0 { 100.0 } else { 130.0 }).collect();
        assert_eq!(found(&branches), [0; 0]);
        assert_eq!(found(&[7.0; 50]), [0; 0]);
        assert_eq!(found(&[]), [0; 0]);
    }

    #[test]
    fn ranks_by_hand() {
        // Of six pairs five and a half; of ten orders one has no win and one has one.
        let (above, chance) = ranks(&[1.0, 2.0, 3.0], &[3.0, 4.0]);
        assert!((above - 5.5 / 6.0).abs() < 1e-12 && (chance - 0.4).abs() < 1e-12, "{above} {chance}");
        // All orders together; the normal approximation where both are many.
        assert!((up_to_wins(35, 5, 7) - 1.0).abs() < 1e-12);
        let (exact, near) = (2.0 * up_to_wins(120, 20, 20), two_sided_normal(80.0 / (400.0_f64 / 12.0 * 41.0).sqrt()));
        assert!((exact / near - 1.0).abs() < 0.05, "{exact} {near}");
        assert_eq!(scatter([1.0, 5.0, 2.0].iter()), [0.0, 0.0, 4.0, 4.0]);
    }
}
