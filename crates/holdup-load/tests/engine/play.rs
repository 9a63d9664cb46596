//! Runs a scenario and checks what holds for every run: each request that was due is accounted for once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use holdup_load::engine::{Engine, OperationSummary, Outputs, Summary};
use holdup_load::model::Load;
use holdup_load::scenario::{RateOf, Scenario, Sessions};
use holdup_load::stats::{Live, Second};
use holdup_recording::manifest::Host;
use holdup_recording::rows::{Request, Span};
use holdup_recording::{Manifest, Recorder, Recording, RunState};

/// What came of a run.
pub struct Played {
    /// The target and the version of HTTP.
    pub against: String,
    pub summary: Summary,
    /// What the engine said of each second.
    pub seconds: Vec<Second>,
    /// Request rows in the order of their recording.
    pub rows: Vec<Request>,
    /// What servers said of their own time.
    pub spans: Vec<Span>,
    /// From the start to the last answer, as the caller sees it.
    pub took: Duration,
}

/// `load` in the form of the scenario's section, against `/` of a server in clear text.
pub fn load(port: u16, load: &str, stop_after: Option<Duration>) -> (Summary, Vec<Request>) {
    let played = play(&scenario(&format!("http://127.0.0.1:{port}"), load, ""), stop_after);
    (played.summary, played.rows)
}

/// A timeout that no busy machine reaches, for loads whose own is not looked at.
const PATIENT: &str = "timeout: 60s";

/// The text of a scenario with a long timeout, if it has none of its own.
pub fn patient(text: &str) -> String {
    if text.contains("timeout:") {
        text.to_owned()
    } else {
        text.replacen("load: {", &format!("load: {{{PATIENT}, "), 1)
    }
}

/// One operation, `/`, with further sections in `more`, which come first.
pub fn scenario(target: &str, load: &str, more: &str) -> Scenario {
    let operations = if more.contains("operations:") { "" } else { "operations: [{name: op, get: /}]\n" };
    let text = patient(&format!("target: {target}\nload: {{{load}}}\n{more}\n{operations}"));
    Scenario::parse(&text, "test.yaml").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The same against a target that can't be reached at first.
pub fn keep_going(mut scenario: Scenario) -> Scenario {
    scenario.generator.keep_going = true;
    scenario
}

pub fn play(scenario: &Scenario, stop_after: Option<Duration>) -> Played {
    let stop = Arc::new(AtomicBool::new(false));
    if let Some(after) = stop_after {
        let stop = Arc::clone(&stop);
        thread::spawn(move || {
            thread::sleep(after);
            stop.store(true, Ordering::Relaxed);
        });
    }
    play_until(scenario, &stop)
}

/// The same, stopped when `stop` says so.
pub fn play_until(scenario: &Scenario, stop: &AtomicBool) -> Played {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("r");
    let manifest = Manifest::starting("test", 0, Host::default());
    let recorder = Recorder::create(&dir, &manifest).unwrap();
    let (sender, seconds) = mpsc::channel();
    let outputs = Outputs { rows: Some(recorder.sink()), seconds: Some(sender), live: Live::default() };
    let engine = Engine::prepare(scenario).unwrap_or_else(|e| panic!("{e}"));
    let begun = Instant::now();
    let summary = engine.run(outputs, stop).unwrap_or_else(|e| panic!("{e}"));
    let took = begun.elapsed();
    recorder.finish(manifest, RunState::Complete).unwrap();
    let tables = Recording::open(&dir).unwrap().tables;
    let (rows, spans) = (tables.requests.rows, tables.spans.rows);
    let against = format!("{} by {}", scenario.target.url(), scenario.http.version.name());
    let played = Played { against, summary, seconds: seconds.iter().collect(), rows, spans, took };
    played.check(scenario);
    played
}

impl Played {
    /// What holds whatever the server does.
    fn check(&self, scenario: &Scenario) {
        let stopped = |s: &Sessions| s.script.is_over();
        let cut = self.summary.interrupted || scenario.sessions.as_ref().is_some_and(stopped);
        for operation in &self.summary.operations {
            let of_it: Vec<&Request> = self.rows.iter().filter(|r| r.operation == operation.operation).collect();
            let weight = |outcome: &str| of_it.iter().filter(|r| r.outcome == outcome).map(|r| r.weight).sum::<i64>();
            let unfinished = operation.offered - operation.completed - operation.errors;
            assert!(cut || unfinished == 0, "{}: {unfinished} without an end", operation.operation);
            assert_eq!(operation.failures.values().sum::<u64>(), operation.errors, "each failure is of one kind");
            if scenario.generator.rows.is_none() {
                let counted: i64 = of_it.iter().map(|r| r.weight).sum();
                assert_eq!(counted as u64, operation.offered, "every request that was due is a row");
                assert_eq!(weight("ok") as u64, operation.completed);
                for (kind, count) in &operation.failures {
                    assert_eq!(weight(kind) as u64, *count, "{kind}");
                }
            }
            let given_up = |kind: &str| operation.failures.get(kind).copied().unwrap_or(0);
            let latencies = operation.completed + given_up("timeout") + given_up("never_sent") + unfinished;
            assert_eq!(operation.latencies.response.len(), latencies, "whatever took time is in the response times");
        }
        self.check_seconds();
        if let (Load::Open(schedule), false, RateOf::Requests) = (&scenario.load, cut, scenario.rate_of) {
            assert_eq!(self.offered(), schedule.arrivals(scenario.shard).count() as u64, "what was due was offered");
        }
        for row in &self.rows {
            let order = [Some(row.intended_at), row.sent_at, row.first_byte_at, Some(row.done_at)];
            assert!(order.iter().flatten().is_sorted(), "{row:?}");
        }
    }

    /// The seconds hold every request once, and each says when it was.
    fn check_seconds(&self) {
        for (i, operation) in self.summary.operations.iter().enumerate() {
            let of_it: Vec<_> = self.seconds.iter().map(|second| &second.operations[i]).collect();
            assert_eq!(of_it.iter().map(|o| o.completed).sum::<u64>(), operation.completed);
            let mut failures: BTreeMap<String, u64> = BTreeMap::new();
            for (kind, count) in of_it.iter().flat_map(|o| &o.failures) {
                *failures.entry((*kind).to_owned()).or_default() += count;
            }
            assert_eq!(failures, operation.failures);
            let times: u64 = of_it.iter().map(|o| o.latencies.response.len()).sum();
            assert_eq!(times, operation.latencies.response.len());
        }
        for second in &self.seconds {
            assert!(second.from < second.to && !second.phase.is_empty());
            assert_eq!(second.started_at, self.summary.started_at + second.from.as_nanos() as i64);
        }
        assert!(self.seconds.is_sorted_by_key(|second| second.from), "in their order");
    }

    /// Requests that were due.
    pub fn offered(&self) -> u64 {
        self.summary.operations.iter().map(|o| o.offered).sum()
    }

    /// How they ended.
    pub fn outcomes(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for operation in &self.summary.operations {
            if operation.completed > 0 {
                *counts.entry("ok".to_owned()).or_default() += operation.completed;
            }
            for (kind, count) in &operation.failures {
                *counts.entry(kind.clone()).or_default() += count;
            }
        }
        counts
    }

    /// All ended so, and there was at least one.
    pub fn all(&self, outcome: &str) {
        let counts = self.outcomes();
        let others: Vec<&Request> = self.rows.iter().filter(|r| r.outcome != outcome).take(4).collect();
        let right = counts.len() == 1 && counts.contains_key(outcome);
        assert!(right, "{}: not all {outcome}: {counts:?}, such as {others:#?}", self.against);
    }

    /// Of one user: from each response to the next request.
    pub fn pauses(&self) -> Vec<Duration> {
        let mut times: Vec<(i64, i64)> = self.rows.iter().map(|row| (row.intended_at, row.done_at)).collect();
        times.sort_unstable();
        times.windows(2).map(|two| Duration::from_nanos((two[1].0 - two[0].1).max(0) as u64)).collect()
    }

    /// Of one user: whether the next request follows a response at once, and not after the 100 ms of one that failed.
    pub fn goes_on_at_once(&self) -> bool {
        let pauses = self.pauses();
        pauses.len() > 2
            && pauses.iter().filter(|pause| **pause < Duration::from_millis(100)).count() * 2 > pauses.len()
    }

    /// The only operation.
    pub fn operation(&self) -> &OperationSummary {
        &self.summary.operations[0]
    }
}

/// Runs `check` for all cases at the same time: most of the time of a test goes into waiting.
pub fn at_once<T: Send>(cases: impl IntoIterator<Item = T>, check: impl Fn(T) + Sync) {
    let check = &check;
    thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || check(case));
        }
    });
}

/// Rows by how they ended.
pub fn outcomes(rows: &[Request]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry(row.outcome.as_str()).or_default() += 1;
    }
    counts
}

/// Response time from when it was due.
pub fn age_ms(row: &Request) -> f64 {
    (row.done_at - row.intended_at) as f64 / 1e6
}
