//! What requests waited for in each service, and which failed there first, as traces show it: in the
//! episode and in the baseline window, like operations compared with like.

use std::collections::BTreeMap;

use holdup_signals::app::services::{OperationKey, Part, TracedRequest, requests};
use holdup_signals::client::latency::Origin;
use holdup_signals::{Missing, Window};
use serde::{Deserialize, Serialize};

use crate::case::Case;

/// Requests of an operation in either window, at least: the mean of fewer says little.
const REQUESTS_LEAST: usize = 5;

/// A growth is this many times the error of the difference, at least: of ten services and some
/// operations one differs by three errors now and then.
const CLEAR: f64 = 4.0;

const ENABLE: &str = "--watch otlp with the apps' OpenTelemetry exporters pointed at it, or an import of traces";

/// One service, as traces show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServiceRow {
    /// Its name.
    pub service: String,
    /// Its own time on the critical path of a mean request, milliseconds: what its callers only wait for, with the
    /// way to it and its calls of databases.
    pub own_ms: f64,
    /// The same in the baseline window, for the operations of the episode.
    pub own_before_ms: Option<f64>,
    /// The part of `own_ms` that is between a call and its answer: the network, or a queue in front of the service.
    pub way_ms: f64,
    /// The part of `own_ms` in its calls of databases, caches and queues.
    pub stores_ms: f64,
    /// Answers in a mean request.
    pub calls: f64,
    /// The same in the baseline window.
    pub calls_before: Option<f64>,
    /// Failures that began in it, as a share (0-1) of the requests.
    pub errors: f64,
    /// The same in the baseline window.
    pub errors_before: Option<f64>,
    /// Share (0-1) of the failed requests that failed in it first.
    pub failed_first: f64,
    /// By how much a mean request waited longer for it, milliseconds; none without a baseline window.
    #[serde(skip)]
    pub growth: Option<Growth>,
}

/// A growth of own time, milliseconds of a mean request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Growth {
    /// By operations that both windows have.
    pub ms: f64,
    /// The part on the way to it.
    pub way_ms: f64,
    /// The part in its stores.
    pub stores_ms: f64,
    /// The error of the difference.
    pub error_ms: f64,
}

impl Growth {
    /// Whether it is more than chance.
    pub fn is_clear(&self) -> bool {
        self.ms > CLEAR * self.error_ms
    }
}

/// All services.
#[derive(Clone, Debug, Default)]
pub struct Services {
    /// Those that lost requests most time first.
    pub rows: Vec<ServiceRow>,
    /// The service in front.
    pub front: String,
    /// Requests in the episode, and in the baseline window.
    pub requests: (usize, usize),
    /// How many of those of the episode failed.
    pub failed: usize,
}

impl Services {
    /// As the traces of `case` show them, measured once.
    ///
    /// # Errors
    /// Unless single requests can be followed: by their traces alone.
    pub fn measure(case: &Case<'_>) -> Result<std::sync::Arc<Self>, Missing> {
        if !matches!(case.origin, Origin::Traces | Origin::InnerTraces) {
            return Err(Missing::new("traces that stand for all requests", ENABLE));
        }
        case.measured(|case| {
            let now = within(case, case.episode());
            let before = case.baseline().map(|baseline| within(case, baseline.window)).unwrap_or_default();
            if now.is_empty() {
                return Err(Missing::new("traces of the episode", ENABLE));
            }
            let mut services = Self::compare(&now, &before);
            if case.origin == Origin::InnerTraces {
                // What has to be explained are the failures behind the front, whatever few reached it.
                services.failed = 0;
                services.rows.iter_mut().for_each(|row| row.failed_first = 0.0);
            }
            Ok(services)
        })
    }

    fn compare(now: &[Counted], before: &[Counted]) -> Self {
        let failed = now.iter().filter(|request| request.failed_in.is_some()).count();
        let mut rows: BTreeMap<&str, ServiceRow> = BTreeMap::new();
        let share = |count: usize| 1.0 / count.max(1) as f64;
        for request in now {
            for ((service, part), ms) in &request.waited_ms {
                let row = rows.entry(service).or_default();
                row.own_ms += ms * share(now.len());
                match part {
                    Part::Own => {}
                    Part::Way => row.way_ms += ms * share(now.len()),
                    Part::Stores => row.stores_ms += ms * share(now.len()),
                }
            }
            for (service, (calls, errors)) in &request.calls {
                let row = rows.entry(service).or_default();
                row.calls += f64::from(*calls) * share(now.len());
                row.errors += f64::from(*errors) * share(now.len());
            }
            if let Some(service) = &request.failed_in {
                rows.entry(service).or_default().failed_first += share(failed);
            }
        }
        let compared = Compared::new(now, before);
        for (service, row) in &mut rows {
            row.service = (*service).to_owned();
            if before.is_empty() {
                continue;
            }
            let growth = compared.growth(service);
            row.own_before_ms = growth.map(|growth| (row.own_ms - growth.ms).max(0.0));
            row.growth = growth;
            let of = |request: &Counted| request.calls.get(*service).copied().unwrap_or_default();
            row.calls_before = Some(before.iter().map(|r| f64::from(of(r).0)).sum::<f64>() * share(before.len()));
            row.errors_before = Some(before.iter().map(|r| f64::from(of(r).1)).sum::<f64>() * share(before.len()));
        }
        let mut rows: Vec<ServiceRow> = rows.into_values().collect();
        let lost = |row: &ServiceRow| row.growth.map_or(row.own_ms * 1e-6, |growth| growth.ms);
        rows.sort_by(|a, b| lost(b).total_cmp(&lost(a)));
        let front = now.first().map_or_else(String::new, |request| request.operation.0.clone());
        Self { rows, front, requests: (now.len(), before.len()), failed }
    }

    /// The service whose own time grew most, if that is more than chance.
    pub fn slowest(&self) -> Option<(&ServiceRow, Growth)> {
        let row = self.rows.first()?;
        row.growth.filter(Growth::is_clear).map(|growth| (row, growth))
    }

    /// The service in which most of the failed requests failed first; of an episode in which none of the front failed,
    /// the one in which most failures began.
    pub fn failing(&self) -> Option<&ServiceRow> {
        let by = |row: &&ServiceRow| if self.failed > 0 { row.failed_first } else { row.errors };
        self.rows.iter().filter(|row| by(row) > 0.0).max_by(|a, b| by(a).total_cmp(&by(b)))
    }
}

/// The operation of a request, owned.
type Operation = (String, String, Option<(String, String)>);

/// A request of one of the windows.
#[derive(Clone, Debug)]
struct Counted {
    operation: Operation,
    failed_in: Option<String>,
    waited_ms: BTreeMap<(String, Part), f64>,
    calls: BTreeMap<String, (u32, u32)>,
}

/// All requests of a recording.
struct AllRequests(Vec<(i64, Counted)>);

fn within(case: &Case<'_>, window: Window) -> Vec<Counted> {
    let all = case.at(window).measured(|case| Ok(AllRequests(requests(case.sources()).iter().map(counted).collect())));
    let all = all.map(|all| {
        let of_window = all.0.iter().filter(|(at, _)| window.contains(*at));
        of_window.map(|(_, request)| request.clone()).collect()
    });
    all.unwrap_or_default()
}

fn counted(request: &TracedRequest<'_>) -> (i64, Counted) {
    let (service, name, behind): OperationKey<'_> = request.operation;
    let behind = behind.map(|(service, name)| (service.to_owned(), name.to_owned()));
    let counted = Counted {
        operation: (service.to_owned(), name.to_owned(), behind),
        failed_in: request.failed_in.map(str::to_owned),
        waited_ms: request.waited_ms.iter().map(|((name, part), ms)| (((*name).to_owned(), *part), *ms)).collect(),
        calls: request.calls.iter().map(|(name, counts)| ((*name).to_owned(), *counts)).collect(),
    };
    (request.started_at, counted)
}

/// The requests of both windows by operation; those that failed do not count: they did not do all.
struct Compared<'c> {
    operations: Vec<(Vec<&'c Counted>, Vec<&'c Counted>)>,
    now: f64,
}

impl<'c> Compared<'c> {
    fn new(now: &'c [Counted], before: &'c [Counted]) -> Self {
        let mut by_operation: BTreeMap<&Operation, (Vec<&Counted>, Vec<&Counted>)> = BTreeMap::new();
        let whole = |requests: &'c [Counted]| requests.iter();
        for request in whole(now) {
            by_operation.entry(&request.operation).or_default().0.push(request);
        }
        for request in whole(before) {
            by_operation.entry(&request.operation).or_default().1.push(request);
        }
        let is_enough = |(now, before): &(Vec<&Counted>, Vec<&Counted>)| now.len().min(before.len()) >= REQUESTS_LEAST;
        let operations: Vec<_> = by_operation.into_values().filter(is_enough).collect();
        let count = operations.iter().map(|(now, _)| now.len()).sum::<usize>();
        Self { operations, now: count as f64 }
    }

    /// How much longer a mean request of the episode waited for `service`; none if no operation is in both windows.
    fn growth(&self, service: &str) -> Option<Growth> {
        let of = |request: &Counted, parts: &[Part]| {
            let part = |part: &Part| request.waited_ms.get(&(service.to_owned(), *part)).copied().unwrap_or(0.0);
            parts.iter().map(part).sum::<f64>()
        };
        let mut growth = Growth::default();
        let mut variance = 0.0;
        for (now, before) in &self.operations {
            let share = now.len() as f64 / self.now;
            let difference = |parts: &[Part]| {
                let figures = |requests: &[&Counted]| moments(requests.iter().map(|request| of(request, parts)));
                let ((now_ms, now_error), (before_ms, before_error)) = (figures(now), figures(before));
                (now_ms - before_ms, now_error + before_error)
            };
            let (ms, error) = difference(&[Part::Own, Part::Way, Part::Stores]);
            growth.ms += share * ms;
            variance += share * share * error;
            growth.way_ms += share * difference(&[Part::Way]).0;
            growth.stores_ms += share * difference(&[Part::Stores]).0;
        }
        growth.error_ms = variance.sqrt();
        (!self.operations.is_empty()).then_some(growth)
    }
}

/// The mean, and the squared error of the mean.
fn moments(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let (count, sum) = values.clone().fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    let mean = sum / f64::max(count, 1.0);
    let squares = values.map(|value| (value - mean).powi(2)).sum::<f64>();
    (mean, squares / f64::max(count * (count - 1.0), 1.0))
}
