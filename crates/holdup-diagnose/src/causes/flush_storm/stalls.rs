//! Checkpoints of MongoDB's storage engine: every minute it writes what has changed. While it does,
//! the disk and the cache's pages are busy, and operations take longer. The server's own
//! account of operations shows it: longer while a checkpoint runs than at other times.

use crate::change::Fix;
use crate::resources::slowed_operations::{SlowedOperations, while_positive};
use holdup_recording::metrics::{Metric, mongodb as metric};
use holdup_signals::evidence::Evidence;
use holdup_signals::{Missing, View, Window};

use super::{CauseFinding, Outcome, percent};
use crate::case::Case;
use crate::causes::{Role, ms};
use crate::resources::is_felt;
use crate::resources::sessions::ALWAYS;
use crate::resources::tickets::MONGODB;
use crate::strength::{FAIR, NONE, STRONG};

const SPENT: &str = metric::SERVER_STATUS_WIRED_TIGER_TRANSACTION_TRANSACTION_CHECKPOINT_TOTAL_TIME_MSECS.name;
const RUNS: &str = metric::SERVER_STATUS_WIRED_TIGER_TRANSACTION_TRANSACTION_CHECKPOINT_CURRENTLY_RUNNING.name;

/// The engine keeps changed pages below this share (0-1) of its cache (eviction_dirty_target is 5 %).
const DIRTY: f64 = 0.05;

/// Checkpoints that ran for this part (0-1) of the baseline window, relative to the episode, are usual.
const USUAL: f64 = 0.8;

/// Whether a storage engine that times its checkpoints is watched.
pub(super) fn is_timed(view: &View<'_>) -> bool {
    !view.sources_of(SPENT).is_empty()
}

/// Judges them by the operations meanwhile.
///
/// # Errors
/// If checkpoints or the server's account of operations were not recorded.
pub(super) fn judge(case: &Case<'_>) -> Result<Outcome, Missing> {
    let view = case.slow();
    let spent = view.counter(SPENT, &[], MONGODB)?;
    let whole = case.view(case.whole());
    let windows: Vec<Window> = running(&whole).into_iter().chain(case.baseline().iter().flat_map(running)).collect();
    let text = format!("checkpoints that ended in the episode took {}", ms(spent.delta));
    let spent = spent.evidence(ms(spent.delta), "a second or two a minute", text);
    let slowed = SlowedOperations::measure(&view, case.baseline().as_ref(), case.completed_in(view.window)?, &windows)?;
    if slowed.ratio <= 0.0 {
        return Ok(Outcome::Cleared(vec![spent]));
    }
    let told = slowed.evidence("a checkpoint ran");
    let is_usual = slowed.ratio >= ALWAYS && slowed.baseline_ratio >= USUAL * slowed.ratio;
    if is_usual || !is_felt(case, slowed.request_ms)? {
        return Ok(Outcome::Cleared(vec![told, spent]));
    }
    let mut evidence = vec![told, spent];
    let mut weights = vec![if slowed.ratio < ALWAYS { STRONG } else { FAIR }, FAIR];
    if let Some((ratio, changed)) = changed(&view) {
        evidence.push(changed);
        weights.push(if ratio >= DIRTY { FAIR } else { NONE });
    }
    let fix = Fix::advice;
    Ok(Outcome::Found(CauseFinding {
        explains_ms: slowed.request_ms,
        evidence,
        weights,
        fixes: vec![
            fix("Spread the writes: a bulk job in smaller batches, fewer indexes on what it writes.", None),
            fix(
                "Let the engine write earlier: a lower eviction_dirty_target leaves less to a checkpoint.",
                Some("Pages that change often are written more often."),
            ),
            fix("Then a disk that takes more writes.", None),
        ],
        prove: "Run the same scenario again: operations are as quick while a checkpoint runs as at other times."
            .to_owned(),
        role: Role::Root,
    }))
}

/// When checkpoints ran: by the gauge, and by the time of those that have ended, which is booked then.
fn running(view: &View<'_>) -> Vec<Window> {
    let ended = view.growths(|_| true, SPENT, &[]).into_iter().filter(|growth| growth.delta > 0.0);
    let ended = ended.map(|growth| {
        let took_ns = (growth.delta * 1e6) as i64;
        Window { from: growth.window.to - took_ns, ..growth.window }
    });
    ended.chain(while_positive(view, RUNS)).collect()
}

/// The largest share (0-1) of the cache that was not on disk yet.
fn changed(view: &View<'_>) -> Option<(f64, Evidence)> {
    let level = |metric: Metric| view.gauge(metric.name, &[], MONGODB).ok();
    let changed = level(metric::SERVER_STATUS_WIRED_TIGER_CACHE_TRACKED_DIRTY_BYTES_IN_THE_CACHE)?;
    let size = level(metric::SERVER_STATUS_WIRED_TIGER_CACHE_MAXIMUM_BYTES_CONFIGURED)?;
    let ratio = changed.max / size.max.max(1.0);
    let text = format!("up to {} of the cache were changed pages that were not on disk yet", percent(ratio));
    Some((ratio, changed.evidence(percent(ratio), format!("below {}", percent(DIRTY)), text)))
}

#[cfg(test)]
mod tests {
    use super::super::DEFINITION;
    use crate::cause::Cause;
    use crate::testing::{Judged as _, SyntheticRecording};

    const DB: &str = "mongodb://db";
    const ENGINE: &str = "mongodb_server_status_wired_tiger";

    /// 100 writes a second of 2 ms. From 40 s on a checkpoint of 8 s begins every 20 s, and a write takes `during_ms` then and
    /// `else_ms` between; a checkpoint of half a second ended every 20 s before.
    fn made(during_ms: f64, else_ms: f64) -> SyntheticRecording {
        let runs = |s: i64| s > 40 && (s - 41) % 20 < 8;
        let ended = |s: i64| (1..=s).filter(|t| t % 20 == 8).map(|t| if t > 40 { 8_000.0 } else { 500.0 }).sum::<f64>();
        let took = move |s: i64| {
            let each = |t: i64| {
                if runs(t) {
                    during_ms
                } else if t > 40 {
                    else_ms
                } else {
                    2.0
                }
            };
            (1..=s).map(|t| 0.1 * each(t)).sum::<f64>()
        };
        let checkpoint = format!("{ENGINE}_transaction_transaction_checkpoint");
        SyntheticRecording::new(100)
            .counter(DB, "mongodb_operations_total", &[("kind", "writes")], 100.0)
            .counted(DB, "mongodb_operation_time_seconds_total", &[("kind", "writes")], took)
            .counted(DB, &format!("{checkpoint}_total_time_msecs"), &[], ended)
            .counted(DB, &format!("{checkpoint}_currently_running"), &[], move |s| f64::from(u8::from(runs(s))))
            .gauge(DB, &format!("{ENGINE}_cache_maximum_bytes_configured"), &[], 1e9)
            .gauge(DB, &format!("{ENGINE}_cache_tracked_dirty_bytes_in_the_cache"), &[], 9e7)
            .counter(DB, &format!("{ENGINE}_thread_yield_application_thread_time_evicting_usecs"), &[], 0.0)
    }

    #[test]
    fn operations_that_take_longer_while_a_checkpoint_runs_wait_for_it() {
        let found = made(122.0, 2.0).diagnose();
        assert_eq!(found.culprit, Some(Cause::FlushStorm), "{}", found.headline);
        let text: String = found.findings[0].evidence.iter().map(|it| it.text.as_str()).collect();
        assert!(text.contains("while a checkpoint ran") && text.contains("9 %"), "{text}");
    }

    #[test]
    fn operations_as_slow_between_checkpoints_clear_it() {
        assert_eq!(made(122.0, 122.0).explains(&DEFINITION), Some(0.0), "a slow disk");
        let spent = format!("{ENGINE}_transaction_transaction_checkpoint_total_time_msecs");
        assert_eq!(made(122.0, 2.0).without(&spent).explains(&DEFINITION), None);
        assert_eq!(made(122.0, 2.0).without("mongodb_operations_total").explains(&DEFINITION), None);
    }

    #[test]
    fn the_time_of_ended_checkpoints_shows_them_without_the_gauge() {
        let running = format!("{ENGINE}_transaction_transaction_checkpoint_currently_running");
        let made = made(122.0, 2.0);
        let (with, less) = (made.explains(&DEFINITION).unwrap(), made.without(&running).explains(&DEFINITION).unwrap());
        assert!(with > 20.0 && (with - less).abs() < 0.4 * with, "{with} {less}");
    }
}
