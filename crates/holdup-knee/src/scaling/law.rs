//! The Universal Scalability Law over an amount of a resource: `X(n) = gamma n / (1 + sigma (n - 1)
//! + kappa n (n - 1))` (N. J. Gunther, "Guerrilla Capacity Planning", 2007), n in units. With
//! `kappa = 0` it is Amdahl's law. It is fitted by weighted least squares of the logarithms.
//!
//! Intervals come from fitting plausible measurements, drawn with a fixed seed from the searches'
//! own intervals (B. Efron, "Bootstrap methods", 1979).

use serde::{Deserialize, Serialize};

use super::{CapacityPoint, spread};
use crate::statistics::{Random, minimise, quantile};
use crate::{Estimate, Peak};

/// Resamples: 2.5 % of them are enough to define an end of an interval.
const RESAMPLES: usize = 200;

/// Coherency below this counts as none: it would bend nothing within thousands of units.
const KAPPA_LEAST: f64 = 1e-6;

/// A serial part below this counts as none.
const SIGMA_LEAST: f64 = 1e-6;

/// Chance takes values further from the law than this once in twenty times: quantile of a standard
/// normal.
const ONCE_IN_TWENTY: f64 = 1.645;

/// The law as fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalingLaw {
    /// What `n = 1` stands for, in the caller's values: 1, or the smallest value if that is less.
    pub unit: f64,
    /// Capacity with one unit, requests per second.
    pub gamma: Estimate,
    /// Contention: the share that is serial.
    pub sigma: Estimate,
    /// Coherency: the cost of each pair, which makes throughput fall again.
    pub kappa: Estimate,
    /// The value beyond which more of the resource carries less, and the rate there; none if
    /// coherency may be zero.
    pub peak: Option<Peak>,
    /// Whether the measurements agree with the law; none with three values, which three parameters
    /// always fit.
    pub is_met: Option<bool>,
}

/// Fits the law to `given`, sorted; none with fewer than three values.
pub(super) fn law(given: &[CapacityPoint]) -> Option<ScalingLaw> {
    if given.len() < 3 {
        return None;
    }
    let unit = given.first()?.value.min(1.0);
    let points: Vec<Point> = given
        .iter()
        .map(|one| Point { n: one.value / unit, carried: one.carried.value, spread: spread(&one.carried) })
        .collect();
    let best = fit(&points, None);
    let mut random = Random::new(0x0073_6361_6c65);
    let draws: Vec<[f64; 3]> = (0..RESAMPLES)
        .map(|_| {
            let drawn: Vec<Point> = points
                .iter()
                .map(|point| Point {
                    carried: carried(&best, point.n) * (point.spread * random.normal()).exp(),
                    ..*point
                })
                .collect();
            fit(&drawn, Some(best))
        })
        .collect();
    let of = |value: f64, figure: &dyn Fn(&[f64; 3]) -> f64| {
        let all: Vec<f64> = draws.iter().map(figure).filter(|figure| figure.is_finite()).collect();
        Estimate { value, low: quantile(&all, 0.025).min(value), high: quantile(&all, 0.975).max(value) }
    };
    let kappa = of(best[2], &|at| at[2]);
    let peak = (kappa.low > KAPPA_LEAST).then(|| Peak {
        concurrency: of(unit * peak_at(&best), &|at| unit * peak_at(at)),
        rate: of(carried(&best, peak_at(&best)), &|at| carried(at, peak_at(at))),
    });
    // A parameter at its lower bound was not fitted to the values.
    let free = 1 + usize::from(best[1] > SIGMA_LEAST) + usize::from(best[2] > KAPPA_LEAST);
    let degrees = points.len().saturating_sub(free) as f64;
    let squares: f64 = points.iter().map(|point| point.off(&best).powi(2)).sum();
    let is_met = (points.len() > 3).then(|| squares <= squares_most(degrees));
    let (gamma, sigma) = (of(best[0], &|at| at[0]), of(best[1], &|at| at[1]));
    Some(ScalingLaw { unit, gamma, sigma, kappa, peak, is_met })
}

/// The sum of squares, each in standard deviations, that chance exceeds once in twenty times: the
/// quantile of the chi-square distribution (E. Wilson, M. Hilferty, "The Distribution of
/// Chi-Square", 1931).
fn squares_most(degrees: f64) -> f64 {
    let ninth = 2.0 / (9.0 * degrees);
    degrees * (1.0 - ninth + ONCE_IN_TWENTY * ninth.sqrt()).powi(3)
}

#[derive(Clone, Copy)]
struct Point {
    /// Units.
    n: f64,
    /// Requests per second.
    carried: f64,
    /// Standard deviation of its logarithm.
    spread: f64,
}

impl Point {
    /// Its distance from the law, in standard deviations.
    fn off(&self, at: &[f64; 3]) -> f64 {
        (self.carried / carried(at, self.n)).ln() / self.spread
    }
}

pub(super) fn carried(at: &[f64; 3], n: f64) -> f64 {
    at[0] * n / (1.0 + at[1] * (n - 1.0) + at[2] * n * (n - 1.0)).max(1e-9)
}

fn peak_at(at: &[f64; 3]) -> f64 {
    ((1.0 - at[1]).max(0.0) / at[2].max(1e-12)).sqrt()
}

/// The parameters for `points`; searched only from `near` if that is given.
fn fit(points: &[Point], near: Option<[f64; 3]>) -> [f64; 3] {
    let rate = points.iter().map(|point| point.carried / point.n).fold(0.0, f64::max);
    let starts: Vec<[f64; 3]> = match near {
        Some(near) => vec![[near[0], near[1].max(1e-2), near[2].max(1e-4)]],
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
