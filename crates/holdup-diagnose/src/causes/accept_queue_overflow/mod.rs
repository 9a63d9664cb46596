//! The queue of connections waiting to be accepted is full, and the kernel drops further ones.

mod signs;
#[cfg(test)]
mod tests;

use holdup_recording::metrics;

use super::Source::Of;
use super::bound::Bound;
use super::{
    Cause, CauseFinding, Definition, Doc, Edge, Fix, Judge, MATTERS, Others, Outcome, Role, Trait, of_failures,
    thousands,
};
use crate::case::Case;
use crate::change::host::Place;
use crate::change::{Bounds, Direction, SettingChange, Unit};
use crate::resources::late_connects::LateConnects;
use crate::resources::share;
use crate::resources::workers::{self, Pool};
use crate::strength::{CERTAIN, FAIR, WEAK};
use crate::{failures, next_command};
use holdup_signals::app::app_server::Outside;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Counter, Missing, View};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::InFrontOfApp],
    bound: Some(bound),
    follows_from: &[
        // Connections are not accepted: all workers are busy, or the process has no descriptor left.
        // Those who are never let in make the queue longer than any request waits. Workers that suffice
        // for all that is due leave connections for a moment: then the queue is too short for them.
        Edge::in_front(
            &[
                &[Of(Cause::WorkerPoolExhausted), Of(Cause::FileDescriptorLimit)],
                &[Of(Cause::CpuThrottled), Of(Cause::CpuSaturated), Of(Cause::RuntimePause), Of(Cause::ProcessStopped)],
            ],
            |case| {
                let queued_ms = || workers::queued_ms(case).unwrap_or(0.0).min(case.excess_in_service_ms());
                (!workers::suffice(case)).then(queued_ms)
            },
        ),
    ],
    signs: Some(signs::find),
    errors: &[(holdup_recording::events::QUEUE_FULL, crate::strength::CERTAIN)],
    ..Definition::new(Cause::AcceptQueueOverflow, DOC, Judge::Beside(judge), &next_command::ACCEPT_QUEUES)
};

const DOC: Doc = Doc {
    title: "The accept queue overflows",
    what: "The kernel sets connections up and queues them in the listening socket's accept queue until the server takes them. The queue is as long as the server asked for (listen's backlog), capped by net.core.somaxconn. When it is full, the kernel drops new connections.",
    hurts: "The client gets no answer, and tries again after 1 s, 3 s, 7 s: its requests take seconds longer in steps, or fail. No metric of the app shows it. A liveness probe comes through the same queue.",
    needs: "The accept queue's length and limit and the overflows of its network namespace (--watch server:PORT of the app, or --watch host); the connect times of requests.",
    predicts: "The queue stands at its limit, ListenOverflows grows, connecting takes 1, 3 or 7 seconds, and requests time out or are reset meanwhile.",
    clears: "The queue stayed below its limit and nothing overflowed; or the dropped connections, at a second each, amount to a small share of the delay and of the failures.",
    looks_like: "By itself it shows that connections are not accepted, not why. It is the root only if workers were seen to be free, or would suffice for all due requests by the time for which each is held, so that the queue is too short for a burst. Lost packets make connecting take 1 s as well, with the queue empty. A lack of file descriptors leaves connections in the queue too, because accept fails. A connection limit refuses with an answer.",
    fix: "Find why connections are not accepted: usually busy workers. A longer queue only makes requests wait longer before they fail; a shorter one tells clients earlier.",
    prove: "The same load again: tcp_listen_overflows_total stands still.",
    references: "listen(2); tcp(7) (tcp_abort_on_overflow, somaxconn); Linux: Documentation/networking/snmp_counter.rst (TcpExtListenOverflows, TcpExtListenDrops); RFC 6298.",
};

/// The rule on busy workers.
const WORKERS: Cause = Cause::WorkerPoolExhausted;

/// Most that a queue holds: the kernel's count has 16 bits in older versions.
const MOST_QUEUED: f64 = 65_535.0;

const ENABLE: &str = "--watch server:PORT of the app, or --watch host";

fn judge(case: &Case<'_>, others: &Others) -> Result<Outcome, Missing> {
    let view = case.slow();
    let outside = view.outside()?;
    let overflows = outside
        .overflows
        .clone()
        .ok_or_else(|| Missing::new("overflows of accept queues (samples of tcp_listen_overflows_total)", ENABLE))?;
    let limit = outside
        .limit
        .ok_or_else(|| Missing::new("the limit of the accept queue (samples of tcp_accept_queue_limit)", ENABLE))?;
    let queue = queue_evidence(&outside, limit);
    let dropped = overflows.evidence(
        thousands(overflows.delta),
        "0",
        format!("{} connections were dropped because an accept queue was full", thousands(overflows.delta)),
    );
    if overflows.delta <= 0.0 && outside.at_limit.is_empty() {
        return Ok(Outcome::Cleared(vec![dropped, queue]));
    }
    let pool = Pool::for_case(case).ok();
    let explains_ms = workers::dropped_ms(case, pool.as_deref());
    let failed = failed_share(case, &outside, &overflows)?;
    if share(case, explains_ms) < MATTERS && failed < MATTERS {
        return Ok(Outcome::Cleared(vec![queue, dropped]));
    }
    let mut evidence = vec![queue, dropped];
    evidence.extend(LateConnects::measure(case).map(|late| late.evidence(case)));
    if failed > 0.0 {
        evidence.push(of_failures(case, failed, "got no answer while the queue was full"));
    }
    let found = CauseFinding {
        explains_ms,
        evidence,
        weights: vec![
            if outside.at_limit.is_empty() { WEAK } else { CERTAIN },
            if overflows.delta > 0.0 { CERTAIN } else { WEAK },
            FAIR * failed,
        ],
        fixes: fixes(&view, &outside, limit, &overflows),
        prove: "Run the same scenario again: tcp_listen_overflows_total does not grow.".to_owned(),
        // Connections are not accepted: if it is unknown whether workers are busy, the reason is
        // still to be found.
        role: if others.get(&WORKERS).is_some_and(Result::is_ok) { Role::Root } else { Role::Symptom },
    };
    Ok(Outcome::Fails(found, failed))
}

/// Dropped connections, each tried again after a second.
fn bound(case: &Case<'_>) -> Option<Bound> {
    let (most_ms, overflows) = workers::dropped_most(case)?;
    let text = format!("{} connections were dropped, for a second each", thousands(overflows.delta));
    let evidence = overflows.evidence(thousands(overflows.delta), "", text);
    Some(Bound { ms: most_ms, evidence })
}

fn queue_evidence(outside: &Outside, limit: f64) -> Evidence {
    let text = format!(
        "the accept queue of port {} held up to {:.0} of at most {limit:.0} connections, {:.1} on average",
        outside.port, outside.waiting.max, outside.waiting.mean
    );
    outside.queue_evidence(format!("well below {limit:.0}"), text)
}

/// The share (0-1) of failed requests that got no answer while the queue was full. Each needs a
/// dropped connection.
fn failed_share(case: &Case<'_>, outside: &Outside, overflows: &Counter) -> Result<f64, Missing> {
    let view = case.slow();
    let mut windows = outside.at_limit.clone();
    let source = if outside.has_processes() { outside.source.as_str() } else { "host" };
    let grew = view.growths(|s| s == source, metrics::tcp::LISTEN_OVERFLOWS.name, &[]);
    windows.extend(grew.into_iter().filter(|g| g.delta > 0.0).map(|g| g.window));
    failures::at_most(case, failures::unanswered_share(case, &windows)?, overflows.delta)
}

fn fixes(view: &View<'_>, outside: &Outside, limit: f64, overflows: &Counter) -> Vec<Fix> {
    let see = Fix {
        text: format!(
            "See what keeps the server on port {} from accepting: {} shows whether its workers are busy.",
            outside.port, WORKERS
        ),
        command: Some(format!(
            "ss -ltn 'sport = :{}'; nstat -az TcpExtListenOverflows TcpExtListenDrops",
            outside.port
        )),
        keep: None,
        risk: None,
    };
    vec![see, longer(view, outside, limit, overflows)]
}

/// A queue with room for the connections dropped in a second. The kernel's limit and the server's
/// backlog both bound its length.
fn longer(view: &View<'_>, outside: &Outside, limit: f64, overflows: &Counter) -> Fix {
    const NAME: &str = "net.core.somaxconn";
    const RISK: &str =
        "If more requests arrive than are answered, it fills up just as soon, and each request waits longer in it.";
    let wanted = (2.0 * limit).max(limit + overflows.rate()).max(1.0).log2().ceil();
    let to = 2_f64.powf(wanted).min(MOST_QUEUED);
    let backlog = format!("the backlog that the server asks for to {to:.0} as well (it has {limit:.0} now)");
    let now = view.setting(NAME, ENABLE).ok().and_then(|value| value.parse::<f64>().ok());
    let bounds = Bounds { least: 1.0, most: MOST_QUEUED };
    match SettingChange::new(Direction::Raise, NAME, Unit::Count, now, to, bounds) {
        Ok(change) => {
            let why = format!("only for bursts that end before clients give up, and with {backlog}");
            change.fix(&why, Place::find(view, &outside.source).sysctl(&change), RISK)
        }
        Err(stay) => Fix {
            risk: Some(RISK.to_owned()),
            ..stay.fix(&format!("Only for bursts that end before clients give up, raise {backlog}."))
        },
    }
}
