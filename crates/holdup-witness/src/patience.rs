//! Attempts beside a witness: which of them count, how many are made, and what is said if none could be judged.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::time::{Duration, Instant};

use crate::account::Limits;
use crate::machine::Witness;

/// How often something is tried before it is judged.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// What disturbs an attempt.
    pub limits: Limits,
    /// So many attempts that missed on a quiet machine are a failure; of panics one is enough.
    pub misses: usize,
    /// Attempts in all.
    pub attempts: usize,
    /// No attempt but the first two is begun that would not end within this.
    pub within: Duration,
}

/// Of a whole test: what takes longer than half a minute is tried twice.
const ORDINARY: Patience = Patience { limits: crate::STALLS, misses: 1, attempts: 4, within: Duration::from_secs(60) };

/// Runs a test's `body` as attempts, where it panics if it missed; `#[judged]` calls it.
///
/// # Panics
/// If an attempt missed on a quiet machine.
pub fn judge(test: &str, limits: &Limits, mut body: impl FnMut()) {
    let patience = Patience { limits: *limits, ..ORDINARY };
    patience.end(
        test,
        patience.tries(|_| {
            body();
            Ok(())
        }),
    );
}

/// What was certain.
struct Certain;

/// Fails a test for what no stall can make, such as a file of the wrong form: no attempt is made again, whatever the machine did.
///
/// # Panics
/// Always.
pub fn certain(why: &str) -> ! {
    eprintln!("{why}");
    panic_any(Certain)
}

/// The first words of a panic, for who reads why nothing could be judged.
fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or_default().chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect()
}

impl Patience {
    /// Makes attempts until one holds, or enough of them missed on a quiet machine. An attempt that panics has missed as well.
    /// Where the machine allowed no judgement the test fails as undecided.
    ///
    /// # Panics
    /// If attempts missed, on a quiet machine or not.
    pub fn judge(&self, attempt: impl FnMut(usize) -> Result<(), String>) {
        let test = std::thread::current().name().unwrap_or("a test").to_owned();
        self.end(&test, self.tries(attempt));
    }

    fn end(&self, test: &str, came: Came) {
        match came {
            Came::Held => {}
            Came::Failed(why) => resume_unwind(why),
            Came::Undecided(why) => {
                // `cargo xtask ci` tells it from a failure by this word, and allows a few.
                eprintln!("undecided: {test}: {why}");
                resume_unwind(Box::new(why))
            }
        }
    }

    fn tries(&self, mut attempt: impl FnMut(usize) -> Result<(), String>) -> Came {
        let (begun, mut longest, mut said) = (Instant::now(), Duration::ZERO, Vec::new());
        let mut quiet = 0;
        for number in 0..self.attempts.max(1) {
            let is_long = number > 1 && begun.elapsed() + longest > self.within;
            if is_long {
                break;
            }
            let (from, witness) = (Instant::now(), Witness::start());
            let result = catch_unwind(AssertUnwindSafe(|| attempt(number)));
            let account = witness.finish();
            longest = longest.max(from.elapsed());
            let is_disturbed = account.is_disturbed(&self.limits);
            let miss: Box<dyn Any + Send> = match result {
                Ok(Ok(())) => return Came::Held,
                Ok(Err(miss)) => {
                    eprintln!("attempt {number} missed; {account}: {miss}");
                    quiet += usize::from(!is_disturbed);
                    Box::new(miss)
                }
                Err(panic) if panic.is::<Certain>() => return Came::Failed(panic),
                Err(panic) => {
                    eprintln!("attempt {number} missed; {account}");
                    quiet += if is_disturbed { 0 } else { self.misses };
                    panic
                }
            };
            if quiet >= self.misses {
                eprintln!("that was on a quiet machine");
                return Came::Failed(miss);
            }
            let how = if is_disturbed { "disturbed" } else { "quiet, and missed" };
            said.push(format!("{how}: {account}: {}", words(miss.as_ref())));
        }
        Came::Undecided(format!("the machine stalled in too many attempts:\n  {}", said.join("\n  ")))
    }
}

/// What became of the attempts.
enum Came {
    Held,
    Failed(Box<dyn Any + Send>),
    Undecided(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No machine is later than the first, and every one is later than the second.
    const QUIET: f64 = 1e9;
    const STALLED: f64 = -1.0;

    fn patience(late_p99_ms: f64, misses: usize) -> Patience {
        let limits = Limits { late_p99_ms, waited_ratio: 1e9, stolen_ratio: 1e9, seconds_ratio: 0.0 };
        Patience { limits, misses, attempts: 4, within: Duration::from_secs(60) }
    }

    #[test]
    fn a_miss_on_a_quiet_machine_is_a_failure_and_another_is_none() {
        let judged = |limit: f64, misses: usize| {
            let mut made = 0;
            let came = patience(limit, misses).tries(|_| {
                made += 1;
                std::thread::sleep(Duration::from_millis(20));
                Err("missed".to_owned())
            });
            (matches!(came, Came::Failed(_)), matches!(came, Came::Undecided(_)), made)
        };
        assert_eq!(judged(QUIET, 3), (true, false, 3));
        assert_eq!(judged(STALLED, 1), (false, true, 4));
    }

    #[test]
    fn what_is_certain_is_a_failure_on_any_machine() {
        let mut made = 0;
        let came = patience(STALLED, 3).tries(|_| {
            made += 1;
            certain("no such column")
        });
        assert!(matches!(came, Came::Failed(_)) && made == 1);
        // An attempt that is over at once leaves no reading of the machine, and so counts as made on a quiet one.
        let came = patience(STALLED, 1).tries(|_| {
            std::thread::sleep(Duration::from_millis(20));
            panic!("five is\nnot {}", 4)
        });
        let Came::Undecided(why) = came else { panic!() };
        assert!(why.contains("five is not 4"), "{why}");
    }

    #[test]
    fn so_is_a_panic_and_its_words_are_kept() {
        let came = patience(QUIET, 3).tries(|_| std::panic::panic_any("five is not four"));
        let Came::Failed(why) = came else { unreachable!("it was quiet") };
        assert_eq!(why.downcast_ref(), Some(&"five is not four"));
        let mut made = 0;
        let came = patience(STALLED, 1).tries(|number| {
            made += 1;
            if number < 2 { std::panic::panic_any("once more") } else { Ok(()) }
        });
        assert!(matches!(came, Came::Held) && made == 3, "{made}");
    }

    #[test]
    #[crate::judged]
    fn the_attribute_runs_a_body_once_if_it_holds() {
        static RUNS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        assert_eq!(RUNS.fetch_add(1, std::sync::atomic::Ordering::Relaxed), 0);
    }
}
