//! The threads of one process across looks: state, times, place, and sums that include ended
//! threads. One fact keeps a look cheap: **a thread that has not run since the last look is still
//! where it was.** `schedstat` tells, and is the cheapest file to read (1.2 µs; `stat` takes 3, and
//! a stack with opening 11). Only a thread that has run is read again. A woken thread that has not
//! yet got a CPU still counts as asleep.
//!
//! The kernel counts run-queue time and block-I/O delay per thread and forgets them when it ends. A
//! plain sum over the present threads would fall with each end, so the last value of each is kept.
//! Time after a thread's last look, and threads that live between two looks, are missing: the sums
//! are lower bounds.
//!
//! It makes no rows and no metrics: `host` and `process` do, and may share one census (`shared_census`).

use std::time::Instant;

use holdup_recording::clock;

use crate::ReadError;
use crate::proc::memory::Memory;
use crate::proc::open_files::{CachedFile, Files, Id};
use crate::proc::sleeping::{Depth, KernelPlace, PlaceFiles, place};
use crate::proc::task::{self, Stat, Times};

/// How many threads may have their place read per look. A place that was read stays valid until the
/// thread runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Threads in D with wait channel and system call: two files, 11 µs of CPU.
    pub(crate) calls: usize,
    /// Threads in D with stack and file as well: some 40 µs.
    pub(crate) files: usize,
    /// Sleeping threads with wait channel and system call; if there are more, they take turns.
    pub(crate) sleepers: usize,
}

/// What each source may read in a sample, so that holdup does not make a pile-up worse.
pub(crate) const BUDGET: Budget = Budget { calls: 1_000, files: 64, sleepers: 128 };

/// Accumulated times of one or several threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Runnable, but waiting for a CPU.
    pub(crate) queue_ns: i64,
    /// Waiting for block I/O; in clock ticks.
    pub(crate) block_io_ticks: u64,
}

impl Sums {
    pub(crate) fn add(&mut self, other: Sums) {
        self.queue_ns = self.queue_ns.saturating_add(other.queue_ns);
        self.block_io_ticks = self.block_io_ticks.saturating_add(other.block_io_ticks);
    }

    /// The larger of each: a thread's counters never fall, even if a read is wrong.
    fn max(self, other: Sums) -> Self {
        let block_io_ticks = self.block_io_ticks.max(other.block_io_ticks);
        Self { queue_ns: self.queue_ns.max(other.queue_ns), block_io_ticks }
    }
}

/// The last known state of one thread, and its files.
#[derive(Default)]
pub(crate) struct Task {
    pub(crate) tid: u32,
    pub(crate) name: String,
    /// State letter; none before the first look.
    pub(crate) state: Option<char>,
    /// Times from `schedstat`, if it exists.
    pub(crate) times: Option<Times>,
    pub(crate) place: KernelPlace,
    depth: Depth,
    start_ticks: u64,
    sums: Sums,
    stat: CachedFile,
    schedstat: CachedFile,
    place_files: PlaceFiles,
}

/// What happened to a thread since the last look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ThreadChange {
    Slept,
    Ran,
    Ended,
}

/// When a look was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookWindow {
    /// Wall clock at its start, ns since 1970.
    pub(crate) begun_at: i64,
    /// How long it took.
    pub(crate) window_ns: i64,
    ended: Instant,
}

impl LookWindow {
    pub(crate) fn age(&self) -> std::time::Duration {
        self.ended.elapsed()
    }

    /// From the start of this look to the end of a later one, or of one that another source made before it.
    pub(crate) fn until(self, other: Self) -> Self {
        let begun_at = self.begun_at.min(other.begun_at);
        let end = |look: Self| look.begun_at.saturating_add(look.window_ns);
        let window_ns = end(self).max(end(other)).saturating_sub(begun_at);
        Self { begun_at, window_ns, ended: self.ended.max(other.ended) }
    }
}

/// All threads of one process.
#[derive(Default)]
pub(crate) struct Census {
    pid: u32,
    /// Sorted by thread number.
    tasks: Vec<Task>,
    /// Link count of the thread folder when it was last listed.
    links: Option<u64>,
    ended: Sums,
    /// Where the next look starts, so that the budget is not always spent on the same threads.
    turn: usize,
    /// The last look that found all threads.
    last_look: Option<LookWindow>,
}

impl Census {
    pub(crate) fn new(pid: u32) -> Self {
        Self { pid, ..Self::default() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// The threads of the last look; empty if the process has ended.
    pub(crate) fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// When the last look was made; none if it failed.
    pub(crate) fn last_look(&self) -> Option<LookWindow> {
        self.last_look
    }

    /// The process name, which is its main thread's.
    pub(crate) fn name(&self) -> &str {
        self.tasks.iter().find(|task| task.tid == self.pid).or(self.tasks.first()).map_or("", |task| &task.name)
    }

    /// The accumulated times of its threads, ended ones included.
    pub(crate) fn sums(&self) -> Sums {
        let mut sums = self.ended;
        self.tasks.iter().for_each(|task| sums.add(task.sums));
        sums
    }

    /// How many files it keeps open.
    pub(crate) fn open(&self) -> usize {
        let of = |task: &Task| {
            usize::from(task.stat.is_open()) + usize::from(task.schedstat.is_open()) + task.place_files.open()
        };
        self.tasks.iter().map(of).sum()
    }

    /// Looks at all threads.
    ///
    /// # Errors
    /// If a thread's data cannot be parsed: a count without that thread would be wrong.
    pub(crate) fn look(
        &mut self,
        files: &mut Files,
        memory: &mut Memory,
        budget: &mut Budget,
    ) -> Result<(), ReadError> {
        let (begun_at, begun) = (clock::now_ns(), Instant::now());
        self.last_look = None;
        let mut error = None;
        let mut changed = self.tasks.is_empty();
        let known = self.tasks.len();
        for step in 0..known {
            let task = &mut self.tasks[(self.turn + step) % known];
            match task.look(self.pid, files, memory, budget, &mut self.ended) {
                Ok(since) => changed |= since != ThreadChange::Slept,
                Err(why) => error = Some(why),
            }
        }
        let ended = &mut self.ended;
        self.tasks.retain(|task| {
            if task.state.is_none() {
                ended.add(task.sums);
            }
            task.state.is_some()
        });
        // Only a thread that has run can have created another.
        if changed {
            let links = files.links(self.pid);
            if links.is_none() || links != self.links || self.tasks.len() != known {
                self.links = links;
                self.add_new(files, memory, budget).unwrap_or_else(|why| error = Some(why));
            }
        }
        self.turn = (self.turn + budget_step(known)) % self.tasks.len().max(1);
        if let Some(error) = error {
            return Err(error);
        }
        self.last_look =
            Some(LookWindow { begun_at, window_ns: begun.elapsed().as_nanos() as i64, ended: Instant::now() });
        Ok(())
    }

    fn add_new(&mut self, files: &mut Files, memory: &mut Memory, budget: &mut Budget) -> Result<(), ReadError> {
        let mut tids = Vec::new();
        if files.list(self.pid, &mut tids).is_err() {
            // The whole process has ended.
            return Ok(());
        }
        let mut error = None;
        let known = self.tasks.len();
        for tid in tids {
            if self.tasks[..known].binary_search_by_key(&tid, |task| task.tid).is_ok() {
                continue;
            }
            let mut task = Task { tid, ..Task::default() };
            match task.look(self.pid, files, memory, budget, &mut self.ended) {
                Ok(ThreadChange::Ended) => {}
                Ok(_) => self.tasks.push(task),
                Err(why) => error = Some(why),
            }
        }
        self.tasks.sort_unstable_by_key(|task| task.tid);
        error.map_or(Ok(()), Err)
    }
}

/// How far the next look's start moves on: a step that divides no common number of threads, so that
/// all get their turn.
fn budget_step(threads: usize) -> usize {
    threads / 3 + 1
}

impl Task {
    /// Reads its present state. If another thread had its number before, that one's times go to
    /// `ended`.
    fn look(
        &mut self,
        pid: u32,
        files: &mut Files,
        memory: &mut Memory,
        budget: &mut Budget,
        ended: &mut Sums,
    ) -> Result<ThreadChange, ReadError> {
        let id = Id { pid, tid: self.tid };
        let times = self.schedstat.read(files, id, "schedstat", true).map(task::schedstat).transpose()?;
        let ran = self.state.is_none_or(|state| state == 'R') || may_have_run(self.times, times);
        if ran {
            // Not kept open the first time: a thread that never runs is not read again.
            let Some(text) = self.stat.read(files, id, "stat", self.state.is_some()) else {
                self.state = None;
                return Ok(ThreadChange::Ended);
            };
            let stat = Stat::parse(text)?;
            let now = Sums { queue_ns: times.map_or(0, |times| times.queue_ns), block_io_ticks: stat.block_io_ticks };
            let same = self.state.is_none() || self.start_ticks == stat.start_ticks;
            if same {
                self.sums = self.sums.max(now);
            } else {
                ended.add(std::mem::replace(&mut self.sums, now));
            }
            self.start_ticks = stat.start_ticks;
            self.state = Some(stat.state);
            if self.name != stat.comm {
                stat.comm.clone_into(&mut self.name);
            }
            (self.place, self.depth) = (KernelPlace::default(), Depth::Nothing);
        }
        self.times = times;
        self.locate(id, files, memory, budget);
        Ok(if ran { ThreadChange::Ran } else { ThreadChange::Slept })
    }

    /// Reads its place, if it is unknown and the budget allows.
    fn locate(&mut self, id: Id, files: &mut Files, memory: &mut Memory, budget: &mut Budget) {
        let depth = match self.state {
            Some('D') if budget.files > 0 => Depth::File,
            Some('D') if budget.calls > 0 => Depth::Call,
            Some('S' | 'T' | 't' | 'I') if budget.sleepers > 0 => Depth::Call,
            _ => return,
        };
        if depth <= self.depth {
            return;
        }
        match (self.state, depth) {
            (Some('D'), Depth::File) => {
                (budget.files, budget.calls) = (budget.files - 1, budget.calls.saturating_sub(1))
            }
            (Some('D'), _) => budget.calls -= 1,
            _ => budget.sleepers -= 1,
        }
        // A thread in D is likely to be in D again.
        let keep = self.state == Some('D');
        memory.take_missed();
        let place = place(files, memory, &mut self.place_files, id, (depth, keep));
        // A path that did not come in time is asked for again, even if the thread stays where it is.
        let depth = if memory.take_missed() { Depth::Call } else { depth };
        let after = self.schedstat.read(files, id, "schedstat", true).and_then(|text| task::schedstat(text).ok());
        // If it has run meanwhile, the place does not belong to the state, and the memory at the
        // call's address may be anything.
        if !may_have_run(self.times, after) {
            (self.place, self.depth) = (place, depth);
        } else if after.is_none_or(|times| times.slices == 0) {
            self.place = KernelPlace { path: None, ..place };
        }
    }
}

/// Whether a thread may have run between two reads; unknown counts as yes on kernels that do not
/// count time slices.
fn may_have_run(before: Option<Times>, after: Option<Times>) -> bool {
    before.is_none() || before != after || after.is_some_and(|times| times.slices == 0)
}
