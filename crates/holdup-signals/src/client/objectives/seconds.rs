//! Objectives with a window: which counts of the load's seconds judge each of them.

use std::collections::BTreeMap;
use std::time::Duration;

use holdup_recording::manifest::{LoadFacts, Threshold};
use holdup_recording::objective::{Evaluation, Extent, Judgement, Metric, OperationOutcomes, State};
use holdup_recording::{RunState, hlog};

use super::{Run, load_start};
use crate::time::requests::{failed, is_latency};

const SECOND_NS: i64 = 1_000_000_000;

/// The outcome of each threshold, in order; none for those without a window.
pub fn judge(run: &Run<'_>) -> Vec<Option<Judgement>> {
    let manifest = &run.recording.manifest;
    let Some(load) = &manifest.load else { return Vec::new() };
    let extent = extent(run);
    let windowed = |t: &Threshold| t.window_ns.is_some();
    let is_latency = |t: &Threshold| Metric::parse(&t.metric).is_ok_and(Metric::is_latency);

    let mut judged: Vec<Option<Judgement>> = vec![None; load.thresholds.len()];
    let open = |judged: &[Option<Judgement>], of: &dyn Fn(&Threshold) -> bool| -> Vec<usize> {
        let of_each = load.thresholds.iter().enumerate();
        of_each.filter(|(i, t)| judged[*i].is_none() && windowed(t) && of(t)).map(|(i, _)| i).collect()
    };
    let evaluations = |indices: &[usize]| -> Vec<Evaluation> {
        indices.iter().map(|i| Evaluation::new(&load.thresholds[*i], extent)).collect()
    };

    let of_histograms = open(&judged, &|t| is_latency(t) && are_tags_distinct(load, t));
    let mut from_histograms = evaluations(&of_histograms);
    if !of_histograms.is_empty() && feed_histograms(run, load, &mut from_histograms).is_some() {
        for (i, mut evaluation) in of_histograms.into_iter().zip(from_histograms) {
            judged[i] = Some(evaluation.result());
        }
    }
    for i in open(&judged, &|_| true) {
        judged[i] = live(run, load, i, extent.warm_up);
    }
    let of_rows = open(&judged, &|_| true);
    let mut from_rows = evaluations(&of_rows);
    if !of_rows.is_empty() && !run.requests.is_empty() {
        feed_rows(run, extent.due_until.unwrap_or_default(), &mut from_rows);
    }
    for (i, mut evaluation) in of_rows.into_iter().zip(from_rows) {
        let mut judgement = evaluation.result();
        if run.requests.is_empty() && judgement.state == State::NotJudged {
            judgement.why = Some("the recording has no requests, second by second".to_owned());
        }
        judged[i] = Some(judgement);
    }
    judged
}

/// The part of the load that windows may lie in.
fn extent(run: &Run<'_>) -> Extent {
    let manifest = &run.recording.manifest;
    let start = load_start(manifest);
    let since = |at: i64| Duration::from_nanos(at.saturating_sub(start).max(0) as u64);
    let from = run.window.map_or(i64::MIN, |w| w.from).max(run.measured_from);
    let last_due = run.requests.iter().map(|r| r.intended_at).max();
    let planned = manifest.phases.last().map(|phase| phase.to);
    let due = if manifest.state == RunState::Complete { planned } else { last_due };
    let until = run.window.map_or(i64::MAX, |w| w.to);
    let due_until = due.map(|due| due.min(until)).or(Some(until).filter(|t| *t < i64::MAX));
    Extent { warm_up: since(from), due_until: due_until.map(since) }
}

/// Whether a second that ends at `to` is to be judged.
fn is_within(run: &Run<'_>, to: Duration) -> bool {
    let Some(window) = run.window else { return true };
    let at = load_start(&run.recording.manifest).saturating_add(to.as_nanos() as i64);
    at <= window.to
}

/// Only rows tell apart two names that share a tag.
fn are_tags_distinct(load: &LoadFacts, threshold: &Threshold) -> bool {
    let tags: Vec<String> = load.operations.iter().map(|o| hlog::clean(o)).collect();
    let covered = load.operations.iter().zip(&tags).filter(|(name, _)| threshold.covers(name));
    covered.into_iter().all(|(_, tag)| tags.iter().filter(|other| *other == tag).count() == 1)
}

/// Feeds the seconds of `latency.hlog`. None if there are none, or one can't be read.
fn feed_histograms(run: &Run<'_>, load: &LoadFacts, evaluations: &mut [Evaluation]) -> Option<()> {
    let names: Vec<(String, &str)> =
        load.operations.iter().map(|o| (format!("{}.response", hlog::clean(o)), o.as_str())).collect();
    let mut seconds: BTreeMap<Duration, Vec<&hlog::Slice>> = BTreeMap::new();
    for slice in run.recording.latencies.iter().filter(|s| s.tag.ends_with(".response")) {
        seconds.entry(slice.since_start).or_default().push(slice);
    }
    if seconds.is_empty() {
        return None;
    }
    for (from, slices) in seconds {
        let length = slices.iter().map(|s| s.to - s.from).max().unwrap_or_default();
        let to = from + Duration::from_nanos(length.max(0) as u64);
        if !is_within(run, to) {
            continue;
        }
        let mut of_each = Vec::new();
        for slice in slices {
            let Some((_, name)) = names.iter().find(|(tag, _)| *tag == slice.tag) else { continue };
            of_each.push((*name, hlog::values(slice)?));
        }
        let ended: Vec<OperationOutcomes<'_>> = of_each
            .iter()
            .map(|(operation, times)| OperationOutcomes { operation, completed: 0, failed: 0, times })
            .collect();
        evaluations.iter_mut().for_each(|e| e.second(from, to, &ended));
    }
    Some(())
}

/// The generator's outcome, if the same part is left out here.
fn live(run: &Run<'_>, load: &LoadFacts, index: usize, warm_up: Duration) -> Option<Judgement> {
    let found = load.objectives.get(index).filter(|j| j.text == load.thresholds[index].text)?;
    // Windows begin at whole seconds: a part left out of one second makes no difference.
    let second = |ns: i64| (ns + SECOND_NS - 1) / SECOND_NS;
    let is_same = second(found.left_out_ns) == second(warm_up.as_nanos() as i64);
    (run.window.is_none() && is_same).then(|| found.clone())
}

#[derive(Default)]
struct SecondCounts {
    completed: u64,
    failed: u64,
    times: Vec<(u64, u64)>,
}

/// Feeds the requests that rows stand for, by the second in which they ended.
fn feed_rows(run: &Run<'_>, due_until: Duration, evaluations: &mut [Evaluation]) {
    let start = load_start(&run.recording.manifest);
    let mut seconds: BTreeMap<i64, (i64, BTreeMap<&str, SecondCounts>)> = BTreeMap::new();
    for row in run.requests {
        let done = (row.done_at - start).max(0);
        let (last, operations) = seconds.entry(done / SECOND_NS).or_default();
        *last = (*last).max(done);
        let counted = operations.entry(&row.operation).or_default();
        match row.outcome.as_str() {
            "ok" => counted.completed += row.count(),
            _ if failed(row) => counted.failed += row.count(),
            _ => {}
        }
        if is_latency(row) {
            counted.times.push(((row.done_at - row.intended_at).max(0) as u64, row.count()));
        }
    }
    let newest = seconds.last_key_value().map_or(0, |(second, _)| *second);
    for (second, (last, operations)) in &seconds {
        let ns = |ns: i64| Duration::from_nanos(ns.max(0) as u64);
        // Only the last second may be cut off, by the end of the load.
        let whole = ns((second + 1) * SECOND_NS);
        let to = if *second == newest { ns(*last).max(due_until).min(whole) } else { whole };
        if !is_within(run, to) {
            continue;
        }
        let ended = operations.iter().map(|(operation, counted)| OperationOutcomes {
            operation,
            completed: counted.completed,
            failed: counted.failed,
            times: &counted.times,
        });
        let ended: Vec<OperationOutcomes<'_>> = ended.collect();
        evaluations.iter_mut().for_each(|e| e.second(ns(second * SECOND_NS), to, &ended));
    }
}
