//! How often something costly is read, by what it was found to cost the server. It reads nothing itself.

use std::time::{Duration, Instant};

/// What took T is not read again before this many T: half a percent of one of the server's cores.
const SHARE: u32 = 200;

/// Of what changes slowly: a fifth of a percent.
const SLOW_SHARE: u32 = 500;

/// Reads whose time counts: the shortest of them, because a stalled machine says nothing of a read's cost.
const COUNTED: usize = 3;

/// What the costly reads of one sample may take together. What finds no room has the next sample.
const ROOM: Duration = Duration::from_millis(40);

/// What a read is taken to cost that has not been made yet.
const UNKNOWN: Duration = Duration::from_millis(20);

/// What the costly reads of one sample have taken so far.
#[derive(Debug, Default)]
pub(crate) struct Turn(Duration);

impl Turn {
    /// Something else has taken so long.
    pub(crate) fn take(&mut self, took: Duration) {
        self.0 += took;
    }
}

/// When one thing is read next.
#[derive(Debug)]
pub(crate) struct Pace {
    least: Duration,
    share: u32,
    took: Vec<Duration>,
    next: Option<Instant>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { least: Duration::ZERO, share: SHARE, took: Vec::new(), next: None }
    }
}

impl Pace {
    /// At most once in `least`, and less often if it is costly.
    pub(crate) fn at_least(least: Duration) -> Self {
        Self { least, ..Self::default() }
    }

    /// The same of what changes slowly, so that it may be rarer still.
    pub(crate) fn slow(least: Duration) -> Self {
        Self { share: SLOW_SHARE, ..Self::at_least(least) }
    }

    /// Whether it is to be read in this sample.
    pub(crate) fn is_due(&self, turn: &Turn) -> bool {
        let expected = self.took.iter().min().copied().unwrap_or(UNKNOWN);
        self.next.is_none_or(|next| Instant::now() >= next) && (turn.0.is_zero() || turn.0 + expected <= ROOM)
    }

    /// It was read, and began at `begun`. After a failure its own time counts, whatever others took: it may have been the limit.
    pub(crate) fn read<T, E>(&mut self, turn: &mut Turn, begun: Instant, result: &Result<T, E>) {
        let took = begun.elapsed();
        turn.take(took);
        self.took.truncate(COUNTED - 1);
        self.took.insert(0, took);
        self.next = Some(begun + self.pause(result.is_err()));
    }

    /// It is to be read at the next sample again.
    pub(crate) fn at_once(&mut self) {
        self.next = None;
    }

    /// From now on at most once in `least`.
    pub(crate) fn slow_down(&mut self, least: Duration) {
        self.least = least;
    }

    fn pause(&self, has_failed: bool) -> Duration {
        let counted = if has_failed { self.took.first() } else { self.took.iter().min() };
        counted.map_or(self.least, |took| (*took * self.share).max(self.least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn took(least: Duration, times: &[u32]) -> Pace {
        Pace { took: times.iter().map(|ms| MS * *ms).collect(), ..Pace::at_least(least) }
    }

    #[test]
    fn what_is_costly_is_read_less_often() {
        assert_eq!(took(10 * 1000 * MS, &[5]).pause(false), 10 * 1000 * MS);
        assert_eq!(took(10 * 1000 * MS, &[90, 80, 2000]).pause(false), 16_000 * MS, "a stall is not its cost");
        assert_eq!(took(Duration::ZERO, &[2000, 1, 1]).pause(true), 400_000 * MS, "a limit that was reached is");
        assert_eq!(Pace::at_least(MS).pause(false), MS);
        assert_eq!(Pace { share: SLOW_SHARE, ..took(MS, &[50]) }.pause(false), 25_000 * MS);
    }

    #[test]
    fn one_sample_does_not_bear_all() {
        let mut turn = Turn::default();
        let costly = took(Duration::ZERO, &[60]);
        assert!(costly.is_due(&turn), "alone it has to be read at some time");
        turn.0 = 10 * MS;
        assert!(!costly.is_due(&turn) && took(Duration::ZERO, &[30]).is_due(&turn));
        turn.0 = 25 * MS;
        assert!(!Pace::default().is_due(&turn), "what it costs is not known");
    }

    #[test]
    fn it_is_due_again_after_the_pause() {
        let (mut pace, mut turn) = (Pace::at_least(3_600_000 * MS), Turn::default());
        pace.read(&mut turn, Instant::now(), &Ok::<(), ()>(()));
        assert!(!pace.is_due(&Turn::default()));
        pace.at_once();
        assert!(pace.is_due(&Turn::default()));
    }
}
