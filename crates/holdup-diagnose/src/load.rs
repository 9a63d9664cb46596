//! What the generator did and saw, as the verdict shows it: the demand, how far to trust it, and
//! each operation.

use crate::cause::Cause;
use std::collections::BTreeMap;

use holdup_recording::manifest::Model;
use serde::{Deserialize, Serialize};

use crate::case::{Case, SPOILED};
use crate::change::Fix;
use crate::generator::GeneratorWords;
use holdup_recording::words::{round, thousands};
use holdup_signals::client::demand::Demand;
use holdup_signals::client::objectives::load_start;
use holdup_signals::client::operations::Operation;
use holdup_signals::client::validity::{Label, Limit};
use holdup_signals::time::requests::{client_queue_ms, mean_over};
use holdup_signals::{Distribution, Validity, WarmUp};

/// A request that waited longer than this (milliseconds) for a connection of the generator found no
/// free one.
const FOUND_FREE_MS: f64 = 1.0;

/// What the generator did and saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// What decided when the next request was due; none without a load.
    pub model: Option<Model>,
    /// Protocol, e.g. `http/1.1`; none if it was not recorded.
    pub protocol: Option<String>,
    /// Loops (threads) that generated the load.
    pub loops: u32,
    /// This process's part of the schedule, e.g. `2/5`; none if it had all of it.
    pub shard: Option<String>,
    /// How long requests were due, seconds.
    pub duration_s: f64,
    /// Intended starts per second, of all operations.
    pub offered_rate: f64,
    /// Completions per second, of all operations.
    pub achieved_rate: f64,
    /// How far to trust the generator's seconds.
    pub validity: ValidityReport,
    /// The part of the start that is left out of response times.
    pub warm_up: WarmUpReport,
    /// One row per operation.
    pub operations: Vec<OperationReport>,
    /// Whether the generator was the limit: this run's numbers are then not the service's.
    pub generator_limited: bool,
    /// Share (0-1) of requests that became due while every connection was busy.
    pub capped_ratio: f64,
    /// Objectives that were missed, in words.
    pub objectives_missed: Vec<String>,
    /// The objective that ended the load early and when, in words; none otherwise.
    #[serde(default)]
    pub aborted: Option<String>,
    /// What kept this machine from running meanwhile, in words; none if nothing did.
    pub disturbed: Option<String>,
}

/// How far to trust the generator's seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ValidityReport {
    /// Seconds in which it kept its schedule.
    pub valid_s: f64,
    /// Seconds in which its limit of requests in flight bound: the rate achieved then is not the
    /// service's limit.
    pub capped_s: f64,
    /// Seconds in which it could not keep up: measurements of that time are not the service's
    /// alone.
    pub generator_limited_s: f64,
    /// Seconds without the needed samples.
    pub not_judged_s: f64,
    /// A summary in one phrase; none without a load.
    pub text: Option<String>,
    /// Limits that bound, causes before their consequences.
    pub reasons: Vec<ReasonReport>,
    /// How to help a generator that could not keep up, if that changed the measurement.
    pub fixes: Vec<Fix>,
    /// Stretches of the load by label.
    pub slices: Vec<SliceReport>,
}

/// A limit of the generator that bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReasonReport {
    /// Which.
    pub limit: Limit,
    /// For how many seconds.
    pub seconds: f64,
    /// In words, with its figure.
    pub text: String,
}

/// A stretch of the load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SliceReport {
    /// Start, seconds from the beginning of the recording.
    pub from_s: f64,
    /// End, seconds from the beginning of the recording.
    pub to_s: f64,
    /// How far to trust it.
    pub label: Label,
}

/// The part of the load's start that is left out of response times. Counts cover the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WarmUpReport {
    /// How much, seconds.
    pub seconds: f64,
    /// Whether it was found in the response times; if not, it was asked for.
    pub detected: bool,
    /// In words; none if there is nothing to say.
    pub text: Option<String>,
}

/// The results of one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OperationReport {
    /// Its name.
    pub operation: String,
    /// Intended starts per second.
    pub offered: f64,
    /// Completions per second.
    pub achieved: f64,
    /// Requests that were due.
    pub due: u64,
    /// Requests that succeeded.
    pub completed: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Failures by kind.
    pub errors_by_kind: BTreeMap<String, u64>,
    /// Failures by HTTP status, of those that failed by that.
    #[serde(default)]
    pub errors_by_status: BTreeMap<i32, u64>,
    /// Failures in words, e.g. `60 of 60: 404`; none if no request failed.
    #[serde(default)]
    pub failed: Option<String>,
    /// From the intended start; unfinished ones at their age.
    pub response_ms: Percentiles,
    /// From the send.
    pub service_ms: Percentiles,
    /// The generator's own delay.
    pub send_lag_ms: Percentiles,
}

/// Percentiles in milliseconds; all empty without measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Greatest.
    pub max: Option<f64>,
}

impl Percentiles {
    /// From values in milliseconds.
    pub fn from_distribution(values: &Distribution) -> Self {
        let q = |q| values.quantile(q);
        let (p50, p90, p95) = (q(0.5), q(0.9), q(0.95));
        let mean = values.mean().map(|mean| round(mean, 6));
        Self { mean, p50, p90, p95, p99: q(0.99), p999: q(0.999), max: values.max() }
    }
}

/// The load section of `case` with the causes `found`.
pub(crate) fn report(case: &Case<'_>, found: &[Cause]) -> LoadReport {
    let objectives_missed = case.objectives.iter().filter_map(|o| o.missed.clone()).collect();
    let (manifest, whole) = (&case.recording.manifest, case.whole());
    let Ok(requests) = case.requests_in(whole) else {
        return LoadReport { objectives_missed, aborted: aborted(case), ..LoadReport::default() };
    };
    let demand = Demand::from_requests(manifest, &requests, whole);
    let (offered_s, until) = (demand.offered_s, |last: Option<i64>| demand.until(last));
    let operations = case.operations.iter().map(|operation| {
        let mine = requests.iter().filter(|r| r.operation == operation.name);
        operation_report(operation, offered_s, until(mine.map(|r| r.done_at).max()))
    });
    let (due, completed) = case.operations.iter().fold((0, 0), |(d, c), o| (d + o.offered, c + o.completed));
    let capped = mean_over(requests.iter().copied(), |r| Some(f64::from(client_queue_ms(r) > FOUND_FREE_MS)));
    let load = manifest.load.as_ref();
    LoadReport {
        model: load.map(|l| l.model),
        protocol: load.map(|l| l.protocol.clone()).filter(|p| !p.is_empty()),
        loops: load.map_or(0, |l| l.loops).max(case.validity.loops as u32),
        shard: load.and_then(|l| l.shard.clone()),
        duration_s: round(offered_s, 3),
        offered_rate: round(due as f64 / offered_s, 3),
        achieved_rate: round(completed as f64 / until(requests.iter().map(|r| r.done_at).max()), 3),
        validity: validity_report(&case.validity, manifest.started_at),
        warm_up: warm_up_report(&case.warm_up),
        operations: operations.collect(),
        generator_limited: found.contains(&Cause::LoadGeneratorLimit) || case.limited_ratio >= SPOILED,
        capped_ratio: round(capped.unwrap_or(0.0), 4),
        objectives_missed,
        aborted: aborted(case),
        disturbed: None,
    }
}

/// `ended early after 14.2 s, because of errors < 5% for 10s`.
fn aborted(case: &Case<'_>) -> Option<String> {
    let manifest = &case.recording.manifest;
    let aborted = manifest.load.as_ref()?.aborted.as_ref()?;
    let after = (aborted.at - load_start(manifest)) as f64 / 1e9;
    Some(format!("ended early after {after:.1} s, because of {}", aborted.text))
}

/// `60 of 60: 404`, or `60 of 900: 404 (40), timeout (20)`.
fn failed(failures: &[(String, u64)], due: u64) -> Option<String> {
    let all: u64 = failures.iter().map(|(_, n)| n).sum();
    let named: Vec<String> = match failures {
        [] => return None,
        [(kind, _)] => vec![kind.clone()],
        several => several.iter().map(|(kind, n)| format!("{kind} ({})", thousands(*n as f64))).collect(),
    };
    Some(format!("{} of {}: {}", thousands(all as f64), thousands(due as f64), named.join(", ")))
}

fn operation_report(operation: &Operation, offered_s: f64, achieved_s: f64) -> OperationReport {
    OperationReport {
        operation: operation.name.clone(),
        offered: round(operation.offered as f64 / offered_s, 3),
        achieved: round(operation.completed as f64 / achieved_s, 3),
        due: operation.offered,
        completed: operation.completed,
        errors: operation.failed(),
        errors_by_kind: operation.errors.clone(),
        errors_by_status: operation.statuses.clone(),
        failed: failed(&operation.failures(), operation.offered),
        response_ms: Percentiles::from_distribution(&operation.response_ms),
        service_ms: Percentiles::from_distribution(&operation.service_ms),
        send_lag_ms: Percentiles::from_distribution(&operation.send_lag_ms),
    }
}

fn validity_report(validity: &Validity, started_at: i64) -> ValidityReport {
    let seconds = |label| round(validity.seconds(label), 3);
    let at = |t: i64| round((t - started_at) as f64 / 1e9, 3);
    let mut slices: Vec<SliceReport> = Vec::new();
    for slice in &validity.slices {
        match slices.last_mut().filter(|last| last.label == slice.label) {
            Some(last) => last.to_s = at(slice.window.to),
            None => {
                let (from_s, to_s) = (at(slice.window.from), at(slice.window.to));
                slices.push(SliceReport { from_s, to_s, label: slice.label });
            }
        }
    }
    let reasons = validity.sentences().into_iter();
    ValidityReport {
        valid_s: seconds(Label::Valid),
        capped_s: seconds(Label::Capped),
        generator_limited_s: seconds(Label::GeneratorLimited),
        not_judged_s: seconds(Label::NotJudged),
        text: validity.text(),
        reasons: reasons.map(|(limit, s, text)| ReasonReport { limit, seconds: round(s, 3), text }).collect(),
        fixes: if validity.spoiled().next().is_some() { validity.fixes() } else { Vec::new() },
        slices,
    }
}

fn warm_up_report(warm_up: &WarmUp) -> WarmUpReport {
    WarmUpReport { seconds: round(warm_up.seconds(), 3), detected: warm_up.detected, text: warm_up.text.clone() }
}
