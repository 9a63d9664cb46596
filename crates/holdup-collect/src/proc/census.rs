//! The threads of one process, kept from one look to the next: state, times, place, and sums that survive threads that end.
//! What a look costs is held down by one fact: **a thread that has not been on a CPU since is where it was.** `schedstat` tells, and is
//! the cheapest file there is (1.2 us, where `stat` takes 3, and with opening a stack 11): only a thread that has run is read
//! again. A thread that has been woken, but has not got a CPU yet, still counts as asleep.
//!
//! The kernel keeps run-queue time and block-I/O delay per thread and forgets them with it. A plain sum over the threads there
//! are would fall whenever one ends; so the last value seen of each is kept. What a thread gathers after that, and threads
//! that live between two looks, are missing: the sums are lower bounds.
//!
//! It makes no rows and no metrics: that is for `host` and `process`, which may share one census (`watched`).

use std::time::Instant;

use holdup_recording::clock;

use crate::ReadError;
use crate::proc::kept::{Files, Id, KeptFile};
use crate::proc::memory::Memory;
use crate::proc::sleeping::{Depth, Doors, Place, place};
use crate::proc::task::{self, Stat, Times};

/// How many threads may have their place read in one look. A place once read counts again only when the thread has run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Threads in D with wait channel and system call: two files, 11 us of CPU.
    pub(crate) calls: usize,
    /// Threads in D with stack and file, too: some 40 us.
    pub(crate) files: usize,
    /// Sleeping threads with wait channel and system call; in a process of more they are taken in turn.
    pub(crate) sleepers: usize,
}

/// What every source may read in a sample, so that a pile-up does not become its own cause.
pub(crate) const BUDGET: Budget = Budget { calls: 1_000, files: 64, sleepers: 128 };

/// Times that a thread or threads have gathered.
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

    /// The larger of both: a counter of one thread does not fall, whatever is read.
    fn max(self, other: Sums) -> Self {
        let block_io_ticks = self.block_io_ticks.max(other.block_io_ticks);
        Self { queue_ns: self.queue_ns.max(other.queue_ns), block_io_ticks }
    }
}

/// One thread as it was last seen, and its files.
#[derive(Default)]
pub(crate) struct Task {
    pub(crate) tid: u32,
    pub(crate) name: String,
    /// State letter; none before it has been seen.
    pub(crate) state: Option<char>,
    /// Times of `schedstat`, where there is one.
    pub(crate) times: Option<Times>,
    pub(crate) place: Place,
    depth: Depth,
    start_ticks: u64,
    sums: Sums,
    stat: KeptFile,
    schedstat: KeptFile,
    doors: Doors,
}

/// What has become of a thread since the last look.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    Slept,
    Ran,
    Ended,
}

/// When a look was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// Wall clock at its begin, in ns since 1970.
    pub(crate) begun_at: i64,
    /// How long it took.
    pub(crate) window_ns: i64,
    ended: Instant,
}

impl Taken {
    pub(crate) fn age(&self) -> std::time::Duration {
        self.ended.elapsed()
    }
}

/// All threads of one process.
#[derive(Default)]
pub(crate) struct Census {
    pid: u32,
    /// In the order of their numbers.
    tasks: Vec<Task>,
    /// Links of the folder of threads when it was last listed.
    links: Option<u64>,
    ended: Sums,
    /// Where the next look begins, so that a budget is not always spent on the same ones.
    turn: usize,
    /// The last look that found all threads.
    taken: Option<Taken>,
}

impl Census {
    pub(crate) fn of(pid: u32) -> Self {
        Self { pid, ..Self::default() }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// The threads of the last look; none if the process has ended.
    pub(crate) fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// When the last look was made; nothing if it failed.
    pub(crate) fn taken(&self) -> Option<Taken> {
        self.taken
    }

    /// The process' name: its main thread's.
    pub(crate) fn name(&self) -> &str {
        self.tasks.iter().find(|task| task.tid == self.pid).or(self.tasks.first()).map_or("", |task| &task.name)
    }

    /// What its threads have gathered, those that ended included.
    pub(crate) fn sums(&self) -> Sums {
        let mut sums = self.ended;
        self.tasks.iter().for_each(|task| sums.add(task.sums));
        sums
    }

    /// How many files it keeps open.
    pub(crate) fn open(&self) -> usize {
        let of =
            |task: &Task| usize::from(task.stat.is_open()) + usize::from(task.schedstat.is_open()) + task.doors.open();
        self.tasks.iter().map(of).sum()
    }

    /// Looks at all threads.
    ///
    /// # Errors
    /// If what is there of a thread can't be understood: a count that lacks a thread would be a wrong one.
    pub(crate) fn look(
        &mut self,
        files: &mut Files,
        memory: &mut Memory,
        budget: &mut Budget,
    ) -> Result<(), ReadError> {
        let (begun_at, begun) = (clock::now_ns(), Instant::now());
        self.taken = None;
        let mut error = None;
        let mut changed = self.tasks.is_empty();
        let known = self.tasks.len();
        for step in 0..known {
            let task = &mut self.tasks[(self.turn + step) % known];
            match task.look(self.pid, files, memory, budget, &mut self.ended) {
                Ok(since) => changed |= since != Since::Slept,
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
        // Only a thread that has run can have made another.
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
        self.taken = Some(Taken { begun_at, window_ns: begun.elapsed().as_nanos() as i64, ended: Instant::now() });
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
                Ok(Since::Ended) => {}
                Ok(_) => self.tasks.push(task),
                Err(why) => error = Some(why),
            }
        }
        self.tasks.sort_unstable_by_key(|task| task.tid);
        error.map_or(Ok(()), Err)
    }
}

/// By how many threads the next look begins later: no divisor of usual numbers of threads, so that all get their turn.
fn budget_step(threads: usize) -> usize {
    threads / 3 + 1
}

impl Task {
    /// Sees what it does now. What another thread under its number had gathered goes to `ended`.
    fn look(
        &mut self,
        pid: u32,
        files: &mut Files,
        memory: &mut Memory,
        budget: &mut Budget,
        ended: &mut Sums,
    ) -> Result<Since, ReadError> {
        let id = Id { pid, tid: self.tid };
        let times = self.schedstat.read(files, id, "schedstat", true).map(task::schedstat).transpose()?;
        let ran = self.state.is_none_or(|state| state == 'R') || may_have_run(self.times, times);
        if ran {
            // The first time it is not kept: of a thread that never runs it is not needed again.
            let Some(text) = self.stat.read(files, id, "stat", self.state.is_some()) else {
                self.state = None;
                return Ok(Since::Ended);
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
            (self.place, self.depth) = (Place::default(), Depth::Nothing);
        }
        self.times = times;
        self.locate(id, files, memory, budget);
        Ok(if ran { Since::Ran } else { Since::Slept })
    }

    /// Reads its place, as far as it is not known and the budget goes.
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
        // Who is in D once is there again and again.
        let keep = self.state == Some('D');
        let place = place(files, memory, &mut self.doors, id, (depth, keep));
        let after = self.schedstat.read(files, id, "schedstat", true).and_then(|text| task::schedstat(text).ok());
        // If it has gone on meanwhile, that place is none of the state's, and what was read at the call's address may be
        // anything.
        if !may_have_run(self.times, after) {
            (self.place, self.depth) = (place, depth);
        } else if after.is_none_or(|times| times.slices == 0) {
            self.place = Place { path: None, ..place };
        }
    }
}

/// Whether a thread may have been on a CPU between two reads. Where the kernel does not count time slices nobody knows.
fn may_have_run(before: Option<Times>, after: Option<Times>) -> bool {
    before.is_none() || before != after || after.is_some_and(|times| times.slices == 0)
}
