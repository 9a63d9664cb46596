//! CPUs: how busy they are, how many a process can use, and when their use is the service's own.

use holdup_recording::metrics;
use holdup_recording::words::percent;
use holdup_signals::evidence::Evidence;
use holdup_signals::host::cpu::{self, CpuMode, CpuSeconds, CpuTime};
use holdup_signals::{Counter, Missing, View, app::timing};

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
pub const FULL: f64 = 0.9;

/// A mean use (0-1) that hides moments of full CPUs (B. Gregg, Systems Performance, 2nd ed., 2.5.1:
/// 70 %) …
const MOSTLY_BUSY: f64 = 0.7;

/// … and the share (0-1) of sampling intervals with full CPUs that makes a burst of them matter.
const OFTEN_FULL: f64 = 0.25;

/// From this share (0-1) of CPU time, waits for I/O stand beside idle time.
const WAITS: f64 = 0.05;

/// How busy the host's CPUs were.
///
/// Niced work of others does not count: a thread at nice 19 has a weight of 15 against 1,024
/// (`sched_prio_to_weight` in `kernel/sched/core.c`), so an ordinary thread takes the CPU from it.
/// That holds within a cgroup. Between cgroups their weights decide, so such work does not clear
/// the CPUs either: [`Self::may_be_short`].
#[derive(Clone, Debug)]
pub struct CpuUse {
    /// Share (0-1) of their time in use.
    pub busy: f64,
    /// Share (0-1) of their time that niced work of others used.
    pub gives_way: f64,
    /// Share (0-1) of their time with nothing to run while a thread waited for its I/O.
    pub waiting: f64,
    /// Seconds in use, of all CPUs together.
    pub seconds: f64,
    /// Share (0-1) of sampling intervals in which all CPUs were full.
    pub full: f64,
    /// All CPU time.
    pub time: Counter,
}

impl CpuUse {
    /// Over `view`; time with I/O in flight is unused as well.
    ///
    /// # Errors
    /// If the host was not watched.
    pub fn measure(view: &View<'_>) -> Result<Self, Missing> {
        let CpuTime { time, seconds, .. } = CpuTime::measure(view)?;
        let no_idle = || Missing::new("idle CPU time", HOST);
        seconds.counted(CpuMode::Idle).ok_or_else(no_idle)?;
        let gives_way = gives_way_seconds(view);
        let others = gives_way / seconds.of(CpuMode::Nice).max(1e-9);
        let intervals = cpu::intervals(view.index, view.window, |_| true);
        let free = |cpu: &CpuSeconds| cpu.unused() + others * cpu.of(CpuMode::Nice);
        let full = intervals.iter().filter(|(_, cpu)| free(cpu) <= (1.0 - FULL) * cpu.all).count();
        let share = |of: f64| seconds.share(of).clamp(0.0, 1.0);
        Ok(Self {
            busy: share(seconds.used() - gives_way),
            gives_way: share(gives_way),
            waiting: share(seconds.of(CpuMode::Iowait)),
            seconds: seconds.used() - gives_way,
            full: full as f64 / (intervals.len() as f64).max(1.0),
            time,
        })
    }

    /// Whether threads can be short of CPUs: nearly all are busy, on average or again and again. A
    /// thread that is woken always waits a little for a CPU, however idle they are.
    pub fn is_short(&self) -> bool {
        self.busy >= MOSTLY_BUSY || self.full >= OFTEN_FULL
    }

    /// Whether threads can be short of CPUs if niced work of others does not make way for them: it
    /// may be in a cgroup, or in a session with a scheduling group of its own.
    pub fn may_be_short(&self) -> bool {
        self.is_short() || self.busy + self.gives_way >= MOSTLY_BUSY
    }

    /// Evidence of how busy they were.
    pub fn says_how_busy(&self) -> Evidence {
        let text = match () {
            () if self.is_short() => {
                let (busy, full) = (percent(self.busy), percent(self.full));
                format!("CPUs were {busy} busy, and all of them full in {full} of the samples")
            }
            () if self.may_be_short() => format!(
                "niced work used {} of CPU time, which makes way for ordinary threads of its cgroup, and {} was idle",
                percent(self.gives_way),
                percent(1.0 - self.busy - self.gives_way)
            ),
            () if self.waiting >= WAITS => format!(
                "{} of CPU time was idle, and for {} a CPU had nothing to run while a disk had its threads' I/O",
                percent((1.0 - self.busy - self.gives_way - self.waiting).max(0.0)),
                percent(self.waiting)
            ),
            () => format!("{} of CPU time was idle", percent(1.0 - self.busy - self.gives_way)),
        };
        let observed = format!("{} busy", percent(self.busy));
        self.time.evidence(observed, "near 100 %, if CPU were the cause", text)
    }
}

/// Below this share (0-1) of the niced time what is left for others is an error of the reads: a host and its
/// processes are read one after another.
const READ_ERROR: f64 = 0.1;

/// Seconds of CPU time that niced work of others used. A service that is niced itself does not make
/// way for itself: what its processes used in user mode beyond all that was used there without a
/// nice value, is theirs.
pub fn gives_way_seconds(view: &View<'_>) -> f64 {
    let Ok(host) = CpuTime::measure(view) else { return 0.0 };
    let Some(niced) = host.counter(CpuMode::Nice) else { return 0.0 };
    // By rates, because a busy host reads its processes at other instants than itself.
    let in_user_mode = |metric| view.counter(metric, &[("cpu_mode", CpuMode::User.label())], "").ok();
    let own = [metrics::process::CPU_TIME.name, metrics::server::THREAD_CPU_TIME.name];
    let own = own.into_iter().find_map(in_user_mode).map_or(0.0, |user| user.rate());
    let others = niced.rate() - (own - host.cpus(CpuMode::User)).max(0.0);
    if others >= READ_ERROR * niced.rate() { others * niced.seconds } else { 0.0 }
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
