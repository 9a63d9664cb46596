//! When holdup retries something that failed. Each failure in a row doubles the pause up to a cap;
//! jitter keeps several holdups from retrying at the same moment. It makes no attempt itself.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Duration, Instant};

/// Pause after the first failure.
const FIRST: Duration = Duration::from_secs(1);

/// The first pause is at least this many times as long as the failed attempt: an attempt that runs
/// into a timeout costs the server that time.
const TIMES: u32 = 4;

/// Longest pause of a failing read.
const READ_PAUSE_MAX: Duration = Duration::from_secs(300);

/// One operation that may fail.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    next: Option<Instant>,
}

impl Backoff {
    /// Whether the next attempt may be made now.
    pub fn is_due(&self) -> bool {
        self.next.is_none_or(|next| Instant::now() >= next)
    }

    /// The attempt failed after `took`; the pause is at most `longest`, give or take the jitter.
    pub fn failed(&mut self, took: Duration, longest: Duration) {
        let pause = pause(self.failures, took, longest);
        self.failures = self.failures.saturating_add(1);
        // A random 75 to 125 % of the pause.
        let random = RandomState::new().hash_one(self.failures) % 512;
        self.next = Some(Instant::now() + pause * 3 / 4 + pause.mul_f64(random as f64 / 1024.0));
    }

    /// The attempt succeeded: the next failure counts as the first.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }
}

/// The pause after one more failure than `before`, without jitter.
fn pause(before: u32, took: Duration, longest: Duration) -> Duration {
    let factor = 1_u32.checked_shl(before).unwrap_or(u32::MAX).max(1);
    FIRST.max(took.saturating_mul(TIMES)).saturating_mul(factor).min(longest)
}

/// The reads of one source, each with its own pause, so that one failing read does not block the
/// others.
#[derive(Debug, Default)]
pub(crate) struct Backoffs(HashMap<&'static str, (Backoff, String)>);

impl Backoffs {
    /// Whether `part` may be read now; if not, the text of its last failure.
    pub fn ask(&self, part: &str) -> Result<(), &str> {
        match self.0.get(part) {
            Some((backoff, words)) if !backoff.is_due() => Err(words),
            _ => Ok(()),
        }
    }

    /// Records that reading `part` took `took`; `failure` says why it failed, if it did.
    pub fn note(&mut self, part: &'static str, took: Duration, failure: Option<String>) {
        match failure {
            None => drop(self.0.remove(part)),
            Some(words) => {
                let (backoff, last) = self.0.entry(part).or_default();
                backoff.failed(took, READ_PAUSE_MAX);
                *last = words;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn pauses_double_up_to_the_cap() {
        let of = |before| pause(before, Duration::ZERO, 60 * SECOND).as_secs();
        assert_eq!([0, 1, 2, 5, 6, 31, 32, u32::MAX].map(of), [1, 2, 4, 32, 60, 60, 60, 60]);
        assert_eq!(pause(1, 2 * SECOND, 300 * SECOND), 16 * SECOND, "a read that ran into its time-out");
    }

    #[test]
    fn one_read_that_fails_keeps_no_other_from_being_made() {
        let mut reads = Backoffs::default();
        reads.note("a", 100 * SECOND, Some("too slow".to_owned()));
        assert_eq!((reads.ask("a"), reads.ask("b")), (Err("too slow"), Ok(())));
        reads.note("a", Duration::ZERO, None);
        assert_eq!(reads.ask("a"), Ok(()));
    }
}
