//! What a case says about the edges between its findings: the magnitudes that must agree, what began with
//! the episode, and which limits came down.

use crate::case::Case;
use crate::causes::{Cause, Edge, Magnitude, Trait};
use crate::resources::volume::{demand, level};
use holdup_signals::time::requests::{client_queue_ms, mean_over};

/// All that links need to know besides the findings.
pub(crate) struct Circumstances {
    /// Milliseconds by which a mean slow request took longer.
    pub excess_ms: f64,
    /// Milliseconds that a mean slow request waited in the load generator.
    pub client_queue_ms: f64,
    /// Edges of the findings, those of one finding nearest first.
    pub edges: Vec<ActiveEdge>,
    /// Contributors that began with the episode and make up most of the growth of the demand.
    pub began: Vec<Cause>,
    /// Contributors without which the limit would not be reached.
    pub tips: Vec<Cause>,
    /// Whether a limit came down, rather than the demand up.
    pub came_down: bool,
    /// Whether a disk got slow itself, under no more demand.
    pub got_slow: bool,
    /// Causes that could not be judged, and may be what another finding shows.
    pub not_judged: Vec<Cause>,
}

/// An edge that leads to a finding, if the other end explains enough.
pub(crate) struct ActiveEdge {
    pub consequence: Cause,
    pub edge: &'static Edge,
    pub needed: Needed,
}

/// Milliseconds of a request that the other end has to be held against.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Needed {
    /// A part (0-1) of what the finding explains.
    Own(f64),
    /// What a resource measured.
    Measured(f64),
}

impl Circumstances {
    pub(crate) fn read(case: &Case<'_>, found: &[Cause], not_judged: Vec<Cause>) -> Self {
        let edge = |consequence: Cause, edge: &'static Edge| {
            let needed = match edge.magnitude {
                Magnitude::Own(holds) => holds(case).then_some(Needed::Own(1.0)),
                Magnitude::PartOfOwn(part) => Some(Needed::Own(part)),
                Magnitude::Measured(measure) => measure(case).map(Needed::Measured),
            };
            needed.map(|needed| ActiveEdge { consequence, edge, needed })
        };
        let edges = found.iter().flat_map(|cause| cause.definition().follows_from.iter().map(|of| (*cause, of)));
        let contributors = |is: fn(&Case<'_>, Cause) -> bool| -> Vec<Cause> {
            let adds = |cause: &Cause| !cause.definition().adds_to.is_empty() && is(case, *cause);
            found.iter().copied().filter(adds).collect()
        };
        let waited = case.slow_requests().ok();
        let waited = waited.and_then(|rows| mean_over(rows.iter().copied(), |row| Some(client_queue_ms(row))));
        Self {
            excess_ms: case.excess_ms(),
            client_queue_ms: waited.unwrap_or(0.0),
            edges: edges.filter_map(|(cause, of)| edge(cause, of)).collect(),
            began: contributors(demand::began),
            tips: contributors(demand::tips),
            came_down: found.iter().any(|cause| cause.is(Trait::DiskLimit)) && demand::came_down(case),
            got_slow: found.iter().any(|cause| cause.is(Trait::FullDisk)) && level::slowed(case).is_some(),
            not_judged,
        }
    }
}
