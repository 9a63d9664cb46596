//! How many instances a load takes at each value, and the connections that they open against what there may be.

use holdup_knee::scaling::{self, Budget, Needed};
use serde::{Deserialize, Serialize};

use super::{Setting, estimate};
use holdup_diagnose::search::Interval;
use holdup_recording::words::round;

/// What is to be planned for.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// The load.
    pub load: Load,
    /// Share (0-1) of its knee that each instance keeps free.
    pub headroom: f64,
    /// Connections that each instance opens, where the user says it.
    pub connections_per_instance: Option<f64>,
    /// Connections there may be, where the user says it.
    pub connection_budget: Option<f64>,
}

/// A load to plan for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Requests per second.
    Rate(f64),
    /// So many times the knee at the smallest value.
    Times(f64),
}

/// What a load takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Requests per second to carry.
    pub rate: f64,
    /// So many times the knee at the smallest value, if it was asked like that.
    pub times: Option<f64>,
    /// Share (0-1) of its knee that each instance keeps free.
    pub headroom_ratio: f64,
    /// By value.
    pub rows: Vec<PlanRow>,
    /// How it is known how many connections an instance opens; none if it is not.
    pub connections_known_by: Option<String>,
    /// How it is known how many there may be; none if it is not.
    pub budget_known_by: Option<String>,
}

/// What a load takes of instances of one value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanRow {
    /// The value; none if nothing was varied.
    pub value: Option<f64>,
    /// The knee of one instance.
    pub knee: Interval,
    /// What each is to carry: its knee less the headroom.
    pub each: f64,
    /// How many.
    pub needed: Needed,
    /// Connections that one opens.
    pub connections_each: Option<f64>,
    /// What becomes of the budget of connections; none where one of both is not known.
    pub budget: Option<Budget>,
    /// What they carry at most if the budget binds first.
    pub carried_within_budget: Option<f64>,
}

/// The plan; none where no value has a knee.
pub(super) fn plan(settings: &[Setting], demand: &Demand) -> Option<Plan> {
    let known: Vec<(&Setting, Interval)> = settings.iter().filter_map(|s| Some((s, s.knee?))).collect();
    let (rate, times) = match demand.load {
        Load::Rate(rate) => (rate, None),
        // Of the smallest value, or the multiple would be of something else than what was asked.
        Load::Times(times) => (times * settings.first()?.knee?.value, Some(times)),
    };
    let told_budget = settings.iter().flat_map(|s| &s.runs).find_map(|run| run.connection_budget);
    let allowed = demand.connection_budget.or(told_budget);
    let measured = known.iter().find_map(|(setting, _)| setting.connections.as_ref());
    let connections_known_by = match demand.connections_per_instance {
        Some(_) => Some("--connections-per-instance".to_owned()),
        None => measured.map(|connections| connections.known_by.clone()),
    };
    let budget_known_by = match (demand.connection_budget, told_budget) {
        (Some(_), _) => Some("--connection-budget".to_owned()),
        (None, Some(_)) => Some("the database's max_connections, less those it keeps for superusers".to_owned()),
        (None, None) => None,
    };
    let rows: Vec<PlanRow> = known
        .into_iter()
        .map(|(setting, knee)| {
            let needed = scaling::instances(rate, &estimate(knee), demand.headroom);
            let each = (1.0 - demand.headroom) * knee.value;
            let connections_each =
                demand.connections_per_instance.or(setting.connections.as_ref().map(|connections| connections.count));
            let budget = connections_each.zip(allowed).map(|(each, all)| scaling::budget(needed.instances, each, all));
            let cut = budget.filter(|budget| !budget.fits).map(|budget| f64::from(budget.instances) * each);
            PlanRow {
                value: setting.value,
                knee,
                each: round(each, 3),
                needed,
                connections_each,
                budget,
                carried_within_budget: cut.map(|rate| round(rate, 3)),
            }
        })
        .collect();
    (!rows.is_empty()).then_some(Plan {
        rate: round(rate, 3),
        times,
        headroom_ratio: demand.headroom,
        rows,
        connections_known_by,
        budget_known_by,
    })
}

impl Plan {
    /// Whether there is a value whose instances fit in the budget of connections, or none is known.
    pub fn fits(&self) -> bool {
        self.rows.iter().any(|row| row.budget.is_none_or(|budget| budget.fits))
    }
}
