//! The result of a search for the knee, in the units and words of a verdict.
//!
//! `holdup-knee` interprets the steps; this module makes them a part of the verdict: figures in
//! milliseconds and seconds, points and lines for a chart, sentences, and the headline. It measures
//! and fits nothing.

mod lines;
mod words;

use std::time::Duration;

use holdup_knee::{Config, Estimate, Finding, Step, StepResult};
pub use holdup_knee::{MissedRequirement, Purpose};
use holdup_recording::{Recording, hlog};
use serde::{Deserialize, Serialize};

use holdup_recording::words::round;
use holdup_signals::Window;
pub(crate) use words::headline;

/// Share (0-1) of failed requests that degrades a second without objectives, too.
const FAILS: f64 = 0.05;

/// A search as it ran. The same shape as the engine's own.
#[derive(Deserialize)]
struct SearchRecord {
    config: Config,
    steps: Vec<Step>,
}

/// The result of a search for the knee. Rates are requests per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchReport {
    /// The offered rate from which response time grows faster than load.
    pub knee: Option<Interval>,
    /// Where the service stops meeting its goal.
    pub breaking_point: Option<BreakingPoint>,
    /// The highest sustained throughput.
    pub capacity: Option<Interval>,
    /// Knee over capacity, 0-1.
    pub knee_of_capacity_ratio: Option<f64>,
    /// What happened when load fell after an overload.
    pub hysteresis: Option<Recovery>,
    /// The Universal Scalability Law.
    pub usl: Option<ScalabilityLaw>,
    /// The fitted curve of mean response time that the knee was read from.
    pub curve: Vec<LinePoint>,
    /// Why no knee is named despite a load: something other than the service was the limit.
    pub refused: Option<String>,
    /// Open questions, in sentences.
    pub unresolved: Vec<String>,
    /// The steps in order.
    pub points: Vec<StepReport>,
    /// The number of steps.
    pub steps: usize,
    /// Repeated steps at the same rate agree, and the interval is about as narrow as requested.
    pub stable: bool,
    /// From the start of the load to the end of the last step.
    pub elapsed_s: f64,
    /// A summary in sentences, most important first.
    pub text: Vec<String>,
}

/// A figure with its interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The best single figure.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Where the service stops meeting its goal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BreakingPoint {
    /// Requests per second.
    pub rate: Interval,
    /// The goal missed from there.
    pub how: MissedRequirement,
}

/// What happened when load fell after an overload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// Rate of the overload.
    pub overload_rate: f64,
    /// The rate after it.
    pub recover_rate: f64,
    /// Whether response time returned to normal.
    pub recovered: bool,
    /// How long after the end of the overload.
    pub after_s: Option<f64>,
    /// Mean response time at the end over that at the same rate before the overload.
    pub response_ratio: f64,
}

/// The Universal Scalability Law as fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScalabilityLaw {
    /// Throughput of one request at a time, per second.
    pub gamma: Interval,
    /// Contention.
    pub alpha: Interval,
    /// Coherency.
    pub beta: Interval,
    /// Requests in the service at which throughput is largest.
    pub peak_concurrency: Option<Interval>,
    /// Throughput there.
    pub peak_rate: Option<Interval>,
    /// Share of the variance of throughput that it explains.
    pub r2: f64,
    /// Whether the steps determine its parameters.
    pub determined: bool,
    /// Why not.
    pub why_not: Option<String>,
    /// The law as response time over throughput; empty if not determined.
    pub curve: Vec<LinePoint>,
}

/// A point of a line in the chart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinePoint {
    /// Requests per second.
    pub rate: f64,
    /// Mean response time.
    pub response_ms: f64,
}

/// One step, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// Its start and end, seconds from the start of the load.
    pub from_s: f64,
    /// End, in the same seconds.
    pub to_s: f64,
    /// Its purpose: `explore`, `refine`, `confirm`, `overload`, `recover`, `curve`.
    pub purpose: Purpose,
    /// The offered rate.
    pub offered: f64,
    /// Successful requests per second.
    pub achieved: f64,
    /// Mean response time of those.
    pub mean_ms: Option<f64>,
    /// 99th percentile of all that ended; given-up ones at their age.
    pub p99_ms: Option<f64>,
    /// Share of requests that failed.
    pub error_ratio: f64,
    /// Mean number of requests in the service or waiting to reach it.
    pub in_system: f64,
    /// Whether the service kept up: `yes`, `no`, `unclear`, `generator_limited`.
    pub held: String,
    /// The goal missed, if it did not.
    pub how: Option<MissedRequirement>,
}

/// The result of a search for the knee; none if it can't be read.
pub(crate) fn report(recording: &Recording) -> Option<SearchReport> {
    let searched: SearchRecord = serde_json::from_str(recording.search.as_deref()?).ok()?;
    let finding = holdup_knee::judge(&searched.steps, &searched.config);
    Some(SearchReport::new(&finding, &searched.steps, &searched.config, |step| p99(recording, step)))
}

impl SearchReport {
    fn new(finding: &Finding, steps: &[Step], config: &Config, p99: impl Fn(&Step) -> Option<f64>) -> Self {
        let mut report = Self {
            knee: finding.knee.map(rate),
            breaking_point: finding.breaking_point.map(|b| BreakingPoint { rate: rate(b.rate), how: b.how }),
            capacity: finding.capacity.map(rate),
            knee_of_capacity_ratio: finding.knee_of_capacity_ratio.map(|ratio| round(ratio, 3)),
            hysteresis: finding.hysteresis.map(|h| Recovery {
                overload_rate: round(h.overload_rate, 3),
                recover_rate: round(h.recover_rate, 3),
                recovered: h.recovered,
                after_s: h.after.map(|after| round(after.as_secs_f64(), 3)),
                response_ratio: round(h.response_ratio, 3),
            }),
            usl: finding.usl.as_ref().map(|usl| lines::law(usl, finding)),
            curve: lines::fitted(finding),
            refused: finding.refused.as_ref().map(|refused| with_reason(refused, steps)),
            unresolved: finding.unresolved.clone(),
            points: points(finding, steps, p99),
            steps: finding.steps_visited,
            stable: finding.is_stable,
            elapsed_s: round(finding.elapsed.as_secs_f64(), 3),
            text: Vec::new(),
        };
        report.text = words::sentences(&report, config);
        report
    }

    /// Whether the question was answered: by a rate, or by "not up to here".
    pub fn is_answered(&self) -> bool {
        let is_named = self.knee.is_some() || self.breaking_point.is_some();
        self.refused.is_none() && (is_named || self.points.iter().any(|point| point.held == "yes"))
    }

    /// Whether many requests fail at rates that count as carried.
    pub(crate) fn fails_below(&self) -> bool {
        self.points.iter().any(|point| point.held == "yes" && point.error_ratio > FAILS)
    }
}

/// If a search names no knee because the generator was the limit: the time of those steps, from
/// first to last, and the longest step at which the service kept up. None otherwise.
pub(crate) fn limited(recording: &Recording) -> Option<(Window, Option<Window>)> {
    let report = report(recording).filter(|report| report.refused.is_some())?;
    let start = recording.manifest.phases.first()?.from;
    let at = |seconds: f64| start + (seconds * 1e9) as i64;
    let of = |held: &'static str| report.points.iter().filter(move |point| point.held == held);
    let window = |point: &StepReport| Window { from: at(point.from_s), to: at(point.to_s) };
    let slow =
        of("generator_limited").map(window).reduce(|a, b| Window { from: a.from.min(b.from), to: a.to.max(b.to) })?;
    let baseline = of("yes").map(window).max_by_key(|w| w.to - w.from);
    Some((slow, baseline))
}

fn rate(estimate: Estimate) -> Interval {
    interval(estimate, 3)
}

fn interval(estimate: Estimate, digits: i32) -> Interval {
    Interval {
        value: round(estimate.value, digits),
        low: round(estimate.low, digits),
        high: round(estimate.high, digits),
    }
}

/// `WHAT: all 10 connections were in use …; the service kept up …`, each reason once.
fn with_reason(refused: &str, steps: &[Step]) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for reason in steps.iter().filter(|step| step.is_generator_limited).filter_map(|step| step.why_limited.as_deref()) {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    if reasons.is_empty() {
        return refused.to_owned();
    }
    let (what, rest) = refused.split_once("; ").map_or((refused, String::new()), |(a, b)| (a, format!("; {b}")));
    format!("{what}: {}{rest}", reasons.join("; "))
}

/// Pairs the finding's points with the steps that have seconds, in order.
fn points(finding: &Finding, steps: &[Step], p99: impl Fn(&Step) -> Option<f64>) -> Vec<StepReport> {
    let played = steps.iter().filter(|step| !step.seconds.is_empty());
    let ms = |ns: f64| round(ns / 1e6, 4);
    finding
        .points
        .iter()
        .zip(played)
        .map(|(point, step)| {
            let (held, how) = match point.held {
                StepResult::Yes => ("yes", None),
                StepResult::No(how) => ("no", Some(how)),
                StepResult::Unclear => ("unclear", None),
                StepResult::GeneratorLimited => ("generator_limited", None),
            };
            StepReport {
                from_s: round(step.from.as_secs_f64(), 3),
                to_s: round(step.to.as_secs_f64(), 3),
                purpose: step.purpose,
                offered: round(point.offered, 3),
                achieved: round(point.achieved, 3),
                mean_ms: point.response_ns.map(ms),
                p99_ms: p99(step).map(ms),
                error_ratio: round(point.error_ratio.clamp(0.0, 1.0), 5),
                in_system: round(point.in_system, 3),
                held: held.to_owned(),
                how,
            }
        })
        .collect()
}

/// 99th percentile of the requests that ended in the step, without its start, nanoseconds: exact if
/// the recording has histograms.
fn p99(recording: &Recording, step: &Step) -> Option<f64> {
    let (from, to) = (step.from + step.settle.min((step.to - step.from).saturating_sub(SECOND)), step.to);
    let inside = recording.latencies.iter().filter(|slice| {
        // A slice belongs where most of it lies: its ends are slightly off the second.
        let middle = slice.since_start + SECOND / 2;
        slice.tag.ends_with(".response") && middle >= from && middle < to
    });
    let mut seconds = inside.map(|slice| hlog::merged([slice]));
    let mut all = seconds.next()??;
    // Each second's histogram is only as wide as its longest time.
    all.auto(true);
    for second in seconds {
        all.add(second?).ok()?;
    }
    Some(all.value_at_quantile(0.99) as f64)
}

const SECOND: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
