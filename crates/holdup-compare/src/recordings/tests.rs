//! Comparisons of made-up pairs whose difference is known, and of pairs that cannot be compared.

mod simulation;

use super::*;
use holdup_recording::manifest::Phase;
use holdup_signals::testing::SyntheticRecording;

const MS: i64 = 1_000_000;

/// 20 s of 50 requests a second that take `ms`, one in ten of them twice as long, by a process that spends `cpu_ms` on each.
fn made(ms: i64, cpu_ms: f64) -> SyntheticRecording {
    SyntheticRecording::new(20)
        .requests(50, ms)
        .each_request(|n, r| {
            let more = if n % 10 == 0 { r.done_at - r.intended_at } else { n % 7 * MS / 10 };
            r.done_at += more;
        })
        .counter("pid:7", "process_cpu_time_seconds_total", &[("cpu_mode", "user")], 50.0 * cpu_ms / 1e3)
        .gauge("pid:7", "process_memory_usage_bytes", &[], 50.0 * 1_048_576.0)
}

fn group(name: &str, runs: &[SyntheticRecording]) -> Group {
    let round = |i: usize| (runs.len() > 1).then_some(i as u32 + 1);
    let run = |(i, made): (usize, &SyntheticRecording)| {
        let diagnosis = holdup_diagnose::diagnose(made.recording(), None);
        Run::from_recording(format!("{name}-{i}"), made.recording(), &diagnosis, round(i))
    };
    Group { name: name.to_owned(), runs: runs.iter().enumerate().map(run).collect() }
}

fn compared(groups_: &[(&str, &[SyntheticRecording])]) -> Comparison {
    let all: Vec<Group> = groups_.iter().map(|(name, runs)| group(name, runs)).collect();
    groups(&all, Options::default())
}

fn against<'c>(comparison: &'c Comparison, part: &str, column: usize) -> &'c Against {
    let row = comparison.rows.iter().find(|row| row.indicator.contains(part));
    let row = row.unwrap_or_else(|| panic!("no {part} in {:#?}", comparison.rows));
    row.cells[column].against.as_ref().unwrap()
}

fn why(comparison: &Comparison, part: &str) -> String {
    let against = against(comparison, part, 1);
    assert_eq!(against.verdict, Change::NotComparable, "{part}: {against:?}");
    against.why.clone().unwrap()
}

#[test]
fn twice_as_fast_and_twice_as_dear() {
    let comparison = compared(&[("A", &[made(20, 2.0)]), ("B", &[made(10, 4.0)]), ("C", &[made(20, 2.0)])]);
    let faster = against(&comparison, "response time p95", 1);
    assert_eq!((faster.verdict, faster.change_ratio), (Change::Better, Some(-0.5)));
    assert!(faster.low.unwrap() < -0.5 && faster.high.unwrap() > -0.5 && faster.high.unwrap() < -0.3, "{faster:?}");
    assert_eq!(against(&comparison, "CPU per 1,000", 1).verdict, Change::Worse);
    assert_eq!(against(&comparison, "achieved rate", 1).verdict, Change::NoDifference);
    let verdicts: Vec<_> = comparison.columns.iter().map(|c| c.verdict).collect();
    assert_eq!(verdicts, [None, Some(Change::Mixed), Some(Change::NoDifference)]);
    let said = comparison.columns[1].headline.as_deref().unwrap();
    assert!(said.contains("p95") && said.contains("(-50 %, 95 % interval") && said.contains("CPU per 1,000"), "{said}");
    assert!(comparison.notes.iter().any(|note| note.contains("is assumed")), "{:?}", comparison.notes);
}

#[test]
fn a_tenth_needs_repeats() {
    let one = compared(&[("A", &[made(20, 2.0)]), ("B", &[made(22, 2.0)])]);
    assert_eq!(against(&one, "response time p95", 1).verdict, Change::NoDifference);
    let (a, b): (Vec<SyntheticRecording>, Vec<SyntheticRecording>) =
        (0..5).map(|_| (made(20, 2.0), made(22, 2.0))).unzip();
    let five = compared(&[("A", &a), ("B", &b)]);
    assert_eq!(against(&five, "response time p95", 1).verdict, Change::Worse);
    assert_eq!(five.columns[1].recordings, 5);
    assert!(five.notes.iter().any(|note| note.contains("5 rounds")), "{:?}", five.notes);
}

#[test]
fn other_loads_and_survivors_are_not_compared() {
    let base = || made(20, 2.0);
    let rate = compared(&[("A", &[base()]), ("B", &[SyntheticRecording::new(20).requests(80, 20)])]);
    assert!(why(&rate, "response time p95").contains("offered rates differ: 50.0/s against 80.0/s"));
    let failing = base().each_request(|n, r| {
        if n % 3 == 0 {
            r.outcome = "http_status".into();
        }
    });
    let survivors = compared(&[("A", &[base()]), ("B", &[failing])]);
    assert!(why(&survivors, "response time p95").contains("survivors"));
    let failed = against(&survivors, "failed", 1);
    assert_eq!((failed.verdict, survivors.columns[1].verdict), (Change::Worse, Some(Change::Worse)));
    let other = base().each_request(|_, r| r.operation = "put".into());
    let scenario = compared(&[("A", &[base()]), ("B", &[other])]);
    assert_eq!(scenario.columns[1].verdict, Some(Change::NotComparable));
    let rare = |name: &'static str| {
        base().each_request(move |n, r| {
            if n % 100 == 0 {
                r.operation = name.into();
            }
        })
    };
    let almost = compared(&[("A", &[base()]), ("B", &[rare("login")])]);
    assert_eq!(against(&almost, "failed", 1).verdict, Change::Missing, "all requests of two, and of one");
    let mixes = compared(&[("A", &[rare("login")]), ("B", &[rare("search")])]);
    assert_eq!(against(&mixes, "all requests response time p95", 1).verdict, Change::NoDifference);
    let closed = base().by_protocol("http/2");
    assert!(why(&compared(&[("A", &[base()]), ("B", &[closed])]), "response time p95").contains("protocol"));
}

/// A schedule of one step that lasts for all of `made`, with a time-out of 5 s.
fn scheduled(made: SyntheticRecording, rate: f64) -> Group {
    let mut recording = made.recording().clone();
    let phase = |rate| Phase { name: "load".into(), from: 0, to: 20_000 * MS, rate_from: rate, rate_to: rate };
    recording.manifest.phases = vec![phase(rate)];
    recording.manifest.load.as_mut().unwrap().timeout_ns = 5_000_000_000;
    let diagnosis = holdup_diagnose::diagnose(&recording, None);
    let run = Run::from_recording("x", &recording, &diagnosis, None);
    Group {
        name: if made.recording().tables.requests.rows.iter().all(|r| r.outcome == "ok") {
            "fibres"
        } else {
            "threads"
        }
        .into(),
        runs: vec![run],
    }
}

/// One in `each` requests is refused after 2 ms.
fn refusing(made: SyntheticRecording, each: i64) -> SyntheticRecording {
    made.each_request(move |n, r| {
        if n % each == 0 {
            r.outcome = "connection_refused".into();
            r.done_at = r.intended_at + 2 * MS;
        }
    })
}

#[test]
fn refused_requests_are_slower_than_any_answer_where_both_had_the_same_schedule() {
    let base = || scheduled(refusing(made(60, 2.0), 2), 50.0);
    let comparison = groups(&[base(), scheduled(made(90, 2.0), 50.0)], Options::default());
    let p95 = against(&comparison, "response time p95", 1);
    assert_eq!(p95.verdict, Change::Better, "{p95:?}");
    let said = comparison.columns[1].headline.as_deref().unwrap();
    assert!(said.contains("p95 180 ms instead of at least 5,000 ms (-96 %"), "{said}");
    let note = comparison.notes.iter().find(|note| note.contains("without an answer")).unwrap();
    assert!(note.contains("50 % of threads, 0 % of fibres"), "{note}");

    // A tenth refused: the median counts those with an answer.
    let tenth =
        groups(&[scheduled(refusing(made(60, 2.0), 10), 50.0), scheduled(made(60, 2.0), 50.0)], Options::default());
    let row = |part: &str| tenth.rows.iter().find(|row| row.indicator.ends_with(part)).unwrap();
    let p50 = row("response time p50").cells[0].clone();
    assert!(!p50.is_least && p50.value.is_some_and(|ms| ms < 62.0), "{p50:?}");
    assert!(row("response time p95").cells[0].is_least);

    // Another schedule, or none: only the survivors are known.
    for other in [scheduled(made(90, 2.0), 80.0), group("watched", &[made(90, 2.0)])] {
        let apart = groups(&[base(), other], Options::default());
        assert!(!apart.rows.iter().any(|row| row.cells.iter().any(|cell| cell.is_least)));
        assert_eq!(against(&apart, "response time p95", 1).verdict, Change::NotComparable);
    }
    // Few failed: as ever.
    let few =
        groups(&[scheduled(refusing(made(60, 2.0), 50), 50.0), scheduled(made(60, 2.0), 50.0)], Options::default());
    assert!(few.notes.iter().all(|note| !note.contains("without an answer")), "{:?}", few.notes);
}

/// 50 requests a second of sessions of two steps: `auth`, and `orders` if that did not fail, as one in three does of
/// those that are `failing`.
fn sessions(failing: bool) -> SyntheticRecording {
    made(20, 2.0).scenario(&["auth", "orders"]).each_request(move |n, r| {
        let has_failed = failing && n % 4 == 1;
        r.operation = if n % 2 == 0 || has_failed { "auth" } else { "orders" }.into();
        r.outcome = if has_failed { "connection_refused" } else { "ok" }.into();
    })
}

#[test]
fn a_mix_that_failures_changed_is_a_result_of_the_same_scenario() {
    let drowned = compared(&[("A", &[sessions(false)]), ("B", &[sessions(true)])]);
    assert!(why(&drowned, "all requests response time p95").contains("survivors"));
    assert!(why(&drowned, "CPU per 1,000").contains("the mix differs"));
    assert_eq!(against(&drowned, "all requests failed", 1).verdict, Change::Worse);
    assert_ne!(against(&drowned, "all requests achieved rate", 1).verdict, Change::NotComparable);
    assert_eq!(drowned.columns[1].verdict, Some(Change::Worse), "{:?}", drowned.columns[1]);
    // Another mix without failures is another scenario.
    let other = sessions(false).each_request(|n, r| r.operation = if n % 5 == 0 { "auth" } else { "orders" }.into());
    let scenario = compared(&[("A", &[sessions(false)]), ("B", &[other])]);
    assert!(why(&scenario, "all requests failed").contains("the mix differs"));
}

#[test]
fn no_interval_reaches_beyond_what_is_possible() {
    let failing = |each: i64| {
        made(20, 2.0).each_request(move |n, r| r.outcome = if n % each == 0 { "timeout" } else { "ok" }.into())
    };
    let comparison = compared(&[("A", &[made(400, 9.0), failing(40)]), ("B", &[made(1, 0.1), failing(400)])]);
    let of = |row: &Row| Some((row.cells[1].against.clone()?, row.cells[0].value?, row.unit.clone()));
    let mut seen = 0;
    for (against, base, unit) in comparison.rows.iter().filter_map(of) {
        let (Some(low), Some(high)) = (against.low, against.high) else { continue };
        let (least, most) = match against.change_ratio {
            Some(_) => (-1.0, f64::INFINITY),
            None if unit == "ratio" => (-base, 1.0 - base),
            None => (f64::NEG_INFINITY, f64::INFINITY),
        };
        seen += 1;
        assert!(low >= least - 1e-9 && high <= most + 1e-9, "{low} to {high}, from {base} {unit} on");
    }
    assert!(seen > 5, "{seen}");
}

#[test]
fn the_largest_time_is_a_row_that_only_a_multiple_moves() {
    let comparison = compared(&[("A", &[made(20, 2.0)]), ("B", &[made(30, 2.0)]), ("C", &[made(2_000, 2.0)])]);
    assert_eq!(against(&comparison, "response time max", 1).verdict, Change::CantTell);
    assert_eq!(against(&comparison, "response time max", 2).verdict, Change::Worse);
}

#[test]
fn a_machine_with_other_cpus_is_compared_where_that_is_meant() {
    let runs = [made(20, 2.0), made(20, 2.0)].map(|made| group("x", &[made]));
    let [a, mut b] = runs;
    b.runs[0].facts.set_cpus(8);
    let both = [Group { name: "A".into(), ..a }, Group { name: "B".into(), ..b }];
    let comparison = groups(&both, Options::default());
    assert!(why(&comparison, "response time p95").contains("8 CPUs"));
    assert!(why(&comparison, "CPU per 1,000").contains("8 CPUs"));
    let meant = groups(&both, Options { across_machines: true });
    assert_eq!(meant.columns[1].verdict, Some(Change::NoDifference));
}

#[test]
fn recordings_that_something_else_spoiled_are_left_out_while_others_are_there() {
    let (a, b): (Vec<SyntheticRecording>, Vec<SyntheticRecording>) =
        (0..3).map(|_| (made(20, 2.0), made(10, 2.0))).unzip();
    let (a, mut b) = (group("A", &a), group("B", &b));
    b.runs[1].facts.spoiled = Some("the generator could not keep up".into());
    let some = groups(&[a.clone(), b.clone()], Options::default());
    assert_eq!((some.columns[1].recordings, some.columns[1].left_out.len()), (2, 1));
    assert_eq!(some.columns[1].verdict, Some(Change::Better));
    b.runs.iter_mut().for_each(|run| run.facts.spoiled = Some("the generator could not keep up".into()));
    let none = groups(&[a, b], Options::default());
    assert!(why(&none, "response time p95").contains("B was disturbed: the generator"));
    assert_eq!(
        against(&none, "CPU per 1,000", 1).verdict,
        Change::NoDifference,
        "what a request costs is no less true"
    );
    assert_eq!(none.columns[1].verdict, Some(Change::NotComparable));
}

/// A search of `made`'s service: its knee with an interval of 4 %, or none and the rate that it carried.
fn searched(name: &str, made: &SyntheticRecording, knee: Option<f64>, carried: f64) -> Group {
    let interval = knee.map(|k| serde_json::json!({"value": k, "low": k * 0.98, "high": k * 1.02}));
    let point = serde_json::json!({"from_s": 0.0, "to_s": 5.0, "purpose": "explore", "offered": carried, "achieved": carried,
        "mean_ms": 9.0, "p99_ms": 9.0, "error_ratio": 0.0, "in_system": 1.0, "held": "yes", "how": null});
    let search = serde_json::json!({"knee": interval, "breaking_point": null, "capacity": null, "knee_of_capacity_ratio": null,
        "hysteresis": null, "usl": null, "curve": [], "refused": null, "unresolved": [], "points": [point], "steps": 1,
        "stable": true, "elapsed_s": 5.0, "text": []});
    let mut recording = made.recording().clone();
    recording.search = Some("{}".into());
    let mut diagnosis = holdup_diagnose::diagnose(&recording, None);
    diagnosis.search = Some(serde_json::from_value(search).unwrap());
    let run = Run::from_recording(name, &recording, &diagnosis, None);
    Group { name: name.to_owned(), runs: vec![run] }
}

#[test]
fn knees_are_compared_and_an_empty_handler_proves_what_the_handler_costs() {
    let puma = searched("puma", &made(30, 2.0), Some(170.0), 150.0);
    let empty = searched("empty", &made(2, 1.0), Some(250.0), 240.0);
    let comparison = groups(&[puma.clone(), empty], Options::default());
    let knee = against(&comparison, "knee", 1);
    assert_eq!((knee.verdict, comparison.columns[1].verdict), (Change::Better, Some(Change::Better)));
    assert!(why(&comparison, "response time p95").contains("a search chooses its own rates"));
    let proof = comparison.notes.iter().find(|note| note.contains("carries")).unwrap();
    assert!(proof.contains("1.47 times") && proof.contains("32 % of what a request costs puma"), "{proof}");

    // Another server with the same handler proves nothing of the kind.
    let other = searched("other", &made(30, 2.0), Some(250.0), 240.0);
    let notes = groups(&[puma.clone(), other], Options::default()).notes;
    assert!(notes.iter().all(|note| !note.contains("carries")), "{notes:?}");

    // No knee up to far beyond the other's is an answer; no knee up to less is none.
    for (carried, verdict) in [(400.0, Change::Better), (100.0, Change::Missing)] {
        let open = searched("fibres", &made(30, 2.0), None, carried);
        assert_eq!(against(&groups(&[puma.clone(), open], Options::default()), "knee", 1).verdict, verdict);
    }
}

#[test]
fn settings_that_differ_are_named_but_not_those_that_move_by_themselves() {
    let with = |size: &str, pid: &str| {
        made(20, 2.0).setting("mysql://db", "thread_pool_size", size).setting("pid:7", "pid", pid)
    };
    let comparison = compared(&[("A", &[with("4", "7")]), ("B", &[with("16", "8")])]);
    let note = comparison.notes.iter().find(|note| note.contains("Settings")).unwrap();
    assert!(note.contains("thread_pool_size 4 -> 16") && !note.contains("pid"), "{note}");
}

#[test]
fn the_innermost_cgroup_gives_the_cpu_time() {
    let used = |cpu: f64| {
        SyntheticRecording::new(20)
            .requests(50, 20)
            .counter("cgroup:/a/b", "cgroup_cpu_usage_seconds_total", &[("cgroup", "/a/b")], cpu)
            .counter("cgroup:/a/b", "cgroup_cpu_usage_seconds_total", &[("cgroup", "/a")], 9.0)
            .gauge("cgroup:/a/b", "cgroup_memory_usage_bytes", &[("cgroup", "/a/b")], 64.0 * 1_048_576.0)
            .gauge("cgroup:/a/b", "cgroup_memory_usage_bytes", &[("cgroup", "/a")], 1e9)
    };
    let comparison = compared(&[("A", &[used(0.1)]), ("B", &[used(0.2)])]);
    let value = |part: &str| comparison.rows.iter().find(|row| row.indicator.starts_with(part)).unwrap().cells[0].value;
    assert!((value("CPU per 1,000").unwrap() - 2.0).abs() < 0.01 && value("memory (") == Some(64.0));
    assert_eq!(against(&comparison, "CPU per 1,000", 1).verdict, Change::Worse);
}

#[test]
fn small_values_are_told_by_their_difference() {
    let idle = |ratio: f64| made(20, 2.0).gauge("host", "system_threads", &[("state", "D")], ratio);
    let comparison = compared(&[("A", &[idle(0.01)]), ("B", &[idle(0.2)])]);
    let threads = against(&comparison, "threads in uninterruptible", 1);
    assert_eq!((threads.verdict, threads.change_ratio), (Change::NoDifference, None), "{threads:?}");
    assert!(threads.low.unwrap() < 0.19 && threads.high.unwrap() > 0.19);
    let pile = compared(&[("A", &[idle(0.01)]), ("B", &[idle(300.0)])]);
    assert_eq!(against(&pile, "threads in uninterruptible", 1).verdict, Change::Worse);
}
