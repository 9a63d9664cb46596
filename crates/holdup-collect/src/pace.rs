//! How often to do a costly read, depending on its measured cost for the server. It does no reads
//! itself.

use std::time::{Duration, Instant};

/// A read that took T is not repeated before this many T: half a percent of one of the server's
/// cores.
const SHARE: u32 = 200;

/// For slowly changing data: a fifth of a percent.
const SLOW_SHARE: u32 = 500;

/// Number of reads whose shortest time counts, because a read on a stalled machine says nothing
/// about its cost.
const COUNTED: usize = 3;

/// The budget of one sample's costly reads. A read that does not fit waits for the next sample.
const ROOM: Duration = Duration::from_millis(40);

/// The assumed cost of a read that was never made.
const UNKNOWN: Duration = Duration::from_millis(20);

/// The time spent on costly reads in one sample.
#[derive(Debug, Default)]
pub(crate) struct Turn(Duration);

impl Turn {
    /// Adds the time of another read.
    pub(crate) fn take(&mut self, took: Duration) {
        self.0 += took;
    }
}

/// When one read is due again.
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
    /// At most once per `least`, and less often if it is costly.
    pub(crate) fn at_least(least: Duration) -> Self {
        Self { least, ..Self::default() }
    }

    /// The same for slowly changing data, which is read even less often.
    pub(crate) fn slow(least: Duration) -> Self {
        Self { share: SLOW_SHARE, ..Self::at_least(least) }
    }

    /// The beginning of the read, if it is due in this sample.
    pub(crate) fn due(&self, turn: &Turn) -> Option<Instant> {
        let expected = self.took.iter().min().copied().unwrap_or(UNKNOWN);
        let now = Instant::now();
        (self.next.is_none_or(|next| now >= next) && (turn.0.is_zero() || turn.0 + expected <= ROOM)).then_some(now)
    }

    /// Records a read that began at `begun`, and hands back its result. After a failure the pause follows from this read's
    /// time, not from the shortest of the last ones: it may have hit a time limit.
    pub(crate) fn read<T, E>(&mut self, turn: &mut Turn, begun: Instant, result: Result<T, E>) -> Result<T, E> {
        let took = begun.elapsed();
        turn.take(took);
        self.took.truncate(COUNTED - 1);
        self.took.insert(0, took);
        self.next = Some(begun + self.pause(result.is_err()));
        result
    }

    /// Makes the read due at the next sample.
    pub(crate) fn at_once(&mut self) {
        self.next = None;
    }

    /// From now on at most once per `least`.
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
    fn costly_reads_are_made_less_often() {
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
        assert!(costly.due(&turn).is_some(), "alone it has to be read at some time");
        turn.0 = 10 * MS;
        assert!(costly.due(&turn).is_none() && took(Duration::ZERO, &[30]).due(&turn).is_some());
        turn.0 = 25 * MS;
        assert!(Pace::default().due(&turn).is_none(), "what it costs is not known");
    }

    #[test]
    fn it_is_due_again_after_the_pause() {
        let (mut pace, mut turn) = (Pace::at_least(3_600_000 * MS), Turn::default());
        assert_eq!(pace.read(&mut turn, Instant::now(), Ok::<(), ()>(())), Ok(()));
        assert!(pace.due(&Turn::default()).is_none());
        pace.at_once();
        assert!(pace.due(&Turn::default()).is_some());
    }
}
