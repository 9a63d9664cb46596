//! Attempts beside a witness: which of them count, how many are made, and what is said if none could be judged.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::time::{Duration, Instant};

use crate::account::{Account, Limits};
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

    fn tries(&self, attempt: impl FnMut(usize) -> Result<(), String>) -> Came {
        self.tries_beside(attempt, |run| {
            let witness = Witness::start();
            let result = run();
            (result, witness.finish())
        })
    }

    /// As [`Self::tries`], with `watch` for what the machine was like while an attempt ran.
    fn tries_beside(
        &self,
        mut attempt: impl FnMut(usize) -> Result<(), String>,
        watch: impl Fn(&mut dyn FnMut() -> Attempt) -> (Attempt, Account),
    ) -> Came {
        let (begun, mut longest, mut said) = (Instant::now(), Duration::ZERO, Vec::new());
        let mut quiet = 0;
        for number in 0..self.attempts.max(1) {
            let is_long = number > 1 && begun.elapsed() + longest > self.within;
            if is_long {
                break;
            }
            let from = Instant::now();
            let (result, account) = watch(&mut || catch_unwind(AssertUnwindSafe(|| attempt(number))));
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

/// What an attempt returned, or its panic.
type Attempt = std::thread::Result<Result<(), String>>;

/// What became of the attempts.
enum Came {
    Held,
    Failed(Box<dyn Any + Send>),
    Undecided(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::Second;

    /// Seconds as they are given here, not as this machine happens to be.
    const QUIET: Second = Second { late_p99_ms: 0.1, waited_ratio: 0.0, stolen_ratio: 0.0 };
    const STALLED: Second = Second { late_p99_ms: 500.0, waited_ratio: 0.9, stolen_ratio: 0.5 };

    fn came(second: Second, misses: usize, attempt: impl FnMut(usize) -> Result<(), String>) -> Came {
        let patience = Patience { limits: crate::STALLS, misses, attempts: 4, within: Duration::from_secs(60) };
        patience.tries_beside(attempt, |run| (run(), Account(vec![second])))
    }

    #[test]
    fn a_miss_on_a_quiet_machine_is_a_failure_and_another_is_none() {
        let judged = |second: Second, misses: usize| {
            let mut made = 0;
            let came = came(second, misses, |_| {
                made += 1;
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
        let failed = came(STALLED, 3, |_| {
            made += 1;
            certain("no such column")
        });
        assert!(matches!(failed, Came::Failed(_)) && made == 1);
        let Came::Undecided(why) = came(STALLED, 1, |_| panic!("five is\nnot {}", 4)) else { panic!() };
        assert!(why.contains("five is not 4"), "{why}");
    }

    #[test]
    fn so_is_a_panic_and_its_words_are_kept() {
        let Came::Failed(why) = came(QUIET, 3, |_| panic_any("five is not four")) else { panic!() };
        assert_eq!(why.downcast_ref(), Some(&"five is not four"));
        let mut made = 0;
        let held = came(STALLED, 1, |number| {
            made += 1;
            if number < 2 { panic_any("once more") } else { Ok(()) }
        });
        assert!(matches!(held, Came::Held) && made == 3, "{made}");
    }

    #[test]
    #[crate::judged]
    fn the_attribute_runs_a_body_once_if_it_holds() {
        static RUNS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        assert_eq!(RUNS.fetch_add(1, std::sync::atomic::Ordering::Relaxed), 0);
    }
}
