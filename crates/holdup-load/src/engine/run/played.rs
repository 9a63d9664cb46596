//! A recorded mix within a loop. Each session has its own slot, from when it connected to when it
//! left; each statement is sent when it is due, but not before the one before it has ended. A
//! separate thread reads ahead.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, sync_channel};

use holdup_protocol::database::Login;

use super::Loop;
use super::demand::Demand;
use crate::engine::connection::Stage;
use crate::engine::outcome::Outcome;
use crate::engine::plan::Prepared;
use crate::engine::slots::{ExecutionDetails, InFlight};
use crate::schedule::played::{Action, DatabaseName, Feed, OrderDelay, PlannedExecution, Play};
use crate::sys::monotonic_ns;

/// Plays that are handed over together, and (below) most bytes of their statements.
const BATCH_MOST: usize = 128;
const BATCH_BYTES_MOST: usize = 256 << 10;

/// Batches that are read ahead.
const BATCHES_AHEAD: usize = 64;

/// How soon an empty channel is checked again.
const ASK_AGAIN_NS: i64 = 1_000_000;

/// Owner of a free slot.
const NO_OWNER: u64 = u64::MAX;

/// Batches that have to be there before the load starts.
const BATCHES_AT_FIRST: usize = BATCHES_AHEAD / 2;

/// Reads ahead until the receiver of `batches` is gone. `begun` is dropped when there is enough to
/// begin with.
pub fn read_ahead(feed: Feed, batches: &SyncSender<Vec<Play>>, begun: Sender<()>) {
    let (mut batch, mut bytes, mut given) = (Vec::with_capacity(BATCH_MOST), 0, 0);
    let mut begun = Some(begun);
    for play in feed {
        if let Action::Execute(planned, _) = &play.action {
            bytes += planned.statements.iter().map(|s| s.text.len()).sum::<usize>();
        }
        batch.push(play);
        if batch.len() >= BATCH_MOST || bytes >= BATCH_BYTES_MOST {
            bytes = 0;
            if batches.send(std::mem::replace(&mut batch, Vec::with_capacity(BATCH_MOST))).is_err() {
                return;
            }
            given += 1;
            if given >= BATCHES_AT_FIRST {
                begun = None;
            }
        }
    }
    // Sending fails only if the run was stopped.
    let _ = batches.send(batch);
    drop(begun);
}

/// The two ends of the channel for reading ahead.
pub fn batches() -> (SyncSender<Vec<Play>>, Receiver<Vec<Play>>) {
    sync_channel(BATCHES_AHEAD)
}

/// A session of the mix.
struct PlayedSession {
    /// Its slot; none while the most sessions allowed are connected.
    slot: Option<u32>,
    login: Arc<Login>,
    /// Statements that are due and wait for their turn.
    queue: VecDeque<(i64, Box<PlannedExecution>)>,
    is_leaving: bool,
}

/// See the module.
#[derive(Default)]
pub struct Player {
    /// Start of the load, nanoseconds of the monotonic clock.
    pub started: i64,
    /// Statements of all sessions that are due and wait.
    pub waiting: u64,
    /// How far the log's own order delayed statements.
    pub bound: OrderDelay,
    batches: Option<Receiver<Vec<Play>>>,
    ahead: VecDeque<Play>,
    sessions: HashMap<u64, PlayedSession>,
    /// Slots without an owner.
    free: Vec<u32>,
    /// The owner of each slot.
    owners: Vec<u64>,
    /// Sessions without a slot.
    without_slot: VecDeque<u64>,
    /// Slots whose statement has ended, and when.
    ended: Vec<(u32, i64)>,
    /// One login per account and database, so that SCRAM's keys are derived once.
    logins: HashMap<DatabaseName, Arc<Login>>,
}

impl Player {
    /// What to play, and the number of slots.
    pub fn start(&mut self, batches: Receiver<Vec<Play>>, slots: usize) {
        self.batches = Some(batches);
        self.free = (0..slots as u32).rev().collect();
        self.owners = vec![NO_OWNER; slots];
    }

    fn fill(&mut self) {
        while self.ahead.is_empty()
            && let Some(batches) = &self.batches
        {
            match batches.try_recv() {
                Ok(batch) => self.ahead.extend(batch),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => self.batches = None,
            }
        }
    }

    /// When the next timed event comes.
    pub fn next_moment(&mut self) -> i64 {
        self.fill();
        match self.ahead.front() {
            _ if !self.ended.is_empty() => 0,
            Some(play) => self.started + play.due_ns,
            None if self.batches.is_some() => monotonic_ns() + ASK_AGAIN_NS,
            None => i64::MAX,
        }
    }

    /// Whether no more plays will come, and none waits.
    pub fn is_over(&mut self) -> bool {
        self.fill();
        self.batches.is_none() && self.ahead.is_empty() && self.waiting == 0 && self.ended.is_empty()
    }

    /// The next play that is due by `now`.
    fn next_due(&mut self, now: i64) -> Option<Play> {
        self.fill();
        let latest = now - self.started;
        if self.ahead.front()?.due_ns <= latest { self.ahead.pop_front() } else { None }
    }

    /// The owner of `slot`, or [`NO_OWNER`].
    fn owner(&self, slot: u32) -> u64 {
        self.owners.get(slot as usize).copied().unwrap_or(NO_OWNER)
    }

    /// Gives a session a slot if one is free.
    fn assign_slot(&mut self, session: u64) -> Option<u32> {
        let played = self.sessions.get_mut(&session)?;
        if played.slot.is_none() {
            let slot = self.free.pop()?;
            played.slot = Some(slot);
            if let Some(owner) = self.owners.get_mut(slot as usize) {
                *owner = session;
            }
        }
        played.slot
    }
}

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
            let due = self.started + due_ns;
            match action {
                Action::Open(entry) => {
                    if let Some(slot) = self.slot_for(session, &entry)
                        && self.connections[slot as usize].stage() == Stage::Closed
                    {
                        self.open(slot, now);
                    }
                }
                Action::Execute(planned, entry) => {
                    self.admitted += 1;
                    let slot = self.slot_for(session, &entry);
                    let is_free = slot.is_some_and(|slot| self.slots.get(slot).is_none());
                    let Some(player) = self.player() else { return };
                    let Some(played) = player.sessions.get_mut(&session) else { continue };
                    if let (Some(slot), true, true) = (slot, is_free, played.queue.is_empty()) {
                        self.play(slot, session, due, due, *planned);
                    } else {
                        played.queue.push_back((due, planned));
                        player.waiting += 1;
                        self.capped += u64::from(slot.is_none());
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
        let played = PlayedSession { slot: None, login: Arc::clone(&login), queue: VecDeque::new(), is_leaving: false };
        player.sessions.insert(session, played);
        let slot = player.assign_slot(session);
        match slot {
            Some(slot) => self.connections[slot as usize].log_in_as(&login),
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
        self.connections[slot as usize].say_goodbye();
        self.close(slot);
        let Some(player) = self.player() else { return };
        let session = player.owner(slot);
        player.sessions.remove(&session);
        if let Some(owner) = player.owners.get_mut(slot as usize) {
            *owner = NO_OWNER;
        }
        player.free.push(slot);
        while let Some(next) = player.without_slot.pop_front() {
            // That session may have left already, without ever having a slot.
            if !player.sessions.contains_key(&next) {
                continue;
            }
            if let Some(slot) = player.assign_slot(next) {
                if let Some(played) = player.sessions.get(&next) {
                    let login = Arc::clone(&played.login);
                    player.ended.push((slot, at));
                    self.connections[slot as usize].log_in_as(&login);
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
                self.connections[slot as usize].say_goodbye();
            }
        }
        *self.plan.bound.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(bound);
    }
}
