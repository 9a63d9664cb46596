//! What the `load` section says, and how each mistake in it is answered.

use super::*;

fn read(load: &str) -> Result<Section, YamlError> {
    let node = Node::parse(load, "s.yaml").unwrap();
    let keys: Vec<&str> = PROFILES.into_iter().chain(KEYS).chain(["connections"]).collect();
    let kinds = Kinds::of(&[("search", 3), ("order", 1), ("report", 1)]);
    parse(&node, &keys, "s.yaml", Some(&kinds))
}

fn schedule(load: &str) -> Schedule {
    match read(load).unwrap().load {
        Load::Open(schedule) => schedule,
        Load::Closed(_) => panic!("{load} is closed"),
    }
}

#[test]
fn profiles() {
    for (load, total, seconds, phases) in [
        ("{rate: 5, duration: 10s}", 50, 10, vec!["5/s"]),
        ("{steps: {from: 10, to: 20, step: 10, every: 2s}}", 60, 4, vec!["step 1: 10/s", "step 2: 20/s"]),
        ("{ramp: {from: 0, to: 20}, duration: 2s}", 20, 2, vec!["ramp 0 to 20/s"]),
        ("{spike: {base: 1, peak: 50, at: 2s, for: 1s}, duration: 5s}", 54, 5, vec!["before", "spike", "after"]),
        (
            "{sine: {mean: 10, amplitude: 10, period: 5s}, duration: 10s}",
            100,
            10,
            vec!["period 1: 10 ± 10/s", "period 2: 10 ± 10/s"],
        ),
        (
            "phases: [{rate: 5, for: 2s}, {pause: 3s}, {name: rush, ramp: {from: 0, to: 10}, for: 1s}]",
            15,
            6,
            vec!["phase 1: 5/s", "phase 2: pause", "rush"],
        ),
    ] {
        let schedule = schedule(load);
        let names: Vec<&str> = schedule.stretches().iter().map(|s| s.name.as_str()).collect();
        assert_eq!((schedule.total(), schedule.length().as_secs(), names), (total, seconds, phases), "{load}");
    }
    let closed = read("{users: 64, think: 200ms, duration: 6s, warm_up: 1s}").unwrap();
    let expected =
        Closed { users: 64, think: Duration::from_millis(200), length: Duration::from_secs(6), ..Closed::default() };
    assert_eq!((closed.load, closed.warm_up), (Load::Closed(expected), WarmUp::For(Duration::from_secs(1))));
}

#[test]
fn a_mix_replaces_weights_and_a_rate_replaces_a_share() {
    let of = |phase: &str| {
        let section = read(&format!("phases: [{phase}]")).unwrap_or_else(|e| panic!("{phase}: {e}"));
        let Load::Open(schedule) = section.load else { panic!("it is open") };
        let weights = section.mixes.first().cloned().flatten();
        let sum: u64 = weights.iter().flatten().sum();
        let shares = weights.map(|w| w.iter().map(|w| (*w as f64 / sum as f64 * 1e6).round() / 1e4).collect());
        (schedule.rate_at(Duration::ZERO), shares)
    };
    assert_eq!(of("{rate: 100, for: 1s}"), (100.0, None::<Vec<f64>>));
    assert_eq!(of("{rate: 100, for: 1s, mix: {order: 4, report: 0}}"), (100.0, Some(vec![42.8571, 57.1429, 0.0])));
    // 60/s, 20/s and 20/s; then only the last differs.
    assert_eq!(of("{rate: 100, for: 1s, mix: {report: 120/s}}"), (200.0, Some(vec![30.0, 10.0, 60.0])));
    assert_eq!(of("{rate: 100, for: 1s, mix: {report: 0/s}}"), (80.0, Some(vec![75.0, 25.0, 0.0])));
    assert_eq!(of("{for: 1s, mix: {search: 1.5/s, report: 0.5/s}}"), (2.0, Some(vec![75.0, 0.0, 25.0])));
    assert_eq!(of("{ramp: {from: 10, to: 20}, for: 1s, mix: {search: 0}}").1, Some(vec![0.0, 50.0, 50.0]));
    let users = read("{users: [{users: 2, for: 1s}, {users: 2, for: 1s, mix: {search: 1}}]}").unwrap();
    assert_eq!(users.mixes, [None, Some(vec![1, 1, 1])]);
    assert!(read("phases: [{rate: 5, for: 1s}]").unwrap().mixes.is_empty());
}

#[test]
fn arrivals_are_even_or_random() {
    let even = schedule("{rate: 100, duration: 9s}");
    assert_eq!(schedule("{rate: 100, duration: 9s, arrivals: even}"), even);
    let random = read("{rate: 100, duration: 9s, arrivals: poisson}").unwrap();
    assert_eq!(random.remark.unwrap(), "load.seed: 1, because none was given");
    assert_eq!(random.load, Load::Open(schedule("{rate: 100, duration: 9s, arrivals: poisson, seed: 1}")));
    assert_ne!(random.load, Load::Open(even.clone()));
    let groups = schedule("{rate: 100, duration: 9s, arrivals: {groups_of: 20}}");
    assert_eq!((groups.group(), groups.seed(), groups.total()), (20, None, 900));
    assert_eq!(groups, even.in_groups(20));
    let random = read("{rate: 100, duration: 9s, arrivals: {groups_of: 20, spacing: poisson}, seed: 4}").unwrap();
    assert_eq!(random.load, Load::Open(groups.poisson(4)));
    assert!(read("{rate: 100, duration: 9s, arrivals: poisson, seed: 18446744073709551615}").unwrap().remark.is_none());
}

#[test]
fn errors_name_the_way_out() {
    for (load, words) in [
        ("{duration: 1s}", "s.yaml:1: say how much: one of \"rate\", \"steps\", \"ramp\""),
        ("{rate: 1, sine: {mean: 1}}", "\"rate\" and \"sine\" exclude each other; keep one"),
        ("{rate: 1, users: 5, duration: 1s}", "\"users\" is a closed model, in which the service's speed determines"),
        ("{users: 5, duration: 1s, connections: 9}", "connections: each user has a separate connection"),
        ("{users: 5, duration: 1s, arrivals: poisson}", "remove \"arrivals\""),
        ("{users: 5}", "\"duration\" is missing"),
        ("{users: 0, duration: 1s}", "users: 0 is out of range: users, from 1 to 60000"),
        ("{rate: 5, think: 1s, duration: 1s}", "think: needs \"users\""),
        ("{rate: 5, duration: 1s, seed: 5}", "seed: a seed is for random arrivals"),
        ("{rate: 5, duration: 1s, arrivals: poisson, seed: -5}", "seed: expected a whole number from 0, found \"-5\""),
        ("{rate: 5, duration: 1s, arrivals: normal}", "arrivals: expected even or poisson, found \"normal\""),
        ("{rate: 5, duration: 1s, arrivals: {spacing: even}}", "arrivals: \"groups_of\" is missing"),
        ("{rate: 5, duration: 1s, arrivals: {groups_of: 0}}", "arrivals.groups_of: 0 is out of range"),
        ("{rate: 5, duration: 1s, arrivals: {groups_of: 5, spacing: odd}}", "expected even or poisson, found \"odd\""),
        ("{rate: 5, duration: 1s, arrivals: {groups_of: 5}, seed: 5}", "seed: a seed is for random arrivals"),
        ("{search: knee, arrivals: {groups_of: 5}}", "arrivals: a search expects single arrivals; remove"),
        ("{users: 5, duration: 1s, arrivals: {groups_of: 5}}", "remove \"arrivals\""),
        ("{rate: 5, duration: 1s, warm_up: 1s}", "warm_up: a warm-up of 1s leaves nothing of a load of 1s"),
        ("{rate: 5, duration: 1s, warm_up: some}", "or auto, or none"),
        ("{ramp: {from: 0, to: 0}, duration: 1s}", "ramp: a ramp from 0 to 0 sends nothing"),
        (
            "{spike: {base: 1, peak: 5, at: 9s, for: 2s}, duration: 10s}",
            "spike: the spike ends at 11s and the load at 10s",
        ),
        ("{spike: {base: 1, peak: 5, at: 9s, for: 0s}, duration: 10s}", "spike.for: must be longer than 0s"),
        ("{spike: {base: 5, peak: 5, at: 1s, for: 2s}, duration: 10s}", "use \"rate\""),
        ("{sine: {mean: 5, amplitude: 6, period: 1s}, duration: 2s}", "below 0; at most the mean, 5"),
        ("{sine: {mean: 5, amplitude: 5, period: 1ms}, duration: 1m}", "more than 10000 periods"),
        ("{steps: {from: 1, to: 10001, step: 1, every: 1s}}", "more than 10000 steps"),
        (
            "{steps: {from: 1, to: 5, step: 1, every: 1s}, duration: 5s}",
            "duration: each step takes its length from \"every\"",
        ),
        ("{phases: [{rate: 5, for: 1s}], duration: 5s}", "duration: each phase has its own"),
        ("{phases: [{rate: 5}]}", "phases[0]: \"for\" is missing"),
        ("{phases: [{pause: 5s, for: 1s}]}", "phases[0].for: a pause contains its length"),
        ("{phases: [{pause: 5s}]}", "phases: no phase sends anything"),
        ("{phases: [{rate: 5, pause: 5s}]}", "phases[0]: a phase is one of"),
        (
            "{phases: [{rate: 5, for: 5s, mix: {ordr: 5}}]}",
            "mix.ordr: no operation is called \"ordr\"; did you mean \"order\"?",
        ),
        ("{phases: [{rate: 5, for: 5s, mix: {pay: 5}}]}", "mix.pay: no operation is called \"pay\"; there are: search"),
        ("{phases: [{rate: 5, for: 5s, mix: {order: some}}]}", "expected a weight such as 3 or a rate such as 50/s"),
        ("{phases: [{rate: 5, for: 5s, mix: {order: 5 /m}}]}", "found \"5 /m\""),
        ("{phases: [{rate: 5, for: 5s, mix: {order: 1000001}}]}", "1000001 is out of range: weight, from 0"),
        ("{phases: [{rate: 5, for: 5s, mix: {order: -1/s}}]}", "-1/s is out of range: from 0/s"),
        ("{phases: [{rate: 9999999, for: 5s, mix: {order: 5000000/s}}]}", "in all is out of range"),
        ("{phases: [{for: 5s, mix: {order: 0/s}}]}", "mix: 0/s in all is out of range"),
        ("{phases: [{for: 5s, mix: {order: 5, search: 5/s}}]}", "weights share the phase's rate; add \"rate\""),
        (
            "{phases: [{rate: 5, for: 5s, mix: {order: 5/s, search: 5/s, report: 0}}]}",
            "has its own rate; remove \"rate\" from the phase",
        ),
        ("{phases: [{rate: 5, for: 5s, mix: {order: 0, search: 0, report: 0}}]}", "every weight is 0"),
        ("{phases: [{ramp: {from: 1, to: 5}, for: 5s, mix: {order: 5/s}}]}", "within a ramp the rate of one"),
        ("{phases: [{pause: 5s, mix: {order: 5}}]}", "mix: a pause sends nothing; remove \"mix\""),
        ("{users: [{users: 5, for: 5s, mix: {order: 5/s}}]}", "mix: users have no rate; give weights, without /s"),
        ("{rate: 5, duration: 5s, mix: {order: 5}}", "unknown key \"mix\""),
        ("{phases: [{rate: 5, fro: 5s}]}", "did you mean \"for\"?"),
        ("{phases: []}", "phases: no phase sends anything"),
        ("{replay: {file: /nowhere/a.log}}", "replay.file: /nowhere/a.log: No such file"),
        ("{replay: {file: a.log, speed: 0}}", "replay.speed: 0 is out of range"),
        ("{replay: {file: a.log, format: xml}}", "replay.format: \"xml\" is not a log format; use auto"),
        ("{replay: {file: a.log, methods: GET}}", "only the timing of the log is replayed"),
    ] {
        let error = read(load).err().unwrap_or_else(|| panic!("{load} is accepted")).to_string();
        assert!(error.starts_with("s.yaml:1: ") && error.contains(words), "{load}: {error}");
    }
}

#[test]
fn a_log_lies_beside_the_scenario() {
    let dir = tempfile::tempdir().unwrap();
    let line =
        |second: u32, request: &str| format!("h - - [10/Oct/2000:13:55:{second:02} -0700] \"{request}\" 200 5\n");
    let log = [line(1, "GET /a HTTP/1.1"), line(3, "POST /b HTTP/1.1"), line(5, "GET /a HTTP/1.1")].concat();
    std::fs::write(dir.path().join("access.log"), log).unwrap();
    let file = dir.path().join("s.yaml").display().to_string();
    let kinds = Kinds::default();
    let read = |load: &str, has_operations: bool| {
        let node = Node::parse(load, &file).unwrap();
        parse(&node, &["replay", "duration"], &file, has_operations.then_some(&kinds)).unwrap()
    };
    let counted = |section: &Section| match &section.load {
        Load::Open(schedule) => (schedule.total(), schedule.length().as_millis(), section.operations.len()),
        Load::Closed(_) => (0, 0, 0),
    };
    assert_eq!(counted(&read("replay: {file: access.log, speed: 2}", true)), (3, 2_500, 0));
    assert_eq!(counted(&read("replay: {file: access.log}", false)), (2, 5_000, 1));
    assert_eq!(
        counted(&read("{replay: {file: access.log, methods: [get, post]}, duration: 3s}", false)),
        (2, 3_000, 2)
    );
}
