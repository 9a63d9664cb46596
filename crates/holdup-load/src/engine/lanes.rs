//! Lanes: places for one request in flight each. A connection has one, or with HTTP/2 as many as streams are
//! used. Requests in flight are also a list in the order in which they were given a lane, which, as all have the
//! same timeout, is the order of their deadlines: the oldest is found, and any is taken out, at no cost that grows.

use std::ops::Range;
use std::sync::Arc;

use super::plan::Prepared;
use super::visits::NOBODY;

/// A moment that has not come.
pub const NEVER: i64 = i64::MIN;

/// No lane.
const NONE: u32 = u32::MAX;

/// A request that has a lane. Times are nanoseconds of the monotonic clock, [`NEVER`] if it has not come to that.
pub struct InFlight {
    /// Index of the prepared request.
    pub request: u32,
    /// Index of the operation.
    pub operation: u32,
    /// Index of the phase in which it was due.
    pub phase: u32,
    /// Redirects followed.
    pub hops: u32,
    /// When it was due.
    pub due: i64,
    /// When a lane was free for it.
    pub ready: i64,
    /// Nanoseconds of connecting it waited for.
    pub connect: i64,
    /// When its first byte was given to the kernel.
    pub sent: i64,
    /// When the first byte of the response arrived.
    pub first_byte: i64,
    /// When it is given up.
    pub deadline: i64,
    /// Bytes of the response so far.
    pub bytes: u64,
    /// It has a lane on an open connection whose server allows no more streams now.
    pub is_waiting: bool,
    /// It has been sent a second time, which is not done again.
    pub is_resent: bool,
    /// Status of the response, 0 before it is known.
    pub status: u16,
    /// Where a redirect points to.
    pub location: Option<Box<[u8]>>,
    /// What is sent instead of the prepared request: a redirect's, one with cookies, or one that was filled in.
    pub instead: Option<Box<Prepared>>,
    /// The session that it is a step of, [`NOBODY`] if it stands for itself.
    pub session: u32,
    /// Its number, unique in the whole run.
    pub number: u64,
    /// Its trace id, 0 before it is sent or if it has none.
    pub trace: u128,
    /// How often it was given to a connection.
    pub sendings: u32,
    /// What the server says of its own time.
    pub timing: Option<Box<[u8]>>,
    /// What is kept of an HTTP/2 response, or of a statement's result, for checks and captures.
    pub kept: Option<Box<Kept>>,
    /// What is noted of each execution of a recorded mix.
    pub told: Option<Box<Told>>,
}

/// What is known of one execution of a recorded mix beside its times.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its number in the log.
    pub number: u64,
    /// Its session.
    pub session: u64,
    /// Digest of the statement.
    pub digest: Arc<str>,
    /// How long it took when it was logged, nanoseconds.
    pub logged_ns: Option<i64>,
    /// Trace id in its comment.
    pub trace_id: Option<Box<str>>,
    /// Rows it gave.
    pub rows: u64,
    /// Rows it changed.
    pub affected: u64,
    /// Warnings.
    pub warnings: u64,
    /// What its rows hash to, if they are hashed.
    pub hash: Option<u64>,
    /// The server's code, if it was refused.
    pub error: Option<Box<str>>,
}

/// Name and value.
type Field = (Box<[u8]>, Option<Box<[u8]>>);

/// What is kept of a response where the protocol's own session keeps nothing.
#[derive(Default)]
pub struct Kept {
    /// Header fields, or the columns of the first row; none is NULL.
    pub fields: Vec<Field>,
    /// The body's beginning.
    pub body: Vec<u8>,
    /// Most bytes of the body that are kept.
    pub most: usize,
    /// Bytes of the whole body.
    pub bytes: u64,
    /// Rows of a result.
    pub rows: u64,
}

impl Kept {
    /// Nothing yet, of a response of whose body so many bytes are to be kept.
    pub fn of_body(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// More of the body has come.
    pub fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let room = self.most.saturating_sub(self.body.len());
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// More of the body came than is kept.
    pub fn is_cut(&self) -> bool {
        self.bytes > self.body.len() as u64
    }

    /// Another response follows, and it is the one that counts.
    pub fn restart(&mut self) {
        *self = Self::of_body(self.most);
    }
}

#[derive(Clone, Copy)]
struct Links {
    before: u32,
    after: u32,
}

/// All lanes of a loop.
pub struct Lanes {
    requests: Vec<Option<InFlight>>,
    links: Vec<Links>,
    /// Since when each has been free.
    free_since: Vec<i64>,
    first: u32,
    last: u32,
    in_flight: usize,
    answering: usize,
    streams: u32,
}

impl Lanes {
    /// `count` of them, `streams` on each connection.
    pub fn new(count: usize, streams: u32) -> Self {
        Self {
            requests: (0..count).map(|_| None).collect(),
            links: vec![Links { before: NONE, after: NONE }; count],
            free_since: vec![NEVER; count],
            first: NONE,
            last: NONE,
            in_flight: 0,
            answering: 0,
            streams,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.requests.len()
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Requests of whose response a part has arrived.
    pub fn answering(&self) -> usize {
        self.answering
    }

    /// The connection that a lane belongs to.
    pub fn connection(&self, lane: u32) -> u32 {
        lane / self.streams
    }

    /// The lanes of a connection.
    pub fn of(&self, connection: u32) -> Range<u32> {
        let from = connection * self.streams;
        from..(from + self.streams).min(self.requests.len() as u32)
    }

    /// The request on a lane.
    pub fn get(&self, lane: u32) -> Option<&InFlight> {
        self.requests[lane as usize].as_ref()
    }

    /// The request on a lane.
    pub fn get_mut(&mut self, lane: u32) -> Option<&mut InFlight> {
        self.requests.get_mut(lane as usize)?.as_mut()
    }

    /// Since when a lane has been free.
    pub fn free_since(&self, lane: u32) -> i64 {
        self.free_since[lane as usize]
    }

    /// A free lane could not be used before `at`.
    pub fn free_from(&mut self, lane: u32, at: i64) {
        self.free_since[lane as usize] = at;
    }

    /// Puts a request on a free lane. Its deadline must not be before that of any other.
    pub fn begin(&mut self, lane: u32, request: InFlight) {
        debug_assert!(self.requests[lane as usize].is_none());
        self.requests[lane as usize] = Some(request);
        self.links[lane as usize] = Links { before: self.last, after: NONE };
        match self.last {
            NONE => self.first = lane,
            last => self.links[last as usize].after = lane,
        }
        self.last = lane;
        self.in_flight += 1;
    }

    /// A part of the response arrived at `at`.
    pub fn answered(&mut self, lane: u32, at: i64) -> Option<&mut InFlight> {
        let request = self.requests.get_mut(lane as usize)?.as_mut()?;
        if request.first_byte == NEVER {
            request.first_byte = at;
            self.answering += 1;
        }
        Some(request)
    }

    /// The request of a lane is over; the lane is free from `at` on. False if there was none.
    pub fn end(&mut self, lane: u32, at: i64) -> bool {
        let place = &mut self.requests[lane as usize];
        let Some(request) = place else { return false };
        self.answering -= usize::from(request.first_byte != NEVER);
        *place = None;
        let Links { before, after } = self.links[lane as usize];
        match before {
            NONE => self.first = after,
            before => self.links[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            after => self.links[after as usize].before = before,
        }
        self.in_flight -= 1;
        self.free_since[lane as usize] = at;
        true
    }

    /// The lane whose request has been on it for the longest, and when that is given up.
    pub fn oldest(&self) -> Option<(u32, i64)> {
        let request = self.requests.get(self.first as usize)?.as_ref()?;
        Some((self.first, request.deadline))
    }
}

impl InFlight {
    /// One that was due at `due` and for which a lane was free at `ready`.
    pub fn new(request: u32, operation: u32, phase: u32, due: i64, ready: i64) -> Self {
        Self {
            request,
            operation,
            phase,
            hops: 0,
            due,
            ready,
            connect: 0,
            sent: NEVER,
            first_byte: NEVER,
            deadline: i64::MAX,
            bytes: 0,
            is_waiting: false,
            is_resent: false,
            status: 0,
            location: None,
            instead: None,
            session: NOBODY,
            number: 0,
            trace: 0,
            sendings: 0,
            timing: None,
            kept: None,
            told: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_known_whatever_ends_when() {
        let mut lanes = Lanes::new(4, 1);
        let begin = |lanes: &mut Lanes, lane: u32, deadline: i64| {
            let request = InFlight { deadline, ..InFlight::new(0, 0, 0, 0, 0) };
            lanes.begin(lane, request);
        };
        for (lane, deadline) in [(2, 10), (0, 20), (3, 30)] {
            begin(&mut lanes, lane, deadline);
        }
        assert_eq!(lanes.oldest(), Some((2, 10)));
        assert!(lanes.end(0, 1) && !lanes.end(0, 1));
        assert!(lanes.answered(2, 5).is_some());
        assert_eq!((lanes.in_flight(), lanes.answering()), (2, 1));
        lanes.end(2, 6);
        begin(&mut lanes, 2, 40);
        assert_eq!((lanes.oldest(), lanes.answering(), lanes.free_since(0)), (Some((3, 30)), 0, 1));
        lanes.end(3, 7);
        lanes.end(2, 8);
        assert_eq!((lanes.oldest(), lanes.in_flight()), (None, 0));
    }
}
