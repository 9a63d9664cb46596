//! The Universal Scalability Law over throughput and concurrency of the steps.
//!
//! `X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1))`. Concurrency follows from Little's law,
//! `N = X R` (J. D. C. Little, "A proof for the queuing formula L = lambda W", Operations Research
//! 9, 1961), with throughput and mean response time of steps in which the service kept up. It is
//! fitted by least squares of the logarithms of throughput, with `alpha` and `beta` not negative.
//! Intervals come from resampling the residuals (B. Efron, "Bootstrap methods", 1979) with a fixed
//! seed.

use crate::judge::Analysis;
use crate::statistics::{Random, mean, minimise, quantile};
use crate::{Estimate, Peak, StepResult, Usl};

/// Resamples. 2.5 % of them are enough to define an end of an interval.
const RESAMPLES: usize = 200;
/// A narrower range of concurrency does not determine the law.
const RANGE_LEAST: f64 = 4.0;

/// Least share of variance explained. A measured service that follows the law reached 0.9998; plain
/// queues reached 0.80 to 0.98.
const R2_LEAST: f64 = 0.985;

/// Fits the law; none with fewer than four different concurrencies.
pub(crate) fn usl(analysis: &Analysis) -> Option<Usl> {
    let points: Vec<(f64, f64)> = analysis
        .visits
        .iter()
        .zip(&analysis.held)
        .filter(|(visit, held)| matches!(held, StepResult::Yes | StepResult::Unclear) && visit.achieved > 0.0)
        .filter_map(|(visit, _)| Some((visit.achieved * visit.response?, visit.achieved)))
        .filter(|(concurrency, _)| *concurrency > 0.0)
        .collect();
    fit_points(&points)
}

fn fit_points(points: &[(f64, f64)]) -> Option<Usl> {
    if points.len() < 4 {
        return None;
    }
    let best = fit(points);
    let mut random = Random::new(0x0075_736c);
    let mut draws: Vec<[f64; 3]> = Vec::with_capacity(RESAMPLES);
    // The residuals, scaled up for the three fitted parameters.
    let scale = (points.len() as f64 / (points.len() as f64 - 3.0)).sqrt();
    let left: Vec<f64> = points.iter().map(|(n, x)| scale * (x / rate(&best, *n)).ln()).collect();
    for _ in 0..RESAMPLES {
        let sample: Vec<(f64, f64)> =
            points.iter().map(|(n, _)| (*n, rate(&best, *n) * left[random.below(left.len())].exp())).collect();
        draws.push(fit_from(&sample, best));
    }
    let of = |value: f64, figure: fn(&[f64; 3]) -> f64| {
        let all: Vec<f64> = draws.iter().map(figure).filter(|figure| figure.is_finite()).collect();
        Estimate { value, low: quantile(&all, 0.025).min(value), high: quantile(&all, 0.975).max(value) }
    };
    let (gamma, alpha, beta) = (of(best[0], |at| at[0]), of(best[1], |at| at[1]), of(best[2], |at| at[2]));
    let peak = (beta.low > 1e-7).then(|| Peak {
        concurrency: of(peak_at(&best), peak_at),
        rate: of(rate(&best, peak_at(&best)), |at| rate(at, peak_at(at))),
    });
    let centre = mean(&points.iter().map(|point| point.1).collect::<Vec<_>>());
    let total: f64 = points.iter().map(|point| (point.1 - centre).powi(2)).sum();
    let residual: f64 = points.iter().map(|point| (point.1 - rate(&best, point.0)).powi(2)).sum();
    let r2 = if total > 0.0 { 1.0 - residual / total } else { 0.0 };
    let why_not = why_not(points, &alpha, &beta).or_else(|| {
        let off = (r2 < R2_LEAST).then_some(100.0 * (1.0 - r2))?;
        Some(format!(
            "{off:.0} % of the variance is not explained by the law, as when requests queue for a few servers"
        ))
    });
    Some(Usl { gamma, alpha, beta, peak, r2, is_determined: why_not.is_none(), why_not })
}

fn rate(at: &[f64; 3], n: f64) -> f64 {
    at[0] * n / (1.0 + at[1] * (n - 1.0) + at[2] * n * (n - 1.0)).max(1e-9)
}

fn peak_at(at: &[f64; 3]) -> f64 {
    ((1.0 - at[1]).max(0.0) / at[2].max(1e-12)).sqrt()
}

fn why_not(points: &[(f64, f64)], alpha: &Estimate, beta: &Estimate) -> Option<String> {
    let low = points.iter().map(|point| point.0).fold(f64::MAX, f64::min);
    let high = points.iter().map(|point| point.0).fold(0.0, f64::max);
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

fn fit(points: &[(f64, f64)]) -> [f64; 3] {
    let gamma = points.iter().map(|point| point.1 / point.0).fold(0.0, f64::max);
    [[gamma, 0.5, 1e-4], [gamma, 0.05, 1e-2], [gamma, 0.01, 1e-5]]
        .into_iter()
        .map(|start| minimised(points, start))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map_or([gamma, 0.0, 0.0], |best| best.0)
}

fn fit_from(points: &[(f64, f64)], start: [f64; 3]) -> [f64; 3] {
    minimised(points, [start[0], start[1].max(1e-4), start[2].max(1e-7)]).0
}

fn minimised(points: &[(f64, f64)], start: [f64; 3]) -> ([f64; 3], f64) {
    // gamma relative to its initial value, so that all parameters have moderate sizes.
    let unit = start[0].max(1e-12);
    let solution = minimise([1.0, start[1], start[2]], [(0.05, 20.0), (0.0, 1.0), (0.0, 1.0)], |at, out| {
        out.clear();
        let law = [at[0] * unit, at[1], at[2]];
        out.extend(points.iter().map(|(n, x)| (x / rate(&law, *n)).ln()));
    });
    ([solution.at[0] * unit, solution.at[1], solution.at[2]], solution.cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(law: [f64; 3], noise: f64, seed: u64) -> Vec<(f64, f64)> {
        let mut random = Random::new(seed);
        [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 48.0]
            .into_iter()
            .map(|n| (n, rate(&law, n) * (1.0 + noise * random.normal())))
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
        assert_eq!(fit_points(&[(1.0, 1.0); 3]), None);
    }
}
