//! The fitted curves as points of lines for a chart. They end where the steps end: a longer line
//! would promise what no step measured.

use holdup_knee::{Curve, Finding, StepResult, Usl};

use super::{LinePoint, ScalabilityLaw, interval, rate};
use holdup_recording::words::round;

/// Points of a line.
const POINTS: usize = 80;

/// The fitted curve of mean response time, from the lowest rate offered to where it leaves the
/// range of the steps.
pub(super) fn fitted(finding: &Finding) -> Vec<LinePoint> {
    let Some(curve) = finding.curve else { return Vec::new() };
    let lowest = finding.points.iter().map(|point| point.offered).fold(f64::MAX, f64::min);
    let highest = finding.points.iter().map(|point| point.offered).fold(0.0, f64::max);
    // It is steep near the capacity: points get denser towards it.
    let rates = (0..POINTS).map(|i| {
        let near = 1.0 - i as f64 / (POINTS - 1) as f64;
        lowest + (curve.capacity * 0.9995 - lowest) * (1.0 - near * near)
    });
    within(rates.filter(|rate| *rate <= highest).map(|rate| (rate, response_ms(&curve, rate))), finding)
}

/// Mean response time by the formula that [`Curve`] documents.
fn response_ms(curve: &Curve, rate: f64) -> f64 {
    let u = (rate / curve.capacity).clamp(1e-9, 0.999_999);
    let waiting = curve.a * u.powf(curve.k) * (-curve.onset * (1.0 - u) / u).exp() / (1.0 - u);
    curve.base_ns / 1e6 * (1.0 + waiting)
}

/// The law with its line: by Little's law, response time is the number in the service over its
/// throughput.
pub(super) fn law(usl: &Usl, finding: &Finding) -> ScalabilityLaw {
    let throughput =
        |n: f64| usl.gamma.value * n / (1.0 + usl.alpha.value * (n - 1.0) + usl.beta.value * n * (n - 1.0)).max(1e-9);
    let seen = || finding.points.iter().filter(|point| point.in_system > 0.0).map(|point| point.in_system);
    let (fewest, most) = (seen().fold(f64::MAX, f64::min).max(0.01), seen().fold(0.0, f64::max));
    let concurrencies = (0..POINTS).map(|i| fewest * (most / fewest).powf(i as f64 / (POINTS - 1) as f64));
    let is_drawn = usl.is_determined && most > fewest;
    // Beyond its peak it bends back: an open load never sees that branch.
    let peak = usl.peak.map_or(f64::MAX, |peak| peak.concurrency.value);
    let line = concurrencies.filter(|n| is_drawn && *n <= peak).map(|n| (throughput(n), 1e3 * n / throughput(n)));
    ScalabilityLaw {
        gamma: rate(usl.gamma),
        alpha: interval(usl.alpha, 7),
        beta: interval(usl.beta, 9),
        peak_concurrency: usl.peak.map(|peak| interval(peak.concurrency, 3)),
        peak_rate: usl.peak.map(|peak| rate(peak.rate)),
        r2: round(usl.r2, 4),
        determined: usl.is_determined,
        why_not: usl.why_not.clone(),
        curve: within(line, finding),
    }
}

/// The points up to the response time of the slowest failed step, and at least up to twice that of
/// the slowest step that held.
fn within(line: impl Iterator<Item = (f64, f64)>, finding: &Finding) -> Vec<LinePoint> {
    let slowest = |held: bool| {
        let of = finding.points.iter().filter(|point| (point.held == StepResult::Yes) == held);
        of.filter_map(|point| point.response_ns).fold(0.0, f64::max) / 1e6
    };
    let most = slowest(false).max(2.0 * slowest(true));
    line.filter(|(rate, response)| rate.is_finite() && *response <= most)
        .map(|(rate, response)| LinePoint { rate: round(rate, 3), response_ms: round(response, 4) })
        .collect()
}
