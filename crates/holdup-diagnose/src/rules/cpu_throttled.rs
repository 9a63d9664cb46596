//! A CPU limit of the service's cgroup stops it for the rest of each period.

mod advice;
mod began;
mod unseen;

use super::{Doc, Judge, MATTERS, Occurs, Outcome, Role, Rule, RuleFinding, ms, percent};
use crate::case::Case;
use crate::resources::{share, workers};
use crate::strength::{CERTAIN, STRONG};
use holdup_recording::metrics;
use holdup_recording::quota::{self, CpuQuota};
use holdup_signals::evidence::Evidence;
use holdup_signals::processes::Process;
use holdup_signals::{Counter, Missing, View};

pub const RULE: Rule = Rule {
    cause: "cpu_throttled",
    occurs: Occurs::Anywhere,
    doc: Doc {
        title: "The service is throttled by its CPU limit",
        what: "A cgroup with a CPU quota has used it up before the period (usually 100 ms) is over; none of its threads runs until the next one begins.",
        hurts: "Every request in flight stops for tens of milliseconds again and again. If the incoming work needs more than the quota, requests queue without end, on a host whose CPUs are idle.",
        needs: "The quota and the throttling counters of the service's cgroup, and the CPU time it used (--watch pid:N, server:PORT or cgroup:PATH). For a group throttled in most periods the counters suffice: a group without a quota never is.",
        predicts: "Most periods are throttled; the service's CPU time stands at the quota; the CPU time of a request, with the queue at that utilization of the quota, is a large part of the delay.",
        clears: "No quota is set, or its stops and the queue behind them are a small share of the delay. Throttled periods alone prove nothing: with 77 of 83 of them throttled a service was still fast.",
        looks_like: "Saturated CPUs make threads wait as well, with no idle time on the host. A pool or a lock makes requests wait while the quota is not used up.",
        fix: "A larger quota, as the load needs; or less CPU work per request.",
        prove: "The same load again: hardly a period is throttled.",
        references: "Kernel documentation: CFS Bandwidth Control, cgroup v2 (cpu.max, cpu.stat); L. Kleinrock, Queueing Systems, vol. 1 (M/M/1 processor sharing).",
    },
    judge: Judge::Alone(judge),
};

const ENABLE: &str = "--watch pid:N for the app and the database, server:PORT, or cgroup:PATH";

/// Assumed use (0-1) of the quota if unknown: from here the queue has no end.
const MOST_BUSY: f64 = 0.995;

/// A group is throttled in this share (0-1) of its periods: most of the time.
const MOSTLY: f64 = 0.5;

/// Worth (0-1) as evidence of a quota that is only inferred, compared with one that was read.
const BY_USE: f64 = 0.8;

/// What a quota did to one source.
struct ThrottledSource<'a> {
    process: Process<'a>,
    quota: CpuQuota,
    /// Whether the quota was read, not inferred from what the group could use.
    is_recorded: bool,
    periods: Counter,
    stopped: Counter,
    stopped_seconds: Counter,
    /// CPU seconds its processes used; none if not recorded.
    used: Option<f64>,
    /// Seconds that its threads stood in the run queue; none if not recorded.
    waited: Option<f64>,
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let (throttled, unlimited) = limited(&view)?;
    if throttled.is_empty() {
        return unseen::database(case, &view).map_or(Ok(Outcome::Cleared(unlimited)), Err);
    }
    let completed = case.completed_in(view.window)?.max(1.0);
    let mut worst: Option<(f64, ThrottledSource<'_>)> = None;
    for one in throttled {
        let explains = one.explains_ms(&view, completed).max(one.stalls_workers_ms(case));
        if worst.as_ref().is_none_or(|(ms, _)| explains > *ms) {
            worst = Some((explains, one));
        }
    }
    let Some((explains_ms, one)) = worst else { return Ok(Outcome::Cleared(unlimited)) };
    let mut evidence = one.evidence(&view, completed, explains_ms);
    if share(case, explains_ms) < MATTERS {
        // The used part of the quota tells an endless queue from harmless stops.
        let workers = workers::Pool::for_case(case);
        // Stopped workers, or a server stopped before it accepts, delay requests in front of it.
        let is_hidden = one.process.source.starts_with("server:")
            && one.stopped.delta >= MOSTLY * one.periods.delta
            && workers.map_or(true, |pool| !pool.knows_hand() || pool.most.is_none() && pool.is_standing());
        return match one.used.and(one.waited) {
            Some(_) if is_hidden => {
                Err(Missing::new("requests waiting for workers of a server that is throttled in most periods", ENABLE))
            }
            Some(_) => Ok(Outcome::Cleared(evidence)),
            None => Err(Missing::new("CPU time and run-queue wait of the service's processes", ENABLE)),
        };
    }
    if let Ok(idle) = view.counter(metrics::host::CPU_TIME.name, &[("cpu_mode", "idle")], "--watch host")
        && let Ok(all) = view.counter(metrics::host::CPU_TIME.name, &[], "--watch host")
    {
        let idle_share = idle.delta / all.delta.max(1e-9);
        evidence.push(idle.evidence(
            percent(idle_share),
            "none, if the CPUs were the limit",
            format!("{} of the host's CPU time was idle meanwhile", percent(idle_share)),
        ));
    }
    Ok(Outcome::Found(RuleFinding {
        explains_ms,
        evidence,
        weights: [CERTAIN * began::worth(case, &one), STRONG * one.busy().unwrap_or(0.5)]
            .map(|weight| if one.is_recorded { weight } else { weight * BY_USE })
            .to_vec(),
        fixes: advice::fixes(case, &view, &one, completed),
        prove: "Run the same scenario again: cgroup_cpu_throttled_periods_total hardly grows.".to_owned(),
        role: Role::Root,
    }))
}

/// What is throttled, and evidence for what has no limit. holdup's own cgroup counts only if no
/// process is watched: in a container it is the service's as well.
fn limited<'a>(view: &View<'a>) -> Result<(Vec<ThrottledSource<'a>>, Vec<Evidence>), Missing> {
    const QUOTA: &str = quota::SETTING;
    const PERIODS: &str = metrics::cgroup::CPU_PERIODS.name;
    let mut processes = view.processes_with(metrics::process::CPU_TIME.name);
    processes.extend(view.services_with(PERIODS));
    processes.extend(view.services_set(QUOTA));
    processes.sort_by_key(|p| p.source);
    processes.dedup();
    let watched = !processes.is_empty();
    if !watched {
        processes.push(Process { source: "host", name: "this container" });
    }
    let (mut throttled, mut unlimited) = (Vec::new(), Vec::new());
    for process in &processes {
        let told = view.setting_of(process.source, QUOTA);
        let read = told.and_then(CpuQuota::parse);
        if told.is_some() && read.is_none() && !unseen::was_throttled(view, process.source) {
            let text = format!("{} has no CPU limit", process.name);
            unlimited.push(view.setting_evidence(process.source, QUOTA, "a quota", text));
            continue;
        }
        let of = |metric| view.counter_where(|s| s == process.source, metric, &[], ENABLE);
        // All watched processes of one cgroup share its quota.
        let path = view.setting_of(process.source, "cgroup.path");
        let shares =
            |source: &str| source == process.source || path.is_some() && view.setting_of(source, "cgroup.path") == path;
        let seconds =
            |metric| view.counter_where(shares, metric, &[], ENABLE).ok().map(|c| c.delta).filter(|_| watched);
        // The cgroup's own count includes all that share the quota; else that of watched processes.
        let own = |metric| of(metric).ok().map(|c| c.delta).filter(|_| watched);
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
            Err(_) => continue,
        };
        let by_use = || unseen::quota_by_use(used?, &periods, &stopped);
        let Some(quota) = read.or_else(by_use) else { continue };
        throttled.push(ThrottledSource {
            process: process.clone(),
            quota,
            is_recorded: read.is_some(),
            periods,
            stopped,
            stopped_seconds,
            used,
            waited: seconds(metrics::process::RUN_QUEUE.name).or_else(|| own(metrics::server::RUN_QUEUE_WAIT.name)),
        });
    }
    if throttled.is_empty() && unlimited.is_empty() {
        return Err(Missing::new(
            "the CPU limit of the service's cgroup (settings, cgroup.cpu_quota_us_per_period_us)",
            ENABLE,
        ));
    }
    Ok((throttled, unlimited))
}

impl ThrottledSource<'_> {
    /// Share (0-1) of the quota that was used.
    fn busy(&self) -> Option<f64> {
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
        let is_stopped =
            self.process.source.starts_with("server:") && self.stopped.delta >= MOSTLY * self.periods.delta;
        let untaken = workers::untaken_ms(case).filter(|_| is_stopped);
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

    fn evidence(&self, view: &View<'_>, completed: f64, explains_ms: f64) -> Vec<Evidence> {
        let name = self.process.name;
        let (stopped, periods) = (self.stopped.delta, self.periods.delta);
        let expected = "max, or more than it needs";
        let quota = if self.is_recorded {
            let text = format!("{name} may use {:.2} CPUs", self.quota.cpus());
            view.setting_evidence(self.process.source, quota::SETTING, expected, text)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    #[test]
    fn a_server_watched_by_its_port_and_a_cgroup_by_its_path_are_throttled_as_well() {
        for source in ["server:8080", "cgroup:/shop", "pid:7"] {
            let made = SyntheticRecording::new(12)
                .requests(50, 900)
                .setting(source, "cgroup.cpu_quota_us_per_period_us", "20000 100000")
                .setting("kubernetes:shop/orders", "container.app.cpu_limit_millicores", "200")
                .counter(source, "cgroup_cpu_periods_total", &[], 10.0)
                .counter(source, "cgroup_cpu_throttled_periods_total", &[], 9.5)
                .counter(source, "cgroup_cpu_throttled_time_seconds_total", &[], 0.7)
                .counter(source, "cgroup_cpu_usage_seconds_total", &[], 0.199)
                // Ours is no part of it.
                .setting("host", "cgroup.cpu_quota_us_per_period_us", "max 100000");
            let Ok(Outcome::Found(found)) = made.judge(&RULE) else { panic!("{source}") };
            assert!(found.explains_ms > 450.0, "{source}: {}", found.explains_ms);
            assert!(
                found.fixes[0].keep.as_deref().is_some_and(|k| k.contains("of container app")),
                "{:?}",
                found.fixes
            );
            assert_eq!(made.clone().without("cgroup_cpu_throttled_periods_total").explains(&RULE), None, "{source}");
            let idle =
                made.without("cgroup_cpu_usage_seconds_total").without("cgroup_cpu_throttled_time_seconds_total");
            assert_eq!(idle.explains(&RULE), None, "{source}");
        }
    }

    #[test]
    fn a_group_that_is_stopped_in_most_periods_has_a_quota_whether_it_was_read_or_not() {
        let of = |ms: i64, stopped: f64| {
            SyntheticRecording::new(12)
                .requests(50, ms)
                .counter("pid:7", "cgroup_cpu_periods_total", &[], 10.0)
                .counter("pid:7", "cgroup_cpu_throttled_periods_total", &[], stopped)
                .counter("pid:7", "cgroup_cpu_throttled_time_seconds_total", &[], 0.07 * stopped)
                .counter("pid:7", "cgroup_cpu_usage_seconds_total", &[], 0.198)
        };
        let made = |stopped: f64| of(900, stopped);
        let read = made(9.9).setting("pid:7", "cgroup.cpu_quota_us_per_period_us", "20000 100000");
        let (Ok(Outcome::Found(less)), Ok(Outcome::Found(more))) = (made(9.9).judge(&RULE), read.judge(&RULE)) else {
            panic!("not found")
        };
        assert!((less.explains_ms / more.explains_ms - 1.0).abs() < 0.1, "{} {}", less.explains_ms, more.explains_ms);
        assert!(less.evidence[0].text.contains("at most 0.20 CPUs"), "{:?}", less.evidence[0]);
        assert!(less.weights.iter().zip(&more.weights).all(|(less, more)| less < more), "surer with less");
        // Seldom stopped, it may have a larger quota than it used: its stops alone count.
        let seldom = of(60, 3.0).explains(&RULE).unwrap();
        assert!((14.0..16.0).contains(&seldom), "21 % of the time, for 70 ms at a time: {seldom}");
        assert_eq!(of(60, 0.3).explains(&RULE), None, "hardly ever stopped");
        assert_eq!(made(9.9).without("cgroup_cpu_usage_seconds_total").explains(&RULE), None);
    }

    #[test]
    fn a_server_that_is_stopped_does_not_come_to_accept() {
        // 30 in its queue, and 5 of ten workers busy.
        let server = "server:8080";
        let made = |stopped: f64, answering: f64| {
            SyntheticRecording::new(12)
                .requests(50, 900)
                .target("http://127.0.0.1:8080")
                .setting(server, "cgroup.cpu_quota_us_per_period_us", "20000 100000")
                .counter(server, "cgroup_cpu_periods_total", &[], 10.0)
                .counter(server, "cgroup_cpu_throttled_periods_total", &[], stopped)
                .counter(server, "cgroup_cpu_throttled_time_seconds_total", &[], 0.05 * stopped)
                .counter(server, "cgroup_cpu_usage_seconds_total", &[], 0.15)
                .counter(server, "server_run_queue_wait_seconds_total", &[], 0.1)
                .gauge(server, "tcp_accept_queue_length", &[("port", "8080")], 30.0)
                .gauge(server, "tcp_accept_queue_limit", &[("port", "8080")], 64.0)
                .gauge(server, "server_accepted_connections", &[("pid", "7")], answering)
                .gauge(server, "server_answering_connections", &[("pid", "7")], answering)
                .gauge("puma:app", "puma_pool_capacity", &[], 5.0)
                .gauge("puma:app", "puma_max_threads", &[], 10.0)
                .explains(&RULE)
        };
        // 30 at somewhat less than 50 a second are some 650 ms, in nine of ten periods.
        assert!((500.0..620.0).contains(&made(9.0, 5.0).unwrap()), "{:?}", made(9.0, 5.0));
        assert_eq!(made(3.0, 5.0), Some(0.0), "seldom stopped, it is something else that nobody accepts for");
        assert!(made(9.0, 10.0).unwrap() < 200.0, "all are busy: {:?}", made(9.0, 10.0));
    }

    #[test]
    fn stops_that_began_are_evidence_in_few_periods_too() {
        let made = |before: f64| {
            let since = move |slow: f64| move |s: i64| before * slow * s.min(12) as f64 + slow * (s - 12).max(0) as f64;
            let made = SyntheticRecording::new(24)
                .requests(50, 60)
                .each_request(|_, r| {
                    if r.intended_at < 12_000_000_000 {
                        r.done_at = r.intended_at + 5_000_000;
                    }
                })
                .counter("pid:7", "cgroup_cpu_periods_total", &[], 10.0)
                .counted("pid:7", "cgroup_cpu_throttled_periods_total", &[], since(3.0))
                .counted("pid:7", "cgroup_cpu_throttled_time_seconds_total", &[], since(0.21))
                .counter("pid:7", "cgroup_cpu_usage_seconds_total", &[], 0.198);
            let Ok(Outcome::Found(found)) = made.judge(&RULE) else { panic!("not found") };
            found.weights[0]
        };
        assert!(made(0.0) > made(0.5), "{:?} {:?}", made(0.0), made(0.5));
    }
}
