//! The requests of a stretch by operation, as far as spans report them: of a busy one an even choice,
//! because a trace costs time to replay.

use std::collections::BTreeMap;

use holdup_recording::rows::Span;

use crate::Window;
use crate::app::accounts::{AppAccount, Sources, account_of};
use crate::app::critical_path::spans::{RequestTree, roots};

/// Requests of an operation to look at, at most.
const REQUESTS_MAX: usize = 5_000;
/// Spans of their traces at most.
const SPANS_MAX: usize = 500_000;
/// Whatever their spans, so many requests are looked at.
const REQUESTS_LEAST: usize = 10;

/// The requests of all operations.
pub struct Requests<'a> {
    traces: Vec<Vec<&'a Span>>,
    /// By service and name of the operation.
    operations: BTreeMap<(&'a str, &'a str), Vec<Found<'a>>>,
}

/// One trace with the root of a request in it.
struct Found<'a> {
    root: &'a Span,
    trace: usize,
}

/// The requests of one operation.
pub struct Operation<'x, 'a> {
    /// The service that answers it.
    pub service: &'a str,
    /// The name of its span.
    pub name: &'a str,
    found: &'x [Found<'a>],
    traces: &'x [Vec<&'a Span>],
}

impl<'a> Requests<'a> {
    /// The requests that began in `window`.
    pub fn collect(sources: &Sources<'a>, window: Window) -> Self {
        let is_near = |trace: &Vec<&Span>| trace.iter().any(|span| window.contains(span.started_at));
        let traces: Vec<Vec<&Span>> = sources.traces().filter(is_near).collect();
        let mut operations: BTreeMap<_, Vec<Found<'_>>> = BTreeMap::new();
        for (number, trace) in traces.iter().enumerate() {
            for root in roots(trace).into_iter().filter(|root| window.contains(root.started_at)) {
                let name = (root.service.as_str(), root.name.as_str());
                operations.entry(name).or_default().push(Found { root, trace: number });
            }
        }
        Self { traces, operations }
    }

    /// Operations, those that took the most time first.
    pub fn operations(&self) -> Vec<Operation<'_, 'a>> {
        let operation = |((service, name), found): (&(&'a str, &'a str), &'_ Vec<Found<'a>>)| {
            (*service, *name, found.iter().map(|one| i128::from(one.root.duration_ns)).sum::<i128>())
        };
        let mut by_time: Vec<_> = self.operations.iter().map(operation).collect();
        by_time.sort_by_key(|(.., time)| std::cmp::Reverse(*time));
        let with_requests = |(service, name, _): (&'a str, &'a str, i128)| {
            let found = self.operations.get(&(service, name)).map_or(&[][..], Vec::as_slice);
            Operation { service, name, found, traces: &self.traces }
        };
        by_time.into_iter().map(with_requests).collect()
    }

    /// The service in front: the one with the most requests that no other span set off, else with the
    /// most requests.
    pub fn front(&self) -> Option<&'a str> {
        let mut by_service: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for ((service, _), found) in &self.operations {
            let counts = by_service.entry(service).or_default();
            counts.0 += found.iter().filter(|one| one.root.parent_id.is_none()).count();
            counts.1 += found.len();
        }
        by_service.into_iter().max_by_key(|(_, counts)| *counts).map(|(service, _)| service)
    }
}

impl<'a> Operation<'_, 'a> {
    /// How many requests were reported.
    pub fn count(&self) -> usize {
        self.found.len()
    }

    /// The trees of an even choice of them.
    pub fn trees(&self) -> impl Iterator<Item = RequestTree<'a>> + '_ {
        let spans: usize = self.found.iter().map(|one| self.traces[one.trace].len()).sum();
        let affordable = SPANS_MAX * self.found.len() / spans.max(1);
        let most = REQUESTS_MAX.min(affordable.max(REQUESTS_LEAST));
        let step = self.found.len().div_ceil(most).max(1);
        self.found.iter().step_by(step).map(|one| RequestTree::new(one.root, &self.traces[one.trace]))
    }
}

/// The service's own account of a request: its outermost waits, with their time on the path.
pub fn account<'a>(request: &RequestTree<'a>) -> Option<AppAccount<'a>> {
    account_of(request.awaited())
}
