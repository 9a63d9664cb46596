//! A process whose interpreter runs one thread at a time and uses all of a CPU: more threads do not
//! make it faster, even if other CPUs are idle.

use std::collections::BTreeMap;

use crate::case::Case;
use crate::causes::{Fix, ms};
use crate::resources::{cpu, workers};
use holdup_recording::metrics;
use holdup_signals::View;
use holdup_signals::evidence::Evidence;

/// CPUs that such a process uses at its limit: handing over the lock costs a little, and a little
/// runs without it.
const ALL_OF_ONE: (f64, f64) = (0.9, 1.15);

/// Assumed most use (0-1) of its CPU: from here the queue has no end.
const MOST_BUSY: f64 = 0.995;

/// From this use (0-1) the CPU is full: between two threads there is always a moment.
const FULL: f64 = 0.95;

pub(super) struct OneCore {
    /// Processes that use a whole CPU.
    pub processes: usize,
    /// Milliseconds of a request spent waiting for the lock, as a processor-sharing queue at this
    /// utilization.
    pub explains_ms: f64,
    pub evidence: Evidence,
}

/// The processes that use a whole CPU at most instants of the episode, if there are any.
pub(super) fn find(case: &Case<'_>, completed: f64) -> Option<OneCore> {
    let (view, stretch) = (case.slow(), workers::stretch(case));
    let mut used: BTreeMap<(&str, String), f64> = BTreeMap::new();
    for (metric, label) in [(metrics::server::THREAD_CPU_TIME.name, "pid"), (metrics::process::CPU_TIME.name, "")] {
        for source in view.services_with(metric).into_iter().filter(|p| cpu::is_interpreter(p.name)) {
            for pid in view.label_values(metric, label) {
                let pair = [(label, pid.as_str())];
                let labels = if pid.is_empty() { &[][..] } else { &pair[..] };
                if let Some(cpus) = usual_rate(&stretch, source.source, metric, labels) {
                    used.insert((metric, pid), cpus);
                }
            }
        }
        if !used.is_empty() {
            break;
        }
    }
    let full: Vec<f64> = used.values().copied().filter(|n| (ALL_OF_ONE.0..=ALL_OF_ONE.1).contains(n)).collect();
    let busiest = full.iter().copied().fold(0.0, f64::max);
    let metric = used.keys().next()?.0;
    if full.is_empty() {
        return None;
    }
    let busy = busiest.min(MOST_BUSY);
    let seconds = stretch.window.seconds();
    let a_request_ms = full.iter().sum::<f64>() * seconds / completed * 1e3;
    let queue_ms = a_request_ms * busy / (1.0 - busy);
    // At full use it is what everything in front waits for, also those who are not let in.
    let explains_ms = if busiest >= FULL { queue_ms.max(case.excess_ms()) } else { queue_ms };
    let text = format!(
        "{} process{} of an interpreter that runs one thread at a time used {busiest:.2} of its one CPU at most instants: at {} of CPU per request, waiting for its lock takes up to {}, while other CPUs are idle",
        full.len(),
        if full.len() > 1 { "es" } else { "" },
        ms(a_request_ms),
        ms(explains_ms)
    );
    let pointer = view.counter(metric, &[], "").ok()?;
    let evidence = pointer.evidence(format!("{busiest:.2} CPUs"), "well below 1", text);
    Some(OneCore { processes: full.len(), explains_ms, evidence })
}

/// The median over sampling intervals of how much a counter grows a second: idle moments at the
/// edges of an episode do not count.
fn usual_rate(view: &View<'_>, source: &str, metric: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let growths = view.growths(|s| s == source, metric, labels).into_iter();
    let mut rates: Vec<f64> = growths.map(|g| g.delta / g.window.seconds().max(1e-9)).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied()
}

pub(super) fn fix(processes: usize) -> Fix {
    Fix {
        text: format!(
            "Run more processes than {processes}, up to the number of CPUs: threads of one process share one CPU. Then reduce the CPU work per request."
        ),
        command: None,
        keep: None,
        risk: Some("Each process takes memory and connections to the database.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use crate::causes::cpu_saturated::DEFINITION;
    use crate::testing::{Judged as _, SyntheticRecording};

    fn made(name: &str, cpus: f64) -> SyntheticRecording {
        let cpu = |mode| [("cpu_mode", mode)];
        SyntheticRecording::new(12)
            .requests(50, 400)
            .setting("server:8080", "server.name", name)
            .counter("server:8080", "server_thread_cpu_time_seconds_total", &[("pid", "7"), ("cpu_mode", "user")], cpus)
            .counter("host", "system_cpu_time_seconds_total", &cpu("user"), 1.1)
            .counter("host", "system_cpu_time_seconds_total", &cpu("idle"), 6.9)
    }

    #[test]
    fn a_process_with_an_interpreters_lock_has_one_cpu_whatever_the_host_has() {
        assert!(made("ruby", 0.98).explains(&DEFINITION).unwrap() > 300.0);
        assert_eq!(made("ruby", 0.5).explains(&DEFINITION), Some(0.0));
        // Threads of a server without such a lock run side by side.
        assert_eq!(made("java", 0.98).explains(&DEFINITION), Some(0.0));
    }
}
