//! Connections that a server refused, by its log or its counter, and connections at the limit: a
//! server's own, or a managed database's.

use holdup_recording::words::thousands;
use holdup_recording::{events, metrics};

use crate::instant::Signs;
use crate::instant::facts::Facts;
use crate::resources::connection_limits::ConnectionLimit;
use crate::strength::{CERTAIN, FAIR, WEAK};

/// Fewer refused connections may be one client that retried.
const SOME: f64 = 3.0;

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    for (strength, evidence) in facts.clouds.iter().filter_map(|database| database.at_connection_limit()) {
        signs.add(strength, evidence);
    }
    if let Some(refused) = facts.happened.errors(events::TOO_MANY_CONNECTIONS) {
        let strength = if refused.count as f64 >= SOME { CERTAIN } else { FAIR };
        let text = format!("a server refused connections because its limit was reached, {}", refused.when());
        signs.add(strength, refused.evidence(text));
    }
    forgotten(facts, signs);
    pooler(facts, signs);
    let Ok(limits) = ConnectionLimit::all(&facts.view) else { return one_look(facts, signs) };
    for limit in limits {
        match limit.refused.filter(|(count, _)| *count > 0.0) {
            Some((count, evidence)) => signs.add(if count >= SOME { CERTAIN } else { FAIR }, evidence),
            None if !limit.reached.is_empty() => signs.add(FAIR, limit.connected),
            None => {}
        }
    }
}

/// Clients of PgBouncer, beyond which it refuses the next ones.
fn pooler(facts: &Facts<'_>, signs: &mut Signs) {
    const NEARLY: f64 = 0.95;
    let Some(most) = facts.view.setting_number("max_client_conn").ok().filter(|most| *most > 0.0) else { return };
    let clients = |metric: metrics::Metric| facts.view.gauge(metric.name, &[], "").ok();
    let Some(active) = clients(metrics::pgbouncer::ACTIVE_CLIENTS) else { return };
    let count = active.max + clients(metrics::pgbouncer::WAITING_CLIENTS).map_or(0.0, |waiting| waiting.max);
    if count >= NEARLY * most {
        let text =
            format!("{} clients of PgBouncer, of {} that max_client_conn allows", thousands(count), thousands(most));
        signs.add(FAIR, active.evidence(thousands(count), format!("below {}", thousands(most)), text));
    }
}

/// Connections that have slept for long: a client opens them and does not give them back. A pool that keeps
/// its own looks the same, so without a limit that they reach they prove little.
fn forgotten(facts: &Facts<'_>, signs: &mut Signs) {
    /// No pool of one app keeps as many for nothing.
    const MANY: f64 = 30.0;
    /// A pool's connections are in use now and then, seconds.
    const LONG_S: f64 = 1_800.0;
    const NEARLY: f64 = 0.8;
    let Some(sessions) = &facts.sessions else { return };
    let long = sessions.idle_s.iter().filter(|idle_s| **idle_s >= LONG_S).count() as f64;
    let all = sessions.count(|_, _| true);
    if long < MANY || long < NEARLY * all {
        return;
    }
    let most = facts.view.setting_number("max_connections").ok().filter(|most| *most > 0.0);
    let of = most.map_or_else(String::new, |most| format!(", of {} that the server allows", thousands(most)));
    let text =
        format!("{} of {} connections have slept for more than half an hour{of}", thousands(long), thousands(all));
    let strength = if most.is_some_and(|most| all >= NEARLY * most) { FAIR } else { WEAK };
    signs.extend(strength, facts.idle_sessions(text));
}

/// Of one look a level beside the limit: as many may be just those that are needed.
fn one_look(facts: &Facts<'_>, signs: &mut Signs) {
    let connected = facts.view.gauge(metrics::mysql::GLOBAL_STATUS_THREADS_CONNECTED.name, &[], "");
    let (Ok(connected), Ok(most)) = (connected, facts.view.setting_number("max_connections")) else { return };
    if most > 0.0 && connected.max >= most {
        let text = format!("{} connections of {} allowed", thousands(connected.max), thousands(most));
        signs.add(FAIR, connected.evidence(thousands(connected.max), format!("below {}", thousands(most)), text));
    }
}
