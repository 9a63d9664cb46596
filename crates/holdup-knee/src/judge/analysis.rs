//! What the steps say together: which rates held, which did not, how much the service completes at most, the curve.
//! The controller decides on this, the judgement reports it.

use crate::judge::curve::{Fit, Observed, fit, memory};
use crate::judge::variation::Variation;
use crate::judge::visit::Visit;
use crate::statistics::{deviation, mean, quantile};
use crate::{Config, Estimate, Held, How, Purpose, Step};

/// All steps, weighed against each other.
#[derive(Clone, Debug)]
pub(crate) struct Analysis {
    pub visits: Vec<Visit>,
    /// Of each visit.
    pub held: Vec<Held>,
    /// Share of requests that fail at low rates already.
    pub errors_base: f64,
    /// The visit after which the service no longer carried what it had carried before: later ones say nothing of it.
    pub spoilt_by: Option<usize>,
    /// The highest rate that held, and the lowest above it that did not.
    pub hold: Option<f64>,
    pub over: Option<f64>,
    /// The lowest rate that the generator could not offer.
    pub limited: Option<f64>,
    /// Visits on the wrong side: held above rates that did not, or the reverse.
    pub conflicts: Vec<usize>,
    pub capacity: Option<Estimate>,
    pub variation: Variation,
    /// Whether the curve is fitted to a visit.
    pub used: Vec<bool>,
    pub fit: Option<Fit>,
}

impl Analysis {
    pub fn of(steps: &[Step], config: &Config) -> Self {
        let mut visits: Vec<Visit> =
            steps.iter().enumerate().filter_map(|(index, step)| Visit::of(index, step, config)).collect();
        if let Some(fastest) = visits.iter().filter_map(|visit| visit.response).reduce(f64::min) {
            visits.iter_mut().for_each(|visit| visit.knowing(fastest));
        }
        let usual: Vec<&Visit> =
            visits.iter().filter(|visit| !visit.is_limited && steps[visit.step].purpose != Purpose::Recover).collect();
        let variation = Variation::of(steps, &usual, config);
        let leak = leak(&usual);
        let errors_base = errors_base(&usual);
        let errors_most = errors_base + config.error_ratio_most;
        // Where requests vary, response times climb for a few seconds by luck.
        let is_unsettled = |visit: &Visit| variation.is_little() && visit.is_unsettled();
        let held: Vec<Held> = visits
            .iter()
            .map(|visit| match visit.missed(leak, errors_most) {
                _ if visit.is_limited => Held::GeneratorLimited,
                Some(how) => Held::No(how),
                None if visit.keeps_up(leak) && !is_unsettled(visit) => Held::Yes,
                None => Held::Unclear,
            })
            .collect();
        let spoilt_by = spoilt_by(steps, &visits, &held);
        // These two are played one straight after the other: neither starts, or ends, in a steady state. But an overload
        // that was none is worth knowing.
        let counts = |index: usize| match steps[visits[index].step].purpose {
            _ if spoilt_by.is_some_and(|spoilt| index > spoilt) => false,
            Purpose::Recover => false,
            Purpose::Overload => held[index] == Held::Yes && visits[index].ended >= ENOUGH,
            _ => true,
        };
        let (hold, over, conflicts) = bracket(&visits, &held, &counts);
        // Limited once and not at a higher rate: that was the moment, not the rate.
        let unlimited = usual.iter().map(|visit| visit.offered).fold(0.0, f64::max);
        let limited = visits
            .iter()
            .filter(|visit| visit.is_limited && visit.offered > unlimited)
            .map(|visit| visit.offered)
            .reduce(f64::min);
        let capacity = capacity(&visits, &held, &counts, hold, over, &variation);
        let seen: Vec<Option<Observed>> = visits
            .iter()
            .zip(&held)
            .enumerate()
            .map(|(index, (visit, held))| {
                let is_usable = counts(index)
                    && matches!(held, Held::Yes | Held::Unclear)
                    && over.is_none_or(|over| visit.offered < over)
                    && !conflicts.contains(&index)
                    && !is_unsettled(visit);
                // Seconds that differ much more than they should: the machine was disturbed, and not for one second only.
                let is_quiet = !variation.is_little() || visit.response_error <= 0.1 || visit.seconds < 2;
                // A queue close to its capacity needs longer than a step to become as long as it will be.
                let is_steady = variation.is_little()
                    || capacity.is_none_or(|capacity| {
                        memory(visit.due / capacity.value) / capacity.value < 0.3 * visit.seconds as f64
                    });
                (is_usable && is_quiet && is_steady).then_some(())?;
                Some(Observed {
                    rate: visit.due,
                    response: visit.response?,
                    own_error: visit.response_error,
                    disturbed: 0.0,
                    seconds: visit.seconds as f64,
                })
            })
            .collect();
        let used = seen.iter().map(Option::is_some).collect();
        let mut observed: Vec<Observed> = seen.into_iter().flatten().collect();
        widen(&mut observed, if variation.is_little() { 0.0 } else { 0.2 });
        let known = capacity.map(|capacity| {
            let spread = (capacity.high / capacity.low.max(1e-9)).ln() / (2.0 * super::visit::Z);
            (capacity.value, spread.clamp(0.01, 1.0))
        });
        let fit = fit(&observed, known, variation);
        Self { visits, held, errors_base, spoilt_by, hold, over, limited, conflicts, capacity, variation, used, fit }
    }

    /// The knee: from the curve, and never beyond what does not hold.
    pub fn knee(&self) -> Option<Estimate> {
        self.hold?;
        let Some(capacity) = self.capacity else {
            // Nothing was too much, but response time rises faster than load already.
            let (value, low, high) = self.fit.as_ref()?.knee;
            return (high < self.hold?).then_some(Estimate { value, low, high });
        };
        let ceiling = self.over.unwrap_or(f64::MAX).min(capacity.high);
        let Some(fit) = &self.fit else {
            return Some(Estimate { low: self.hold.unwrap_or(capacity.low).min(capacity.low), ..capacity });
        };
        let (value, low, high) = fit.knee;
        let value = value.min(ceiling);
        // What the form of the curve may be wrong by, even where it fits.
        let form = if self.falls_under_overload() { 0.1 } else { 0.01 } * value;
        let mut high = (high + form).min(ceiling + form).max(value);
        if self.variation.is_little() && value > 0.9 * capacity.value {
            // As far as can be seen nothing varies: then the knee is the capacity itself.
            high = high.max(capacity.high);
        }
        Some(Estimate { value, low: (low - form).clamp(0.0, value), high })
    }

    /// Whether clearly less is completed when more is offered: the curve has an end instead of a pole, which its form can't
    /// follow to the last.
    fn falls_under_overload(&self) -> bool {
        const CLEARLY: f64 = 0.85;
        let (Some(hold), Some(over)) = (self.hold, self.over) else { return false };
        let beyond = self.visits.iter().filter(|visit| !visit.is_limited && visit.offered >= over);
        beyond.map(|visit| visit.achieved).reduce(f64::min).is_some_and(|least| least < CLEARLY * hold)
    }

    /// How many visits say that the service does not follow just above the highest rate that held.
    pub fn witnesses(&self) -> usize {
        let Some(over) = self.over else { return 0 };
        let near = |visit: &Visit| visit.offered >= over && visit.offered <= 1.6 * over;
        self.visits.iter().zip(&self.held).filter(|(visit, held)| near(visit) && matches!(held, Held::No(_))).count()
    }

    /// How the service breaks just above the highest rate that held.
    pub fn how(&self) -> Option<How> {
        let over = self.over?;
        let near = || self.visits.iter().zip(&self.held).filter(|(visit, _)| visit.offered <= 1.3 * over);
        let errors = near().filter(|(_, held)| **held == Held::No(How::Errors)).count();
        let piles = near().filter(|(_, held)| **held == Held::No(How::AchievedBelowOffered)).count();
        Some(if errors > piles { How::Errors } else { How::AchievedBelowOffered })
    }

    /// Mean response time without load: of the slowest rates that held.
    pub fn base_response(&self) -> Option<f64> {
        let mut seen: Vec<(f64, f64)> = self
            .visits
            .iter()
            .zip(&self.held)
            .filter(|(_, held)| matches!(held, Held::Yes | Held::Unclear))
            .filter_map(|(visit, _)| Some((visit.offered, visit.response?)))
            .collect();
        seen.sort_by(|a, b| a.0.total_cmp(&b.0));
        seen.iter().take(3).map(|one| one.1).reduce(f64::min)
    }
}

/// An overload is short: fewer answers than this don't say that it was none.
const ENOUGH: f64 = 100.0;

/// The first visit that was too much, if afterwards even lower rates that had held do not, again and again.
fn spoilt_by(steps: &[Step], visits: &[Visit], held: &[Held]) -> Option<usize> {
    let first = held.iter().position(|held| *held == Held::No(How::AchievedBelowOffered))?;
    let is_held = |index: &usize| held[*index] == Held::Yes;
    let before = (0..first).filter(is_held).map(|index| visits[index].offered).reduce(f64::max)?;
    let later = || {
        (first + 1..visits.len()).filter(|index| {
            let purpose = steps[visits[*index].step].purpose;
            visits[*index].offered < 0.98 * before && !matches!(purpose, Purpose::Overload | Purpose::Recover)
        })
    };
    let failed = later().filter(|index| matches!(held[*index], Held::No(_))).count();
    let fine = later().filter(|index| is_held(index) && visits[*index].offered > 0.4 * before).count();
    (failed >= 2 && failed > 2 * fine).then_some(first)
}

/// A response time that is much longer than one at a higher rate was disturbed: its error is at least the difference.
fn widen(observed: &mut [Observed], luck: f64) {
    const PLAINLY: f64 = 0.1;
    let all = observed.to_vec();
    for one in observed {
        let beyond = all
            .iter()
            .filter(|other| other.rate > one.rate)
            .map(|other| (one.response / other.response).ln() - 3.5 * one.own_error.hypot(other.own_error).max(luck))
            .fold(0.0, f64::max);
        if beyond > PLAINLY {
            one.disturbed = 2.0 * beyond;
        }
    }
}

/// What stays in the system though rates are low: the least relative growth of those that answer most.
fn leak(visits: &[&Visit]) -> f64 {
    let mut growth: Vec<f64> = visits
        .iter()
        .filter(|visit| visit.growth < 0.1 && visit.drift < 0.3 * visit.growth.max(0.0) + 1e-3)
        .filter(|visit| visit.growth * visit.due * visit.seconds as f64 > 4.0)
        .map(|visit| visit.growth.min(visit.median_growth))
        .collect();
    growth.sort_by(f64::total_cmp);
    growth.get(growth.len() / 4).copied().unwrap_or(0.0).max(0.0)
}

/// What fails though rates are low: pooled over the lowest rates, up to a few hundred requests.
fn errors_base(visits: &[&Visit]) -> f64 {
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
    // A few failures of a few requests are no base.
    if failed >= 3.0 { failed / ended } else { 0.0 }
}

/// The cut between rates that hold and rates that don't which contradicts the fewest visits.
fn bracket(visits: &[Visit], held: &[Held], counts: &impl Fn(usize) -> bool) -> (Option<f64>, Option<f64>, Vec<usize>) {
    let seen: Vec<(usize, f64, bool)> = visits
        .iter()
        .zip(held)
        .enumerate()
        .filter(|(index, _)| counts(*index))
        .filter_map(|(index, (visit, held))| match held {
            Held::Yes => Some((index, visit.offered, true)),
            Held::No(_) => Some((index, visit.offered, false)),
            Held::Unclear | Held::GeneratorLimited => None,
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

/// What the service completes per second when more is offered. Where throughput falls under overload (so that a rate
/// above it held) the capacity is between the rates that held and those that did not.
fn capacity(
    visits: &[Visit],
    held: &[Held],
    counts: &impl Fn(usize) -> bool,
    hold: Option<f64>,
    over: Option<f64>,
    variation: &Variation,
) -> Option<Estimate> {
    let over = over?;
    let (mut sum, mut weights) = (0.0, 0.0);
    let mut seen = Vec::new();
    for (index, (visit, held)) in visits.iter().zip(held).enumerate() {
        let is_over = matches!(held, Held::No(_)) && visit.offered >= over && visit.offered <= 1.6 * over;
        if !counts(index) || !is_over {
            continue;
        }
        let (rate, error) = throughput(visit, variation);
        // As many as that are done differs by luck when service times do.
        let error = error.max(rate * (variation.service / (rate * visit.seconds as f64).max(1.0)).sqrt());
        if rate <= 0.0 {
            continue;
        }
        seen.push((rate, error));
    }
    // Some services complete less the more is offered: those count that complete as much as any.
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
    // 0.5 % of its own besides: seconds are cut by a clock that the service does not know.
    let error = (scatter.max(1.0) / weights).sqrt().hypot(0.005 * value);
    let (low, high) = (value - super::visit::Z * error, value + super::visit::Z * error);
    // More was completed for a while than an overloaded service completes: throughput falls under overload.
    let sustained = visits
        .iter()
        .zip(held)
        .enumerate()
        .filter(|(index, (visit, held))| counts(*index) && **held == Held::Yes && visit.offered < over)
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
/// Seconds in which far fewer were completed than in the better half are those in which the machine stalled. Of few
/// completions the count is coarse; the drift of response times is not: in a queue of constant capacity they grow by
/// `(rate - capacity) / rate` per second.
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

/// Completions in a second from which on a second says something by itself.
const MANY: f64 = 50.0;
