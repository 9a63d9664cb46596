//! Which account of the load's seconds an objective is judged by, and that all of them say the same of the same load.

use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use holdup_recording::hlog::{self, Interval};
use holdup_recording::manifest::{Aborted, Host, LoadFacts, Phase};
use holdup_recording::objective::{self, Evaluation, Extent, OperationOutcomes};
use holdup_recording::tables::Tables;
use holdup_recording::{Manifest, RunState};

use super::*;
use crate::client::operations;

const S: i64 = 1_000_000_000;

/// The recording starts 2 s before the load.
const BEGUN: i64 = 2 * S;

/// What a second of the load is like.
#[derive(Clone, Copy)]
struct Second {
    ms: i64,
    failed: usize,
}

const BASELINE: Second = Second { ms: 10, failed: 0 };

/// A load of ten requests a second and operation, which all end in the second in which they were due.
struct Load {
    thresholds: Vec<Threshold>,
    seconds: Vec<Second>,
    operations: Vec<&'static str>,
}

impl Load {
    fn new(thresholds: &[&str], seconds: Vec<Second>) -> Self {
        let operations = vec!["a b", "shop/pay"];
        let thresholds = thresholds.iter().map(|t| objective::parse(t, &operations).unwrap()).collect();
        Self { thresholds, seconds, operations }
    }

    fn manifest(&self) -> Manifest {
        let mut manifest = Manifest::starting("t", 0, Host::default());
        manifest.state = RunState::Complete;
        let to = BEGUN + self.seconds.len() as i64 * S;
        manifest.phases = vec![Phase { name: "all".into(), from: BEGUN, to, rate_from: 20.0, rate_to: 20.0 }];
        manifest.load = Some(LoadFacts {
            operations: self.operations.iter().map(|o| (*o).to_owned()).collect(),
            thresholds: self.thresholds.clone(),
            ..LoadFacts::default()
        });
        manifest
    }

    fn rows(&self) -> Vec<Request> {
        let mut rows = Vec::new();
        for (i, second) in self.seconds.iter().enumerate() {
            for operation in &self.operations {
                rows.extend((0..10).map(|k| {
                    let intended_at = BEGUN + i as i64 * S + k as i64 * 1_000_000;
                    Request {
                        operation: (*operation).to_owned(),
                        intended_at,
                        done_at: intended_at + second.ms * 1_000_000,
                        outcome: if k < second.failed { "http_status" } else { "ok" }.to_owned(),
                        ..Request::default()
                    }
                }));
            }
        }
        rows
    }

    /// `latency.hlog` of it, written and read.
    fn histograms(&self) -> Vec<hlog::Slice> {
        let dir = tempfile::tempdir().unwrap();
        let intervals = self.seconds.iter().enumerate().flat_map(|(i, second)| {
            self.operations.iter().map(move |operation| {
                let mut histogram = Histogram::new_with_bounds(64, 3_600_000_000_000, 3).unwrap();
                histogram.record_n(second.ms as u64 * 1_000_000, 10 - second.failed as u64).unwrap();
                let tag = format!("{}.response", hlog::clean(operation));
                Interval { tag, from: Duration::from_secs(i as u64), length: Duration::from_secs(1), histogram }
            })
        });
        hlog::write(dir.path(), SystemTime::UNIX_EPOCH, intervals).unwrap();
        hlog::read(dir.path())
    }

    /// What the generator makes of it while it runs.
    fn live(&self, warm_up: Duration) -> Vec<Judgement> {
        let extent = Extent { warm_up, due_until: Some(Duration::from_secs(self.seconds.len() as u64)) };
        let judge = |threshold: &Threshold| {
            let mut evaluation = Evaluation::new(threshold, extent);
            for (i, second) in self.seconds.iter().enumerate() {
                let times = [(second.ms as u64 * 1_000_000, 10 - second.failed as u64)];
                let ended = |operation| OperationOutcomes {
                    operation,
                    completed: 10 - second.failed as u64,
                    failed: second.failed as u64,
                    times: &times,
                };
                let ended: Vec<OperationOutcomes<'_>> = self.operations.iter().map(|o| ended(*o)).collect();
                evaluation.second(Duration::from_secs(i as u64), Duration::from_secs(i as u64 + 1), &ended);
            }
            evaluation.result()
        };
        self.thresholds.iter().map(judge).collect()
    }
}

fn judge_part(recording: &Recording, rows: &[Request], window: Option<Window>, measured_from: i64) -> Vec<Objective> {
    let requests: Vec<&Request> = rows.iter().filter(|r| window.is_none_or(|w| w.contains(r.intended_at))).collect();
    let operations = operations::summarize(recording, &requests, window, measured_from);
    Run { recording, requests: &requests, operations: &operations, window, measured_from }.judge()
}

fn recording(manifest: Manifest, latencies: Vec<hlog::Slice>) -> Recording {
    Recording {
        dir: std::path::PathBuf::new(),
        manifest,
        tables: Tables::default(),
        latencies,
        search: None,
        excerpt: None,
    }
}

fn states(objectives: &[Objective]) -> Vec<State> {
    objectives.iter().map(|o| o.judgement.state).collect()
}

/// 20 s, of which those from 8 to 12 are slow and fail.
fn bad_in_the_midst(thresholds: &[&str]) -> Load {
    let mut seconds = vec![BASELINE; 20];
    seconds[8..12].fill(Second { ms: 700, failed: 5 });
    Load::new(thresholds, seconds)
}

const THRESHOLDS: [&str; 6] = [
    "p90 < 500ms for 3s",
    "shop/ mean < 1s for 3s",
    "errors < 20% for 5s",
    "a b rate > 4 for 3s",
    "rate > 18 for 10s",
    "p99 < 1s",
];

#[test]
fn generator_histograms_and_rows_say_the_same() {
    let load = bad_in_the_midst(&THRESHOLDS);
    let (rows, live) = (load.rows(), load.live(Duration::ZERO));
    let expected = [State::Missed, State::Met, State::Missed, State::Met, State::Missed, State::Met];
    let mut manifest = load.manifest();
    let of_rows = judge_part(&recording(manifest.clone(), Vec::new()), &rows, None, i64::MIN);
    manifest.load.as_mut().unwrap().objectives = live.clone();
    let of_all = judge_part(&recording(manifest, load.histograms()), &rows, None, i64::MIN);
    assert_eq!((states(&of_rows), states(&of_all)), (expected.to_vec(), expected.to_vec()));
    for ((row, all), live) in of_rows.iter().zip(&of_all).zip(&live).take(5) {
        let key = |j: &Judgement| (j.first_window, j.worst_window, j.windows, j.windows_missed);
        assert_eq!((key(&row.judgement), key(&all.judgement)), (key(live), key(live)), "{}", live.text);
        let (a, b) = (row.judgement.value.unwrap(), all.judgement.value.unwrap());
        assert!((a / b - 1.0).abs() < 0.002, "{}: {a} and {b}", live.text);
    }
    // The load began 2 s into the recording, and half of the requests failed in the windows from 8 to 12 and 7 to 12.
    assert_eq!(
        of_all[2].missed.as_deref(),
        Some("40.000 % of requests failed from 9 s to 14 s, the objective is errors < 20% for 5s")
    );
    assert!(of_all[0].missed.as_ref().is_some_and(|text| text.starts_with("p90 was 7")), "{:?}", of_all[0].missed);
}

/// What the generator counted is of all requests; its rows may be a sample. But it does not know of a warm-up that is found
/// afterwards.
#[test]
fn the_generators_counts_go_before_rows_if_the_same_is_left_out() {
    let load = bad_in_the_midst(&["errors < 20% for 5s"]);
    let mut manifest = load.manifest();
    let mut live = load.live(Duration::ZERO);
    live[0].value = Some(0.456);
    manifest.load.as_mut().unwrap().objectives = live;
    let recording = recording(manifest, Vec::new());
    let value = |window, measured_from| judge_part(&recording, &load.rows(), window, measured_from)[0].judgement.value;
    assert_eq!(value(None, i64::MIN), Some(0.456));
    assert_eq!(value(None, BEGUN + S / 2), Some(0.4));
    assert_eq!(value(None, BEGUN + 13 * S), Some(0.0));
    let part = Window { from: BEGUN, to: BEGUN + 9 * S };
    assert_eq!(value(Some(part), i64::MIN), Some(0.1));
}

#[test]
fn a_part_of_the_run_has_the_windows_that_lie_in_it() {
    let load = bad_in_the_midst(&["p90 < 500ms for 3s", "rate > 18 for 3s"]);
    let recording = recording(load.manifest(), load.histograms());
    let judged = |from: i64, to: i64| {
        let window = Window { from: BEGUN + from * S, to: BEGUN + to * S };
        states(&judge_part(&recording, &load.rows(), Some(window), i64::MIN))
    };
    assert_eq!(judged(0, 20), [State::Missed, State::Missed]);
    assert_eq!(judged(0, 8), [State::Met, State::Met]);
    assert_eq!(judged(12, 20), [State::Met, State::Met]);
    assert_eq!(judged(9, 11), [State::NotJudged, State::NotJudged]);
}

#[test]
fn names_that_are_one_tag_are_told_apart_by_rows() {
    let mut load = bad_in_the_midst(&["a b p90 < 500ms for 3s"]);
    load.operations = vec!["a b", "a_b"];
    let mut rows = load.rows();
    rows.iter_mut().filter(|r| r.operation == "a b").for_each(|r| r.done_at = r.intended_at + 1_000_000);
    let recording = recording(load.manifest(), load.histograms());
    assert_eq!(states(&judge_part(&recording, &rows, None, i64::MIN)), [State::Met]);
}

#[test]
fn without_the_seconds_nothing_is_judged() {
    let load = bad_in_the_midst(&["p90 < 500ms for 3s", "errors < 20% for 5s", "p99 < 1s", "rate > 1"]);
    let objectives = judge_part(&recording(load.manifest(), Vec::new()), &[], None, i64::MIN);
    assert_eq!(states(&objectives), [State::NotJudged; 4]);
    for objective in &objectives {
        assert!(objective.missed.is_none() && objective.judgement.why.is_some(), "{objective:?}");
    }
}

/// An objective that ended the run was missed, whatever a warm-up that was found afterwards leaves of it.
#[test]
fn an_objective_that_ended_the_run_was_missed() {
    let mut load = Load::new(&["errors < 20% for 5s"], vec![BASELINE; 8]);
    load.thresholds[0].abort = true;
    let mut manifest = load.manifest();
    manifest.state = RunState::Interrupted;
    let stretch = Stretch { from_ns: S, to_ns: 6 * S };
    let aborted = Aborted { text: "errors < 20% for 5s".into(), value: 0.7, stretch, at: BEGUN + 8 * S };
    manifest.load.as_mut().unwrap().aborted = Some(aborted);
    let objectives = judge_part(&recording(manifest, Vec::new()), &load.rows(), None, i64::MIN);
    assert_eq!((states(&objectives), objectives[0].aborted), (vec![State::Missed], true));
    assert_eq!(
        objectives[0].missed.as_deref(),
        Some("70.000 % of requests failed from 3 s to 8 s, the objective is errors < 20% for 5s")
    );
}
