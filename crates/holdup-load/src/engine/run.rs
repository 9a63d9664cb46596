//! The loop itself: take what is due, give it to free connections, move bytes, expire what is too old,
//! sleep until the next thing is due.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use holdup_recording::rows::{Request, Sample};
use holdup_recording::{Batch, Labels, clock};

use super::connection::{Connection, InFlight, Outcome, Step};
use super::turns::Turns;
use super::{LoadError, OperationSummary, Outputs, Summary};
use crate::http::request_bytes;
use crate::model::Load;
use crate::scenario::Scenario;
use crate::schedule::Schedule;
use crate::stats::{Latencies, SLICE, Slices, Snapshot, count, histogram};
use crate::sys::{Epoll, Ready, connect, monotonic_ns, precise_timers, thread_cpu_ns, thread_run_queue_ns};

/// The loop wakes at most this often: bounds its cost at high rates, and how late a request is sent.
const WAKE_QUANTUM_NS: i64 = 50_000;

/// How often the live view is refreshed and rows are handed over.
const REFRESH_NS: i64 = 200_000_000;

/// The longest sleep, so that a stop is noticed.
const LONGEST_SLEEP_NS: i64 = 50_000_000;

/// Bytes read at once.
const READ_BUFFER: usize = 64 * 1024;

/// A request that is due and has no connection yet.
struct Due {
    number: u64,
    operation: usize,
    stretch: usize,
    at: i64,
}

pub(super) struct Run<'a> {
    scenario: &'a Scenario,
    schedule: &'a Schedule,
    address: SocketAddr,
    outputs: Outputs,
    epoll: Epoll,
    requests: Vec<Vec<u8>>,
    connections: Vec<Connection>,
    /// Open connections without a request; the last used is used first, so that no more are open than needed.
    idle: Vec<usize>,
    /// Slots without a socket.
    closed: Vec<usize>,
    waiting: VecDeque<Due>,
    /// Requests below this number found every connection busy when they were due.
    found_busy: u64,
    /// Deadlines of requests that have a connection, in their order.
    deadlines: VecDeque<(i64, usize, u32)>,
    in_flight: usize,
    turns: Turns,
    next: u64,
    started: i64,
    unix_offset: i64,
    busy_ns: i64,
    batch: Batch,
    slices: Slices,
    recent: Histogram<u64>,
    shown: (Option<f64>, Option<f64>),
    recent_since: i64,
    operations: Vec<OperationSummary>,
    buffer: Vec<u8>,
}

impl<'a> Run<'a> {
    pub fn new(scenario: &'a Scenario, address: SocketAddr, outputs: Outputs) -> Result<Self, LoadError> {
        let Load::Open(schedule) = &scenario.load else { unreachable!() };
        let count = scenario.connections as usize;
        let names: Vec<String> = scenario.operations.iter().map(|o| o.name.clone()).collect();
        Ok(Self {
            epoll: Epoll::new()?,
            requests: scenario.operations.iter().map(|o| request_bytes(o, &scenario.target)).collect(),
            connections: (0..count).map(|_| Connection::new()).collect(),
            idle: Vec::with_capacity(count),
            closed: (0..count).rev().collect(),
            waiting: VecDeque::new(),
            found_busy: 0,
            deadlines: VecDeque::new(),
            in_flight: 0,
            turns: Turns::new(scenario.operations.iter().map(|o| o.weight)),
            next: 0,
            started: 0,
            unix_offset: 0,
            busy_ns: 0,
            batch: Batch::default(),
            slices: Slices::new(&names, outputs.slices.clone()),
            recent: histogram(),
            shown: (None, None),
            recent_since: 0,
            operations: names
                .into_iter()
                .map(|operation| OperationSummary {
                    operation,
                    offered: 0,
                    completed: 0,
                    errors: 0,
                    latencies: Latencies::new(),
                })
                .collect(),
            buffer: vec![0; READ_BUFFER],
            scenario,
            schedule,
            address,
            outputs,
        })
    }

    pub fn drive(mut self, stop: &AtomicBool) -> Result<Summary, LoadError> {
        precise_timers();
        self.started = monotonic_ns();
        self.unix_offset = clock::now_ns() - self.started;
        self.recent_since = self.started;
        let cpu_begun = thread_cpu_ns();
        let mut ready: Vec<Ready> = Vec::new();
        let mut refresh = self.started;
        let mut sample = self.started;
        let mut interrupted = false;
        loop {
            let now = monotonic_ns();
            self.admit(now);
            self.expire(now);
            self.dispatch();
            if now >= refresh {
                refresh = now + REFRESH_NS;
                if now >= sample {
                    sample += SLICE.as_nanos() as i64;
                    self.sample_self(now, cpu_begun);
                }
                self.refresh(now);
            }
            let next_due = self.next_due();
            if next_due.is_none() && self.waiting.is_empty() && self.in_flight == 0 {
                break;
            }
            if stop.load(Ordering::Relaxed) {
                interrupted = true;
                self.abandon();
                break;
            }
            let slept_from = monotonic_ns();
            self.busy_ns += slept_from - now;
            let wake = [next_due, self.next_deadline()].into_iter().flatten().min().unwrap_or(i64::MAX);
            let wake = wake.max(now + WAKE_QUANTUM_NS).min(slept_from + LONGEST_SLEEP_NS);
            self.epoll.wait(Duration::from_nanos((wake - slept_from).max(0) as u64), &mut ready)?;
            let woken = monotonic_ns();
            for event in &ready {
                self.on_ready(*event);
            }
            self.busy_ns += monotonic_ns() - woken;
        }
        let ended = monotonic_ns();
        self.sample_self(ended, cpu_begun);
        self.slices.roll(Duration::from_nanos((ended - self.started) as u64), true);
        self.refresh(ended);
        Ok(Summary {
            started_at: self.started + self.unix_offset,
            ended_at: ended + self.unix_offset,
            phases: self.scenario.load.phases(self.started + self.unix_offset),
            interrupted,
            cpu_ratio: (thread_cpu_ns() - cpu_begun) as f64 / (ended - self.started).max(1) as f64,
            operations: self.operations,
        })
    }

    /// Takes every request that is due into the queue.
    fn admit(&mut self, now: i64) {
        while let Some((due, stretch)) = self.schedule.due(self.next) {
            let at = self.started + due.as_nanos() as i64;
            if at > now {
                break;
            }
            self.next += 1;
            let operation = self.turns.next();
            self.operations[operation].offered += 1;
            self.waiting.push_back(Due { number: self.next - 1, operation, stretch, at });
        }
    }

    /// Gives waiting requests to connections, oldest first.
    fn dispatch(&mut self) {
        while !self.waiting.is_empty() {
            let (slot, open) = match (self.idle.pop(), self.closed.last()) {
                (Some(slot), _) => (slot, true),
                (None, Some(&slot)) => (slot, false),
                (None, None) => break,
            };
            let Some(due) = self.waiting.pop_front() else { break };
            let head = self.scenario.operations[due.operation].method == "HEAD";
            let connection = &mut self.connections[slot];
            // A connection that was freed after a request was due made it wait only if no other was free then;
            // else it is the loop that came late, which is send lag.
            let waited = due.number < self.found_busy;
            let ready = if waited { due.at.max(connection.free_since) } else { due.at };
            connection.assign(
                InFlight {
                    operation: due.operation,
                    stretch: due.stretch,
                    due: due.at,
                    ready,
                    connect: 0,
                    sent: None,
                    first_byte: None,
                    bytes: 0,
                },
                head,
            );
            self.in_flight += 1;
            let deadline = monotonic_ns() + self.scenario.timeout.as_nanos() as i64;
            self.deadlines.push_back((deadline, slot, connection.generation));
            if open {
                self.write(slot);
            } else {
                self.closed.pop();
                self.open(slot);
            }
        }
        if !self.waiting.is_empty() {
            self.found_busy = self.next;
        }
    }

    fn open(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        let now = monotonic_ns();
        let opened = connect(&self.address).and_then(|stream| {
            self.epoll.add(&stream, slot as u64, true)?;
            Ok(stream)
        });
        match opened {
            Ok(stream) => {
                connection.stream = Some(stream);
                connection.connecting_since = Some(now);
            }
            Err(_) => self.end(slot, Outcome::ConnectFailed, false),
        }
    }

    fn on_ready(&mut self, event: Ready) {
        let slot = event.token as usize;
        let connection = &mut self.connections[slot];
        if connection.stream.is_none() {
            return;
        }
        if let Some(since) = connection.connecting_since {
            let failed = connection.stream.as_ref().is_none_or(|s| !matches!(s.take_error(), Ok(None)));
            if failed {
                return self.end(slot, Outcome::ConnectFailed, false);
            }
            if event.writable {
                connection.connecting_since = None;
                if let Some(request) = &mut connection.request {
                    request.connect = monotonic_ns() - since;
                }
                if let Some(stream) = &connection.stream {
                    let _ = self.epoll.change(stream, slot as u64, false);
                }
                self.write(slot);
            }
            return;
        }
        if event.readable {
            match self.connections[slot].read(&mut self.buffer, monotonic_ns) {
                Step::Ended { outcome, reusable } => return self.end(slot, outcome, reusable),
                Step::Waiting | Step::Blocked => {}
            }
        }
        if event.writable && self.connections[slot].request.is_some_and(|r| r.sent.is_some()) {
            if let Some(stream) = &self.connections[slot].stream {
                let _ = self.epoll.change(stream, slot as u64, false);
            }
            self.write(slot);
        }
    }

    fn write(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        let Some(request) = connection.request else { return };
        match connection.write(&self.requests[request.operation], monotonic_ns()) {
            Step::Waiting => {}
            Step::Blocked => {
                if let Some(stream) = &connection.stream {
                    let _ = self.epoll.change(stream, slot as u64, true);
                }
            }
            Step::Ended { outcome, reusable } => self.end(slot, outcome, reusable),
        }
    }

    /// The request of `slot`, if it has one, ended; the connection is kept if `reusable`.
    fn end(&mut self, slot: usize, outcome: Outcome, reusable: bool) {
        let now = monotonic_ns();
        let connection = &mut self.connections[slot];
        connection.generation = connection.generation.wrapping_add(1);
        connection.connecting_since = None;
        connection.free_since = now;
        let request = connection.request.take();
        let status = connection.parser.status;
        if reusable {
            self.idle.push(slot);
        } else {
            // Dropping the socket closes it and takes it out of the epoll set.
            connection.stream = None;
            self.idle.retain(|&s| s != slot);
            self.closed.push(slot);
        }
        if let Some(request) = request {
            self.in_flight -= 1;
            let status = (status > 0).then(|| i32::from(status));
            self.account(request, Some(request.ready), outcome, status, now);
        }
    }

    /// Ends what has passed its deadline.
    fn expire(&mut self, now: i64) {
        let timeout = self.scenario.timeout.as_nanos() as i64;
        while let Some(&(deadline, slot, generation)) = self.deadlines.front() {
            let over = self.connections[slot].generation != generation;
            if !over && deadline > now {
                break;
            }
            self.deadlines.pop_front();
            if !over {
                // One that never got connected (a full accept queue drops its SYN) has waited as long as any other.
                self.end(slot, Outcome::Timeout, false);
            }
        }
        while self.waiting.front().is_some_and(|due| due.at + timeout <= now) {
            if let Some(due) = self.waiting.pop_front() {
                self.never_sent(&due, Outcome::NeverSent, now);
            }
        }
    }

    /// Ends everything, because the run was stopped.
    fn abandon(&mut self) {
        let now = monotonic_ns();
        for slot in 0..self.connections.len() {
            if self.connections[slot].request.is_some() {
                self.end(slot, Outcome::Unfinished, false);
            }
        }
        while let Some(due) = self.waiting.pop_front() {
            self.never_sent(&due, Outcome::Unfinished, now);
        }
    }

    fn never_sent(&mut self, due: &Due, outcome: Outcome, now: i64) {
        let request = InFlight {
            operation: due.operation,
            stretch: due.stretch,
            due: due.at,
            ready: now,
            connect: 0,
            sent: None,
            first_byte: None,
            bytes: 0,
        };
        self.account(request, None, outcome, None, now);
    }

    fn account(&mut self, request: InFlight, ready: Option<i64>, outcome: Outcome, status: Option<i32>, now: i64) {
        let summary = &mut self.operations[request.operation];
        let response = now - request.due;
        if outcome == Outcome::Ok {
            summary.completed += 1;
        } else if outcome != Outcome::Unfinished {
            summary.errors += 1;
        }
        for latencies in [&mut summary.latencies, self.slices.of(request.operation)] {
            // A failure that comes back at once is counted as an error, never as a fast response.
            if !outcome.is_latency() {
                break;
            }
            count(&mut latencies.response, response);
            if let Some(sent) = request.sent {
                count(&mut latencies.service, now - sent);
                count(&mut latencies.send_lag, sent - request.ready - request.connect);
            }
        }
        count(&mut self.recent, response);
        if self.outputs.rows.is_some() {
            let unix = |t: i64| t + self.unix_offset;
            self.batch.requests.push(Request {
                operation: summary.operation.clone(),
                phase: self.schedule.stretches()[request.stretch].name.clone(),
                intended_at: unix(request.due),
                ready_at: ready.map(unix),
                sent_at: request.sent.map(unix),
                first_byte_at: request.first_byte.map(unix),
                done_at: unix(now),
                outcome: outcome.name().to_owned(),
                status,
                response_bytes: request.bytes,
                connect_ns: request.connect,
                trace_id: None,
                weight: 1,
            });
        }
    }

    fn next_due(&self) -> Option<i64> {
        self.schedule.due(self.next).map(|(due, _)| self.started + due.as_nanos() as i64)
    }

    fn next_deadline(&self) -> Option<i64> {
        let timeout = self.scenario.timeout.as_nanos() as i64;
        let waiting = self.waiting.front().map(|due| due.at + timeout);
        [self.deadlines.front().map(|(deadline, ..)| *deadline), waiting].into_iter().flatten().min()
    }

    /// The generator as a suspect: its own CPU, its wait for a CPU, its queue.
    fn sample_self(&mut self, now: i64, cpu_begun: i64) {
        if self.outputs.rows.is_none() {
            return;
        }
        let sum = |f: fn(&OperationSummary) -> u64| self.operations.iter().map(f).sum::<u64>() as f64;
        let mut values = vec![
            ("holdup_load_cpu_seconds_total", (thread_cpu_ns() - cpu_begun) as f64 / 1e9),
            ("holdup_load_busy_seconds_total", self.busy_ns as f64 / 1e9),
            ("holdup_load_requests_offered_total", sum(|o| o.offered)),
            ("holdup_load_requests_completed_total", sum(|o| o.completed)),
            ("holdup_load_requests_failed_total", sum(|o| o.errors)),
            ("holdup_load_requests_in_flight", self.in_flight as f64),
            ("holdup_load_requests_waiting", self.waiting.len() as f64),
            ("holdup_load_connections_max", self.connections.len() as f64),
        ];
        values.extend(thread_run_queue_ns().map(|ns| ("holdup_load_run_queue_seconds_total", ns as f64 / 1e9)));
        let at = now + self.unix_offset;
        self.batch.samples.extend(values.into_iter().map(|(metric, value)| Sample {
            observed_at: at,
            window_ns: 0,
            source: "holdup".to_owned(),
            metric: metric.to_owned(),
            labels: Labels::none(),
            value,
        }));
    }

    fn refresh(&mut self, now: i64) {
        if let Some(rows) = &self.outputs.rows {
            rows.push(std::mem::take(&mut self.batch));
        }
        let elapsed = Duration::from_nanos((now - self.started) as u64);
        self.slices.roll(elapsed, false);
        if now >= self.recent_since + SLICE.as_nanos() as i64 {
            let ms = |q: f64| (!self.recent.is_empty()).then(|| self.recent.value_at_quantile(q) as f64 / 1e6);
            self.shown = (ms(0.5), ms(0.99));
            self.recent.reset();
            self.recent_since = now;
        }
        let stretches = self.schedule.stretches();
        let index = self.schedule.due(self.next).map_or(stretches.len() - 1, |(_, i)| i);
        let ended = self.next_due().is_none();
        self.outputs.live.set(Snapshot {
            elapsed,
            phase: if ended { "waiting for the last responses".to_owned() } else { stretches[index].name.clone() },
            rate: if ended { 0.0 } else { stretches[index].rate_from },
            offered: self.operations.iter().map(|o| o.offered).sum(),
            completed: self.operations.iter().map(|o| o.completed).sum(),
            errors: self.operations.iter().map(|o| o.errors).sum(),
            in_flight: self.in_flight,
            waiting: self.waiting.len(),
            p50_ms: self.shown.0,
            p99_ms: self.shown.1,
        });
    }
}
