//! Hysteresis: does response time recover when load falls after an overload?

use std::time::Duration;

use crate::judge::Analysis;
use crate::{Hysteresis, Purpose, Step, StepResult, figure};

/// Recovered means: within this factor of the response time at that rate before.
const BACK: f64 = 1.25;

/// Judges the last recovery that follows an overload.
pub(crate) fn hysteresis(steps: &[Step], analysis: &Analysis, unresolved: &mut Vec<String>) -> Option<Hysteresis> {
    if let Some(spoilt) = analysis.spoilt_by {
        return spoilt_for_good(steps, analysis, spoilt, unresolved);
    }
    let at = steps
        .windows(2)
        .rposition(|pair| pair[0].purpose == Purpose::Overload && pair[1].purpose == Purpose::Recover)?;
    let (overload, recover) = (&steps[at], &steps[at + 1]);
    if overload.is_generator_limited || recover.is_generator_limited {
        unresolved.push("recovery after overload: the generator was the limit".to_owned());
        return None;
    }
    let before = before(steps, analysis, at, recover.offered)?;
    let ratios: Vec<Option<f64>> = recover
        .seconds
        .iter()
        .map(|second| (second.response.count > 0).then(|| second.response.mean_ns * 1e-9 / before))
        .collect();
    // With few responses a second varies by chance.
    let answers = recover.offered.max(1e-9);
    let luck = 2.0 * (analysis.variation.half_sum() / answers).sqrt();
    let is_back = |ratio: &Option<f64>| ratio.is_some_and(|ratio| ratio < BACK + luck);
    // Recovered from the first second on after which most are: one later stall of the machine is
    // not a relapse.
    let first = (0..ratios.len()).find(|from| {
        let rest = &ratios[*from..];
        is_back(&rest[0]) && 3 * rest.iter().filter(|ratio| is_back(ratio)).count() >= 2 * rest.len()
    });
    let tail: Vec<f64> =
        ratios[ratios.len() - ratios.len().div_ceil(3).min(ratios.len())..].iter().flatten().copied().collect();
    let response_ratio = match (tail.is_empty(), steps.get(at + 1)) {
        (false, _) => crate::statistics::median(&tail),
        // Nothing was answered any more: use the length of the recovery as response time.
        (true, step) => step.map_or(0.0, |step| (step.to - step.from).as_secs_f64()) / before,
    };
    let gap = recover.from.saturating_sub(overload.to);
    Some(Hysteresis {
        overload_rate: overload.offered,
        recover_rate: recover.offered,
        recovered: first.is_some(),
        after: first.map(|second| gap + Duration::from_secs(second as u64)),
        response_ratio,
    })
}

/// The first overload of the search did permanent damage: the last rate that no longer held shows
/// it.
fn spoilt_for_good(
    steps: &[Step],
    analysis: &Analysis,
    spoilt: usize,
    unresolved: &mut Vec<String>,
) -> Option<Hysteresis> {
    let overload = &analysis.visits[spoilt];
    let (visit, _) = analysis.visits.iter().zip(&analysis.held).rfind(|(_, held)| matches!(held, StepResult::No(_)))?;
    unresolved.push(format!(
        "after {}/s the service no longer carries the rates it carried before: the knee is from the few steps before that",
        figure(overload.offered)
    ));
    let before = before(steps, analysis, overload.step, visit.offered)?;
    let step = &steps[visit.step];
    let after = visit.response.unwrap_or((step.to - step.from).as_secs_f64());
    Some(Hysteresis {
        overload_rate: overload.offered,
        recover_rate: visit.offered,
        recovered: false,
        after: None,
        response_ratio: after / before,
    })
}

/// Mean response time at that rate before the overload: from the visits close to it, else from the
/// curve.
fn before(steps: &[Step], analysis: &Analysis, overload: usize, rate: f64) -> Option<f64> {
    let near: Vec<f64> = analysis
        .visits
        .iter()
        .zip(&analysis.held)
        .filter(|(visit, held)| {
            visit.step < overload && **held == StepResult::Yes && steps[visit.step].purpose != Purpose::Recover
        })
        .filter(|(visit, _)| (visit.offered / rate).ln().abs() < 0.08)
        .filter_map(|(visit, _)| visit.response)
        .collect();
    if !near.is_empty() {
        return Some(crate::statistics::median(&near));
    }
    analysis.fit.as_ref().map(|fit| fit.curve.response(rate)).filter(|response| response.is_finite())
}
