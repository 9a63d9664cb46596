//! A recorded mix within a loop. Each session has its own slot, from when it connected to when it
//! left; each statement is sent when it is due, but not before the one before it has ended.

use std::sync::Arc;

use super::Loop;
use super::demand::Demand;
use super::player::{PlayedSession, Player};
use crate::engine::connection::Stage;
use crate::engine::outcome::Outcome;
use crate::engine::prepared::Prepared;
use crate::engine::slots::{ExecutionDetails, InFlight};
use crate::schedule::played::{Action, DatabaseName, PlannedExecution, Play};

impl Loop<'_> {
    fn player(&mut self) -> Option<&mut Player> {
        match &mut self.demand {
            Demand::Played(player) => Some(player),
            _ => None,
        }
    }

    /// Takes the plays of a recorded mix that are due.
    pub(super) fn admit_played(&mut self, now: i64) {
        while let Some(Play { session, due_ns, action }) = self.player().and_then(|player| player.next_due(now)) {
            let due = self.pace.started + due_ns;
            match action {
                Action::Open(entry) => {
                    if let Some(slot) = self.slot_for(session, &entry)
                        && self.pool.connections[slot as usize].stage() == Stage::Closed
                    {
                        self.open(slot, now);
                    }
                }
                Action::Execute(planned, entry) => {
                    self.counts.admitted += 1;
                    let slot = self.slot_for(session, &entry);
                    let is_free = slot.is_some_and(|slot| self.slots.get(slot).is_none());
                    let Some(player) = self.player() else { return };
                    let Some(played) = player.sessions.get_mut(&session) else { continue };
                    if let (Some(slot), true, true) = (slot, is_free, played.queue.is_empty()) {
                        self.play(slot, session, due, due, *planned);
                    } else {
                        played.queue.push_back((due, planned));
                        player.waiting += 1;
                        self.counts.capped += u64::from(slot.is_none());
                    }
                }
                Action::Close => {
                    let Some(played) = self.player().and_then(|player| player.sessions.get_mut(&session)) else {
                        continue;
                    };
                    played.is_leaving = true;
                    let (is_done, slot) = (played.queue.is_empty(), played.slot);
                    match slot {
                        Some(slot) if is_done && self.slots.get(slot).is_none() => self.leave(slot, now),
                        None if is_done => {
                            self.player().map(|player| player.sessions.remove(&session));
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// The slot of a session; it gets one if it has none and one is free.
    fn slot_for(&mut self, session: u64, entry: &DatabaseName) -> Option<u32> {
        let Demand::Played(player) = &mut self.demand else { return None };
        if let Some(played) = player.sessions.get(&session) {
            return played.slot;
        }
        let login = match player.logins.get(entry) {
            Some(login) => Arc::clone(login),
            None => {
                let login = self.plan.login(entry.as_deref())?;
                player.logins.insert(entry.clone(), Arc::clone(&login));
                login
            }
        };
        let played = PlayedSession::new(Arc::clone(&login));
        player.sessions.insert(session, played);
        let slot = player.assign_slot(session);
        match slot {
            Some(slot) => self.pool.connections[slot as usize].log_in_as(&login),
            None => {
                player.bound.unseated += 1;
                player.without_slot.push_back(session);
            }
        }
        slot
    }

    /// Sends a statement in the slot of its session, which was free from `ready` on.
    fn play(&mut self, slot: u32, session: u64, due: i64, ready: i64, planned: PlannedExecution) {
        let is_hashed =
            self.plan.manner.as_ref().is_some_and(|manner| manner.rows != holdup_protocol::database::Rows::Passed);
        let PlannedExecution { operation, number, statements, digest, logged_ns, trace_id } = planned;
        let prepared = Prepared::statements(operation, statements);
        let execution = ExecutionDetails {
            number,
            session,
            digest,
            logged_ns,
            trace_id,
            rows: 0,
            affected: 0,
            warnings: 0,
            hash: is_hashed.then_some(0),
            error: None,
        };
        let request = InFlight {
            instead: Some(Box::new(prepared)),
            execution: Some(Box::new(execution)),
            ..InFlight::new(operation, operation, 0, due, ready)
        };
        self.place(slot, request);
    }

    /// The statement of a slot has ended at `at`. [`Self::dispatch_played`] handles the
    /// consequences: handled here, a server that refuses connections would cause endless recursion.
    pub(super) fn played(&mut self, slot: u32, at: i64) {
        if let Some(player) = self.player() {
            player.ended.push((slot, at));
        }
    }

    /// Sessions whose statement has ended go on with the next that is due, or leave.
    pub(super) fn dispatch_played(&mut self) {
        while let Some((slot, at)) = self.player().and_then(|player| player.ended.pop()) {
            self.go_on(slot, at);
        }
    }

    fn go_on(&mut self, slot: u32, at: i64) {
        if self.slots.get(slot).is_some() {
            return;
        }
        let Some(player) = self.player() else { return };
        let session = player.owner(slot);
        let Some(played) = player.sessions.get_mut(&session) else { return };
        if let Some((due, planned)) = played.queue.pop_front() {
            player.waiting -= 1;
            let waited_ns = (at - due).max(0).unsigned_abs();
            player.bound.statements += 1;
            player.bound.waited_ns += waited_ns;
            player.bound.longest_ns = player.bound.longest_ns.max(waited_ns);
            self.play(slot, session, due, at.max(due), *planned);
        } else if played.is_leaving {
            self.leave(slot, at);
        }
    }

    /// A session leaves; its slot goes to the next session without one.
    fn leave(&mut self, slot: u32, at: i64) {
        self.pool.connections[slot as usize].say_goodbye();
        self.close(slot);
        let Some(player) = self.player() else { return };
        let session = player.owner(slot);
        player.sessions.remove(&session);
        player.vacate(slot);
        while let Some(next) = player.without_slot.pop_front() {
            // That session may have left already, without ever having a slot.
            if !player.sessions.contains_key(&next) {
                continue;
            }
            if let Some(slot) = player.assign_slot(next) {
                if let Some(played) = player.sessions.get(&next) {
                    let login = Arc::clone(&played.login);
                    player.ended.push((slot, at));
                    self.pool.connections[slot as usize].log_in_as(&login);
                }
                return;
            }
            player.without_slot.push_front(next);
            return;
        }
    }

    /// The mix is over or was stopped: the remaining sessions leave, and waiting statements are
    /// recorded as unfinished.
    pub(super) fn end_played(&mut self, now: i64) {
        let Some(player) = self.player() else { return };
        (player.waiting, player.batches) = (0, None);
        player.ahead.clear();
        player.ended.clear();
        let sessions = std::mem::take(&mut player.sessions);
        let bound = player.bound;
        for played in sessions.into_values() {
            for (due, planned) in played.queue {
                let mut request = InFlight::new(planned.operation, planned.operation, 0, due, now);
                self.books.enter(&mut request, Outcome::Unfinished, now, false);
            }
            if let Some(slot) = played.slot {
                self.pool.connections[slot as usize].say_goodbye();
            }
        }
        *self.plan.bound.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(bound);
    }
}
