//! Sessions within a loop: which session sends next, how its request is filled in, what the
//! response means for it. A session decides what is sent, never when: in an open model the schedule
//! or the session's last response decides that.

use std::time::Duration;

use crate::script::program::Form;
use crate::script::session::Moment;
use crate::script::{Response, StepFailure};

use super::Loop;
use super::demand::Demand;
use crate::engine::LOOKED_AT_BYTES;
use crate::engine::outcome::Outcome;
use crate::engine::sessions::{DueRequest, NO_SESSION, NextAction};
use crate::engine::slots::{InFlight, KeptResponse};
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
        self.demand.waiting() + self.sessions.as_ref().map_or(0, |v| v.due.len() as u64)
    }

    /// Sessions that have finished thinking go on.
    pub(super) fn wake_sessions(&mut self, now: i64) {
        while let Some((until, id)) = self.sessions.as_mut().and_then(|v| v.next_awake(now)) {
            self.proceed(id, until, self.phase_at(until));
        }
    }

    /// Each arrival is a session. It begins when it is due, whether or not a slot is free: it may
    /// think first, or send no request at all.
    pub(super) fn begin_sessions(&mut self) {
        let first = self.plan.sessions.as_ref().map_or(0, |(_, first)| *first);
        loop {
            let (Demand::Open(due), Some(sessions)) = (&mut self.demand, &mut self.sessions) else { return };
            let Some((arrival, at)) = due.take() else { return };
            let id = sessions.begin(first + self.plan.turns.index(arrival.phase, arrival.number));
            // Sessions that wake before then come first.
            self.wake_sessions(at);
            self.proceed(id, at, arrival.phase);
        }
    }

    /// The request of the session that an arrival continues or begins; none if the session failed
    /// at once, which is recorded.
    pub(super) fn session_request(&mut self, arrival: Arrival, at: i64) -> Option<InFlight> {
        let first = self.plan.sessions.as_ref().map_or(0, |(_, first)| *first);
        let flow = first + self.plan.turns.index(arrival.phase, arrival.number);
        let now = self.moment(at);
        let sessions = self.sessions.as_mut()?;
        let mut id = sessions.take_ready(flow).unwrap_or_else(|| sessions.begin(flow));
        for _ in 0..MOST_EMPTY {
            match sessions.go_on(id, now) {
                NextAction::Sends(request) => return self.fill(id, request, at, arrival.phase),
                // The schedule has decided that the request is sent now.
                NextAction::Thinks(_) => {}
                NextAction::Ended => id = sessions.begin(flow),
                NextAction::Failed(failed, operation) => {
                    self.failed_alone(failed, operation, at, arrival.phase);
                    return None;
                }
            }
        }
        sessions.end(id);
        self.failed_alone(StepFailure::Template, 0, at, arrival.phase);
        None
    }

    /// The request of a session that was due by itself.
    pub(super) fn next_due_request(&mut self) -> Option<InFlight> {
        let DueRequest { at, id, phase } = self.sessions.as_mut()?.due.pop_front()?;
        let now = self.moment(at);
        match self.sessions.as_mut()?.go_on(id, now) {
            NextAction::Sends(request) => self.fill(id, request, at, phase),
            _ => None,
        }
    }

    /// Index of an open model's phase at `at`.
    fn phase_at(&self, at: i64) -> u32 {
        match &self.plan.scenario.load {
            Load::Open(schedule) => {
                schedule.phase_at(Duration::from_nanos((at - self.pace.started).max(0) as u64)) as u32
            }
            Load::Closed(_) => 0,
        }
    }

    /// A user's next step, due at `due`.
    pub(super) fn ask_session(&mut self, slot: u32, due: i64) {
        let first = self.plan.sessions.as_ref().map_or(0, |(_, first)| *first);
        let now = self.moment(due);
        for _ in 0..MOST_EMPTY {
            let (Demand::Closed(users), Some(sessions)) = (&mut self.demand, &mut self.sessions) else { return };
            let place = sessions.of_slot(slot);
            if !users.takes_part(slot, due) {
                // A user who leaves between two requests does not come back as the same user.
                sessions.end(place);
                return sessions.seat(slot, NO_SESSION);
            }
            let phase = users.phase_at(due);
            let id = if place != NO_SESSION {
                place
            } else if users.may_begin() {
                sessions.begin(first + self.plan.turns.index(phase, users.number()))
            } else {
                return;
            };
            sessions.seat(slot, id);
            match sessions.go_on(id, now) {
                NextAction::Sends(request) => {
                    self.counts.admitted += 1;
                    match self.fill(id, request, due, phase) {
                        Some(request) => self.place(slot, request),
                        None => self.think_after_failure(slot, due),
                    }
                    return;
                }
                NextAction::Thinks(length) => return users.think(slot, due.saturating_add(length)),
                NextAction::Ended => {
                    sessions.seat(slot, NO_SESSION);
                    if users.think_ns > 0 {
                        let until = due + users.think_ns;
                        return users.think(slot, until);
                    }
                }
                NextAction::Failed(failed, operation) => {
                    sessions.seat(slot, NO_SESSION);
                    self.counts.admitted += 1;
                    self.failed_alone(failed, operation, due, phase);
                    return self.think_after_failure(slot, due);
                }
            }
        }
        self.think(slot, due + RETRY_NS);
    }

    /// A user whose request failed waits, and also thinks if that was the end of a session.
    fn think_after_failure(&mut self, slot: u32, at: i64) {
        let is_over = self.sessions.as_ref().is_none_or(|sessions| sessions.of_slot(slot) == NO_SESSION);
        if let Demand::Closed(users) = &mut self.demand {
            users.think(slot, at + RETRY_NS.max(if is_over { users.think_ns } else { 0 }));
        }
    }

    fn think(&mut self, slot: u32, until: i64) {
        if let Demand::Closed(users) = &mut self.demand {
            users.think(slot, until);
        }
    }

    /// The outcome of a failure: unfinished if the session ended as planned because no row is left.
    fn outcome_of(&self, failed: StepFailure) -> Outcome {
        let is_over = self.sessions.as_ref().is_some_and(|sessions| sessions.script.is_over());
        if failed == StepFailure::FeederDry && is_over {
            Outcome::Unfinished
        } else {
            Outcome::from_step_failure(failed)
        }
    }

    /// Records a failure without a request as one that was never sent.
    fn failed_alone(&mut self, failed: StepFailure, operation: u32, at: i64, phase: u32) {
        let outcome = self.outcome_of(failed);
        self.books.enter(&mut InFlight::new(0, operation, phase, at, at), outcome, at, false);
    }

    /// Fills in a session's request; none if that failed, which is recorded.
    fn fill(&mut self, id: u32, index: u32, due: i64, phase: u32) -> Option<InFlight> {
        let now = self.moment(due);
        let plan = self.plan;
        let sessions = self.sessions.as_mut()?;
        let number = sessions.next_number();
        let (active, script, filled) = sessions.parts(id)?;
        active.pending = None;
        let spec = &script.requests[index as usize];
        let mut request = InFlight { session: id, number, ..InFlight::new(index, spec.operation, phase, due, due) };
        let done = active.session.draw_rows(script, &spec.feeders).and_then(|()| {
            if spec.form.is_constant() {
                return Ok(false);
            }
            active
                .session
                .with_context(script, now, number, |context| match &spec.form {
                    Form::Http { .. } => filled.http(&spec.form, context),
                    Form::Sql { .. } | Form::Mongodb { .. } => {
                        let laid_out = plan.layout.database(spec, &mut |text, out| text.render(context, out))?;
                        request.instead = Some(Box::new(laid_out));
                        Ok(())
                    }
                })
                .map(|()| true)
        });
        match done {
            Ok(_) if self.plan.is_database() => {
                if spec.needs.head || spec.needs.body || !spec.checks.is_empty() || !spec.captures.is_empty() {
                    request.kept = Some(Box::<KeptResponse>::default());
                }
                Some(request)
            }
            Ok(is_filled) => {
                let own = &plan.requests[index as usize];
                let path = if is_filled { filled.path.as_str() } else { own.path.as_str() };
                let cookies = active.cookies.header(path);
                if is_filled {
                    let Form::Http { method, .. } = &spec.form else { return None };
                    if let Some(cookies) = cookies {
                        filled.headers.push(("Cookie".to_owned(), cookies));
                    }
                    let body = filled.body.as_deref();
                    let laid_out = plan.layout.session(spec, method, &filled.path, &filled.headers, body);
                    request.instead = Some(Box::new(laid_out));
                } else if let Some(cookies) = cookies {
                    request.instead = Some(Box::new(own.with_cookies(&cookies)));
                }
                // Every check and capture may ask for the body's size.
                if self.plan.is_http2() && (!spec.checks.is_empty() || !spec.captures.is_empty()) {
                    let most = if spec.needs.body { LOOKED_AT_BYTES as usize } else { 0 };
                    request.kept = Some(Box::new(KeptResponse::for_body(most)));
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
    pub(super) fn judge(&mut self, slot: u32, outcome: Outcome, at: i64) -> Outcome {
        let Some(request) = self.slots.get(slot) else { return outcome };
        let now = Moment { monotonic_ns: at, unix_ns: at + self.books.unix_offset() };
        let Some(sessions) = self.sessions.as_mut().filter(|_| request.session != NO_SESSION) else { return outcome };
        let Some((active, script, _)) = sessions.parts(request.session) else { return outcome };
        let spec = &script.requests[request.request as usize];
        let is_whole = outcome == Outcome::Ok || outcome == Outcome::HttpStatus && spec.judges_status;
        if !is_whole || spec.checks.is_empty() && spec.captures.is_empty() {
            return outcome;
        }
        let connection = &self.pool.connections[self.slots.connection(slot) as usize];
        let mut fields: Vec<(&[u8], &[u8])> = Vec::new();
        let mut columns: Vec<(&str, Option<&[u8]>)> = Vec::new();
        let (mut body, mut is_cut, mut body_bytes, mut rows): (&[u8], bool, u64, u64) = (&[], false, 0, 0);
        if let Some(kept) = &request.kept {
            if self.plan.is_database() {
                columns.extend(kept.fields.iter().map(|(n, v)| (std::str::from_utf8(n).unwrap_or(""), v.as_deref())));
            } else {
                fields.extend(kept.fields.iter().map(|(n, v)| (&**n, v.as_deref().unwrap_or_default())));
            }
            (body, is_cut, body_bytes, rows) = (&kept.body, kept.is_cut(), kept.bytes, kept.rows);
        } else if let Some(parser) = connection.driver.parser() {
            if spec.needs.head {
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
        match active.session.take(script, spec, &response, now, request.number) {
            Ok(()) => Outcome::Ok,
            Err(failed) => Outcome::from_step_failure(failed),
        }
    }

    /// A session's request has ended: continue the session.
    pub(super) fn answered(&mut self, id: u32, request: u32, is_well: bool, at: i64) {
        let Some(sessions) = &mut self.sessions else { return };
        let Some((active, script, _)) = sessions.parts(id) else { return };
        if !active.session.ended(script, &script.requests[request as usize], is_well) {
            return sessions.leave(id);
        }
        if !self.demand.is_closed() {
            self.proceed(id, at, self.phase_at(at));
        }
    }

    /// An open model's session goes on at `at`, in `phase`.
    fn proceed(&mut self, id: u32, at: i64, phase: u32) {
        let now = self.moment(at);
        let Some(sessions) = &mut self.sessions else { return };
        match sessions.go_on(id, now) {
            NextAction::Sends(_) if self.plan.scenario.rate_of == RateOf::Requests => sessions.mark_ready(id),
            NextAction::Sends(_) => {
                self.counts.admitted += 1;
                sessions.due.push_back(DueRequest { at, id, phase });
            }
            NextAction::Thinks(length) => sessions.think(id, at.saturating_add(length)),
            NextAction::Ended => {}
            NextAction::Failed(failed, operation) => {
                self.counts.admitted += 1;
                self.failed_alone(failed, operation, at, phase);
            }
        }
    }
}
