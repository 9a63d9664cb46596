//! One loop: take what is due, give it to free lanes, move bytes, give up what is too old, sleep until the next
//! thing is due. It shares nothing with other loops while it runs.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::iter::Peekable;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Barrier, PoisonError};
use std::time::Duration;

use holdup_http::Wanted;
use holdup_http::http1::HeadMemo;

use super::LoadError;
use super::books::Books;
use super::connection::{Clock, Connection, Desk, Ended, Received, Stage};
use super::gather::{Counters, Report};
use super::lanes::{InFlight, Lanes, NEVER};
use super::outcome::Outcome;
use super::plan::{Form, Plan, Prepared};
use crate::model::Load;
use crate::scenario::HttpVersion;
use crate::schedule::{Arrivals, Share};
use crate::stats::{Latencies, SLICE};
use crate::sys::{self, Epoll, Ready, monotonic_ns};

/// How often the live view is refreshed and rows are handed over.
const REFRESH_NS: i64 = 200_000_000;

/// The longest sleep, so that a stop is noticed.
const LONGEST_SLEEP_NS: i64 = 50_000_000;

/// Responses that nothing waits for are read at the next send if that is so near: the kernel has stamped them, and
/// one wake does for both.
const READ_SLACK_NS: i64 = 1_000_000;

/// A wait shorter than this did not sleep: it is work.
const NO_SLEEP_NS: i64 = 4_000;

/// Bytes read at once.
const READ_BUFFER: usize = 64 * 1024;

/// Connections that are being made at once before the load starts: what a listener's queue takes (listen(2)).
const CONNECTING_MOST: usize = 256;

/// How long connecting ahead of time may take.
const CONNECT_AHEAD_NS: i64 = 5_000_000_000;

/// A user of a closed model whose connection could not be made tries again after this.
const RETRY_NS: i64 = 100_000_000;

/// A user whose connection takes no more requests now looks again after this.
const NO_ROOM_NS: i64 = 1_000_000;

/// What one loop is given.
pub struct Task<'a> {
    /// What all loops share.
    pub plan: &'a Plan<'a>,
    /// Its number, from 0.
    pub index: usize,
    /// Its part of the requests or users.
    pub share: Share,
    /// Its lanes.
    pub lanes: usize,
    /// Where it writes down.
    pub books: Books,
    /// Where it reports.
    pub reports: Sender<Report>,
    /// Set when the user wants an end.
    pub stop: &'a AtomicBool,
}

/// When requests come about.
enum Demand {
    /// The schedule twice: up to what is due, and up to what has been given a lane. What lies between them waits,
    /// and takes no memory.
    Open { due: Peekable<Arrivals>, next: Peekable<Arrivals> },
    /// Users who think until then, by lane; and requests made so far.
    Closed { thinking: BinaryHeap<Reverse<(i64, u32)>>, think_ns: i64, until: i64, made: u64 },
}

/// See the module.
pub struct Loop<'a> {
    plan: &'a Plan<'a>,
    index: usize,
    share: Share,
    stop: &'a AtomicBool,
    reports: Sender<Report>,
    books: Books,
    epoll: Epoll,
    clock: Clock,
    connections: Vec<Connection>,
    lanes: Lanes,
    demand: Demand,
    wanted: Wanted,
    quantum_ns: i64,
    timeout_ns: i64,
    in_turn: bool,
    is_http2: bool,
    /// Free lanes of open connections with the connection's generation; stale ones are passed over.
    idle: VecDeque<(u32, u32)>,
    /// Slots without a connection (open model).
    vacant: Vec<u32>,
    /// Connections being made.
    connecting: usize,
    /// Requests that are due and have no lane.
    waiting: u64,
    /// Requests that were due so far, and how many of them have been looked at for [`Counters::capped`].
    admitted: u64,
    looked_at: u64,
    capped: u64,
    /// Connections with something left to read, and HTTP/2 sessions with something to write.
    more: Vec<u32>,
    unflushed: Vec<u32>,
    ended: Vec<Ended>,
    set_cookies: Vec<(u32, Box<[u8]>)>,
    memo: HeadMemo,
    buffer: Vec<u8>,
    started: i64,
    slice_from: i64,
    busy_ns: i64,
    cpu_begun: i64,
}

impl<'a> Loop<'a> {
    /// # Errors
    /// If the kernel refuses what the loop itself needs.
    pub fn new(task: Task<'a>) -> Result<Self, LoadError> {
        let Task { plan, index, share, lanes, books, reports, stop } = task;
        let scenario = plan.scenario;
        let streams = scenario.http.streams.max(1);
        let connections = lanes.div_ceil(streams as usize);
        let demand = match &scenario.load {
            Load::Open(schedule) => {
                Demand::Open { due: schedule.arrivals(share).peekable(), next: schedule.arrivals(share).peekable() }
            }
            Load::Closed(closed) => Demand::Closed {
                thinking: BinaryHeap::with_capacity(lanes),
                think_ns: closed.think.as_nanos() as i64,
                until: closed.length.as_nanos() as i64,
                made: 0,
            },
        };
        let is_closed = matches!(demand, Demand::Closed { .. });
        Ok(Self {
            epoll: Epoll::new()?,
            clock: Clock::default(),
            connections: (0..connections).map(|c| Connection::new(c as u32 * streams, scenario.http.version)).collect(),
            lanes: Lanes::new(lanes, streams),
            demand,
            wanted: Wanted { location: scenario.http.redirects > 0, set_cookie: scenario.http.cookies },
            quantum_ns: if is_closed { 0 } else { scenario.generator.pace.quantum_ns() },
            timeout_ns: scenario.timeout.as_nanos() as i64,
            is_http2: scenario.http.version == HttpVersion::Http2,
            in_turn: scenario.generator.open_all,
            idle: VecDeque::with_capacity(lanes),
            vacant: if is_closed { Vec::new() } else { (0..connections as u32).rev().collect() },
            connecting: 0,
            waiting: 0,
            admitted: 0,
            looked_at: 0,
            capped: 0,
            more: Vec::new(),
            unflushed: Vec::new(),
            ended: Vec::new(),
            set_cookies: Vec::new(),
            memo: HeadMemo::new(),
            buffer: vec![0; READ_BUFFER],
            started: 0,
            slice_from: 0,
            busy_ns: 0,
            cpu_begun: 0,
            plan,
            index,
            share,
            stop,
            reports,
            books,
        })
    }

    /// Connects ahead if that is wanted, waits until all loops are ready (`ready`), and puts its part of the load on
    /// from the moment that `start` then gives.
    /// What became of it is its last report.
    pub fn drive(mut self, ready: &Barrier, start: impl FnOnce() -> (i64, i64)) {
        sys::precise_timers();
        let connected = if self.in_turn || self.is_closed() { self.connect_ahead() } else { Ok(()) };
        ready.wait();
        let (started, unix_offset) = start();
        self.started = started;
        self.slice_from = started;
        self.books.set_unix_offset(unix_offset);
        let (index, reports) = (self.index, self.reports.clone());
        let result = connected.and_then(|()| self.work());
        let interrupted = result.as_ref().is_ok_and(|interrupted| *interrupted);
        let result = result.map(|_| std::mem::take(&mut self.books.tallies));
        let _ = reports.send(Report::Ended { index, result, interrupted });
    }

    fn is_closed(&self) -> bool {
        matches!(self.demand, Demand::Closed { .. })
    }

    /// Opens every connection. Those that fail or take too long are left to when they are needed.
    fn connect_ahead(&mut self) -> Result<(), LoadError> {
        let begun = monotonic_ns();
        let mut next = 0;
        while next < self.connections.len() || self.connecting > 0 {
            let now = monotonic_ns();
            if now - begun > CONNECT_AHEAD_NS || self.stop.load(Ordering::Relaxed) {
                break;
            }
            while next < self.connections.len() && self.connecting < CONNECTING_MOST {
                self.open(next as u32, now);
                next += 1;
            }
            let count = self.epoll.wait(Duration::from_millis(50))?;
            for i in 0..count {
                self.on_ready(self.epoll.ready(i));
            }
        }
        Ok(())
    }

    /// The loop. True if it was stopped.
    fn work(&mut self) -> Result<bool, LoadError> {
        self.cpu_begun = sys::thread_cpu_ns();
        if let Demand::Closed { thinking, until, .. } = &mut self.demand {
            *until += self.started;
            thinking.extend((0..self.lanes.count() as u32).map(|lane| Reverse((self.started, lane))));
        }
        let mut refresh = self.started;
        let mut interrupted = false;
        let before = monotonic_ns();
        if before < self.started {
            sys::sleep_until(self.started);
        }
        let mut now = monotonic_ns();
        let mut has_served = false;
        loop {
            let woke = now;
            self.clock.refresh(now);
            self.admit(now);
            self.expire(now);
            self.dispatch();
            if !has_served {
                let count = self.epoll.wait(Duration::ZERO)?;
                self.serve(count);
            }
            if self.waiting > 0 {
                self.dispatch();
                self.count_capped();
            }
            now = monotonic_ns();
            if now >= refresh {
                refresh = now + REFRESH_NS;
                self.refresh(now, false);
            }
            if self.is_over(now) {
                break;
            }
            if self.stop.load(Ordering::Relaxed) {
                interrupted = true;
                self.abandon();
                break;
            }
            (now, has_served) = self.rest(woke, now)?;
        }
        self.refresh(monotonic_ns(), true);
        Ok(interrupted)
    }

    /// Sleeps until there is something to do, but at least a wake quantum after `woke`. When that ended, and whether
    /// sockets have been seen to.
    fn rest(&mut self, woke: i64, now: i64) -> Result<(i64, bool), LoadError> {
        self.busy_ns += now - woke;
        if !self.more.is_empty() {
            return Ok((now, false));
        }
        let earliest = woke + self.quantum_ns;
        let wake = self.next_moment().max(earliest).min(now + LONGEST_SLEEP_NS);
        if wake <= now {
            return Ok((now, false));
        }
        // Whether a response is needed at once: to free a lane, to go on with, or to make room in the window.
        let is_urgent = self.is_closed() || self.waiting > 0 || self.connecting > 0 || self.lanes.answering() > 0;
        if !is_urgent && wake - now <= READ_SLACK_NS {
            sys::sleep_until(wake);
            return Ok((monotonic_ns(), false));
        }
        if earliest > now {
            sys::sleep_until(earliest.min(wake));
        }
        let from = monotonic_ns();
        if from >= wake {
            return Ok((from, false));
        }
        let count = self.epoll.wait(Duration::from_nanos((wake - from) as u64))?;
        let woken = monotonic_ns();
        if woken - from < NO_SLEEP_NS {
            self.busy_ns += woken - from;
        }
        self.clock.refresh(woken);
        self.serve(count);
        let served = monotonic_ns();
        self.busy_ns += served - woken;
        Ok((served, true))
    }

    /// When something is due by itself.
    fn next_moment(&mut self) -> i64 {
        let demand = match &mut self.demand {
            Demand::Open { due, next } => {
                let due = due.peek().map(|a| self.started + a.due_ns);
                let never_sent =
                    next.peek().filter(|_| self.waiting > 0).map(|a| self.started + a.due_ns + self.timeout_ns);
                due.into_iter().chain(never_sent).min()
            }
            Demand::Closed { thinking, until, .. } => {
                let next = thinking.peek().map(|Reverse((due, _))| *due);
                next.filter(|due| due < until)
            }
        };
        demand.into_iter().chain(self.lanes.oldest().map(|(_, deadline)| deadline)).min().unwrap_or(i64::MAX)
    }

    /// Whether all has ended.
    fn is_over(&mut self, now: i64) -> bool {
        let all_made = match &mut self.demand {
            Demand::Open { due, .. } => due.peek().is_none() && self.waiting == 0,
            Demand::Closed { until, .. } => now >= *until,
        };
        all_made && self.lanes.in_flight() == 0
    }

    /// Counts what is due; users who have thought enough ask.
    fn admit(&mut self, now: i64) {
        match &mut self.demand {
            Demand::Open { due, .. } => {
                while due.next_if(|a| self.started + a.due_ns <= now).is_some() {
                    self.waiting += 1;
                    self.admitted += 1;
                }
            }
            Demand::Closed { until, .. } => {
                let until = *until;
                while let Some((due, lane)) = self.next_user(now.min(until - 1)) {
                    self.ask(lane, due);
                }
            }
        }
    }

    /// The user whose thinking ends first, if that is by `now`.
    fn next_user(&mut self, now: i64) -> Option<(i64, u32)> {
        let Demand::Closed { thinking, .. } = &mut self.demand else { return None };
        let Reverse((due, lane)) = *thinking.peek().filter(|Reverse((due, _))| *due <= now)?;
        thinking.pop();
        Some((due, lane))
    }

    /// A user's next request, due at `due`.
    fn ask(&mut self, lane: u32, due: i64) {
        let index = self.lanes.connection(lane) as usize;
        let Demand::Closed { made, thinking, .. } = &mut self.demand else { return };
        if !self.connections[index].has_room() {
            // The server allows fewer streams than there are users on this connection: the user waits.
            return thinking.push(Reverse((due.max(monotonic_ns()) + NO_ROOM_NS, lane)));
        }
        let number = u64::from(self.share.index) + *made * u64::from(self.share.of);
        *made += 1;
        self.admitted += 1;
        let request = self.plan.turns.of(number);
        let operation = self.plan.requests[request as usize].operation;
        self.place(lane, InFlight::new(request, operation, 0, due, due));
    }

    /// Gives waiting requests to lanes, oldest first.
    fn dispatch(&mut self) {
        while self.waiting > 0 {
            let Some(lane) = self.free_lane() else { break };
            let Some(mut request) = self.take_next() else { break };
            // A lane that was freed after a request was due made it wait only if no other was free then; else it is
            // the loop that came late, which is send lag.
            let taken = self.admitted - self.waiting;
            if taken <= self.looked_at {
                request.ready = request.due.max(self.lanes.free_since(lane));
            }
            self.place(lane, request);
        }
        self.flush();
    }

    /// The oldest request that waits; its lane is taken to have been free when it was due.
    fn take_next(&mut self) -> Option<InFlight> {
        let Demand::Open { next, .. } = &mut self.demand else { return None };
        let arrival = next.next()?;
        self.waiting -= 1;
        let due = self.started + arrival.due_ns;
        let request = arrival.request.unwrap_or_else(|| self.plan.turns.of(arrival.number));
        let operation = self.plan.requests[request as usize].operation;
        Some(InFlight::new(request, operation, arrival.phase, due, due))
    }

    /// Requests that wait now although every lane was offered to them found all taken when they were due.
    fn count_capped(&mut self) {
        let waiting_from = self.admitted - self.waiting;
        self.capped += self.admitted - self.looked_at.max(waiting_from);
        self.looked_at = self.admitted;
    }

    /// A lane that is free, if there is one: on an open connection, else on one that is to be opened.
    fn free_lane(&mut self) -> Option<u32> {
        loop {
            let entry = if self.in_turn { self.idle.pop_front() } else { self.idle.pop_back() };
            let Some((lane, generation)) = entry else { break };
            let connection = &self.connections[self.lanes.connection(lane) as usize];
            // One without room has more lanes than its server allows streams: this one is out of use.
            if connection.generation() == generation && connection.has_room() && connection.is_reusable() {
                return Some(lane);
            }
        }
        self.vacant.last().map(|&connection| self.lanes.of(connection).start)
    }

    /// Puts a request on a free lane and sends it, or opens the connection first.
    fn place(&mut self, lane: u32, mut request: InFlight) {
        let now = monotonic_ns();
        request.deadline = now + self.timeout_ns;
        let index = self.lanes.connection(lane);
        let connection = &self.connections[index as usize];
        if let Some(cookies) = &connection.cookies {
            let prepared = &self.plan.requests[request.request as usize];
            request.instead = cookies.header(&prepared.path).map(|c| Box::new(Plan::with_cookies(prepared, &c)));
        }
        self.lanes.begin(lane, request);
        match connection.stage() {
            Stage::Open => self.launch(lane, now),
            Stage::Closed => {
                self.open(index, now);
            }
            Stage::Connecting(_) | Stage::Handshaking(_) => {}
        }
    }

    /// Sends the request of a lane whose connection is open.
    fn launch(&mut self, lane: u32, now: i64) {
        let index = self.lanes.connection(lane);
        let Some(request) = self.lanes.get_mut(lane) else { return };
        if request.sent == NEVER {
            request.sent = now;
        }
        let prepared: &Prepared = request.instead.as_deref().unwrap_or(&self.plan.requests[request.request as usize]);
        let connection = &mut self.connections[index as usize];
        if let Err(outcome) = connection.start(lane, &prepared.form, prepared.is_head, self.wanted) {
            return self.retire(index, outcome);
        }
        if self.is_http2 && self.unflushed.last() != Some(&index) {
            self.unflushed.push(index);
        }
    }

    /// Writes what HTTP/2 sessions have collected.
    fn flush(&mut self) {
        while let Some(index) = self.unflushed.pop() {
            if let Err(outcome) = self.connections[index as usize].flush_session() {
                self.retire(index, outcome);
            }
        }
    }

    fn open(&mut self, index: u32, now: i64) {
        // It is the last, or near to it: what was closed last is opened first.
        if let Some(at) = self.vacant.iter().rposition(|&c| c == index) {
            self.vacant.remove(at);
        }
        let connection = &mut self.connections[index as usize];
        let token = u64::from(connection.generation()) << 32 | u64::from(index);
        let address = *self.plan.address.read().unwrap_or_else(PoisonError::into_inner);
        let result = address.ok_or(Outcome::NameUnresolved).and_then(|address| {
            connection.connect(&address, &self.epoll, token, now).map_err(|e| Outcome::of_connecting(&e))
        });
        match result {
            Ok(()) => self.connecting += 1,
            Err(outcome) => {
                self.vacate(index);
                self.retire(index, outcome);
            }
        }
    }

    /// Sees to `count` sockets that became ready, and to what was left from the last time.
    fn serve(&mut self, count: usize) {
        for i in 0..count {
            self.on_ready(self.epoll.ready(i));
        }
        if !self.more.is_empty() {
            for index in std::mem::take(&mut self.more) {
                // What there is may be followed by the end: it is looked for.
                self.read(index, true);
            }
        }
        self.flush();
    }

    fn on_ready(&mut self, event: Ready) {
        let index = event.token as u32;
        let connection = &mut self.connections[index as usize];
        if connection.generation() != (event.token >> 32) as u32 {
            return;
        }
        let stage = connection.stage();
        if let Stage::Connecting(_) = stage {
            match connection.connected(self.plan.tls.as_ref(), self.plan.scenario.http.streams, self.wanted) {
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
        if event.writable {
            self.write_on(index);
        }
    }

    /// A socket took less than there was to send, and has room now.
    fn write_on(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        let lane = self.lanes.of(index).start;
        let result = match (connection.stage(), self.lanes.get(lane)) {
            (Stage::Closed | Stage::Connecting(_), _) => Ok(()),
            (Stage::Open, Some(request)) if request.sent != NEVER => {
                let own = &self.plan.requests[request.request as usize];
                match &request.instead.as_deref().unwrap_or(own).form {
                    Form::Http1(bytes) => connection.write(bytes),
                    Form::Http2(_) => connection.flush_session(),
                }
            }
            _ => connection.flush_session().and_then(|()| connection.push_out()),
        };
        if let Err(outcome) = result {
            self.retire(index, outcome);
        }
    }

    /// A connection can be used: the request that waited for it goes out, its other lanes are free.
    fn opened(&mut self, index: u32, stage: Stage) {
        self.connecting -= 1;
        let now = monotonic_ns();
        let generation = self.connections[index as usize].generation();
        for lane in self.lanes.of(index) {
            if let Some(request) = self.lanes.get_mut(lane) {
                if let Stage::Connecting(since) | Stage::Handshaking(since) = stage
                    && request.sent == NEVER
                {
                    request.connect += now - since.max(request.ready);
                }
                self.launch(lane, now);
            } else if !self.is_closed() {
                self.idle.push_back((lane, generation));
            }
        }
    }

    fn read(&mut self, index: u32, to_end: bool) {
        let stage = self.connections[index as usize].stage();
        let mut desk = Desk {
            buffer: &mut self.buffer,
            lanes: &mut self.lanes,
            ended: &mut self.ended,
            set_cookies: self.wanted.set_cookie.then_some(&mut self.set_cookies),
            max_response_bytes: self.plan.scenario.http.max_response_bytes,
            clock: &self.clock,
            memo: &mut self.memo,
        };
        let received = self.connections[index as usize].receive(&mut desk, to_end);
        let connection = &self.connections[index as usize];
        if matches!(stage, Stage::Handshaking(_)) && connection.stage() == Stage::Open {
            self.opened(index, stage);
        }
        if self.wanted.set_cookie {
            self.keep_cookies(index);
        }
        let is_reusable = self.connections[index as usize].is_reusable();
        if !self.ended.is_empty() {
            if matches!(received, Received::Broken(_)) || !self.is_http2 && !is_reusable {
                self.close(index);
            }
            let mut ended = std::mem::take(&mut self.ended);
            for Ended { lane, outcome, at } in ended.drain(..) {
                self.finish(lane, outcome, at);
            }
            self.ended = ended;
        }
        match received {
            Received::All if !is_reusable && self.is_unused(index) => self.retire(index, Outcome::ConnectionClosed),
            // An answer of the protocol itself may be due: a settings or window frame.
            Received::All if self.is_http2 => self.unflushed.push(index),
            Received::All => {}
            Received::Some => self.more.push(index),
            Received::Broken(outcome) => self.retire(index, outcome),
        }
    }

    fn is_unused(&self, index: u32) -> bool {
        self.lanes.of(index).all(|lane| self.lanes.get(lane).is_none())
    }

    fn keep_cookies(&mut self, index: u32) {
        for (lane, header) in std::mem::take(&mut self.set_cookies) {
            let Some(request) = self.lanes.get(lane) else { continue };
            let own = &self.plan.requests[request.request as usize];
            let path = &request.instead.as_deref().unwrap_or(own).path;
            self.connections[index as usize].cookies.get_or_insert_default().take(&header, path);
        }
    }

    /// A request ended at `at`; unless it leads on to another place, its lane is free.
    fn finish(&mut self, lane: u32, outcome: Outcome, at: i64) {
        let mut outcome = outcome;
        if outcome == Outcome::Ok
            && let Some(request) = self.lanes.get_mut(lane)
            && let Some(location) = request.location.take()
        {
            let own = &self.plan.requests[request.request as usize];
            let asked: &Prepared = request.instead.as_deref().unwrap_or(own);
            if let Some(next) = self.plan.redirected(asked, request.status, &location) {
                if request.hops < self.plan.scenario.http.redirects {
                    return self.follow(lane, next);
                }
                outcome = Outcome::TooManyRedirects;
            }
        }
        let Some(request) = self.lanes.end(lane, at) else { return };
        self.books.enter(self.plan, &request, outcome, at, true);
        self.release(lane, outcome, at);
    }

    fn follow(&mut self, lane: u32, next: Prepared) {
        let index = self.lanes.connection(lane);
        let connection = &self.connections[index as usize];
        let cookies = connection.cookies.as_ref().and_then(|c| c.header(&next.path));
        let next = match cookies {
            Some(cookies) => Plan::with_cookies(&next, &cookies),
            None => next,
        };
        let stage = connection.stage();
        if let Some(request) = self.lanes.get_mut(lane) {
            request.hops += 1;
            request.status = 0;
            request.instead = Some(Box::new(next));
        }
        let now = monotonic_ns();
        if stage == Stage::Open {
            self.launch(lane, now);
        } else {
            self.open(index, now);
        }
    }

    /// A lane became free at `at`.
    fn release(&mut self, lane: u32, outcome: Outcome, at: i64) {
        let index = self.lanes.connection(lane);
        let connection = &self.connections[index as usize];
        let is_open = connection.stage() == Stage::Open && connection.is_reusable();
        let generation = connection.generation();
        match &mut self.demand {
            Demand::Open { .. } => {
                if is_open {
                    self.idle.push_back((lane, generation));
                }
            }
            Demand::Closed { thinking, think_ns, until, .. } => {
                let due = at + *think_ns;
                if is_open && *think_ns == 0 && due < *until {
                    self.ask(lane, due);
                } else {
                    let could_not_connect = !is_open && outcome.is_failure();
                    thinking.push(Reverse((due + if could_not_connect { RETRY_NS } else { 0 }, lane)));
                }
            }
        }
    }

    /// Closes a connection. Requests on it stay.
    fn close(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        match connection.stage() {
            Stage::Closed => return,
            Stage::Connecting(_) | Stage::Handshaking(_) => self.connecting -= 1,
            Stage::Open => {}
        }
        connection.close();
        self.vacate(index);
    }

    /// A slot has no connection: in an open model any request may open one, in a closed one its own users do.
    fn vacate(&mut self, index: u32) {
        if !self.is_closed() {
            self.vacant.push(index);
        }
    }

    /// Closes a connection that is of no use any more; requests still on it ended so.
    fn retire(&mut self, index: u32, outcome: Outcome) {
        self.close(index);
        let now = monotonic_ns();
        for lane in self.lanes.of(index) {
            if let Some(request) = self.lanes.end(lane, now) {
                self.books.enter(self.plan, &request, outcome, now, true);
                self.release(lane, outcome, now);
            }
        }
    }

    /// Ends what has passed its deadline.
    fn expire(&mut self, now: i64) {
        while let Some((lane, _)) = self.lanes.oldest().filter(|(_, deadline)| *deadline <= now) {
            let index = self.lanes.connection(lane);
            // One that never got connected (a full accept queue drops its SYN) has waited as long as any other.
            if self.connections[index as usize].cancel(lane) {
                self.unflushed.push(index);
                self.finish(lane, Outcome::Timeout, now);
            } else {
                self.retire(index, Outcome::Timeout);
            }
        }
        loop {
            let Demand::Open { next, .. } = &mut self.demand else { return };
            let is_over =
                self.waiting > 0 && next.peek().is_some_and(|a| self.started + a.due_ns + self.timeout_ns <= now);
            if !is_over {
                break;
            }
            self.give_up_next(Outcome::NeverSent, now);
        }
    }

    fn give_up_next(&mut self, outcome: Outcome, now: i64) {
        if let Some(request) = self.take_next() {
            self.books.enter(self.plan, &InFlight { ready: now, ..request }, outcome, now, false);
        }
    }

    /// Ends everything, because the run was stopped.
    fn abandon(&mut self) {
        let now = monotonic_ns();
        for lane in 0..self.lanes.count() as u32 {
            if let Some(request) = self.lanes.end(lane, now) {
                self.books.enter(self.plan, &request, Outcome::Unfinished, now, true);
            }
        }
        while self.waiting > 0 {
            self.give_up_next(Outcome::Unfinished, now);
        }
    }

    fn refresh(&mut self, now: i64, is_last: bool) {
        self.books.hand_over();
        let (completed, failed) = self.books.ended();
        let slice = SLICE.as_nanos() as i64;
        let is_slice = is_last || now >= self.slice_from + slice;
        let counters = Counters {
            cpu_ns: sys::thread_cpu_ns() - self.cpu_begun,
            busy_ns: self.busy_ns,
            run_queue_ns: is_slice.then(sys::thread_run_queue_ns).flatten(),
            offered: self.admitted,
            completed,
            failed,
            capped: self.capped,
            in_flight: self.lanes.in_flight(),
            waiting: self.waiting as usize,
            lanes: self.lanes.count(),
        };
        let since_start = |t: i64| Duration::from_nanos((t - self.started).max(0) as u64);
        let report = if is_slice {
            // Slices of all loops begin at whole seconds, so that they can be put together.
            let passed = (now - self.slice_from) / slice * slice;
            let to = if is_last { now } else { self.slice_from + passed };
            let from = since_start(self.slice_from);
            self.slice_from = to;
            let latencies: Vec<Latencies> = self.books.next_second();
            Report::Slice { index: self.index, at: now, from, to: since_start(to), latencies, counters }
        } else {
            Report::Counters { index: self.index, elapsed: since_start(now), counters }
        };
        let _ = self.reports.send(report);
    }
}
