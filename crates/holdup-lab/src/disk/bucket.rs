//! Computes how long a request must wait so that bytes and requests per second keep to their
//! limits, reads and writes together. Pure: the caller passes the time, and nothing here waits.

use std::time::Duration;

use crate::disk::limits::Limits;

/// How much of a rate may be used at once after an idle time. It is small, so that each second of
/// the disk looks like any other. It is not zero, so that a timer that wakes late does not lower
/// the rate.
pub const BURST: Duration = Duration::from_millis(75);

/// One bucket for all requests of a disk. It stores when each of the two rates is free again (the
/// generic cell rate algorithm, ITU-T I.371), so no timer has to fill it.
#[derive(Debug, Default)]
pub struct Bucket {
    bytes_free_at_ns: u64,
    requests_free_at_ns: u64,
}

impl Bucket {
    /// Takes a request of `bytes` at `now_ns` and returns when it may be answered: `now_ns` or
    /// later.
    ///
    /// A request larger than the burst passes, and waits for as long as its bytes take.
    pub fn take(&mut self, limits: &Limits, bytes: u64, now_ns: u64) -> u64 {
        let by_bytes = spend(&mut self.bytes_free_at_ns, cost_ns(bytes, limits.bytes_per_second), now_ns);
        let by_count = spend(&mut self.requests_free_at_ns, cost_ns(1, limits.iops), now_ns);
        by_bytes.max(by_count)
    }
}

fn spend(free_at_ns: &mut u64, cost_ns: u64, now_ns: u64) -> u64 {
    let burst_ns = u64::try_from(BURST.as_nanos()).unwrap_or(u64::MAX);
    // Unused time counts up to the burst; older time is lost.
    *free_at_ns = (*free_at_ns).max(now_ns.saturating_sub(burst_ns)).saturating_add(cost_ns);
    (*free_at_ns).max(now_ns)
}

/// How long `amount` takes at `per_second`; zero without a limit.
fn cost_ns(amount: u64, per_second: Option<u64>) -> u64 {
    let Some(rate) = per_second else { return 0 };
    u64::try_from(u128::from(amount) * 1_000_000_000 / u128::from(rate.max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Answers requests one after the other, as a disk does; returns the time of the last answer.
    fn serve(bucket: &mut Bucket, limits: &Limits, bytes: u64, count: u64, from_ns: u64) -> u64 {
        (0..count).fold(from_ns, |now, _| bucket.take(limits, bytes, now))
    }

    fn limits(bytes_per_second: Option<u64>, iops: Option<u64>) -> Limits {
        Limits { bytes_per_second, iops, latency_us: None }
    }

    #[test]
    fn the_scarcer_of_the_two_rates_rules() {
        let both = limits(Some(1_000_000), Some(200));
        let small = serve(&mut Bucket::default(), &both, 512, 2_000, SECOND) - SECOND;
        assert!((9_900_000_000..=10_000_000_000).contains(&small), "200 a second: {small}");
        let large = serve(&mut Bucket::default(), &both, 100_000, 100, SECOND) - SECOND;
        assert!((9_900_000_000..=10_000_000_000).contains(&large), "1 MB a second: {large}");
    }

    #[test]
    fn idle_time_is_worth_no_more_than_the_burst() {
        let limits = limits(None, Some(100));
        let mut bucket = Bucket::default();
        let begin = 3_600 * SECOND;
        let free = (0..100).take_while(|_| bucket.take(&limits, 1, begin) == begin).count();
        assert_eq!(free, 7, "75 ms of 100 a second, after an hour");
        // The rate holds from then on, whatever was idle before.
        assert_eq!(bucket.take(&limits, 1, begin), begin + 15_000_000);
    }

    #[test]
    fn a_late_wake_up_does_not_lower_the_rate() {
        let limits = limits(None, Some(1_000));
        let mut bucket = Bucket::default();
        let mut now = SECOND;
        for _ in 0..10_000 {
            // Each answer is given 0.3 ms late.
            now = bucket.take(&limits, 1, now) + 300_000;
        }
        let took = now - SECOND;
        assert!((9_900_000_000..10_010_000_000).contains(&took), "{took}");
    }

    #[test]
    fn without_a_limit_nothing_waits_and_a_large_request_always_gets_through() {
        let mut bucket = Bucket::default();
        assert_eq!(serve(&mut bucket, &limits(None, None), 1 << 40, 1_000, 5), 5);
        let answered = bucket.take(&limits(Some(1_000), None), 1_000_000, SECOND);
        assert!(answered > 900 * SECOND);
    }

    #[test]
    fn a_new_limit_holds_from_the_next_request_on() {
        let mut bucket = Bucket::default();
        let slow = serve(&mut bucket, &limits(None, Some(10)), 1, 11, SECOND);
        let fast = serve(&mut bucket, &limits(None, Some(1_000)), 1, 100, slow) - slow;
        assert!(fast <= SECOND / 10, "{fast}");
    }
}
