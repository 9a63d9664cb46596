//! Deadlocks, waits that the log reports, and latches inside of the server that are waited for over seconds. A deadlock now and then
//! is usual where transactions meet; many show that they contend for the same rows.

use holdup_recording::events;
use holdup_recording::metrics;
use holdup_recording::words::thousands;

use crate::instant::facts::Facts;
use crate::instant::hung::{STORAGE, waits_in};
use crate::instant::{self, Signs};
use crate::strength::{FAIR, STRONG};

/// So many in a stretch are more than chance meetings.
const MANY: f64 = 10.0;

/// A latch is held for microseconds: after so many seconds its holder is stuck.
const STUCK_S: f64 = 30.0;

/// Servers' own counters of deadlocks.
const COUNTERS: [metrics::Metric; 2] =
    [metrics::mysql::GLOBAL_STATUS_INNODB_DEADLOCKS, metrics::postgresql::STAT_DATABASE_DEADLOCKS];

pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    let logged = facts.happened.of(events::DEADLOCK, |_| true);
    match &logged {
        Some(deadlocks) => {
            let text = format!("transactions waited for each other in a circle (deadlock), {}", deadlocks.when());
            signs.add(FAIR * (deadlocks.count as f64 / MANY), deadlocks.evidence(text));
        }
        None => {
            let counted = COUNTERS.iter().filter_map(|metric| facts.view.counter(metric.name, &[], "").ok());
            for deadlocks in counted.filter(|deadlocks| deadlocks.delta > 0.0) {
                let count = thousands(deadlocks.delta);
                let text = format!("the server counted {count} deadlocks");
                signs.add(FAIR * (deadlocks.delta / MANY), deadlocks.evidence(count, "hardly any", text));
            }
        }
    }
    let is_waiting = |event: &holdup_recording::rows::Event| event.labels.get("state") == Some("waiting");
    if let Some(waits) = facts.happened.of("lock_wait", is_waiting) {
        let text = format!("sessions waited for a lock for longer than deadlock_timeout, {}", waits.when());
        signs.add(if waits.count as f64 >= instant::MANY { STRONG } else { FAIR }, waits.evidence(text));
    }
    // Threads that are stuck at several places wait for one thing behind them all.
    let is_all = facts.happened.by(events::SEMAPHORE_WAIT, "place").len() > 1;
    let latches = facts.happened.of(events::SEMAPHORE_WAIT, |event| !waits_in(event, &STORAGE));
    if let Some(latches) = latches {
        let most = latches.most("seconds").unwrap_or(0.0);
        let text = format!("threads waited up to {most:.0} s for a latch inside of the server, {}", latches.when());
        let strength = if is_all { FAIR } else { STRONG };
        signs.add(strength * (most / STUCK_S), latches.evidence(text));
    }
}
