//! Sessions within a loop: which session sends next, how its request is filled in, what the
//! response means for it. A session decides what is sent, never when: in an open model the schedule
//! or the session's last response decides that.

use std::time::Duration;

use crate::script::program::Form;
use crate::script::session::Moment;
use crate::script::{Failed, Response, fill};

use super::Loop;
use super::demand::Demand;
use crate::engine::LOOKED_AT_BYTES;
use crate::engine::lanes::{InFlight, Kept};
use crate::engine::outcome::Outcome;
use crate::engine::plan::Plan;
use crate::engine::visits::{NOBODY, Step, Turn};
use crate::model::Load;
use crate::scenario::RateOf;
use crate::schedule::Arrival;

/// A user whose session could not go on retries after this time.
const RETRY_NS: i64 = 100_000_000;

/// Most sessions in a row that end without a request, before an arrival counts as having none.
const MOST_EMPTY: usize = 100;

impl Loop<'_> {
    fn moment(&self, at: i64) -> Moment {
        Moment { monotonic_ns: at, unix_ns: at + self.books.unix_offset() }
    }

    /// Requests that are due and wait for a slot.
    pub(super) fn waiting(&self) -> u64 {
        self.demand.waiting() + self.visits.as_ref().map_or(0, |v| v.due.len() as u64)
    }

    /// Sessions that have finished thinking go on.
    pub(super) fn wake_sessions(&mut self, now: i64) {
        while let Some((until, id)) = self.visits.as_mut().and_then(|v| v.next_done(now)) {
            self.proceed(id, until, self.phase_at(until));
        }
    }

    /// Each arrival is a session. It begins when it is due, whether or not a slot is free: it may
    /// think first, or send no request at all.
    pub(super) fn begin_sessions(&mut self) {
        let first = self.plan.visits.as_ref().map_or(0, |(_, first)| *first);
        loop {
            let (Demand::Open(due), Some(visits)) = (&mut self.demand, &mut self.visits) else { return };
            let Some((arrival, at)) = due.take() else { return };
            let id = visits.begin(first + self.plan.turns.of(arrival.number));
            // Sessions that wake before then come first.
            self.wake_sessions(at);
            self.proceed(id, at, arrival.phase);
        }
    }

    /// The request of the session that an arrival continues or begins; none if the session failed
    /// at once, which is recorded.
    pub(super) fn visit(&mut self, arrival: Arrival, at: i64) -> Option<InFlight> {
        let first = self.plan.visits.as_ref().map_or(0, |(_, first)| *first);
        let flow = first + self.plan.turns.of(arrival.number);
        let now = self.moment(at);
        let visits = self.visits.as_mut()?;
        let mut id = visits.take_ready(flow).unwrap_or_else(|| visits.begin(flow));
        for _ in 0..MOST_EMPTY {
            match visits.go_on(id, now) {
                Turn::Asks(request) => return self.fill(id, request, at, arrival.phase),
                // The schedule has decided that the request is sent now.
                Turn::Thinks(_) => {}
                Turn::Ended => id = visits.begin(flow),
                Turn::Failed(failed, operation) => {
                    self.failed_alone(failed, operation, at, arrival.phase);
                    return None;
                }
            }
        }
        visits.end(id);
        self.failed_alone(Failed::Template, 0, at, arrival.phase);
        None
    }

    /// The request of a session that was due by itself.
    pub(super) fn visit_due(&mut self) -> Option<InFlight> {
        let Step { at, id, phase } = self.visits.as_mut()?.due.pop_front()?;
        let now = self.moment(at);
        match self.visits.as_mut()?.go_on(id, now) {
            Turn::Asks(request) => self.fill(id, request, at, phase),
            _ => None,
        }
    }

    /// Index of an open model's phase at `at`.
    fn phase_at(&self, at: i64) -> u32 {
        match &self.plan.scenario.load {
            Load::Open(schedule) => schedule.phase_at(Duration::from_nanos((at - self.started).max(0) as u64)) as u32,
            Load::Closed(_) => 0,
        }
    }

    /// A user's next step, due at `due`.
    pub(super) fn ask_session(&mut self, lane: u32, due: i64) {
        let first = self.plan.visits.as_ref().map_or(0, |(_, first)| *first);
        let now = self.moment(due);
        for _ in 0..MOST_EMPTY {
            let (Demand::Closed(users), Some(visits)) = (&mut self.demand, &mut self.visits) else { return };
            let place = &mut self.lane_sessions[lane as usize];
            if !users.takes_part(lane, due) {
                // A user who leaves between two requests does not come back as the same user.
                visits.end(*place);
                *place = NOBODY;
                return;
            }
            let phase = users.phase_at(due);
            if *place == NOBODY {
                if !users.may_begin() {
                    return;
                }
                *place = visits.begin(first + self.plan.turns.of(users.number()));
            }
            let id = *place;
            match visits.go_on(id, now) {
                Turn::Asks(request) => {
                    self.admitted += 1;
                    match self.fill(id, request, due, phase) {
                        Some(request) => self.place(lane, request),
                        None => self.think_after_failure(lane, due),
                    }
                    return;
                }
                Turn::Thinks(length) => return users.think(lane, due.saturating_add(length)),
                Turn::Ended => {
                    *place = NOBODY;
                    if users.think_ns > 0 {
                        let until = due + users.think_ns;
                        return users.think(lane, until);
                    }
                }
                Turn::Failed(failed, operation) => {
                    *place = NOBODY;
                    self.admitted += 1;
                    self.failed_alone(failed, operation, due, phase);
                    return self.think_after_failure(lane, due);
                }
            }
        }
        self.think(lane, due + RETRY_NS);
    }

    /// A user whose request failed waits, and also thinks if that was the end of a session.
    fn think_after_failure(&mut self, lane: u32, at: i64) {
        if let Demand::Closed(users) = &mut self.demand {
            let is_over = self.lane_sessions[lane as usize] == NOBODY;
            users.think(lane, at + RETRY_NS.max(if is_over { users.think_ns } else { 0 }));
        }
    }

    fn think(&mut self, lane: u32, until: i64) {
        if let Demand::Closed(users) = &mut self.demand {
            users.think(lane, until);
        }
    }

    /// The outcome of a failure: unfinished if the session ended as planned because no row is left.
    fn outcome_of(&self, failed: Failed) -> Outcome {
        let is_over = self.visits.as_ref().is_some_and(|visits| visits.script.is_over());
        if failed == Failed::FeederDry && is_over { Outcome::Unfinished } else { Outcome::of_session(failed) }
    }

    /// Records a failure without a request as one that was never sent.
    fn failed_alone(&mut self, failed: Failed, operation: u32, at: i64, phase: u32) {
        let mut request = InFlight::new(0, operation, phase, at, at);
        let outcome = self.outcome_of(failed);
        self.books.enter(&mut request, outcome, at, false);
    }

    /// Fills in a session's request; none if that failed, which is recorded.
    fn fill(&mut self, id: u32, index: u32, due: i64, phase: u32) -> Option<InFlight> {
        let now = self.moment(due);
        let plan = self.plan;
        let visits = self.visits.as_mut()?;
        let number = visits.next_number();
        let (visit, script, filled) = visits.with(id)?;
        visit.pending = None;
        let asked = &script.requests[index as usize];
        let mut request = InFlight { session: id, number, ..InFlight::new(index, asked.operation, phase, due, due) };
        let done = visit.session.draw_rows(script, &asked.feeders).and_then(|()| {
            if asked.form.is_constant() {
                return Ok(false);
            }
            visit
                .session
                .with_context(script, now, number, |context| match &asked.form {
                    Form::Http { .. } => filled.http(&asked.form, context),
                    Form::Sql { .. } => {
                        let statements = fill::statements(&asked.form, context)?;
                        request.instead = Some(Box::new(plan.put_statements(asked, statements)));
                        Ok(())
                    }
                })
                .map(|()| true)
        });
        match done {
            Ok(_) if self.is_sql => {
                if asked.needs.head || asked.needs.body || !asked.checks.is_empty() || !asked.captures.is_empty() {
                    request.kept = Some(Box::<Kept>::default());
                }
                Some(request)
            }
            Ok(is_filled) => {
                let own = &plan.requests[index as usize];
                let path = if is_filled { filled.path.as_str() } else { own.path.as_str() };
                let cookies = visit.cookies.header(path);
                if is_filled {
                    let Form::Http { method, .. } = &asked.form else { return None };
                    if let Some(cookies) = cookies {
                        filled.headers.push(("Cookie".to_owned(), cookies));
                    }
                    let body = filled.body.as_deref();
                    let laid_out = plan.lay_out(asked, method, &filled.path, &filled.headers, body);
                    request.instead = Some(Box::new(laid_out));
                } else if let Some(cookies) = cookies {
                    request.instead = Some(Box::new(Plan::with_cookies(own, &cookies)));
                }
                // Every check and capture may ask for the body's size.
                if self.is_http2 && (!asked.checks.is_empty() || !asked.captures.is_empty()) {
                    let most = if asked.needs.body { LOOKED_AT_BYTES as usize } else { 0 };
                    request.kept = Some(Box::new(Kept::of_body(most)));
                }
                Some(request)
            }
            Err(failed) => {
                let outcome = self.outcome_of(failed);
                self.books.enter(&mut request, outcome, due, false);
                self.answered(id, index, false, due);
                None
            }
        }
    }

    /// Applies a response to its session: the outcome by its checks, and the captured values.
    pub(super) fn judge(&mut self, lane: u32, outcome: Outcome, at: i64) -> Outcome {
        let Some(request) = self.lanes.get(lane) else { return outcome };
        let now = Moment { monotonic_ns: at, unix_ns: at + self.books.unix_offset() };
        let Some(visits) = self.visits.as_mut().filter(|_| request.session != NOBODY) else { return outcome };
        let Some((visit, script, _)) = visits.with(request.session) else { return outcome };
        let asked = &script.requests[request.request as usize];
        let is_whole = outcome == Outcome::Ok || outcome == Outcome::HttpStatus && asked.judges_status;
        if !is_whole || asked.checks.is_empty() && asked.captures.is_empty() {
            return outcome;
        }
        let connection = &self.connections[self.lanes.connection(lane) as usize];
        let mut fields: Vec<(&[u8], &[u8])> = Vec::new();
        let mut columns: Vec<(&str, Option<&[u8]>)> = Vec::new();
        let (mut body, mut is_cut, mut body_bytes, mut rows): (&[u8], bool, u64, u64) = (&[], false, 0, 0);
        if let Some(kept) = &request.kept {
            if self.is_sql {
                columns.extend(kept.fields.iter().map(|(n, v)| (std::str::from_utf8(n).unwrap_or(""), v.as_deref())));
            } else {
                fields.extend(kept.fields.iter().map(|(n, v)| (&**n, v.as_deref().unwrap_or_default())));
            }
            (body, is_cut, body_bytes, rows) = (&kept.body, kept.is_cut(), kept.bytes, kept.rows);
        } else if let Some(parser) = connection.http1() {
            if asked.needs.head {
                fields.extend(parser.fields());
            }
            (body, is_cut, body_bytes) = (parser.body(), parser.body_is_cut(), parser.body_bytes());
        }
        let response = Response {
            status: request.status,
            fields: &fields,
            body,
            body_is_cut: is_cut,
            body_bytes,
            rows,
            columns: &columns,
        };
        match visit.session.take(script, asked, &response, now, request.number) {
            Ok(()) => Outcome::Ok,
            Err(failed) => Outcome::of_session(failed),
        }
    }

    /// A session's request has ended: continue the session.
    pub(super) fn answered(&mut self, id: u32, request: u32, is_well: bool, at: i64) {
        let Some(visits) = &mut self.visits else { return };
        let Some((visit, script, _)) = visits.with(id) else { return };
        if !visit.session.ended(script, &script.requests[request as usize], is_well) {
            visits.end(id);
            if let Some(place) = self.lane_sessions.iter_mut().find(|place| **place == id) {
                *place = NOBODY;
            }
            return;
        }
        if !self.demand.is_closed() {
            self.proceed(id, at, self.phase_at(at));
        }
    }

    /// An open model's session goes on at `at`, in `phase`.
    fn proceed(&mut self, id: u32, at: i64, phase: u32) {
        let now = self.moment(at);
        let Some(visits) = &mut self.visits else { return };
        match visits.go_on(id, now) {
            Turn::Asks(_) if self.plan.scenario.rate_of == RateOf::Requests => visits.is_ready(id),
            Turn::Asks(_) => {
                self.admitted += 1;
                visits.due.push_back(Step { at, id, phase });
            }
            Turn::Thinks(length) => visits.think(id, at.saturating_add(length)),
            Turn::Ended => {}
            Turn::Failed(failed, operation) => {
                self.admitted += 1;
                self.failed_alone(failed, operation, at, phase);
            }
        }
    }
}
