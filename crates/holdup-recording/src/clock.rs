//! Time in recordings: integer nanoseconds since the Unix epoch.
//!
//! The wall clock is read once per process; after that the monotonic clock counts. A wall clock that
//! is set during a recording (NTP's first step, a person, a migrated machine) would reorder samples
//! and make counters seem to jump. So one recording has one even clock, which keeps the error that the
//! wall clock had at the start.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use jiff::{SignedDuration, Timestamp};

/// Now, in nanoseconds since the Unix epoch. Never goes back within a process.
pub fn now_ns() -> i64 {
    static BEGAN: Began = Began::new();
    even_ns(&BEGAN, wall_ns)
}

/// The wall clock at the first read.
type Began = OnceLock<(i64, Instant)>;

fn even_ns(began: &Began, wall_ns: impl FnOnce() -> i64) -> i64 {
    let (then_ns, instant) = began.get_or_init(|| (wall_ns(), Instant::now()));
    then_ns.saturating_add(i64::try_from(instant.elapsed().as_nanos()).unwrap_or(i64::MAX))
}

/// The wall clock in nanoseconds since the Unix epoch (0 before 1970). It may go back; recorded
/// times come from [`now_ns`].
pub fn wall_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
}

/// `ns` as RFC 3339 in UTC with milliseconds, e.g. `2026-02-03T04:05:06.789Z`.
pub fn rfc3339(ns: i64) -> String {
    format!("{:.3}", Timestamp::UNIX_EPOCH + SignedDuration::from_nanos(ns))
}

/// Parses a time with its time zone, e.g. `2026-02-03T04:05:06Z` or `2026-02-03 05:05:06.789+0100`,
/// to nanoseconds since the Unix epoch. `None` for any other text and outside the years 1677 to
/// 2262.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    let moment: Timestamp = text.parse().ok()?;
    i64::try_from(moment.as_nanosecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_as_it_was_written() {
        for ns in [0, 951_782_400_123_000_000, 1_767_225_599_999_000_000, 1_795_341_600_000_000_000, -1_000_000] {
            assert_eq!(parse_rfc3339(&rfc3339(ns)), Some(ns));
        }
        assert_eq!(parse_rfc3339("2000-02-29T02:00:00.123456789+02:00"), Some(951_782_400_123_456_789));
        assert_eq!(parse_rfc3339("1970-01-01T00:00:00-00:01"), Some(60_000_000_000));
        for wrong in [
            "",
            "1970-01-01",
            "1970-13-01T00:00:00Z",
            "1970-01-01T00:00:00",
            "1970-01-01T0+:00:00Z",
            "9999-12-31T00:00:00Z",
            "1970-01-01T00:00:00+\u{e9}:00",
        ] {
            assert_eq!(parse_rfc3339(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_wall_clock_that_is_set_moves_no_time() {
        let began = Began::new();
        let first = even_ns(&began, || 1_000_000_000_000);
        let later = [even_ns(&began, || 0), even_ns(&began, || 9_000_000_000_000), even_ns(&began, || 5)];
        let even = later.iter().scan(first, |last, now| Some(*now >= std::mem::replace(last, *now)));
        assert!(even.into_iter().all(|is_even| is_even), "{first}, {later:?}");
        assert!(later[2] - first < 60_000_000_000, "{first}, {later:?}");
    }

    #[test]
    fn now_is_near_the_wall_clock() {
        assert!((wall_ns() - now_ns()).abs() < 60_000_000_000);
    }

    #[test]
    fn civil_dates() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_400_123_000_000), "2000-02-29T00:00:00.123Z");
        assert_eq!(rfc3339(1_767_225_599_999_999_999), "2025-12-31T23:59:59.999Z");
    }
}
