//! Checkpoints: when one writes in a hurry, and whether the log's size is what starts them.

use std::collections::BTreeSet;

use holdup_recording::words::percent;
use holdup_recording::{Labels, metrics};
use holdup_signals::evidence::Evidence;
use holdup_signals::{View, Window};

use crate::case::Case;

/// A sample speaks for this long before and after it, nanoseconds.
const REACH_NS: i64 = 500_000_000;

/// What the checkpointer of PostgreSQL waits for between checkpoints, and between the writes of one
/// that is spread over its time.
const AT_LEISURE: &[&str] = &["CheckpointerMain", "CheckpointWriteDelay"];

/// A capacity below this share (0-1) of the former one has been cut.
const CUT: f64 = 0.8;

const CHECKPOINTER: [(&str, &str); 1] = [("backend_type", "checkpointer")];

const ACTIVITY: &str = metrics::postgresql::ACTIVITY_SESSIONS.name;

/// Instants at which PostgreSQL's checkpointer was seen, and those at which it wrote or flushed
/// without a pause.
fn instants(view: &View<'_>) -> (BTreeSet<i64>, BTreeSet<i64>) {
    let (mut all, mut hurried) = (BTreeSet::new(), BTreeSet::new());
    for ((_, labels), series) in view.index.series(ACTIVITY, &CHECKPOINTER) {
        let event = labels.get("wait_event").unwrap_or_default();
        for (at, _) in series.iter().filter(|(at, count)| view.window.contains(*at) && *count > 0.0) {
            all.insert(*at);
            if !event.is_empty() && !AT_LEISURE.contains(&event) {
                hurried.insert(*at);
            }
        }
    }
    (all, hurried)
}

/// When PostgreSQL's checkpointer wrote or flushed without a pause.
pub fn hurried(view: &View<'_>) -> Vec<Window> {
    let (_, hurried) = instants(view);
    hurried.into_iter().map(|at| Window { from: at - REACH_NS, to: at + REACH_NS }).collect()
}

/// The share (0-1) of the instants at which it did so, with evidence; none if it was not seen so.
pub fn at_work(view: &View<'_>) -> Option<(f64, Evidence)> {
    let (all, hurried) = instants(view);
    let ratio = hurried.len() as f64 / all.len().max(1) as f64;
    let text = format!("the checkpointer wrote or flushed without a pause in {} of the samples", percent(ratio));
    let labels = Labels::new([("metric", ACTIVITY), CHECKPOINTER[0]]);
    let told = Evidence::new("samples", "value", labels, view.window, percent(ratio), "now and then", text);
    (!hurried.is_empty()).then_some((ratio, told))
}

/// Evidence of a session that asks for checkpoints by the statement CHECKPOINT; none without one.
pub fn asked_by_hand(view: &View<'_>) -> Option<Evidence> {
    let rows = view.sessions(&["observed_at", "user", "true_state", "digest_text"]).ok()?;
    let is_checkpoint = |text: &str| text.trim_end_matches(';').trim().eq_ignore_ascii_case("CHECKPOINT");
    let mut asking = rows
        .iter()
        .filter(|row| row.true_state == "executing" && row.digest_text.as_deref().is_some_and(is_checkpoint));
    let first = asking.next()?;
    let instants: BTreeSet<i64> = asking.map(|row| row.observed_at).chain([first.observed_at]).collect();
    let ratio = instants.len() as f64 / view.session_instants().max(1) as f64;
    let user = first.user.as_deref().map_or_else(String::new, |user| format!(" of {user}"));
    let text = format!("a session{user} ran CHECKPOINT in {} of the samples", percent(ratio));
    let labels = Labels::new([("true_state", "executing")]);
    Some(Evidence::new("sessions", "digest_text", labels, view.window, percent(ratio), "none", text))
}

/// Whether pages have to be written early for another reason than the changes themselves: the
/// log's capacity was cut, or a session asks for checkpoints. More changes are then not the root.
pub fn are_forced(case: &Case<'_>) -> bool {
    let capacity = |view: &View<'_>| view.gauge(metrics::mysql::INNODB_LOG_CAPACITY_BYTES.name, &[], "").ok();
    let slow = case.slow();
    let is_cut = case.baseline().is_some_and(|baseline| {
        let (now, before) = (capacity(&slow), capacity(&baseline));
        now.zip(before).is_some_and(|(now, before)| now.mean < CUT * before.mean)
    });
    is_cut || asked_by_hand(&slow).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Judged as _, SyntheticRecording};

    #[test]
    fn a_checkpointer_that_never_pauses_hurries() {
        let made = |event: &'static str| {
            let labels = [("backend_type", "checkpointer"), ("wait_event", event)];
            SyntheticRecording::new(10).requests(10, 10).gauge("postgresql://db", ACTIVITY, &labels, 1.0)
        };
        assert!(!made("DataFileSync").seen(hurried).is_empty());
        assert!((made("DataFileSync").seen(|view| at_work(view).unwrap().0) - 1.0).abs() < 1e-9);
        for leisure in ["CheckpointerMain", "CheckpointWriteDelay"] {
            assert!(made(leisure).seen(hurried).is_empty(), "{leisure}");
        }
        assert!(!made("DataFileSync").with(are_forced));
    }
}
