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

/// Days from 1970-01-01 to a day of the Gregorian calendar. Years begin with March, so that a leap day is a year's last (H. Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`). Months are from 1 to 12; a day beyond its month is one of the next.
pub fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month (1 to 12) and day (1 to 31) that are so many days after 1970-01-01: the way back of [`days`] (`civil_from_days`).
pub fn date(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let (era, day_of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day_of_year - (153 * shifted_month + 2) / 5 + 1)
}

/// `ns` as RFC 3339 in UTC with milliseconds, e.g. `2026-02-03T04:05:06.789Z`.
pub fn rfc3339(ns: i64) -> String {
    let (secs, sub) = (ns.div_euclid(1_000_000_000), ns.rem_euclid(1_000_000_000));
    let (days, day_secs) = (secs.div_euclid(86_400), secs.rem_euclid(86_400));
    let (year, month, day) = date(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        day_secs / 3_600,
        day_secs / 60 % 60,
        day_secs % 60,
        sub / 1_000_000
    )
}

/// Nanoseconds since the Unix epoch that RFC 3339 text says, e.g. `2026-02-03T04:05:06Z` or `2026-02-03T05:05:06.789+01:00`; nothing if it
/// is none.
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let is_marked = |at: usize, marks: &[u8]| text.as_bytes().get(at).is_some_and(|byte| marks.contains(byte));
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let is_of_form = is_marked(4, b"-") && is_marked(7, b"-") && is_marked(10, b"Tt ") && is_marked(13, b":");
    let is_time = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    if !is_of_form || !is_time {
        return None;
    }
    let rest = text.get(19..)?;
    let digits = rest.strip_prefix('.').map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    let sub = match digits {
        0 => 0,
        _ => format!("{:0<9}", rest.get(1..=digits)?).get(..9)?.parse::<i64>().ok()?,
    };
    let zone = rest.get(if digits > 0 { digits + 1 } else { 0 }..)?;
    let offset_min = match zone.as_bytes() {
        [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let minutes = zone.get(1..3)?.parse::<i64>().ok()? * 60 + zone.get(4..6)?.parse::<i64>().ok()?;
            if *sign == b'-' { -minutes } else { minutes }
        }
        _ => return None,
    };
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + (minute - offset_min) * 60 + second;
    seconds.checked_mul(1_000_000_000)?.checked_add(sub)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_as_it_was_written() {
        for ns in [0, 951_782_400_123_000_000, 1_767_225_599_999_000_000, 1_795_341_600_000_000_000, -1_000_000] {
            assert_eq!(parse_rfc3339(&rfc3339(ns)), Some(ns));
        }
        assert_eq!(parse_rfc3339("2000-02-29T02:00:00.1234567891+02:00"), Some(951_782_400_123_456_789));
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
