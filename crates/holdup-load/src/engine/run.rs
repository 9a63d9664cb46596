//! One loop: take the requests that are due, give them to free slots, move bytes, give up what is
//! too old, sleep until the next event. It shares nothing with other loops while it runs.

mod demand;
mod dispatch;
mod endings;
mod played;
pub mod player;
mod pool;
mod sockets;
mod steps;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Barrier, PoisonError};
use std::time::Duration;

use holdup_protocol::http::WantedParts;
use holdup_protocol::http::http1::HeadMemo;

use self::demand::Demand;
use self::pool::Pool;
use super::LoadError;
use super::books::Books;
use super::clock::Clock;
use super::gather::{Counters, Report};
use super::intake::Intake;
use super::plan::Plan;
use super::refusals::Refusals;
use super::sessions::ActiveSessions;
use super::slots::Slots;
use super::trace::TraceIds;
use crate::scenario::RateOf;
use crate::schedule::Share;
use crate::schedule::played::Play;
use crate::stats::{Latencies, SLICE};
use crate::sys::{self, monotonic_ns};

/// How often the live view is refreshed and rows are handed over.
const REFRESH_NS: i64 = 200_000_000;

/// The longest sleep, so that a stop is noticed.
const LONGEST_SLEEP_NS: i64 = 50_000_000;

/// Responses that nothing waits for are read at the next send if that is this near: the kernel has
/// stamped them, and one wake-up serves both.
const READ_SLACK_NS: i64 = 1_000_000;

/// A shorter wait did not sleep: it counts as work.
const NO_SLEEP_NS: i64 = 4_000;

/// Bytes read at once.
const READ_BUFFER: usize = 64 * 1024;

/// Most connections being made at once before the load starts: what the queue of a listener takes
/// (listen(2)).
const CONNECTING_MOST: usize = 256;

/// Sessions that have begun may go on for this long after the last one could begin.
const LINGER_NS: i64 = 30_000_000_000;

/// How long connecting before the load may take.
const CONNECT_AHEAD_NS: i64 = 5_000_000_000;

/// The work of one loop.
pub struct Task<'a> {
    /// What all loops share.
    pub plan: &'a Plan<'a>,
    /// Its number, from 0.
    pub index: usize,
    /// Its part of the requests or users.
    pub share: Share,
    /// Number of its slots.
    pub slots: usize,
    /// The statements it plays, if the load is a recorded mix.
    pub batches: Option<Receiver<Vec<Play>>>,
    /// Its records.
    pub books: Books,
    /// Where it reports.
    pub reports: Sender<Report>,
    /// Set when the user stops the run.
    pub stop: &'a AtomicBool,
}

/// See the module.
pub struct Loop<'a> {
    plan: &'a Plan<'a>,
    seat: Seat<'a>,
    books: Books,
    demand: Demand,
    /// Sessions, if the scenario has any.
    sessions: Option<ActiveSessions>,
    slots: Slots,
    pool: Pool,
    intake: Intake<'a>,
    outgoing: Outgoing,
    counts: Counts,
    pace: Pace,
}

/// Which loop it is, and how the others speak with it.
struct Seat<'a> {
    index: usize,
    stop: &'a AtomicBool,
    reports: Sender<Report>,
}

/// What requests are sent with.
struct Outgoing {
    wanted: WantedParts,
    trace_ids: TraceIds,
    /// Working memory for requests that differ from the prepared ones.
    scratch: Vec<u8>,
}

/// Requests so far.
#[derive(Default)]
struct Counts {
    /// Those that were due, and (below) how many of them were checked for [`Counters::capped`].
    admitted: u64,
    looked_at: u64,
    capped: u64,
    /// Those that were sent a second time, because the first attempt went to a connection that was
    /// being closed.
    resent: u64,
}

/// When it wakes and how long it works, nanoseconds.
struct Pace {
    quantum_ns: i64,
    timeout_ns: i64,
    started: i64,
    slice_from: i64,
    busy_ns: i64,
    cpu_begun: i64,
}

impl<'a> Loop<'a> {
    /// # Errors
    /// If the kernel refuses what the loop itself needs.
    pub fn new(task: Task<'a>) -> Result<Self, LoadError> {
        let Task { plan, index, share, slots, batches, books, reports, stop } = task;
        let scenario = plan.scenario;
        let streams = scenario.http.streams.max(1);
        let mut demand = Demand::new(&scenario.load, share);
        if let (Demand::Played(player), Some(batches)) = (&mut demand, batches) {
            player.start(batches, slots);
        }
        let is_closed = demand.is_closed();
        let sessions = plan.sessions.as_ref().map(|(script, _)| {
            let users = if is_closed { slots } else { 0 };
            ActiveSessions::new(Arc::clone(script), share, scenario.is_set_up, users)
        });
        let wanted = WantedParts {
            location: scenario.http.redirects > 0,
            set_cookie: scenario.http.cookies,
            server_timing: plan.trace.is_some() && books.has_rows(),
            // HTTP/2 collects fields for a whole connection, not for one request.
            head: plan.is_http2()
                && plan.sessions.as_ref().is_some_and(|(s, _)| s.requests.iter().any(|r| r.needs.head)),
            ..WantedParts::default()
        };
        Ok(Self {
            seat: Seat { index, stop, reports },
            sessions,
            slots: Slots::new(slots, streams),
            pool: Pool::new(plan, slots, !demand.has_owners())?,
            intake: Intake {
                buffer: vec![0; READ_BUFFER],
                ended: Vec::new(),
                keeps_cookies: wanted.set_cookie,
                set_cookies: Vec::new(),
                most_bytes: scenario.http.max_response_bytes,
                clock: Clock::default(),
                tls: plan.tls.as_ref(),
                memos: plan.operations.iter().map(|_| HeadMemo::new()).collect(),
                refusals: Refusals::new(),
            },
            outgoing: Outgoing {
                wanted,
                trace_ids: TraceIds::new(plan.trace.unwrap_or(0), share),
                scratch: Vec::new(),
            },
            counts: Counts::default(),
            pace: Pace {
                quantum_ns: if is_closed { 0 } else { scenario.generator.pace.quantum_ns() },
                timeout_ns: scenario.timeout.as_nanos() as i64,
                started: 0,
                slice_from: 0,
                busy_ns: 0,
                cpu_begun: 0,
            },
            demand,
            plan,
            books,
        })
    }

    /// Connects first if wanted, waits until all loops are ready (`ready`), and runs its part of
    /// the load from the time that `start` then returns. Its last report holds the result.
    pub fn drive(mut self, ready: &Barrier, start: impl FnOnce() -> (i64, i64)) {
        sys::precise_timers();
        let scenario = self.plan.scenario;
        let is_ahead = scenario.http.keep_alive && (scenario.generator.open_all || self.demand.is_closed());
        let connected = if is_ahead { self.connect_ahead() } else { Ok(()) };
        ready.wait();
        let (started, unix_offset) = start();
        self.pace.started = started;
        self.pace.slice_from = started;
        self.books.set_unix_offset(unix_offset);
        let (index, reports) = (self.seat.index, self.seat.reports.clone());
        let result = connected.and_then(|()| self.work());
        if let Some(values) = self.sessions.as_mut().and_then(|v| v.left.take()) {
            *self.plan.left.lock().unwrap_or_else(PoisonError::into_inner) = Some(values);
        }
        let refusals = std::mem::take(&mut self.intake.refusals);
        self.plan.refusals.lock().unwrap_or_else(PoisonError::into_inner).extend(refusals);
        let interrupted = result.as_ref().is_ok_and(|interrupted| *interrupted);
        let result = result.map(|_| std::mem::take(&mut self.books.tallies));
        let _ = reports.send(Report::Ended { index, result, interrupted });
    }

    /// Opens every connection. One that fails or takes too long is opened again when it is needed.
    fn connect_ahead(&mut self) -> Result<(), LoadError> {
        let begun = monotonic_ns();
        let mut next = 0;
        while next < self.pool.connections.len() || self.pool.connecting > 0 {
            let now = monotonic_ns();
            if now - begun > CONNECT_AHEAD_NS || self.seat.stop.load(Ordering::Relaxed) {
                break;
            }
            while next < self.pool.connections.len() && self.pool.connecting < CONNECTING_MOST {
                self.open(next as u32, now);
                next += 1;
            }
            let count = self.pool.epoll.wait(Duration::from_millis(50))?;
            for i in 0..count {
                self.on_ready(self.pool.epoll.ready(i));
            }
        }
        Ok(())
    }

    /// The loop. True if it was stopped.
    fn work(&mut self) -> Result<bool, LoadError> {
        self.pace.cpu_begun = sys::thread_cpu_ns();
        self.demand.start(self.pace.started, self.slots.count() as u32);
        let begun = Report::Begun { index: self.seat.index, at: self.pace.started, counters: self.counters(true) };
        let _ = self.seat.reports.send(begun);
        let mut refresh = self.pace.started;
        let mut interrupted = false;
        let before = monotonic_ns();
        if before < self.pace.started {
            sys::sleep_until(self.pace.started);
        }
        let mut now = monotonic_ns();
        let mut has_served = false;
        loop {
            let woke = now;
            self.intake.clock.refresh(now);
            self.admit(now);
            self.expire(now);
            self.dispatch();
            if !has_served {
                let count = self.pool.epoll.wait(Duration::ZERO)?;
                self.serve(count);
            }
            if self.waiting() > 0 {
                self.dispatch();
                self.count_capped();
            }
            self.books.settle(self.plan);
            now = monotonic_ns();
            if now >= refresh {
                self.refresh(now, false);
                // End a slice at its full second, not at the next refresh after it.
                refresh = (now + REFRESH_NS).min(self.pace.slice_from + SLICE.as_nanos() as i64);
            }
            if self.slots.in_flight() == 0 && self.demand.is_over(now) && !self.sessions_go_on() {
                break;
            }
            if self.sessions.as_ref().is_some_and(|v| v.script.is_over()) || self.has_lingered(now) {
                self.abandon();
                self.books.settle(self.plan);
                break;
            }
            if self.seat.stop.load(Ordering::Relaxed) {
                interrupted = true;
                self.abandon();
                self.books.settle(self.plan);
                break;
            }
            (now, has_served) = self.rest(woke, now)?;
        }
        self.end_played(monotonic_ns());
        self.books.settle(self.plan);
        self.refresh(monotonic_ns(), true);
        Ok(interrupted)
    }

    /// Whether the sessions still running have gone on for too long since the last one began.
    fn has_lingered(&self, now: i64) -> bool {
        let is_of_sessions = !self.demand.is_closed() && self.plan.scenario.rate_of == RateOf::Sessions;
        is_of_sessions && now > self.pace.started + self.plan.scenario.load.length().as_nanos() as i64 + LINGER_NS
    }

    /// Whether sessions of an open model that counts sessions are still running: they may finish.
    fn sessions_go_on(&self) -> bool {
        let Some(sessions) = &self.sessions else { return false };
        !self.demand.is_closed() && self.plan.scenario.rate_of == RateOf::Sessions && sessions.any_is_running()
    }

    /// Sleeps until there is something to do, but at least a wake quantum after `woke`. Returns
    /// when that ended, and whether sockets were served.
    fn rest(&mut self, woke: i64, now: i64) -> Result<(i64, bool), LoadError> {
        self.pace.busy_ns += now - woke;
        if !self.pool.more.is_empty() {
            return Ok((now, false));
        }
        let earliest = woke + self.pace.quantum_ns;
        let deadline = self.slots.oldest().map_or(i64::MAX, |(_, deadline)| deadline);
        let sessions = self.sessions.as_ref().map_or(i64::MAX, |v| v.next_moment(self.pace.timeout_ns));
        let wake = self
            .demand
            .next_moment(self.pace.timeout_ns)
            .min(sessions)
            .min(deadline)
            .max(earliest)
            .min(now + LONGEST_SLEEP_NS);
        if wake <= now {
            return Ok((now, false));
        }
        // Whether a response is needed at once: to free a slot, to continue a session, or to make
        // room in the window.
        let is_urgent =
            self.demand.is_closed() || self.waiting() > 0 || self.pool.connecting > 0 || self.slots.answering() > 0;
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
        let count = self.pool.epoll.wait(Duration::from_nanos((wake - from) as u64))?;
        let woken = monotonic_ns();
        if woken - from < NO_SLEEP_NS {
            self.pace.busy_ns += woken - from;
        }
        self.intake.clock.refresh(woken);
        self.serve(count);
        let served = monotonic_ns();
        self.pace.busy_ns += served - woken;
        Ok((served, true))
    }

    /// Its present state; values that need a system call only if `in_full`.
    fn counters(&self, in_full: bool) -> Counters {
        let (completed, failed) = self.books.ended();
        Counters {
            cpu_ns: sys::thread_cpu_ns() - self.pace.cpu_begun,
            busy_ns: self.pace.busy_ns,
            run_queue_ns: in_full.then(sys::thread_run_queue_ns).flatten(),
            offered: self.counts.admitted,
            completed,
            failed,
            capped: self.counts.capped,
            resent: self.counts.resent,
            in_flight: self.slots.in_flight(),
            waiting: self.waiting() as usize,
            slots: self.slots.count(),
        }
    }

    fn refresh(&mut self, now: i64, is_last: bool) {
        self.books.hand_over();
        let slice = SLICE.as_nanos() as i64;
        let is_slice = is_last || now >= self.pace.slice_from + slice;
        let counters = self.counters(is_slice);
        let since_start = |t: i64| Duration::from_nanos((t - self.pace.started).max(0) as u64);
        let report = if is_slice {
            // Slices of all loops begin at whole seconds, so that they can be merged.
            let passed = (now - self.pace.slice_from) / slice * slice;
            let to = if is_last { now } else { self.pace.slice_from + passed };
            let from = since_start(self.pace.slice_from);
            self.pace.slice_from = to;
            let latencies: Vec<Latencies> = self.books.next_second();
            Report::Slice { index: self.seat.index, at: now, from, to: since_start(to), latencies, counters }
        } else {
            Report::Counters { index: self.seat.index, elapsed: since_start(now), counters }
        };
        let _ = self.seat.reports.send(report);
    }
}
