//! Whether two recordings measured the same thing: operations, offered load, a generator that kept
//! up, answered requests, the machine. Each reason against it is a phrase that can follow "not
//! comparable because".

use std::collections::{BTreeMap, BTreeSet};

use holdup_recording::Recording;
use holdup_recording::catalog::moves_by_itself;
use holdup_recording::manifest::{LoadFacts, Model};

use super::measure::{Measure, Precondition};
use super::words::number;
use holdup_diagnose::case::Case;
use holdup_diagnose::verdict::Diagnosis;
use holdup_signals::time::requests::{is_latency, unloaded_ms};

/// Offered loads from a schedule that differ by more than this share are different.
const SAME_DEMAND: f64 = 0.02;

/// The same for users who arrive by themselves: no two windows of them are alike.
const SAME_VISITORS: f64 = 0.10;

/// The mix differs if more than this share (0-1) of the requests belongs to other operations.
const SAME_MIX: f64 = 0.05;

/// If shares (0-1) of unanswered requests differ by more than this, percentiles cover different
/// survivors.
const SURVIVORS: f64 = 0.05;

/// The property that only closed models have.
const USERS: &str = "users";

/// A shorter run (seconds) after the warm-up does not count as a measurement.
const SHORTEST_S: f64 = 1.0;

/// The facts that make a recording comparable.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Share of each operation among all requests, 0-1.
    pub mix: BTreeMap<String, f64>,
    /// Operations of the scenario.
    scenario: Vec<String>,
    /// The schedule: rates and seconds; empty without one.
    phases: Vec<(f64, f64, f64)>,
    is_search: bool,
    /// Requests that were due, per second.
    offered: f64,
    is_load: bool,
    /// Properties of the load, in words, by name.
    made_by: BTreeMap<&'static str, String>,
    /// CPUs of the generator.
    cpus: u32,
    /// Share of requests that failed without a time that could stand for an answer, 0-1.
    pub unanswered: f64,
    /// Seconds of the load after the warm-up.
    measured_s: f64,
    /// Why it says little about the service: a limited generator, or a stalled machine.
    pub spoiled: Option<String>,
    /// Time of the busiest operation on an idle service, milliseconds.
    pub handler_ms: f64,
    /// The highest rate that a search saw carried, requests per second.
    pub carried: Option<f64>,
    /// Settings by kind of source and name.
    pub settings: BTreeMap<(String, String), String>,
}

impl Facts {
    pub fn from_case(case: &Case<'_>, recording: &Recording, diagnosis: &Diagnosis) -> Self {
        let manifest = &recording.manifest;
        let due: u64 = case.operations.iter().map(|o| o.offered).sum();
        let rows = case.requests_in(case.whole()).unwrap_or_default();
        // A login once per thousand requests may be the quickest operation, but it does not limit
        // the service.
        let busiest = case.operations.iter().max_by_key(|o| o.offered);
        let unanswered: u64 = rows.iter().filter(|r| !is_latency(r)).map(|r| r.count()).sum();
        let all: u64 = rows.iter().map(|r| r.count()).sum();
        let seconds = &case.client.seconds;
        Self {
            mix: case.operations.iter().map(|o| (o.name.clone(), o.offered as f64 / due.max(1) as f64)).collect(),
            scenario: manifest.load.as_ref().map_or_else(Vec::new, |load| load.operations.clone()),
            phases: manifest
                .phases
                .iter()
                .map(|p| (p.rate_from, p.rate_to, ((p.to - p.from) as f64 / 1e8).round() / 10.0))
                .collect(),
            is_search: recording.search.is_some(),
            offered: diagnosis.load.offered_rate,
            is_load: manifest.load.is_some(),
            made_by: manifest.load.as_ref().map(made_by).unwrap_or_default(),
            cpus: manifest.host.cpus,
            unanswered: unanswered as f64 / all.max(1) as f64,
            measured_s: seconds.iter().map(|s| s.window.seconds()).sum(),
            spoiled: diagnosis.spoiled(),
            handler_ms: unloaded_ms(rows.iter().copied().filter(|r| busiest.is_some_and(|o| r.operation == o.name))),
            carried: diagnosis.search.as_ref().and_then(|search| {
                search.points.iter().filter(|p| p.held == "yes").map(|p| p.offered).reduce(f64::max)
            }),
            settings: settings(recording),
        }
    }

    #[cfg(test)]
    pub fn set_cpus(&mut self, cpus: u32) {
        self.cpus = cpus;
    }

    /// Why `measure` of `self` and of `base` cannot be compared; none if they can.
    pub fn incomparable(&self, base: &Self, measure: &Measure, across_machines: bool) -> Option<String> {
        if measure.needs == Precondition::Nothing {
            return None;
        }
        if measure.operation.is_none()
            && let Some(why) = self.other_mix(base)
        {
            match measure.needs {
                Precondition::SameLoad if self.lost_steps(base) => {}
                Precondition::SameAnswers if self.lost_steps(base) => return Some(self.survivors(base)),
                _ => return Some(why),
            }
        }
        if self.cpus != base.cpus && !across_machines {
            return Some(format!("they were measured from machines of {} and {} CPUs", base.cpus, self.cpus));
        }
        if measure.needs == Precondition::SameOperations {
            return None;
        }
        self.other_load(base).or_else(|| match measure.needs {
            Precondition::SameAnswers if self.has_other_survivors(base) => Some(self.survivors(base)),
            _ => None,
        })
    }

    /// Whether the mix may differ because requests failed: a session that fails does not go on to its
    /// next step. Fewer of these are then a result of the same scenario, not another scenario.
    fn lost_steps(&self, base: &Self) -> bool {
        !self.scenario.is_empty() && self.scenario == base.scenario && self.has_other_survivors(base)
    }

    /// Whether both were offered the same requests by one schedule, whatever the service made of them: then
    /// a request that failed has its counterpart in the other.
    pub fn has_schedule_of(&self, base: &Self) -> bool {
        let is_open = |facts: &Self| !facts.phases.is_empty() && facts.scenario == base.scenario;
        is_open(self) && is_open(base) && !self.made_by.contains_key(USERS) && self.other_load(base).is_none()
    }

    /// Whether so many more requests failed without an answer in one of the two that times cover only the
    /// survivors.
    pub fn has_other_survivors(&self, base: &Self) -> bool {
        (self.unanswered - base.unanswered).abs() > SURVIVORS
    }

    fn survivors(&self, base: &Self) -> String {
        format!(
            "{:.0} % of the requests failed without an answer against {:.0} %, so the times cover only the survivors",
            base.unanswered * 100.0,
            self.unanswered * 100.0
        )
    }

    /// Why the operations differ. A rare one may be missing by chance.
    fn other_mix(&self, base: &Self) -> Option<String> {
        let share = |facts: &Self, name: &str| facts.mix.get(name).copied().unwrap_or(0.0);
        let names: BTreeSet<&String> = self.mix.keys().chain(base.mix.keys()).collect();
        let apart = |name: &str| (share(self, name) - share(base, name)).abs();
        if names.iter().map(|name| apart(name)).sum::<f64>() / 2.0 <= SAME_MIX {
            return None;
        }
        if self.mix.keys().ne(base.mix.keys()) {
            let list = |facts: &Self| facts.mix.keys().cloned().collect::<Vec<_>>().join(", ");
            return Some(format!("the scenarios differ: {} against {}", list(base), list(self)));
        }
        let most = names.iter().max_by(|a, b| apart(a).total_cmp(&apart(b)))?;
        let (before, after) = (share(base, most) * 100.0, share(self, most) * 100.0);
        Some(format!("the mix differs: {most} is {before:.0} % of the requests against {after:.0} %"))
    }

    /// Why the loads differ.
    fn other_load(&self, base: &Self) -> Option<String> {
        if self.is_search || base.is_search {
            return Some("a search chooses its own rates".to_owned());
        }
        if self.is_load != base.is_load {
            return Some("one had load from holdup, the other was only watched".to_owned());
        }
        for (name, value) in &base.made_by {
            let other = self.made_by.get(name).map_or("-", String::as_str);
            if other != value {
                return Some(format!("the loads differ: {name} {value} against {other}"));
            }
        }
        let far = |a: f64, b: f64, same: f64| (a - b).abs() > same * a.abs().max(b.abs());
        let rates = |facts: &Self| facts.phases.iter().map(|(from, to, _)| (*from, *to)).collect::<Vec<_>>();
        let (mine, theirs) = (rates(self), rates(base));
        let is_scheduled = !theirs.is_empty() && !mine.is_empty();
        let differs = if is_scheduled {
            let rate = |(a, b): (&(f64, f64), &(f64, f64))| far(a.0, b.0, SAME_DEMAND) || far(a.1, b.1, SAME_DEMAND);
            let length = |(a, b): (&(f64, f64, f64), &(f64, f64, f64))| far(a.2, b.2, SAME_DEMAND);
            let is_steady = theirs.iter().all(|(from, to)| from == to && *from == theirs[0].0);
            mine.len() != theirs.len()
                || mine.iter().zip(&theirs).any(rate)
                || !is_steady && self.phases.iter().zip(&base.phases).any(length)
        } else {
            far(self.offered, base.offered, SAME_VISITORS)
        };
        if differs {
            let (theirs, mine) = (number(base.offered), number(self.offered));
            return Some(format!("the offered rates differ: {theirs}/s against {mine}/s"));
        }
        let short = [base, self].into_iter().find(|facts| facts.measured_s < SHORTEST_S);
        short.map(|facts| format!("one of them is hardly longer than its warm-up: {:.1} s remain", facts.measured_s))
    }
}

fn made_by(load: &LoadFacts) -> BTreeMap<&'static str, String> {
    let mut by = BTreeMap::from([
        ("model", if load.model == Model::Closed { "closed" } else { "open" }.to_owned()),
        ("timeout", format!("{:.3} s", load.timeout_ns as f64 / 1e9)),
        ("protocol", load.protocol.clone()),
    ]);
    if load.model == Model::Closed {
        by.insert(USERS, load.connections.to_string());
    }
    by
}

fn settings(recording: &Recording) -> BTreeMap<(String, String), String> {
    let rows = recording.tables.settings.rows.iter();
    let kind = |source: &str| source.split(':').next().unwrap_or_default().to_owned();
    rows.filter(|s| !moves_by_itself(&s.name)).map(|s| ((kind(&s.source), s.name.clone()), short(&s.value))).collect()
}

/// The beginning of a value suffices to see a difference.
fn short(value: &str) -> String {
    const LONGEST: usize = 60;
    if value.chars().count() <= LONGEST {
        value.to_owned()
    } else {
        value.chars().take(LONGEST).chain(['…']).collect()
    }
}
