//! What is made of searches whose results are known, and of what was recorded beside them.

use holdup_knee::scaling::Proportion;

use super::*;
use holdup_diagnose::search::BreakingPoint;
use holdup_signals::testing::SyntheticRecording;

fn interval_of(value: f64) -> Interval {
    Interval { value, low: 0.97 * value, high: 1.03 * value }
}

fn found(value: f64, round: u32, knee: f64) -> Run {
    Run {
        value: Some(value),
        round,
        path: format!("cpu-{value}-{round}"),
        knee: Some(interval_of(0.9 * knee)),
        breaking_point: Some(BreakingPoint { rate: interval_of(knee), how: MissedRequirement::AchievedBelowOffered }),
        capacity: Some(interval_of(knee)),
        no_knee: None,
        culprit: Some("cpu_throttled".to_owned()),
        cpu: Some(CpuUse {
            source: "cgroup:/app".to_owned(),
            cpus: Some(0.98 * value),
            of_cpus: value,
            ratio: Some(0.98),
            is_quota: true,
            throttled_ratio: Some(0.9),
        }),
        connections: Some(Connections { count: 10.0, known_by: "the most that were open to port 5432".to_owned() }),
        connection_budget: Some(100.0),
    }
}

fn refused(value: f64) -> Run {
    let none = "the generator was the limit at 80/s: all 5 connections were in use".to_owned();
    Run { knee: None, breaking_point: None, capacity: None, no_knee: Some(none), ..found(value, 1, 100.0) }
}

fn demand(load: Load) -> Demand {
    Demand { load, headroom: 0.3, connections_per_instance: None, connection_budget: None }
}

#[test]
fn twice_the_quota_is_linear_and_instances_and_their_connections_are_counted() {
    let runs = vec![found(2.0, 1, 202.0), found(1.0, 1, 99.0), found(1.0, 2, 101.0)];
    let report = judge(Some("cpu"), runs, Some(&demand(Load::Rate(300.0))));
    assert!(report.is_answered());
    assert_eq!(report.settings.iter().map(|s| s.value).collect::<Vec<_>>(), [Some(1.0), Some(2.0)]);
    let capacity = report.settings[0].capacity.unwrap();
    assert!((capacity.value - 100.0).abs() < 0.5 && capacity.high - capacity.low < 5.0, "{capacity:?}");
    let scaling = report.scaling.as_ref().unwrap();
    assert_eq!((scaling.whole, report.scaling_of.as_deref()), (Proportion::Linear, Some("capacity")));
    let plan = report.plan.as_ref().unwrap();
    // 90/s less 30 % is 63/s: 4.76 of them.
    assert_eq!((plan.rows[0].needed.instances, plan.rows[1].needed.instances), (5, 3));
    assert!(plan.fits() && plan.rows[1].budget.unwrap().connections == 30.0);
    let text = report.text.join("\n");
    for part in [
        "Linear: cpu from 1 to 2 gives 2.02 (",
        "300/s needs 3 instances of cpu=2",
        "3 instances of 10 connections: 30 of 100, so the load is the limit",
        "cpu_throttled; 0.98 of 1.00 CPUs of the quota in use, 90 % of periods throttled",
    ] {
        assert!(text.contains(part), "no \"{part}\" in {text}");
    }
}

#[test]
fn a_multiple_is_of_the_smallest_values_knee() {
    let report = judge(Some("cpu"), vec![found(1.0, 1, 100.0), found(2.0, 1, 200.0)], Some(&demand(Load::Times(3.0))));
    let plan = report.plan.unwrap();
    assert_eq!((plan.rate, plan.times), (270.0, Some(3.0)));
    assert_eq!((plan.rows[0].needed.instances, plan.rows[1].needed.instances), (5, 3));
}

#[test]
fn where_the_connections_bind_first_it_is_said_for_how_much_they_are_enough() {
    let told = Demand { connections_per_instance: Some(40.0), ..demand(Load::Rate(300.0)) };
    let report = judge(None, vec![Run { value: None, ..found(1.0, 1, 100.0) }], Some(&told));
    let plan = report.plan.as_ref().unwrap();
    let row = &plan.rows[0];
    assert!(!plan.fits() && row.budget.unwrap().instances == 2 && row.carried_within_budget == Some(126.0), "{row:?}");
    assert!(report.scaling.is_none());
    let text = report.text.join("\n");
    for part in
        ["300/s needs 5 instances", "200 of 100, so connections are the first limit: 2 instances fit, for 126/s"]
    {
        assert!(text.contains(part), "no \"{part}\" in {text}");
    }
}

#[test]
fn without_a_knee_there_is_neither_scaling_nor_a_plan() {
    let report = judge(None, vec![Run { value: None, ..refused(1.0) }], Some(&demand(Load::Rate(300.0))));
    assert!(!report.is_answered() && report.plan.is_none());
    let text = report.text.join("\n");
    assert!(text.contains("No knee was found: the generator was the limit at 80/s"), "{text}");
    assert!(text.contains("No plan: it needs a knee"), "{text}");
    let report = judge(Some("cpu"), vec![refused(2.0), found(1.0, 1, 100.0)], None);
    assert!(!report.is_answered() && report.scaling.is_none());
    let text = report.text.join("\n");
    assert!(text.contains("At cpu=2 no knee") && text.contains("it takes the knee at two values"), "{text}");
}

#[test]
fn where_it_stops_being_linear_is_said() {
    let runs = vec![found(1.0, 1, 100.0), found(2.0, 1, 200.0), found(4.0, 1, 260.0)];
    let report = judge(Some("workers"), runs, None);
    let text = report.text.join("\n");
    for part in [
        "Less than linear: workers from 1 to 4 gives 2.6 (",
        "It is linear up to workers=2; from there to workers=4 it gives 1.3 (",
    ] {
        assert!(text.contains(part), "no \"{part}\" in {text}");
    }
    assert!(report.scaling.unwrap().law.is_some() && text.contains("Universal Scalability Law"), "{text}");
}

#[test]
fn where_something_else_binds_it_is_said() {
    let unused = CpuUse { ratio: Some(0.5), throttled_ratio: Some(0.0), ..found(2.0, 1, 1.0).cpu.unwrap() };
    let pool = Some("worker_pool_exhausted".to_owned());
    let other = Run { culprit: pool, cpu: Some(unused), ..found(2.0, 1, 101.0) };
    let text = judge(Some("cpu"), vec![found(1.0, 1, 100.0), other], None).text.join("\n");
    let said = "At cpu=2 the limit is another than at cpu=1: worker_pool_exhausted instead of cpu_throttled.";
    assert!(text.contains("Less than linear") && text.contains(said), "{text}");
    assert!(text.contains("More of it gives no measurable gain."), "{text}");
}

#[test]
fn cpu_and_connections_are_read_from_the_recording() {
    let at_port = [("peer_port", "5432"), ("peer", "127.0.0.1")];
    let made = SyntheticRecording::new(10)
        .setting("cgroup:/app", "cgroup.cpu_quota_us_per_period_us", "40000 100000")
        .counter("cgroup:/app", "cgroup_cpu_usage_seconds_total", &[("cgroup", "/app")], 0.39)
        .counter("cgroup:/app", "cgroup_cpu_periods_total", &[("cgroup", "/app")], 10.0)
        .counter("cgroup:/app", "cgroup_cpu_throttled_periods_total", &[("cgroup", "/app")], 9.0)
        .counter("host", "cgroup_cpu_usage_seconds_total", &[("cgroup", "/")], 1.9)
        .gauge("server:8080", "server_outgoing_connections", &at_port, 12.0)
        .gauge("server:8080", "server_outgoing_connections", &[("peer_port", "9999"), ("peer", "127.0.0.1")], 40.0)
        .setting("postgresql://db", "max_connections", "100")
        .setting("postgresql://db", "superuser_reserved_connections", "3")
        .requests(100, 10);
    let read = |made: &SyntheticRecording| {
        let diagnosis = holdup_diagnose::diagnose(made.recording(), None);
        run(made.recording(), &diagnosis, Some(0.4), 1, "a")
    };
    let one = read(&made);
    let cpu = one.cpu.unwrap();
    assert_eq!((cpu.source.as_str(), cpu.ratio, cpu.throttled_ratio), ("cgroup:/app", Some(0.975), Some(0.9)));
    assert_eq!(one.connections.map(|connections| connections.count), Some(12.0));
    assert_eq!(one.connection_budget, Some(97.0));
    assert!(one.knee.is_none() && one.no_knee.unwrap().contains("the recording holds no search"));
    // Without the group's own account, by its processes'; without either, by how often it was stopped.
    let less = made.clone().without("cgroup_cpu_usage_seconds_total");
    assert_eq!(read(&less).cpu.unwrap().ratio, None);
    let processes = [("pid", "7"), ("cpu_mode", "user")];
    let less = less.counter("cgroup:/app", "server_thread_cpu_time_seconds_total", &processes, 0.38);
    assert_eq!(read(&less).cpu.unwrap().ratio, Some(0.95));
    let busy = |mode| [("cpu", "0"), ("cpu_mode", mode)];
    let elsewhere = SyntheticRecording::new(10)
        .setting("cgroup:/app", "cgroup.cpu_quota_us_per_period_us", "40000 100000")
        .counter("cgroup:/app", "cgroup_cpu_usage_seconds_total", &[("cgroup", "/app")], 0.2)
        .gauge("host", "system_cpu_logical_count", &[], 2.0)
        .counter("host", "system_cpu_time_seconds_total", &busy("user"), 1.9)
        .counter("host", "system_cpu_time_seconds_total", &busy("idle"), 0.1)
        .requests(100, 10);
    let cpu = read(&elsewhere).cpu.unwrap();
    assert_eq!((cpu.source.as_str(), cpu.ratio), ("host", Some(0.95)));
    let pool = read(&made.clone().gauge("prometheus:x", "db_client_connection_max", &[], 20.0));
    assert_eq!(pool.connections.map(|connections| connections.count), Some(20.0));
    let unlimited =
        read(&SyntheticRecording::new(10).gauge("host", "system_cpu_logical_count", &[], 2.0).requests(100, 10));
    assert!(unlimited.cpu.is_none() && unlimited.connections.is_none(), "what was not read is not there");
}
