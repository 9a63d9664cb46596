//! The results of each operation: counts of the whole run, exact where the generator kept them, and
//! the distribution of its times after the warm-up. Times come from the histograms (`latency.hlog`,
//! three digits), which hold every request. Without histograms, or for a part of the run, they come
//! from the rows, which may be a sample.

use std::collections::{BTreeMap, HashMap};

use holdup_recording::rows::Request;
use holdup_recording::words::thousands;
use holdup_recording::{Recording, hlog};

use crate::Window;
use crate::time::distribution::Distribution;
use crate::time::requests::{distribution, failed, is_latency, response_ms, send_lag_ms, service_ms};

/// The kind of failure that an HTTP status is.
const HTTP_STATUS: &str = "http_status";

/// The results of one operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operation {
    /// Its name.
    pub name: String,
    /// Requests that were due.
    pub offered: u64,
    /// Requests that succeeded.
    pub completed: u64,
    /// Requests that failed, by kind.
    pub errors: BTreeMap<String, u64>,
    /// Those that failed because of their HTTP status, by that: exact, or in proportion to rows that
    /// are a sample.
    pub statuses: BTreeMap<i32, u64>,
    /// From the intended start, milliseconds; unfinished ones at their age.
    pub response_ms: Distribution,
    /// From the send, milliseconds.
    pub service_ms: Distribution,
    /// The generator's own delay, milliseconds.
    pub send_lag_ms: Distribution,
}

impl Operation {
    /// Requests that failed.
    pub fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// Failures by what tells most of them, an HTTP status where there is one: most frequent first.
    pub fn failures(&self) -> Vec<(String, u64)> {
        let is_known = |kind: &str| kind == HTTP_STATUS && !self.statuses.is_empty();
        let kinds = self.errors.iter().filter(|(kind, _)| !is_known(kind)).map(|(kind, n)| (kind.clone(), *n));
        let mut all: Vec<(String, u64)> =
            kinds.chain(self.statuses.iter().map(|(status, n)| (status.to_string(), *n))).collect();
        all.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        all
    }

    /// Scales the statuses of rows to the exact count of such failures.
    fn scale_statuses(&mut self) {
        let exact = self.errors.get(HTTP_STATUS).copied().unwrap_or(0);
        let counted: u64 = self.statuses.values().sum();
        if counted > 0 && counted != exact {
            let share = exact as f64 / counted as f64;
            self.statuses.values_mut().for_each(|n| *n = (*n as f64 * share).round() as u64);
        }
    }
}

/// Operations of `requests` of `recording` in the scenario's order: all of it, or what was due in
/// `window`. Times count from `measured_from` (nanoseconds since the Unix epoch).
pub fn summarize(
    recording: &Recording,
    requests: &[&Request],
    window: Option<Window>,
    measured_from: i64,
) -> Vec<Operation> {
    let groups = by_operation(requests.iter().copied());
    let Some(load) = recording.manifest.load.as_ref().filter(|_| window.is_none()) else {
        return groups.iter().map(|(name, rows)| timed(counted(name, rows), rows, measured_from)).collect();
    };
    let mut operations: Vec<Operation> = groups.iter().map(|(name, rows)| counted(name, rows)).collect();
    for totals in &load.totals {
        let at = operations.iter().position(|o| o.name == totals.operation).unwrap_or_else(|| {
            operations.push(Operation { name: totals.operation.clone(), ..Operation::default() });
            operations.len() - 1
        });
        let operation = &mut operations[at];
        (operation.offered, operation.completed) = (totals.offered, totals.completed);
        operation.errors = totals.errors.iter().filter(|(_, n)| **n > 0).map(|(k, n)| (k.clone(), *n)).collect();
        operation.scale_statuses();
    }
    operations.retain(|o| o.offered > 0);
    let place = |o: &Operation| load.operations.iter().position(|name| *name == o.name).unwrap_or(usize::MAX);
    operations.sort_by_key(place);

    let mut by_tag: HashMap<&str, Vec<&hlog::Slice>> = HashMap::new();
    for slice in recording.latencies.iter().filter(|s| s.from >= measured_from) {
        by_tag.entry(&slice.tag).or_default().push(slice);
    }
    let tags: Vec<String> = operations.iter().map(|o| hlog::clean(&o.name)).collect();
    let timed = operations.into_iter().enumerate().map(|(i, operation)| {
        // Only rows tell apart two names that share a tag.
        let is_alone = tags.iter().filter(|tag| **tag == tags[i]).count() == 1;
        let times = if is_alone { Times::of_histograms(&tags[i], &by_tag) } else { None };
        match times {
            Some(Times { response_ms, service_ms, send_lag_ms }) => {
                Operation { response_ms, service_ms, send_lag_ms, ..operation }
            }
            None => {
                let rows = groups.iter().find(|(name, _)| *name == operation.name).map_or(&[][..], |(_, rows)| rows);
                timed(operation, rows, measured_from)
            }
        }
    });
    timed.collect()
}

/// Operations from `rows` alone.
pub fn summarize_rows<'r>(rows: impl IntoIterator<Item = &'r Request>, measured_from: i64) -> Vec<Operation> {
    by_operation(rows).iter().map(|(name, rows)| timed(counted(name, rows), rows, measured_from)).collect()
}

/// Rows by operation, in order of appearance.
fn by_operation<'r>(rows: impl IntoIterator<Item = &'r Request>) -> Vec<(&'r str, Vec<&'r Request>)> {
    let mut groups: Vec<(&str, Vec<&Request>)> = Vec::new();
    for row in rows {
        match groups.iter_mut().find(|(name, _)| *name == row.operation) {
            Some((_, group)) => group.push(row),
            None => groups.push((&row.operation, vec![row])),
        }
    }
    groups
}

/// An operation with the counts of its rows.
fn counted(name: &str, rows: &[&Request]) -> Operation {
    let mut operation = Operation { name: name.to_owned(), ..Operation::default() };
    for row in rows {
        operation.offered += row.count();
        if row.outcome == "ok" {
            operation.completed += row.count();
        } else if failed(row) {
            *operation.errors.entry(row.outcome.clone()).or_default() += row.count();
            if let Some(status) = row.status.filter(|_| row.outcome == HTTP_STATUS) {
                *operation.statuses.entry(status).or_default() += row.count();
            }
        }
    }
    operation
}

/// An operation with the times of its rows.
fn timed(operation: Operation, rows: &[&Request], measured_from: i64) -> Operation {
    let measured = || rows.iter().copied().filter(|r| r.intended_at >= measured_from && is_latency(r));
    Operation {
        response_ms: distribution(measured(), |r| Some(response_ms(r))),
        service_ms: distribution(measured(), service_ms),
        send_lag_ms: distribution(measured(), send_lag_ms),
        ..operation
    }
}

struct Times {
    response_ms: Distribution,
    service_ms: Distribution,
    send_lag_ms: Distribution,
}

impl Times {
    /// An operation's times from its histograms, if they exist and can all be read.
    fn of_histograms(tag: &str, by_tag: &HashMap<&str, Vec<&hlog::Slice>>) -> Option<Self> {
        let times = |kind: &str| -> Option<Distribution> {
            let Some(slices) = by_tag.get(format!("{tag}.{kind}").as_str()) else {
                return Some(Distribution::default());
            };
            let sum = hlog::merged(slices.iter().copied())?;
            let values = sum.iter_recorded().map(|v| (v.value_iterated_to() as f64 / 1e6, v.count_at_value()));
            Some(Distribution::from_counts(values))
        };
        let (response_ms, service_ms, send_lag_ms) = (times("response")?, times("service")?, times("send_lag")?);
        (!response_ms.is_empty()).then_some(Self { response_ms, service_ms, send_lag_ms })
    }
}

/// `120 of 500 requests failed (100 connect_failed, 20 with 503)`.
pub fn failures<'o>(operations: impl IntoIterator<Item = &'o Operation>) -> String {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let mut all = 0;
    for operation in operations {
        all += operation.offered;
        operation.failures().into_iter().for_each(|(kind, count)| *kinds.entry(kind).or_default() += count);
    }
    let mut kinds: Vec<(String, u64)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let bad: u64 = kinds.iter().map(|(_, n)| n).sum();
    let with = |kind: &str| if kind.starts_with(|c: char| c.is_ascii_digit()) { "with " } else { "" };
    let named: Vec<String> =
        kinds.iter().map(|(kind, n)| format!("{} {}{kind}", thousands(*n as f64), with(kind))).collect();
    format!("{} of {} requests failed ({})", thousands(bad as f64), thousands(all as f64), named.join(", "))
}

#[cfg(test)]
mod tests;
