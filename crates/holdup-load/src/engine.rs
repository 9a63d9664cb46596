//! Sends a scenario's requests when they are due and records how each one ended.
//!
//! Arrivals come from the schedule alone. A request that is due while every connection is busy
//! waits, and its response time counts from when it was due. So the system under test cannot make
//! the load gentler or the numbers better. A request that was never sent or timed out is recorded
//! with its age.
//!
//! A [`run::Loop`] is one thread with one epoll set and a part of the schedule; loops share nothing
//! while they run. [`gather`] merges what they report. [`connection`] moves bytes, a [`driver`]
//! speaks the protocol, [`slots`] hold the requests in flight, and [`books`] hold counts, histograms and rows.

mod books;
mod clock;
mod connection;
mod cookies;
mod driver;
mod gather;
mod intake;
mod layout;
mod link;
mod outcome;
mod own;
mod plan;
mod prepared;
mod redirect;
mod refusals;
mod run;
pub mod search;
mod sessions;
mod slots;
mod start;
pub mod talk;
pub mod target;
mod timing;
pub mod tls;
mod trace;
mod turns;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use crate::script::Value;
use holdup_recording::manifest::Phase;
use holdup_recording::priority::give_way;
use holdup_recording::writer::RowSink;

use self::books::Books;
use self::gather::{Gather, RunTotals};
use self::plan::Plan;
use self::run::player::batches;
use self::run::{Loop, Task};
use self::search::{PlayedSearch, SearchSetup};
use self::start::StartSignal;
use self::target::CheckedTarget;
use crate::model::Load;
use crate::scenario::Scenario;
use crate::schedule::played::{OrderDelay, Play};
use crate::stats::{Latencies, Live, Second};
use crate::sys;

/// Request rows that are kept if the scenario does not say: at 200 bytes each they fit into any
/// memory.
pub const DEFAULT_ROWS: u64 = 100_000;

/// Assumed length of a load given in iterations, when deciding how many rows to keep.
const ITERATIONS_TAKE: Duration = Duration::from_secs(600);

/// Most bytes of a body that checks and captures see.
const LOOKED_AT_BYTES: u32 = 4 << 20;

/// How often a name that does not resolve is looked up again.
const RESOLVE_AGAIN: Duration = Duration::from_secs(1);

/// Why no load could be made: nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The target can't be used as given.
    #[error(transparent)]
    Target(#[from] target::TargetError),
    /// This process may not use that CPU.
    #[error("this process may not run on CPU {cpu}; allowed: {allowed}")]
    NoSuchCpu {
        /// The CPU as given.
        cpu: usize,
        /// The CPUs it may use.
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

/// Where results go while the load runs.
pub struct Outputs {
    /// Rows of requests and of the generator's own samples.
    pub rows: Option<RowSink>,
    /// The seconds of the load, as they end.
    pub seconds: Option<mpsc::Sender<Second>>,
    /// For a progress display.
    pub live: Live,
}

/// The result of a run.
pub struct Summary {
    /// Start of the schedule, nanoseconds since the Unix epoch.
    pub started_at: i64,
    /// When the last request ended.
    pub ended_at: i64,
    /// The phases as they were played.
    pub phases: Vec<Phase>,
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    /// CPU time of the loops over the run, as a share of one core.
    pub cpu_ratio: f64,
    /// Counts and exact latencies of each operation, in the scenario's order.
    pub operations: Vec<OperationSummary>,
    /// How long opening all connections took, if they were opened before the load started.
    pub connected_in: Option<Duration>,
    /// The search, if the load was one.
    pub search: Option<PlayedSearch>,
    /// The database's first refusal of each operation and outcome: the operation, the outcome, and
    /// the error code with as much of the message as contains no values.
    pub refusals: Vec<(String, &'static str, String)>,
    /// How far the log's own order delayed the statements of a recorded mix.
    pub bound: Option<OrderDelay>,
    /// The variables of the last session, if this was a setup that completed.
    pub left: Option<Vec<Value>>,
}

/// Counts and latencies of one operation.
pub struct OperationSummary {
    /// Its name.
    pub operation: String,
    /// Requests that were due.
    pub offered: u64,
    /// Requests that succeeded.
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
    found: CheckedTarget,
    loops: u32,
    cpus: Vec<usize>,
}

impl<'a> Engine<'a> {
    /// Resolves the target and makes sure that it answers. If the scenario says so, continues even
    /// if it does not.
    ///
    /// # Errors
    /// If it does not resolve, does not accept, or its certificate does not verify: no request has
    /// been sent then.
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
        let slots = scenario.slots();
        let is_played = matches!(&scenario.load, Load::Open(schedule) if schedule.as_recorded_mix().is_some());
        // A session belongs to one loop, and one loop is fast enough for any database.
        let loops = if is_played { 1 } else { generator.loops(peak, slots, allowed.len(), scenario.target.is_local()) };
        let cpus = match (&generator.cpus[..], loops as usize) {
            ([], loops) if loops > 1 && loops == allowed.len() => allowed,
            ([], _) => Vec::new(),
            (given, _) => given.to_vec(),
        };
        let found = target::check(scenario)?;
        Ok(Self { scenario, found, loops, cpus })
    }

    /// The phases of a load that starts at `started_at`, nanoseconds since the Unix epoch.
    pub fn phases(&self, started_at: i64) -> Vec<Phase> {
        self.scenario.load.phases(started_at)
    }

    /// Plays `flow` of the scenario's sessions once, as setup or teardown, and returns the
    /// variables at its end.
    ///
    /// # Errors
    /// If a step failed: which one, and how.
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

    /// Loops that will make the load.
    pub fn loops(&self) -> u32 {
        self.loops
    }

    /// Runs the load until the schedule and all its requests have ended, or `stop` is set.
    ///
    /// # Errors
    /// If the kernel refuses something the loops themselves need. Failed requests are rows, not
    /// errors.
    pub fn run(&self, outputs: Outputs, stop: &AtomicBool) -> Result<Summary, LoadError> {
        let scenario = self.scenario;
        let mut outputs = outputs;
        let schedule = match &scenario.load {
            Load::Open(schedule) => Some(schedule),
            Load::Closed(_) => None,
        };
        let live = schedule.and_then(|schedule| schedule.as_live());
        let searching = scenario.search.as_ref().zip(live).map(|(config, live)| {
            let (sender, seconds) = mpsc::channel();
            (config, live, seconds, outputs.seconds.replace(sender))
        });
        let plan = Plan::new(scenario, self.found.tls.clone(), self.found.address);
        let (reports, inbox) = mpsc::channel();
        let loops = self.loops as usize;
        let played = schedule.and_then(|schedule| schedule.as_recorded_mix()?.take());
        let (ahead, batches) = played
            .map(|feed| (feed, batches()))
            .map_or((None, None), |(feed, (give, take))| (Some((feed, give)), Some(take)));
        let tasks = self.tasks(&plan, &outputs, reports, batches, stop);
        let runners = tasks.map(Loop::new).collect::<Result<Vec<_>, _>>()?;
        let signal = StartSignal::new(loops);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            start::start_loops(scope, runners, &self.cpus, &signal)?;
            if let Some((feed, batches)) = ahead {
                start::start_reading(scope, feed, batches)?;
            }
            if self.found.address.is_none() {
                scope.spawn(|| resolve_again(&plan, &over));
            }
            let took_ns = signal.await_loops();
            let connected_in = self.opens_ahead().then(|| Duration::from_nanos(took_ns));
            start::wait_until(scenario.start_at, stop);
            let (started, unix_offset) = signal.give();
            let search = searching.map(|(config, live, seconds, forward)| {
                let (config, slots) = (config.clone(), u64::from(scenario.slots()));
                let setup = SearchSetup { config, live, started, slots, seconds, forward, plan: &plan, stop };
                thread::Builder::new().name("load-search".to_owned()).spawn_scoped(scope, move || search::play(setup))
            });
            let search = search.transpose()?;
            let plan = &plan;
            let gathered = thread::Builder::new().name("load-gather".to_owned()).spawn_scoped(scope, move || {
                give_way();
                // Moving `outputs` here drops its senders at the end, so that a reader of the
                // seconds sees that no more will come.
                let outputs = outputs;
                Gather::new(plan, &outputs, loops, unix_offset).run(&inbox)
            })?;
            let gathered = end_of(gathered);
            over.store(true, Ordering::Relaxed);
            let search = search.map(end_of);
            let RunTotals { operations, cpu_ns, interrupted } = gathered?;
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
                refusals: plan.first_refusals(),
                bound: plan.bound.lock().unwrap_or_else(PoisonError::into_inner).take(),
                left: plan.left.lock().unwrap_or_else(PoisonError::into_inner).take(),
            })
        })
    }

    /// Whether loops open all their connections before the load starts.
    fn opens_ahead(&self) -> bool {
        let is_ahead = self.scenario.generator.open_all || matches!(self.scenario.load, Load::Closed(_));
        is_ahead && self.scenario.http.keep_alive
    }

    /// Splits the work among the loops: each gets every loops-th request of this process's share,
    /// and an equal part of the slots.
    fn tasks<'t>(
        &self,
        plan: &'t Plan<'t>,
        outputs: &Outputs,
        reports: mpsc::Sender<gather::Report>,
        mut batches: Option<mpsc::Receiver<Vec<Play>>>,
        stop: &'t AtomicBool,
    ) -> impl Iterator<Item = Task<'t>> {
        let (loops, slots) = (self.loops, self.scenario.slots());
        let seconds = match &self.scenario.load {
            // It ends when the iterations are done, and that moment is not known beforehand.
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
            slots: (slots / loops + u32::from(index < slots % loops)) as usize,
            batches: batches.take(),
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

/// What a thread returned, or its panic.
fn end_of<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Looks the name up again until it has an address.
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
