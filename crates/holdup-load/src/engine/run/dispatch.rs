//! Which request is next, and which slot it gets: requests that are due, users who have finished
//! thinking, and requests that are given up because they got no slot in time.

use super::Loop;
use super::demand::Demand;
use crate::engine::connection::Stage;
use crate::engine::outcome::Outcome;
use crate::engine::sessions::NO_SESSION;
use crate::engine::slots::InFlight;
use crate::scenario::RateOf;
use crate::sys::monotonic_ns;

impl Loop<'_> {
    /// Takes the arrivals that are due; users who have finished thinking send their next request.
    pub(super) fn admit(&mut self, now: i64) {
        match &mut self.demand {
            Demand::Open(due) => {
                let came = due.admit(now);
                if self.sessions.is_some() && self.plan.scenario.rate_of == RateOf::Sessions {
                    self.begin_sessions();
                } else {
                    self.counts.admitted += came;
                }
                self.wake_sessions(now);
            }
            Demand::Played(_) => {
                self.dispatch_played();
                self.admit_played(now);
            }
            Demand::Closed(_) => {
                while let Some((due, slot)) = self.next_user(now) {
                    self.ask(slot, due);
                }
            }
        }
    }

    fn next_user(&mut self, now: i64) -> Option<(i64, u32)> {
        let Demand::Closed(users) = &mut self.demand else { return None };
        users.next(now)
    }

    /// A user's next request, due at `due`.
    pub(super) fn ask(&mut self, slot: u32, due: i64) {
        if self.sessions.is_some() {
            return self.ask_session(slot, due);
        }
        let Demand::Closed(users) = &mut self.demand else { return };
        if !users.takes_part(slot, due) || !users.may_begin() {
            return;
        }
        let phase = users.phase_at(due);
        let request = self.plan.turns.index(phase, users.number());
        self.counts.admitted += 1;
        let operation = self.plan.requests[request as usize].operation;
        self.place(slot, InFlight::new(request, operation, phase, due, due));
    }

    /// Gives waiting requests to slots, oldest first.
    pub(super) fn dispatch(&mut self) {
        if let Demand::Played(_) = self.demand {
            return self.dispatch_played();
        }
        while self.waiting() > 0 {
            let Some(slot) = self.free_slot() else { break };
            let Some(mut request) = self.take_next() else {
                self.give_back(slot);
                continue;
            };
            // A slot that became free after the request was due explains the wait only if no other
            // was free then. Otherwise the loop itself was late, which is send lag.
            let taken = self.counts.admitted - self.waiting();
            if taken <= self.counts.looked_at {
                request.ready = request.due.max(self.slots.free_since(slot));
            }
            self.place(slot, request);
        }
        self.flush();
    }

    /// Returns a slot that was free and stays free.
    fn give_back(&mut self, slot: u32) {
        let connection = &self.pool.connections[self.slots.connection(slot) as usize];
        if connection.stage() == Stage::Open {
            self.pool.idle.push_back((slot, connection.generation()));
        }
    }

    /// The oldest waiting request; its slot counts as free since the request was due. None if
    /// nothing came of it.
    fn take_next(&mut self) -> Option<InFlight> {
        let Demand::Open(due) = &mut self.demand else { return None };
        if let Some(sessions) = &self.sessions {
            let by_itself = sessions.due.front().map_or(i64::MAX, |step| step.at);
            if by_itself < due.oldest().unwrap_or(i64::MAX) {
                return self.next_due_request();
            }
            let (arrival, at) = due.take()?;
            return self.session_request(arrival, at);
        }
        let (arrival, at) = due.take()?;
        let request = arrival.request.unwrap_or_else(|| self.plan.turns.index(arrival.phase, arrival.number));
        let operation = self.plan.requests[request as usize].operation;
        Some(InFlight::new(request, operation, arrival.phase, at, at))
    }

    /// Requests that still wait after every slot was offered to them found all slots taken when
    /// they were due.
    pub(super) fn count_capped(&mut self) {
        if let Demand::Played(_) = self.demand {
            // Those requests wait for their own session, and were counted if it has no slot.
            return;
        }
        let waiting_from = self.counts.admitted - self.waiting();
        self.counts.capped += self.counts.admitted - self.counts.looked_at.max(waiting_from);
        self.counts.looked_at = self.counts.admitted;
    }

    /// A free slot, if any: on an open connection, else on one that is to be opened.
    fn free_slot(&mut self) -> Option<u32> {
        loop {
            let in_turn = self.plan.scenario.generator.open_all;
            let entry = if in_turn { self.pool.idle.pop_front() } else { self.pool.idle.pop_back() };
            let Some((slot, generation)) = entry else { break };
            let connection = &mut self.pool.connections[self.slots.connection(slot) as usize];
            if connection.generation() != generation || !connection.is_reusable() {
                continue;
            }
            if connection.driver.room() > 0 {
                return Some(slot);
            }
            // The server allows fewer streams now than there are slots.
            connection.spare.push(slot);
        }
        self.pool.vacant.last().map(|&connection| self.slots.of_connection(connection).start)
    }

    /// Puts a request into a free slot and sends it, or opens the connection first.
    pub(super) fn place(&mut self, slot: u32, mut request: InFlight) {
        let now = monotonic_ns();
        // A user's due time comes from the stamp of a response, which agrees with this clock only
        // to a microsecond. Nothing may be due in the future.
        request.due = request.due.min(now);
        request.ready = request.ready.min(now);
        request.deadline = now + self.pace.timeout_ns;
        let index = self.slots.connection(slot);
        let connection = &self.pool.connections[index as usize];
        if let Some(cookies) = connection.cookies.as_ref().filter(|_| request.session == NO_SESSION) {
            let prepared = &self.plan.requests[request.request as usize];
            request.instead = cookies.header(&prepared.path).map(|c| Box::new(prepared.with_cookies(&c)));
        }
        self.slots.begin(slot, request);
        self.go(slot, now);
    }

    /// Ends the requests that have passed their deadline.
    pub(super) fn expire(&mut self, now: i64) {
        while let Some((slot, _)) = self.slots.oldest().filter(|(_, deadline)| *deadline <= now) {
            let index = self.slots.connection(slot);
            // A connection that was never made (a full accept queue drops its SYN) has waited as
            // long as any other.
            if self.pool.connections[index as usize].cancel(slot) {
                self.pool.unflushed.push(index);
                self.finish(slot, Outcome::Timeout, now);
                self.use_spare(index);
            } else {
                self.retire(index, Outcome::Timeout);
            }
        }
        while self.oldest_waiting().is_some_and(|due| due + self.pace.timeout_ns <= now) {
            self.give_up_next(Outcome::NeverSent, now);
        }
    }

    fn oldest_waiting(&mut self) -> Option<i64> {
        let Demand::Open(due) = &mut self.demand else { return None };
        let by_itself = self.sessions.as_ref().and_then(|v| v.due.front()).map(|step| step.at);
        due.oldest().into_iter().chain(by_itself).min()
    }

    fn give_up_next(&mut self, outcome: Outcome, now: i64) {
        if let Some(mut request) = self.take_next() {
            let (session, index) = (request.session, request.request);
            self.books.enter(&mut request, outcome, now, false);
            if session != NO_SESSION && outcome != Outcome::Unfinished {
                self.answered(session, index, false, now);
            }
        }
    }

    /// Ends everything, because the run was stopped.
    pub(super) fn abandon(&mut self) {
        let now = monotonic_ns();
        for slot in 0..self.slots.count() as u32 {
            if let Some(request) = self.slots.get_mut(slot) {
                self.books.enter(request, Outcome::Unfinished, now, true);
                self.slots.end(slot, now);
            }
        }
        self.end_played(now);
        while self.waiting() > 0 {
            self.give_up_next(Outcome::Unfinished, now);
        }
    }
}
