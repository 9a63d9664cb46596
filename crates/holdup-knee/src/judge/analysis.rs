//! The steps taken together: which rates held, which did not, the most that the service completes,
//! and the curve. The controller decides by it, and the judgement reports it.

use crate::judge::capacity::capacity;
use crate::judge::curve::{Fit, fit};
use crate::judge::follows::{bracket, errors_base, leak, spoilt_by};
use crate::judge::observations::observed;
use crate::judge::variation::Variation;
use crate::judge::visit::{Visit, Z};
use crate::{Config, Estimate, MissedRequirement, Purpose, Step, StepResult};

/// All steps, weighed against each other.
#[derive(Clone, Debug)]
pub(crate) struct Analysis {
    pub visits: Vec<Visit>,
    /// The result of each visit.
    pub held: Vec<StepResult>,
    /// Share of requests that fail even at low rates.
    pub errors_base: f64,
    /// The visit after which the service no longer kept up with rates that it had carried before:
    /// later visits say nothing about its earlier state.
    pub spoilt_by: Option<usize>,
    /// The highest rate that held, and the lowest above it that did not.
    pub hold: Option<f64>,
    pub over: Option<f64>,
    /// The lowest rate that the generator could not offer.
    pub limited: Option<f64>,
    /// Visits that contradict the others: held above rates that did not, or the reverse.
    pub conflicts: Vec<usize>,
    pub capacity: Option<Estimate>,
    pub variation: Variation,
    /// For each visit, whether the curve is fitted to it.
    pub used: Vec<bool>,
    pub fit: Option<Fit>,
}

impl Analysis {
    pub fn from_steps(steps: &[Step], config: &Config) -> Self {
        let mut visits: Vec<Visit> =
            steps.iter().enumerate().filter_map(|(index, step)| Visit::from_step(index, step, config)).collect();
        if let Some(fastest) = visits.iter().filter_map(|visit| visit.response).reduce(f64::min) {
            visits.iter_mut().for_each(|visit| visit.set_fastest(fastest));
        }
        let usual: Vec<&Visit> =
            visits.iter().filter(|visit| !visit.is_limited && steps[visit.step].purpose != Purpose::Recover).collect();
        let variation = Variation::from_steps(steps, &usual, config);
        let leak = leak(&usual);
        let errors_base = errors_base(&usual);
        let errors_most = errors_base + config.error_ratio_most;
        // With variable requests, response times may climb for a few seconds by chance.
        let is_unsettled = |visit: &Visit| variation.is_little() && visit.is_unsettled();
        let held: Vec<StepResult> = visits
            .iter()
            .map(|visit| match visit.missed(leak, errors_most) {
                _ if visit.is_limited => StepResult::GeneratorLimited,
                Some(how) => StepResult::No(how),
                None if visit.keeps_up(leak) && !is_unsettled(visit) => StepResult::Yes,
                None => StepResult::Unclear,
            })
            .collect();
        let spoilt_by = spoilt_by(steps, &visits, &held);
        // These two steps follow each other directly: neither starts, or ends, in a steady state.
        // But an overload that the service held is still evidence.
        let counts = |index: usize| match steps[visits[index].step].purpose {
            _ if spoilt_by.is_some_and(|spoilt| index > spoilt) => false,
            Purpose::Recover => false,
            Purpose::Overload => held[index] == StepResult::Yes && visits[index].ended >= ENOUGH,
            _ => true,
        };
        let (hold, over, conflicts) = bracket(&visits, &held, &counts);
        // Limited once and not at a higher rate: that was a moment's disturbance, not the rate.
        let unlimited = usual.iter().map(|visit| visit.offered).fold(0.0, f64::max);
        let limited = visits
            .iter()
            .filter(|visit| visit.is_limited && visit.offered > unlimited)
            .map(|visit| visit.offered)
            .reduce(f64::min);
        let capacity = capacity(&visits, &held, &counts, hold, over, &variation);
        let is_usable = |index: usize| {
            counts(index)
                && matches!(held[index], StepResult::Yes | StepResult::Unclear)
                && over.is_none_or(|over| visits[index].offered < over)
                && !conflicts.contains(&index)
                && !is_unsettled(&visits[index])
        };
        let (observed, used) = observed(&visits, &is_usable, capacity, &variation);
        let known = capacity.map(|capacity| {
            let spread = (capacity.high / capacity.low.max(1e-9)).ln() / (2.0 * Z);
            (capacity.value, spread.clamp(0.01, 1.0))
        });
        let fit = fit(&observed, known, variation);
        Self { visits, held, errors_base, spoilt_by, hold, over, limited, conflicts, capacity, variation, used, fit }
    }

    /// The knee: from the curve, and never beyond a rate that does not hold.
    pub fn knee(&self) -> Option<Estimate> {
        self.hold?;
        let Some(capacity) = self.capacity else {
            // No rate was too much, but response time already rises faster than load.
            let (value, low, high) = self.fit.as_ref()?.knee;
            return (high < self.hold?).then_some(Estimate { value, low, high });
        };
        let ceiling = self.over.unwrap_or(f64::MAX).min(capacity.high);
        let Some(fit) = &self.fit else {
            return Some(Estimate { low: self.hold.unwrap_or(capacity.low).min(capacity.low), ..capacity });
        };
        let (value, low, high) = fit.knee;
        let value = value.min(ceiling);
        // Possible error of the curve's form, even where it fits.
        let form = match (self.spoilt_by.is_some(), self.falls_under_overload()) {
            (true, _) => 0.12 * value,
            (false, true) => 0.06 * value,
            (false, false) => 0.01 * value,
        };
        let mut high = (high + form).min(ceiling + form).max(value);
        if self.variation.is_little() && value > 0.9 * capacity.value {
            // Apparently nothing varies: then the knee is the capacity itself.
            high = high.max(capacity.high);
        }
        Some(Estimate { value, low: (low - form).clamp(0.0, value), high })
    }

    /// Half of the knee's interval, as a share of it; 1 without a knee.
    pub fn half_width(&self) -> f64 {
        self.knee().map_or(1.0, |knee| 0.5 * (knee.high - knee.low) / knee.value)
    }

    /// Whether clearly less is completed when more is offered: the curve then has an end instead of
    /// a pole, and its form cannot follow that exactly.
    fn falls_under_overload(&self) -> bool {
        const CLEARLY: f64 = 0.85;
        let (Some(hold), Some(over)) = (self.hold, self.over) else { return false };
        let beyond = self.visits.iter().filter(|visit| !visit.is_limited && visit.offered >= over);
        beyond.map(|visit| visit.achieved).reduce(f64::min).is_some_and(|least| least < CLEARLY * hold)
    }

    /// Number of visits which show that the service does not keep up just above the highest rate
    /// that held.
    pub fn witnesses(&self) -> usize {
        let Some(over) = self.over else { return 0 };
        let near = |visit: &Visit| visit.offered >= over && visit.offered <= 1.6 * over;
        self.visits
            .iter()
            .zip(&self.held)
            .filter(|(visit, held)| near(visit) && matches!(held, StepResult::No(_)))
            .count()
    }

    /// How the service breaks just above the highest rate that held.
    pub fn how(&self) -> Option<MissedRequirement> {
        let over = self.over?;
        let near = || self.visits.iter().zip(&self.held).filter(|(visit, _)| visit.offered <= 1.3 * over);
        let errors = near().filter(|(_, held)| **held == StepResult::No(MissedRequirement::Errors)).count();
        let piles =
            near().filter(|(_, held)| **held == StepResult::No(MissedRequirement::AchievedBelowOffered)).count();
        Some(if errors > piles { MissedRequirement::Errors } else { MissedRequirement::AchievedBelowOffered })
    }

    /// Mean response time without load: of the lowest rates that held.
    pub fn base_response(&self) -> Option<f64> {
        let mut seen: Vec<(f64, f64)> = self
            .visits
            .iter()
            .zip(&self.held)
            .filter(|(_, held)| matches!(held, StepResult::Yes | StepResult::Unclear))
            .filter_map(|(visit, _)| Some((visit.offered, visit.response?)))
            .collect();
        seen.sort_by(|a, b| a.0.total_cmp(&b.0));
        seen.iter().take(3).map(|one| one.1).reduce(f64::min)
    }
}

/// An overload is short: fewer responses than this do not prove that the service held it.
const ENOUGH: f64 = 100.0;
