//! How long the service's threads stood in the run queue: as the kernel counted it, else at most.

use holdup_recording::metrics;

use crate::case::Case;
use crate::causes::{ms, percent};
use crate::resources::cpu::{CpuUse, HOST};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Counter, Missing, View};

/// Time for which threads of the watched processes stood in the run queue.
pub(super) struct RunQueue {
    waited: Counter,
    /// For a request, milliseconds.
    pub(super) request_ms: f64,
}

impl RunQueue {
    pub(super) fn measure(view: &View<'_>, completed: f64) -> Result<Self, Missing> {
        let waited = view.counter(metrics::process::RUN_QUEUE.name, &[], "--watch pid:N");
        let waited =
            waited.or_else(|_| view.counter(metrics::server::RUN_QUEUE_WAIT.name, &[], "--watch server:PORT"))?;
        Ok(Self { request_ms: waited.delta / completed * 1e3, waited })
    }

    pub(super) fn evidence(&self, baseline: Option<&Self>) -> Evidence {
        let before = baseline.map_or_else(String::new, |c| format!(", {} in the baseline window", ms(c.request_ms)));
        let text = format!(
            "all threads of the watched processes together waited {} per request for a CPU{before}",
            ms(self.request_ms)
        );
        let observed = format!("{} a request", ms(self.request_ms));
        self.waited.evidence(observed, "most of the delay, if CPU were the cause", text)
    }
}

/// The most that waiting for a CPU can be if no kernel counted it, milliseconds of a request: the
/// processor-sharing queue that this utilization makes of the CPU time used.
pub(super) fn unmeasured(case: &Case<'_>, cpus: &CpuUse, completed: f64, evidence: &mut Vec<Evidence>) -> f64 {
    let used = cpus.seconds / completed * 1e3;
    let queueing = used * cpus.busy / (1.0 - cpus.busy).max(1e-3);
    let text = format!(
        "a request used at most {} of CPU: at {} busy, queueing for it makes at most {}",
        ms(used),
        percent(cpus.busy),
        ms(queueing)
    );
    evidence.push(cpus.time.evidence(ms(used), String::new(), text));
    match running(case, completed) {
        // Other processes may use the CPUs: sessions that wait for one here show it.
        Some((running, piece)) if running < queueing => {
            evidence.push(piece);
            running
        }
        _ => queueing,
    }
}

/// Milliseconds of a statement for which sessions were runnable, because they had nothing to wait
/// for; none if statements are not the client's requests, or the server does not report waits.
fn running(case: &Case<'_>, completed: f64) -> Option<(f64, Evidence)> {
    let view = case.slow();
    let waits = view.server_waits().ok().flatten().filter(|_| case.asks_statements())?;
    let running_ms = waits.running * view.window.seconds() / completed * 1e3;
    let text = format!(
        "{:.1} of {:.1} active sessions on average waited only for a CPU: at most {} per request",
        waits.running,
        waits.active,
        ms(running_ms)
    );
    let counted = view.gauge(metrics::postgresql::SESSIONS.name, &[], HOST).ok()?;
    Some((running_ms, counted.evidence(format!("{:.1} sessions", waits.running), "most of them", text)))
}
