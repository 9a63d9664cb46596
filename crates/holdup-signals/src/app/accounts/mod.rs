//! The two sides of one request, joined by trace id: what the app waited for, and what the database
//! did. The time between them is then a number, not a suspicion.
//!
//! - `by_trace`, `waits`, `calls`: the rows of one request, the app's side, the database's side.
//! - `split`, [`account`]: both compared, within the client's time.
//! - `context`: what only the stretch as a whole shows, such as a queue's length.
//! - `sampling`: whether the traces that were kept are all, some, or only the slow ones.
//!
//! It does not judge; rules do. A request without a trace id, or whose trace no source reported,
//! has only the client's part. The ledger then uses the means of sampling intervals.

pub mod account;
mod by_trace;
mod calls;
mod context;
pub mod owner;
mod sampling;
mod split;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod waits;

use holdup_recording::Recording;
use holdup_recording::rows::{Request, Span};

pub use account::Account;
use by_trace::ByTrace;
pub use by_trace::trace_number;
pub use calls::Calls;
pub use context::Context;
pub use owner::{Amounts, Owner};
pub use sampling::TraceSampling;
pub use waits::{AppAccount, Resource, Wait, account_of, label};

use crate::View;
use crate::time::requests::{is_latency, response_ms};

/// Everything that reports single requests, by trace id.
pub struct Sources<'a> {
    spans: ByTrace<'a, Span>,
    calls: Calls<'a>,
}

impl<'a> Sources<'a> {
    /// Indexes a recording. Rows without a trace id belong to no request.
    pub fn new(recording: &'a Recording) -> Self {
        let needed = &["trace_id", "resource", "started_at", "duration_ns"];
        let spans = recording.tables.spans.with_columns(needed).unwrap_or_default();
        let spans = spans.iter().map(|s| (trace_number(&s.trace_id), s.started_at, s));
        Self { spans: ByTrace::new(spans), calls: Calls::new(recording) }
    }

    /// All database calls.
    pub fn calls(&self) -> &Calls<'a> {
        &self.calls
    }

    /// The spans of every trace, each in order of time.
    pub fn traces(&self) -> impl Iterator<Item = Vec<&'a Span>> + '_ {
        self.spans.traces()
    }

    /// The app's side of one trace.
    pub fn app(&self, trace: u128) -> Option<AppAccount<'a>> {
        account_of(self.spans.get(trace))
    }

    /// Both sides of `request`; only the client's without a trace.
    pub fn account(&self, request: &'a Request, around: &Context) -> Account<'a> {
        let Some(trace) = trace_of(request) else { return account::account(request, None, &[], &[], around) };
        let sessions: Vec<_> = self.calls.sessions_of(trace).collect();
        account::account(request, self.app(trace).as_ref(), &self.calls.of_trace(trace), &sessions, around)
    }
}

/// The trace of a request.
pub fn trace_of(request: &Request) -> Option<u128> {
    request.trace_id.as_deref().and_then(trace_number)
}

/// The accounts of the requests of one stretch.
pub struct Accounts<'a> {
    /// One for each request with a response time, in the order of rows.
    pub all: Vec<Account<'a>>,
    /// Which traces the app kept.
    pub sampling: TraceSampling,
    /// Sources that reported any of them, in words.
    pub sources: Vec<&'static str>,
    has_both_sides: bool,
}

impl<'a> Accounts<'a> {
    /// The accounts of `requests` in `view`.
    pub fn join(sources: &Sources<'a>, requests: &[&'a Request], view: &View<'_>) -> Self {
        let around = Context::collect(view);
        let with_time = requests.iter().copied().filter(|r| is_latency(r));
        let all: Vec<Account<'a>> = with_time.map(|request| sources.account(request, &around)).collect();
        let told = [
            ("the app's spans", all.iter().any(|a| a.has_app)),
            ("the server's own timing", all.iter().any(|a| a.has_server)),
            ("the packets", all.iter().any(|a| a.has_wire)),
        ];
        let named = told.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect();
        let has_both_sides = sources.calls.all().iter().any(|c| c.served_ms().is_some() && c.called_ms().is_some());
        Self { sampling: TraceSampling::classify(&all, view.recording), all, sources: named, has_both_sides }
    }

    /// Share (0-1) of joined requests; 0 without any.
    pub fn joined_ratio(&self) -> f64 {
        ratio(self.all.iter().filter(|a| a.is_joined), &self.all)
    }

    /// Whether packets were seen on both sides of the network, or on a machine without a network in
    /// between.
    pub fn has_both_sides(&self) -> bool {
        self.has_both_sides
    }

    /// Mean milliseconds that `owner` has in a joined request; none if too few are joined.
    pub fn mean_ms(&self, owner: Owner) -> Option<f64> {
        (self.joined_ratio() >= SPEAKS).then(|| mean(self.all.iter().filter(|a| a.is_joined), |a| a.amounts.ms(owner)))
    }

    /// The same over the requests that the app reported, for what only the app shows: its waits for
    /// anything but the database.
    pub fn mean_ms_of_app(&self, owner: Owner) -> Option<f64> {
        let told = || self.all.iter().filter(|a| a.has_app);
        (self.sampling.ratio >= SPEAKS).then(|| mean(told(), |a| a.amounts.ms(owner)))
    }

    /// The slow ones that took at least `from_ms`, slowest first.
    pub fn slow(&self, from_ms: f64) -> Vec<&Account<'a>> {
        let mut slow: Vec<&Account<'a>> = self.all.iter().filter(|a| response_ms(a.request) >= from_ms).collect();
        slow.sort_by(|a, b| b.response_ms().total_cmp(&a.response_ms()));
        slow
    }
}

/// From this share (0-1) of joined requests they stand for all.
pub const SPEAKS: f64 = 0.5;

/// Requests that `some` stand for as a share of those that `all` stand for.
fn ratio<'x, 'a: 'x>(some: impl Iterator<Item = &'x Account<'a>>, all: &[Account<'a>]) -> f64 {
    let count = |a: &Account<'_>| a.request.count() as f64;
    some.map(count).sum::<f64>() / all.iter().map(count).sum::<f64>().max(1.0)
}

/// Mean of `value` over the requests that `accounts` stand for; 0 without any.
pub fn mean<'x, 'a: 'x>(accounts: impl Iterator<Item = &'x Account<'a>>, value: impl Fn(&Account<'a>) -> f64) -> f64 {
    let (sum, count) = accounts.fold((0.0, 0.0), |(sum, count), a| {
        let n = a.request.count() as f64;
        (sum + value(a) * n, count + n)
    });
    if count > 0.0 { sum / count } else { 0.0 }
}
