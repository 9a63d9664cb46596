//! Sends a scenario's requests when they are due and writes down what became of each.
//!
//! Arrivals come from the schedule alone; a request that is due while every connection is busy waits, and its response
//! time counts from when it was due. So nothing the system under test does can make the load gentler or the numbers
//! better. A request that was never sent or timed out enters at its age.
//!
//! A [`run::Loop`] is one thread with one epoll set and a part of the schedule; loops share nothing while they run.
//! [`gather`] puts together what they report. [`connection`] moves bytes, [`lanes`] keep what is in flight,
//! [`books`] are what is written down.

mod books;
mod clock;
mod connection;
mod cookies;
mod gather;
mod lanes;
mod outcome;
mod own;
mod plan;
mod redirect;
mod refusals;
mod run;
pub mod search;
pub mod target;
mod timing;
pub mod tls;
mod trace;
mod visits;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, OnceLock, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use crate::script::Value;
use holdup_recording::manifest::Phase;
use holdup_recording::priority::give_way;
use holdup_recording::writer::RowSink;

use self::books::Books;
use self::gather::{Gather, Gathered};
use self::plan::Plan;
use self::run::played::{lots, read_ahead};
use self::run::{Loop, Task};
use self::search::{Searched, Stage};
use self::target::Found;
use crate::model::Load;
use crate::scenario::Scenario;
use crate::schedule::Played;
use crate::schedule::played::{Bound, Play};
use crate::stats::{Latencies, Live, Second};
use crate::sys;

/// Request rows that are kept if the scenario does not say: at 200 bytes each they fit into any memory.
pub const DEFAULT_ROWS: u64 = 100_000;

/// Rows are kept as if iterations took at most so long.
const ITERATIONS_TAKE: Duration = Duration::from_secs(600);

/// Bytes of a body that checks and captures look at.
const LOOKED_AT_BYTES: u32 = 4 << 20;

/// How often a name that does not resolve is tried again.
const RESOLVE_AGAIN: Duration = Duration::from_secs(1);

/// Why no load could be put on: nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The target can't be used as it was given.
    #[error(transparent)]
    Target(#[from] target::TargetError),
    /// A CPU that this process may not use.
    #[error("CPU {cpu} is not one that this process may run on; it has: {allowed}")]
    NoSuchCpu {
        /// As it was given.
        cpu: usize,
        /// Those it may.
        allowed: String,
    },
    /// A step of setup or teardown failed.
    #[error("{operation} failed: {how}")]
    SetUp {
        /// Which request.
        operation: String,
        /// Its outcome.
        how: String,
    },
    /// The kernel refused what the loop itself needs.
    #[error("failed to start the load loop: {0}")]
    Kernel(#[from] std::io::Error),
}

/// Where facts go while the load runs.
pub struct Outputs {
    /// Rows of requests and of the generator's own samples.
    pub rows: Option<RowSink>,
    /// What ended, second by second.
    pub seconds: Option<mpsc::Sender<Second>>,
    /// For whoever shows progress.
    pub live: Live,
}

/// What a run of the load came to.
pub struct Summary {
    /// Start of the schedule, nanoseconds since the Unix epoch.
    pub started_at: i64,
    /// When the last request had ended.
    pub ended_at: i64,
    /// The phases as they were.
    pub phases: Vec<Phase>,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// CPU time of the loops over the run, as a share of one core.
    pub cpu_ratio: f64,
    /// Counts and exact latencies of each operation, in the scenario's order.
    pub operations: Vec<OperationSummary>,
    /// How long opening all connections took, if they were opened ahead of the load.
    pub connected_in: Option<Duration>,
    /// The search, if it was one.
    pub search: Option<Searched>,
    /// What a database said when it first refused each operation in each way: the operation, the outcome, and its code
    /// with as much of its words as holds no value.
    pub refusals: Vec<(String, &'static str, String)>,
    /// How far the order of a recorded mix held its statements back, if it was one.
    pub bound: Option<Bound>,
    /// What the variables of the last session were, if this was a set-up that came to its end.
    pub left: Option<Vec<Value>>,
}

/// Counts and latencies of one operation.
pub struct OperationSummary {
    /// Its name.
    pub operation: String,
    /// Requests that were due.
    pub offered: u64,
    /// Requests that ended well.
    pub completed: u64,
    /// Requests that failed, never-sent ones among them.
    pub errors: u64,
    /// Requests that failed, by kind.
    pub failures: BTreeMap<String, u64>,
    /// Histograms of the whole run.
    pub latencies: Latencies,
}

/// A scenario whose target has been reached once.
pub struct Engine<'a> {
    scenario: &'a Scenario,
    found: Found,
    loops: u32,
    cpus: Vec<usize>,
}

impl<'a> Engine<'a> {
    /// Resolves the target and makes sure that it can be spoken to, unless the scenario goes on without.
    ///
    /// # Errors
    /// If it does not resolve, does not accept, or its certificate does not verify: nothing was sent then.
    pub fn prepare(scenario: &'a Scenario) -> Result<Self, LoadError> {
        let allowed = sys::allowed_cpus();
        let generator = &scenario.generator;
        if let Some(&cpu) = generator.cpus.iter().find(|cpu| !allowed.contains(cpu)) {
            let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            return Err(LoadError::NoSuchCpu { cpu, allowed: allowed.join(", ") });
        }
        let peak = match &scenario.load {
            Load::Open(schedule) => Some(schedule.peak_rate() / f64::from(scenario.shard.of)),
            Load::Closed(_) => None,
        };
        let lanes = scenario.lanes();
        let is_played = matches!(&scenario.load, Load::Open(schedule) if schedule.as_played().is_some());
        // A session is one loop's, and one loop is enough for what a database can do.
        let loops = if is_played { 1 } else { generator.loops(peak, lanes, allowed.len(), scenario.target.is_local()) };
        let cpus = match (&generator.cpus[..], loops as usize) {
            ([], loops) if loops > 1 && loops == allowed.len() => allowed,
            ([], _) => Vec::new(),
            (given, _) => given.to_vec(),
        };
        let found = target::find(scenario)?;
        Ok(Self { scenario, found, loops, cpus })
    }

    /// The phases of a load that starts at `started_at`, nanoseconds since the Unix epoch.
    pub fn phases(&self, started_at: i64) -> Vec<Phase> {
        self.scenario.load.phases(started_at)
    }

    /// Goes once through `flow` of the scenario's sessions, its set-up or its end. What its variables were then.
    ///
    /// # Errors
    /// If a step of it failed: which, and how.
    pub fn once(&self, flow: u32, stop: &AtomicBool) -> Result<Vec<Value>, LoadError> {
        let scenario = self.scenario.once(flow);
        let engine = Engine { scenario: &scenario, found: self.found.clone(), loops: 1, cpus: Vec::new() };
        let outputs = Outputs { rows: None, seconds: None, live: Live::default() };
        let summary = engine.run(outputs, stop)?;
        let said = |operation: &str, how: &str| {
            let found = summary.refusals.iter().find(|(of, outcome, _)| of == operation && *outcome == how);
            found.map_or_else(|| how.to_owned(), |(_, _, said)| format!("{how} ({said})"))
        };
        let failed = summary.operations.iter().find_map(|o| {
            let how = o.failures.keys().next()?;
            Some((o.operation.clone(), said(&o.operation, how)))
        });
        match (summary.left, failed) {
            (Some(values), None) => Ok(values),
            (_, Some((operation, how))) => Err(LoadError::SetUp { operation, how }),
            (None, None) => Err(LoadError::SetUp { operation: "a step".to_owned(), how: "not ended".to_owned() }),
        }
    }

    /// Loops that will put the load on.
    pub fn loops(&self) -> u32 {
        self.loops
    }

    /// Puts the load on until the schedule and all its requests have ended, or `stop` is set.
    ///
    /// # Errors
    /// If the kernel refuses what the loops themselves need. Errors of requests are rows.
    pub fn run(&self, outputs: Outputs, stop: &AtomicBool) -> Result<Summary, LoadError> {
        let scenario = self.scenario;
        let mut outputs = outputs;
        let live = match &scenario.load {
            Load::Open(schedule) => schedule.as_live(),
            Load::Closed(_) => None,
        };
        let searching = scenario.search.as_ref().zip(live).map(|(config, live)| {
            let (sender, seconds) = mpsc::channel();
            (config, live, seconds, outputs.seconds.replace(sender))
        });
        let plan = Plan::new(scenario, self.found.tls.clone(), self.found.address);
        let (reports, inbox) = mpsc::channel();
        let loops = self.loops as usize;
        let played = match &scenario.load {
            Load::Open(schedule) => schedule.as_played().and_then(Played::take),
            Load::Closed(_) => None,
        };
        let (ahead, lots) = played
            .map(|feed| (feed, lots()))
            .map_or((None, None), |(feed, (give, take))| (Some((feed, give)), Some(take)));
        let tasks = self.tasks(&plan, &outputs, reports, lots, stop);
        let runners = tasks.map(Loop::new).collect::<Result<Vec<_>, _>>()?;
        let (ready, go) = (Barrier::new(loops + 1), Barrier::new(loops + 1));
        let start: OnceLock<(i64, i64)> = OnceLock::new();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for (index, runner) in runners.into_iter().enumerate() {
                let (ready, go, start) = (&ready, &go, &start);
                let cpu = self.cpus.get(index).copied();
                thread::Builder::new().name(format!("load-{index}")).spawn_scoped(scope, move || {
                    if let Some(cpu) = cpu {
                        // It was allowed a moment ago; where it is no more, the kernel's choice has to do.
                        let _ = sys::pin_to(cpu);
                    }
                    runner.drive(ready, || {
                        go.wait();
                        start.get().copied().unwrap_or_default()
                    });
                })?;
            }
            if let Some((feed, lots)) = ahead {
                let reading = thread::Builder::new().name("load-ahead".to_owned());
                let (begun, has_begun) = mpsc::channel();
                reading.spawn_scoped(scope, move || {
                    give_way();
                    read_ahead(feed, &lots, begun);
                })?;
                // What is due at once has to be there: nobody else is told anything.
                let _ = has_begun.recv();
            }
            if self.found.address.is_none() {
                scope.spawn(|| resolve_again(&plan, &over));
            }
            let connecting = sys::monotonic_ns();
            ready.wait();
            let is_ahead = scenario.generator.open_all || matches!(scenario.load, Load::Closed(_));
            let connected_in = is_ahead.then(|| Duration::from_nanos((sys::monotonic_ns() - connecting) as u64));
            wait_until(scenario.start_at, stop);
            let started = sys::monotonic_ns();
            let unix_offset = holdup_recording::clock::now_ns() - started;
            let _ = start.set((started, unix_offset));
            go.wait();
            let search = searching.map(|(config, live, seconds, forward)| {
                let stage = Stage {
                    config: config.clone(),
                    live,
                    started,
                    lanes: u64::from(scenario.lanes()),
                    seconds,
                    forward,
                    plan: &plan,
                    stop,
                };
                thread::Builder::new().name("load-search".to_owned()).spawn_scoped(scope, move || search::play(stage))
            });
            let search = search.transpose()?;
            let plan = &plan;
            let gathered = thread::Builder::new().name("load-gather".to_owned()).spawn_scoped(scope, move || {
                give_way();
                // With it goes what it sends to: then whoever reads the seconds knows that there are no more.
                let outputs = outputs;
                Gather::new(plan, &outputs, loops, unix_offset).run(&inbox)
            })?;
            let gathered = gathered.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            over.store(true, Ordering::Relaxed);
            let search = search.map(|s| s.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            let Gathered { operations, cpu_ns, interrupted } = gathered?;
            let ended = sys::monotonic_ns();
            Ok(Summary {
                started_at: started + unix_offset,
                ended_at: ended + unix_offset,
                phases: scenario.load.phases(started + unix_offset),
                interrupted,
                cpu_ratio: cpu_ns as f64 / (ended - started).max(1) as f64,
                operations,
                connected_in,
                search,
                refusals: plan
                    .refusals
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .iter()
                    .map(|((index, outcome), said)| {
                        (plan.operations[*index as usize].clone(), outcome.name(), said.clone())
                    })
                    .collect(),
                bound: plan.bound.lock().unwrap_or_else(PoisonError::into_inner).take(),
                left: plan.left.lock().unwrap_or_else(PoisonError::into_inner).take(),
            })
        })
    }

    /// What each loop is given: every loops-th request of this process's share, and as equal a part of the lanes.
    fn tasks<'t>(
        &self,
        plan: &'t Plan<'t>,
        outputs: &Outputs,
        reports: mpsc::Sender<gather::Report>,
        mut lots: Option<mpsc::Receiver<Vec<Play>>>,
        stop: &'t AtomicBool,
    ) -> impl Iterator<Item = Task<'t>> {
        let (loops, lanes) = (self.loops, self.scenario.lanes());
        let seconds = match &self.scenario.load {
            // It ends when they have been through, which nobody knows beforehand.
            Load::Closed(closed) if closed.iterations.is_some() => closed.length.min(ITERATIONS_TAKE),
            load => load.length(),
        };
        let seconds = seconds.as_secs_f64().max(1.0);
        let rows = self.scenario.generator.rows.unwrap_or(DEFAULT_ROWS) as f64;
        let share = self.scenario.shard;
        let rate = match &self.scenario.load {
            Load::Open(schedule) => schedule.rate_at(Duration::ZERO) / f64::from(share.of * loops),
            Load::Closed(_) => 0.0,
        };
        let rows_sink = outputs.rows.clone();
        (0..loops).map(move |index| Task {
            plan,
            index: index as usize,
            share: share.part(index, loops),
            lanes: (lanes / loops + u32::from(index < lanes % loops)) as usize,
            lots: lots.take(),
            books: Books::new(
                plan.operations.len(),
                rows_sink.clone(),
                (rows / seconds / f64::from(loops)).max(1.0),
                rate,
            ),
            reports: reports.clone(),
            stop,
        })
    }
}

/// Waits for a moment of the wall clock, or a stop.
fn wait_until(moment: Option<i64>, stop: &AtomicBool) {
    while let Some(moment) = moment
        && !stop.load(Ordering::Relaxed)
    {
        let left = moment - holdup_recording::clock::now_ns();
        if left <= 0 {
            break;
        }
        // The last stretch to the nanosecond, the others so that a stop or a step of the clock is noticed.
        thread::sleep(Duration::from_nanos(left.min(50_000_000) as u64));
    }
}

/// Tries the name again until it has an address.
fn resolve_again(plan: &Plan<'_>, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        if let Ok(address) = target::resolve(&plan.scenario.target) {
            *plan.address.write().unwrap_or_else(PoisonError::into_inner) = Some(address);
            return;
        }
        let mut waited = Duration::ZERO;
        while waited < RESOLVE_AGAIN && !over.load(Ordering::Relaxed) {
            let step = Duration::from_millis(20);
            thread::sleep(step);
            waited += step;
        }
    }
}
