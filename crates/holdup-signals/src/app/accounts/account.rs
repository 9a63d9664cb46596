//! The account of one request: the client's time, split by what the app and the database reported
//! about the same request.
//!
//! Durations are comparable across clocks. Instants are compared only within one clock, with two
//! exceptions that tolerate a second: whether a queue was seen near a call, and the order of a
//! request's waits, for which the app's request is shifted into the client's.

use holdup_recording::rows::Request;

use super::calls::Call;
use super::context::Context;
use super::owner::{Amounts, Owner};
use super::split::{self, CallTime};
use super::waits::{AppAccount, Resource};
use crate::time::requests::{client_queue_ms, connect_ms, response_ms, send_lag_ms, service_ms};

/// Reading the ends of a span costs some microseconds each.
const SPAN_MS: f64 = 0.02;

/// One request.
#[derive(Clone, Debug)]
pub struct Account<'a> {
    /// The client's record of it.
    pub request: &'a Request,
    /// Whether the app reported it.
    pub has_app: bool,
    /// Whether the server timed at least one of its statements.
    pub has_server: bool,
    /// Whether packets of at least one of its statements were seen.
    pub has_wire: bool,
    /// Whether both sides are known: the app's (or, for load on the database, the client's) and the
    /// database's. A request without database calls needs neither.
    pub is_joined: bool,
    /// Database calls, by the source that counted most.
    pub calls: u64,
    /// Its time by owner.
    pub amounts: Amounts,
    asked_ms: f64,
}

impl Account<'_> {
    /// Response time, milliseconds.
    pub fn response_ms(&self) -> f64 {
        response_ms(self.request)
    }

    /// Time without an owner, milliseconds; negative if sources overlap.
    pub fn unexplained_ms(&self) -> f64 {
        self.response_ms() - self.amounts.sum()
    }

    /// Milliseconds in database calls of all owners, and of the part without one.
    pub fn database_ms(&self) -> f64 {
        self.asked_ms
    }

    /// Milliseconds with an owner. A database call seen from one side only counts as unassigned.
    pub fn assigned_ms(&self) -> f64 {
        let response_ms = self.response_ms();
        let known = (self.amounts.sum() - self.amounts.ms(Owner::Database)).min(response_ms);
        // Parts that exceed the whole are as wrong as parts that fall short of it.
        known - (-self.unexplained_ms()).max(0.0)
    }
}

/// How far to move the app's clock so that its request lies within the client's.
pub fn shift_ns(request: &Request, app: &AppAccount<'_>) -> i64 {
    let (Some(sent_at), Some(span)) = (request.sent_at, app.request) else { return 0 };
    let (earliest, latest) = (sent_at - span.started_at, request.done_at - span.started_at - span.duration_ns);
    if earliest <= latest { 0.clamp(earliest, latest) } else { (earliest + latest) / 2 }
}

/// Combines all that is known about `request`.
pub fn account<'a>(
    request: &'a Request,
    app: Option<&AppAccount<'_>>,
    calls: &[&Call<'_>],
    sessions: &[&holdup_recording::rows::Session],
    around: &Context,
) -> Account<'a> {
    let mut amounts = Amounts::default();
    amounts.add(Owner::ClientQueue, client_queue_ms(request), 0.0);
    amounts.add(Owner::Connect, connect_ms(request), 0.0);
    amounts.add(Owner::SendLag, send_lag_ms(request).unwrap_or(0.0), 0.0);
    let has_server = calls.iter().any(|c| c.execution.is_some());
    let has_wire = calls.iter().any(|c| c.server.is_some() || c.client.is_some());
    let mut known = Account {
        request,
        has_app: app.is_some(),
        has_server,
        has_wire,
        is_joined: false,
        calls: calls.len() as u64,
        amounts,
        asked_ms: 0.0,
    };
    let Some(service_ms) = service_ms(request) else { return known };
    let queued = QueueSighting {
        sampled: sessions.iter().any(|s| s.true_state == "queued"),
        seen: around.is_queued(request.sent_at.unwrap_or(request.intended_at), request.done_at),
    };
    // The longest lock wait among the sampled sessions: a lower bound.
    let locked = sessions.iter().filter(|s| s.true_state == "lock_wait").filter_map(|s| s.age_ns).max();
    let locked_ms = locked.unwrap_or(0) as f64 / 1e6;
    let split = |asked: CallTime| split::split(asked, calls, queued.is_so(), locked_ms, around);
    let Some(app) = app else {
        let asked = if around.client_is_app { CallTime::whole(service_ms) } else { CallTime::unknown() };
        known.amounts.add_all(&split(asked), 1.0);
        known.asked_ms = if around.client_is_app { service_ms } else { split(asked).sum() };
        known.is_joined = around.client_is_app && (has_server || has_wire);
        return known;
    };
    let asked = CallTime::by_app(app, calls, shift_ns(request, app));
    known.calls = known.calls.max(asked.calls);
    known.is_joined = has_server || has_wire || asked.calls == 0 && around.app_times_database;
    let waited_ms = add_waits(app, &mut known.amounts);
    let database = split(asked);
    // The driver's own part of a call belongs to the app, and `database` already has it.
    known.amounts.add_all(&database, 1.0);
    known.asked_ms = if asked.calls > 0 { asked.counted_ms } else { database.sum() };
    if let Some(app_ms) = app.request_ms() {
        // A span that outlasts the response (logged after it) does not count beyond the client's
        // time.
        let app_ms = app_ms.min(service_ms);
        let (network, other) = (service_ms - app_ms, app_ms - waited_ms - known.asked_ms);
        known.amounts.add(Owner::Network, network.max(0.0), SPAN_MS);
        // An app that does not time its database calls may have spent all of that time in them.
        let is_timed = asked.calls > 0 || around.app_times_database && calls.is_empty();
        if is_timed || has_wire && calls.iter().all(|c| c.called_ms().or(c.served_ms()).is_some()) {
            known.amounts.add(Owner::AppOther, other.max(0.0), SPAN_MS);
        }
    }
    known
}

/// Adds the app's own waits to `amounts`, and returns their sum in milliseconds.
fn add_waits(app: &AppAccount<'_>, amounts: &mut Amounts) -> f64 {
    let waits = [
        (Owner::PoolWait, Resource::Pool),
        (Owner::Downstream, Resource::Http),
        (Owner::Cache, Resource::Cache),
        (Owner::Queue, Resource::Queue),
    ];
    let mut waited_ms = 0.0;
    for (owner, resource) in waits {
        let ms = app.waited_ms(resource);
        amounts.add(owner, ms, app.waits_for(resource).count() as f64 * SPAN_MS);
        waited_ms += ms;
    }
    waited_ms
}

/// Whether its statements waited in front of the database.
struct QueueSighting {
    /// One of its own sessions was seen queueing.
    sampled: bool,
    /// Other statements were seen queueing at that time.
    seen: bool,
}

impl QueueSighting {
    fn is_so(&self) -> bool {
        self.sampled || self.seen
    }
}
