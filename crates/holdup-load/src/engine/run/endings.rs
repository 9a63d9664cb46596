//! Ends requests: each is recorded, or follows a redirect, and its slot goes to the next.

use super::Loop;
use super::demand::Demand;
use crate::engine::connection::Stage;
use crate::engine::intake::{EndedRequest, Resend};
use crate::engine::outcome::Outcome;
use crate::engine::prepared::Prepared;
use crate::engine::sessions::NO_SESSION;
use crate::sys::monotonic_ns;

/// A closed model's user retries after this time when the connection failed or broke.
const RETRY_NS: i64 = 100_000_000;

impl Loop<'_> {
    pub(super) fn keep_cookies(&mut self, index: u32) {
        for (slot, header) in std::mem::take(&mut self.intake.set_cookies) {
            let Some(request) = self.slots.get(slot) else { continue };
            let own = &self.plan.requests[request.request as usize];
            let path = &request.instead.as_deref().unwrap_or(own).path;
            match self.sessions.as_mut().and_then(|v| v.get_mut(request.session)) {
                Some(active) => active.cookies.take(&header, path),
                None => self.pool.connections[index as usize].cookies.get_or_insert_default().take(&header, path),
            }
        }
    }

    /// A response is complete, or never will be. A request that the server did not process is sent
    /// again.
    pub(super) fn conclude(&mut self, ended: &EndedRequest) {
        let EndedRequest { slot, outcome, at, again } = *ended;
        if again != Resend::No
            && let Some(request) = self.slots.get_mut(slot)
            && (again == Resend::Always || !request.is_resent)
        {
            request.is_resent |= again == Resend::Once;
            self.counts.resent += 1;
            return self.go(slot, monotonic_ns());
        }
        self.finish(slot, outcome, at);
    }

    /// A request ended at `at`; unless it is redirected, its slot is free.
    pub(super) fn finish(&mut self, slot: u32, outcome: Outcome, at: i64) {
        let mut outcome = outcome;
        if outcome == Outcome::Ok
            && let Some(request) = self.slots.get_mut(slot)
            && let Some(location) = request.location.take()
        {
            let own = &self.plan.requests[request.request as usize];
            let spec: &Prepared = request.instead.as_deref().unwrap_or(own);
            if let Some(next) = self.plan.layout.redirected(spec, request.status, &location) {
                if request.hops < self.plan.scenario.http.redirects {
                    return self.follow(slot, next);
                }
                outcome = Outcome::TooManyRedirects;
            }
        }
        let outcome = if self.sessions.is_some() { self.judge(slot, outcome, at) } else { outcome };
        self.close_book(slot, outcome, at);
    }

    /// Records how the request of a slot ended. Its session goes on, and its slot is free.
    pub(super) fn close_book(&mut self, slot: u32, outcome: Outcome, at: i64) {
        let Some(request) = self.slots.get_mut(slot) else { return };
        let (session, index) = (request.session, request.request);
        self.books.enter(request, outcome, at, true);
        self.slots.end(slot, at);
        if session != NO_SESSION {
            self.answered(session, index, outcome == Outcome::Ok, at);
        }
        self.release(slot, outcome, at);
    }

    fn follow(&mut self, slot: u32, next: Prepared) {
        let index = self.slots.connection(slot);
        let session = self.slots.get(slot).map_or(NO_SESSION, |request| request.session);
        let cookies = match self.sessions.as_mut().and_then(|v| v.get_mut(session)) {
            Some(active) => active.cookies.header(&next.path),
            None => self.pool.connections[index as usize].cookies.as_ref().and_then(|c| c.header(&next.path)),
        };
        let next = match cookies {
            Some(cookies) => next.with_cookies(&cookies),
            None => next,
        };
        if let Some(request) = self.slots.get_mut(slot) {
            request.hops += 1;
            request.status = 0;
            request.is_resent = false;
            request.timing = None;
            if let Some(kept) = &mut request.kept {
                kept.restart();
            }
            request.instead = Some(Box::new(next));
        }
        self.go(slot, monotonic_ns());
    }

    /// Sends the request of a slot, once its connection is open.
    pub(super) fn go(&mut self, slot: u32, now: i64) {
        let index = self.slots.connection(slot);
        match self.pool.connections[index as usize].stage() {
            Stage::Open => self.launch(slot, now),
            Stage::Closed => self.open(index, now),
            Stage::Connecting(_) | Stage::Handshaking(_) => {}
        }
    }

    /// A slot became free at `at`.
    pub(super) fn release(&mut self, slot: u32, outcome: Outcome, at: i64) {
        let index = self.slots.connection(slot);
        let connection = &self.pool.connections[index as usize];
        let is_open = connection.stage() == Stage::Open && connection.is_reusable();
        let generation = connection.generation();
        match &mut self.demand {
            Demand::Open(_) => {
                if is_open {
                    self.pool.idle.push_back((slot, generation));
                }
            }
            Demand::Played(_) => self.played(slot, at),
            Demand::Closed(users) => {
                // Within a session, steps say how long the user thinks; a session that has just
                // failed is over.
                let goes_on = self.sessions.as_ref().is_some_and(|sessions| sessions.of_slot(slot) != NO_SESSION);
                let due = if goes_on { at } else { at + users.think_ns };
                if is_open && due == at && due < users.until {
                    self.ask(slot, due);
                } else {
                    // A server that answers and then closes has answered: only a broken connection
                    // delays the next attempt.
                    let is_broken = !is_open && outcome.is_failure() && !outcome.is_answer();
                    users.think(slot, due + if is_broken { RETRY_NS } else { 0 });
                }
            }
        }
    }
}
