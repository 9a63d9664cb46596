//! How far each replica is behind, by its own account, its source's or a cloud's.

use std::collections::BTreeMap;

use holdup_recording::metrics::{self, Metric};
use holdup_recording::words::{bytes, round, thousands};
use holdup_recording::{Labels, events};
use holdup_signals::View;
use holdup_signals::evidence::Evidence;
use holdup_signals::view::stretches::within;

use crate::causes::parts::present::Shown;
use crate::instant::happened::Happened;
use crate::strength::{CERTAIN, FAIR, NONE, STRONG, Strength};

/// A lag up to this is usual, seconds: figures are whole seconds, and an idle source sends rarely.
const USUAL_S: f64 = 10.0;

/// Reads of a replica this far behind are wrong for every user, seconds.
const FAR_S: f64 = 60.0;

/// As much log on the way may be a burst …
const USUAL_BYTES: f64 = 64.0 * 1_048_576.0;
/// … and this much is a replica that does not keep up.
const FAR_BYTES: f64 = 1024.0 * 1_048_576.0;

/// A figure of lag, and the label that names the replica.
type Figure = (Metric, &'static str);

/// Seconds, by whose account ever.
const SECONDS: [Figure; 6] = [
    (metrics::mysql::REPLICA_LAG, "channel"),
    (metrics::postgresql::STAT_REPLICATION_REPLAY_LAG, "application_name"),
    (metrics::redis::REPLICA_LAG, "replica"),
    (metrics::aws::REPLICA_LAG, "db_instance"),
    (metrics::aws::AURORA_REPLICA_LAG, "db_instance"),
    (metrics::aws::AURORA_BINLOG_REPLICA_LAG, "db_instance"),
];

/// What shows that replicas are behind, the worst first; pieces of no worth clear.
pub(super) fn replicas(view: &View<'_>, happened: &Happened<'_>) -> Shown {
    let mut all: Shown = SECONDS.iter().flat_map(|figure| seconds(view, *figure)).collect();
    all.extend(replayed(view));
    all.extend(bytes_behind(view));
    all.extend(members(view));
    all.extend(stopped(view));
    if let Some(errors) = happened.errors(events::REPLICATION_STOPPED) {
        all.push((FAIR, errors.told()));
    }
    all.sort_by(|a, b| b.0.chance().total_cmp(&a.0.chance()));
    all
}

/// A series in the stretch: its labels, the median and the last value, and the growth per second.
struct Course<'v> {
    source: &'v str,
    labels: &'v Labels,
    level: f64,
    grows: f64,
}

fn courses<'v>(view: &View<'v>, metric: Metric) -> Vec<Course<'v>> {
    let series = view.index.series(metric.name, &[]);
    let course = |((source, labels), points): (&'v (String, Labels), &'v Vec<(i64, f64)>)| {
        let points = within(points, view.window);
        let (first, last) = (points.first()?, points.last()?);
        let mut values: Vec<f64> = points.iter().map(|(_, value)| *value).filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let median = *values.get(values.len() / 2)?;
        // One late reading among many is not a lag; a lag that grows is as large as it is now.
        let seconds = last.0.saturating_sub(first.0) as f64 / 1e9;
        let grows = if seconds > 0.0 { (last.1 - first.1) / seconds } else { 0.0 };
        Some(Course { source, labels, level: median.max(last.1), grows })
    };
    series.filter_map(course).collect()
}

impl Course<'_> {
    fn evidence(&self, view: &View<'_>, metric: Metric, observed: String, expected: &str, text: String) -> Evidence {
        let labels = self.labels.iter().fold(Labels::new([("metric", metric.name)]), |all, (k, v)| all.with(k, v));
        Evidence::new("samples", "value", labels, view.window, observed, expected, text)
    }

    /// `, and falls further behind by 0.8 s each second`
    fn pace(&self) -> String {
        /// Less is jitter of whole seconds.
        const GROWS: f64 = 0.05;
        if self.grows < GROWS {
            return String::new();
        }
        format!(", and falls further behind by {} s each second", round(self.grows, 2))
    }
}

/// The replica's name, if its label says one.
fn name(labels: &Labels, label: &str) -> String {
    let name = labels.get(label).unwrap_or_default();
    if name.is_empty() { "the replica".to_owned() } else { format!("replica {name}") }
}

/// How much a lag is worth.
fn worth(lag_s: f64) -> Strength {
    if lag_s < USUAL_S { NONE } else { CERTAIN * (lag_s / FAR_S) }
}

fn seconds(view: &View<'_>, (metric, label): Figure) -> Shown {
    let delays: BTreeMap<(&str, &str), f64> = courses(view, metrics::mysql::REPLICA_DELAY)
        .iter()
        .map(|of| ((of.source, of.labels.get("channel").unwrap_or_default()), of.level))
        .collect();
    let shown = courses(view, metric).into_iter().map(|of| {
        let name = name(of.labels, label);
        if of.level < 0.0 {
            let text = format!("{name} does not replicate: its lag is reported as {:.0}", of.level);
            return (STRONG, of.evidence(view, metric, format!("{:.0}", of.level), "0 s", text));
        }
        let told = delays.get(&(of.source, of.labels.get(label).unwrap_or_default())).copied().unwrap_or(0.0);
        let lag = (of.level - told).max(0.0);
        let delayed = if told > 0.0 { format!(" more than the {told:.0} s of its set delay") } else { String::new() };
        let text = format!("{name} is {} s behind{delayed}{}", thousands(lag), of.pace());
        (worth(lag), of.evidence(view, metric, format!("{lag:.0} s"), "0 s", text))
    });
    largest(shown.collect())
}

/// Of several statistics of one replica the worst: a mean and a maximum are one fact.
fn largest(shown: Shown) -> Shown {
    let mut by_text: BTreeMap<String, (Strength, Evidence)> = BTreeMap::new();
    for (strength, evidence) in shown {
        let key = evidence.text.split(" is ").next().unwrap_or_default().to_owned();
        let known = by_text.get(&key).map(|(known, _)| known.chance());
        if known.is_none_or(|known| known < strength.chance()) {
            by_text.insert(key, (strength, evidence));
        }
    }
    by_text.into_values().collect()
}

/// A replica of PostgreSQL by its last replayed transaction. That of an idle source is old, too: what
/// was received and not replayed tells.
fn replayed(view: &View<'_>) -> Shown {
    let metric = metrics::postgresql::REPLICA_REPLAYED_AGE;
    let waiting = courses(view, metrics::postgresql::REPLICA_REPLAY_LAG_BYTES);
    let shown = courses(view, metric).into_iter().map(|of| {
        let bytes_left = waiting.iter().find(|waiting| waiting.source == of.source).map(|waiting| waiting.level);
        let (part, what) = match bytes_left {
            Some(left) if left <= 0.0 => (0.0, "it has replayed all that it received".to_owned()),
            Some(left) => (1.0, format!("{} of log were received and not replayed", bytes(left))),
            None => (FAIR.chance(), "what it has received is not known".to_owned()),
        };
        let text =
            format!("the replica replayed its last transaction {} s ago{}; {what}", thousands(of.level), of.pace());
        let evidence = of.evidence(view, metric, format!("{:.0} s", of.level), "a few seconds", text);
        (worth(of.level) * part, evidence)
    });
    shown.collect()
}

fn bytes_behind(view: &View<'_>) -> Shown {
    let metric = metrics::postgresql::STAT_REPLICATION_REPLAY_LAG_BYTES;
    let shown = courses(view, metric).into_iter().map(|of| {
        let text = format!("{} has not replayed {} of log", name(of.labels, "application_name"), bytes(of.level));
        let strength = if of.level < USUAL_BYTES { NONE } else { STRONG * (of.level / FAR_BYTES) };
        (strength, of.evidence(view, metric, bytes(of.level), "hardly any", text))
    });
    shown.collect()
}

/// Members of MongoDB's replica set, behind the one that is furthest.
fn members(view: &View<'_>) -> Shown {
    let metric = metrics::mongodb::REPLICA_OPTIME;
    let is_applied = |of: &Course<'_>| of.labels.get("stage") == Some("applied");
    let applied: Vec<Course<'_>> = courses(view, metric).into_iter().filter(is_applied).collect();
    let Some(furthest) = applied.iter().map(|of| of.level).reduce(f64::max) else { return Shown::new() };
    let behind = applied.iter().filter(|of| of.level < furthest).map(|of| {
        let lag = furthest - of.level;
        let text = format!("{} is {} s behind the primary", name(of.labels, "member"), thousands(lag));
        (worth(lag), of.evidence(view, metric, format!("{lag:.0} s"), "0 s", text))
    });
    behind.collect()
}

/// Threads of a replica of MySQL that do not run.
fn stopped(view: &View<'_>) -> Shown {
    let threads = [
        (metrics::mysql::REPLICA_IO_RUNNING, "receives nothing: its receiver (IO thread) does not run"),
        (metrics::mysql::REPLICA_SQL_RUNNING, "applies nothing: its applier (SQL thread) does not run"),
    ];
    let all = threads.into_iter().flat_map(|(metric, what)| {
        courses(view, metric).into_iter().filter(|of| of.level < 1.0).map(move |of| {
            let text = format!("{} {what}", name(of.labels, "channel"));
            (CERTAIN, of.evidence(view, metric, "stopped".to_owned(), "running", text))
        })
    });
    all.collect()
}
