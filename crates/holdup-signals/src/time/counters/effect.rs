//! How much a quantity differs from normal, in octaves (log2 of a ratio), and how much of that
//! chance may cause. Chance is estimated from normal time only, so bursts within an episode do not
//! count against it.

use crate::time::counters::frame::Rows;
use crate::time::counters::signal::Signal;

/// Something to compare: a signal, a sum of signals, or such a sum per another (bytes per commit, waits of idle time).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity {
    /// The name that verdicts print.
    pub name: &'static str,
    /// Summed signals.
    pub over: &'static [Signal],
    /// Signals subtracted from the sum, which stays at or above 0.
    pub less: &'static [Signal],
    /// Divisor of the sum; empty leaves it as it is.
    pub per: &'static [Signal],
    /// Whether one row may hold the work of many (a handler's calls are counted when its statement
    /// ends): extremes are then real volume and are not clipped.
    pub bursts: bool,
}

impl Quantity {
    /// The sum of signals.
    #[must_use]
    pub const fn sum(name: &'static str, over: &'static [Signal]) -> Self {
        Self { name, over, less: &[], per: &[], bursts: false }
    }

    /// The sum of signals per the sum of others, over the same time.
    #[must_use]
    pub const fn per(name: &'static str, over: &'static [Signal], per: &'static [Signal]) -> Self {
        Self { name, over, less: &[], per, bursts: false }
    }

    /// A signal minus another, which is a part of it.
    #[must_use]
    pub const fn less(name: &'static str, over: &'static [Signal], less: &'static [Signal]) -> Self {
        Self { name, over, less, per: &[], bursts: false }
    }

    /// Extremes are volume.
    #[must_use]
    pub const fn in_bursts(mut self) -> Self {
        self.bursts = true;
        self
    }
}

/// Share (0-1) of the values at either end that is clipped to the next one inward: one bad row of a
/// collector in twenty.
pub const CLIPPED: f64 = 0.05;

/// Standard errors of chance subtracted from a difference before it counts. 1.5 leaves a chance of
/// one in fifteen to either side for one quantity; a cause needs several.
pub const CHANCE: f64 = 1.5;

/// Seconds over which adjacent intervals count as one observation: counters of a loaded server are
/// correlated for as long as a write-back or a checkpoint takes.
pub const BLOCK_S: f64 = 5.0;

/// Mean of a quantity over rows, with its signals' negligible amounts as a floor, so that ratios of
/// almost nothing stay near 1. `None` if it was not recorded or has no value in these rows.
#[must_use]
pub fn mean(quantity: &Quantity, rows: &Rows) -> Option<f64> {
    let mut over = total(quantity.over, rows)?;
    if !quantity.less.is_empty() {
        for (over, less) in over.iter_mut().zip(total(quantity.less, rows)?) {
            *over = if over.is_nan() || less.is_nan() { f64::NAN } else { (*over - less).max(0.0) };
        }
    }
    if quantity.per.is_empty() {
        let known: Vec<f64> = over.into_iter().filter(|value| value.is_finite()).collect();
        return (!known.is_empty()).then(|| average(known, quantity.bursts));
    }
    let per = total(quantity.per, rows)?;
    let (over, per): (Vec<f64>, Vec<f64>) =
        over.into_iter().zip(per).filter(|(over, per)| over.is_finite() && per.is_finite()).unzip();
    if over.is_empty() {
        return None;
    }
    let (over, per) = (average(over, quantity.bursts), average(per, false));
    Some((over + floor(quantity.over)) / (per + floor(quantity.per)))
}

/// The negligible amount of a quantity: added to both sides of a ratio of means.
#[must_use]
pub fn nothing(quantity: &Quantity) -> f64 {
    if quantity.per.is_empty() { floor(quantity.over) } else { 0.0 }
}

fn floor(signals: &[Signal]) -> f64 {
    signals.iter().map(|signal| signal.nothing()).sum()
}

/// Row by row the sum of signals; `None` if one of them was not recorded.
fn total(signals: &[Signal], rows: &Rows) -> Option<Vec<f64>> {
    let mut sum = vec![0.0; rows.numbers().len()];
    for signal in signals {
        for (sum, value) in sum.iter_mut().zip(rows.values(*signal)?) {
            *sum += value;
        }
    }
    Some(sum)
}

fn average(mut values: Vec<f64>, bursts: bool) -> f64 {
    if !bursts {
        winsorise(&mut values);
    }
    plain_mean(&values)
}

/// Mean of values; 0 for none.
#[must_use]
pub fn plain_mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let count = values.len() as f64;
    values.iter().sum::<f64>() / count
}

/// Clips the extremes to the values next to them, in place.
fn winsorise(values: &mut [f64]) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = (sorted.len() as f64 * CLIPPED).ceil() as usize;
    if sorted.len() < 2 * cut + 1 {
        return;
    }
    let (low, high) = (sorted[cut], sorted[sorted.len() - 1 - cut]);
    for value in values {
        *value = value.clamp(low, high);
    }
}

/// Standard deviation of values around their mean; 0 for fewer than two.
#[must_use]
pub fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = plain_mean(values);
    let free = (values.len() - 1) as f64;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / free).sqrt()
}

/// The value below which a share of the known values lies; `None` without any.
#[must_use]
pub fn percentile(values: &[f64], share: f64) -> Option<f64> {
    let mut known: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    known.sort_by(f64::total_cmp);
    of_sorted(&known, share)
}

/// The same for known values in order.
#[must_use]
pub fn of_sorted(values: &[f64], share: f64) -> Option<f64> {
    let place = (share * values.len() as f64) as usize;
    values.get(place.min(values.len().saturating_sub(1))).copied()
}
