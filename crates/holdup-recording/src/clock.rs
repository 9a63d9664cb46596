//! Time as the recording keeps it: integer nanoseconds since the Unix epoch.
//!
//! The wall clock is read once a process; from there on the monotonic clock counts. A wall clock that is set while we record
//! (NTP's first step, a person, a machine that was moved) would put samples in another order than they were taken in, and
//! make leaps of counters that never leapt. So all times of one recording are of one even clock, off by whatever the wall
//! clock was off when it began.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Now, in nanoseconds since the Unix epoch. Never goes back within a process.
pub fn now_ns() -> i64 {
    static BEGAN: Began = Began::new();
    even_ns(&BEGAN, wall_ns)
}

/// What the wall clock said at one moment.
type Began = OnceLock<(i64, Instant)>;

fn even_ns(began: &Began, wall_ns: impl FnOnce() -> i64) -> i64 {
    let (then_ns, instant) = began.get_or_init(|| (wall_ns(), Instant::now()));
    then_ns.saturating_add(i64::try_from(instant.elapsed().as_nanos()).unwrap_or(i64::MAX))
}

/// What the wall clock says, in nanoseconds since the Unix epoch (0 if it stands before 1970). It may go back; times that are kept
/// are of [`now_ns`].
pub fn wall_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
}

/// `ns` as RFC 3339 in UTC with milliseconds, e.g. `2026-02-03T04:05:06.789Z`.
///
/// Civil-from-days after Howard Hinnant's "chrono-Compatible Low-Level Date Algorithms".
pub fn rfc3339(ns: i64) -> String {
    let (secs, sub) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
    let (days, day_secs) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        day_secs / 3_600,
        day_secs / 60 % 60,
        day_secs % 60,
        sub / 1_000_000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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
