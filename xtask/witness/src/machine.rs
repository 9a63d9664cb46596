//! The witness: a thread on each CPU that sleeps a millisecond at a time and notes by how much it wakes late. It judges
//! nothing.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::account::{Account, Limits, Second};

const TICK: Duration = Duration::from_millis(1);
const TICK_NS: i64 = TICK.as_nanos() as i64;

/// Ticks of a second.
const TICKS: usize = 1_000;

/// Of so many times the share of seconds that disturbs an attempt no good comes any more.
const HOPELESS: f64 = 2.5;

/// Seconds of all CPUs so far, the worst CPU's of each.
type Seen = Mutex<Vec<Second>>;

thread_local! {
    /// What the witness of this thread's attempt has seen.
    static SEEN: RefCell<Weak<Seen>> = const { RefCell::new(Weak::new()) };
}

/// Whether so much of this thread's attempt was stalled, of which `length` is expected, that it can as well be given up.
#[must_use]
pub fn is_hopeless(limits: &Limits, length: Duration) -> bool {
    let Some(seen) = SEEN.with_borrow(Weak::upgrade) else { return false };
    let stalled = account(&seen).stalled(limits);
    stalled as f64 > (HOPELESS * limits.seconds_ratio * length.as_secs_f64()).max(2.0)
}

fn account(seen: &Seen) -> Account {
    Account(seen.lock().unwrap_or_else(PoisonError::into_inner).clone())
}

/// A thread on each CPU, until it is asked.
pub struct Witness {
    stop: Arc<AtomicBool>,
    seen: Arc<Seen>,
    threads: Vec<JoinHandle<()>>,
}

impl Witness {
    /// Starts to watch the attempt that this thread makes.
    #[must_use]
    pub fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let cpus = cpus();
        // Threads that start late saw no stall.
        let ready = Arc::new(Barrier::new(cpus.len() + 1));
        let seen = Arc::new(Seen::default());
        let threads = cpus.into_iter().map(|cpu| {
            let (stop, ready, seen) = (Arc::clone(&stop), Arc::clone(&ready), Arc::clone(&seen));
            std::thread::spawn(move || {
                stay_on(cpu);
                ready.wait();
                watch(&stop, &seen);
            })
        });
        let threads = threads.collect();
        ready.wait();
        SEEN.set(Arc::downgrade(&seen));
        Self { stop, seen, threads }
    }

    /// What it saw.
    #[must_use]
    pub fn finish(self) -> Account {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            let _ = thread.join();
        }
        account(&self.seen)
    }
}

/// Wakes each millisecond, until `stop`, and adds each second to what all have seen.
fn watch(stop: &AtomicBool, seen: &Seen) {
    let (mut count, mut late) = (0, Vec::with_capacity(TICKS));
    let mut add = |second: Second| {
        let mut seconds = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seconds.len() == count {
            seconds.push(Second::default());
        }
        seconds[count].worsen(&second);
        count += 1;
    };
    // The ticks of the second before, for what is left at the end and is none by itself.
    let mut before: Vec<i64> = Vec::with_capacity(TICKS);
    let (mut tick, mut waited, mut stolen) = (Instant::now(), waited_ns(), stolen());
    loop {
        tick += TICK;
        // Told to stop it goes on to the present: it may have stalled until now itself.
        if stop.load(Ordering::Relaxed) && tick > Instant::now() {
            break;
        }
        std::thread::sleep(tick.saturating_duration_since(Instant::now()));
        // A tick that has been slept through is late as well: it does not wait for the one before it.
        late.push(tick.elapsed().as_nanos() as i64);
        if late.len() == TICKS {
            let (has_waited, has_stolen) = (waited_ns(), self::stolen());
            before.clone_from(&late);
            add(second(&mut late, has_waited - waited, stolen, has_stolen));
            (waited, stolen) = (has_waited, has_stolen);
            late.clear();
        }
    }
    if !late.is_empty() {
        // Of few ticks the 99th percentile would be the largest, and what was stolen is counted too coarsely: with what was
        // before they are a second, of which only they were not told of yet.
        let is_long = late.len() > TICKS / 4 || before.is_empty();
        let taken = if is_long { self::stolen() } else { stolen };
        before.drain(..late.len().min(before.len()));
        before.extend(&late);
        add(second(&mut before, waited_ns() - waited, stolen, taken));
    }
}

/// What the ticks of a second come to.
pub(crate) fn second(late: &mut [i64], waited_ns: i64, before: (u64, u64), after: (u64, u64)) -> Second {
    late.sort_unstable();
    let p99 = late.get(late.len() * 99 / 100).copied().unwrap_or(0);
    let length = (late.len().max(1) as i64 * TICK_NS) as f64;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{ON_THE_WHOLE, SECOND_BY_SECOND, STALLS};

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
        assert!(!stalled.is_disturbed(&STALLS) && Account(vec![of(0, 0), of(90, 980)]).is_disturbed(&STALLS));
        let mut seldom = vec![of(0, 0); 10];
        seldom[3] = of(40, 980);
        assert!(!Account(seldom).is_disturbed(&ON_THE_WHOLE));
        let stolen = Account(vec![second(&mut [0; TICKS], 0, (10, 100), (22, 300))]);
        assert!(stolen.is_disturbed(&SECOND_BY_SECOND) && stolen.is_disturbed(&ON_THE_WHOLE), "{stolen}");
        let waited = Account(vec![second(&mut [0; TICKS], 80_000_000, (0, 0), (0, 200))]);
        assert!(waited.is_disturbed(&SECOND_BY_SECOND) && !waited.is_disturbed(&ON_THE_WHOLE), "{waited}");
    }
}
