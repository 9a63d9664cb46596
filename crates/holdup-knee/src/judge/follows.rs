//! Which rates the service keeps up with, all visits weighed against each other.

use crate::judge::visit::Visit;
use crate::{MissedRequirement, Purpose, Step, StepResult};

/// The cut between rates that hold and rates that do not which contradicts the fewest visits.
pub(crate) fn bracket(
    visits: &[Visit],
    held: &[StepResult],
    counts: &impl Fn(usize) -> bool,
) -> (Option<f64>, Option<f64>, Vec<usize>) {
    let seen: Vec<(usize, f64, bool)> = visits
        .iter()
        .zip(held)
        .enumerate()
        .filter(|(index, _)| counts(*index))
        .filter_map(|(index, (visit, held))| match held {
            StepResult::Yes => Some((index, visit.offered, true)),
            StepResult::No(_) => Some((index, visit.offered, false)),
            StepResult::Unclear | StepResult::GeneratorLimited => None,
        })
        .collect();
    let wrong =
        |cut: f64| seen.iter().filter(move |(_, rate, is_held)| (*rate < cut) != *is_held).map(|(index, ..)| *index);
    let mut cuts: Vec<f64> = seen.iter().map(|(_, rate, _)| rate * (1.0 + 1e-9)).chain([0.0]).collect();
    cuts.sort_by(f64::total_cmp);
    let fewest = cuts.iter().map(|cut| wrong(*cut).count()).min().unwrap_or(0);
    let best: Vec<f64> = cuts.into_iter().filter(|cut| wrong(*cut).count() == fewest).collect();
    let cut = best.get(best.len() / 2).copied().unwrap_or(0.0);
    let hold = seen.iter().filter(|(_, rate, is_held)| *is_held && *rate < cut).map(|one| one.1).reduce(f64::max);
    let over = seen.iter().filter(|(_, rate, is_held)| !*is_held && *rate >= cut).map(|one| one.1).reduce(f64::min);
    (hold, over, wrong(cut).collect())
}

/// The first visit that was too much, if afterwards even lower rates fail repeatedly that had held
/// before.
pub(crate) fn spoilt_by(steps: &[Step], visits: &[Visit], held: &[StepResult]) -> Option<usize> {
    let first = held.iter().position(|held| *held == StepResult::No(MissedRequirement::AchievedBelowOffered))?;
    let is_held = |index: &usize| held[*index] == StepResult::Yes;
    let before = (0..first).filter(is_held).map(|index| visits[index].offered).reduce(f64::max)?;
    let later = || {
        (first + 1..visits.len()).filter(|index| {
            let purpose = steps[visits[*index].step].purpose;
            visits[*index].offered < 0.98 * before && !matches!(purpose, Purpose::Overload | Purpose::Recover)
        })
    };
    let failed = later().filter(|index| matches!(held[*index], StepResult::No(_))).count();
    let fine = later().filter(|index| is_held(index) && visits[*index].offered > 0.4 * before).count();
    (failed >= 2 && failed > 2 * fine).then_some(first)
}

/// Requests that stay in the system even at low rates: the least relative growth of the visits with
/// the most responses.
pub(crate) fn leak(visits: &[&Visit]) -> f64 {
    let mut growth: Vec<f64> = visits
        .iter()
        .filter(|visit| visit.growth < 0.1 && visit.drift < 0.3 * visit.growth.max(0.0) + 1e-3)
        .filter(|visit| visit.growth * visit.due * visit.seconds as f64 > 4.0)
        .map(|visit| visit.growth.min(visit.median_growth))
        .collect();
    growth.sort_by(f64::total_cmp);
    growth.get(growth.len() / 4).copied().unwrap_or(0.0).max(0.0)
}

/// Share of requests that fail even at low rates: pooled over the lowest rates, up to a few hundred
/// requests.
pub(crate) fn errors_base(visits: &[&Visit]) -> f64 {
    let mut low: Vec<&&Visit> = visits.iter().collect();
    low.sort_by(|a, b| a.offered.total_cmp(&b.offered));
    let highest = low.last().map_or(0.0, |visit| visit.offered);
    let (mut failed, mut ended) = (0.0, 0.0);
    for visit in low {
        let is_low = visit.offered < 0.45 * highest;
        if ended >= 2_000.0 || (ended > 0.0 && !is_low) {
            break;
        }
        if visit.growth < 0.1 {
            failed += visit.failed;
            ended += visit.ended;
        }
    }
    // A few failures are not enough for an estimate.
    if failed >= 3.0 { failed / ended } else { 0.0 }
}
