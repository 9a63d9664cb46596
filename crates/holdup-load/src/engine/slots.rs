//! Slots: each is a place for one request in flight. A connection has one, or with HTTP/2 as many
//! as it uses streams. The requests in flight also form a list in the order in which they got their
//! slots. All have the same timeout, so this is the order of their deadlines: finding the oldest
//! and removing any takes constant time.

use std::ops::Range;
use std::sync::Arc;

use super::prepared::Prepared;
use super::sessions::NO_SESSION;

/// A time that has not come yet.
pub const NEVER: i64 = i64::MIN;

/// No slot.
const NONE: u32 = u32::MAX;

/// A request in a slot. Times are nanoseconds of the monotonic clock, [`NEVER`] if it has not got
/// that far.
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
    /// When a slot was free for it.
    pub ready: i64,
    /// Nanoseconds it waited for connecting.
    pub connect: i64,
    /// When its first byte was given to the kernel.
    pub sent: i64,
    /// When the first byte of the response arrived.
    pub first_byte: i64,
    /// When it times out.
    pub deadline: i64,
    /// Bytes of the response so far.
    pub bytes: u64,
    /// It has a slot on an open connection whose server allows no more streams now.
    pub is_waiting: bool,
    /// It has been sent a second time, which is the last.
    pub is_resent: bool,
    /// Status of the response, 0 before it is known.
    pub status: u16,
    /// The target of a redirect.
    pub location: Option<Box<[u8]>>,
    /// What is sent instead of the prepared request: a redirected request, one with cookies, or one
    /// filled in for a session.
    pub instead: Option<Box<Prepared>>,
    /// The session it is a step of, [`NO_SESSION`] if it has none.
    pub session: u32,
    /// Its number, unique in the whole run.
    pub number: u64,
    /// Its trace id, 0 before it is sent or if it has none.
    pub trace: u128,
    /// How often it was given to a connection.
    pub sendings: u32,
    /// The server's `Server-Timing`.
    pub timing: Option<Box<[u8]>>,
    /// The kept part of an HTTP/2 response, or of a statement's result, for checks and captures.
    pub kept: Option<Box<KeptResponse>>,
    /// Details of an execution of a recorded mix.
    pub execution: Option<Box<ExecutionDetails>>,
}

/// Details of one execution of a recorded mix, beside its times.
#[derive(Clone, Debug)]
pub struct ExecutionDetails {
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
    /// Rows it returned.
    pub rows: u64,
    /// Rows it changed.
    pub affected: u64,
    /// Warnings.
    pub warnings: u64,
    /// Hash of its rows, if they are hashed.
    pub hash: Option<u64>,
    /// The server's error code, if it was refused.
    pub error: Option<Box<str>>,
}

/// Name and value.
type Field = (Box<[u8]>, Option<Box<[u8]>>);

/// The kept part of a response, where the protocol's own session keeps nothing.
#[derive(Default)]
pub struct KeptResponse {
    /// Header fields, or the columns of the first row; none is NULL.
    pub fields: Vec<Field>,
    /// The start of the body.
    pub body: Vec<u8>,
    /// Most bytes of the body that are kept.
    pub most: usize,
    /// Bytes of the whole body.
    pub bytes: u64,
    /// Rows of a result.
    pub rows: u64,
}

impl KeptResponse {
    /// Empty, with room for so many bytes of a body.
    pub fn for_body(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Adds a piece of the body.
    pub fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let room = self.most.saturating_sub(self.body.len());
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Whether the body is longer than its kept part.
    pub fn is_cut(&self) -> bool {
        self.bytes > self.body.len() as u64
    }

    /// Starts over: another response follows, and that one counts.
    pub fn restart(&mut self) {
        *self = Self::for_body(self.most);
    }
}

#[derive(Clone, Copy)]
struct Links {
    before: u32,
    after: u32,
}

/// All slots of a loop.
pub struct Slots {
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

impl Slots {
    /// `count` slots, `streams` on each connection.
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

    /// Number of slots.
    pub fn count(&self) -> usize {
        self.requests.len()
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Requests whose response has begun to arrive.
    pub fn answering(&self) -> usize {
        self.answering
    }

    /// The connection that a slot belongs to.
    pub fn connection(&self, slot: u32) -> u32 {
        slot / self.streams
    }

    /// The slots of a connection.
    pub fn of_connection(&self, connection: u32) -> Range<u32> {
        let from = connection * self.streams;
        from..(from + self.streams).min(self.requests.len() as u32)
    }

    /// The request in a slot.
    pub fn get(&self, slot: u32) -> Option<&InFlight> {
        self.requests[slot as usize].as_ref()
    }

    /// The request in a slot.
    pub fn get_mut(&mut self, slot: u32) -> Option<&mut InFlight> {
        self.requests.get_mut(slot as usize)?.as_mut()
    }

    /// Since when a slot has been free.
    pub fn free_since(&self, slot: u32) -> i64 {
        self.free_since[slot as usize]
    }

    /// A free lane could not be used before `at`.
    pub fn free_from(&mut self, slot: u32, at: i64) {
        self.free_since[slot as usize] = at;
    }

    /// Puts a request into a free slot. Its deadline must not be before that of any other.
    pub fn begin(&mut self, slot: u32, request: InFlight) {
        debug_assert!(self.requests[slot as usize].is_none());
        self.requests[slot as usize] = Some(request);
        self.links[slot as usize] = Links { before: self.last, after: NONE };
        match self.last {
            NONE => self.first = slot,
            last => self.links[last as usize].after = slot,
        }
        self.last = slot;
        self.in_flight += 1;
    }

    /// A part of the response arrived at `at`.
    pub fn answered(&mut self, slot: u32, at: i64) -> Option<&mut InFlight> {
        let request = self.requests.get_mut(slot as usize)?.as_mut()?;
        if request.first_byte == NEVER {
            request.first_byte = at;
            self.answering += 1;
        }
        Some(request)
    }

    /// Ends the request in a slot; the slot is free from `at` on. False if it was empty.
    pub fn end(&mut self, slot: u32, at: i64) -> bool {
        let place = &mut self.requests[slot as usize];
        let Some(request) = place else { return false };
        self.answering -= usize::from(request.first_byte != NEVER);
        *place = None;
        let Links { before, after } = self.links[slot as usize];
        match before {
            NONE => self.first = after,
            before => self.links[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            after => self.links[after as usize].before = before,
        }
        self.in_flight -= 1;
        self.free_since[slot as usize] = at;
        true
    }

    /// The slot with the oldest request, and that request's deadline.
    pub fn oldest(&self) -> Option<(u32, i64)> {
        let request = self.requests.get(self.first as usize)?.as_ref()?;
        Some((self.first, request.deadline))
    }
}

impl InFlight {
    /// A request that was due at `due` and got a slot that was free at `ready`.
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
            session: NO_SESSION,
            number: 0,
            trace: 0,
            sendings: 0,
            timing: None,
            kept: None,
            execution: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_known_whatever_ends_when() {
        let mut slots = Slots::new(4, 1);
        let begin = |slots: &mut Slots, slot: u32, deadline: i64| {
            let request = InFlight { deadline, ..InFlight::new(0, 0, 0, 0, 0) };
            slots.begin(slot, request);
        };
        for (slot, deadline) in [(2, 10), (0, 20), (3, 30)] {
            begin(&mut slots, slot, deadline);
        }
        assert_eq!(slots.oldest(), Some((2, 10)));
        assert!(slots.end(0, 1) && !slots.end(0, 1));
        assert!(slots.answered(2, 5).is_some());
        assert_eq!((slots.in_flight(), slots.answering()), (2, 1));
        slots.end(2, 6);
        begin(&mut slots, 2, 40);
        assert_eq!((slots.oldest(), slots.answering(), slots.free_since(0)), (Some((3, 30)), 0, 1));
        slots.end(3, 7);
        slots.end(2, 8);
        assert_eq!((slots.oldest(), slots.in_flight()), (None, 0));
    }
}
