//! Requests as their traces show them: which service each one waited for, which of them failed first,
//! and how the requests of all operations fared over time.
//!
//! A request waits for a service while that service's own span owns its critical path. The time of a
//! call that is not within the answering span (the network, and a queue in front of the service) is
//! that of the service that answers. A call that nothing answered belongs to the service that it names.

use std::collections::{BTreeMap, HashMap};

use holdup_recording::rows::Span;

use crate::Window;
use crate::app::accounts::{Sources, label};
use crate::app::critical_path::spans::{RequestTree, roots};
use crate::time::distribution::Distribution;
use crate::time::requests::{ClientView, Second};

/// Spans to look at, at most: of more traces an even choice.
const SPANS_MAX: usize = 2_000_000;

/// Requests of an interval, at least: fewer do not make a distribution.
const REQUESTS_LEAST: u64 = 10;
/// Intervals, at least, however few the requests are.
const INTERVALS_LEAST: i64 = 12;

const SECOND_NS: i64 = 1_000_000_000;

/// A part of the time of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// In its own spans.
    Own,
    /// On the way to it: between the call and the answering span.
    Way,
    /// In its calls of databases, caches and queues.
    Stores,
}

/// Like is compared with like: the service and the span at the root, and what the root calls if it is one
/// thing. A root that stands for any request, as a gateway's, has its operation there.
pub type OperationKey<'a> = (&'a str, &'a str, Option<(&'a str, &'a str)>);

/// One request.
#[derive(Clone, Debug)]
pub struct TracedRequest<'a> {
    /// Its operation.
    pub operation: OperationKey<'a>,
    /// When it began, nanoseconds since the epoch.
    pub started_at: i64,
    /// Its duration, nanoseconds.
    pub duration_ns: i64,
    /// Whether its root failed.
    pub has_failed: bool,
    /// The service that failed first, if its root failed.
    pub failed_in: Option<&'a str>,
    /// Milliseconds of its critical path by service and part.
    pub waited_ms: BTreeMap<(&'a str, Part), f64>,
    /// By service: answers, and failures that began there.
    pub calls: BTreeMap<&'a str, (u32, u32)>,
}

/// The requests that nothing else set off; where every trace lacks its root, those nearest to it.
pub fn requests<'a>(sources: &Sources<'a>) -> Vec<TracedRequest<'a>> {
    let all: usize = sources.traces().map(|trace| trace.len()).sum();
    let step = all.div_ceil(SPANS_MAX).max(1);
    let mut requests = Vec::new();
    let mut has_roots = false;
    for trace in sources.traces().step_by(step) {
        for root in roots(&trace) {
            let is_root = root.parent_id.is_none();
            if is_root && !has_roots {
                has_roots = true;
                requests.clear();
            }
            if is_root || !has_roots {
                requests.push(request(root, &trace));
            }
        }
    }
    requests.sort_by_key(|request: &TracedRequest<'_>| request.started_at);
    requests
}

fn request<'a>(root: &'a Span, trace: &[&'a Span]) -> TracedRequest<'a> {
    let of = Facts::new(root, trace);
    let mut waited_ms = BTreeMap::new();
    for stretch in of.request.tree.path() {
        if let Some(owner) = of.owner(stretch.piece) {
            *waited_ms.entry(owner).or_default() += (stretch.to - stretch.from) as f64 / 1e6;
        }
    }
    let mut calls: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for (i, span) in of.request.spans.iter().enumerate() {
        if !of.is_below[i] {
            continue;
        }
        if of.is_answer(i) {
            calls.entry(span.service.as_str()).or_default().0 += 1;
        }
        if span.status == "error" && !of.below[i].iter().any(|child| of.has_failed(*child)) {
            calls.entry(of.origin(i)).or_default().1 += 1;
        }
    }
    let has_failed = root.status == "error";
    TracedRequest {
        operation: of.operation(),
        started_at: root.started_at,
        duration_ns: root.duration_ns.max(0),
        has_failed,
        failed_in: has_failed.then(|| of.failed_first()),
        waited_ms,
        calls,
    }
}

/// The spans of one request, and how they lie below each other.
struct Facts<'a> {
    request: RequestTree<'a>,
    top: usize,
    below: Vec<Vec<usize>>,
    /// Whether a span belongs to this request.
    is_below: Vec<bool>,
}

impl<'a> Facts<'a> {
    fn new(root: &'a Span, trace: &[&'a Span]) -> Self {
        let request = RequestTree::new(root, trace);
        let count = request.spans.len();
        let mut below = vec![Vec::new(); count];
        for (i, parent) in request.parents.iter().enumerate() {
            if let Some(mine) = parent.and_then(|parent| below.get_mut(parent)) {
                mine.push(i);
            }
        }
        let top = request.spans.iter().position(|span| std::ptr::eq(*span, root)).unwrap_or(0);
        let mut is_below = vec![false; count];
        let mut open = vec![top];
        while let Some(i) = open.pop() {
            if !std::mem::replace(&mut is_below[i], true) {
                open.extend(&below[i]);
            }
        }
        Self { request, top, below, is_below }
    }

    /// Whether a span is the answering side of a call, or the root.
    fn is_answer(&self, i: usize) -> bool {
        let span = self.request.spans[i];
        let parent = self.request.parents[i].map(|parent| self.request.spans[parent]);
        i == self.top || span.resource == "request" || parent.is_some_and(|parent| parent.service != span.service)
    }

    /// The service that answered a call.
    fn answered_by(&self, i: usize) -> Option<&'a str> {
        let own = self.request.spans[i].service.as_str();
        let mut services = self.below[i].iter().map(|child| self.request.spans[*child].service.as_str());
        services.find(|service| *service != own).filter(|_| !self.is_answer(i))
    }

    /// The service to which a span's own time belongs.
    fn owner(&self, i: usize) -> Option<(&'a str, Part)> {
        let span = *self.request.spans.get(i)?;
        Some(match self.answered_by(i) {
            Some(service) => (service, Part::Way),
            None if span.resource == "http" && label(span) != span.name => (label(span), Part::Way),
            None if ["database", "cache", "queue"].contains(&span.resource.as_str()) => (&span.service, Part::Stores),
            None => (&span.service, Part::Own),
        })
    }

    /// The operation of the request.
    fn operation(&self) -> OperationKey<'a> {
        let root = self.request.spans[self.top];
        let mut answers = self.below[self.top].iter().flat_map(|child| match self.is_answer(*child) {
            true => std::slice::from_ref(child),
            false => &self.below[*child],
        });
        let name = |i: &usize| (self.request.spans[*i].service.as_str(), self.request.spans[*i].name.as_str());
        let first = answers.next().map(name);
        let is_one = answers.all(|other| Some(name(other)) == first);
        (&root.service, &root.name, first.filter(|_| is_one))
    }

    fn has_failed(&self, i: usize) -> bool {
        self.request.spans[i].status == "error"
    }

    /// The service in which the failure of a span began that has no failed one below.
    fn origin(&self, i: usize) -> &'a str {
        let span = self.request.spans[i];
        match self.answered_by(i) {
            // It was answered without a failure, or not in time: what took the time is to blame.
            Some(service) => self.slowest(i).unwrap_or(service),
            None if !self.is_answer(i) && span.resource == "http" && label(span) != span.name => label(span),
            None => &span.service,
        }
    }

    /// The service that took most of the time below a call.
    fn slowest(&self, call: usize) -> Option<&'a str> {
        let span = self.request.spans[call];
        let end = span.started_at.saturating_add(span.duration_ns);
        let mut own: HashMap<&str, i64> = HashMap::new();
        let (mut open, mut depth) = (self.below[call].clone(), 0);
        while let Some(i) = open.pop().filter(|_| depth < self.request.spans.len()) {
            depth += 1;
            let span = self.request.spans[i];
            let within =
                |span: &Span| span.started_at.saturating_add(span.duration_ns).min(end) - span.started_at.min(end);
            let inner: i64 = self.below[i].iter().map(|child| within(self.request.spans[*child])).sum();
            if let Some((service, _)) = self.owner(i) {
                *own.entry(service).or_default() += (within(span) - inner).max(0);
            }
            open.extend(&self.below[i]);
        }
        own.into_iter().max_by_key(|(service, ns)| (*ns, *service)).map(|(service, _)| service)
    }

    /// The deepest service on the way from the failed root along failed spans: of several that failed, the last one
    /// decided.
    fn failed_first(&self) -> &'a str {
        let (mut at, mut steps) = (self.top, 0);
        let end = |i: &usize| self.request.spans[*i].started_at.saturating_add(self.request.spans[*i].duration_ns);
        while let Some(next) = self.below[at].iter().copied().filter(|i| self.has_failed(*i)).max_by_key(end) {
            at = next;
            steps += 1;
            if steps > self.request.spans.len() {
                break;
            }
        }
        self.origin(at)
    }
}

/// The requests over time, in intervals of some requests each. An operation that takes longer than others
/// does not make an interval slow that has more of it: each counts by how far it is from its operation's median.
/// `has_failed` says which requests count as failed.
pub fn view<'a>(
    requests: &[TracedRequest<'a>],
    whole: Window,
    has_failed: impl Fn(&TracedRequest<'a>) -> bool,
) -> ClientView {
    let within: Vec<&TracedRequest<'a>> =
        requests.iter().filter(|request| whole.contains(request.started_at)).collect();
    let (Some(first), Some(last)) = (within.first(), within.last()) else { return ClientView::default() };
    let (from, to) = (first.started_at.div_euclid(SECOND_NS) * SECOND_NS, last.started_at);
    let seconds = (to - from) / SECOND_NS + 1;
    let wanted = (REQUESTS_LEAST as i64 * seconds).div_euclid(within.len() as i64).max(1);
    let width = wanted.min((seconds / INTERVALS_LEAST).max(1)) * SECOND_NS;
    let usual = usual_ms(&within);
    let mut all: BTreeMap<i64, (Vec<(f64, u64)>, u64)> = BTreeMap::new();
    for request in within {
        let (times, errors) = all.entry((request.started_at - from).div_euclid(width)).or_default();
        let ms = request.duration_ns as f64 / 1e6;
        let like = usual.by_operation.get(&request.operation).map_or(ms, |median| ms - median + usual.ms);
        // What failed at once is not a fast request.
        times.push((if request.has_failed { ms } else { like.max(0.01 * ms) }, 1));
        *errors += u64::from(has_failed(request));
    }
    let second = |(number, (times, errors)): (i64, (Vec<(f64, u64)>, u64))| Second {
        window: Window { from: from + number * width, to: from + (number + 1) * width },
        offered: times.len() as u64,
        errors,
        response_ms: Distribution::from_counts(times),
        waiting_ms: None,
    };
    ClientView { seconds: all.into_iter().map(second).collect() }
}

/// Medians, milliseconds.
struct UsualTimes<'a> {
    ms: f64,
    by_operation: HashMap<OperationKey<'a>, f64>,
}

fn usual_ms<'a>(requests: &[&TracedRequest<'a>]) -> UsualTimes<'a> {
    let mut by_operation: HashMap<OperationKey<'a>, Vec<f64>> = HashMap::new();
    for request in requests {
        by_operation.entry(request.operation).or_default().push(request.duration_ns as f64 / 1e6);
    }
    let by_operation: HashMap<OperationKey<'a>, f64> =
        by_operation.into_iter().map(|(operation, mut all)| (operation, median(&mut all))).collect();
    let of_all: Vec<f64> = requests.iter().filter_map(|r| by_operation.get(&r.operation).copied()).collect();
    let ms = of_all.iter().sum::<f64>() / of_all.len().max(1) as f64;
    UsualTimes { ms, by_operation }
}

fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    if values.is_empty() { 0.0 } else { *values.select_nth_unstable_by(middle, f64::total_cmp).1 }
}

#[cfg(test)]
#[path = "services_tests.rs"]
mod tests;
