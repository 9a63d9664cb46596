//! The wait for downstream services without a report from the app: its connections that await an
//! answer, by Little's law.

use std::collections::BTreeMap;

use super::DownstreamWait;
use crate::case::Case;
use crate::resources::workers::{answered_per_second, stretch};
use crate::rules::ms;
use crate::strength::STRONG;
use holdup_signals::View;
use holdup_signals::app_server::{DownstreamService, waited_ms};

/// Downstream services that are not databases, with requests per second. None if not recorded.
fn seen(case: &Case<'_>, view: &View<'_>) -> Option<(Vec<DownstreamService>, f64)> {
    let source = view.outside().ok().filter(|o| o.has_processes())?.source;
    let mut neighbours = view.downstream_services(&source)?;
    neighbours.retain(|n| !n.is_database);
    let per_second = answered_per_second(case, view)?;
    (per_second > 0.0).then_some((neighbours, per_second))
}

/// Waits of requests for all of them; none if not recorded.
pub(super) fn waited(case: &Case<'_>) -> Option<DownstreamWait> {
    let (neighbours, per_second) = seen(case, &stretch(case))?;
    let of = |neighbours: &[DownstreamService], per_second| {
        waited_ms(neighbours.iter().map(|n| n.pending).sum(), per_second)
    };
    let calm = case.calm().and_then(|view| seen(case, &view));
    let waited = of(&neighbours, per_second);
    let evidence = neighbours.first()?.evidence(ms(waited), "", "");
    Some(DownstreamWait { ms: waited, calm_ms: calm.map(|(all, rate)| of(&all, rate)), evidence, weight: STRONG })
}

/// By downstream service: milliseconds of a mean request beyond the baseline window's.
pub(super) fn growth(case: &Case<'_>) -> BTreeMap<String, f64> {
    let by_name = |view: &View<'_>| -> BTreeMap<String, f64> {
        let Some((neighbours, per_second)) = seen(case, view) else { return BTreeMap::new() };
        neighbours.into_iter().map(|n| (n.name, waited_ms(n.pending, per_second))).collect()
    };
    let mut growth = by_name(&stretch(case));
    for (name, before) in case.calm().map(|calm| by_name(&calm)).unwrap_or_default() {
        *growth.entry(name).or_default() -= before;
    }
    growth
}
