//! Comparisons of simulated services whose difference is known: queues of requests on a machine
//! whose speed varies within a run and differs from run to run. Requests are due at the same random
//! times in every run, as in holdup's schedules. With a seed: nothing here depends on the testing
//! machine.
use holdup_recording::manifest::{Host, LoadFacts, Manifest, Phase, RunState};
use holdup_recording::rows::{Request, Sample};
use holdup_recording::tables::Tables;
use holdup_recording::{Labels, Recording};

use crate::recordings::testing::Random;
use crate::recordings::{Change, Comparison, Group, Options, Run, groups};
use holdup_diagnose::verdict::Diagnosis;

const S: i64 = 1_000_000_000;
const SECONDS: i64 = 12;
const RATE: f64 = 160.0;

/// Service time of a request, nanoseconds.
const SERVICE_NS: f64 = 2.5e6;

/// How much a machine's speed differs from run to run, and between two consecutive runs (standard
/// deviations of the logarithm). A queue triples it.
const MACHINE: f64 = 0.02;
const WITHIN_ROUND: f64 = 0.01;

/// How much a machine's speed varies within a run, and how alike adjacent requests are.
const WANDERS: f64 = 0.05;
const ALIKE: f64 = 0.99;

/// A service: factors of its response times and of its CPU time.
#[derive(Clone, Copy)]
struct Service {
    times: f64,
    cpu: f64,
}

const SAME: Service = Service { times: 1.0, cpu: 1.0 };

fn recording(random: &mut Random, service: Service, speed: f64) -> Recording {
    let cpu_of_one = 0.002 * service.cpu * speed.exp();
    let mut arrivals = Random::new(1);
    let (mut rows, mut at, mut free, mut wander) = (Vec::new(), 0.0, 0.0_f64, 0.0);
    let mut served = vec![0.0; SECONDS as usize + 1];
    loop {
        at -= (1.0 - arrivals.uniform()).ln() / RATE * 1e9;
        if at >= (SECONDS * S) as f64 {
            break;
        }
        wander = ALIKE * wander + (1.0 - ALIKE * ALIKE).sqrt() * WANDERS * random.normal();
        free = free.max(at) + SERVICE_NS * (speed + wander).exp();
        let done = at + (free - at) * service.times;
        served[((done / 1e9) as usize).min(SECONDS as usize)] += 1.0;
        rows.push(Request {
            operation: "get".into(),
            phase: "load".into(),
            intended_at: at as i64,
            ready_at: Some(at as i64),
            sent_at: Some(at as i64),
            done_at: done as i64,
            outcome: "ok".into(),
            weight: 1,
            ..Request::default()
        });
    }
    let mut tables = Tables::default();
    (tables.requests.present, tables.samples.present) = (true, true);
    tables.requests.rows = rows;
    let mut used = 5.0;
    for (second, ended) in served.iter().enumerate() {
        tables.samples.rows.push(Sample {
            observed_at: second as i64 * S,
            source: "pid:7".into(),
            metric: "process_cpu_time_seconds_total".into(),
            labels: Labels::new([("cpu_mode", "user")]),
            value: used,
            ..Sample::default()
        });
        used += ended * cpu_of_one * (0.05 * random.normal()).exp();
    }
    let mut manifest = Manifest::starting("made", 0, Host::default());
    (manifest.ended_at, manifest.state) = (Some(SECONDS * S), RunState::Complete);
    manifest.phases = vec![Phase { name: "load".into(), from: 0, to: SECONDS * S, rate_from: RATE, rate_to: RATE }];
    manifest.load = Some(LoadFacts { operations: vec!["get".into()], warm_up_ns: Some(0), ..LoadFacts::default() });
    Recording { dir: Default::default(), manifest, tables, latencies: Vec::new(), search: None, excerpt: None }
}

/// All comparisons use the same parts of a verdict, so it is made once.
fn verdict() -> Diagnosis {
    holdup_diagnose::diagnose(&recording(&mut Random::new(1), SAME, 0.0), None)
}

/// `rounds` interleaved runs of each service, on a machine whose other load changes from round to
/// round.
fn compared(random: &mut Random, verdict: &Diagnosis, rounds: u32, other: Service) -> Comparison {
    let mut runs = [Vec::new(), Vec::new()];
    for round in 1..=rounds {
        let (machine, apart) = if rounds > 1 { (0.1 * random.normal(), WITHIN_ROUND) } else { (0.0, MACHINE) };
        for (runs, service) in runs.iter_mut().zip([SAME, other]) {
            let speed = machine + apart * random.normal();
            let recording = recording(random, service, speed);
            runs.push(Run::from_recording("made", &recording, verdict, (rounds > 1).then_some(round)));
        }
    }
    let [a, b] = runs;
    groups(&[Group { name: "A".into(), runs: a }, Group { name: "B".into(), runs: b }], Options::default())
}

fn told(comparison: &Comparison, ends: &str) -> Change {
    let row = comparison.rows.iter().find(|row| row.is_headline && row.indicator.contains(ends)).unwrap();
    row.cells[1].against.as_ref().unwrap().verdict
}

#[test]
fn the_same_thing_twice_is_no_difference() {
    let (verdict, mut random) = (verdict(), Random::new(11));
    let mut single = 0;
    let mut wrong = Vec::new();
    for _ in 0..100 {
        let comparison = compared(&mut random, &verdict, 1, SAME);
        match comparison.columns[1].verdict {
            Some(Change::NoDifference) => single += 1,
            _ => wrong.push(comparison.columns[1].headline.clone()),
        }
    }
    assert!(single >= 95, "{single} of 100: {wrong:#?}");
    let repeated =
        (0..10).filter(|_| compared(&mut random, &verdict, 5, SAME).columns[1].verdict == Some(Change::NoDifference));
    assert!(repeated.count() >= 9);
}

#[test]
fn a_tenth_is_found_with_five_interleaved_repeats() {
    let (verdict, mut random) = (verdict(), Random::new(12));
    let mut found = [0, 0];
    for _ in 0..20 {
        let other = compared(&mut random, &verdict, 5, Service { times: 1.1, cpu: 1.1 });
        found[0] += i32::from(told(&other, "response time p95") == Change::Worse);
        found[1] += i32::from(told(&other, "CPU per") == Change::Worse);
    }
    assert!(found.iter().all(|n| *n >= 18), "p95, CPU: {found:?} of 20");
}
