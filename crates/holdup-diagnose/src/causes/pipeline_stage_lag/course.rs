//! The course of a group and topic: when it fell behind, when it committed, and the rates in and out.

use holdup_recording::Labels;
use holdup_recording::metrics::{Metric, kafka as metric};
use holdup_signals::view::stretches::within;
use holdup_signals::{View, Window};

/// A lag up to this is usual, seconds: clients commit every five.
pub(super) const USUAL_S: f64 = 10.0;

/// A lag is still at its least within as much, seconds: two samples.
const NEAR_S: f64 = 2.0;

/// Rates of a shorter time say little, seconds.
pub(super) const ENOUGH_S: f64 = 10.0;

type Points<'v> = &'v [(i64, f64)];

/// A group's part of a topic, over the view.
pub(super) struct Course<'v> {
    pub(super) window: Window,
    pub(super) labels: &'v Labels,
    pub(super) lag: Points<'v>,
    backlog: Points<'v>,
    committed: Points<'v>,
    end: Points<'v>,
    members: Points<'v>,
    rebalances: Points<'v>,
}

/// How much a series grows a second; none in too short a time, or where it falls: a group that was set
/// back, or a topic that was made anew.
fn rate(points: Points<'_>, from: i64, to: i64) -> Option<f64> {
    let points = within(points, up_to(from, to));
    let (first, last) = (points.first()?, points.last()?);
    let time = seconds(first.0, last.0);
    (time >= ENOUGH_S && last.1 >= first.1).then(|| (last.1 - first.1) / time)
}

pub(super) fn seconds(from: i64, to: i64) -> f64 {
    to.saturating_sub(from) as f64 / 1e9
}

fn up_to(from: i64, to: i64) -> Window {
    Window { from, to: to.saturating_add(1) }
}

impl<'v> Course<'v> {
    /// Of each group and topic that has a lag.
    pub(super) fn all(view: &'v View<'_>) -> impl Iterator<Item = Self> {
        let series = view.index.series(metric::LAG.name, &[]);
        series.filter_map(|((source, labels), lag)| Self::read(view, source, labels, lag))
    }

    fn read(view: &'v View<'_>, source: &str, labels: &'v Labels, lag: Points<'v>) -> Option<Self> {
        let pair = [("group", labels.get("group")?), ("topic", labels.get("topic")?)];
        let of = |metric: Metric, wanted: &[(&str, &str)]| -> Points<'v> {
            let mut all = view.index.series(metric.name, &[]);
            let found = all.find(|((from, labels), _)| from == source && labels.contains(wanted));
            found.map_or(&[], |(_, points)| within(points, view.window))
        };
        Some(Self {
            window: view.window,
            labels,
            lag: within(lag, view.window),
            backlog: of(metric::BACKLOG, &pair),
            committed: of(metric::COMMITTED_OFFSET, &pair),
            end: of(metric::END_OFFSET, &pair[1..]),
            members: of(metric::GROUP_MEMBERS, &pair[..1]),
            rebalances: of(metric::GROUP_REBALANCES, &pair[..1]),
        })
    }

    pub(super) fn name(&self) -> String {
        let of = |label| self.labels.get(label).unwrap_or_default();
        format!("group {} on topic {}", of("group"), of("topic"))
    }

    /// From when its backlog grew, and until when: from the last time that it was hardly behind.
    pub(super) fn growth(&self) -> Option<(Option<i64>, i64)> {
        let peak = self.backlog.iter().rev().max_by(|a, b| a.1.total_cmp(&b.1))?.0;
        let before = within(self.lag, Window { from: i64::MIN, to: peak });
        let least = before.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        let is_near = |point: &&(i64, f64)| least < USUAL_S && point.1 <= least + NEAR_S;
        Some((before.iter().rfind(is_near).map(|point| point.0), peak))
    }

    /// The times until `until` at which it committed something.
    pub(super) fn commits(&self, until: i64) -> Vec<i64> {
        let steps = self.committed.windows(2).filter(|pair| pair[1].1 > pair[0].1);
        steps.map(|pair| pair[1].0).filter(|at| *at <= until).collect()
    }

    /// Records a second that came and that were committed.
    pub(super) fn rates(&self, from: i64, to: i64) -> Option<(f64, f64)> {
        Some((rate(self.end, from, to)?, rate(self.committed, from, to)?))
    }

    pub(super) fn lag_at(&self, at: i64) -> f64 {
        self.lag.iter().rfind(|point| point.0 <= at).map_or(0.0, |point| point.1)
    }

    /// The lowest lag of a stretch: one that returns with each commit is a pause.
    pub(super) fn least_lag(&self, from: i64, to: i64) -> f64 {
        within(self.lag, up_to(from, to)).iter().map(|point| point.1).reduce(f64::min).unwrap_or(0.0)
    }

    /// Whether it ever had a member.
    pub(super) fn had_members(&self) -> bool {
        self.members.iter().any(|point| point.1 > 0.0)
    }

    /// Whether its members were gone at the end of a stretch.
    pub(super) fn is_empty(&self, from: i64, to: i64) -> bool {
        within(self.members, up_to(from, to)).last().is_some_and(|point| point.1 <= 0.0)
    }

    /// How often its partitions were given out anew in a stretch.
    pub(super) fn rebalances(&self, from: i64, to: i64) -> f64 {
        let points = within(self.rebalances, up_to(from, to));
        points.first().zip(points.last()).map_or(0.0, |(first, last)| last.1 - first.1)
    }
}
