//! The number of instances for a load at each value, and their connections compared with the
//! budget.

use holdup_knee::scaling::{self, Budget, InstanceCount};
use serde::{Deserialize, Serialize};

use super::{Setting, estimate};
use holdup_diagnose::search::Interval;
use holdup_recording::words::round;

/// The load to plan for, and the conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// The load.
    pub load: Load,
    /// Share (0-1) of its knee that each instance keeps free.
    pub headroom: f64,
    /// Connections that each instance opens, if the user gives it.
    pub connections_per_instance: Option<f64>,
    /// The budget of connections, if the user gives it.
    pub connection_budget: Option<f64>,
}

/// A load to plan for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Requests per second.
    Rate(f64),
    /// A multiple of the knee at the smallest value.
    Times(f64),
}

/// The instances that a load needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Requests per second to carry.
    pub rate: f64,
    /// The multiple of the knee at the smallest value, if the load was given like that.
    pub times: Option<f64>,
    /// Share (0-1) of its knee that each instance keeps free.
    pub headroom_ratio: f64,
    /// One row per value.
    pub rows: Vec<PlanRow>,
    /// The source of the number of connections per instance; none if unknown.
    pub connections_known_by: Option<String>,
    /// The source of the budget; none if unknown.
    pub budget_known_by: Option<String>,
}

/// The instances that a load needs at one value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlanRow {
    /// The value; none if no setting was varied.
    pub value: Option<f64>,
    /// The knee of one instance.
    pub knee: Interval,
    /// The rate that each carries: its knee less the headroom.
    pub each: f64,
    /// The number of instances.
    pub needed: InstanceCount,
    /// Connections that one instance opens.
    pub connections_each: Option<f64>,
    /// The use of the connection budget; none if one of both figures is unknown.
    pub budget: Option<Budget>,
    /// The rate they carry if the budget is the first limit.
    pub carried_within_budget: Option<f64>,
}

/// The plan; none if no value has a knee.
pub(super) fn plan(settings: &[Setting], demand: &Demand) -> Option<Plan> {
    let known: Vec<(&Setting, Interval)> = settings.iter().filter_map(|s| Some((s, s.knee?))).collect();
    let (rate, times) = match demand.load {
        Load::Rate(rate) => (rate, None),
        // The smallest value's own knee is needed, or the multiple would mean something else.
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
    /// Whether the instances of some value fit in the budget of connections, or no budget is known.
    pub fn fits(&self) -> bool {
        self.rows.iter().any(|row| row.budget.is_none_or(|budget| budget.fits))
    }
}
