//! Connections that PostgreSQL refused, by its log.

use holdup_recording::rows::Event;
use holdup_signals::View;

/// When the server's log reported refused connections (SQLSTATE 53300, or the words for it where
/// `log_line_prefix` has no `%e`), and how many.
pub(super) fn refusals(view: &View<'_>) -> Vec<(i64, f64)> {
    let events = view.recording.tables.events.with_columns(&["observed_at", "kind", "labels"]).unwrap_or_default();
    let is_refusal =
        |e: &Event| e.labels.get("sqlstate") == Some("53300") || e.labels.get("error") == Some("too many connections");
    let is_one = |e: &&Event| e.kind == "error" && is_refusal(e);
    let here = events.iter().filter(is_one).filter(|e| view.window.contains(e.observed_at));
    here.map(|e| (e.observed_at, e.labels.get("count").and_then(|n| n.parse().ok()).unwrap_or(1.0))).collect()
}
