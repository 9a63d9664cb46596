//! The stages of a pipeline over time: what comes in, what waits, what is done, how far behind each
//! is, and when its backlog will be gone. A stage is one that the user named, or a consumer group
//! with its topic.

mod meters;

use std::borrow::Cow;

use holdup_recording::metrics::kafka as metric;
use holdup_recording::{Labels, pipeline};

use crate::view::stretches::within;
use crate::{View, Window};

/// A lag up to this is usual, seconds: clients commit every five.
pub const USUAL_S: f64 = 10.0;

/// A lag is still at its least within as much, seconds: two samples.
const NEAR_S: f64 = 2.0;

/// Rates of a shorter time say little, seconds.
pub const ENOUGH_S: f64 = 10.0;

/// The present is the last minute, nanoseconds: a dozen commits.
const PRESENT_NS: i64 = 60_000_000_000;

/// A backlog that changes by less than this share of what comes in is one that stays.
const STAYS: f64 = 0.02;

/// Times (nanoseconds) and values; empty if nothing tells them.
pub type Points<'v> = Cow<'v, [(i64, f64)]>;

/// A stage over the view.
pub struct Course<'v> {
    /// The view's window.
    pub window: Window,
    /// The name that the user gave, or `group G on topic T`.
    pub name: String,
    /// What is counted: `records`, `bytes`, or `items` of the user's own counters.
    pub unit: &'static str,
    /// Metric and labels of the samples that show it.
    pub labels: Labels,
    /// How far it is behind, seconds.
    pub lag: Points<'v>,
    /// What waits.
    pub backlog: Points<'v>,
    /// What it was done with so far; only differences mean something.
    pub done: Points<'v>,
    /// What came so far; only differences mean something.
    pub came: Points<'v>,
    /// What it made so far, in its own unit.
    pub made: Points<'v>,
    members: Points<'v>,
    rebalances: Points<'v>,
}

/// What becomes of a backlog at the present pace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outlook {
    /// The stage is hardly behind.
    KeepsUp,
    /// The backlog is gone after so many seconds.
    Gone(f64),
    /// It grows.
    Grows,
    /// It neither grows nor shrinks.
    Stays,
    /// The recording is too short to tell.
    Unknown,
}

/// How much a series grows a second; none in too short a time, or where it falls: a group that was set
/// back, or a topic that was made anew.
fn rate(points: &[(i64, f64)], from: i64, to: i64) -> Option<f64> {
    let points = within(points, up_to(from, to));
    let (first, last) = (points.first()?, points.last()?);
    let time = seconds(first.0, last.0);
    (time >= ENOUGH_S && last.1 >= first.1).then(|| (last.1 - first.1) / time)
}

/// Seconds between two instants.
pub fn seconds(from: i64, to: i64) -> f64 {
    to.saturating_sub(from) as f64 / 1e9
}

fn up_to(from: i64, to: i64) -> Window {
    Window { from, to: to.saturating_add(1) }
}

/// The mean of times (seconds after `start`) and of values.
fn middle(points: &[(i64, f64)], start: i64) -> Option<(f64, f64)> {
    let (times, values) =
        points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + seconds(start, point.0), sum.1 + point.1));
    let count = points.len() as f64;
    (count > 0.0).then(|| (times / count, values / count))
}

/// The stages of the view: those that the user named, in their order, as far as they have figures; if none
/// was named, each group and topic that has a lag.
pub fn courses<'v>(view: &'v View<'_>) -> Vec<Course<'v>> {
    let named = &view.recording.manifest.pipeline;
    if named.is_empty() {
        let series = view.index.series(metric::LAG.name, &[]);
        return series.filter_map(|((source, labels), _)| Course::of_group(view, source, labels)).collect();
    }
    named.iter().filter_map(|stage| Course::of_stage(view, stage)).collect()
}

impl<'v> Course<'v> {
    /// A stage that the user named; none without figures.
    fn of_stage(view: &'v View<'_>, stage: &pipeline::Stage) -> Option<Self> {
        let read = match &stage.input {
            pipeline::Intake::Topic { topic, group } => {
                let pair = [("group", group.as_str()), ("topic", topic.as_str())];
                let mut series = view.index.series(metric::LAG.name, &[]);
                let ((source, labels), _) = series.find(|((_, labels), _)| labels.contains(&pair))?;
                Self::of_group(view, source, labels)?
            }
            input => meters::read(view, input, stage.out.as_ref())?,
        };
        let made = stage.out.as_ref().and_then(|out| meters::made(view, out)).unwrap_or_default();
        Some(Self { name: stage.name.clone(), made: Cow::Owned(made), ..read })
    }

    fn of_group(view: &'v View<'_>, source: &str, labels: &'v Labels) -> Option<Self> {
        let pair = [("group", labels.get("group")?), ("topic", labels.get("topic")?)];
        let of = |metric: &str, wanted: &[(&str, &str)]| -> Points<'v> {
            let mut all = view.index.series(metric, &[]);
            let found = all.find(|((from, labels), _)| from == source && labels.contains(wanted));
            Cow::Borrowed(found.map_or(&[], |(_, points)| within(points, view.window)))
        };
        Some(Self {
            window: view.window,
            name: format!("group {} on topic {}", pair[0].1, pair[1].1),
            unit: "records",
            labels: labels.iter().fold(Labels::new([("metric", metric::LAG.name)]), |all, (k, v)| all.with(k, v)),
            lag: of(metric::LAG.name, &pair),
            backlog: of(metric::BACKLOG.name, &pair),
            done: of(metric::COMMITTED_OFFSET.name, &pair),
            came: of(metric::END_OFFSET.name, &pair[1..]),
            made: Cow::default(),
            members: of(metric::GROUP_MEMBERS.name, &pair[..1]),
            rebalances: of(metric::GROUP_REBALANCES.name, &pair[..1]),
        })
    }

    /// From when its backlog grew, and until when: from the last time that it was hardly behind.
    pub fn growth(&self) -> Option<(Option<i64>, i64)> {
        let peak = self.backlog.iter().rev().max_by(|a, b| a.1.total_cmp(&b.1))?.0;
        let before = within(&self.lag, Window { from: i64::MIN, to: peak });
        let least = before.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
        let is_near = |point: &&(i64, f64)| least < USUAL_S && point.1 <= least + NEAR_S;
        Some((before.iter().rfind(is_near).map(|point| point.0), peak))
    }

    /// The times until `until` at which it was done with something.
    pub fn commits(&self, until: i64) -> Vec<i64> {
        let steps = self.done.windows(2).filter(|pair| pair[1].1 > pair[0].1);
        steps.map(|pair| pair[1].0).filter(|at| *at <= until).collect()
    }

    /// How much came and was done a second.
    pub fn rates(&self, from: i64, to: i64) -> Option<(f64, f64)> {
        Some((rate(&self.came, from, to)?, rate(&self.done, from, to)?))
    }

    /// How much it made a second, in its own unit.
    pub fn made_per_second(&self, from: i64, to: i64) -> Option<f64> {
        rate(&self.made, from, to)
    }

    /// How far it was behind at `at`, seconds.
    pub fn lag_at(&self, at: i64) -> f64 {
        self.lag.iter().rfind(|point| point.0 <= at).map_or(0.0, |point| point.1)
    }

    /// The lowest lag of a stretch: one that returns with each commit is a pause.
    pub fn least_lag(&self, from: i64, to: i64) -> f64 {
        within(&self.lag, up_to(from, to)).iter().map(|point| point.1).reduce(f64::min).unwrap_or(0.0)
    }

    /// The least, the mean and the most that waited in a stretch.
    pub fn waiting(&self, from: i64, to: i64) -> Option<(f64, f64, f64)> {
        let points = within(&self.backlog, up_to(from, to));
        let values = || points.iter().map(|point| point.1);
        Some((values().reduce(f64::min)?, middle(points, from)?.1, values().reduce(f64::max)?))
    }

    /// Whether it ever had a member.
    pub fn had_members(&self) -> bool {
        self.members.iter().any(|point| point.1 > 0.0)
    }

    /// Whether its members were gone at the end of a stretch.
    pub fn is_empty(&self, from: i64, to: i64) -> bool {
        within(&self.members, up_to(from, to)).last().is_some_and(|point| point.1 <= 0.0)
    }

    /// How often its partitions were given out anew in a stretch.
    pub fn rebalances(&self, from: i64, to: i64) -> f64 {
        let points = within(&self.rebalances, up_to(from, to));
        points.first().zip(points.last()).map_or(0.0, |(first, last)| last.1 - first.1)
    }

    /// The present: the last minute of its figures.
    pub fn present(&self) -> Option<(i64, i64)> {
        let last = self.backlog.last()?.0;
        Some((last.saturating_sub(PRESENT_NS).max(self.window.from), last))
    }

    /// What becomes of its backlog at the present pace. Halves of the present are compared, because
    /// commits come in steps.
    pub fn outlook(&self) -> Outlook {
        let Some((from, to)) = self.present() else { return Outlook::Unknown };
        let half = from + (to - from) / 2;
        let halves = middle(within(&self.backlog, Window { from, to: half }), from)
            .zip(middle(within(&self.backlog, up_to(half, to)), from))
            .filter(|(before, now)| now.0 - before.0 >= ENOUGH_S / 2.0);
        let Some((before, now)) = halves else { return Outlook::Unknown };
        if self.least_lag(half, to) < USUAL_S {
            return Outlook::KeepsUp;
        }
        let slope = (now.1 - before.1) / (now.0 - before.0);
        let comes = rate(&self.came, from, to).or_else(|| rate(&self.done, from, to)).unwrap_or(0.0);
        let left = self.backlog.last().map_or(0.0, |point| point.1);
        match slope {
            _ if slope.abs() <= comes * STAYS => Outlook::Stays,
            grows if grows > 0.0 => Outlook::Grows,
            shrinks if shrinks < 0.0 => Outlook::Gone(left / -shrinks),
            _ => Outlook::Stays,
        }
    }
}
