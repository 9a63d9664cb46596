//! Chooses the next rate worth trying.
//!
//! First up by factors until the service does not keep up. Then the capacity from its completions
//! meanwhile, and rates just below and above that until the bracket is tight. Then the shape of the
//! curve. Then the places where the knee is least certain, until it is certain or time is up. Each
//! decision uses all steps so far.

use std::collections::VecDeque;
use std::time::Duration;

use crate::judge::{Analysis, Visit, is_stable, objective};
use crate::search::budget::{Budget, highest_share, offer};
use crate::{Config, Move, Purpose, Step, StepResult, figure};

/// A step and its reason.
pub(crate) struct PlannedStep {
    pub offer: Move,
    pub why: String,
}

/// Rates closer than this count as the same rate, as a difference of logarithms.
const SAME: f64 = 0.06;

/// Whether so many requests are left in the system that they would affect the next step.
pub(crate) fn needs_drain(visit: &Visit, analysis: &Analysis) -> bool {
    let usual = visit.due * analysis.base_response().unwrap_or(0.1);
    visit.in_system_last > 3.0 * usual + 5.0 || visit.growth > 0.25
}

/// What to try next; none when nothing more is needed, or the time left is only enough for the
/// overload.
pub(crate) fn next(steps: &[Step], analysis: &Analysis, config: &Config, budget: &Budget) -> Option<PlannedStep> {
    if analysis.visits.is_empty() {
        return explore(config.from.min(config.most), analysis, budget, config);
    }
    let highest = analysis.hold.unwrap_or(0.0);
    // The first responses may show that the step was too short to say anything: repeat it, now that
    // this is known.
    if let (Some(visit), Some(StepResult::Unclear)) = (analysis.visits.last(), analysis.held.last())
        && steps.last().is_some_and(|step| step.purpose == Purpose::Explore)
        && visits(analysis, visit.offered, 0.01) < 2
    {
        let why = format!("longer: {}/s", figure(visit.offered));
        return Some(PlannedStep { offer: offer(visit.offered, 30.0, 5.0, Purpose::Explore, analysis, budget), why });
    }
    if analysis.spoilt_by.is_some() || analysis.errors_base > 0.5 && steps.len() >= 3 {
        return None;
    }
    let Some(ceiling) = analysis.over.or(analysis.limited) else {
        if highest < 0.999 * config.most {
            return explore(highest_tried(analysis) * growth(analysis), analysis, budget, config);
        }
        return enough(steps, analysis, config, budget);
    };
    let Some(hold) = analysis.hold else {
        let tries = steps.len();
        return if tries < 8 { explore(ceiling / 4.0, analysis, budget, config) } else { None };
    };
    tighten(hold, ceiling, steps, analysis, config, budget).or_else(|| {
        analysis.over?;
        enough(steps, analysis, config, budget)
    })
}

fn explore(rate: f64, analysis: &Analysis, budget: &Budget, config: &Config) -> Option<PlannedStep> {
    let rate = rate.min(config.most);
    if budget.left() < 3.0 {
        return None;
    }
    let why = format!("how much is too much? {rate:.4}/s");
    Some(PlannedStep { offer: offer(rate, 10.0, 1.0, Purpose::Explore, analysis, budget), why })
}

fn highest_tried(analysis: &Analysis) -> f64 {
    analysis.visits.iter().map(|visit| visit.offered).fold(0.0, f64::max)
}

/// Twice the rate, or less once response times have begun to rise.
fn growth(analysis: &Analysis) -> f64 {
    let rises = analysis.visits.last().and_then(|visit| visit.response).zip(analysis.base_response());
    if rises.is_some_and(|(now, base)| now > 1.5 * base && now > base + 2e-3) { 1.4 } else { 2.0 }
}

/// Tries a rate between those that held and those that did not.
fn tighten(
    hold: f64,
    ceiling: f64,
    steps: &[Step],
    analysis: &Analysis,
    config: &Config,
    budget: &Budget,
) -> Option<PlannedStep> {
    let tight = 1.0 + 3.0 * config.resolution;
    let refined = steps.iter().filter(|step| step.purpose == Purpose::Refine).count();
    if ceiling / hold <= tight || refined >= 12 || !affords(6.0, analysis, config, budget) {
        return None;
    }
    let middle = (hold * ceiling).sqrt();
    let rate = match (analysis.over, analysis.capacity) {
        (Some(over), Some(capacity)) if capacity.value > 1.01 * hold && capacity.value < 0.99 * over => {
            let (below, above) = (0.94 * capacity.value, 1.07 * capacity.value);
            let is_new = |rate: f64| rate > 1.02 * hold && rate < 0.98 * over && visits(analysis, rate, 0.02) < 2;
            // The larger gap first.
            if above / over < hold / below && is_new(above) {
                above
            } else if is_new(below) {
                below
            } else if is_new(above) {
                above
            } else {
                middle
            }
        }
        _ => middle,
    };
    // Steps in the bracket without a clear result: more of the same would not help.
    let unclear = analysis
        .visits
        .iter()
        .zip(&analysis.held)
        .filter(|(visit, held)| **held == StepResult::Unclear && visit.offered > hold && visit.offered < ceiling)
        .count();
    if unclear >= 3 {
        return None;
    }
    let why = format!("between {hold:.4}/s, which held, and {ceiling:.4}/s");
    Some(PlannedStep { offer: offer(rate, 30.0, 4.0, Purpose::Refine, analysis, budget), why })
}

/// The shape of the curve, and then the least certain part.
fn enough(steps: &[Step], analysis: &Analysis, config: &Config, budget: &Budget) -> Option<PlannedStep> {
    if !affords(7.0, analysis, config, budget) {
        return None;
    }
    let most = analysis.over.unwrap_or(f64::MAX).min(1.001 * config.most);
    let capacity = analysis.capacity.map_or(most, |capacity| capacity.value);
    let knee = analysis.knee().map_or(capacity, |knee| knee.value).min(capacity).min(config.most);
    let step = |rate: f64, purpose: Purpose, why: String| {
        Some(PlannedStep { offer: offer(rate, 30.0, 5.0, purpose, analysis, budget), why })
    };
    let top = if !analysis.variation.is_little() { highest_share(capacity).clamp(0.55, 0.95) } else { 0.95 };
    let top = top * capacity.min(most);
    for rate in [knee.min(top), 0.75 * knee, 0.5 * knee, (1.2 * knee).min(top), 0.25 * knee] {
        if visits(analysis, rate, SAME) == 0 {
            return step(rate, Purpose::Curve, format!("the shape of the curve: {rate:.4}/s"));
        }
    }
    if let Some(rate) = disputed(analysis).filter(|rate| visits(analysis, *rate, SAME) < 6) {
        return step(rate, Purpose::Confirm, format!("visits of {rate:.4}/s disagree: once more"));
    }
    // Without much variation response times rise only close to the capacity. A rise far below it
    // may be a stall that came just then: visit it again.
    let is_early = analysis.variation.is_little() && knee < 0.93 * capacity && analysis.over.is_some();
    if is_early && visits(analysis, top, SAME) < 4 {
        return step(top, Purpose::Confirm, format!("does it really slow down before {capacity:.4}/s?"));
    }
    if let Some(missed) = objective(analysis, config)
        && missed.rate.high / missed.rate.low.max(0.1 * missed.rate.high) > 1.0 + 2.0 * config.resolution
        && visits(analysis, missed.rate.value, 0.02) < 3
    {
        let rate = missed.rate.value;
        return step(rate, Purpose::Refine, format!("where the objective is missed: about {rate:.4}/s"));
    }
    analysis.over?;
    let confirmed = steps.iter().filter(|step| step.purpose == Purpose::Confirm).count();
    let is_certain = is_stable(analysis, config) && analysis.half_width() <= config.resolution && confirmed >= 2;
    if is_certain || confirmed >= 40 {
        return None;
    }
    // The rate with the least time spent on it, among those that matter for the knee.
    let above = 1.08 * capacity;
    let mut rates = vec![knee.min(top), (0.85 * knee).min(top), 0.55 * knee, (1.15 * knee).min(top)];
    let capacity_width = analysis.capacity.map_or(0.0, |one| 0.5 * (one.high - one.low) / one.value);
    if above < config.most
        && (analysis.witnesses() < 2 || knee > 0.9 * capacity || capacity_width > 0.5 * config.resolution)
    {
        rates.push(above);
    }
    let spent = |rate: f64| -> usize {
        analysis
            .visits
            .iter()
            .zip(&analysis.used)
            .filter(|(visit, _)| !visit.is_limited && (visit.offered / rate).ln().abs() < SAME)
            // Unusable steps count half: otherwise a rate that never gives a usable one would be
            // tried for ever.
            .map(|(visit, used)| if *used || visit.offered > capacity { 2 * visit.seconds } else { visit.seconds })
            .sum()
    };
    let rate = rates.into_iter().min_by_key(|rate| spent(*rate))?;
    step(rate, Purpose::Confirm, format!("how certain is it? {rate:.4}/s once more"))
}

/// The rate of a visit that contradicts others, not far from the answer.
fn disputed(analysis: &Analysis) -> Option<f64> {
    let (hold, over) = (analysis.hold?, analysis.over?);
    let rates = analysis.conflicts.iter().rev().map(|index| analysis.visits[*index].offered);
    rates.into_iter().find(|rate| *rate > hold / 1.5 && *rate < over * 1.5)
}

fn visits(analysis: &Analysis, rate: f64, within: f64) -> usize {
    analysis.visits.iter().filter(|visit| !visit.is_limited && (visit.offered / rate).ln().abs() < within).count()
}

/// Whether there is time for a step of so many seconds and the overload after it.
fn affords(seconds: f64, analysis: &Analysis, config: &Config, budget: &Budget) -> bool {
    let overload: f64 = overload(analysis, config, budget)
        .iter()
        .map(|next| match next {
            Move::Offer { length, .. } => length.as_secs_f64() + config.gap.as_secs_f64(),
            _ => 0.0,
        })
        .sum();
    let rate = analysis.knee().map_or(f64::MAX, |knee| knee.value);
    let settled = seconds.max((30.0 / rate).min(budget.left() / 6.0)) + 2.0;
    budget.left() > settled + overload.min(0.25 * budget.whole)
}

/// An overload, followed directly by a rate that held. Empty if that cannot be played.
pub(crate) fn overload(analysis: &Analysis, config: &Config, budget: &Budget) -> VecDeque<Move> {
    let (Some(capacity), Some(knee)) = (analysis.capacity, analysis.knee()) else { return VecDeque::new() };
    if analysis.spoilt_by.is_some() {
        return VecDeque::new();
    }
    let breaking = analysis.over.map_or(capacity.value, |over| capacity.value.min(over));
    let rate = (1.3 * breaking).min(config.most);
    if rate < 1.1 * capacity.value || analysis.limited.is_some_and(|limited| rate >= limited) {
        return VecDeque::new();
    }
    let back = 0.75 * knee.value;
    let response = analysis.base_response().unwrap_or(0.0);
    let mut long = 4.0_f64.max(10.0 / rate).max(3.0 * response).ceil();
    // The backlog is worked off with the spare capacity during recovery; then the recovery must
    // last long enough to look steady.
    let worked_off = |long: f64| long * (rate - capacity.value) / (capacity.value - back).max(0.05 * capacity.value);
    let steady = 4.0_f64.max(8.0 / back).max(3.0 * response);
    let room = budget.left() - config.gap.as_secs_f64();
    let mut recover = (1.3 * worked_off(long) + steady).ceil();
    while long + recover > room && long > 2.0 {
        long -= 1.0;
        recover = (1.3 * worked_off(long) + steady).ceil();
    }
    if long + recover > room {
        return VecDeque::new();
    }
    let offer = |rate: f64, long: f64, purpose: Purpose| Move::Offer {
        rate,
        length: Duration::from_secs_f64(long),
        settle: Duration::ZERO,
        purpose,
    };
    VecDeque::from([offer(rate, long, Purpose::Overload), offer(back, recover, Purpose::Recover)])
}
