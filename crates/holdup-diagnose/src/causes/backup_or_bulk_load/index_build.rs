//! The build of an index in MongoDB: it reads a whole collection, sorts its keys and writes them, and
//! blocks the collection when it begins and ends. The server's own account of operations
//! shows it: longer while it runs than at other times.

use crate::change::Fix;
use crate::resources::index_builds::{self, IndexBuilds};
use crate::resources::slowed_operations::SlowedOperations;
use holdup_recording::metrics::mongodb as metric;
use holdup_signals::evidence::Evidence;

use super::{Outcome, RUNS};
use crate::case::Case;
use crate::causes::{CauseFinding, Role, bytes_per_second};
use crate::resources::is_felt;
use crate::resources::sessions::ALWAYS;
use crate::resources::tickets::MONGODB;
use crate::strength::{FAIR, STRONG};

/// A build that ran for this part (0-1) of the baseline window, relative to the episode, is usual.
const USUAL: f64 = 0.5;

/// Least factor by which what is read into the cache must have grown since the baseline window.
const GREW: f64 = 2.0;

/// A build while operations take longer; none if it is not the reason.
pub(super) fn by_operations(case: &Case<'_>) -> Option<Outcome> {
    let (view, baseline) = (case.slow(), case.baseline());
    let builds = IndexBuilds::find(&view, &case.view(case.whole()), baseline.as_ref())?;
    let completed = case.completed_in(view.window).ok()?;
    let slowed = SlowedOperations::measure(&view, baseline.as_ref(), completed, &builds.windows).ok()?;
    if slowed.ratio < RUNS || slowed.baseline_ratio >= USUAL * slowed.ratio || !is_felt(case, slowed.request_ms).ok()? {
        return None;
    }
    let collection = index_builds::name(&builds.collection);
    let told = slowed.evidence(&format!("an index of {collection} was built"));
    let read = read_into_cache(case);
    let weights = vec![if slowed.ratio < ALWAYS { STRONG } else { FAIR }, STRONG, FAIR];
    Some(Outcome::Found(CauseFinding {
        explains_ms: slowed.request_ms,
        evidence: [told, builds.evidence].into_iter().chain(read).collect(),
        weights,
        fixes: fixes(collection),
        prove: "The same load without the build: response time is that of the baseline window.".to_owned(),
        role: Role::Root,
    }))
}

fn fixes(collection: &str) -> Vec<Fix> {
    let fix = Fix::by_command;
    vec![
        fix(
            format!("See how far the build on {collection} is: the quickest way may be to let it end."),
            Some("db.getSiblingDB('admin').aggregate([{$currentOp: {}}, {$match: {msg: /Index Build/}}])"),
            None,
        ),
        fix(
            "Build large indexes at a quiet time, or on one member of the replica set after the other.".to_owned(),
            None,
            None,
        ),
        fix(
            "To stop it, drop the index that is being built.".to_owned(),
            None,
            Some("What it has done so far is lost, and queries that need the index stay slow."),
        ),
    ]
}

/// What was read into the cache, if that grew: a build reads the whole collection.
fn read_into_cache(case: &Case<'_>) -> Option<Evidence> {
    let name = metric::SERVER_STATUS_WIRED_TIGER_CACHE_BYTES_READ_INTO_CACHE.name;
    let now = case.slow().counter(name, &[], MONGODB).ok()?;
    let before = case.well_before()?.counter(name, &[], MONGODB).ok()?;
    let (is, was) = (bytes_per_second(now.rate()), bytes_per_second(before.rate()));
    let text = format!("{is} were read into the storage engine's cache, {was} in the baseline window");
    (now.rate() >= GREW * before.rate() && now.rate() > 0.0).then(|| now.evidence(is, was, text))
}

#[cfg(test)]
mod tests {
    use holdup_signals::testing::EventRow;

    use super::super::DEFINITION;
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "mongodb://db";
    const SCAN: [(&str, &str); 2] = [("collection", "orders"), ("phase", "scan")];

    /// 100 reads a second of 2 ms, and of `slow_ms` from 30 s to 60 s of 90.
    fn made(slow_ms: f64) -> SyntheticRecording {
        let during = |s: i64| (s - 30).clamp(0, 30) as f64;
        SyntheticRecording::new(90)
            .counter(DB, "mongodb_operations_total", &[("kind", "reads")], 100.0)
            .counted(DB, "mongodb_operation_time_seconds_total", &[("kind", "reads")], move |s| {
                0.2 * s as f64 + 0.1 * (slow_ms - 2.0) * during(s)
            })
            .counted(DB, "mongodb_server_status_wired_tiger_cache_bytes_read_into_cache", &[], move |s| {
                1e5 * s as f64 + 5e6 * during(s)
            })
    }

    /// The same with a build from `from` to `to`, as `currentOp` shows it.
    fn built(slow_ms: f64, from: i64, to: i64) -> SyntheticRecording {
        let runs = move |s: i64| f64::from(u8::from((from..to).contains(&s)));
        made(slow_ms)
            .gauge(DB, "mongodb_index_builds", &[], 0.0)
            .counted(DB, "mongodb_index_builds", &SCAN, runs)
            .counted(DB, "mongodb_index_build_progress_ratio", &SCAN, move |s| {
                ((s - from) as f64 / 30.0).clamp(0.0, 1.0)
            })
    }

    #[test]
    fn a_build_that_runs_while_operations_are_slow_is_the_reason() {
        let found = built(82.0, 30, 60).diagnose();
        assert_eq!(found.culprit, Some(DEFINITION.cause), "{}", found.headline);
        assert!((found.findings[0].explains_ms - 80.0).abs() < 8.0, "{}", found.findings[0].explains_ms);
        let text: String = found.findings[0].evidence.iter().map(|it| it.text.as_str()).collect();
        assert!(text.contains("orders"), "{text}");
    }

    #[test]
    fn a_build_that_runs_before_or_beside_it_is_none() {
        for (from, to, what) in [(0, 90, "it always runs"), (2, 28, "it had ended"), (32, 34, "for two seconds")] {
            assert!(built(82.0, from, to).explains(&DEFINITION).is_none_or(|ms| ms == 0.0), "{what}");
        }
        assert!(built(2.5, 30, 60).diagnose().culprit.is_none());
    }

    #[test]
    fn the_log_and_the_counters_show_it_as_well() {
        let begun: EventRow<'_> = (30, DB, "index_build", &[("state", "begun"), ("collection", "shop.orders")]);
        let done: EventRow<'_> = (60, DB, "index_build", &[("state", "done"), ("collection", "shop.orders")]);
        let logged = made(82.0).events(&[begun, done]).explains(&DEFINITION).unwrap_or_default();
        assert!((logged - 80.0).abs() < 8.0, "{logged}");
        let step = |at: i64, before: f64| move |s: i64| before + f64::from(u8::from(s >= at));
        let counted = made(82.0).counted(DB, "mongodb_server_status_index_builds_total", &[], step(30, 7.0)).counted(
            DB,
            "mongodb_server_status_index_builds_phases_commit",
            &[],
            step(60, 5.0),
        );
        let counted = counted.explains(&DEFINITION).unwrap_or_default();
        assert!((counted - 80.0).abs() < 8.0, "{counted}");
    }
}
