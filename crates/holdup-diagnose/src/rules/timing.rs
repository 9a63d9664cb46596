//! What several rules ask about time inside and in front of the database: the app's account of its
//! statements beside the server's own.

use holdup_recording::Labels;

use super::{MATTERS, Outcome};
use crate::accounts::{self, Account, SPEAKS};
use crate::case::Case;
use crate::verdict::Evidence;
pub use holdup_signals::timing::*;

/// Clears a cause that lies inside the database by the app's own timing of its statements, which bounds every wait in it; none if
/// that is not small, or not known. `what` says that it has the cause in it.
pub fn clear_by_bound(case: &Case<'_>, what: &str) -> Option<Outcome> {
    let (per_request, _, evidence) = database_of_app(case)?;
    (case.share_inside(per_request) < MATTERS).then(|| {
        let text = format!("a request spent {} in the database, {what}", super::ms(per_request));
        Outcome::Cleared(vec![evidence.saying("most of the delay", text)])
    })
}

/// The app's account of its database calls, by its metrics or else its spans: milliseconds of a mean request, calls, and where
/// that is said.
pub fn database_of_app(case: &Case<'_>) -> Option<(f64, f64, Evidence)> {
    let view = case.slow();
    let Ok(app) = app_operations(&view) else { return database_by_spans(case) };
    let completed = case.completed_in(view.window).ok()?.max(1.0);
    let per_request = app.ms * app.count / completed;
    Some((per_request, app.count / completed, app.evidence(super::ms(per_request), "", "")))
}

/// The same by its spans; none if they are of too few requests, or of no call of a database.
pub fn database_by_spans(case: &Case<'_>) -> Option<(f64, f64, Evidence)> {
    if !case.recording.tables.spans.rows.iter().any(|s| s.resource == "database") {
        return None;
    }
    let accounts = case.accounts();
    let told: Vec<&Account<'_>> = accounts.all.iter().filter(|a| a.has_app).collect();
    if accounts.kept.ratio < SPEAKS {
        return None;
    }
    let per_request = accounts::mean(told.iter().copied(), |a| a.database_ms());
    let calls = accounts::mean(told.iter().copied(), |a| a.calls as f64);
    let labels = Labels::of([("resource", "database")]);
    let evidence = Evidence::new("spans", "duration_ns", labels, case.slow().window, super::ms(per_request), "", "");
    (calls > 0.0).then_some((per_request, calls, evidence))
}

/// Database calls of a mean request, by the app's metrics or its spans.
pub fn calls_per_request(case: &Case<'_>, completed: f64) -> Option<f64> {
    let by_metrics = app_operations(&case.slow()).ok().map(|app| app.count / completed);
    by_metrics.or_else(|| database_by_spans(case).map(|(_, calls, _)| calls))
}

/// How long a request of the degraded stretch holds pooled connections, milliseconds, all its uses together.
pub fn connection_held_ms(case: &Case<'_>) -> Option<f64> {
    let view = case.slow();
    let held = view.mean(POOL_USE, &[], APP_METRICS);
    let Ok(held) = held.or_else(|_| view.mean("hikaricp_connections_usage_seconds", &[], APP_METRICS)) else {
        // For its calls of the database at least it is held.
        return database_by_spans(case).map(|(ms, ..)| ms);
    };
    Some(held.ms * held.count / case.completed_in(view.window).ok()?.max(1.0))
}
