//! Clients that wait in a pool between app and database, and many idle connections while hardly one works.

use holdup_recording::metrics::{Metric, pgbouncer, proxysql};

use crate::instant::app_pools::{Holds, used_up};
use crate::instant::facts::Facts;
use crate::instant::{MANY, Signs, stacks};
use crate::strength::{CERTAIN, STRONG, WEAK};

/// A client that waits longer than this did not only meet a busy moment, seconds.
const LONG_S: f64 = 1.0;

/// What a pool's console shows: clients in its queue, the longest wait, and connections without a client.
const POOLS: [(&str, Metric, Metric, Metric); 2] = [
    ("PgBouncer", pgbouncer::WAITING_CLIENTS, pgbouncer::LONGEST_WAIT, pgbouncer::IDLE_SERVERS),
    ("ProxySQL", proxysql::WAITING_CLIENTS, proxysql::LONGEST_WAIT, proxysql::CONNECTIONS_FREE),
];

/// The app may hold connections without a statement because it waits for something else.
pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    for (name, waiting, longest, free) in POOLS {
        queued(facts, name, [waiting, longest, free], signs);
    }
    for (strength, evidence) in used_up(&facts.view, Holds::Connections) {
        signs.add(strength, evidence);
    }
    let waits = stacks::many(facts, &["pool"], "waited for a connection of their pool");
    signs.extend(STRONG, waits);
    if let Some((idle, _)) = facts.hidden_idle() {
        let text = format!("{idle:.0} of the app's connections had no statement: it may wait for something else");
        signs.extend(WEAK * 0.9, facts.idle_sessions(text));
    }
}

/// Clients that wait although connections are free do not wait for one of those: they belong to another
/// pool, or the count lags.
fn queued(facts: &Facts<'_>, name: &str, [waiting, longest, free]: [Metric; 3], signs: &mut Signs) {
    let gauge = |metric: Metric| facts.view.gauge(metric.name, &[], "").ok();
    let Some(waiting) = gauge(waiting).filter(|waiting| waiting.max >= 1.0) else { return };
    let longest_s = gauge(longest).map(|longest| longest.max);
    let has_free = gauge(free).is_some_and(|free| free.min >= waiting.max);
    let waited = longest_s.map_or_else(String::new, |s| format!(", the first for {s:.1} s"));
    let text = format!("{:.0} clients waited in {name} for a connection to the server{waited}", waiting.max);
    let strength = match longest_s {
        _ if has_free => WEAK,
        Some(seconds) if seconds >= LONG_S && waiting.max >= MANY => CERTAIN,
        Some(seconds) if seconds >= LONG_S => STRONG,
        None if waiting.max >= MANY => STRONG,
        _ => WEAK,
    };
    signs.add(strength, waiting.evidence(format!("{:.0} clients", waiting.max), "0", text));
}
