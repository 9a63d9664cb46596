//! When servers began anew: by their own logs and a cloud's events, by an uptime that fell, and by
//! proxies that found no server listening.

use holdup_recording::metrics::{self, Metric};
use holdup_recording::words::thousands;
use holdup_recording::{Labels, events};
use holdup_signals::View;
use holdup_signals::evidence::Evidence;
use holdup_signals::view::stretches::within;

use crate::causes::parts::present::Shown;
use crate::instant::happened::{Happened, moment};
use crate::strength::{AS_SYMPTOM, CERTAIN, FAIR, NONE, STRONG, Strength, WEAK};

/// Servers' own counts of the time since they started.
const UPTIMES: [Metric; 5] = [
    metrics::mysql::GLOBAL_STATUS_UPTIME,
    metrics::mongodb::UPTIME,
    metrics::redis::INFO_UPTIME_IN,
    metrics::elasticsearch::UPTIME,
    metrics::aws::ENGINE_UPTIME,
];

/// Uptimes are whole seconds, and a reading takes a while: less is not a restart.
const SLACK_S: f64 = 5.0;

/// A server that is up for so long is warm, seconds.
const YOUNG_S: f64 = 900.0;

/// What shows that a server began anew, and when the first did; pieces of no worth clear.
pub(super) fn shown(view: &View<'_>, happened: &Happened<'_>) -> (Shown, Option<i64>) {
    // A kill or a failed probe that is known is the reason of the restart.
    let has_reason = happened.of(events::OUT_OF_MEMORY_KILL, |_| true).is_some()
        || happened.of(events::CONTAINER_KILLED, |_| true).is_some()
        || happened.of(events::PROBE_FAILED, |_| true).is_some();
    let part = if has_reason { AS_SYMPTOM } else { 1.0 };
    let mut shown = Shown::new();
    let mut first: Option<i64> = None;
    let mut began = |at: i64| first = Some(first.map_or(at, |known: i64| known.min(at)));
    for (why, restarts) in happened.by(events::RESTART, "why") {
        restarts.first().into_iter().for_each(|event| began(event.observed_at));
        shown.push((by_why(why) * part, restarts.told()));
    }
    if let Some(stops) = happened.of("server_stopped", |_| true) {
        stops.first().into_iter().for_each(|event| began(event.observed_at));
        shown.push((STRONG * part, stops.told()));
    }
    for uptime in UPTIMES.iter().flat_map(|metric| uptimes(view, *metric)) {
        uptime.at.into_iter().for_each(&mut began);
        shown.push((uptime.strength * part, uptime.evidence));
    }
    let is_refused = |event: &holdup_recording::rows::Event| {
        event.labels.get("error") == Some(events::UPSTREAM_UNREACHABLE) && event.labels.get("why") == Some("refused")
    };
    if let Some(refused) = happened.of(events::ERROR, is_refused) {
        refused.first().into_iter().for_each(|event| began(event.observed_at));
        shown.push((FAIR * part, refused.told()));
    }
    (shown, first)
}

/// A requested restart is known.
fn by_why(why: &str) -> Strength {
    match why {
        events::CRASH | events::FAILOVER => CERTAIN,
        events::REQUESTED => FAIR,
        _ => STRONG,
    }
}

/// What an uptime says.
struct Uptime {
    strength: Strength,
    /// When the server began, if that was in the stretch.
    at: Option<i64>,
    evidence: Evidence,
}

fn uptimes(view: &View<'_>, metric: Metric) -> Vec<Uptime> {
    let series = view.index.series(metric.name, &[]);
    series.filter_map(|((source, labels), points)| uptime(view, metric, (source, labels), points)).collect()
}

fn uptime(view: &View<'_>, metric: Metric, (source, labels): (&str, &Labels), points: &[(i64, f64)]) -> Option<Uptime> {
    let points = within(points, view.window);
    let (first, last) = (points.first()?, points.last()?);
    let start = |(at, up): (i64, f64)| at.saturating_sub((up * 1e9) as i64);
    let fell = points.windows(2).find(|pair| {
        let passed = pair[1].0.saturating_sub(pair[0].0) as f64 / 1e9;
        pair[1].1 + SLACK_S < pair[0].1 + passed
    });
    let labels = labels.iter().fold(Labels::new([("metric", metric.name)]), |all, (k, v)| all.with(k, v));
    let evidence = |observed: f64, text: String| {
        let expected = "the time before and what passed";
        Evidence::new("samples", "value", labels.clone(), view.window, format!("{observed:.0} s"), expected, text)
    };
    let named = server(source, &labels);
    Some(match fell {
        Some(pair) => {
            let at = start(pair[1]);
            let text = format!("{named} began anew at {}: its uptime fell from {} s", moment(at), thousands(pair[0].1));
            Uptime { strength: CERTAIN, at: Some(at), evidence: evidence(pair[1].1, text) }
        }
        // Of one look nothing shows that it ran before.
        None if last.1 < YOUNG_S && first.0 == last.0 => {
            let text = format!("{named} began {} s before, at {}", thousands(last.1), moment(start(*last)));
            Uptime { strength: WEAK, at: None, evidence: evidence(last.1, text) }
        }
        None => {
            let text = format!("{named} runs since {}", moment(start(*last)));
            Uptime { strength: NONE, at: None, evidence: evidence(last.1, text) }
        }
    })
}

fn server(source: &str, labels: &Labels) -> String {
    let node = || labels.get("node").map(|node| format!("node {node} of {source}"));
    labels.get("db_instance").map(str::to_owned).or_else(node).unwrap_or_else(|| source.to_owned())
}
