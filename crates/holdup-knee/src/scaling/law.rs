//! The Universal Scalability Law over an amount of a resource, n in units. With `kappa = 0` it is
//! Amdahl's law.
//!
//! Intervals come from fitting plausible measurements, drawn with a fixed seed from the searches'
//! own intervals (B. Efron, "Bootstrap methods", 1979).

use serde::{Deserialize, Serialize};

use super::{CapacityPoint, spread};
use crate::statistics::Random;
use crate::statistics::scalability::{Law, Measured, RESAMPLES, carried, fit, interval, peak};
use crate::{Estimate, Peak};

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
    let points: Vec<Measured> = given
        .iter()
        .map(|one| Measured { n: one.value / unit, carried: one.carried.value, spread: spread(&one.carried) })
        .collect();
    let best = fit(&points, None);
    let mut random = Random::new(0x0073_6361_6c65);
    let near = [best[0], best[1].max(1e-2), best[2].max(1e-4)];
    let draws: Vec<Law> = (0..RESAMPLES)
        .map(|_| {
            let drawn = |point: &Measured| Measured {
                carried: carried(&best, point.n) * (point.spread * random.normal()).exp(),
                ..*point
            };
            fit(&points.iter().map(drawn).collect::<Vec<_>>(), Some(near))
        })
        .collect();
    let [gamma, sigma, kappa] = [0, 1, 2].map(|parameter: usize| interval(&best, &draws, |law| law[parameter]));
    let peak = (kappa.low > KAPPA_LEAST).then(|| peak(&best, &draws, unit));
    // A parameter at its lower bound was not fitted to the values.
    let free = 1 + usize::from(best[1] > SIGMA_LEAST) + usize::from(best[2] > KAPPA_LEAST);
    let degrees = points.len().saturating_sub(free) as f64;
    let squares: f64 = points.iter().map(|point| point.off(&best).powi(2)).sum();
    let is_met = (points.len() > 3).then(|| squares <= squares_most(degrees));
    Some(ScalingLaw { unit, gamma, sigma, kappa, peak, is_met })
}

/// The sum of squares, each in standard deviations, that chance exceeds once in twenty times: the
/// quantile of the chi-square distribution (E. Wilson, M. Hilferty, "The Distribution of
/// Chi-Square", 1931).
fn squares_most(degrees: f64) -> f64 {
    let ninth = 2.0 / (9.0 * degrees);
    degrees * (1.0 - ninth + ONCE_IN_TWENTY * ninth.sqrt()).powi(3)
}
