//! The system, played event by event, so that time is honest: a service has cores, and work queues for
//! them; callers have time-outs and retries; what a caller has given up goes on working. Its spans are
//! what tracers would report of it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::draw::Draw;
use super::system::{Call, Fault, LookAlike, Plan, SERVICES, Step, System};

/// A span as a tracer reports it; times in microseconds since the start of the run, by its service's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanFacts {
    pub trace: u64,
    pub id: u64,
    pub parent: u64,
    pub service: usize,
    pub name: String,
    pub kind: Kind,
    pub from_us: i64,
    pub to_us: i64,
    pub failed: Option<Failure>,
    /// The service that it calls.
    pub peer: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Server,
    Client,
    Database,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    Status,
    Exception,
    Code,
}

/// What happened to one request of the front.
#[derive(Clone, Debug)]
pub struct Asked {
    pub at_ms: f64,
    pub took_ms: f64,
    pub has_failed: bool,
    /// Whether the fault met it.
    pub is_met: bool,
    pub is_kept: bool,
}

/// A running handler.
struct Frame {
    handler: usize,
    trace: u64,
    span: u64,
    parent_span: u64,
    /// The call that waits for it.
    caller: Option<usize>,
    from: f64,
    step: usize,
    waiting: usize,
    failed: Option<Failure>,
    root: usize,
}

/// A call in flight.
struct Flight {
    frame: usize,
    call: Call,
    span: u64,
    from: f64,
    attempt: u8,
    is_done: bool,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Arrive,
    /// A frame goes on with its next step.
    Next(usize),
    /// A core of a service is free again, after work of a frame.
    Worked(usize),
    DatabaseDone(usize, u64, i64),
    Begin(usize),
    Answer(usize, Option<Failure>),
    TimedOut(usize),
}

pub struct Run<'s> {
    system: &'s System,
    plan: &'s Plan,
    draw: Draw,
    now: f64,
    events: BinaryHeap<(Reverse<u64>, Reverse<u64>, usize)>,
    kinds: Vec<Event>,
    frames: Vec<Frame>,
    flights: Vec<Flight>,
    queues: Vec<VecDeque<(usize, f64)>>,
    busy: Vec<usize>,
    next_span: u64,
    pub spans: Vec<SpanFacts>,
    pub asked: Vec<Asked>,
}

impl<'s> Run<'s> {
    pub fn play(system: &'s System, plan: &'s Plan) -> Self {
        let mut run = Self {
            system,
            plan,
            draw: Draw::new(plan.seed ^ 0xabcd),
            now: 0.0,
            events: BinaryHeap::new(),
            kinds: Vec::new(),
            frames: Vec::new(),
            flights: Vec::new(),
            queues: vec![VecDeque::new(); SERVICES],
            busy: vec![0; SERVICES],
            next_span: 1,
            spans: Vec::new(),
            asked: Vec::new(),
        };
        run.at(0.0, Event::Arrive);
        while let Some((Reverse(at), _, event)) = run.events.pop() {
            run.now = at as f64 / 1e3;
            run.handle(run.kinds[event]);
        }
        run
    }

    fn at(&mut self, at_ms: f64, event: Event) {
        let number = self.kinds.len();
        self.kinds.push(event);
        self.events.push((Reverse((at_ms * 1e3).round() as u64), Reverse(number as u64), number));
    }

    fn is_in_stretch(&self) -> bool {
        (self.plan.stretch.0..self.plan.stretch.1).contains(&self.now)
    }

    /// The fault of a service, now.
    fn fault(&self, service: usize) -> Option<Fault> {
        let (of, fault) = self.plan.fault?;
        (of == service && self.is_in_stretch()).then_some(fault)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive => self.arrive(),
            Event::Next(frame) => self.step(frame),
            Event::Worked(frame) => {
                let service = self.system.handlers[self.frames[frame].handler].service;
                self.busy[service] -= 1;
                if let Some((next, ms)) = self.queues[service].pop_front() {
                    self.busy[service] += 1;
                    self.at(self.now + ms, Event::Worked(next));
                }
                self.step(frame);
            }
            Event::DatabaseDone(frame, span, from_us) => {
                let of = &self.frames[frame];
                let service = self.system.handlers[of.handler].service;
                let (trace, parent, root) = (of.trace, of.span, of.root);
                let to_us = self.clock(service, self.now);
                let name = format!("SELECT {}", self.system.names[service]);
                self.push(
                    root,
                    SpanFacts {
                        trace,
                        id: span,
                        parent,
                        service,
                        name,
                        kind: Kind::Database,
                        from_us,
                        to_us,
                        failed: None,
                        peer: None,
                    },
                );
                self.step(frame);
            }
            Event::Begin(flight) => self.begin(flight),
            Event::Answer(flight, failed) => self.answer(flight, failed),
            Event::TimedOut(flight) => self.answer(flight, Some(Failure::Status)),
        }
    }

    fn arrive(&mut self) {
        let rate = self.system.per_second
            * match self.plan.look_alike {
                LookAlike::Load(times) if self.is_in_stretch() => times,
                _ => 1.0,
            };
        let next = self.now + self.draw.after(rate);
        if next < self.plan.seconds * 1e3 {
            self.at(next, Event::Arrive);
        }
        let operations = &self.system.operations;
        let is_other = self.plan.look_alike == LookAlike::Mix && self.is_in_stretch();
        let share = |i: usize| if is_other { operations[operations.len() - 1 - i].1.powi(3) } else { operations[i].1 };
        let all: f64 = (0..operations.len()).map(share).sum();
        let mut left = self.draw.part() * all;
        let chosen = (0..operations.len())
            .find(|i| {
                left -= share(*i);
                left <= 0.0
            })
            .unwrap_or(0);
        let handler = operations[chosen].0;
        let trace = self.draw.bits() | 1;
        let is_kept = self.draw.bits().is_multiple_of(self.plan.sampled);
        let root = self.asked.len();
        self.asked.push(Asked { at_ms: self.now, took_ms: 0.0, has_failed: false, is_met: false, is_kept });
        let span = self.id();
        self.frames.push(Frame {
            handler,
            trace,
            span,
            parent_span: 0,
            caller: None,
            from: self.now,
            step: 0,
            waiting: 0,
            failed: None,
            root,
        });
        self.start(self.frames.len() - 1);
    }

    fn id(&mut self) -> u64 {
        self.next_span += 1;
        self.next_span
    }

    fn clock(&self, service: usize, at_ms: f64) -> i64 {
        ((at_ms + self.system.skew_ms[service] + 10.0) * 1e3) as i64
    }

    fn push(&mut self, root: usize, span: SpanFacts) {
        if self.asked[root].is_kept {
            self.spans.push(span);
        }
    }

    /// A handler begins: a fault may end or hold it.
    fn start(&mut self, frame: usize) {
        let (handler, root) = (self.frames[frame].handler, self.frames[frame].root);
        let service = self.system.handlers[handler].service;
        let fault = self.fault(service);
        self.asked[root].is_met |= fault.is_some();
        match fault {
            Some(Fault::Error(share)) if self.draw.part() < share => {
                self.frames[frame].failed = Some(Failure::Status);
                self.at(self.now + 0.5, Event::Next(frame));
            }
            Some(Fault::Code(share)) if self.draw.part() < share => {
                self.frames[frame].failed = Some(Failure::Code);
                self.at(self.now + 0.5, Event::Next(frame));
            }
            Some(Fault::Delay(ms)) => {
                let ms = self.draw.around(ms, 0.2);
                self.at(self.now + ms, Event::Next(frame));
            }
            _ => {
                let is_first = self.plan.look_alike == LookAlike::Deploy
                    && service == 3
                    && (self.plan.stretch.0..self.plan.stretch.0 + 2_000.0).contains(&self.now);
                let is_outlier = matches!(self.plan.look_alike, LookAlike::Outlier(_))
                    && service == 4
                    && self.now >= self.plan.stretch.0
                    && !self.asked.iter().any(|asked| asked.is_met);
                match self.plan.look_alike {
                    LookAlike::Outlier(ms) if is_outlier => {
                        self.asked[root].is_met = true;
                        self.at(self.now + ms, Event::Next(frame));
                    }
                    _ if is_first => self.at(self.now + 60.0, Event::Next(frame)),
                    _ => self.step(frame),
                }
            }
        }
    }

    fn step(&mut self, frame: usize) {
        let (handler, at) = (self.frames[frame].handler, self.frames[frame].step);
        let service = self.system.handlers[handler].service;
        let step = self.system.handlers[handler].steps.get(at).filter(|_| self.frames[frame].failed.is_none());
        self.frames[frame].step += 1;
        match step.cloned() {
            None => self.end(frame),
            Some(Step::Work(ms)) => {
                let times = match self.fault(service) {
                    Some(Fault::Cpu(times)) => times,
                    _ => 1.0,
                };
                let ms = self.draw.around(ms, 0.4) * times;
                if self.busy[service] < self.system.cores[service] {
                    self.busy[service] += 1;
                    self.at(self.now + ms, Event::Worked(frame));
                } else {
                    self.queues[service].push_back((frame, ms));
                }
            }
            Some(Step::Database(ms)) => {
                let (ms, span) = (self.draw.around(ms, 0.6), self.id());
                let from_us = self.clock(service, self.now);
                self.at(self.now + ms, Event::DatabaseDone(frame, span, from_us));
            }
            Some(Step::Calls(calls)) => {
                self.frames[frame].waiting = calls.len();
                for call in calls {
                    self.call(frame, call, 0);
                }
            }
        }
    }

    fn call(&mut self, frame: usize, call: Call, attempt: u8) {
        let span = self.id();
        let flight = self.flights.len();
        self.flights.push(Flight { frame, call, span, from: self.now, attempt, is_done: false });
        let target = self.system.handlers[call.handler].service;
        let late = match self.fault(target) {
            Some(Fault::Network(ms)) => {
                let root = self.frames[frame].root;
                self.asked[root].is_met = true;
                self.draw.around(ms, 0.1)
            }
            _ => 0.0,
        };
        let there = self.draw.between(0.2, 0.8) + late;
        self.at(self.now + there, Event::Begin(flight));
        self.at(self.now + call.timeout_ms, Event::TimedOut(flight));
    }

    fn begin(&mut self, flight: usize) {
        let of = &self.flights[flight];
        let caller = &self.frames[of.frame];
        let frame = Frame {
            handler: of.call.handler,
            trace: caller.trace,
            span: self.next_span + 1,
            parent_span: of.span,
            caller: Some(flight),
            from: self.now,
            step: 0,
            waiting: 0,
            failed: None,
            root: caller.root,
        };
        self.next_span += 1;
        self.frames.push(frame);
        self.start(self.frames.len() - 1);
    }

    fn end(&mut self, frame: usize) {
        let of = &self.frames[frame];
        let handler = &self.system.handlers[of.handler];
        let service = handler.service;
        let (trace, id, parent, root, from, caller) = (of.trace, of.span, of.parent_span, of.root, of.from, of.caller);
        let name = handler.name.clone();
        let mut failed = of.failed;
        if let (Some(Fault::Exception(share)), None) = (self.fault(service), failed)
            && self.draw.part() < share
        {
            failed = Some(Failure::Exception);
        }
        // Once in a while something fails in a healthy system.
        if failed.is_none() && self.draw.part() < 0.0007 {
            failed = Some(Failure::Status);
        }
        let (from_us, to_us) = (self.clock(service, from), self.clock(service, self.now));
        self.push(
            root,
            SpanFacts { trace, id, parent, service, name, kind: Kind::Server, from_us, to_us, failed, peer: None },
        );
        match caller {
            None => {
                self.asked[root].took_ms = self.now - self.asked[root].at_ms;
                self.asked[root].has_failed = failed.is_some();
            }
            Some(flight) => {
                let back = self.draw.between(0.2, 0.8);
                self.at(self.now + back, Event::Answer(flight, failed));
            }
        }
    }

    fn answer(&mut self, flight: usize, failed: Option<Failure>) {
        if std::mem::replace(&mut self.flights[flight].is_done, true) {
            return;
        }
        let of = &self.flights[flight];
        let (frame, call, span, from, attempt) = (of.frame, of.call, of.span, of.from, of.attempt);
        let caller = &self.frames[frame];
        let service = self.system.handlers[caller.handler].service;
        let target = &self.system.handlers[call.handler];
        let (trace, parent, root) = (caller.trace, caller.span, caller.root);
        let (name, peer) = (target.name.clone(), Some(target.service));
        let (from_us, to_us) = (self.clock(service, from), self.clock(service, self.now));
        self.push(
            root,
            SpanFacts { trace, id: span, parent, service, name, kind: Kind::Client, from_us, to_us, failed, peer },
        );
        if failed.is_some() && attempt < call.retries {
            return self.call(frame, call, attempt + 1);
        }
        if failed.is_some() && call.is_needed {
            self.frames[frame].failed = Some(Failure::Status);
        }
        self.frames[frame].waiting -= 1;
        if self.frames[frame].waiting == 0 {
            self.step(frame);
        }
    }
}
