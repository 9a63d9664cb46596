//! Several recordings of one time, made on different hosts, as one: the generator's, the app's, the
//! database's. [`Plan`] reads the manifests, names the hosts and checks that the times overlap;
//! [`Plan::open`] reads the rows and joins them. Rows are moved, not copied, and what does not fit
//! in memory is read as an excerpt, as of one recording.
//!
//! Sources that two hosts have of their own (`pid:7`, `wire:3306`) get their host's name:
//! `pid:7@db1`. The source `host` keeps its name, because rules mean *the* host by it: the joined
//! recording holds that of one host at a time, and [`Fleet::look_from`] changes which. This module
//! judges nothing and measures no clock: who opens a fleet says how far clocks are apart.

mod clocks;
mod join;
mod loads;
mod machine;
mod part;
mod plan;
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

pub use self::clocks::{Clock, Measure};
use self::machine::Machine;
pub use self::part::{Part, Role};
pub use self::plan::{FleetError, Input, Plan};
use crate::{Labels, Recording};

/// The source of what a machine says of itself.
pub const MACHINE: &str = "host";

/// Recordings of several hosts, joined.
#[derive(Debug)]
pub struct Fleet {
    /// The joined recording. Its `host` is that of the part that it was last looked at from.
    pub recording: Recording,
    /// The recordings it was made of, in the order they were given.
    pub parts: Vec<Part>,
    /// The time that is judged, nanoseconds since the Unix epoch.
    pub range: Range<i64>,
    /// Host of each row of the joined manifest's coverage.
    pub coverage_hosts: Vec<String>,
    /// Which host each source is of. `host` is not among them.
    owners: BTreeMap<String, String>,
    /// Sources of each table.
    tables: BTreeMap<&'static str, BTreeSet<String>>,
    /// What each machine said of itself, but for that in `recording`.
    machines: Vec<Machine>,
    /// The same of the course, if there is one.
    course: Vec<Machine>,
    seen_from: Option<usize>,
}

impl Fleet {
    /// Parts that recorded their machine: first those of databases, then of apps, then others.
    pub fn machines(&self) -> Vec<usize> {
        let mut found: Vec<usize> = (0..self.parts.len()).filter(|n| self.parts[*n].has_machine).collect();
        found.sort_by_key(|n| self.parts[*n].roles.iter().min().copied().unwrap_or(Role::Other));
        found
    }

    /// Makes `host` of the joined recording that of part `number`.
    pub fn look_from(&mut self, number: usize) {
        if self.seen_from == Some(number) {
            return;
        }
        let before = self.seen_from.replace(number);
        machine::exchange(&mut self.recording.tables, &mut self.machines, before, number);
        if let Some(course) = self.recording.course_mut() {
            machine::exchange(&mut course.tables, &mut self.course, before, number);
        }
    }

    /// The part that `host` is of.
    pub fn seen_from(&self) -> Option<&Part> {
        self.seen_from.and_then(|number| self.parts.get(number))
    }

    /// The hosts that recorded rows of `table` with `labels`: for `samples` those of the metric that
    /// is named there.
    pub fn hosts_of(&self, table: &str, labels: &Labels) -> BTreeSet<&str> {
        if matches!(table, "requests" | "executions") {
            return self.with_role(Role::Generator).map(|part| part.host.as_str()).collect();
        }
        let of = |source: &str| match source {
            MACHINE => self.seen_from().map(|part| part.host.as_str()),
            _ => self.owners.get(source).map(String::as_str),
        };
        if let Some(source) = labels.get("source").filter(|_| table == "settings") {
            return of(source).into_iter().collect();
        }
        let Some(metric) = labels.get("metric").filter(|_| table == "samples") else {
            return self.tables.get(table).into_iter().flatten().filter_map(|source| of(source)).collect();
        };
        let wanted: Vec<(&str, &str)> = labels.iter().filter(|(name, _)| *name != "metric").collect();
        let series = self.recording.tables.condensed.iter().filter_map(|all| all.series.by_metric.get(metric));
        series
            .flat_map(|of| of.keys())
            .filter(|(_, l)| l.contains(&wanted))
            .filter_map(|(source, _)| of(source))
            .collect()
    }

    /// Parts with `role`.
    pub fn with_role(&self, role: Role) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(move |part| part.roles.contains(&role))
    }
}

#[cfg(test)]
mod tests;
