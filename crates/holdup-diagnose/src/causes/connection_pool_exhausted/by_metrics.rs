//! From the metrics of the app's pool: whether requests wait although connections are free, and
//! whether the pool or what holds its connections is the root.

use holdup_signals::Missing;
use holdup_signals::evidence::Evidence;

use super::advice;
use crate::case::Case;
use crate::causes::{CauseFinding, Outcome, Role, ms, timing};
use crate::resources::connections::{ConnectionHold, ENOUGH, Names, pool_wait_ms};
use crate::resources::is_too_small;
use crate::strength::{AS_SYMPTOM, STRONG, WEAK};

/// Requests wait for a connection only by chance below this share (0-1) of instants.
const NOW_AND_THEN: f64 = 0.1;

/// Judges a pool whose metrics have these names.
pub(super) fn judge(case: &Case<'_>, names: &Names) -> Result<Outcome, Missing> {
    let view = case.slow();
    let wait = view.mean(names.wait, &[], timing::APP_METRICS)?;
    let pending = view.gauge(names.pending, &[], timing::APP_METRICS)?;
    let hold = ConnectionHold::measure(case, names)?;
    let max = hold.now.max.mean;
    let completed = case.completed_in(view.window)?.max(1.0);
    let ended_ms = wait.ms * wait.count / completed;
    let per_request = pool_wait_ms(case, &view, names).unwrap_or(ended_ms);
    let all = if per_request > ended_ms { ", by the requests that wait: most never got one" } else { "" };
    let waited = wait.evidence(
        ms(per_request),
        "near 0 ms",
        format!("a request waited {} for a connection, on average{all}", ms(per_request)),
    );
    let queue = pending.evidence(
        format!("{:.1} on average, {:.0} at most", pending.mean, pending.max),
        "0",
        format!("{:.0} requests were waiting for a connection on average, {:.0} at most", pending.mean, pending.max),
    );
    let used = hold.evidence(
        format!("below {max:.0}"),
        format!("{:.1} of {max:.0} connections were in use on average", hold.now.used.mean),
    );
    // A new connection takes time, too, although others are free.
    let is_free = pending.positive_ratio < NOW_AND_THEN && hold.now.used.mean < ENOUGH * max;
    if is_free || is_too_small(case, per_request)? {
        return Ok(Outcome::Cleared(if is_free { vec![used, queue, waited] } else { vec![waited, queue] }));
    }
    let mut evidence = vec![waited, queue, used];
    let mut weights = vec![STRONG, if pending.positive_ratio > 0.5 { STRONG } else { WEAK }];
    weights.push(STRONG * (hold.now.used.mean / max.max(1.0)));
    evidence.extend(from_outside(case, max));
    let mut fixes = Vec::new();
    if let Ok(held) = view.mean(names.held, &[], timing::APP_METRICS) {
        let text = format!(
            "each connection was held for {}: {max:.0} connections carry at most {:.0} units of work/s",
            ms(held.ms),
            max / (held.ms / 1e3).max(1e-9)
        );
        evidence.push(held.evidence(ms(held.ms), String::new(), text));
        fixes = advice::fixes(case, &view, &held, max, completed);
    }
    let (role, kept_ms, why) = role(&hold);
    let part = if role == Role::Symptom { AS_SYMPTOM } else { 1.0 };
    weights.iter_mut().for_each(|weight| *weight = *weight * part);
    evidence.extend(why);
    Ok(Outcome::Found(CauseFinding {
        explains_ms: per_request + kept_ms,
        evidence,
        weights,
        fixes,
        prove: format!("Run the same scenario again: {} stays 0 and the pool wait leaves the ledger.", names.pending),
        role,
    }))
}

/// Whether the pool itself is the root, the milliseconds of a request for which the app keeps a
/// connection over other work, and the evidence. It is the root if there are fewer connections than
/// before, or if the app keeps them; not if each is held longer for something behind the app.
fn role(hold: &ConnectionHold) -> (Role, f64, Option<Evidence>) {
    if let Some(fewer_by) = hold.fewer_by() {
        let text = format!("the pool had {fewer_by:.0} more connections in the baseline window");
        return (Role::Root, 0.0, Some(hold.evidence("as many", text)));
    }
    let longer = hold.was_enough_at_ms().map(|before_ms| {
        format!(
            "in the baseline window a request held one for {}, so {:.0} would suffice for all due requests: they run out because each is held longer",
            ms(before_ms),
            hold.needed(before_ms).ceil().max(1.0)
        )
    });
    let stuck = || {
        format!(
            "a request held one for {}, so {:.0} would suffice for all due requests: the holders of connections do not progress",
            ms(hold.now.ended_ms),
            hold.needed(hold.now.ended_ms).ceil().max(1.0)
        )
    };
    match longer.or_else(|| hold.is_stuck().then(stuck)) {
        None => (Role::Root, 0.0, None),
        Some(text) => match hold.kept_by_app() {
            Some(kept) => (Role::Root, kept.request_ms, Some(hold.evidence("returned after each use", kept.text))),
            None => (Role::Symptom, 0.0, Some(hold.evidence("", text))),
        },
    }
}

/// The app's connections from the kernel, if as many as the pool allows: alone that may be normal.
fn from_outside(case: &Case<'_>, most: f64) -> Option<Evidence> {
    let view = case.slow();
    let source = view.outside().ok().filter(|o| o.has_processes())?.source;
    let database = view.downstream_services(&source)?.into_iter().find(|n| n.is_database)?;
    let open = database.connections_max.filter(|open| *open >= most)?;
    let text = format!(
        "its processes had at most {open:.0} connections open to {}, as many as the pool allows, and {:.1} of them awaited an answer",
        database.name, database.pending
    );
    Some(database.evidence(format!("{open:.0} open, {:.1} awaited", database.pending), "", text))
}
