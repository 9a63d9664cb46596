//! The Universal Scalability Law over throughput and concurrency of the steps.
//!
//! Concurrency follows from Little's law, `N = X R` (J. D. C. Little, "A proof for the queuing
//! formula L = lambda W", Operations Research 9, 1961), with throughput and mean response time of
//! steps in which the service kept up. Intervals come from resampling the residuals (B. Efron,
//! "Bootstrap methods", 1979) with a fixed seed.

use crate::judge::Analysis;
use crate::statistics::scalability::{Law, Measured, RESAMPLES, carried, fit, interval, peak};
use crate::statistics::{Random, mean};
use crate::{Estimate, StepResult, Usl};

/// A narrower range of concurrency does not determine the law.
const RANGE_LEAST: f64 = 4.0;

/// Least share of variance explained. A measured service that follows the law reached 0.9998; plain
/// queues reached 0.80 to 0.98.
const R2_LEAST: f64 = 0.985;

/// Fits the law; none with fewer than four different concurrencies.
pub(crate) fn usl(analysis: &Analysis) -> Option<Usl> {
    let points: Vec<Measured> = analysis
        .visits
        .iter()
        .zip(&analysis.held)
        .filter(|(visit, held)| matches!(held, StepResult::Yes | StepResult::Unclear) && visit.achieved > 0.0)
        .filter_map(|(visit, _)| Some(point(visit.achieved * visit.response?, visit.achieved)))
        .filter(|point| point.n > 0.0)
        .collect();
    fit_points(&points)
}

/// All steps count alike.
fn point(n: f64, carried: f64) -> Measured {
    Measured { n, carried, spread: 1.0 }
}

fn fit_points(points: &[Measured]) -> Option<Usl> {
    if points.len() < 4 {
        return None;
    }
    let best = fit(points, None);
    let mut random = Random::new(0x0075_736c);
    // The residuals, scaled up for the three fitted parameters.
    let scale = (points.len() as f64 / (points.len() as f64 - 3.0)).sqrt();
    let left: Vec<f64> = points.iter().map(|point| scale * point.off(&best)).collect();
    let near = [best[0], best[1].max(1e-4), best[2].max(1e-7)];
    let draws: Vec<Law> = (0..RESAMPLES)
        .map(|_| {
            let drawn = |one: &Measured| point(one.n, carried(&best, one.n) * left[random.below(left.len())].exp());
            fit(&points.iter().map(drawn).collect::<Vec<_>>(), Some(near))
        })
        .collect();
    let [gamma, alpha, beta] = [0, 1, 2].map(|parameter: usize| interval(&best, &draws, |law| law[parameter]));
    let peak = (beta.low > 1e-7).then(|| peak(&best, &draws, 1.0));
    let centre = mean(&points.iter().map(|point| point.carried).collect::<Vec<_>>());
    let total: f64 = points.iter().map(|point| (point.carried - centre).powi(2)).sum();
    let residual: f64 = points.iter().map(|point| (point.carried - carried(&best, point.n)).powi(2)).sum();
    let r2 = if total > 0.0 { 1.0 - residual / total } else { 0.0 };
    let why_not = why_not(points, &alpha, &beta).or_else(|| {
        let off = (r2 < R2_LEAST).then_some(100.0 * (1.0 - r2))?;
        Some(format!(
            "{off:.0} % of the variance is not explained by the law, as when requests queue for a few servers"
        ))
    });
    Some(Usl { gamma, alpha, beta, peak, r2, is_determined: why_not.is_none(), why_not })
}

fn why_not(points: &[Measured], alpha: &Estimate, beta: &Estimate) -> Option<String> {
    let low = points.iter().map(|point| point.n).fold(f64::MAX, f64::min);
    let high = points.iter().map(|point| point.n).fold(0.0, f64::max);
    if high / low < RANGE_LEAST || high < 1.5 {
        return Some(format!("concurrency was {low:.2} to {high:.2} only"));
    }
    // Neither parameter bends the curve: so far the law is a straight line.
    let bend = |alpha: f64, beta: f64| alpha * (high - 1.0) + beta * high * (high - 1.0);
    if bend(alpha.value, beta.value) < 0.1 {
        return Some("throughput is still proportional to concurrency".to_owned());
    }
    let is_wide = |one: &Estimate| one.high - one.low > 2.0 * one.value.max(1e-9);
    (is_wide(alpha) && is_wide(beta)).then(|| "contention and coherency can't be told apart".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(law: Law, noise: f64, seed: u64) -> Vec<Measured> {
        let mut random = Random::new(seed);
        [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 48.0]
            .into_iter()
            .map(|n| point(n, carried(&law, n) * (1.0 + noise * random.normal())))
            .collect()
    }

    #[test]
    fn parameters_are_found_again() {
        let law = fit_points(&sampled([100.0, 0.03, 0.0005], 0.0, 1)).unwrap();
        assert!((law.gamma.value - 100.0).abs() < 0.5 && (law.alpha.value - 0.03).abs() < 1e-3, "{law:?}");
        assert!((law.beta.value - 0.0005).abs() < 3e-5 && law.is_determined && law.r2 > 0.999, "{law:?}");
        assert!((law.peak.unwrap().concurrency.value - (0.97_f64 / 0.0005).sqrt()).abs() < 2.0);
    }

    #[test]
    fn intervals_cover_as_often_as_they_say() {
        let covered = (0..40)
            .filter(|seed| {
                let law = fit_points(&sampled([100.0, 0.03, 0.0005], 0.03, *seed)).unwrap();
                law.gamma.low <= 100.0 && law.gamma.high >= 100.0
            })
            .count();
        assert!(covered >= 32, "{covered} of 40");
    }

    #[test]
    fn a_straight_line_is_no_law() {
        let law = fit_points(&sampled([100.0, 0.0, 0.0], 0.01, 1)).unwrap();
        assert!(!law.is_determined && law.why_not.unwrap().contains("proportional"));
        assert_eq!(fit_points(&[point(1.0, 1.0); 3]), None);
    }
}
