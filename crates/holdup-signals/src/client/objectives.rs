//! Which of the load's objectives were met. Objectives for the whole run are compared with each
//! operation's result, those with a window with every window ([`Evaluation`], which the generator
//! uses as well). Response times of a second come from `latency.hlog`. Only the generator knew
//! exactly how many requests failed in a second, so its counts decide, unless this reader leaves
//! out another part of the run. In that case, and without histograms, holdup counts the rows.

mod seconds;
pub mod watched;

use holdup_recording::Recording;
use holdup_recording::manifest::{Manifest, Threshold};
use holdup_recording::objective::{Judgement, Metric, State, Stretch};
use holdup_recording::rows::Request;

use crate::Window;
use crate::client::demand::Demand;
use crate::client::operations::{Operation, failures};
use crate::time::distribution::Distribution;
use holdup_recording::words::ms;

/// An objective and its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// As it was given.
    pub threshold: Threshold,
    /// The outcome.
    pub judgement: Judgement,
    /// How it was missed, in words; none if it was met.
    pub missed: Option<String>,
    /// Whether it ended the run.
    pub aborted: bool,
}

/// What objectives are compared with.
pub struct Run<'a> {
    /// The recording.
    pub recording: &'a Recording,
    /// Its requests, or those of `window`.
    pub requests: &'a [&'a Request],
    /// Their results by operation.
    pub operations: &'a [Operation],
    /// The part to judge, if not all.
    pub window: Option<Window>,
    /// End of the warm-up, nanoseconds since the Unix epoch.
    pub measured_from: i64,
}

impl Run<'_> {
    /// Judges every objective of the load.
    pub fn judge(&self) -> Vec<Objective> {
        let manifest = &self.recording.manifest;
        let Some(load) = &manifest.load else { return Vec::new() };
        let windowed = seconds::judge(self);
        let judged = load.thresholds.iter().zip(windowed).map(|(threshold, windowed)| {
            let aborted = load.aborted.as_ref().filter(|a| a.text == threshold.text && threshold.abort);
            let mut judgement = windowed.unwrap_or_else(|| self.whole(threshold));
            if let Some(aborted) = aborted.filter(|_| judgement.state != State::Missed) {
                // The generator ended the run for it: by its counts it was missed, whatever is left
                // out here.
                judgement.state = State::Missed;
                judgement.value = Some(aborted.value);
                (judgement.first_window, judgement.worst_window) = (Some(aborted.stretch), Some(aborted.stretch));
                judgement.why = None;
            }
            let missed = (judgement.state == State::Missed).then(|| self.how_missed(threshold, &judgement));
            Objective { threshold: threshold.clone(), judgement, missed, aborted: aborted.is_some() }
        });
        judged.collect()
    }

    fn covered<'o>(&'o self, threshold: &'o Threshold) -> impl Iterator<Item = &'o Operation> + Clone {
        self.operations.iter().filter(|o| threshold.covers(&o.name))
    }

    /// Judges an objective for the whole run.
    fn whole(&self, threshold: &Threshold) -> Judgement {
        let metric = Metric::parse(&threshold.metric);
        let value = metric
            .clone()
            .and_then(|metric| self.value(threshold, metric).ok_or_else(|| "no request of it ended".to_owned()));
        let state = match (&metric, &value) {
            (Ok(metric), Ok(value)) if metric.misses(*value, threshold.below) => State::Missed,
            (_, Ok(_)) => State::Met,
            (_, Err(_)) => State::NotJudged,
        };
        Judgement {
            text: threshold.text.clone(),
            state,
            value: value.as_ref().ok().copied(),
            limit: threshold.below,
            unit: metric.map_or(Metric::Max, |m| m).unit(),
            first_window: None,
            worst_window: None,
            windows: 0,
            windows_missed: 0,
            left_out_ns: 0,
            why: value.err(),
        }
    }

    fn value(&self, threshold: &Threshold, metric: Metric) -> Option<f64> {
        let covered = self.covered(threshold);
        let times = || Distribution::merged(covered.clone().map(|o| &o.response_ms));
        match metric {
            Metric::Quantile(q) => times().quantile(q),
            Metric::Max => times().max(),
            Metric::Mean => times().mean(),
            Metric::Errors => {
                let (bad, all) = covered.fold((0, 0), |(bad, all), o| (bad + o.failed(), all + o.offered));
                (all > 0).then(|| bad as f64 / all as f64)
            }
            Metric::Rate => {
                let (completed, offered) = covered.fold((0, 0), |(c, all), o| (c + o.completed, all + o.offered));
                let mine = self.requests.iter().filter(|r| threshold.covers(&r.operation));
                let demand = Demand::from_requests(&self.recording.manifest, self.requests, self.whole_window());
                let seconds = demand.until(mine.map(|r| r.done_at).max());
                (offered > 0).then(|| completed as f64 / seconds)
            }
        }
    }

    fn whole_window(&self) -> Window {
        let manifest = &self.recording.manifest;
        self.window.unwrap_or(Window { from: manifest.started_at, to: manifest.ended_at.unwrap_or(i64::MAX) })
    }

    /// `p99 was 4,120 ms from 12 s to 42 s, the objective is p99 < 400ms for 30s`.
    fn how_missed(&self, threshold: &Threshold, judgement: &Judgement) -> String {
        let of = threshold.operation.as_ref().map_or_else(String::new, |o| format!("{o} "));
        let value = judgement.value.unwrap_or_default();
        let what = match Metric::parse(&threshold.metric) {
            Ok(Metric::Errors) if judgement.worst_window.is_none() => failures(self.covered(threshold)),
            Ok(Metric::Errors) => format!("{:.3} % of {of}requests failed", value * 100.0),
            Ok(Metric::Rate) => format!("{of}rate was {value:.1}/s"),
            _ => format!("{of}{} was {}", threshold.metric, ms(value)),
        };
        let when = judgement.worst_window.map_or_else(String::new, |stretch| {
            let span = span(&self.recording.manifest, stretch);
            format!(" from {:.0} s to {:.0} s", span.0, span.1)
        });
        format!("{what}{when}, the objective is {}", threshold.text)
    }
}

/// Start of the load, nanoseconds since the Unix epoch: the origin of its objectives' windows.
pub fn load_start(manifest: &Manifest) -> i64 {
    manifest.phases.first().map_or(manifest.started_at, |phase| phase.from)
}

/// A stretch of the load in seconds from the start of the recording.
pub fn span(manifest: &Manifest, stretch: Stretch) -> (f64, f64) {
    let begun = load_start(manifest) - manifest.started_at;
    let seconds = |ns: i64| (begun + ns) as f64 / 1e9;
    (seconds(stretch.from_ns), seconds(stretch.to_ns))
}

#[cfg(test)]
mod tests;
