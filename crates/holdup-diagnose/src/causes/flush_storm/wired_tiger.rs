//! The same for MongoDB: changed pages fill the storage engine's cache faster than it writes them, so
//! operations have to evict pages themselves, or wait until there is room. The engine times both. Or they
//! wait while a checkpoint writes ([`stalls`]).

use crate::change::Fix;
use holdup_recording::metrics::mongodb as metric;
use holdup_signals::{Missing, View};

use super::{CauseFinding, Outcome, percent, stalls};
use crate::case::Case;
use crate::causes::{Role, ms};
use crate::resources::is_felt;
use crate::resources::tickets::MONGODB;
use crate::strength::{CERTAIN, FAIR};

/// With this share (0-1) of the cache changed, operations evict (eviction_dirty_trigger is 20 %).
const DIRTY: f64 = 0.18;

const WAITED: &str =
    metric::SERVER_STATUS_WIRED_TIGER_THREAD_YIELD_APPLICATION_THREAD_TIME_WAITING_FOR_CACHE_USECS.name;
const EVICTED: &str = metric::SERVER_STATUS_WIRED_TIGER_THREAD_YIELD_APPLICATION_THREAD_TIME_EVICTING_USECS.name;

/// Whether a storage engine that times its evictions or its checkpoints is watched.
pub(super) fn is_timed(view: &View<'_>) -> bool {
    stalls::is_timed(view) || [WAITED, EVICTED].iter().any(|metric| !view.sources_of(metric).is_empty())
}

/// Judges both by the engine's own timing: the one that costs requests more counts, and both have to be
/// cleared.
///
/// # Errors
/// If the changed bytes in the cache, its size, or checkpoints were not recorded.
pub(super) fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let explained = |outcome: &Result<Outcome, Missing>| match outcome {
        Ok(Outcome::Found(found)) => Some(found.explains_ms),
        _ => None,
    };
    let (evictions, stalls) = (by_evictions(case), stalls::judge(case));
    match (explained(&evictions), explained(&stalls)) {
        (None, None) => match (evictions?, stalls?) {
            (Outcome::Cleared(evictions), Outcome::Cleared(stalls)) => {
                Ok(Outcome::Cleared(evictions.into_iter().chain(stalls).collect()))
            }
            (evictions, _) => Ok(evictions),
        },
        (evicting, stalled) if evicting >= stalled => evictions,
        _ => stalls,
    }
}

fn by_evictions(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    // Waits for room include evictions.
    let waited = view.counter(WAITED, &[], MONGODB).or_else(|_| view.counter(EVICTED, &[], MONGODB))?;
    let changed =
        view.gauge(metric::SERVER_STATUS_WIRED_TIGER_CACHE_TRACKED_DIRTY_BYTES_IN_THE_CACHE.name, &[], MONGODB)?;
    let size = view.gauge(metric::SERVER_STATUS_WIRED_TIGER_CACHE_MAXIMUM_BYTES_CONFIGURED.name, &[], MONGODB)?;
    let explains_ms = waited.delta / 1e3 / case.completed_in(view.window)?.max(1.0);
    let ratio = changed.max / size.max.max(1.0);
    let text = format!("a request evicted pages, or waited for room in the cache, for {}", ms(explains_ms));
    let waited = waited.evidence(ms(explains_ms), "near 0 ms", text);
    let text = format!("up to {} of the cache were changed pages that were not on disk yet", percent(ratio));
    let changed = changed.evidence(percent(ratio), format!("below {}", percent(DIRTY)), text);
    if ratio < DIRTY {
        return Ok(Outcome::Cleared(vec![changed, waited]));
    }
    if !is_felt(case, explains_ms)? {
        return Ok(Outcome::Cleared(vec![waited, changed]));
    }
    let fix = |text: &str| Fix { text: text.to_owned(), command: None, keep: None, risk: None };
    Ok(Outcome::Found(CauseFinding {
        explains_ms,
        evidence: vec![waited, changed],
        weights: vec![CERTAIN, FAIR],
        fixes: vec![
            fix("Spread the writes: a bulk job in smaller batches, fewer indexes on what it writes."),
            fix("Then a disk that takes more writes, or a larger cache: the limit on changed pages is a share of it."),
        ],
        prove:
            "Run the same scenario again: operations hardly evict, and changed pages stay below a fifth of the cache."
                .to_owned(),
        role: Role::Root,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::DEFINITION;
    use crate::cause::Cause;
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "mongodb://db";
    const ENGINE: &str = "mongodb_server_status_wired_tiger";

    /// 100 writes a second of 2 ms, and of 102 from 20 s on, when each evicts for `evicts_ms`; the share `changed` of the cache is
    /// not on disk yet.
    fn made(changed: f64, evicts_ms: f64) -> SyntheticRecording {
        let late = |s: i64| (s - 20).max(0) as f64;
        SyntheticRecording::new(40)
            .counter(DB, "mongodb_operations_total", &[("kind", "writes")], 100.0)
            .counted(DB, "mongodb_operation_time_seconds_total", &[("kind", "writes")], move |s| {
                0.2 * s as f64 + 10.0 * late(s)
            })
            .gauge(DB, &format!("{ENGINE}_cache_maximum_bytes_configured"), &[], 1e9)
            .counter(DB, &format!("{ENGINE}_transaction_transaction_checkpoint_total_time_msecs"), &[], 0.0)
            .gauge(DB, &format!("{ENGINE}_cache_tracked_dirty_bytes_in_the_cache"), &[], changed * 1e9)
            .counted(DB, &format!("{ENGINE}_thread_yield_application_thread_time_evicting_usecs"), &[], move |s| {
                1e5 * evicts_ms * late(s)
            })
    }

    #[test]
    fn operations_that_evict_for_room_are_its_doing() {
        let found = made(0.2, 95.0);
        assert!(
            found.explains(&DEFINITION).is_some_and(|ms| (ms - 95.0).abs() < 6.0),
            "{:?}",
            found.explains(&DEFINITION)
        );
        assert_eq!(found.diagnose().culprit, Some(Cause::FlushStorm), "{}", found.diagnose().headline);
    }

    #[test]
    fn a_cache_with_hardly_a_changed_page_and_short_evictions_clear_it() {
        assert_eq!(
            made(0.03, 95.0).explains(&DEFINITION),
            Some(0.0),
            "clean pages are evicted: the working set is too large"
        );
        assert_eq!(made(0.2, 2.0).explains(&DEFINITION), Some(0.0));
        let unknown = made(0.2, 95.0).without(&format!("{ENGINE}_cache_tracked_dirty_bytes_in_the_cache"));
        assert_eq!(unknown.explains(&DEFINITION), None);
    }
}
