//! How much arrivals and service vary: half of what queueing theory needs to know.

use crate::judge::visit::Visit;
use crate::statistics::{mean, median};
use crate::{Config, Step};

/// Squared coefficients of variation: 0 never varies, 1 as much as the exponential distribution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variation {
    /// Of the times between arrivals.
    pub arrivals: f64,
    /// Of the service times.
    pub service: f64,
}

/// With fewer answers a second than this, single answers are seen through the means of seconds; with more, through their
/// percentiles: then the wobble of the machine from second to second is larger than the luck of the draw.
const FEW: f64 = 30.0;

impl Variation {
    /// Of the steps with the lowest rates, where hardly anything waits.
    pub fn of(steps: &[Step], visits: &[&Visit], config: &Config) -> Self {
        let mut low: Vec<&&Visit> =
            visits.iter().filter(|visit| visit.response.is_some() && visit.growth < 0.1).collect();
        low.sort_by(|a, b| a.offered.total_cmp(&b.offered));
        let highest = visits.iter().map(|visit| visit.offered).fold(0.0, f64::max);
        let quiet = low.iter().filter(|visit| visit.offered < 0.2 * highest).count().max(3);
        let (mut by_count, mut freedom, mut by_tail) = (0.0, 0.0, Vec::new());
        for visit in low.into_iter().take(quiet) {
            let step = &steps[visit.step];
            let level = visit.response.unwrap_or(0.0) * 1e9;
            let from = step.seconds.len() - visit.seconds;
            for second in step.seconds[from..].iter().filter(|second| !second.is_disturbed) {
                let (count, summary) = (second.response.count as f64, &second.response);
                if count >= FEW && summary.p50_ns > 0.0 {
                    let deviation = |tail: f64, normal: f64| ((tail / summary.p50_ns).ln() / normal).max(0.0);
                    let (p95, p99) = (deviation(summary.p95_ns, 1.645), deviation(summary.p99_ns, 2.326));
                    by_tail.push(mean(&[p95, p99].map(|sigma| sigma.min(2.0).powi(2).exp_m1())));
                } else if count > 0.0 && level > 0.0 {
                    by_count += count * (summary.mean_ns / level - 1.0).powi(2);
                    freedom += 1.0;
                }
            }
        }
        let service = match by_tail.is_empty() {
            false => median(&by_tail),
            true => by_count / f64::max(freedom - quiet as f64, 1.0),
        };
        Self { arrivals: config.arrivals_variation.clamp(0.0, 4.0), service: service.clamp(0.0, 20.0) }
    }

    /// Half their sum: what waiting is proportional to.
    pub fn half_sum(&self) -> f64 {
        (0.5 * (self.arrivals + self.service)).max(1e-4)
    }

    /// How much later waiting sets in because arrivals are even: `2 (1 - ca)^2 / (3 (ca + cs))`
    /// (W. Kraemer, M. Langenbach-Belz, "Approximate formulae for the delay in the queueing system GI/G/1", ITC 8, 1976).
    pub fn onset(&self) -> f64 {
        let even = (1.0 - self.arrivals).max(0.0).powi(2);
        // With nothing that varies it has no end; beyond 2 the curve is as good as rectangular.
        (2.0 * even / (3.0 * (self.arrivals + self.service)).max(1e-3)).min(2.0)
    }
}
