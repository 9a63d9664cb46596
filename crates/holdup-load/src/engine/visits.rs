//! The sessions of one loop: which are ready, which think, which have a request to send. The loop
//! decides when to send, and the script decides what a session does.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use crate::script::program::{Asked, Script};
use crate::script::session::{Moment, Next, Session};
use crate::script::{Failed, Filled, Value};

use super::cookies::Cookies;
use crate::schedule::Share;

/// No session.
pub const NOBODY: u32 = u32::MAX;

/// One running session, and its next request if that is known.
pub struct Visit {
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
pub struct Step {
    /// When it was due, nanoseconds of the monotonic clock.
    pub at: i64,
    /// The session.
    pub id: u32,
    /// Index of the phase in which it was due.
    pub phase: u32,
}

/// The result of continuing a session.
pub enum Turn {
    /// It sends this request next.
    Asks(u32),
    /// It waits, nanoseconds.
    Thinks(i64),
    /// It has ended.
    Ended,
    /// It failed without a request and has ended. The failure counts for this operation.
    Failed(Failed, u32),
}

/// See the module.
pub struct Visits {
    /// What all sessions share.
    pub script: Arc<Script>,
    share: Share,
    begun: u64,
    asked: u64,
    visits: Vec<Option<Box<Visit>>>,
    free: Vec<u32>,
    /// Ended sessions, whose memory is reused.
    #[expect(clippy::vec_box, reason = "they go from one list to the other as they are")]
    spare: Vec<Box<Visit>>,
    /// Sessions whose next request is known and may be sent at any arrival, by flow.
    ready: Vec<Vec<u32>>,
    /// Sessions that think, by when that ends.
    thinking: BinaryHeap<Reverse<(i64, u32)>>,
    /// Sessions whose next request is due and has no slot yet.
    pub due: VecDeque<Step>,
    /// Working memory for filling in requests.
    pub filled: Filled,
    /// Variables of the last session that completed, if they are to be kept.
    pub left: Option<Vec<Value>>,
    keeps: bool,
}

/// Most ended sessions that are kept for their memory.
const SPARE_MOST: usize = 1_024;

impl Visits {
    /// For the loop with this share; `keeps` whether to keep the variables of the last session.
    pub fn new(script: Arc<Script>, share: Share, keeps: bool) -> Self {
        Self {
            ready: vec![Vec::new(); script.flows.len()],
            script,
            share,
            begun: 0,
            asked: 0,
            visits: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            thinking: BinaryHeap::new(),
            due: VecDeque::new(),
            filled: Filled::default(),
            left: None,
            keeps,
        }
    }

    /// Begins a session of `flow`.
    pub fn begin(&mut self, flow: u32) -> u32 {
        let number = u64::from(self.share.index) + self.begun * u64::from(self.share.of);
        self.begun += 1;
        let visit = match self.spare.pop() {
            Some(mut visit) => {
                visit.session.restart(&self.script, flow, number);
                visit.cookies = Cookies::default();
                visit.pending = None;
                visit
            }
            None => Box::new(Visit {
                session: Session::new(&self.script, flow, number),
                cookies: Cookies::default(),
                pending: None,
                operation: 0,
            }),
        };
        match self.free.pop() {
            Some(id) => {
                self.visits[id as usize] = Some(visit);
                id
            }
            None => {
                self.visits.push(Some(visit));
                self.visits.len() as u32 - 1
            }
        }
    }

    /// Ends a session.
    pub fn end(&mut self, id: u32) {
        if let Some(visit) = self.visits.get_mut(id as usize).and_then(Option::take) {
            self.free.push(id);
            if self.spare.len() < SPARE_MOST {
                self.spare.push(visit);
            }
        }
    }

    /// The session.
    pub fn get_mut(&mut self, id: u32) -> Option<&mut Visit> {
        self.visits.get_mut(id as usize)?.as_deref_mut()
    }

    /// The session, its script, and memory to fill a request in.
    pub fn with(&mut self, id: u32) -> Option<(&mut Visit, &Script, &mut Filled)> {
        let visit = self.visits.get_mut(id as usize)?.as_deref_mut()?;
        Some((visit, &self.script, &mut self.filled))
    }

    /// The description of a request.
    pub fn asked(&self, request: u32) -> &Asked {
        &self.script.requests[request as usize]
    }

    /// Continues a session until it sends, thinks, or ends. A session that ends is removed.
    pub fn go_on(&mut self, id: u32, now: Moment) -> Turn {
        let Some(visit) = self.visits.get_mut(id as usize).and_then(Option::as_deref_mut) else { return Turn::Ended };
        if let Some(request) = visit.pending {
            return Turn::Asks(request);
        }
        match visit.session.next(&self.script, now) {
            Next::Request(request) => {
                visit.pending = Some(request);
                visit.operation = self.script.requests[request as usize].operation;
                Turn::Asks(request)
            }
            Next::Wait(length) => Turn::Thinks(length),
            Next::End => {
                if self.keeps {
                    self.left = Some(visit.session.values().to_vec());
                }
                self.end(id);
                Turn::Ended
            }
            Next::Failed(failed) => {
                let operation = visit.operation;
                self.end(id);
                Turn::Failed(failed, operation)
            }
        }
    }

    /// Takes the next ready session of `flow`: the one that became ready last, so that as few
    /// sessions as possible run at once.
    pub fn take_ready(&mut self, flow: u32) -> Option<u32> {
        self.ready[flow as usize].pop()
    }

    /// A session's next request may be sent at any arrival.
    pub fn is_ready(&mut self, id: u32) {
        if let Some(visit) = self.visits.get(id as usize).and_then(Option::as_ref) {
            self.ready[visit.session.flow() as usize].push(id);
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
        self.asked += 1;
        u64::from(self.share.index) + (self.asked - 1) * u64::from(self.share.of)
    }

    /// A session that has finished thinking by `now`, and when it finished.
    pub fn next_done(&mut self, now: i64) -> Option<(i64, u32)> {
        let Reverse((until, id)) = *self.thinking.peek().filter(|Reverse((until, _))| *until <= now)?;
        self.thinking.pop();
        Some((until, id))
    }

    /// Whether any session is still running.
    pub fn are_under_way(&self) -> bool {
        !self.thinking.is_empty() || !self.due.is_empty()
    }
}
