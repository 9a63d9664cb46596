//! A CPU limit of the service's cgroup stops it for the rest of each period.

mod advice;
mod began;
mod signs;
mod unseen;

use holdup_recording::metrics;

use super::bound::Bound;
use super::{Cause, CauseFinding, Definition, Doc, Judge, MATTERS, Outcome, Role, Trait, ms, percent};
use crate::case::Case;
use crate::next_command::NextCommand;
use crate::resources::cpu_quotas::{CpuQuotas, ENABLE};
use crate::resources::{share, workers};
use crate::strength::{CERTAIN, STRONG};
use holdup_signals::Missing;
use holdup_signals::host::cpu::{CpuMode, CpuTime};

pub const DEFINITION: Definition = Definition {
    traits: &[Trait::FullCpu, Trait::Queue],
    bound: Some(bound),
    signs: Some(signs::find),
    errors: &[(holdup_recording::events::QUOTA_RAN_OUT, STRONG)],
    ..Definition::new(Cause::CpuThrottled, DOC, Judge::Alone(judge), &NEXT)
};

const DOC: Doc = Doc {
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
};

/// Shows it in one command.
const NEXT: NextCommand = NextCommand::on_machine(
    "cat /sys/fs/cgroup/cpu.stat; sleep 10; cat /sys/fs/cgroup/cpu.stat",
    10,
    "whether the container runs into its quota (nr_throttled)",
);

/// Worth (0-1) as evidence of a quota that is only inferred, compared with one that was read.
const BY_USE: f64 = 0.8;

/// All the time for which quotas held threads back.
fn bound(case: &Case<'_>) -> Option<Bound> {
    let view = case.slow();
    let held = view.counter(metrics::cgroup::CPU_THROTTLED_TIME.name, &[], ENABLE).ok()?;
    let pointer = held.evidence(ms(held.delta * 1e3), "", "");
    Some(Bound::of_stops(held.rate() * view.window.seconds(), pointer, "the times for which its quota held it back"))
}

fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let quotas = CpuQuotas::measure(&view)?;
    if quotas.throttled.is_empty() {
        return unseen::database(case, &view).map_or(Ok(Outcome::Cleared(quotas.unlimited)), Err);
    }
    let completed = case.completed_in(view.window)?.max(1.0);
    let Some((explains_ms, one)) = quotas.worst(case, &view, completed) else {
        return Ok(Outcome::Cleared(quotas.unlimited));
    };
    let mut evidence = one.evidence(&view, completed, explains_ms);
    if share(case, explains_ms) < MATTERS {
        // The used part of the quota tells an endless queue from harmless stops.
        let workers = workers::Pool::for_case(case);
        // Stopped workers, or a server stopped before it accepts, delay requests in front of it.
        let is_hidden = one.is_stopped_server()
            && workers.map_or(true, |pool| !pool.knows_hand() || pool.most.is_none() && pool.is_standing());
        return match one.used.and(one.waited) {
            Some(_) if is_hidden => {
                Err(Missing::new("requests waiting for workers of a server that is throttled in most periods", ENABLE))
            }
            Some(_) => Ok(Outcome::Cleared(evidence)),
            None => Err(Missing::new("CPU time and run-queue wait of the service's processes", ENABLE)),
        };
    }
    if let Ok(cpu) = CpuTime::measure(&view)
        && let Some((idle, unused)) = cpu.counter(CpuMode::Idle).zip(cpu.unused_ratio())
    {
        evidence.push(idle.evidence(
            percent(unused),
            "none, if the CPUs were the limit",
            format!("{} of the host's CPU time was idle meanwhile", percent(unused)),
        ));
    }
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence,
        weights: [CERTAIN * began::worth(case, one), STRONG * one.busy().unwrap_or(0.5)]
            .map(|weight| if one.is_recorded { weight } else { weight * BY_USE })
            .to_vec(),
        fixes: advice::fixes(case, &view, one, completed),
        prove: "Run the same scenario again: cgroup_cpu_throttled_periods_total hardly grows.".to_owned(),
        role: Role::Root,
    }))
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
            let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("{source}") };
            assert!(found.explains_ms > 450.0, "{source}: {}", found.explains_ms);
            assert!(
                found.fixes[0].keep.as_deref().is_some_and(|k| k.contains("of container app")),
                "{:?}",
                found.fixes
            );
            assert_eq!(
                made.clone().without("cgroup_cpu_throttled_periods_total").explains(&DEFINITION),
                None,
                "{source}"
            );
            let idle =
                made.without("cgroup_cpu_usage_seconds_total").without("cgroup_cpu_throttled_time_seconds_total");
            assert_eq!(idle.explains(&DEFINITION), None, "{source}");
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
        let (Ok(Outcome::Found(less)), Ok(Outcome::Found(more))) =
            (made(9.9).judge(&DEFINITION), read.judge(&DEFINITION))
        else {
            panic!("not found")
        };
        let lowered = made(9.9).setting("pid:7", "cgroup.cpu_quota_us_per_period_us", "200000 100000").setting(
            "pid:7",
            "cgroup.cpu_quota_us_per_period_us",
            "20000 100000",
        );
        let Ok(Outcome::Found(lowered)) = lowered.judge(&DEFINITION) else { panic!("not found") };
        assert!(lowered.evidence[0].text.ends_with("0.20 CPUs, lowered from 2.00"), "{:?}", lowered.evidence[0]);
        assert!((less.explains_ms / more.explains_ms - 1.0).abs() < 0.1, "{} {}", less.explains_ms, more.explains_ms);
        assert!(less.evidence[0].text.contains("at most 0.20 CPUs"), "{:?}", less.evidence[0]);
        assert!(less.weights.iter().zip(&more.weights).all(|(less, more)| less < more), "surer with less");
        // Seldom stopped, it may have a larger quota than it used: its stops alone count.
        let seldom = of(60, 3.0).explains(&DEFINITION).unwrap();
        assert!((14.0..16.0).contains(&seldom), "21 % of the time, for 70 ms at a time: {seldom}");
        assert_eq!(of(60, 0.3).explains(&DEFINITION), None, "hardly ever stopped");
        assert_eq!(made(9.9).without("cgroup_cpu_usage_seconds_total").explains(&DEFINITION), None);
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
                .explains(&DEFINITION)
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
            let Ok(Outcome::Found(found)) = made.judge(&DEFINITION) else { panic!("not found") };
            found.weights[0]
        };
        assert!(made(0.0) > made(0.5), "{:?} {:?}", made(0.0), made(0.5));
    }
}
