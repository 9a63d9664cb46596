//! CPU quotas of the service's cgroups: what each stops, how often, and what that costs a request.

use holdup_recording::metrics;
use holdup_recording::quota::{self, CpuQuota};
use holdup_recording::words::{ms, percent};
use holdup_signals::evidence::Evidence;
use holdup_signals::host::processes::Process;
use holdup_signals::{Counter, Missing, View};

use super::workers;
use crate::case::Case;

/// What to record for the quotas of a service.
pub const ENABLE: &str = "--watch pid:N for the app and the database, server:PORT, or cgroup:PATH";

const QUOTA: &str = quota::SETTING;

const PERIODS: &str = metrics::cgroup::CPU_PERIODS.name;

/// Assumed use (0-1) of the quota if unknown: from here the queue has no end.
const MOST_BUSY: f64 = 0.995;

/// A group is throttled in this share (0-1) of its periods: most of the time.
const MOSTLY: f64 = 0.5;

/// Stopped in a smaller share (0-1) of its periods than this, a group hardly feels its quota.
const AT_ALL: f64 = 0.05;

/// Length of a quota's period unless set, microseconds (Documentation/scheduler/sched-bwc.rst).
const PERIOD_MICROS: f64 = 100_000.0;

/// What is throttled, and evidence for what has no limit.
pub struct CpuQuotas<'a> {
    /// Groups with a quota.
    pub throttled: Vec<ThrottledSource<'a>>,
    /// Evidence of each group without one.
    pub unlimited: Vec<Evidence>,
}

impl<'a> CpuQuotas<'a> {
    /// Of every watched process and group. holdup's own cgroup counts only if no process is
    /// watched: in a container it is the service's as well.
    ///
    /// # Errors
    /// If a quota's counters were not recorded, or no limit at all.
    pub fn measure(view: &View<'a>) -> Result<Self, Missing> {
        let mut processes = view.processes_with(metrics::process::CPU_TIME.name);
        processes.extend(view.services_with(PERIODS));
        processes.extend(view.services_set(QUOTA));
        processes.sort_by_key(|p| p.source);
        processes.dedup();
        let is_watched = !processes.is_empty();
        if !is_watched {
            processes.push(Process { source: "host", name: "this container" });
        }
        let (mut throttled, mut unlimited) = (Vec::new(), Vec::new());
        for process in processes {
            let told = view.setting_of(process.source, QUOTA);
            let read = told.and_then(CpuQuota::parse);
            if told.is_some() && read.is_none() && !was_throttled(view, process.source) {
                let text = format!("{} has no CPU limit", process.name);
                unlimited.push(view.setting_evidence(process.source, QUOTA, "a quota", text));
                continue;
            }
            throttled.extend(ThrottledSource::measure(view, process, read, is_watched)?);
        }
        if throttled.is_empty() && unlimited.is_empty() {
            return Err(Missing::new(
                "the CPU limit of the service's cgroup (settings, cgroup.cpu_quota_us_per_period_us)",
                ENABLE,
            ));
        }
        Ok(Self { throttled, unlimited })
    }

    /// The group whose quota costs a request most, and the milliseconds.
    pub fn worst(&self, case: &Case<'_>, view: &View<'_>, completed: f64) -> Option<(f64, &ThrottledSource<'a>)> {
        let mut worst: Option<(f64, &ThrottledSource<'_>)> = None;
        for one in &self.throttled {
            let explains = one.explains_ms(view, completed).max(one.stalls_workers_ms(case));
            if worst.as_ref().is_none_or(|(ms, _)| explains > *ms) {
                worst = Some((explains, one));
            }
        }
        worst
    }
}

/// What a quota did to one source.
pub struct ThrottledSource<'a> {
    /// The process, or the group.
    pub process: Process<'a>,
    /// Its quota.
    pub quota: CpuQuota,
    /// Whether the quota was read, not inferred from what the group could use.
    pub is_recorded: bool,
    /// The quota's periods.
    pub periods: Counter,
    /// Periods in which it was stopped.
    pub stopped: Counter,
    /// How long it was stopped.
    pub stopped_seconds: Counter,
    /// CPU seconds its processes used; none if not recorded.
    pub used: Option<f64>,
    /// Seconds that its threads stood in the run queue; none if not recorded.
    pub waited: Option<f64>,
}

impl<'a> ThrottledSource<'a> {
    /// What the quota of `process` did: the quota that was `read`, else the one that its use and
    /// its stops show.
    fn measure(
        view: &View<'a>,
        process: Process<'a>,
        read: Option<CpuQuota>,
        is_watched: bool,
    ) -> Result<Option<Self>, Missing> {
        let of = |metric| view.counter_where(|s| s == process.source, metric, &[], ENABLE);
        // All watched processes of one cgroup share its quota.
        let path = view.setting_of(process.source, "cgroup.path");
        let shares =
            |source: &str| source == process.source || path.is_some() && view.setting_of(source, "cgroup.path") == path;
        let seconds =
            |metric| view.counter_where(shares, metric, &[], ENABLE).ok().map(|c| c.delta).filter(|_| is_watched);
        // The cgroup's own count includes all that share the quota; else that of watched processes.
        let own = |metric| of(metric).ok().map(|c| c.delta).filter(|_| is_watched);
        let used = own(metrics::cgroup::CPU_USAGE.name)
            .or_else(|| seconds(metrics::process::CPU_TIME.name))
            .or_else(|| own(metrics::server::THREAD_CPU_TIME.name));
        let counters = || -> Result<_, Missing> {
            let (stopped, seconds) =
                (of(metrics::cgroup::CPU_THROTTLED_PERIODS.name)?, of(metrics::cgroup::CPU_THROTTLED_TIME.name)?);
            Ok((of(PERIODS)?, stopped, seconds))
        };
        let (periods, stopped, stopped_seconds) = match counters() {
            Ok(counters) => counters,
            Err(missing) if read.is_some() => return Err(missing),
            Err(_) => return Ok(None),
        };
        let by_use = || quota_by_use(used?, &periods, &stopped);
        let Some(quota) = read.or_else(by_use) else { return Ok(None) };
        let waited = seconds(metrics::process::RUN_QUEUE.name).or_else(|| own(metrics::server::RUN_QUEUE_WAIT.name));
        let is_recorded = read.is_some();
        Ok(Some(Self { process, quota, is_recorded, periods, stopped, stopped_seconds, used, waited }))
    }

    /// Whether it is a server that is stopped in most periods.
    pub fn is_stopped_server(&self) -> bool {
        self.process.source.starts_with("server:") && self.stopped.delta >= MOSTLY * self.periods.delta
    }

    /// Share (0-1) of the quota that was used.
    pub fn busy(&self) -> Option<f64> {
        Some((self.used? / self.periods.seconds.max(1e-9) / self.quota.cpus()).clamp(0.0, 1.0))
    }

    /// Milliseconds of a request from the stops it meets, from the queue of a server as fast as the
    /// quota, or from the counted waits: the largest of these lower bounds.
    fn explains_ms(&self, view: &View<'_>, completed: f64) -> f64 {
        self.stops_ms(view).max(self.queue_ms(completed)).max(self.waited_ms(view, completed))
    }

    /// Share (0-1) of the time it was stopped. The kernel adds up the stops of all run queues.
    fn stopped_share(&self, view: &View<'_>) -> f64 {
        (self.stopped_seconds.delta / self.quota.cpus().ceil().max(1.0) / view.window.seconds()).min(1.0)
    }

    /// A request that arrives in a stop waits for its end, and for earlier requests: about a stop's
    /// length, as often as stops cover the time.
    fn stops_ms(&self, view: &View<'_>) -> f64 {
        let share = self.stopped_share(view);
        share * share * view.window.seconds() / self.stopped.delta.max(1.0) * 1e3
    }

    /// A runnable thread of a stopped group stands in the run queue: the stopped share of that.
    fn waited_ms(&self, view: &View<'_>, completed: f64) -> f64 {
        self.stopped_share(view) * self.waited.unwrap_or(0.0) / completed * 1e3
    }

    /// If requests wait for a worker: worker-hold time without waits for others and without CPU, as
    /// far as their group was throttled. Some kernels take the threads of a stopped group off the
    /// run queue. If connections wait although workers are free, a server that is stopped most of
    /// the time has no time to accept them.
    fn stalls_workers_ms(&self, case: &Case<'_>) -> f64 {
        let held = workers::waits_for_workers(case).and_then(|held| held.stalled_ms());
        let untaken = workers::untaken_ms(case).filter(|_| self.is_stopped_server());
        let stalled = held.into_iter().chain(untaken).reduce(f64::max);
        let view = workers::stretch(case);
        let of =
            |metric| view.counter_where(|s| s == self.process.source, metric, &[], ENABLE).map_or(0.0, |c| c.delta);
        let ratio = of(metrics::cgroup::CPU_THROTTLED_PERIODS.name) / of(metrics::cgroup::CPU_PERIODS.name).max(1.0);
        stalled.unwrap_or(0.0) * ratio
    }

    /// The CPU time of a request under processor sharing at this utilization of the quota.
    fn queue_ms(&self, completed: f64) -> f64 {
        // Without the CPU time: the quota was used up in each throttled period.
        let busy = self.busy().unwrap_or(self.stopped.delta / self.periods.delta.max(1.0)).min(MOST_BUSY);
        let used = self.used.unwrap_or(busy * self.quota.cpus() * self.periods.seconds);
        let elapsed = used / completed * 1e3 / self.quota.cpus().min(1.0);
        elapsed * busy / (1.0 - busy)
    }

    /// The quota, how often it stopped the group, and what that costs a request.
    pub fn evidence(&self, view: &View<'_>, completed: f64, explains_ms: f64) -> Vec<Evidence> {
        let name = self.process.name;
        let (stopped, periods) = (self.stopped.delta, self.periods.delta);
        let expected = "max, or more than it needs";
        let quota = if self.is_recorded {
            let since = before_words(view, self.process.source, self.quota);
            let text = format!("{name} may use {:.2} CPUs{since}", self.quota.cpus());
            view.setting_evidence(self.process.source, QUOTA, expected, text)
        } else {
            let text = format!(
                "{name} may use at most {:.2} CPUs, by its use and its throttled periods: its limit was not recorded",
                self.quota.cpus()
            );
            self.periods.evidence(format!("at most {:.2} CPUs", self.quota.cpus()), expected, text)
        };
        let mut evidence = vec![
            quota,
            self.stopped.evidence(
                format!("{stopped:.0} of {periods:.0}"),
                "hardly any",
                format!(
                    "it was throttled in {stopped:.0} of {periods:.0} periods, for {:.0} ms each on average",
                    self.stopped_seconds.delta / stopped.max(1.0) * 1e3
                ),
            ),
        ];
        let text = match (self.used, self.busy()) {
            (Some(used), Some(busy)) => format!(
                "a request used {} of CPU, and {} of the quota was used: stops and the queue behind them account for {} of a request",
                ms(used / completed * 1e3),
                percent(busy),
                ms(explains_ms)
            ),
            _ => format!("its stops and the queue behind them account for up to {} of a request", ms(explains_ms)),
        };
        evidence.push(self.stopped_seconds.evidence(
            format!("{:.1} s in {:.0} s", self.stopped_seconds.delta, view.window.seconds()),
            "most of the delay, if this were the cause",
            text,
        ));
        evidence
    }
}

/// What the quota was before, if it was lowered while this was recorded; empty if not.
fn before_words(view: &View<'_>, source: &str, quota: CpuQuota) -> String {
    let rows = view.recording.tables.settings.with_columns(&["source", "name", "value"]).unwrap_or_default();
    let own = rows.iter().filter(|row| row.source == source && row.name == QUOTA);
    let mut values: Vec<&str> = own.map(|row| row.value.as_str()).collect();
    values.dedup();
    match values.iter().rev().nth(1).map(|value| CpuQuota::parse(value)) {
        Some(Some(before)) if before.cpus() > quota.cpus() => format!(", lowered from {:.2}", before.cpus()),
        Some(None) => ", and had no limit before".to_owned(),
        _ => String::new(),
    }
}

/// Most that a quota can be that was not recorded, or was set only after settings were read: in
/// each of its `periods` in which a group was stopped it used all of its quota, so the quota is at
/// most its total use divided by their share. What follows from a smaller quota is then a lower
/// bound. None for a group that was hardly ever stopped.
fn quota_by_use(used: f64, periods: &Counter, stopped: &Counter) -> Option<CpuQuota> {
    let share = stopped.delta / periods.delta.max(1.0);
    let cpus = used / periods.seconds.max(1e-9) / share;
    (share >= AT_ALL && cpus > 0.0).then_some(CpuQuota { us: cpus * PERIOD_MICROS, period_us: PERIOD_MICROS })
}

/// Whether `source` was stopped at its limit. Settings are read at the start and at the end: a
/// limit in between shows in the counters.
fn was_throttled(view: &View<'_>, source: &str) -> bool {
    let stopped = metrics::cgroup::CPU_THROTTLED_PERIODS.name;
    view.counter_where(|s| s == source, stopped, &[], ENABLE).is_ok_and(|stopped| stopped.delta > 0.0)
}
