//! From searches at several values of one setting (workers, CPUs) to how capacity grows with it,
//! and to the number of instances for a load. [`run`] evaluates a single recording; this module
//! combines them. `holdup-knee` has the statistics, `words` the sentences.

mod plan;
mod run;
mod words;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use holdup_knee::figure;
use holdup_knee::scaling::{self, CapacityPoint, Scaling};
use holdup_knee::{Estimate, MissedRequirement};
use serde::{Deserialize, Serialize};

pub use plan::{Demand, Load, Plan, PlanRow};
pub use run::{Connections, CpuUse, Run, run};

use holdup_diagnose::search::Interval;
use holdup_recording::words::round;

/// The combined result of searches at several values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityReport {
    /// The varied setting, e.g. `cpu`; none if there was none.
    pub axis: Option<String>,
    /// One entry per value, in order.
    pub settings: Vec<Setting>,
    /// How capacity grows; none with fewer than two values of known capacity.
    pub scaling: Option<Scaling>,
    /// The figure behind [`Self::scaling`]: `capacity`, or `knee` if only that is known.
    pub scaling_of: Option<String>,
    /// The instances for a load, if that was requested and can be computed.
    pub plan: Option<Plan>,
    /// The result in sentences, most important first.
    pub text: Vec<String>,
}

/// The results at one value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// The value; none if no setting was varied.
    pub value: Option<f64>,
    /// The offered rate from which response time grows faster than load, pooled over all searches
    /// that found one.
    pub knee: Option<Interval>,
    /// The rate at which the service stops keeping up.
    pub breaking_point: Option<Interval>,
    /// How it fails to keep up from there on.
    pub how: Option<MissedRequirement>,
    /// The highest rate that it completes for long.
    pub capacity: Option<Interval>,
    /// The root cause beyond the knee, by most searches.
    pub culprit: Option<String>,
    /// The first limit, in words.
    pub bound_first: String,
    /// CPU use of the service at and beyond the knee.
    pub cpu: Option<CpuUse>,
    /// Why there is no knee at this value; none if there is one.
    pub no_knee: Option<String>,
    /// Connections that an instance opens.
    pub connections: Option<Connections>,
    /// The searches.
    pub runs: Vec<Run>,
}

/// Combines `runs` and plans for `demand`.
pub fn judge(axis: Option<&str>, runs: Vec<Run>, demand: Option<&Demand>) -> CapacityReport {
    // Values are positive, so millionths as whole numbers can be keys.
    let mut by_value: BTreeMap<i64, Vec<Run>> = BTreeMap::new();
    for run in runs {
        by_value.entry(run.value.map_or(0, |value| (value * 1e6).round() as i64)).or_default().push(run);
    }
    let settings: Vec<Setting> = by_value.into_values().map(Setting::from_runs).collect();
    let (scaling, scaling_of) = grows(&settings);
    let plan = demand.and_then(|demand| plan::plan(&settings, demand));
    let mut report =
        CapacityReport { axis: axis.map(str::to_owned), settings, scaling, scaling_of, plan, text: Vec::new() };
    report.text = words::sentences(&report, demand);
    report
}

impl CapacityReport {
    /// Whether each value has a knee.
    pub fn is_answered(&self) -> bool {
        !self.settings.is_empty() && self.settings.iter().all(|setting| setting.knee.is_some())
    }

    /// A value with its setting's name: `cpu=2`.
    pub fn name(&self, value: Option<f64>) -> String {
        match (&self.axis, value) {
            (Some(axis), Some(value)) => format!("{axis}={}", holdup_knee::figure(value)),
            _ => "it".to_owned(),
        }
    }
}

impl Setting {
    fn from_runs(runs: Vec<Run>) -> Self {
        let pooled = |figure: &dyn Fn(&Run) -> Option<Interval>| {
            let known: Vec<Estimate> = runs.iter().filter_map(|run| figure(run).map(estimate)).collect();
            scaling::pooled(&known).map(interval)
        };
        let knee = pooled(&|run| run.knee);
        let culprit = most_frequent(runs.iter().filter_map(|run| run.culprit.clone()));
        let cpu = runs.iter().filter_map(|run| run.cpu.clone()).max_by(|a, b| a.bound().total_cmp(&b.bound()));
        let connections =
            runs.iter().filter_map(|run| run.connections.clone()).max_by(|a, b| a.count.total_cmp(&b.count));
        let no_knee = runs.iter().find_map(|run| run.no_knee.clone()).filter(|_| knee.is_none());
        Self {
            value: runs.first().and_then(|run| run.value),
            knee,
            breaking_point: pooled(&|run| run.breaking_point.map(|breaking| breaking.rate)),
            how: most_frequent(runs.iter().filter_map(|run| run.breaking_point.map(|breaking| breaking.how))),
            capacity: pooled(&|run| run.capacity.filter(|_| run.knee.is_some())),
            bound_first: words::bound_first(culprit.as_deref(), cpu.as_ref(), no_knee.is_some()),
            culprit,
            cpu,
            no_knee,
            connections,
            runs,
        }
    }
}

/// One figure of a setting.
type Figure = fn(&Setting) -> Option<Interval>;

/// How the carried load grows, and by which figure. Capacity comes first: with more servers,
/// queueing depends less on chance, so that the knee moves closer to capacity without any growth of
/// capacity itself.
fn grows(settings: &[Setting]) -> (Option<Scaling>, Option<String>) {
    let figures: [(&str, Figure); 2] = [("capacity", |setting| setting.capacity), ("knee", |setting| setting.knee)];
    let answered: Vec<&Setting> = settings.iter().filter(|setting| setting.knee.is_some()).collect();
    for (name, figure) in figures {
        let given: Vec<CapacityPoint> = answered
            .iter()
            .filter_map(|setting| Some(CapacityPoint { value: setting.value?, carried: estimate(figure(setting)?) }))
            .collect();
        if given.len() == answered.len()
            && let Some(found) = scaling::scaling(&given)
        {
            return (Some(found), Some(name.to_owned()));
        }
    }
    (None, None)
}

fn estimate(interval: Interval) -> Estimate {
    Estimate { value: interval.value, low: interval.low, high: interval.high }
}

fn interval(estimate: Estimate) -> Interval {
    let of = |value: f64| round(value, 3);
    Interval { value: of(estimate.value), low: of(estimate.low), high: of(estimate.high) }
}

/// The most frequent value; among equals the first.
fn most_frequent<T: PartialEq>(all: impl Iterator<Item = T>) -> Option<T> {
    let mut counted: Vec<(T, usize)> = Vec::new();
    for one in all {
        match counted.iter_mut().find(|(known, _)| *known == one) {
            Some((_, count)) => *count += 1,
            None => counted.push((one, 1)),
        }
    }
    let most = counted.iter().map(|(_, count)| *count).max()?;
    counted.into_iter().find(|(_, count)| *count == most).map(|(one, _)| one)
}
