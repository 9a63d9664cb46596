//! How much arrivals and service vary: one of the two inputs of queueing theory.

use crate::judge::visit::Visit;
use crate::statistics::{mean, median};
use crate::{Config, Step, Summary};

/// Squared coefficients of variation: 0 for constant times, 1 for exponential ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variation {
    /// Of the times between arrivals.
    pub arrivals: f64,
    /// Of the service times.
    pub service: f64,
}

/// With fewer responses a second than this, the means of seconds show how single responses vary.
/// With more, the percentiles of seconds do, because the means then vary more by noise of the
/// machine than by chance.
const FEW: u64 = 5;

impl Variation {
    /// From the steps with the lowest rates, where hardly any request waits.
    pub fn from_steps(steps: &[Step], visits: &[&Visit], config: &Config) -> Self {
        let mut low: Vec<&&Visit> =
            visits.iter().filter(|visit| visit.response.is_some() && visit.growth < 0.1).collect();
        low.sort_by(|a, b| a.offered.total_cmp(&b.offered));
        let highest = visits.iter().map(|visit| visit.achieved).fold(0.0, f64::max);
        low.retain(|visit| visit.offered < 0.4 * highest);
        let seconds: Vec<&Summary> = low
            .iter()
            .flat_map(|visit| {
                let all = &steps[visit.step].seconds;
                all[all.len() - visit.seconds..].iter()
            })
            .filter(|second| !second.is_disturbed && second.response.count > 0 && second.response.p50_ns > 0.0)
            .map(|second| &second.response)
            .collect();
        let service = match few(&seconds).into_iter().chain(many(&seconds)).reduce(|a, b| (a.0 + b.0, a.1 + b.1)) {
            Some((sum, weight)) if weight > 0.0 => sum / weight,
            _ => 0.0,
        };
        Self { arrivals: config.arrivals_variation.clamp(0.0, 4.0), service: service.clamp(0.0, 20.0) }
    }

    /// Half their sum: waiting is proportional to it.
    pub fn half_sum(&self) -> f64 {
        (0.5 * (self.arrivals + self.service)).max(1e-4)
    }

    /// Whether hardly anything varies.
    pub fn is_little(&self) -> bool {
        self.half_sum() < 0.1
    }

    /// How much later waiting sets in because arrivals are evenly spaced: `2 (1 - ca)^2 / (3 (ca +
    /// cs))` (W. Kraemer, M. Langenbach-Belz, "Approximate formulae for the delay in the queueing
    /// system GI/G/1", ITC 8, 1976).
    pub fn onset(&self) -> f64 {
        let even = (1.0 - self.arrivals).max(0.0).powi(2);
        // Without any variation it is infinite; beyond 2 the curve is practically rectangular.
        (2.0 * even / (3.0 * (self.arrivals + self.service)).max(1e-3)).min(2.0)
    }
}

/// For seconds with few responses: the spread of their means, times the number of responses. Sum
/// and weight.
fn few(seconds: &[&Summary]) -> Option<(f64, f64)> {
    let some: Vec<(f64, f64)> =
        seconds.iter().filter(|one| one.count < FEW).map(|one| (one.count as f64, one.mean_ns)).collect();
    let count: f64 = some.iter().map(|one| one.0).sum();
    if some.len() < 3 {
        return None;
    }
    let centre = some.iter().map(|one| one.0 * one.1).sum::<f64>() / count;
    let spread: f64 = some.iter().map(|one| one.0 * (one.1 / centre - 1.0).powi(2)).sum();
    Some((spread / (some.len() as f64 - 1.0) * count, count))
}

/// For seconds with more responses: their upper percentiles over their median, as if times were
/// log-normal. Sum and weight.
fn many(seconds: &[&Summary]) -> Option<(f64, f64)> {
    let (mut sigmas, mut weight) = (Vec::new(), 0.0);
    for one in seconds.iter().filter(|one| one.count >= FEW) {
        let count = one.count as f64;
        let sigma = |tail: f64, share: f64| {
            // With few responses the percentile is the largest one, whose expected place is this
            // (G. Blom 1958).
            let place = (((count - 1.0) * share).round() + 1.0 - 0.375) / (count + 0.25);
            ((tail / one.p50_ns).ln() / normal_quantile(place)).clamp(0.0, 2.0)
        };
        sigmas.push(mean(&[sigma(one.p95_ns, 0.95), sigma(one.p99_ns, 0.99)]));
        weight += count;
    }
    // The median: a stall of the machine makes a tail, but not in most seconds.
    (weight > 0.0).then(|| (median(&sigmas).powi(2).exp_m1() * weight, weight))
}

/// Quantile of the normal distribution above its median, to 1 % (H. Shore, "Simple approximations for the inverse cumulative
/// function", Applied Statistics 31, 1982).
fn normal_quantile(share: f64) -> f64 {
    5.5556 * (1.0 - ((1.0 - share) / share).powf(0.1186))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Random;

    fn seconds(count: usize, draw: impl Fn(&mut Random) -> f64) -> Vec<Summary> {
        let mut random = Random::new(3);
        (0..4_000 / count)
            .map(|_| {
                let mut times: Vec<f64> = (0..count).map(|_| 1e6 * draw(&mut random)).collect();
                times.sort_by(f64::total_cmp);
                let at = |share: f64| times[((count - 1) as f64 * share).round() as usize];
                Summary {
                    count: count as u64,
                    mean_ns: mean(&times),
                    p50_ns: at(0.5),
                    p95_ns: at(0.95),
                    p99_ns: at(0.99),
                }
            })
            .collect()
    }

    fn seen(all: &[Summary]) -> f64 {
        let all: Vec<&Summary> = all.iter().collect();
        let (sum, weight) = few(&all).or_else(|| many(&all)).unwrap();
        sum / weight
    }

    #[test]
    fn exponential_times_vary_by_about_1_and_constant_ones_do_not() {
        for count in [1, 3, 8, 20, 100, 1_000] {
            let exponential = seen(&seconds(count, |random| -(1.0 - random.uniform()).ln()));
            assert!((0.7..1.4).contains(&exponential), "{exponential} of {count} a second");
            assert!(seen(&seconds(count, |_| 1.0)) < 1e-9);
        }
    }
}
