//! What each operation came to: counts of the whole run, exact where the generator kept them, and how its times are
//! distributed after the warm-up. Times are those of the histograms (`latency.hlog`, three digits), which hold every
//! request; of the rows, which may be a sample, where there are no histograms or only a part of the run is asked for.

use std::collections::{BTreeMap, HashMap};

use holdup_recording::rows::Request;
use holdup_recording::{Recording, hlog};

use super::Window;
use super::client::{distribution, failed, is_latency, response_ms, send_lag_ms, service_ms};
use super::distribution::Distribution;

/// What one operation came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operation {
    /// Its name.
    pub name: String,
    /// Requests that were due.
    pub offered: u64,
    /// Requests that ended well.
    pub completed: u64,
    /// Requests that failed, by kind.
    pub errors: BTreeMap<String, u64>,
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
}

/// Operations of `requests` of `recording`, in the scenario's order: all of it, or what was due in `window`. Times
/// are those from `measured_from` (nanoseconds since the Unix epoch) on.
pub fn of(recording: &Recording, requests: &[&Request], window: Option<Window>, measured_from: i64) -> Vec<Operation> {
    let mut operations = of_rows(requests.iter().copied(), measured_from);
    let Some(load) = recording.manifest.load.as_ref().filter(|_| window.is_none()) else { return operations };
    for totals in &load.totals {
        let at = operations.iter().position(|o| o.name == totals.operation).unwrap_or_else(|| {
            operations.push(Operation { name: totals.operation.clone(), ..Operation::default() });
            operations.len() - 1
        });
        let operation = &mut operations[at];
        (operation.offered, operation.completed) = (totals.offered, totals.completed);
        operation.errors = totals.errors.iter().filter(|(_, n)| **n > 0).map(|(k, n)| (k.clone(), *n)).collect();
    }
    operations.retain(|o| o.offered > 0);
    let place = |o: &Operation| load.operations.iter().position(|name| *name == o.name).unwrap_or(usize::MAX);
    operations.sort_by_key(place);

    let mut by_tag: HashMap<&str, Vec<&hlog::Slice>> = HashMap::new();
    for slice in recording.latencies.iter().filter(|s| s.from >= measured_from) {
        by_tag.entry(&slice.tag).or_default().push(slice);
    }
    let tags: Vec<String> = operations.iter().map(|o| hlog::clean(&o.name)).collect();
    for (i, operation) in operations.iter_mut().enumerate() {
        // Two names that are one tag are told apart in the rows only.
        if tags.iter().filter(|tag| **tag == tags[i]).count() == 1 {
            from_histograms(operation, &tags[i], &by_tag);
        }
    }
    operations
}

/// Operations of `rows` alone.
pub fn of_rows<'r>(rows: impl IntoIterator<Item = &'r Request>, measured_from: i64) -> Vec<Operation> {
    let mut groups: Vec<(&str, Vec<&Request>)> = Vec::new();
    for row in rows {
        match groups.iter_mut().find(|(name, _)| *name == row.operation) {
            Some((_, group)) => group.push(row),
            None => groups.push((&row.operation, vec![row])),
        }
    }
    let operations = groups.into_iter().map(|(name, rows)| {
        let mut operation = Operation { name: name.to_owned(), ..Operation::default() };
        for row in &rows {
            operation.offered += row.count();
            if row.outcome == "ok" {
                operation.completed += row.count();
            } else if failed(row) {
                *operation.errors.entry(row.outcome.clone()).or_default() += row.count();
            }
        }
        let measured = rows.into_iter().filter(|r| r.intended_at >= measured_from && is_latency(r));
        operation.response_ms = distribution(measured.clone(), |r| Some(response_ms(r)));
        operation.service_ms = distribution(measured.clone(), service_ms);
        operation.send_lag_ms = distribution(measured, send_lag_ms);
        operation
    });
    operations.collect()
}

/// Takes an operation's times from its histograms, if there are any and all of them can be read.
fn from_histograms(operation: &mut Operation, tag: &str, by_tag: &HashMap<&str, Vec<&hlog::Slice>>) {
    let times = |kind: &str| -> Option<Distribution> {
        let Some(slices) = by_tag.get(format!("{tag}.{kind}").as_str()) else { return Some(Distribution::default()) };
        let sum = hlog::merged(slices.iter().copied())?;
        Some(Distribution::of(sum.iter_recorded().map(|v| (v.value_iterated_to() as f64 / 1e6, v.count_at_value()))))
    };
    if let (Some(response), Some(service), Some(send_lag)) = (times("response"), times("service"), times("send_lag"))
        && !response.is_empty()
    {
        (operation.response_ms, operation.service_ms, operation.send_lag_ms) = (response, service, send_lag);
    }
}
