//! The Universal Scalability Law: `X(n) = gamma n / (1 + sigma (n - 1) + kappa n (n - 1))` (N. J.
//! Gunther, "Guerrilla Capacity Planning", 2007), over concurrency or over an amount of a resource.
//! It is fitted by weighted least squares of the logarithms, with `sigma` and `kappa` not negative.

use super::{minimise, quantile};
use crate::{Estimate, Peak};

/// `gamma`, `sigma` and `kappa`.
pub(crate) type Law = [f64; 3];

/// Resamples: 2.5 % of them are enough to define an end of an interval.
pub(crate) const RESAMPLES: usize = 200;

/// What was measured.
#[derive(Clone, Copy)]
pub(crate) struct Measured {
    /// Requests in the system, or units of the resource.
    pub n: f64,
    /// Requests per second.
    pub carried: f64,
    /// Standard deviation of its logarithm.
    pub spread: f64,
}

impl Measured {
    /// Its distance from the law, in standard deviations.
    pub fn off(&self, law: &Law) -> f64 {
        (self.carried / carried(law, self.n)).ln() / self.spread
    }
}

/// Requests per second at `n`.
pub(crate) fn carried(law: &Law, n: f64) -> f64 {
    law[0] * n / (1.0 + law[1] * (n - 1.0) + law[2] * n * (n - 1.0)).max(1e-9)
}

/// The law for `points`; searched only from `near` if that is given.
pub(crate) fn fit(points: &[Measured], near: Option<Law>) -> Law {
    let rate = points.iter().map(|point| point.carried / point.n).fold(0.0, f64::max);
    let starts = match near {
        Some(near) => vec![near],
        None => vec![[rate, 0.5, 1e-4], [rate, 0.05, 1e-2], [rate, 0.01, 1e-5]],
    };
    let solutions = starts.into_iter().map(|start| {
        // gamma relative to its initial value, so that all parameters have moderate sizes.
        let unit = start[0].max(1e-12);
        let bounds = [(0.05, 20.0), (0.0, 1.0), (0.0, 1.0)];
        let solution = minimise([1.0, start[1], start[2]], bounds, |at, out| {
            let law = [at[0] * unit, at[1], at[2]];
            out.clear();
            out.extend(points.iter().map(|point| point.off(&law)));
        });
        ([solution.at[0] * unit, solution.at[1], solution.at[2]], solution.cost)
    });
    solutions.min_by(|a, b| a.1.total_cmp(&b.1)).map_or([rate, 0.0, 0.0], |best| best.0)
}

/// A figure of the law, with the interval of 95 % of those drawn.
pub(crate) fn interval(best: &Law, draws: &[Law], figure: impl Fn(&Law) -> f64) -> Estimate {
    let value = figure(best);
    let all: Vec<f64> = draws.iter().map(figure).filter(|figure| figure.is_finite()).collect();
    Estimate { value, low: quantile(&all, 0.025).min(value), high: quantile(&all, 0.975).max(value) }
}

/// Where it carries most, in the caller's `unit`.
pub(crate) fn peak(best: &Law, draws: &[Law], unit: f64) -> Peak {
    let at = |law: &Law| ((1.0 - law[1]).max(0.0) / law[2].max(1e-12)).sqrt();
    Peak {
        concurrency: interval(best, draws, |law| unit * at(law)),
        rate: interval(best, draws, |law| carried(law, at(law))),
    }
}
