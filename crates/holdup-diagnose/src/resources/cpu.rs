//! CPUs: how busy they are, how many a process can use, and when their use is the service's own.

use std::collections::BTreeMap;

use holdup_recording::metrics;
use holdup_recording::words::percent;
use holdup_signals::evidence::Evidence;
use holdup_signals::{Counter, Missing, View, timing};

use crate::case::Case;

/// What to record for the host's CPU time.
pub const HOST: &str = "--watch host";

/// Prefixes of the names of interpreters with a global lock (15 bytes at most): Ruby and Python,
/// and Node.js with its event loop.
const INTERPRETERS: &[&str] = &["ruby", "puma", "unicorn", "falcon", "python", "gunicorn", "uwsgi", "node"];

/// From this share (0-1) of the CPU time in use, it is mostly the service's own.
pub const OWN: f64 = 0.5;

/// Whether a process of this name runs one thread at a time.
pub fn is_interpreter(name: &str) -> bool {
    INTERPRETERS.iter().any(|interpreter| name.starts_with(interpreter))
}

/// CPUs count as full at an instant from this share (0-1): between two requests there is always a
/// moment.
const FULL: f64 = 0.9;

/// A mean use (0-1) that hides moments of full CPUs (B. Gregg, Systems Performance, 2nd ed., 2.5.1:
/// 70 %) …
const MOSTLY_BUSY: f64 = 0.7;

/// … and the share (0-1) of sampling intervals with full CPUs that makes a burst of them matter.
const OFTEN_FULL: f64 = 0.25;

/// How busy the host's CPUs were.
#[derive(Clone, Debug)]
pub struct CpuUse {
    /// Share (0-1) of their time in use.
    pub busy: f64,
    /// Seconds in use, of all CPUs together.
    pub seconds: f64,
    /// Share (0-1) of sampling intervals in which all CPUs were full.
    pub full: f64,
    /// All CPU time.
    pub time: Counter,
}

impl CpuUse {
    /// Over `view`; iowait is idle time.
    ///
    /// # Errors
    /// If the host was not watched.
    pub fn measure(view: &View<'_>) -> Result<Self, Missing> {
        const TIME: &str = metrics::host::CPU_TIME.name;
        let time = view.counter(TIME, &[], HOST)?;
        let mode = |mode| view.counter(TIME, &[("cpu_mode", mode)], HOST);
        let idle = mode("idle")?.delta + mode("iowait").map_or(0.0, |c| c.delta);
        let grown = |labels: &[(&str, &str)]| {
            let growths = view.growths(|_| true, TIME, labels).into_iter();
            growths.map(|g| (g.window.from, g.delta)).collect::<BTreeMap<i64, f64>>()
        };
        let (all, idles) = (grown(&[]), [grown(&[("cpu_mode", "idle")]), grown(&[("cpu_mode", "iowait")])]);
        let idle_at = |at: &i64| idles.iter().filter_map(|of| of.get(at)).sum::<f64>();
        let full = all.iter().filter(|(at, all)| idle_at(at) <= (1.0 - FULL) * **all).count();
        Ok(Self {
            busy: (1.0 - idle / time.delta.max(1e-9)).clamp(0.0, 1.0),
            seconds: time.delta - idle,
            full: full as f64 / (all.len() as f64).max(1.0),
            time,
        })
    }

    /// Whether threads can be short of CPUs: nearly all are busy, on average or again and again. A
    /// thread that is woken always waits a little for a CPU, however idle they are.
    pub fn is_short(&self) -> bool {
        self.busy >= MOSTLY_BUSY || self.full >= OFTEN_FULL
    }

    /// Evidence that points at the CPU time.
    pub fn evidence(&self, expected: &str, text: String) -> Evidence {
        self.time.evidence(format!("{} busy", percent(self.busy)), expected, text)
    }
}

/// CPU time of the app server's own processes for a request of `view`, milliseconds; none if
/// nothing counts it.
pub fn app_ms_per_request(case: &Case<'_>, view: &View<'_>) -> Option<(f64, Counter)> {
    let server = view.outside().ok().filter(|o| o.has_processes()).map(|o| o.source);
    let by_kernel =
        |source: String| view.counter_where(|s| s == source, metrics::server::THREAD_CPU_TIME.name, &[], "").ok();
    let used = server
        .and_then(by_kernel)
        .or_else(|| view.counter(metrics::app::PROCESS_CPU.name, &[], timing::APP_METRICS).ok())?;
    let completed = case.completed_in(view.window).ok().filter(|n| *n > 0.0)?;
    Some((used.delta / completed * 1e3, used))
}
