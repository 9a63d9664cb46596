//! Error bars: how far a figure of a window may be off, and what the difference between two windows
//! shows. A difference inside its band is evidence neither for a change nor against it.
//!
//! Three errors make up the band of a rate, a share or a mean, each as a part of the figure; they
//! are independent, so their squares add up:
//!
//! - **Counts.** `n` events that come one by one differ by √n from window to window (Poisson).
//!   Requests and calls come in bursts: the variance is [`BURSTS`] times as large. So √(2/n).
//! - **Means.** The mean of `n` values that differ as much as they are large (as the times of an
//!   exponential distribution do) is off by 1/√n.
//! - **Reads.** A counter is read `k` times in a window, so its growth belongs to a window that is
//!   off by up to an interval: 1/k.
//!
//! A factor between two windows has both errors: its band is `factor · exp(±1.645 · √(e₁² + e₂²))`,
//! which holds in nineteen cases of twenty on each side (normal in its logarithm).

use crate::Counter;

/// Variance of counts over that of single events.
const BURSTS: f64 = 2.0;

/// Standard errors that one case in twenty exceeds on one side.
const SIDE: f64 = 1.645;

/// A figure of a window: a rate, a share or a mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// The figure.
    pub value: f64,
    /// Its standard error, as a part of it.
    pub error: f64,
}

impl Band {
    /// A figure that is known by a count of `events`: error √([`BURSTS`]/events).
    pub fn of_count(value: f64, events: f64) -> Self {
        Self { value, error: (BURSTS / events.max(1.0)).sqrt() }
    }

    /// The mean of `count` values: error 1/√count.
    pub fn of_mean(value: f64, count: f64) -> Self {
        Self { value, error: (1.0 / count.max(1.0)).sqrt() }
    }

    /// The growth of a counter of bytes or seconds per second: error 1/reads.
    pub fn of_counter(counter: &Counter) -> Self {
        Self { value: counter.rate(), error: 0.0 }.read(counter.reads)
    }

    /// The same with the error of a window at whose edges a counter was read, `reads` intervals
    /// long.
    pub fn read(self, reads: usize) -> Self {
        Self { error: self.error.hypot(1.0 / reads.max(1) as f64), ..self }
    }

    /// The change since `before`.
    pub fn since(self, before: Self) -> Change {
        Change { factor: self.value / before.value.max(1e-9), error: self.error.hypot(before.error) }
    }
}

/// A figure over the same of an earlier window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The factor.
    pub factor: f64,
    /// Standard error of its logarithm.
    error: f64,
}

impl Change {
    /// The factor that is exceeded in nineteen cases of twenty.
    pub fn least(self) -> f64 {
        self.factor * (-SIDE * self.error).exp()
    }

    /// The factor that is not reached in nineteen cases of twenty.
    pub fn most(self) -> f64 {
        self.factor * (SIDE * self.error).exp()
    }

    /// Whether it rose by `times` or more, and by more than its band.
    pub fn rose(self, times: f64) -> bool {
        self.factor >= times && self.least() > 1.0
    }

    /// Whether its band excludes a rise by `times`. Neither this nor [`Self::rose`]: not known.
    pub fn stayed(self, times: f64) -> bool {
        self.most() < times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_inside_its_band_is_neither_a_rise_nor_none() {
        let change = |now: f64, before: f64| Band::of_count(now, now).since(Band::of_count(before, before));
        let (few, many) = (change(6.0, 3.0), change(600.0, 300.0));
        assert!(!few.rose(1.5) && !few.stayed(1.5), "{few:?}");
        assert!(many.rose(1.5) && !many.stayed(1.5), "{many:?}");
        let same = change(310.0, 300.0);
        assert!(!same.rose(1.5) && same.stayed(1.5), "{same:?}");
        assert!(!change(4.0, 4.0).stayed(1.5), "four calls exclude little");
    }

    #[test]
    fn each_error_has_its_formula() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a}, not {b}");
        close(Band::of_count(5.0, 200.0).error, 0.1);
        close(Band::of_mean(5.0, 100.0).error, 0.1);
        close(Band::of_mean(5.0, 100.0).read(10).error, 0.02_f64.sqrt());
        let change = Band::of_mean(4.0, 1e12).since(Band::of_mean(2.0, 100.0));
        close(change.least(), 2.0 * (-0.1645_f64).exp());
        close(change.most(), 2.0 * 0.1645_f64.exp());
    }
}
