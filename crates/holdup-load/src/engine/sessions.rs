//! The sessions of one loop: which are ready, which think, which have a request to send. The loop
//! decides when to send, and the script decides what a session does.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use crate::script::program::{RequestSpec, Script};
use crate::script::session::{Moment, Next, Session};
use crate::script::{FilledRequest, StepFailure, Value};

use super::cookies::Cookies;
use crate::schedule::Share;

/// No session.
pub const NO_SESSION: u32 = u32::MAX;

/// One running session, and its next request if that is known.
pub struct ActiveSession {
    /// Its place in the script.
    pub session: Session,
    /// Its cookies.
    pub cookies: Cookies,
    /// Index of its next request.
    pub pending: Option<u32>,
    /// Operation of its last request: a failure without a request is counted for it.
    pub operation: u32,
}

/// A session's next request, due by itself.
#[derive(Clone, Copy)]
pub struct DueRequest {
    /// When it was due, nanoseconds of the monotonic clock.
    pub at: i64,
    /// The session.
    pub id: u32,
    /// Index of the phase in which it was due.
    pub phase: u32,
}

/// The result of continuing a session.
pub enum NextAction {
    /// It sends this request next.
    Sends(u32),
    /// It waits, nanoseconds.
    Thinks(i64),
    /// It has ended.
    Ended,
    /// It failed without a request and has ended. The failure counts for this operation.
    Failed(StepFailure, u32),
}

/// See the module.
pub struct ActiveSessions {
    /// What all sessions share.
    pub script: Arc<Script>,
    share: Share,
    begun: u64,
    numbered: u64,
    sessions: Vec<Option<Box<ActiveSession>>>,
    free: Vec<u32>,
    /// Ended sessions, whose memory is reused.
    #[expect(clippy::vec_box, reason = "they go from one list to the other as they are")]
    spare: Vec<Box<ActiveSession>>,
    /// Sessions whose next request is known and may be sent at any arrival, by flow.
    ready: Vec<Vec<u32>>,
    /// Sessions that think, by when that ends.
    thinking: BinaryHeap<Reverse<(i64, u32)>>,
    /// Sessions whose next request is due and has no slot yet.
    pub due: VecDeque<DueRequest>,
    /// Working memory for filling in requests.
    pub filled: FilledRequest,
    /// Variables of the last session that completed, if they are to be kept.
    pub left: Option<Vec<Value>>,
    keeps: bool,
    /// In a closed model, the session of each slot's user.
    by_slot: Vec<u32>,
}

/// Most ended sessions that are kept for their memory.
const SPARE_MOST: usize = 1_024;

impl ActiveSessions {
    /// For the loop with this share; `keeps` whether to keep the variables of the last session. In a
    /// closed model `users` have a slot each.
    pub fn new(script: Arc<Script>, share: Share, keeps: bool, users: usize) -> Self {
        Self {
            ready: vec![Vec::new(); script.flows.len()],
            script,
            share,
            begun: 0,
            numbered: 0,
            sessions: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            thinking: BinaryHeap::new(),
            due: VecDeque::new(),
            filled: FilledRequest::default(),
            left: None,
            keeps,
            by_slot: vec![NO_SESSION; users],
        }
    }

    /// Begins a session of `flow`.
    pub fn begin(&mut self, flow: u32) -> u32 {
        let number = u64::from(self.share.index) + self.begun * u64::from(self.share.of);
        self.begun += 1;
        let active = match self.spare.pop() {
            Some(mut active) => {
                active.session.restart(&self.script, flow, number);
                active.cookies = Cookies::default();
                active.pending = None;
                active
            }
            None => Box::new(ActiveSession {
                session: Session::new(&self.script, flow, number),
                cookies: Cookies::default(),
                pending: None,
                operation: 0,
            }),
        };
        match self.free.pop() {
            Some(id) => {
                self.sessions[id as usize] = Some(active);
                id
            }
            None => {
                self.sessions.push(Some(active));
                self.sessions.len() as u32 - 1
            }
        }
    }

    /// Ends a session.
    pub fn end(&mut self, id: u32) {
        if let Some(active) = self.sessions.get_mut(id as usize).and_then(Option::take) {
            self.free.push(id);
            if self.spare.len() < SPARE_MOST {
                self.spare.push(active);
            }
        }
    }

    /// The session of a slot's user.
    pub fn of_slot(&self, slot: u32) -> u32 {
        self.by_slot.get(slot as usize).copied().unwrap_or(NO_SESSION)
    }

    /// A slot's user has this session from now on.
    pub fn seat(&mut self, slot: u32, id: u32) {
        self.by_slot[slot as usize] = id;
    }

    /// Ends a session, and its user has none.
    pub fn leave(&mut self, id: u32) {
        self.end(id);
        if let Some(place) = self.by_slot.iter_mut().find(|place| **place == id) {
            *place = NO_SESSION;
        }
    }

    /// The session.
    pub fn get_mut(&mut self, id: u32) -> Option<&mut ActiveSession> {
        self.sessions.get_mut(id as usize)?.as_deref_mut()
    }

    /// The session, its script, and memory to fill a request in.
    pub fn parts(&mut self, id: u32) -> Option<(&mut ActiveSession, &Script, &mut FilledRequest)> {
        let active = self.sessions.get_mut(id as usize)?.as_deref_mut()?;
        Some((active, &self.script, &mut self.filled))
    }

    /// The description of a request.
    pub fn request_spec(&self, request: u32) -> &RequestSpec {
        &self.script.requests[request as usize]
    }

    /// Continues a session until it sends, thinks, or ends. A session that ends is removed.
    pub fn go_on(&mut self, id: u32, now: Moment) -> NextAction {
        let Some(active) = self.sessions.get_mut(id as usize).and_then(Option::as_deref_mut) else {
            return NextAction::Ended;
        };
        if let Some(request) = active.pending {
            return NextAction::Sends(request);
        }
        match active.session.next(&self.script, now) {
            Next::Request(request) => {
                active.pending = Some(request);
                active.operation = self.script.requests[request as usize].operation;
                NextAction::Sends(request)
            }
            Next::Wait(length) => NextAction::Thinks(length),
            Next::End => {
                if self.keeps {
                    self.left = Some(active.session.values().to_vec());
                }
                self.end(id);
                NextAction::Ended
            }
            Next::Failed(failed) => {
                let operation = active.operation;
                self.end(id);
                NextAction::Failed(failed, operation)
            }
        }
    }

    /// Takes the next ready session of `flow`: the one that became ready last, so that as few
    /// sessions as possible run at once.
    pub fn take_ready(&mut self, flow: u32) -> Option<u32> {
        self.ready[flow as usize].pop()
    }

    /// A session's next request may be sent at any arrival.
    pub fn mark_ready(&mut self, id: u32) {
        if let Some(active) = self.sessions.get(id as usize).and_then(Option::as_ref) {
            self.ready[active.session.flow() as usize].push(id);
        }
    }

    /// A session thinks until `until`.
    pub fn think(&mut self, id: u32, until: i64) {
        self.thinking.push(Reverse((until, id)));
    }

    /// When the next timed event comes: a session has finished thinking, or a request has waited
    /// for `timeout_ns`.
    pub fn next_moment(&self, timeout_ns: i64) -> i64 {
        let thought = self.thinking.peek().map_or(i64::MAX, |Reverse((until, _))| *until);
        self.due.front().map_or(thought, |step| thought.min(step.at + timeout_ns))
    }

    /// Number of the next request, unique in the whole run.
    pub fn next_number(&mut self) -> u64 {
        self.numbered += 1;
        u64::from(self.share.index) + (self.numbered - 1) * u64::from(self.share.of)
    }

    /// A session that has finished thinking by `now`, and when it finished.
    pub fn next_awake(&mut self, now: i64) -> Option<(i64, u32)> {
        let Reverse((until, id)) = *self.thinking.peek().filter(|Reverse((until, _))| *until <= now)?;
        self.thinking.pop();
        Some((until, id))
    }

    /// Whether any session is still running.
    pub fn any_is_running(&self) -> bool {
        !self.thinking.is_empty() || !self.due.is_empty()
    }
}
