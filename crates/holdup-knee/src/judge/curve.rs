//! The curve of response time over offered rate, and the knee on it.
//!
//! `R(rate) = base (1 + a w(u))`, `u = rate / capacity` (see [`Curve`]). Its elasticity `d ln R / d
//! ln rate` rises from 0 without bound, so exactly one rate has elasticity 1: the knee. As `a` goes
//! to 0, for a service in which nothing varies, the knee goes to the capacity. With `a` and `k`
//! from theory the knee of M/M/c, M/D/c and D/M/c with 1 to 32 workers is within 1 % of the exact
//! one.
//!
//! The fit estimates four logarithms by least squares. Weights that fall beyond two standard errors
//! (as P. J. Huber, "Robust estimation of a location parameter", 1964, but faster) limit the
//! influence of disturbed steps. Prior knowledge from theory counts as weak further observations: a
//! service with c = capacity times base workers has `k` near `sqrt(2 (c + 1)) - 1` and `a` near `V
//! / c`. Many exact steps overrule it; with few requests it determines the answer.

use crate::Curve;
use crate::judge::variation::Variation;
use crate::statistics::{Random, Solution, cholesky, inverse, minimise};

/// One observation to fit: a rate, and the mean response time there, seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation {
    pub rate: f64,
    pub response: f64,
    /// Its relative standard error, as estimated from its seconds.
    pub own_error: f64,
    /// A further relative error, because it is known to be disturbed.
    pub disturbed: f64,
    /// Measured time, seconds.
    pub seconds: f64,
}

/// A fitted curve.
#[derive(Clone, Debug)]
pub(crate) struct Fit {
    pub curve: Curve,
    /// Rate at which the elasticity is 1, with its interval.
    pub knee: (f64, f64, f64),
}

/// Least relative error of a step's response time: the machine's own noise.
const ERROR_LEAST: f64 = 0.02;
/// Residuals beyond this many standard errors count less, by the square.
const FAR: f64 = 2.0;
/// Standard errors of the prior for `ln a` and `ln k`: real services are not exactly the queues of
/// theory.
const A_SPREAD: f64 = 0.5;
const K_SPREAD: f64 = 0.3;

impl Curve {
    /// Mean response time at a rate, seconds; infinite from the capacity on.
    pub(crate) fn response(&self, rate: f64) -> f64 {
        let u = rate / self.capacity;
        if u >= 1.0 { f64::INFINITY } else { self.base_ns * 1e-9 * self.stretch(u) }
    }

    /// Response time relative to that without load, at a share of the capacity.
    fn stretch(&self, u: f64) -> f64 {
        1.0 + self.a * u.powf(self.k) * (-self.onset * (1.0 - u) / u).exp() / (1.0 - u)
    }

    /// `d ln R / d ln rate` at a share of the capacity.
    fn elasticity(&self, u: f64) -> f64 {
        let waiting = self.stretch(u) - 1.0;
        waiting / (1.0 + waiting) * (self.k + self.onset / u + u / (1.0 - u))
    }

    /// The rate at which response time begins to grow faster than load.
    pub fn knee(&self) -> f64 {
        let (mut low, mut high) = (1e-6, 1.0 - 1e-9);
        for _ in 0..40 {
            let u = 0.5 * (low + high);
            if self.elasticity(u) < 1.0 { low = u } else { high = u }
        }
        self.capacity * 0.5 * (low + high)
    }
}

/// Fits the curve. `capacity` is known independently: value and relative standard error.
pub(crate) fn fit(observed: &[Observation], capacity: Option<(f64, f64)>, variation: Variation) -> Option<Fit> {
    let (half_sum, onset) = (variation.half_sum(), variation.onset());
    // Little variation is known less precisely: the machine adds about as much.
    let a_spread = A_SPREAD * (1.0 + (0.1 / half_sum).max(1.0).ln());
    let highest = observed.iter().map(|one| one.rate).fold(0.0, f64::max);
    let fastest = observed.iter().map(|one| one.response).fold(f64::MAX, f64::min);
    if observed.len() < 2 || highest <= 0.0 || fastest <= 0.0 {
        return None;
    }
    let (centre, spread) = capacity.unwrap_or((2.0 * highest, 1.0));
    let bounds = [
        ((0.2 * fastest).ln(), (3.0 * fastest).ln()),
        ((centre * (-4.0 * spread).exp()).ln(), (centre * (4.0 * spread).exp()).ln()),
        (1e-6_f64.ln(), 30_f64.ln()),
        (0.2_f64.ln(), 40_f64.ln()),
    ];
    let steepness = |workers: f64| ((2.0 * (workers + 1.0)).sqrt() - 1.0).ln();
    let residuals = |at: &[f64; 4], scales: &[Scale], out: &mut Vec<f64>| {
        out.clear();
        let curve = curve_from_logarithms(at, onset);
        out.extend(observed.iter().zip(scales).map(|(one, scale)| scale.weight.sqrt() * scale.residual(&curve, one)));
        let workers = (curve.capacity * curve.base_ns * 1e-9).max(1.0);
        out.push((at[1] - centre.ln()) / spread);
        out.push((at[3] - steepness(workers)) / K_SPREAD);
        out.push((at[2] - (half_sum / workers).ln()) / a_spread);
    };
    let workers = (centre * fastest).max(1.0);
    let theory = [fastest.ln(), centre.ln(), (half_sum / workers).ln(), steepness(workers)];
    let is_little = variation.is_little();
    let mut scales: Vec<Scale> = observed
        .iter()
        .map(|one| Scale::for_observation(&curve_from_logarithms(&theory, onset), one, &variation, is_little))
        .collect();
    let mut best: Option<Solution<4>> = None;
    for round in 0..ROUNDS {
        let run = |start: [f64; 4]| minimise(start, bounds, |at, out| residuals(at, &scales, out));
        let starts: Vec<[f64; 4]> = match &best {
            None => [1e-3, 0.1, half_sum.max(0.02), 3.0 * half_sum.max(0.02)]
                .into_iter()
                .map(|a| [fastest.ln(), centre.ln(), (a / workers).ln(), steepness(workers)])
                .collect(),
            Some(solution) => vec![solution.at],
        };
        best = starts.into_iter().map(run).min_by(|a, b| a.cost.total_cmp(&b.cost));
        if round + 1 < ROUNDS {
            let at = best.as_ref()?.at;
            let curve = curve_from_logarithms(&at, onset);
            // With much variation, use the errors of theory. Those of a curve that is low by chance
            // would be too small, and points above it would look disturbed.
            let workers = (curve.capacity * curve.base_ns * 1e-9).max(1.0);
            let expected = [at[0], at[1], (half_sum / workers).ln(), steepness(workers)];
            for (scale, one) in scales.iter_mut().zip(observed) {
                *scale = match is_little {
                    true => Scale::for_observation(&curve, one, &variation, round == 0),
                    false => Scale::for_observation(&curve_from_logarithms(&expected, onset), one, &variation, false),
                };
                let away = scale.residual(&curve, one);
                scale.weight = weight(is_little, away);
            }
        }
    }
    let best = best?;
    let curve = curve_from_logarithms(&best.at, onset);
    let scatter = scatter(observed, &scales, &curve);
    let knee = curve.knee();
    let (low, high) = interval(&best, scatter, &bounds, onset, |at, out| residuals(at, &scales, out))
        .unwrap_or((0.5 * knee, 1.5 * knee));
    Some(Fit { curve, knee: (knee, low.min(knee), high.max(knee)) })
}

/// The weight of a point that is `away` from the curve, in its own errors. Disturbances only add
/// time, so fast points are right. With variable times, either side may be chance.
fn weight(is_little: bool, away: f64) -> f64 {
    let bound = match (is_little, away > 0.0) {
        (true, true) => FAR,
        (true, false) => f64::MAX,
        (false, true) => 1.75 * FAR,
        (false, false) => 2.5 * FAR,
    };
    if away.abs() <= bound { 1.0 } else { (bound / away.abs()).powi(2) }
}

/// Scatter beyond the errors of the steps themselves, which widens the interval.
fn scatter(observed: &[Observation], scales: &[Scale], curve: &Curve) -> f64 {
    let squares = observed.iter().zip(scales).map(|(one, scale)| scale.weight * scale.residual(curve, one).powi(2));
    (squares.sum::<f64>() / (observed.len() as f64 - 2.0).max(1.0)).max(1.0)
}

/// Number of services until a queue has forgotten its initial state, at a share of its capacity: `1
/// / (1 - sqrt(u))^2` (M/M/1; Morse 1955).
pub(crate) fn memory(u: f64) -> f64 {
    (1.0 - u.clamp(0.0, 0.999).sqrt()).powi(-2)
}

fn curve_from_logarithms(at: &[f64; 4], onset: f64) -> Curve {
    Curve { base_ns: at[0].exp() * 1e9, capacity: at[1].exp(), a: at[2].exp(), k: at[3].exp(), onset }
}

/// Rounds of fitting: each takes its errors and weights from the curve of the round before.
const ROUNDS: usize = 5;

/// Expected error of an observation, by the curve so far. Errors from the observations themselves
/// would give those that are low by chance a small error and a large weight.
#[derive(Clone, Copy, Debug)]
struct Scale {
    expected: f64,
    error: f64,
    weight: f64,
    /// Differences of logarithms: less exact, but an outlier cannot pull the first curve towards
    /// itself.
    is_logarithmic: bool,
}

impl Scale {
    /// Single responses differ, and waiting times are correlated over the time in which the queue
    /// forgets, `(1 + u) / (1 - u)^2` services (exact for M/M/1: P. M. Morse, "Stochastic
    /// properties of waiting lines", 1955). Only a share `p` of requests waits at all, so the
    /// squared variation of the wait is `(2 - p) / p`.
    fn for_observation(curve: &Curve, one: &Observation, variation: &Variation, is_logarithmic: bool) -> Self {
        let u = (one.rate / curve.capacity).min(0.98);
        let stretch = curve.stretch(u);
        let waiting = 1.0 - 1.0 / stretch;
        let waits = u.powf(curve.k).clamp(0.02, 1.0);
        let memory = (1.0 + u) / (1.0 - u).powi(2) / (curve.capacity * one.seconds);
        let long = variation.half_sum().min(1.0) * 2.0 * memory * (2.0 - waits) / waits;
        let luck = (variation.service / (one.rate * one.seconds).max(1.0) + waiting.powi(2) * long).sqrt().min(0.6);
        let own = if variation.is_little() { 0.7 * one.own_error } else { 0.0 };
        let error = luck.max(own).hypot(one.disturbed).hypot(ERROR_LEAST);
        Self { expected: curve.base_ns * 1e-9 * stretch, error, weight: 1.0, is_logarithmic }
    }

    fn residual(&self, curve: &Curve, one: &Observation) -> f64 {
        let u = (one.rate / curve.capacity).min(0.999);
        let response = curve.base_ns * 1e-9 * curve.stretch(u);
        if self.is_logarithmic {
            (one.response / response).ln() / self.error
        } else {
            (one.response - response) / (self.expected * self.error)
        }
    }
}

/// The interval of 95 % of the knees of curves around the fitted one. They are drawn from the
/// normal distribution of the fit, and each draw is weighted by how well it really fits (importance
/// sampling; where `a` is almost 0 the normal distribution is far off).
fn interval(
    best: &Solution<4>,
    scatter: f64,
    bounds: &[(f64, f64); 4],
    onset: f64,
    mut residuals: impl FnMut(&[f64; 4], &mut Vec<f64>),
) -> Option<(f64, f64)> {
    let factor = cholesky(&inverse(&best.information, scatter)?);
    let mut random = Random::new(0x6b6e_6565);
    let mut out = Vec::new();
    let mut knees: Vec<(f64, f64)> = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        let draw: [f64; 4] = std::array::from_fn(|_| random.normal());
        let mut at = best.at;
        for row in 0..4 {
            at[row] += (0..=row).map(|column| factor[row][column] * draw[column]).sum::<f64>();
        }
        if at.iter().zip(bounds).any(|(value, (low, high))| value < low || value > high) {
            continue;
        }
        residuals(&at, &mut out);
        let cost = 0.5 * out.iter().map(|one| one * one).sum::<f64>();
        let weight = 0.5 * draw.iter().map(|one| one * one).sum::<f64>() - (cost - best.cost) / scatter;
        knees.push((curve_from_logarithms(&at, onset).knee(), weight.min(5.0).exp()));
    }
    knees.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = knees.iter().map(|knee| knee.1).sum();
    let at = |share: f64| {
        let mut sum = 0.0;
        knees.iter().find(|knee| {
            sum += knee.1;
            sum >= share * total
        })
    };
    Some((at(0.025)?.0, at(0.975)?.0))
}

/// Draws around the fitted curve.
const DRAWS: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    const POISSON: Variation = Variation { arrivals: 1.0, service: 1.0 };
    const NONE: Variation = Variation { arrivals: 0.0, service: 0.0 };

    fn observe(response: impl Fn(f64) -> f64) -> Vec<Observation> {
        [10.0, 30.0, 50.0, 70.0, 85.0, 93.0]
            .into_iter()
            .map(|rate| Observation {
                rate,
                response: response(rate),
                own_error: 0.02,
                disturbed: 0.0,
                seconds: 1_000.0,
            })
            .collect()
    }

    #[test]
    fn one_exponential_worker_has_its_knee_at_half() {
        let fit = fit(&observe(|rate| 1.0 / (100.0 - rate)), Some((100.0, 0.01)), POISSON).unwrap();
        assert!((fit.knee.0 - 50.0).abs() < 1.5, "{fit:?}");
        assert!(fit.knee.1 < 50.0 && fit.knee.2 > 50.0);
    }

    #[test]
    fn theory_is_overruled_by_exact_steps() {
        let fit = fit(&observe(|rate| 1.0 / (100.0 - rate)), Some((100.0, 0.01)), NONE).unwrap();
        assert!((fit.knee.0 - 50.0).abs() < 10.0, "{fit:?}");
    }

    #[test]
    fn theory_alone_has_the_exact_knee() {
        // Poisson arrivals, 8 workers, constant service: 0.8014 of the capacity (Kiefer and
        // Wolfowitz's recursion).
        let curve = Curve { base_ns: 8e7, capacity: 100.0, a: 0.5 / 8.0, k: 18_f64.sqrt() - 1.0, onset: 0.0 };
        assert!((curve.knee() - 80.14).abs() < 0.5);
        // Evenly spaced arrivals, 4 workers, exponential service: 0.7467.
        let variation = Variation { arrivals: 0.0, service: 1.0 };
        let a = variation.half_sum() / 4.0;
        let curve = Curve { base_ns: 4e7, capacity: 100.0, a, k: 10_f64.sqrt() - 1.0, onset: variation.onset() };
        assert!((curve.knee() - 74.67).abs() < 0.8);
    }

    #[test]
    fn where_nothing_varies_the_knee_is_the_capacity() {
        let fit = fit(&observe(|_| 0.01), Some((100.0, 0.01)), NONE).unwrap();
        assert!(fit.knee.0 > 95.0 && fit.knee.0 <= 102.0, "{fit:?}");
    }

    #[test]
    fn a_disturbed_step_does_not_move_the_knee_far() {
        let mut observed = observe(|rate| 1.0 / (100.0 - rate));
        observed[1].response *= 2.0;
        observed.extend(observe(|rate| 1.0 / (100.0 - rate)));
        let fit = fit(&observed, Some((100.0, 0.01)), POISSON).unwrap();
        assert!((fit.knee.0 - 50.0).abs() < 5.0, "{fit:?}");
    }
}
