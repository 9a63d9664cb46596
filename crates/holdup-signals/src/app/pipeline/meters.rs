//! Stages whose work other things than a consumer group count: what the missing figures follow from.

use std::borrow::Cow;
use std::collections::BTreeMap;

use holdup_recording::Labels;
use holdup_recording::metrics::{elasticsearch, kafka, postgresql};
use holdup_recording::pipeline::{Intake, Output};

use super::{Course, Points, seconds};
use crate::View;
use crate::view::stretches::pairs as adjacent;

type Series = Vec<(i64, f64)>;

/// A figure older than this belongs to a gap, seconds.
const STALE_S: f64 = 10.0;

/// The first source that has `metric`.
fn source<'v>(view: &'v View<'_>, metric: &str, labels: &[(&str, &str)]) -> Option<&'v str> {
    view.index.condensed.series.by_metric.get(metric)?.keys().find(|(_, l)| l.contains(labels)).map(|(s, _)| s.as_str())
}

/// How much counters of `source` have grown together. A fall is a restart, and adds nothing.
fn grown(view: &View<'_>, source: &str, metrics: &[&str], labels: &[(&str, &str)]) -> Option<Series> {
    let mut growth: BTreeMap<i64, f64> = BTreeMap::new();
    for metric in metrics {
        let of_source = view.index.series(metric, labels).filter(|((of, _), _)| of == source);
        for (before, after) in of_source.flat_map(|(_, points)| adjacent(points, view.window)) {
            growth.entry(before.0).or_default();
            *growth.entry(after.0).or_default() += (after.1 - before.1).max(0.0);
        }
    }
    let mut sum = 0.0;
    let all = growth.into_iter().map(|(at, delta)| {
        sum += delta;
        (at, sum)
    });
    Some(all.collect()).filter(|points: &Series| !points.is_empty())
}

fn pairs(labels: &Labels) -> Vec<(&str, &str)> {
    labels.iter().collect()
}

/// What a stage made so far, as `out` counts it.
pub(super) fn made(view: &View<'_>, out: &Output) -> Option<Series> {
    let first = |metrics: &[&str], labels: &[(&str, &str)]| {
        let source = metrics.iter().find_map(|metric| source(view, metric, labels))?;
        grown(view, source, metrics, labels)
    };
    match out {
        Output::Topic { topic } => first(&[kafka::END_OFFSET.name], &[("topic", topic)]),
        Output::Table { table } => {
            use postgresql::{STAT_TABLES_N_TUP_DEL, STAT_TABLES_N_TUP_INS, STAT_TABLES_N_TUP_UPD};
            let all = [STAT_TABLES_N_TUP_INS, STAT_TABLES_N_TUP_UPD, STAT_TABLES_N_TUP_DEL];
            first(&all.map(|metric| metric.name), &[("table", table)])
        }
        Output::Index => first(&[elasticsearch::OPERATIONS.name], &[("operation", "indexing")]),
        Output::Counter { metric, labels } => first(&[metric], &pairs(labels)),
        Output::Unknown => None,
    }
}

/// A stage that reads a slot, or a queue whose length a gauge tells.
pub(super) fn read<'v>(view: &View<'_>, input: &Intake, out: Option<&Output>) -> Option<Course<'v>> {
    let (metric, labels, unit) = match input {
        Intake::Slot { slot } => {
            (postgresql::REPLICATION_SLOT_UNCONFIRMED_BYTES.name, Labels::new([("slot", slot.as_str())]), "bytes")
        }
        Intake::Waiting { metric, labels } => (metric.as_str(), labels.clone(), "items"),
        Intake::Topic { .. } | Intake::Unknown => return None,
    };
    let source = source(view, metric, &pairs(&labels))?;
    let backlog = view.total(source, metric, &pairs(&labels));
    let (came, done) = match (input, out) {
        (Intake::Slot { .. }, _) => {
            let written = grown(view, source, &[postgresql::WAL_POSITION_BYTES.name], &[])?;
            let confirmed = combined(&backlog, &written, |waits, came| came - waits);
            (written, confirmed)
        }
        (_, out) => {
            let done = made(view, out?)?;
            (combined(&backlog, &done, |waits, done| done + waits), done)
        }
    };
    let lag = ages(&backlog, &came);
    let own = |series: Series| -> Points<'v> { Cow::Owned(series) };
    Some(Course {
        window: view.window,
        name: String::new(),
        unit,
        labels: labels.with("metric", metric),
        lag: own(lag),
        backlog: own(backlog),
        done: own(done),
        came: own(came),
        made: Cow::default(),
        members: Cow::default(),
        rebalances: Cow::default(),
    })
}

/// A counter that follows from a backlog and another counter. Both are read one after the other, so what
/// follows may step back a little; a counter does not. Where one of them has a gap, so has what follows.
fn combined(backlog: &[(i64, f64)], counter: &[(i64, f64)], of: impl Fn(f64, f64) -> f64) -> Series {
    let mut all: Series = Vec::with_capacity(backlog.len());
    for (at, waits) in backlog {
        if let Some(counted) = last_until(counter, *at) {
            let reached = all.last().map_or(f64::NEG_INFINITY, |point| point.1);
            all.push((*at, of(*waits, counted).max(reached)));
        }
    }
    all
}

fn last_until(points: &[(i64, f64)], at: i64) -> Option<f64> {
    let index = points.partition_point(|point| point.0 <= at).checked_sub(1)?;
    points.get(index).filter(|point| seconds(point.0, at) <= STALE_S).map(|point| point.1)
}

/// How long ago what waits first came, seconds. What came before the first sample is older than that.
fn ages(backlog: &[(i64, f64)], came: &[(i64, f64)]) -> Series {
    let age = |(at, waits): &(i64, f64)| {
        let done = last_until(came, *at)? - waits;
        if *waits <= 0.0 {
            return Some((*at, 0.0));
        }
        // Between two samples it came evenly.
        let next = came.partition_point(|point| point.1 <= done);
        let Some(after) = came.get(next) else { return Some((*at, 0.0)) };
        let before = next.checked_sub(1).and_then(|index| came.get(index)).unwrap_or(after);
        let part = (done - before.1) / (after.1 - before.1).max(f64::MIN_POSITIVE);
        let age = seconds(before.0, *at) - seconds(before.0, after.0) * part.clamp(0.0, 1.0);
        Some((*at, age.max(0.0)))
    };
    backlog.iter().filter_map(age).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_the_time_since_what_waits_came() {
        // 10/s come for 20 s; nothing is taken from second 5 on.
        let at = |s: i64| s * 1_000_000_000;
        let came: Series = (0..=20).map(|s| (at(s), 10.0 * s as f64)).collect();
        let waits: Series = (0..=20).map(|s| (at(s), 10.0 * (s - 5).max(0) as f64)).collect();
        let ages = ages(&waits, &came);
        assert_eq!((ages[5].1, ages[6].1, ages[20].1), (0.0, 1.0, 15.0));
        let done = combined(&waits, &came, |waits, came| came - waits);
        assert_eq!((done[4].1, done[5].1, done[20].1), (40.0, 50.0, 50.0));
    }
}
