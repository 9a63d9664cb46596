//! Statements: the app's timing of them, and the server's.

use std::collections::BTreeMap;

use holdup_recording::{Labels, metrics};

use super::other_users::OtherUsers;
use super::statement_owner;
use crate::case::Case;
use holdup_recording::words::ms;
use holdup_signals::app::accounts::{self, Account, SPEAKS};
use holdup_signals::app::timing::app_operations;
use holdup_signals::client::latency::{Origin, TRANSACTIONS};
use holdup_signals::database::plans::PLANS;
use holdup_signals::evidence::Evidence;
use holdup_signals::{DigestUse, View};

/// The app's timing of its database calls, from its metrics or else its spans: milliseconds of a
/// mean request, calls, and the evidence.
pub fn database_of_app(case: &Case<'_>) -> Option<(f64, f64, Evidence)> {
    let view = case.slow();
    let Ok(app) = app_operations(&view) else { return database_by_spans(case) };
    let completed = case.completed_in(view.window).ok()?.max(1.0);
    let per_request = app.ms * app.count / completed;
    Some((per_request, app.count / completed, app.evidence(ms(per_request), "", "")))
}

/// The same from its spans; none if they cover too few requests, or no database calls.
pub fn database_by_spans(case: &Case<'_>) -> Option<(f64, f64, Evidence)> {
    if !case.recording.tables.spans.rows.iter().any(|s| s.resource == "database") {
        return None;
    }
    let accounts = case.accounts();
    let told: Vec<&Account<'_>> = accounts.all.iter().filter(|a| a.has_app).collect();
    if accounts.sampling.ratio < SPEAKS {
        return None;
    }
    let per_request = accounts::mean(told.iter().copied(), |a| a.database_ms());
    let calls = accounts::mean(told.iter().copied(), |a| a.calls as f64);
    let labels = Labels::new([("resource", "database")]);
    let evidence = Evidence::new("spans", "duration_ns", labels, case.slow().window, ms(per_request), "", "");
    (calls > 0.0).then_some((per_request, calls, evidence))
}

/// Database calls of a mean request, from the app's metrics or its spans.
pub fn calls_per_request(case: &Case<'_>, completed: f64) -> Option<f64> {
    let by_metrics = app_operations(&case.slow()).ok().map(|app| app.count / completed);
    by_metrics.or_else(|| database_by_spans(case).map(|(_, calls, _)| calls))
}

/// The statement that most sessions in `true_state` run, and how many run it on average; none if
/// the recording has no sessions.
pub fn holding(view: &View<'_>, true_state: &str) -> Option<(String, f64)> {
    let busy = view.busy_sessions().ok()?;
    let mut by_statement = BTreeMap::<&str, f64>::new();
    for group in busy.groups.iter().filter(|g| g.true_state == true_state && !g.statement.is_empty()) {
        *by_statement.entry(&group.statement).or_default() += group.mean;
    }
    let (statement, sessions) = by_statement.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((statement.to_owned(), sessions))
}

/// How long the server executed statements for a request of the episode, milliseconds, all
/// statements together.
pub fn executed_ms(case: &Case<'_>) -> Option<f64> {
    let view = case.slow();
    let seconds: f64 = view.executed(&[]).ok()?.iter().map(|of| of.seconds).sum();
    Some(seconds / case.completed_in(view.window).ok()?.max(1.0) * 1e3)
}

/// A statement belongs to the requests from this many executions per request of an operation (or
/// per statement, if only the database is known); a report beside them runs far less often.
const PER_REQUEST: f64 = 0.5;
const PER_STATEMENT: f64 = 0.1;

/// Whether requests run it, if they can be followed into the database; else whether it runs as
/// often as requests of an operation that take at least as long, under an account of theirs.
pub fn is_of_requests(case: &Case<'_>, view: &View<'_>, of: &DigestUse, completed: f64) -> bool {
    if let Some(is_theirs) = statement_owner::is_of_requests(case, &of.digest) {
        return is_theirs;
    }
    if OtherUsers::for_case(case).is_ok_and(|others| others.run(&of.text)) {
        return false;
    }
    let each_ms = of.seconds / of.calls * 1e3;
    match case.origin {
        Origin::Client => {
            let rows = case.slow_requests().unwrap_or_default();
            case.operations.iter().any(|operation| {
                let (mut count, mut sum_ms) = (0.0, 0.0);
                for row in rows.iter().filter(|r| r.operation == operation.name) {
                    count += row.count() as f64;
                    sum_ms += holdup_signals::time::requests::response_ms(row) * row.count() as f64;
                }
                count > 0.0 && of.calls >= PER_REQUEST * count && sum_ms / count >= 0.5 * each_ms
            })
        }
        origin if origin.counts_requests() => of.calls >= PER_REQUEST * completed,
        _ => {
            let all = view
                .status(metrics::mysql::GLOBAL_STATUS_QUESTIONS)
                .or_else(|_| view.counter(TRANSACTIONS, &[], PLANS));
            all.is_ok_and(|all| of.calls >= PER_STATEMENT * all.delta)
        }
    }
}
