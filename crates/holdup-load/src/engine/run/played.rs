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
use crate::engine::lanes::{InFlight, Told};
use crate::engine::outcome::Outcome;
use crate::engine::plan::Prepared;
use crate::schedule::played::{Ask, Bound, Entry, Feed, Play, What};
use crate::sys::monotonic_ns;

/// Plays that are handed over together, and (below) most bytes of their statements.
const TOGETHER: usize = 128;
const TOGETHER_BYTES: usize = 256 << 10;

/// Batches that are read ahead.
const LOTS_AHEAD: usize = 64;

/// How soon an empty channel is checked again.
const ASK_AGAIN_NS: i64 = 1_000_000;

/// Owner of a free slot.
const NOBODY: u64 = u64::MAX;

/// Batches that have to be there before the load starts.
const LOTS_AT_FIRST: usize = LOTS_AHEAD / 2;

/// Reads ahead until the receiver of `lots` is gone. `begun` is dropped when there is enough to
/// begin with.
pub fn read_ahead(feed: Feed, lots: &SyncSender<Vec<Play>>, begun: Sender<()>) {
    let (mut lot, mut bytes, mut given) = (Vec::with_capacity(TOGETHER), 0, 0);
    let mut begun = Some(begun);
    for play in feed {
        if let What::Ask(ask, _) = &play.what {
            bytes += ask.statements.iter().map(|s| s.text.len()).sum::<usize>();
        }
        lot.push(play);
        if lot.len() >= TOGETHER || bytes >= TOGETHER_BYTES {
            bytes = 0;
            if lots.send(std::mem::replace(&mut lot, Vec::with_capacity(TOGETHER))).is_err() {
                return;
            }
            given += 1;
            if given >= LOTS_AT_FIRST {
                begun = None;
            }
        }
    }
    // Sending fails only if the run was stopped.
    let _ = lots.send(lot);
    drop(begun);
}

/// The two ends of the channel for reading ahead.
pub fn lots() -> (SyncSender<Vec<Play>>, Receiver<Vec<Play>>) {
    sync_channel(LOTS_AHEAD)
}

/// A session of the mix.
struct Seat {
    /// Its slot; none while the most sessions allowed are connected.
    lane: Option<u32>,
    login: Arc<Login>,
    /// Statements that are due and wait for their turn.
    queue: VecDeque<(i64, Box<Ask>)>,
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
    pub bound: Bound,
    lots: Option<Receiver<Vec<Play>>>,
    ahead: VecDeque<Play>,
    seats: HashMap<u64, Seat>,
    /// Slots without an owner.
    free: Vec<u32>,
    /// The owner of each slot.
    owners: Vec<u64>,
    /// Sessions without a slot.
    unseated: VecDeque<u64>,
    /// Slots whose statement has ended, and when.
    ended: Vec<(u32, i64)>,
    /// One login per account and database, so that SCRAM's keys are derived once.
    logins: HashMap<Entry, Arc<Login>>,
}

impl Player {
    /// What to play, and the number of slots.
    pub fn takes(&mut self, lots: Receiver<Vec<Play>>, lanes: usize) {
        self.lots = Some(lots);
        self.free = (0..lanes as u32).rev().collect();
        self.owners = vec![NOBODY; lanes];
    }

    fn fill(&mut self) {
        while self.ahead.is_empty()
            && let Some(lots) = &self.lots
        {
            match lots.try_recv() {
                Ok(lot) => self.ahead.extend(lot),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => self.lots = None,
            }
        }
    }

    /// When the next timed event comes.
    pub fn next_moment(&mut self) -> i64 {
        self.fill();
        match self.ahead.front() {
            _ if !self.ended.is_empty() => 0,
            Some(play) => self.started + play.due_ns,
            None if self.lots.is_some() => monotonic_ns() + ASK_AGAIN_NS,
            None => i64::MAX,
        }
    }

    /// Whether no more plays will come, and none waits.
    pub fn is_over(&mut self) -> bool {
        self.fill();
        self.lots.is_none() && self.ahead.is_empty() && self.waiting == 0 && self.ended.is_empty()
    }

    /// The next play that is due by `now`.
    fn next_due(&mut self, now: i64) -> Option<Play> {
        self.fill();
        let latest = now - self.started;
        if self.ahead.front()?.due_ns <= latest { self.ahead.pop_front() } else { None }
    }

    /// The owner of `lane`, or [`NOBODY`].
    fn owner(&self, lane: u32) -> u64 {
        self.owners.get(lane as usize).copied().unwrap_or(NOBODY)
    }

    /// Gives a session a slot if one is free.
    fn sit(&mut self, session: u64) -> Option<u32> {
        let seat = self.seats.get_mut(&session)?;
        if seat.lane.is_none() {
            let lane = self.free.pop()?;
            seat.lane = Some(lane);
            if let Some(owner) = self.owners.get_mut(lane as usize) {
                *owner = session;
            }
        }
        seat.lane
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
        while let Some(Play { session, due_ns, what }) = self.player().and_then(|player| player.next_due(now)) {
            let due = self.started + due_ns;
            match what {
                What::Open(entry) => {
                    if let Some(lane) = self.seat(session, &entry)
                        && self.connections[lane as usize].stage() == Stage::Closed
                    {
                        self.open(lane, now);
                    }
                }
                What::Ask(ask, entry) => {
                    self.admitted += 1;
                    let lane = self.seat(session, &entry);
                    let is_free = lane.is_some_and(|lane| self.lanes.get(lane).is_none());
                    let Some(player) = self.player() else { return };
                    let Some(seat) = player.seats.get_mut(&session) else { continue };
                    if let (Some(lane), true, true) = (lane, is_free, seat.queue.is_empty()) {
                        self.play(lane, session, due, due, *ask);
                    } else {
                        seat.queue.push_back((due, ask));
                        player.waiting += 1;
                        self.capped += u64::from(lane.is_none());
                    }
                }
                What::Close => {
                    let Some(seat) = self.player().and_then(|player| player.seats.get_mut(&session)) else { continue };
                    seat.is_leaving = true;
                    let (is_done, lane) = (seat.queue.is_empty(), seat.lane);
                    match lane {
                        Some(lane) if is_done && self.lanes.get(lane).is_none() => self.leave(lane, now),
                        None if is_done => {
                            self.player().map(|player| player.seats.remove(&session));
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// The slot of a session; it gets one if it has none and one is free.
    fn seat(&mut self, session: u64, entry: &Entry) -> Option<u32> {
        let Demand::Played(player) = &mut self.demand else { return None };
        if let Some(seat) = player.seats.get(&session) {
            return seat.lane;
        }
        let login = match player.logins.get(entry) {
            Some(login) => Arc::clone(login),
            None => {
                let login = self.plan.login(entry.as_deref())?;
                player.logins.insert(entry.clone(), Arc::clone(&login));
                login
            }
        };
        let seat = Seat { lane: None, login: Arc::clone(&login), queue: VecDeque::new(), is_leaving: false };
        player.seats.insert(session, seat);
        let lane = player.sit(session);
        match lane {
            Some(lane) => self.connections[lane as usize].log_in_as(&login),
            None => {
                player.bound.unseated += 1;
                player.unseated.push_back(session);
            }
        }
        lane
    }

    /// Sends a statement in the slot of its session, which was free from `ready` on.
    fn play(&mut self, lane: u32, session: u64, due: i64, ready: i64, ask: Ask) {
        let is_hashed =
            self.plan.manner.as_ref().is_some_and(|manner| manner.rows != holdup_protocol::database::Rows::Passed);
        let Ask { operation, number, statements, digest, logged_ns, trace_id } = ask;
        let prepared = Prepared::statements(operation, statements);
        let told = Told {
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
            told: Some(Box::new(told)),
            ..InFlight::new(operation, operation, 0, due, ready)
        };
        self.place(lane, request);
    }

    /// The statement of a slot has ended at `at`. [`Self::dispatch_played`] handles the
    /// consequences: handled here, a server that refuses connections would cause endless recursion.
    pub(super) fn played(&mut self, lane: u32, at: i64) {
        if let Some(player) = self.player() {
            player.ended.push((lane, at));
        }
    }

    /// Sessions whose statement has ended go on with the next that is due, or leave.
    pub(super) fn dispatch_played(&mut self) {
        while let Some((lane, at)) = self.player().and_then(|player| player.ended.pop()) {
            self.go_on(lane, at);
        }
    }

    fn go_on(&mut self, lane: u32, at: i64) {
        if self.lanes.get(lane).is_some() {
            return;
        }
        let Some(player) = self.player() else { return };
        let session = player.owner(lane);
        let Some(seat) = player.seats.get_mut(&session) else { return };
        if let Some((due, ask)) = seat.queue.pop_front() {
            player.waiting -= 1;
            let waited_ns = (at - due).max(0).unsigned_abs();
            player.bound.statements += 1;
            player.bound.waited_ns += waited_ns;
            player.bound.longest_ns = player.bound.longest_ns.max(waited_ns);
            self.play(lane, session, due, at.max(due), *ask);
        } else if seat.is_leaving {
            self.leave(lane, at);
        }
    }

    /// A session leaves; its slot goes to the next session without one.
    fn leave(&mut self, lane: u32, at: i64) {
        self.connections[lane as usize].say_goodbye();
        self.close(lane);
        let Some(player) = self.player() else { return };
        let session = player.owner(lane);
        player.seats.remove(&session);
        if let Some(owner) = player.owners.get_mut(lane as usize) {
            *owner = NOBODY;
        }
        player.free.push(lane);
        while let Some(next) = player.unseated.pop_front() {
            // That session may have left already, without ever having a slot.
            if !player.seats.contains_key(&next) {
                continue;
            }
            if let Some(lane) = player.sit(next) {
                if let Some(seat) = player.seats.get(&next) {
                    let login = Arc::clone(&seat.login);
                    player.ended.push((lane, at));
                    self.connections[lane as usize].log_in_as(&login);
                }
                return;
            }
            player.unseated.push_front(next);
            return;
        }
    }

    /// The mix is over or was stopped: the remaining sessions leave, and waiting statements are
    /// recorded as unfinished.
    pub(super) fn end_played(&mut self, now: i64) {
        let Some(player) = self.player() else { return };
        (player.waiting, player.lots) = (0, None);
        player.ahead.clear();
        player.ended.clear();
        let seats = std::mem::take(&mut player.seats);
        let bound = player.bound;
        for seat in seats.into_values() {
            for (due, ask) in seat.queue {
                let mut request = InFlight::new(ask.operation, ask.operation, 0, due, now);
                self.books.enter(&mut request, Outcome::Unfinished, now, false);
            }
            if let Some(lane) = seat.lane {
                self.connections[lane as usize].say_goodbye();
            }
        }
        *self.plan.bound.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(bound);
    }
}
