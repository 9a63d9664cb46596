//! The sessions of a recorded mix: their slots, what is due for each, and what a thread has read
//! ahead of them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, sync_channel};

use holdup_protocol::database::Login;

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
pub(super) struct PlayedSession {
    /// Its slot; none while the most sessions allowed are connected.
    pub(super) slot: Option<u32>,
    pub(super) login: Arc<Login>,
    /// Statements that are due and wait for their turn.
    pub(super) queue: VecDeque<(i64, Box<PlannedExecution>)>,
    pub(super) is_leaving: bool,
}

impl PlayedSession {
    /// Without a slot yet.
    pub(super) fn new(login: Arc<Login>) -> Self {
        Self { slot: None, login, queue: VecDeque::new(), is_leaving: false }
    }
}

/// The sessions of a recorded mix, and what they play next.
#[derive(Default)]
pub struct Player {
    /// Start of the load, nanoseconds of the monotonic clock.
    pub started: i64,
    /// Statements of all sessions that are due and wait.
    pub waiting: u64,
    /// How far the log's own order delayed statements.
    pub bound: OrderDelay,
    pub(super) batches: Option<Receiver<Vec<Play>>>,
    pub(super) ahead: VecDeque<Play>,
    pub(super) sessions: HashMap<u64, PlayedSession>,
    /// Slots without an owner.
    free: Vec<u32>,
    /// The owner of each slot.
    owners: Vec<u64>,
    /// Sessions without a slot.
    pub(super) without_slot: VecDeque<u64>,
    /// Slots whose statement has ended, and when.
    pub(super) ended: Vec<(u32, i64)>,
    /// One login per account and database, so that SCRAM's keys are derived once.
    pub(super) logins: HashMap<DatabaseName, Arc<Login>>,
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
    pub(super) fn next_due(&mut self, now: i64) -> Option<Play> {
        self.fill();
        let latest = now - self.started;
        if self.ahead.front()?.due_ns <= latest { self.ahead.pop_front() } else { None }
    }

    /// Frees `slot` of its session.
    pub(super) fn vacate(&mut self, slot: u32) {
        if let Some(owner) = self.owners.get_mut(slot as usize) {
            *owner = NO_OWNER;
        }
        self.free.push(slot);
    }

    /// The owner of `slot`, or [`NO_OWNER`].
    pub(super) fn owner(&self, slot: u32) -> u64 {
        self.owners.get(slot as usize).copied().unwrap_or(NO_OWNER)
    }

    /// Gives a session a slot if one is free.
    pub(super) fn assign_slot(&mut self, session: u64) -> Option<u32> {
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
