//! A witness of the machine: whether what wanted to run could. Where a hypervisor or a neighbour takes the CPUs away, holdup
//! stalls as anything does, and what it measured then says nothing about holdup. So a thread on each CPU sleeps a
//! millisecond at a time and notes by how much it wakes late, while a test makes an attempt; an attempt that missed while
//! the witness itself stalled is made again. It deliberately excuses nothing on a machine that was quiet.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::program::undecided;

const TICK_NS: i64 = 1_000_000;

/// Ticks of a second.
const TICKS: usize = 1_000;

/// What one second of one CPU was like.
#[derive(Clone, Copy, Debug, Default)]
pub struct Second {
    /// 99th percentile of how late the witness woke, milliseconds: of all ticks, those that a late one slept through as well.
    pub late_p99_ms: f64,
    /// Share (0-1) of the second that it could run and waited for the CPU, where the kernel counts that.
    pub waited_ratio: f64,
    /// Share (0-1) of all CPUs' time that the hypervisor took, where it says so.
    pub stolen_ratio: f64,
}

/// What counts as a stall, and how much of an attempt may be stalled.
#[derive(Clone, Copy)]
pub struct Limits {
    pub late_p99_ms: f64,
    pub waited_ratio: f64,
    pub stolen_ratio: f64,
    /// Share (0-1) of the seconds; more of them disturb an attempt.
    pub seconds_ratio: f64,
}

/// For what is judged by every second of its own: holdup calls a second limited from 5 ms of lag, or 15 % of waiting, on.
pub const SECOND_BY_SECOND: Limits =
    Limits { late_p99_ms: 3.0, waited_ratio: 0.07, stolen_ratio: 0.02, seconds_ratio: 0.0 };

/// For what is found out over many seconds, of which a few may be lost.
pub const ON_THE_WHOLE: Limits =
    Limits { late_p99_ms: 10.0, waited_ratio: 0.15, stolen_ratio: 0.05, seconds_ratio: 0.1 };

/// Seconds of all CPUs, the worst CPU's of each.
pub struct Account(Vec<Second>);

impl Account {
    fn is_disturbed(&self, limits: &Limits) -> bool {
        let is_stalled = |second: &&Second| {
            second.late_p99_ms > limits.late_p99_ms
                || second.waited_ratio > limits.waited_ratio
                || second.stolen_ratio > limits.stolen_ratio
        };
        let stalled = self.0.iter().filter(is_stalled).count();
        stalled as f64 > limits.seconds_ratio * self.0.len() as f64
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = |of: fn(&Second) -> f64| {
            let mut values: Vec<f64> = self.0.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            (values.get(values.len() / 2).copied().unwrap_or(0.0), values.last().copied().unwrap_or(0.0))
        };
        let (late, waited, stolen) = (all(|s| s.late_p99_ms), all(|s| s.waited_ratio), all(|s| s.stolen_ratio));
        write!(
            f,
            "a thread that slept woke late by {:.1} ms (p99 of a middling second; {:.1} of the worst), ",
            late.0, late.1
        )?;
        write!(f, "waited for a CPU for {:.0} % ({:.0} %), and the hypervisor ", waited.0 * 1e2, waited.1 * 1e2)?;
        write!(f, "took {:.0} % ({:.0} %), in {} s", stolen.0 * 1e2, stolen.1 * 1e2, self.0.len())
    }
}

/// A thread on each CPU, until it is asked.
pub struct Witness {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<Second>>>,
}

impl Witness {
    pub fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let begun = monotonic_ns();
        let threads = cpus().into_iter().map(|cpu| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || watch(cpu, begun, &stop))
        });
        Self { threads: threads.collect(), stop }
    }

    pub fn finish(self) -> Account {
        self.stop.store(true, Ordering::Relaxed);
        let mut worst: Vec<Second> = Vec::new();
        for thread in self.threads {
            let seconds = thread.join().unwrap();
            worst.resize(worst.len().max(seconds.len()), Second::default());
            for (worst, second) in worst.iter_mut().zip(seconds) {
                worst.late_p99_ms = worst.late_p99_ms.max(second.late_p99_ms);
                worst.waited_ratio = worst.waited_ratio.max(second.waited_ratio);
                worst.stolen_ratio = worst.stolen_ratio.max(second.stolen_ratio);
            }
        }
        Account(worst)
    }
}

/// How often something is tried before it is judged.
pub struct Patience {
    pub limits: Limits,
    /// So many attempts that missed on a quiet machine are a failure.
    pub misses: usize,
    /// Attempts in all.
    pub attempts: usize,
    /// No attempt is begun that would not end within this.
    pub within: Duration,
}

impl Patience {
    /// Makes attempts until one holds, or enough of them missed on a quiet machine, which is a failure. Where the machine
    /// allowed no judgement the test is undecided, and says so.
    pub fn judge(&self, attempt: impl FnMut(usize) -> Result<(), String>) {
        match self.tries(attempt) {
            Came::Held => {}
            Came::Failed(why) => panic!("{why}"),
            Came::Undecided(why) => undecided(&why),
        }
    }

    fn tries(&self, mut attempt: impl FnMut(usize) -> Result<(), String>) -> Came {
        let (begun, mut longest, mut said) = (Instant::now(), Duration::ZERO, Vec::new());
        let mut quiet = 0;
        for number in 0..self.attempts {
            if begun.elapsed() + longest > self.within {
                break;
            }
            let (from, witness) = (Instant::now(), Witness::start());
            let result = attempt(number);
            let account = witness.finish();
            longest = longest.max(from.elapsed());
            let Err(miss) = result else { return Came::Held };
            let is_disturbed = account.is_disturbed(&self.limits);
            eprintln!("attempt {number} missed; {account}: {miss}");
            quiet += usize::from(!is_disturbed);
            if quiet >= self.misses {
                return Came::Failed(format!("{miss}\non a quiet machine: {account}"));
            }
            said.push(format!("{}: {account}", if is_disturbed { "disturbed" } else { "quiet, and missed" }));
        }
        Came::Undecided(format!("the machine stalled in too many attempts:\n  {}", said.join("\n  ")))
    }
}

/// What became of the attempts.
enum Came {
    Held,
    Failed(String),
    Undecided(String),
}

/// Wakes each millisecond on `cpu`, until `stop`.
fn watch(cpu: usize, begun: i64, stop: &AtomicBool) -> Vec<Second> {
    stay_on(cpu);
    let (mut seconds, mut late) = (Vec::new(), Vec::with_capacity(TICKS));
    let (mut tick, mut waited, mut stolen) = (begun, waited_ns(), stolen());
    while !stop.load(Ordering::Relaxed) {
        tick += TICK_NS;
        sleep_until(tick);
        // A tick that has been slept through is late as well: it does not wait for the one before it.
        late.push(monotonic_ns() - tick);
        if late.len() == TICKS {
            let (has_waited, has_stolen) = (waited_ns(), self::stolen());
            seconds.push(second(&mut late, has_waited - waited, stolen, has_stolen));
            (waited, stolen) = (has_waited, has_stolen);
        }
    }
    // Of a stretch that is no second a part tells too, if it is long enough for a percentile.
    if late.len() >= TICKS / 4 || seconds.is_empty() {
        let has_waited = waited_ns() - waited;
        seconds.push(second(&mut late, has_waited, stolen, self::stolen()));
    }
    seconds
}

fn second(late: &mut Vec<i64>, waited_ns: i64, before: (u64, u64), after: (u64, u64)) -> Second {
    late.sort_unstable();
    let p99 = late.get(late.len() * 99 / 100).copied().unwrap_or(0);
    let length = (late.len().max(1) as i64 * TICK_NS) as f64;
    late.clear();
    let all = after.1.saturating_sub(before.1).max(1);
    Second {
        late_p99_ms: p99 as f64 / 1e6,
        waited_ratio: waited_ns as f64 / length,
        stolen_ratio: after.0.saturating_sub(before.0) as f64 / all as f64,
    }
}

/// What the hypervisor took of all CPUs, and all time, in ticks (proc(5), /proc/stat).
fn stolen() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields = text.lines().next().unwrap_or_default().split_whitespace().skip(1).take(8);
    let ticks: Vec<u64> = fields.map(|field| field.parse().unwrap_or(0)).collect();
    (ticks.get(7).copied().unwrap_or(0), ticks.iter().sum())
}

/// How long this thread could run and waited for a CPU; 0 where the kernel does not count it.
fn waited_ns() -> i64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// CPUs that this process may use.
fn cpus() -> Vec<usize> {
    // SAFETY: an all-zero cpu_set_t is an empty set; the kernel fills in at most the size that it is told.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
        set
    };
    // SAFETY: the numbers are below the set's size.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

/// Ties this thread to a CPU. Where that is refused it runs where it may, and is a witness all the same.
fn stay_on(cpu: usize) {
    // SAFETY: as above; only this thread is concerned.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

fn monotonic_ns() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is ours to be written to.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

fn sleep_until(at: i64) {
    let until = libc::timespec { tv_sec: at / 1_000_000_000, tv_nsec: at % 1_000_000_000 };
    // SAFETY: `until` is read only, and nothing is wanted back. Ended early by a signal it looks at the clock again.
    while unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const until, std::ptr::null_mut())
    } == libc::EINTR
    {}
}

#[test]
fn a_witness_sees_stalls_and_forgives_only_them() {
    let of = |late_ms: i64, from: usize| {
        let mut late: Vec<i64> = (0..TICKS).map(|i| if i >= from { late_ms * TICK_NS } else { 0 }).collect();
        second(&mut late, 0, (0, 0), (0, 200))
    };
    let quiet = Account(vec![of(0, 0), of(40, 995), of(2, 0)]);
    let stalled = Account(vec![of(0, 0), of(40, 980), of(0, 0)]);
    assert!(!quiet.is_disturbed(&SECOND_BY_SECOND), "{quiet}");
    assert!(stalled.is_disturbed(&SECOND_BY_SECOND) && stalled.is_disturbed(&ON_THE_WHOLE), "{stalled}");
    let mut seldom = vec![of(0, 0); 10];
    seldom[3] = of(40, 980);
    assert!(!Account(seldom).is_disturbed(&ON_THE_WHOLE));
    let stolen = Account(vec![second(&mut vec![0; TICKS], 0, (10, 100), (22, 300))]);
    assert!(stolen.is_disturbed(&SECOND_BY_SECOND) && stolen.is_disturbed(&ON_THE_WHOLE), "{stolen}");
    let waited = Account(vec![second(&mut vec![0; TICKS], 80_000_000, (0, 0), (0, 200))]);
    assert!(waited.is_disturbed(&SECOND_BY_SECOND) && !waited.is_disturbed(&ON_THE_WHOLE), "{waited}");
}

#[test]
fn a_miss_on_a_quiet_machine_is_a_failure_and_another_is_none() {
    let judged = |limit: f64, misses: usize| {
        let limits = Limits { late_p99_ms: limit, waited_ratio: 1e9, stolen_ratio: 1e9, seconds_ratio: 0.0 };
        let mut made = 0;
        let patience = Patience { limits, misses, attempts: 4, within: Duration::from_secs(60) };
        let came = patience.tries(|_| {
            made += 1;
            std::thread::sleep(Duration::from_millis(20));
            Err("missed".to_owned())
        });
        (matches!(came, Came::Failed(_)), matches!(came, Came::Undecided(_)), made)
    };
    // No machine is later than this, and every one is later than that.
    assert_eq!(judged(1e9, 3), (true, false, 3));
    assert_eq!(judged(-1.0, 1), (false, true, 4));
}
