//! The queue by its own figures, sessions that say that they wait in it, or sessions that look idle.

use holdup_recording::metrics;

use crate::instant::facts::Facts;
use crate::instant::{MANY, SOME, Signs};
use crate::strength::{CERTAIN, FAIR, WEAK};

/// Connections of a MySQL that look idle while hardly one works may wait for a thread of the pool.
pub(super) fn find(facts: &Facts<'_>, signs: &mut Signs) {
    if let Some(queue) = facts.pool_queue.as_ref().filter(|queue| queue.max >= MANY) {
        let longest = facts.view.gauge(metrics::mysql::THREAD_POOL_QUEUEING_TIME_MAX.name, &[], "").ok();
        let longest = longest.map_or_else(String::new, |longest| format!(", the first for {:.1} s", longest.max));
        let text = format!("{:.0} requests waited in the thread pool's queues{longest}", queue.max);
        signs.add(CERTAIN, queue.evidence(format!("{:.0}", queue.max), "0", text));
    }
    if facts.documents.is_there {
        return;
    }
    let queued = facts.sessions_in(SOME, "waited for a thread of the pool", |of, _| of == "queued");
    signs.extend(CERTAIN, queued);
    if let Some((idle, active)) = facts.hidden_idle() {
        let text = format!(
            "{idle:.0} sessions looked idle and {active:.0} worked: a queue in front of execution shows as Sleep"
        );
        // A server that is known to have a pool may hide them; of another that is not known.
        signs.extend(if facts.has_pool { FAIR } else { WEAK }, facts.idle_sessions(text));
    }
}
