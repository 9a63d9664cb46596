//! The breaking point: where requests pile up, errors start or the objective is missed, whichever comes first.

use crate::judge::Analysis;
use crate::{Breaking, Config, Estimate, MissedRequirement, StepResult};

pub(crate) fn breaking(analysis: &Analysis, config: &Config) -> Option<Breaking> {
    let follows = follows(analysis);
    let objective = objective(analysis, config);
    [objective, follows].into_iter().flatten().min_by(|a, b| a.rate.value.total_cmp(&b.rate.value))
}

/// Between the highest rate that held and the lowest that did not; at the capacity, if that lies in
/// between.
fn follows(analysis: &Analysis) -> Option<Breaking> {
    let (over, how) = (analysis.over?, analysis.how()?);
    let capacity = analysis.capacity?;
    let hold = analysis.hold.unwrap_or(0.0);
    // If requests pile up, the capacity is the point itself, and a short step above it may hold by
    // chance.
    let is_inside =
        how == MissedRequirement::AchievedBelowOffered || capacity.value > 0.97 * hold && capacity.value < 1.03 * over;
    let rate = if is_inside {
        let value = capacity.value.min(over);
        Estimate { value, low: capacity.low.min(value), high: capacity.high.max(value) }
    } else {
        Estimate { value: (hold.max(0.1 * over) * over).sqrt(), low: hold, high: over }
    };
    Some(Breaking { rate, how })
}

/// Where the quantile crosses its bound: interpolated between logarithms of the rates on both
/// sides.
pub(crate) fn objective(analysis: &Analysis, config: &Config) -> Option<Breaking> {
    let bound = config.objective?.below_ns * 1e-9;
    let mut seen: Vec<(f64, f64)> = analysis
        .visits
        .iter()
        .zip(&analysis.held)
        .filter(|(_, held)| **held != StepResult::GeneratorLimited)
        .filter_map(|(visit, _)| Some((visit.offered, visit.objective?)))
        .collect();
    seen.sort_by(|a, b| a.0.total_cmp(&b.0));
    // The cut that contradicts the fewest visits.
    let wrong = |cut: f64| seen.iter().filter(|(rate, tail)| (*rate < cut) != (*tail <= bound)).count();
    let cut = seen.iter().map(|one| one.0 * (1.0 + 1e-9)).chain([0.0]).min_by_key(|cut| wrong(*cut))?;
    let below = seen.iter().rev().find(|(rate, tail)| *rate < cut && *tail <= bound);
    let above = seen.iter().find(|(rate, tail)| *rate >= cut && *tail > bound)?;
    let (low, high) = (below.map_or(0.0, |one| one.0), above.0);
    let value = match below {
        Some(below) => {
            let share = (bound / below.1).ln() / (above.1 / below.1).ln().max(1e-9);
            below.0 * (above.0 / below.0).powf(share.clamp(0.1, 0.9))
        }
        None => 0.5 * high,
    };
    Some(Breaking { rate: Estimate { value, low, high }, how: MissedRequirement::Objective })
}
