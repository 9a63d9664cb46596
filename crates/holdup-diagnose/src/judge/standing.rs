//! What is wrong although nothing got worse: requests that wait in line all the time, and limits
//! that were reached. Only for what was watched: where there are objectives, they say what is good.

use crate::origin::OriginWords;
use holdup_recording::metrics;

use crate::case::Case;
use crate::causes::{Cause, Trait};
use crate::failures::UNCOUNTED;
use crate::verdict::{Finding, NotJudged, Role};

/// Requests wait in line if this share (0-1) of their time is a wait: even in front of a single
/// server that is busy for two thirds of the time (M/M/1: the wait is two thirds of the response
/// time) …
const WAITS: f64 = 2.0 / 3.0;

/// … and this many wait at a time …
const LEAST: f64 = 8.0;

/// … and this many for each CPU: these could work on as many.
const PER_CPU: f64 = 2.0;

/// A cause is named with this confidence (0-1): without a better time to compare with, little speaks
/// against it.
const SURE: f64 = 0.6;

/// Says that requests wait in line, if `findings` of a case that has all of response time to explain
/// show it.
pub(super) fn line(open: &Case<'_>, findings: &[Finding]) -> Option<String> {
    let root = findings.iter().find(|f| f.role == Role::Root).filter(|f| f.confidence >= SURE)?;
    let queues = findings.iter().filter(|f| f.cause.is(Trait::Queue) && follows(findings, f, root.cause));
    let waited_ms = queues.map(|f| f.explains_ms).reduce(f64::max)?.min(root.explains_ms);
    let slow = open.degradation.as_ref()?;
    let per_second = open.completed_in(slow.slow).ok()? / slow.slow.seconds().max(1e-9);
    let waiting = waited_ms / 1e3 * per_second;
    let view = open.view(slow.slow);
    let cpus = view.gauge(metrics::host::CPU_LOGICAL_COUNT.name, &[], "").map_or(1.0, |gauge| gauge.mean);
    let is_line = waited_ms >= WAITS * slow.slow_mean_ms && waiting >= LEAST.max(PER_CPU * cpus);
    is_line.then(|| {
        let text = format!(
            "{waiting:.0} requests waited in line at a time, for {:.0} of the {:.0} ms of a mean request, from the first second on",
            waited_ms, slow.slow_mean_ms
        );
        open.origin.qualify(&text)
    })
}

/// Whether `finding` is `root`, or follows from it by one or more steps.
fn follows(findings: &[Finding], finding: &Finding, root: Cause) -> bool {
    let mut at = Some(finding);
    // Each step leads to another finding.
    for _ in 0..findings.len() {
        match at {
            Some(f) if f.cause == root => return true,
            Some(f) => at = f.follows_from.and_then(|cause| findings.iter().find(|f| f.cause == cause)),
            None => return false,
        }
    }
    false
}

/// The sentence of a cause that is present by itself, while no request was seen to be slow.
pub(super) fn uncounted(of: &Finding) -> String {
    let shown = of.evidence.first().map_or_else(String::new, |evidence| format!(": {}", evidence.text));
    format!("{}{shown}. No source shows what it costs requests.", of.title)
}

/// Limits that were reached and processes that were killed, where no source counted what failed of
/// it.
pub(super) fn alarms(not_judged: &[NotJudged]) -> Option<String> {
    let alarms: Vec<String> = not_judged
        .iter()
        .filter(|n| n.missing == UNCOUNTED)
        .map(|n| format!("{} ({})", n.title.to_lowercase(), n.cause))
        .collect();
    (!alarms.is_empty()).then(|| alarms.join("; "))
}
