//! The whole run in one picture: the offered load, the results, and the service's workers, queues,
//! CPUs and memory, one lane each on one time axis.

use serde::Serialize;

use super::Chart;

/// One lane: series of a chart that `web/src/parts/overview.tsx` and the terminal draw.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lane {
    /// Its title.
    pub title: &'static str,
    /// The chart it comes from, which also gives the unit.
    pub chart: &'static str,
    /// Index of the series that is drawn.
    pub series: usize,
    /// Index of the series that is its limit.
    pub limit: Option<usize>,
    /// Whether any value above zero is bad: errors, throttling.
    pub is_bad: bool,
}

/// Title, chart, prefix of the drawn series' name (empty: any), prefix of its limit's name (empty:
/// no limit), whether it is bad.
const LANES: &[(&str, &str, &str, &str, bool)] = &[
    ("offered", "rate", "offered", "", false),
    ("achieved", "rate", "achieved", "", false),
    ("errors", "rate", "errors", "", true),
    ("response p99", "response", "p99", "", false),
    ("in flight", "generator", "in flight", "", false),
    ("accept queue", "accept_queue", "waiting", "at most", false),
    ("refused", "refused", "", "", true),
    ("busy workers", "workers", "busy", "at most", false),
    ("answering", "workers", "connections answered", "", false),
    ("throttled", "throttling", "", "", true),
    ("CPUs used", "service_cpu", "", "", false),
    ("memory", "memory", "", "", false),
    ("statements queued", "thread_pool", "queued", "", false),
    ("stage behind", "stage_lag", "", "", false),
    ("disk busy", "disk", "", "", false),
];

/// The lanes for which `charts` have data. If several series fit a lane, it shows the highest.
pub fn overview(charts: &[Chart]) -> Vec<Lane> {
    let lanes = LANES.iter().filter_map(|&(title, chart, series, limit, is_bad)| {
        let of = charts.iter().find(|c| c.id == chart)?;
        let height = |i: &usize| of.series[*i].y.iter().flatten().copied().fold(0.0, f64::max);
        let fits = (0..of.series.len()).filter(|i| of.series[*i].name.starts_with(series));
        let drawn = fits.max_by(|a, b| height(a).total_cmp(&height(b)).then(b.cmp(a)))?;
        // A lane of bad events that never happened would only take up room.
        if is_bad && title != "errors" && height(&drawn) == 0.0 {
            return None;
        }
        let named = |i: &usize| !limit.is_empty() && of.series[*i].name.starts_with(limit);
        Some(Lane { title, chart, series: drawn, limit: (drawn..of.series.len()).find(named), is_bad })
    });
    let mut lanes: Vec<Lane> = lanes.collect();
    // If the server reports its busy workers itself, its answering connections would repeat them.
    if lanes.iter().any(|lane| lane.title == "busy workers") {
        lanes.retain(|lane| lane.title != "answering");
    }
    lanes
}
