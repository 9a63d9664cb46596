//! What happens to connections: they are opened, written to, read from, and closed.

use std::sync::PoisonError;

use holdup_protocol::http::WantedParts;

use super::Loop;
use crate::engine::LOOKED_AT_BYTES;
use crate::engine::connection::{ReadResult, Stage};
use crate::engine::driver::OutgoingRequest;
use crate::engine::outcome::Outcome;
use crate::engine::prepared::Prepared;
use crate::engine::sessions::NO_SESSION;
use crate::engine::slots::NEVER;
use crate::engine::trace::{Mark, TraceSource};
use crate::sys::{Ready, monotonic_ns};

impl Loop<'_> {
    /// Sends the request of a slot whose connection is open.
    pub(super) fn launch(&mut self, slot: u32, now: i64) {
        let index = self.slots.connection(slot);
        let Some(request) = self.slots.get_mut(slot) else { return };
        if self.plan.is_http2() && self.pool.connections[index as usize].driver.room() == 0 {
            request.is_waiting = true;
            return self.pool.connections[index as usize].waiting.push_back(slot);
        }
        request.is_waiting = false;
        if request.sent == NEVER {
            request.sent = now;
        }
        let Some(prepared) = self.plan.request(request.instead.as_deref(), request.request) else { return };
        match prepared.traced {
            TraceSource::No => {}
            TraceSource::Given(id) => request.trace = id,
            // A redirected or resent request keeps its id.
            TraceSource::At(_) | TraceSource::InStatements if request.trace == 0 => {
                request.trace = self.outgoing.trace_ids.next()
            }
            TraceSource::At(_) | TraceSource::InStatements => {}
        }
        request.sendings += 1;
        let mark = Mark::new(prepared.traced, request.trace, request.sendings);
        let connection = &mut self.pool.connections[index as usize];
        let wanted = match &self.sessions {
            Some(sessions) if request.session != NO_SESSION => {
                let needs = sessions.request_spec(request.request).needs;
                let body_bytes = if needs.body { LOOKED_AT_BYTES } else { 0 };
                WantedParts { head: needs.head, body_bytes, ..self.outgoing.wanted }
            }
            _ => self.outgoing.wanted,
        };
        let going = OutgoingRequest { prepared, mark: mark.as_ref(), wanted };
        if let Err(outcome) = connection.start(slot, &going, &mut self.outgoing.scratch) {
            return self.retire(index, outcome);
        }
        if self.plan.is_http2() && self.pool.unflushed.last() != Some(&index) {
            self.pool.unflushed.push(index);
        }
    }

    /// Writes the collected output of HTTP/2 sessions.
    pub(super) fn flush(&mut self) {
        while let Some(index) = self.pool.unflushed.pop() {
            if let Err(outcome) = self.pool.connections[index as usize].flush() {
                self.retire(index, outcome);
            }
        }
    }

    pub(super) fn open(&mut self, index: u32, now: i64) {
        // It is at or near the end of the list: the connection closed last is opened first.
        if let Some(at) = self.pool.vacant.iter().rposition(|&c| c == index) {
            self.pool.vacant.remove(at);
        }
        let connection = &mut self.pool.connections[index as usize];
        let token = u64::from(connection.generation()) << 32 | u64::from(index);
        let address = *self.plan.address.read().unwrap_or_else(PoisonError::into_inner);
        let result = address.ok_or(Outcome::NameUnresolved).and_then(|address| {
            connection.connect(&address, &self.pool.epoll, token, now).map_err(|e| Outcome::from_connect_error(&e))
        });
        match result {
            Ok(()) => self.pool.connecting += 1,
            Err(outcome) => {
                self.vacate(index);
                self.retire(index, outcome);
            }
        }
    }

    /// Serves `count` sockets that became ready, and those left over from the last time.
    pub(super) fn serve(&mut self, count: usize) {
        for i in 0..count {
            self.on_ready(self.pool.epoll.ready(i));
        }
        if !self.pool.more.is_empty() {
            for index in std::mem::take(&mut self.pool.more) {
                // The end of the stream may follow the data: read up to it.
                self.read(index, true);
            }
        }
        self.flush();
    }

    pub(super) fn on_ready(&mut self, event: Ready) {
        let index = event.token as u32;
        let connection = &mut self.pool.connections[index as usize];
        if connection.generation() != (event.token >> 32) as u32 {
            return;
        }
        let stage = connection.stage();
        if let Stage::Connecting(_) = stage {
            match connection.connected(self.intake.tls, self.plan.scenario.http.streams, self.outgoing.wanted) {
                Ok(true) => self.opened(index, stage),
                Ok(false) => {}
                Err(outcome) => return self.retire(index, outcome),
            }
        } else if event.writable && !event.readable {
            return self.write_on(index);
        }
        if event.readable {
            self.read(index, event.closed);
        }
        // An event about arrived bytes also says that there is room to write; that matters only if
        // something is left to write.
        if event.writable && self.pool.connections[index as usize].has_output() {
            self.write_on(index);
        }
    }

    /// A socket that took less than all has room again.
    fn write_on(&mut self, index: u32) {
        let connection = &mut self.pool.connections[index as usize];
        let slot = self.slots.of_connection(index).start;
        let result = match (connection.stage(), self.slots.get(slot)) {
            (Stage::Closed | Stage::Connecting(_), _) => Ok(()),
            (Stage::Open, Some(request)) if request.sent != NEVER => {
                let Some(prepared) = self.plan.request(request.instead.as_deref(), request.request) else { return };
                let mark = Mark::new(prepared.traced, request.trace, request.sendings);
                let going = OutgoingRequest { prepared, mark: mark.as_ref(), wanted: self.outgoing.wanted };
                connection.send(&going, &mut self.outgoing.scratch)
            }
            _ => connection.push_on(),
        };
        if let Err(outcome) = result {
            self.retire(index, outcome);
        }
    }

    /// A connection can be used: the request that waited for it is sent, its other slots are free.
    fn opened(&mut self, index: u32, stage: Stage) {
        self.pool.connecting -= 1;
        let now = monotonic_ns();
        let generation = self.pool.connections[index as usize].generation();
        for slot in self.slots.of_connection(index) {
            if let Some(request) = self.slots.get_mut(slot) {
                if let Stage::Connecting(since) | Stage::Handshaking(since) = stage
                    && request.sent == NEVER
                {
                    request.connect += now - since.max(request.ready);
                }
                self.launch(slot, now);
            } else if !self.demand.has_owners() {
                // What became due meanwhile waited for the connection, not for this loop.
                self.slots.free_from(slot, now);
                self.pool.idle.push_back((slot, generation));
            }
        }
    }

    pub(super) fn read(&mut self, index: u32, to_end: bool) {
        let stage = self.pool.connections[index as usize].stage();
        if matches!(stage, Stage::Closed | Stage::Connecting(_)) {
            return;
        }
        let received = self.pool.connections[index as usize].receive(&mut self.slots, &mut self.intake, to_end);
        let connection = &self.pool.connections[index as usize];
        if matches!(stage, Stage::Handshaking(_)) && connection.stage() == Stage::Open {
            self.opened(index, stage);
        }
        if self.intake.keeps_cookies {
            self.keep_cookies(index);
        }
        let is_reusable = self.pool.connections[index as usize].is_reusable();
        // Other streams may go on.
        let closes = !self.plan.is_http2() || !self.plan.scenario.http.keep_alive;
        // Retire the connection before handling what ended on it: a follow-up may open the next
        // socket in its place.
        match received {
            ReadResult::Broken(outcome) => self.retire(index, outcome),
            _ if closes && !is_reusable && !self.intake.ended.is_empty() => {
                if !self.plan.scenario.http.keep_alive {
                    self.pool.connections[index as usize].say_goodbye();
                }
                self.close(index);
            }
            _ => {}
        }
        while let Some(ended) = self.intake.ended.pop() {
            self.conclude(&ended);
        }
        if self.plan.is_http2() {
            self.use_spare(index);
        }
        match received {
            ReadResult::All if !is_reusable && self.is_unused(index) => self.retire(index, Outcome::ConnectionClosed),
            // The protocol may have to answer: a settings or window frame.
            ReadResult::All if self.plan.is_http2() => self.pool.unflushed.push(index),
            ReadResult::Some => self.pool.more.push(index),
            ReadResult::All | ReadResult::Broken(_) => {}
        }
    }

    /// Uses the server's room for streams: first for requests that wait for it, then for unused
    /// slots. If this connection will never have room again, the waiting requests get another.
    pub(super) fn use_spare(&mut self, index: u32) {
        let connection = &self.pool.connections[index as usize];
        let is_asked_for = !connection.waiting.is_empty() || !connection.spare.is_empty();
        if connection.stage() != Stage::Open || !is_asked_for {
            return;
        }
        let now = monotonic_ns();
        if !connection.is_reusable() && !connection.waiting.is_empty() {
            self.close(index);
            return self.open(index, now);
        }
        for _ in 0..connection.driver.room() {
            let connection = &mut self.pool.connections[index as usize];
            if let Some(slot) = connection.waiting.pop_front() {
                if let Some(request) = self.slots.get_mut(slot).filter(|r| r.sent == NEVER) {
                    request.ready = now;
                }
                self.launch(slot, now);
            } else if let Some(slot) = connection.spare.pop() {
                let generation = connection.generation();
                self.slots.free_from(slot, now);
                self.pool.idle.push_back((slot, generation));
            } else {
                break;
            }
        }
    }

    fn is_unused(&self, index: u32) -> bool {
        self.slots.of_connection(index).all(|slot| self.slots.get(slot).is_none())
    }

    /// Closes a connection. Its requests keep their slots.
    pub(super) fn close(&mut self, index: u32) {
        let connection = &mut self.pool.connections[index as usize];
        match connection.stage() {
            Stage::Closed => return,
            Stage::Connecting(_) | Stage::Handshaking(_) => self.pool.connecting -= 1,
            Stage::Open => {}
        }
        connection.close();
        self.vacate(index);
    }

    /// A connection has no socket: in an open model any request may open one; where slots have
    /// owners, only those do.
    fn vacate(&mut self, index: u32) {
        if !self.demand.has_owners() {
            self.pool.vacant.push(index);
        }
    }

    /// Closes a broken connection. Its requests end with `outcome`, except those that ended before
    /// and are about to be concluded, and those that may be sent again.
    pub(super) fn retire(&mut self, index: u32, outcome: Outcome) {
        let again = self.repeatable(index, outcome);
        self.close(index);
        let now = monotonic_ns();
        for slot in self.slots.of_connection(index) {
            if again.contains(&slot) || self.intake.ended.iter().any(|ended| ended.slot == slot) {
                continue;
            }
            if self.slots.get(slot).is_some() {
                self.close_book(slot, outcome, now);
            }
        }
        if !again.is_empty() {
            self.open(index, now);
        }
    }

    /// The slots of a breaking connection whose requests get another connection.
    fn repeatable(&mut self, index: u32, outcome: Outcome) -> Vec<u32> {
        if !matches!(outcome, Outcome::ConnectionClosed | Outcome::ConnectionReset) {
            return Vec::new();
        }
        let connection = &self.pool.connections[index as usize];
        let mut again = Vec::new();
        for slot in self.slots.of_connection(index) {
            if self.intake.ended.iter().any(|ended| ended.slot == slot) {
                continue;
            }
            let Some(request) = self.slots.get_mut(slot) else { continue };
            let Some(Prepared { method, .. }) = self.plan.request(request.instead.as_deref(), request.request) else {
                continue;
            };
            if connection.driver.may_repeat(request, method) && (request.is_waiting || !request.is_resent) {
                self.counts.resent += u64::from(!request.is_waiting);
                request.is_resent |= !request.is_waiting;
                again.push(slot);
            }
        }
        again
    }
}
