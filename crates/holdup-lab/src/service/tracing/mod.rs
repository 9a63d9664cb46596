//! Spans of the service's own requests, as OpenTelemetry's packages would make them: the request,
//! the checkout of a connection, each statement, the call of the downstream service. Off by
//! default. It does not sample; the receiver may.

mod context;
mod export;
mod wire;

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use context::Context;
use export::Exporter;

use crate::service::ServiceError;
use crate::service::http::Request;

/// The activity that a span times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Activity {
    /// The request, under its route, with its status.
    Request(String, u16),
    /// The checkout of a connection.
    Checkout,
    /// A statement: the system's name, its peer's host and port, the text.
    Statement(&'static str, Option<(String, u16)>, String),
    /// The call of the downstream service.
    Downstream,
}

/// One span that has ended.
#[derive(Clone, Debug)]
pub struct Span {
    /// Its trace and parent.
    pub trace_id: u128,
    /// Its own id.
    pub id: u64,
    /// Id of its parent span; 0 without one.
    pub parent_id: u64,
    /// What it times.
    pub activity: Activity,
    /// When it began, nanoseconds since the Unix epoch.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Whether it failed.
    pub is_error: bool,
}

/// Settings: how the service reports the waits of requests.
#[derive(Debug, Default)]
pub struct Tracing {
    exporter: Option<Exporter>,
    /// Whether statements begin with the trace's id.
    pub in_statements: bool,
    /// Whether responses report where their time went.
    pub in_responses: bool,
}

/// One request's waits.
#[derive(Debug)]
pub struct Trace<'t> {
    tracing: &'t Tracing,
    /// Its ids.
    pub context: Context,
    begun: Instant,
    begun_ns: u64,
    sums: Mutex<Sums>,
}

/// Time by activity.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    pool: Duration,
    database: Duration,
    downstream: Duration,
}

impl Tracing {
    /// Follows `endpoint` (where spans are sent), `in_statements` and `in_responses`.
    ///
    /// # Errors
    ///
    /// If the endpoint is not an address, or the system refuses a thread.
    pub fn new(endpoint: Option<&str>, in_statements: bool, in_responses: bool) -> Result<Self, ServiceError> {
        let exporter = endpoint.map(Exporter::start).transpose()?;
        Ok(Self { in_statements: in_statements || exporter.is_some(), exporter, in_responses })
    }

    /// Sends the remaining spans, and no more after that.
    pub fn finish(&self) {
        if let Some(exporter) = &self.exporter {
            exporter.finish();
        }
    }

    /// The trace of a request, if any option needs one.
    pub fn begin(&self, request: &Request) -> Option<Trace<'_>> {
        if self.exporter.is_none() && !self.in_statements && !self.in_responses {
            return None;
        }
        let behind = u64::try_from(request.begun.elapsed().as_nanos()).unwrap_or_default();
        Some(Trace {
            tracing: self,
            context: Context::from_traceparent(request.field("traceparent")),
            begun: request.begun,
            begun_ns: now_ns().saturating_sub(behind),
            sums: Mutex::default(),
        })
    }
}

impl Trace<'_> {
    /// Counts a wait that began at `begun` and has just ended.
    pub fn waited(&self, activity: Activity, begun: Instant, is_error: bool) {
        let elapsed = begun.elapsed();
        {
            let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
            match activity {
                Activity::Checkout => sums.pool += elapsed,
                Activity::Statement(..) => sums.database += elapsed,
                Activity::Downstream => sums.downstream += elapsed,
                Activity::Request(..) => {}
            }
        }
        self.send(context::new_id(), self.context.span_id, activity, begun, elapsed, is_error);
    }

    /// `sql` with the trace's id in front, if requested. In front, because servers cut long texts
    /// at their end.
    pub fn statement(&self, sql: &str) -> String {
        if self.tracing.in_statements { format!("/*traceparent='{}'*/ {sql}", self.context) } else { sql.to_owned() }
    }

    /// The header field that reports where the time went, with its line end; empty unless
    /// requested.
    pub fn response_field(&self) -> String {
        if !self.tracing.in_responses {
            return String::new();
        }
        let sums = *self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        format!(
            "Server-Timing: total;dur={:.3}, pool;dur={:.3}, db;dur={:.3}, http;dur={:.3}\r\n",
            ms(self.begun.elapsed()),
            ms(sums.pool),
            ms(sums.database),
            ms(sums.downstream)
        )
    }

    /// Ends the request's own span.
    pub fn end(self, route: &str, status: u16) {
        let activity = Activity::Request(route.to_owned(), status);
        let (id, parent_id) = (self.context.span_id, self.context.parent_id);
        self.send(id, parent_id, activity, self.begun, self.begun.elapsed(), status >= 500);
    }

    fn send(&self, id: u64, parent_id: u64, activity: Activity, begun: Instant, elapsed: Duration, is_error: bool) {
        let Some(exporter) = &self.tracing.exporter else { return };
        // One reading of the wall clock per request: the spans of one request fit each other to the
        // nanosecond.
        let start_ns = self.begun_ns + u64::try_from(begun.duration_since(self.begun).as_nanos()).unwrap_or_default();
        let end_ns = start_ns + u64::try_from(elapsed.as_nanos()).unwrap_or_default();
        exporter.push(Span { trace_id: self.context.trace_id, id, parent_id, activity, start_ns, end_ns, is_error });
    }
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
}
