//! From searches at several values of one thing (workers, CPUs) to how capacity grows with it, and to how many instances a load
//! takes. What a single recording says is [`run`]'s; here they are put together. Statistics are `holdup-knee`'s, words `words`'s.

mod plan;
mod run;
mod words;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use holdup_knee::figure;
use holdup_knee::scaling::{self, Given, Scaling};
use holdup_knee::{Estimate, How};
use serde::{Deserialize, Serialize};

pub use plan::{Demand, Load, Plan, PlanRow};
pub use run::{Connections, CpuUse, Run, run};

use holdup_diagnose::search::Interval;
use holdup_recording::words::round;

/// What searches at several values say together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CapacityReport {
    /// What was varied, e.g. `cpu`; none if nothing was.
    pub axis: Option<String>,
    /// By value, in order.
    pub settings: Vec<Setting>,
    /// How capacity grows; none with fewer than two values whose capacity is known.
    pub scaling: Option<Scaling>,
    /// Of which figure [`Self::scaling`] is: `capacity`, or `knee` where that alone is known.
    pub scaling_of: Option<String>,
    /// What a load takes, if that was asked and can be said.
    pub plan: Option<Plan>,
    /// All of it in sentences, most important first.
    pub text: Vec<String>,
}

/// What is known of one value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// The value; none if nothing was varied.
    pub value: Option<f64>,
    /// The offered rate from which response time grows faster than load, of all searches that name one.
    pub knee: Option<Interval>,
    /// Where the service stops doing what it should.
    pub breaking_point: Option<Interval>,
    /// What is missed from there on.
    pub how: Option<How>,
    /// The most that it completes for long.
    pub capacity: Option<Interval>,
    /// The root cause of what is slow beyond the knee, as most searches name it.
    pub culprit: Option<String>,
    /// What bound first, in words.
    pub bound_first: String,
    /// CPU time of what serves, where it did not follow or nearly did not.
    pub cpu: Option<CpuUse>,
    /// Why no knee is named at this value; none if one is.
    pub no_knee: Option<String>,
    /// Connections that an instance opens.
    pub connections: Option<Connections>,
    /// Each search.
    pub runs: Vec<Run>,
}

/// Puts `runs` together and plans for `demand`.
pub fn judge(axis: Option<&str>, runs: Vec<Run>, demand: Option<&Demand>) -> CapacityReport {
    // Values are positive: as whole thousandths of thousandths they are keys.
    let mut by_value: BTreeMap<i64, Vec<Run>> = BTreeMap::new();
    for run in runs {
        by_value.entry(run.value.map_or(0, |value| (value * 1e6).round() as i64)).or_default().push(run);
    }
    let settings: Vec<Setting> = by_value.into_values().map(Setting::of).collect();
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

    /// Values as they are called: `cpu=2`.
    pub fn name(&self, value: Option<f64>) -> String {
        match (&self.axis, value) {
            (Some(axis), Some(value)) => format!("{axis}={}", holdup_knee::figure(value)),
            _ => "it".to_owned(),
        }
    }
}

impl Setting {
    fn of(runs: Vec<Run>) -> Self {
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

/// How what is carried grows, and which figure that is of. The capacity: with more servers there is less luck in who waits for
/// whom, so that the knee comes nearer to it, which is no growth of what they can do.
fn grows(settings: &[Setting]) -> (Option<Scaling>, Option<String>) {
    let figures: [(&str, Figure); 2] = [("capacity", |setting| setting.capacity), ("knee", |setting| setting.knee)];
    let answered: Vec<&Setting> = settings.iter().filter(|setting| setting.knee.is_some()).collect();
    for (name, figure) in figures {
        let given: Vec<Given> = answered
            .iter()
            .filter_map(|setting| Some(Given { value: setting.value?, carried: estimate(figure(setting)?) }))
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

/// What there is most of; of as many, what came first.
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
