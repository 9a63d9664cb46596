//! The most that the service completes.

use crate::judge::variation::Variation;
use crate::judge::visit::{Visit, Z};
use crate::statistics::{deviation, mean, quantile};
use crate::{Estimate, StepResult};

/// Completions per second when more is offered. If throughput falls under overload (so that a rate
/// above it held), the capacity is between the rates that held and those that did not.
pub(crate) fn capacity(
    visits: &[Visit],
    held: &[StepResult],
    counts: &impl Fn(usize) -> bool,
    hold: Option<f64>,
    over: Option<f64>,
    variation: &Variation,
) -> Option<Estimate> {
    let over = over?;
    let (mut sum, mut weights) = (0.0, 0.0);
    let mut seen = Vec::new();
    for (index, (visit, held)) in visits.iter().zip(held).enumerate() {
        let is_over = matches!(held, StepResult::No(_)) && visit.offered >= over && visit.offered <= 1.6 * over;
        if !counts(index) || !is_over {
            continue;
        }
        let (rate, error) = throughput(visit, variation);
        // With variable service times, the number of completions varies by chance.
        let error = error.max(rate * (variation.service / (rate * visit.seconds as f64).max(1.0)).sqrt());
        if rate <= 0.0 {
            continue;
        }
        seen.push((rate, error));
    }
    // Some services complete less the more is offered: only the visits with the most completions
    // count.
    let largest = seen.iter().map(|(rate, error)| rate - error).fold(0.0, f64::max);
    seen.retain(|(rate, error)| rate + 2.0 * error + 0.01 * rate > largest);
    for (rate, error) in &mut seen {
        *error = (*rate / *error).powi(2).min(1e6) / (*rate * *rate);
        sum += *error * *rate;
        weights += *error;
    }
    let hold_low = hold.unwrap_or(0.0);
    if weights <= 0.0 {
        let middle = (hold_low.max(0.1 * over) * over).sqrt();
        return Some(Estimate { value: middle, low: hold_low, high: over });
    }
    let value = sum / weights;
    let scatter = seen.iter().map(|(rate, weight)| weight * (rate - value).powi(2)).sum::<f64>()
        / (seen.len() as f64 - 1.0).max(1.0);
    // And 0.5 % more: the service does not know the clock that cuts the seconds.
    let error = (scatter.max(1.0) / weights).sqrt().hypot(0.005 * value);
    let (low, high) = (value - Z * error, value + Z * error);
    // More was completed for a while than an overloaded service completes: throughput falls under
    // overload.
    let sustained = visits
        .iter()
        .zip(held)
        .enumerate()
        .filter(|(index, (visit, held))| counts(*index) && **held == StepResult::Yes && visit.offered < over)
        .map(|(_, (visit, _))| {
            let luck = (variation.half_sum() / (visit.achieved * visit.seconds as f64).max(1.0)).sqrt();
            visit.achieved * (1.0 - 2.0 * luck) - 2.0 * visit.achieved_error
        })
        .fold(0.0, f64::max);
    if sustained > high * 1.01 {
        let low = sustained.min(over);
        return Some(Estimate { value: (hold_low.clamp(low, over) * over).sqrt(), low, high: over });
    }
    Some(Estimate { value, low: low.min(value), high: high.max(value) })
}

/// Completions per second of a visit that was too much, with their standard error.
///
/// Seconds with far fewer completions than the better half are stalls of the machine. With few
/// completions the count is coarse, but the drift of response times is not: in a queue of constant
/// capacity they grow by `(rate - capacity) / rate` per second.
fn throughput(visit: &Visit, variation: &Variation) -> (f64, f64) {
    let good = quantile(&visit.completions, 0.75);
    let least = good - 3.5 * (variation.service.max(0.01) * good).sqrt() - 0.03 * good - 2.0;
    let kept: Vec<f64> = visit.completions.iter().copied().filter(|count| *count >= least).collect();
    let rate = if good > MANY { mean(&kept) } else { visit.achieved };
    let error = match good > MANY {
        true => (deviation(&kept) / (kept.len() as f64).sqrt()).max(0.003 * rate),
        false => visit.achieved_error.max(0.003 * rate),
    };
    let by_drift = visit.due * (1.0 - visit.drift);
    let is_straight = visit.drift_share > 0.9 && visit.drift > 0.02 && visit.seconds >= 4 && visit.failed == 0.0;
    if rate * (visit.seconds as f64) < 400.0 && is_straight && (by_drift - rate).abs() < 3.0 * error {
        let share = (1.0 - visit.drift_share).max(0.0).sqrt();
        return (by_drift, (visit.due * visit.drift * share / (visit.seconds as f64).sqrt()).max(0.01 * by_drift));
    }
    (rate, error)
}

/// With this many completions, a single second is meaningful.
const MANY: f64 = 50.0;
