//! Builds of MongoDB's indexes: when one ran, and on which collection. Three accounts of them add up:
//! operations in progress, the server's log, and from 7.0 on its counters of builds that began and
//! that reached their commit.

use std::collections::BTreeMap;

use crate::resources::slowed_operations::{MONGODB, while_positive};
use holdup_recording::Labels;
use holdup_recording::metrics::mongodb as metric;
use holdup_recording::rows::Event;
use holdup_recording::words::percent;
use holdup_signals::evidence::Evidence;
use holdup_signals::{View, Window};

const BEGAN: &str = metric::SERVER_STATUS_INDEX_BUILDS.name;
const COMMITTED: &str = metric::SERVER_STATUS_INDEX_BUILDS_PHASES_COMMIT.name;

/// Builds in a recording.
pub struct IndexBuilds {
    /// When one ran, in the recording and in its baseline.
    pub windows: Vec<Window>,
    /// On which collection; empty if only counters show it.
    pub collection: String,
    /// That it ran in the episode.
    pub evidence: Evidence,
}

impl IndexBuilds {
    /// Those that `view` shows, of the recording through `whole` and of its baseline window; none if none
    /// was seen.
    pub fn find(view: &View<'_>, whole: &View<'_>, baseline: Option<&View<'_>>) -> Option<Self> {
        let (collection, evidence) = seen(view, whole)?;
        let windows = running(whole).into_iter().chain(baseline.into_iter().flat_map(running)).collect();
        Some(Self { windows, collection, evidence })
    }
}

/// When one ran, by all accounts.
fn running(view: &View<'_>) -> Vec<Window> {
    let mut windows = while_positive(view, metric::INDEX_BUILDS.name);
    windows.extend(logged(view).into_iter().map(|(_, window)| window));
    windows.extend(counted(view));
    windows
}

/// On which collection, and the evidence that says most.
fn seen(view: &View<'_>, whole: &View<'_>) -> Option<(String, Evidence)> {
    let in_view = |window: &Window| window.from < view.window.to && view.window.from < window.to;
    let builds = metric::INDEX_BUILDS.name;
    if let Ok(level) = view.gauge(builds, &[], MONGODB)
        && level.max > 0.0
    {
        let names = view.label_values(builds, "collection");
        let collection = names.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        let done = view.gauge(metric::INDEX_BUILD_PROGRESS_RATIO.name, &[("phase", "scan")], MONGODB).ok();
        let done = done.map_or_else(String::new, |done| {
            format!("; its scan was {} done at first, {} at last", percent(done.min), percent(done.max))
        });
        let text = format!(
            "an index of {} was being built in {} of the samples{done}",
            name(&collection),
            percent(level.positive_ratio)
        );
        let told = level.evidence(percent(level.positive_ratio), "none", text);
        return Some((collection, told));
    }
    if let Some((collection, _)) = logged(whole).into_iter().find(|(_, window)| in_view(window)) {
        let text = format!("the log says that an index of {} was being built", name(&collection));
        let labels = Labels::new([("collection", collection.as_str())]);
        let told = Evidence::new("events", "labels", labels, whole.window, "a build", "none", text);
        return Some((collection, told));
    }
    let counter = view.counter(BEGAN, &[], MONGODB).ok()?;
    counted(whole).iter().any(in_view).then(|| {
        let text = "an index build had begun and was not committed yet".to_owned();
        (String::new(), counter.evidence("a build", "none", text))
    })
}

/// A collection in words.
pub fn name(collection: &str) -> &str {
    if collection.is_empty() { "a collection" } else { collection }
}

/// Builds in the server's log: from the line that begins one to the one that ends it, or to the end.
fn logged(view: &View<'_>) -> Vec<(String, Window)> {
    let events = view.recording.tables.events.with_columns(&["observed_at", "kind", "labels"]).unwrap_or_default();
    let mut open: BTreeMap<&str, i64> = BTreeMap::new();
    let mut found = Vec::new();
    for event in events.iter().filter(|event: &&Event| event.kind == "index_build") {
        let collection = event.labels.get("collection").unwrap_or_default();
        match event.labels.get("state") {
            Some("begun") => {
                open.insert(collection, event.observed_at);
            }
            Some("done") => {
                // One that began before the recording.
                let from = open.remove(collection).unwrap_or(i64::MIN);
                found.push((collection.to_owned(), Window { from, to: event.observed_at }));
            }
            _ => {}
        }
    }
    found.extend(open.into_iter().map(|(name, from)| (name.to_owned(), Window { from, to: i64::MAX })));
    found
}

/// Builds that had begun and were not committed: more than at the instant with fewest. Builds that
/// failed since the server's start are in that number.
fn counted(view: &View<'_>) -> Vec<Window> {
    let mut windows = Vec::new();
    for source in view.sources_of(BEGAN) {
        let committed: BTreeMap<i64, f64> = view.total(source, COMMITTED, &[]).into_iter().collect();
        let began = view.total(source, BEGAN, &[]).into_iter();
        let open: Vec<(i64, f64)> = began.filter_map(|(at, began)| Some((at, began - committed.get(&at)?))).collect();
        let least = open.iter().map(|(_, count)| *count).fold(f64::INFINITY, f64::min);
        let runs = |pair: &&[(i64, f64)]| pair.iter().any(|(_, count)| *count > least);
        windows.extend(open.windows(2).filter(runs).map(|pair| Window { from: pair[0].0, to: pair[1].0 }));
    }
    windows
}
