//! Worker-hold time: how long a request holds a worker, and how much of that is waiting for
//! downstream services, waiting for the database, or computing. It shows what more workers would
//! achieve, and what would be the limit without the waits.

use super::Pool;
use super::pool::{self, stretch};
use crate::case::Case;
use crate::resources::{cpu, statements};
use holdup_recording::metrics;
use holdup_recording::quota::{self, CpuQuota};
use holdup_recording::words::{ms, percent, thousands};
use holdup_signals::app::accounts::Owner;
use holdup_signals::app::app_server::{DownstreamService, waited_ms};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Counter, View, app::timing};

/// Worker-hold time counts as longer from this share (0-1) above the baseline window: any two
/// windows differ by less.
const GREW: f64 = 0.25;

/// Up to this share (0-1) of its capacity a pool makes requests wait hardly at all; above it the
/// queue of a pool of some tens grows without bound (Erlang's C formula).
const ENOUGH: f64 = 0.8;

/// The load counts as unchanged up to this factor: any two windows differ by less.
const SAME_LOAD: f64 = 1.1;

/// Worker-hold time of a request.
#[derive(Clone, Debug)]
pub struct WorkerHold {
    /// All of it, milliseconds.
    pub ms: f64,
    /// The same in the baseline window, if there is one.
    pub baseline_ms: Option<f64>,
    /// Workers that were busy at most: as many as there are if requests waited for one.
    most: f64,
    /// Whether there were more workers in the baseline window.
    are_fewer: bool,
    /// Waits for downstream services; none if not reported.
    pub downstream_ms: Option<f64>,
    /// Waits for databases; none if not reported.
    pub database_ms: Option<f64>,
    /// CPU time; none if it was not recorded.
    pub cpu_ms: Option<f64>,
    neighbours: Vec<DownstreamService>,
    cpu: Option<Counter>,
}

impl WorkerHold {
    /// By the app's own timing if nothing counts workers, else by Little's law: busy workers over
    /// requests per second. None if neither is known.
    pub fn measure(case: &Case<'_>, pool: &Pool) -> Option<Self> {
        let timing = pool.timing.as_ref().filter(|_| pool.most.is_none());
        let counted = || Some(waited_ms(pool.busy.filter(|_| pool.per_second > 0.0)?, pool.per_second));
        let ms = timing.map(|timing| timing.held_ms).or_else(counted)?;
        let baseline_ms = match timing {
            Some(_) => pool.baseline_timing.as_ref().map(|baseline| baseline.held_ms),
            None => case.baseline().and_then(|baseline| pool::held_in(case, &baseline)),
        };
        let most = pool.most.or_else(|| timing.map(|timing| timing.busy)).unwrap_or(f64::INFINITY);
        let view = stretch(case);
        let source = pool.outside.as_ref().map(|o| o.source.as_str()).unwrap_or_default();
        let seen = view.downstream_services(source);
        let of = |is_database: bool| {
            let seen = seen.as_ref()?.iter().filter(|n| n.is_database == is_database);
            Some(waited_ms(seen.map(|n| n.pending).sum(), pool.per_second))
        };
        let by_app = || {
            let metric = view.mean(timing::HTTP_CLIENT, &[], timing::APP_METRICS).ok();
            let completed = case.completed_in(view.window).ok()?.max(1.0);
            case.accounts().mean_ms_of_app(Owner::Downstream).or_else(|| metric.map(|m| m.ms * m.count / completed))
        };
        let cpu = cpu_of(&view, source);
        Some(Self {
            ms,
            baseline_ms,
            most,
            are_fewer: pool.fewer_by.is_some(),
            downstream_ms: of(false).or_else(by_app),
            database_ms: of(true).or_else(|| statements::database_of_app(case).map(|(ms, ..)| ms)),
            cpu_ms: cpu.as_ref().map(|cpu| waited_ms(cpu.delta / view.window.seconds().max(1e-9), pool.per_second)),
            neighbours: seen.unwrap_or_default(),
            cpu,
        })
    }

    /// What a cause must explain to be why workers are short, milliseconds: the growth of hold time
    /// since the baseline window. Infinite if it did not grow: then the workers are too few for the
    /// load, whatever they do. Without a baseline window, all of it.
    pub fn to_explain_ms(&self) -> f64 {
        match self.baseline_ms {
            None => self.ms,
            Some(before) if !self.is_as_before() && !self.are_fewer => self.ms - before,
            Some(_) => f64::INFINITY,
        }
    }

    /// Whether a request holds its worker about as long as in the baseline window.
    pub fn is_as_before(&self) -> bool {
        self.baseline_ms.is_some_and(|before| self.ms < (1.0 + GREW) * before)
    }

    /// If workers are short only because each is held longer than in the baseline window: the hold
    /// time of then, milliseconds, at which they would suffice for the load, or did suffice for it.
    /// Whatever lengthens it is the reason, even if no source shows what that is.
    pub fn was_enough_at_ms(&self, case: &Case<'_>) -> Option<f64> {
        let before = self.baseline_ms.filter(|_| !self.is_as_before() && !self.are_fewer)?;
        let needed = case.peak_offered_per_second() * before / 1e3;
        let sufficed = || {
            let (baseline, slow) = (case.baseline()?.window, stretch(case).window);
            Some(case.due_per_second(slow).ok()? <= SAME_LOAD * case.due_per_second(baseline).ok()?)
        };
        (needed <= ENOUGH * self.most || sufficed() == Some(true)).then_some(before)
    }

    /// Time without waiting for others, as far as known, and without a CPU, milliseconds. None if
    /// either is unknown.
    pub fn stalled_ms(&self) -> Option<f64> {
        self.downstream_ms.or(self.database_ms)?;
        Some((self.ms - self.known_ms()).max(0.0)).filter(|_| self.cpu_ms.is_some())
    }

    /// The explained part, milliseconds.
    pub fn known_ms(&self) -> f64 {
        self.waits_ms() + self.cpu_ms.unwrap_or(0.0)
    }

    /// Waits for others, as far as known.
    pub fn waits_ms(&self) -> f64 {
        self.downstream_ms.unwrap_or(0.0) + self.database_ms.unwrap_or(0.0)
    }

    /// Share (0-1) of it spent waiting for others.
    pub fn waits_ratio(&self) -> f64 {
        (self.waits_ms() / self.ms.max(1e-9)).clamp(0.0, 1.0)
    }

    /// The downstream service with the longest wait.
    pub fn slowest(&self) -> Option<&DownstreamService> {
        self.neighbours.iter().find(|n| !n.is_database)
    }

    /// Requests per second that `most` workers carry now, and without waits for others: at most
    /// what `cpus` compute.
    pub fn capacity(&self, most: f64, cpus: f64) -> (f64, f64) {
        let own_ms = (self.ms - self.waits_ms()).max(0.0);
        let by_cpu = self.cpu_ms.filter(|ms| *ms > 0.0).map_or(f64::MAX, |ms| cpus / ms * 1e3);
        let without = (most / own_ms.max(0.01 * self.ms).max(1e-9) * 1e3).min(by_cpu);
        (most / self.ms.max(1e-9) * 1e3, without)
    }

    /// What workers are busy with.
    pub fn evidence(&self, case: &Case<'_>, pool: &Pool) -> Vec<Evidence> {
        let view = stretch(case);
        let mut parts = Vec::new();
        let mut add = |ms_of: Option<f64>, what: String| {
            parts.extend(
                ms_of.map(|value| format!("{} ({}) {what}", ms(value), percent((value / self.ms.max(1e-9)).min(1.0)))),
            );
        };
        let slowest = self.slowest().map_or_else(String::new, |n| format!(", most for {}", n.name));
        add(self.downstream_ms, format!("for downstream services{slowest}"));
        add(self.database_ms, "for the database".to_owned());
        add(self.cpu_ms, "on a CPU".to_owned());
        let split = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
        let mut evidence = Vec::new();
        let (Some(most), Some(pointer)) = (pool.most, self.pointer(pool)) else { return evidence };
        let cpus = usable_cpus(&view, pool);
        let (now, without) = self.capacity(most, cpus);
        let text = format!(
            "a request holds a worker for {}{split}; {most:.0} of them therefore carry at most {now:.0} requests/s",
            ms(self.ms)
        );
        evidence.push(pointer.clone().saying("", text));
        if without > now {
            let text = format!(
                "without the waits they would carry at most {}/s, by their own time and the {cpus:.1} CPUs they can use: anything a test without waits carries beyond {now:.0}/s is the cost of the waits",
                thousands(without)
            );
            evidence.push(pointer.saying("", text));
        }
        for neighbour in self.neighbours.iter().take(2).filter(|n| n.pending > 0.0) {
            let wait = waited_ms(neighbour.pending, pool.per_second);
            let text = format!(
                "on average {:.1} answers of {} were pending: {} per request, by Little's law",
                neighbour.pending,
                neighbour.name,
                ms(wait)
            );
            evidence.push(neighbour.evidence(format!("{:.1} awaited", neighbour.pending), "", text));
        }
        evidence.extend(self.cpu_evidence(&view));
        evidence.extend(threads(&view, pool));
        evidence
    }

    fn pointer(&self, pool: &Pool) -> Option<Evidence> {
        let by_workers = pool.workers.as_ref().map(|w| w.evidence("", ""));
        let mut pointer = by_workers.or_else(|| pool.outside.as_ref().map(|o| o.queue_evidence("", "")))?;
        pointer.observed = ms(self.ms);
        Some(pointer)
    }

    fn cpu_evidence(&self, view: &View<'_>) -> Option<Evidence> {
        let cpu = self.cpu.as_ref()?;
        // Some of the processes ended: none has run all the time.
        let used = cpu.delta / view.window.seconds().max(1e-9);
        let text = format!("its processes used {used:.2} CPUs together");
        Some(cpu.evidence(format!("{used:.2} CPUs"), "", text))
    }
}

/// CPUs that its processes can use at most: the host's, their quota, and one each for an
/// interpreter with a lock.
fn usable_cpus(view: &View<'_>, pool: &Pool) -> f64 {
    let source = pool.outside.as_ref().map(|o| o.source.as_str()).unwrap_or_default();
    let host = view.gauge(metrics::host::CPU_LOGICAL_COUNT.name, &[], "").map_or(1.0, |cpus| cpus.max);
    let name = view.setting_of(source, "server.name").unwrap_or_default();
    let each = cpu::is_interpreter(name).then(|| pool::processes(view, pool));
    let quota = view.setting_of(source, quota::SETTING).and_then(CpuQuota::parse).map(CpuQuota::cpus);
    [each, quota].into_iter().flatten().filter(|cpus| *cpus > 0.0).fold(host, f64::min)
}

/// CPU time of the server's processes.
fn cpu_of(view: &View<'_>, source: &str) -> Option<Counter> {
    view.counter_where(|s| s == source, metrics::server::THREAD_CPU_TIME.name, &[], super::ENABLE).ok()
}

/// How many threads ran, if they were counted by state.
fn threads(view: &View<'_>, pool: &Pool) -> Option<Evidence> {
    let source = &pool.outside.as_ref()?.source;
    let of = |labels: &[(&str, &str)]| {
        view.gauge_where(|s| s == source, metrics::server::THREADS.name, labels, super::ENABLE).ok()
    };
    let all = of(&[])?;
    let running = of(&[("state", "R")]).map_or(0.0, |r| r.mean);
    let text =
        format!("of {:.0} threads {running:.1} were running or runnable on average; the others waited", all.mean);
    Some(all.evidence(format!("{running:.1} of {:.0}", all.mean), "", text))
}
