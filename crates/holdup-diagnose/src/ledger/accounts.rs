//! The joined requests as the verdict shows them: how many slow requests are joined, how much of
//! their time has an owner, and the slowest one by one.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::Part;
use crate::case::Case;
use crate::ledger::little::{self, Check};
use holdup_recording::words::round;
use holdup_signals::app::accounts::{Account, Accounts, Context, Owner, account, label, trace_number, trace_of};
use holdup_signals::time::requests::{service_ms, unloaded_ms};
use holdup_signals::yardstick::SERVICE_SLOWED;

/// Most single requests to show.
const EXAMPLES: usize = 20;
/// Most waits of one request to show: the longest.
const WAITS: usize = 30;

/// The result of joining both sides of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccountsReport {
    /// Response time from which a request counts as slow, milliseconds: twice its unloaded time.
    pub slow_from_ms: f64,
    /// Slow requests of the episode, or of all if nothing is degraded.
    pub requests: u64,
    /// Those with both sides joined.
    pub joined: u64,
    /// Share (0-1) of the joined ones' response time that has one owner.
    pub assigned_ratio: f64,
    /// Sources that reported them.
    pub sources: Vec<String>,
    /// Which requests the app's traces cover, if not all; none if all.
    pub sampling: Option<String>,
    /// A summary in one sentence.
    pub text: String,
    /// Parts compared with sampled counts.
    pub checks: Vec<Check>,
    /// Single requests, slowest first.
    pub examples: Vec<RequestReport>,
}

/// The ledger of one request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestReport {
    /// Its trace id.
    pub trace_id: String,
    /// Its operation.
    pub operation: String,
    /// When it was due, seconds from the start of the recording.
    pub at_s: f64,
    /// Its outcome.
    pub outcome: String,
    /// Response time, milliseconds.
    pub response_ms: f64,
    /// Whether both sides are joined.
    pub joined: bool,
    /// Database calls.
    pub calls: u64,
    /// Its parts, in the order in which it met them; only those with time.
    pub parts: Vec<Part>,
    /// Milliseconds without an owner; negative if sources overlap.
    pub unexplained_ms: f64,
    /// Waits of the app, in order of time.
    pub waits: Vec<WaitReport>,
}

/// One wait of one request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitReport {
    /// `database`, `pool`, `http`, `cache`, `queue`.
    pub resource: String,
    /// The details: the statement, the downstream service, the span's name.
    pub what: String,
    /// When it began, milliseconds after the request was due; none for a sum of waits.
    pub from_ms: Option<f64>,
    /// How long it took, milliseconds.
    pub ms: f64,
    /// Number of calls in the sum.
    pub calls: u64,
}

/// Response time from which a request of `case` is slow, milliseconds.
pub(crate) fn slow_from_ms(case: &Case<'_>) -> f64 {
    let baseline = case.degradation.as_ref().and_then(|c| c.baseline).and_then(|w| case.requests_in(w).ok());
    let rows = baseline
        .filter(|rows| !rows.is_empty())
        .or_else(|| case.slow_requests().ok().map(<[_]>::to_vec))
        .unwrap_or_default();
    SERVICE_SLOWED * unloaded_ms(rows)
}

/// The report of a case; none if no request can be followed by a trace id.
pub(crate) fn report(case: &Case<'_>) -> Option<AccountsReport> {
    let accounts = case.accounts();
    if !accounts.all.iter().any(|a| a.has_app || a.has_server || a.has_wire) {
        return None;
    }
    let slow_from_ms = slow_from_ms(case);
    let slow = accounts.slow(slow_from_ms);
    let count = |a: &&&Account<'_>| a.request.count();
    let joined: Vec<&&Account<'_>> = slow.iter().filter(|a| a.is_joined).collect();
    let weighed = |of: fn(&Account<'_>) -> f64| joined.iter().map(|a| of(a) * a.request.count() as f64).sum::<f64>();
    let (assigned, response) = (weighed(|a| a.assigned_ms().max(0.0)), weighed(|a| a.response_ms()));
    let assigned_ratio = if response > 0.0 { (assigned / response).clamp(0.0, 1.0) } else { 0.0 };
    let (requests, of_joined) = (slow.iter().map(|a| a.request.count()).sum(), joined.iter().map(count).sum());
    let text = text(accounts, requests, of_joined, assigned_ratio);
    Some(AccountsReport {
        slow_from_ms: round(slow_from_ms, 3),
        requests,
        joined: of_joined,
        assigned_ratio: round(assigned_ratio, 4),
        sources: accounts.sources.iter().map(|s| (*s).to_owned()).collect(),
        sampling: accounts.sampling.text.clone(),
        text,
        checks: little::checks(accounts, &case.slow()),
        examples: slow
            .iter()
            .filter(|a| a.has_app || a.is_joined)
            .take(EXAMPLES)
            .map(|a| of_request(case, a))
            .collect(),
    })
}

fn text(accounts: &Accounts<'_>, requests: u64, joined: u64, assigned_ratio: f64) -> String {
    let thousands = |n: u64| holdup_recording::words::thousands(n as f64);
    let percent = holdup_recording::words::percent;
    if requests == 0 {
        return "no request was slow".to_owned();
    }
    if joined == 0 {
        let told = accounts.sources.join(" and ");
        let lacks = match () {
            () if !accounts.sources.contains(&"the app's spans") => {
                "--watch otlp, with the app's OpenTelemetry exporter pointed at it"
            }
            () => {
                "put the trace id first in each statement (docs/trace-ids.md) and --watch mysql://USER@HOST:PORT; or --watch wire:PORT"
            }
        };
        return format!(
            "only {told} reported the {} slow requests; to join the other side: {lacks}",
            thousands(requests)
        );
    }
    format!(
        "both sides of {} of {} slow requests were joined; {} of their time has an owner",
        percent(joined as f64 / requests as f64),
        thousands(requests),
        percent(assigned_ratio)
    )
}

/// The ledger of the request with `trace_id`; none if the judged part has no such request.
pub fn request(case: &Case<'_>, trace_id: &str) -> Option<RequestReport> {
    let wanted = trace_number(trace_id.trim().to_ascii_lowercase().as_str())?;
    let rows = case.requests_in(case.whole()).ok()?;
    let row = rows.into_iter().find(|r| trace_of(r) == Some(wanted))?;
    let around = Context::collect(&case.slow());
    Some(of_request(case, &case.sources().account(row, &around)))
}

fn of_request(case: &Case<'_>, account: &Account<'_>) -> RequestReport {
    let request = account.request;
    let parts = Owner::ALL.iter().map(|o| (o.name(), account.amounts.ms(*o), account.amounts.error_ms(*o)));
    let parts = parts.filter(|(_, ms, _)| round(ms.abs(), 3) > 0.0);
    RequestReport {
        trace_id: request.trace_id.clone().unwrap_or_default(),
        operation: request.operation.clone(),
        at_s: round((request.intended_at - case.recording.manifest.started_at) as f64 / 1e9, 3),
        outcome: request.outcome.clone(),
        response_ms: round(account.response_ms(), 3),
        joined: account.is_joined,
        calls: account.calls,
        parts: parts
            .map(|(part, ms, error_ms)| Part {
                part: part.to_owned(),
                ms: round(ms, 3),
                error_ms: round(error_ms.min(service_ms(request).unwrap_or(0.0)), 3),
            })
            .collect(),
        unexplained_ms: round(account.unexplained_ms(), 3),
        waits: waits(case, account),
    }
}

fn waits(case: &Case<'_>, account: &Account<'_>) -> Vec<WaitReport> {
    let Some(app) = trace_of(account.request).and_then(|trace| case.sources().app(trace)) else { return Vec::new() };
    let shift_ns = account::shift_ns(account.request, &app) - account.request.intended_at;
    let mut waits: Vec<_> = app.waits.iter().collect();
    waits.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    waits.truncate(WAITS);
    waits.sort_by_key(|w| w.span.started_at);
    waits
        .into_iter()
        .map(|w| WaitReport {
            resource: w.span.resource.clone(),
            what: label(w.span).to_owned(),
            from_ms: (!w.is_sum).then(|| round((w.span.started_at + shift_ns) as f64 / 1e6, 3)),
            ms: round(w.ms, 3),
            calls: w.span.calls.max(1).unsigned_abs(),
        })
        .collect()
}
