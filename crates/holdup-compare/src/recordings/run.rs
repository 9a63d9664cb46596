//! One recording, reduced for the comparison: its figures, each with its precision within this run,
//! and the facts that make it comparable. The result is small, so any number of recordings can be
//! read one after the other.

use holdup_recording::Recording;
use holdup_recording::rows::Request;

use super::cost;
use super::facts::Facts;
use super::measure::{Measure, Precondition, Scale};
use super::outcome::Section;
use super::unanswered::Unanswered;
use super::within::{REACH, Timed, percentile, share};
use holdup_diagnose::case::Case;
use holdup_diagnose::ledger::ledger;
use holdup_diagnose::search::Interval;
use holdup_diagnose::verdict::Diagnosis;
use holdup_signals::client::operations::Operation;
use holdup_signals::time::requests::{failed, is_latency, response_ms, service_ms};
use holdup_signals::{Distribution, Window};

/// How much percentiles of the same service differ from run to run (standard deviation of their
/// logarithm), beyond what the run itself shows: bench/runs, compare.
const TIME_SPREAD: f64 = 0.04;

/// The same for the largest response time. One request decides it, so that only a multiple counts: an
/// assumption, not a measurement.
const MAX_SPREAD: f64 = 0.5;

/// The same for completion rates.
const RATE_SPREAD: f64 = 0.01;

/// The same for a knee found by a search.
const KNEE_SPREAD: f64 = 0.03;

/// The same for the parts of a mean request, and for activity of host and servers. Their variation
/// within a run is unknown and included here.
const PART_SPREAD: f64 = 0.10;
const INDICATOR_SPREAD: f64 = 0.15;

/// A smaller difference (milliseconds) may come from the generator's late wake-ups.
const LEAST_MS: f64 = 0.25;

/// A difference of less than one failure per thousand requests does not count.
const LEAST_ERRORS: f64 = 0.001;

/// How much the share of failures differs from run to run, as a share of itself.
const ERROR_SPREAD: f64 = 0.3;

/// One recording.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its name in messages: its place.
    pub name: String,
    /// The round of an interleaved repeat.
    pub round: Option<u32>,
    pub(super) facts: Facts,
    pub(super) measures: Vec<Measure>,
}

impl Run {
    /// Reduces `recording`, with its verdict.
    pub fn from_recording(
        name: impl Into<String>,
        recording: &Recording,
        diagnosis: &Diagnosis,
        round: Option<u32>,
    ) -> Self {
        Self::from_window(name, recording, None, diagnosis, round)
    }

    /// The same of the part of `recording` in `window`, on which the verdict is.
    pub fn from_window(
        name: impl Into<String>,
        recording: &Recording,
        window: Option<Window>,
        diagnosis: &Diagnosis,
        round: Option<u32>,
    ) -> Self {
        let case = Case::new(recording, window);
        let rows = case.requests_in(case.whole()).unwrap_or_default();
        let facts = Facts::from_case(&case, recording, diagnosis);
        let mut measures = Vec::new();
        // A rare operation may be missing by chance, so the scenario's number of operations counts.
        let in_scenario = recording.manifest.load.as_ref().map_or(0, |load| load.operations.len());
        let is_alone = case.operations.len().max(in_scenario) == 1;
        if !is_alone && !case.operations.is_empty() {
            let all = Operation {
                name: ALL.to_owned(),
                response_ms: Distribution::merged(case.operations.iter().map(|o| &o.response_ms)),
                service_ms: Distribution::merged(case.operations.iter().map(|o| &o.service_ms)),
                ..Operation::default()
            };
            measures.extend(operation_measures(&case, diagnosis, &all, &rows, None));
        }
        for operation in &case.operations {
            let mine: Vec<&Request> = rows.iter().copied().filter(|r| r.operation == operation.name).collect();
            measures.extend(operation_measures(&case, diagnosis, operation, &mine, Some(is_alone)));
        }
        measures.extend(search_measures(diagnosis));
        measures.extend(cost::measures(&case, recording));
        measures.extend(ledger_measures(case));
        measures.extend(indicator_measures(diagnosis));
        Self { name: name.into(), round, facts, measures }
    }

    /// A run of which only one figure is known, e.g. from another tool's history: less of it is better.
    pub fn from_figure(name: &str, indicator: &str, unit: &str, value: f64) -> Self {
        let measure = Measure {
            is_headline: true,
            needs: Precondition::Nothing,
            spread: TIME_SPREAD,
            ..Measure::new(Section::Requests, indicator, unit, value)
        };
        Self { name: name.to_owned(), round: None, facts: Facts::default(), measures: vec![measure] }
    }
}

/// The name of all operations together.
const ALL: &str = "all requests";

/// The figures of `operation`, whose requests are `rows`; `is_alone` if it is the only one; none
/// means all of them.
fn operation_measures(
    case: &Case<'_>,
    diagnosis: &Diagnosis,
    operation: &Operation,
    rows: &[&Request],
    is_alone: Option<bool>,
) -> Vec<Measure> {
    let name = operation.name.as_str();
    let is_headline = is_alone != Some(false);
    let section = if is_headline { Section::Requests } else { Section::Operations };
    let of_one = is_alone.map(|_| name.to_owned());
    let measure = |what: &str, unit: &str, value| Measure {
        operation: of_one.clone(),
        ..Measure::new(section, format!("{name} {what}"), unit, value)
    };
    let (offered, achieved) = match diagnosis.load.operations.iter().find(|o| o.operation == name) {
        Some(report) if is_alone.is_some() => (report.offered, report.achieved),
        _ => (diagnosis.load.offered_rate, diagnosis.load.achieved_rate),
    };
    let ended: Vec<Timed> = rows.iter().map(|r| (r.intended_at, f64::from(failed(r)), r.count())).collect();
    let phases: Vec<i64> = case.recording.manifest.phases.iter().map(|p| p.from).collect();
    let errors = share(&ended, &phases, |is_failed| is_failed > 0.5);
    let mut measures = vec![Measure {
        more_is_better: None,
        needs: Precondition::Nothing,
        spread: RATE_SPREAD,
        ..measure("offered rate", "requests/s", offered)
    }];
    if let Some((failed, error)) = errors {
        measures.push(Measure {
            is_headline,
            more_is_better: Some(true),
            needs: Precondition::SameLoad,
            error: error.unwrap_or(0.0),
            spread: RATE_SPREAD,
            ..measure("achieved rate", "requests/s", achieved)
        });
        measures.push(Measure {
            is_headline,
            needs: Precondition::SameLoad,
            scale: Scale::Difference,
            error: error.unwrap_or(0.0).max(if failed > 0.0 { 0.0 } else { 1.0 / ended.len().max(1) as f64 / REACH }),
            spread: failed * ERROR_SPREAD,
            least: LEAST_ERRORS,
            ..measure("failed", "ratio", failed)
        });
    }
    let from = case.warm_up.measured_from();
    let measured = || rows.iter().filter(|r| r.intended_at >= from && is_latency(r));
    let response: Vec<Timed> = measured().map(|r| (r.intended_at, response_ms(r), r.count())).collect();
    let service: Vec<Timed> = measured().filter_map(|r| Some((r.intended_at, service_ms(r)?, r.count()))).collect();
    let unanswered = Unanswered::of_rows(case, rows.iter().filter(|r| r.intended_at >= from));
    let kinds =
        [("response time", &response, &operation.response_ms), ("service time", &service, &operation.service_ms)];
    for (kind, timed, all) in kinds {
        for (percent, q) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
            let Some((value, error)) = percentile(timed, &phases, all, q) else { continue };
            measures.push(Measure {
                with_unanswered: unanswered.percentile(timed, &phases, all, q),
                is_headline: is_headline && kind == "response time" && percent != "p99",
                error: error.unwrap_or(0.0),
                spread: TIME_SPREAD,
                least: LEAST_MS,
                ..measure(&format!("{kind} {percent}"), "ms", value)
            });
        }
        measures.extend(all.max().map(|value| Measure {
            spread: MAX_SPREAD,
            least: LEAST_MS,
            ..measure(&format!("{kind} max"), "ms", value)
        }));
    }
    measures
}

fn search_measures(diagnosis: &Diagnosis) -> Vec<Measure> {
    let Some(search) = &diagnosis.search else { return Vec::new() };
    let figures = [
        ("knee", search.knee),
        ("breaking point", search.breaking_point.map(|b| b.rate)),
        ("capacity", search.capacity),
    ];
    let measure = |(name, figure): (&str, Option<Interval>)| {
        let Interval { value, low, high } = figure.filter(|f| f.value > 0.0)?;
        let is_narrow = low > 0.0 && high >= low;
        Some(Measure {
            is_headline: name != "capacity",
            more_is_better: Some(true),
            needs: Precondition::Nothing,
            error: if is_narrow { (high.ln() - low.ln()) / (2.0 * REACH) } else { 1.0 },
            spread: KNEE_SPREAD,
            ..Measure::new(Section::Search, name, "requests/s", value)
        })
    };
    figures.into_iter().filter_map(measure).collect()
}

/// The parts of a mean request over all measured ones, slow or not.
fn ledger_measures(case: Case<'_>) -> Vec<Measure> {
    let Some(open) = case.laid_open() else { return Vec::new() };
    let mut measures = Vec::new();
    for row in ledger(&open).iter().filter(|row| row.band == "all") {
        // A part that is almost zero in both runs is not worse for doubling.
        let least = (2.0 * LEAST_MS).max(row.response_ms / 50.0);
        let unexplained = ("unexplained", row.residual_ms, 0.0);
        for (part, ms, error_ms) in row.parts.iter().map(|p| (p.part.as_str(), p.ms, p.error_ms)).chain([unexplained]) {
            let indicator = format!("{} {} (mean)", row.operation, part.replace('_', " "));
            let value = ms.max(0.0);
            measures.push(Measure {
                operation: Some(row.operation.clone()),
                scale: Scale::Ratio { plus: least },
                error: error_ms / (value + least),
                spread: PART_SPREAD,
                least,
                ..Measure::new(Section::Ledger, indicator, "ms", value)
            });
        }
    }
    measures
}

fn indicator_measures(diagnosis: &Diagnosis) -> Vec<Measure> {
    let readings = diagnosis.indicators.iter().filter(|r| r.value >= 0.0);
    let measure = |reading: &holdup_diagnose::verdict::Reading| {
        // A twentieth of a share, a tenth of a thread per CPU.
        let least = match reading.unit.as_str() {
            "ratio" => 0.05,
            "a CPU" => 0.1,
            _ => 0.5,
        };
        Measure {
            more_is_better: reading.more_is_better,
            needs: Precondition::Nothing,
            scale: Scale::Ratio { plus: least },
            spread: INDICATOR_SPREAD,
            least,
            ..Measure::new(Section::Indicators, reading.indicator.clone(), &reading.unit, reading.value)
        }
    };
    readings.map(measure).collect()
}
