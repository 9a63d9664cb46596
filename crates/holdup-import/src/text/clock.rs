//! Time stamps in pasted output. A stamp without an offset is read as UTC: all of one paste share
//! their zone, so what lies between them is right.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::Offset;
use regex::{Captures, Regex};
use std::sync::OnceLock;

const SECOND_NS: i64 = 1_000_000_000;

/// Nanoseconds of a day.
pub(super) const DAY_NS: i64 = 86_400 * SECOND_NS;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

struct Patterns {
    iso: Regex,
    slashes: Regex,
    date: Regex,
    epoch: Regex,
}

fn patterns() -> Option<&'static Patterns> {
    static ALL: OnceLock<Option<Patterns>> = OnceLock::new();
    let make = || {
        let time = r"(?P<h>\d{1,2}):(?P<m>\d{2}):(?P<s>\d{2})(?:[.,](?P<f>\d{1,9}))?(?P<p> ?[AaPp][Mm])?";
        let iso = format!(
            r"^\[?(?P<y>\d{{4}})[-/](?P<mo>\d{{2}})[-/](?P<d>\d{{2}})(?:T| {{1,2}}){time}\s?(?P<z>Z|UTC|[+-]\d{{2}}(?::?\d{{2}})?)?\]?(?:\s+|$)"
        );
        let slashes = format!(r"^(?P<a>\d{{2}})(?P<sep>[/.])(?P<b>\d{{2}})[/.](?P<y>\d{{2,4}}) {time}$");
        let date = format!(
            r"^(?:zzz \*+)?\w{{2,9}}\.?,? +(?:(?P<mo>[A-Za-z]{{3}}) +(?P<d>\d{{1,2}})|(?P<d2>\d{{1,2}})\.? (?P<mo2>[A-Za-z]{{3}})\w*),? (?:(?P<y>\d{{4}}),? )?{time}(?: +[A-Z+-][\w:+-]*)?(?: (?P<y2>\d{{4}}))?$"
        );
        Some(Patterns {
            iso: Regex::new(&iso).ok()?,
            slashes: Regex::new(&slashes).ok()?,
            date: Regex::new(&date).ok()?,
            epoch: Regex::new(r"^TS (?P<s>\d{9,10})(?:\.(?P<f>\d{1,9}))?(?:\s.*)?$").ok()?,
        })
    };
    ALL.get_or_init(make).as_ref()
}

/// A leading time stamp, nanoseconds since the epoch, and the text after it.
pub(super) fn leading(text: &str) -> (Option<i64>, &str) {
    if text.len() < 8 || !text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[') {
        return (None, text);
    }
    let head: &[u8] = text.as_bytes().get(..64).unwrap_or(text.as_bytes());
    if head.iter().filter(|byte| **byte == b':').count() < 2 && !text.starts_with("TS ") {
        return (None, text);
    }
    match find(text) {
        Some((at, rest)) => (Some(at), rest),
        None => (None, text),
    }
}

fn find(text: &str) -> Option<(i64, &str)> {
    let patterns = patterns()?;
    if let Some(found) = patterns.iso.captures(text) {
        let date = date(part(&found, "y")?, part(&found, "mo")?, part(&found, "d")?)?;
        let at = moment(date, &found)?.checked_sub(offset_ns(found.name("z").map(|z| z.as_str())))?;
        return Some((at, text.get(found.get(0)?.end()..)?));
    }
    if let Some(found) = patterns.slashes.captures(text) {
        let year = part(&found, "y")?;
        let year = if year < 100 { 2000 + year } else { year };
        let (a, b) = (part(&found, "a")?, part(&found, "b")?);
        let (month, day) = if found.name("sep")?.as_str() == "." || a > 12 { (b, a) } else { (a, b) };
        return Some((moment(date(year, month, day)?, &found)?, ""));
    }
    if let Some(found) = patterns.date.captures(text) {
        let name = found.name("mo").or(found.name("mo2"))?.as_str().to_ascii_lowercase();
        let month = 1 + i64::try_from(MONTHS.iter().position(|month| *month == name)?).ok()?;
        let year = part(&found, "y").or_else(|| part(&found, "y2"))?;
        let day = part(&found, "d").or_else(|| part(&found, "d2"))?;
        return Some((moment(date(year, month, day)?, &found)?, ""));
    }
    let found = patterns.epoch.captures(text)?;
    let seconds = part(&found, "s")?;
    Some((seconds.checked_mul(SECOND_NS)?.checked_add(fraction_ns(&found))?, ""))
}

/// The time of `Thu, 26 Nov 2026 10:11:12 +0100`.
pub(super) fn with_offset(text: &str) -> Option<i64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, day, month, year, time, zone] = words.as_slice() else { return None };
    let month = 1 + i64::try_from(MONTHS.iter().position(|known| month.eq_ignore_ascii_case(known))?).ok()?;
    let midnight = midnight(date(year.parse().ok()?, month, day.parse().ok()?)?)?;
    midnight.checked_add(time_of_day(time, None)?)?.checked_sub(offset_ns(Some(zone)))
}

/// The latest time at or before a day after `now` that is on this day, given without its year.
pub(super) fn without_year(month: &str, day: &str, time: &str, now: i64) -> Option<i64> {
    let month = 1 + i64::try_from(MONTHS.iter().position(|known| month.eq_ignore_ascii_case(known))?).ok()?;
    let day = day.parse().ok()?;
    let (whole, fraction) = time.split_once('.').unwrap_or((time, ""));
    let fraction_ns = if fraction.is_empty() { 0 } else { format!("{fraction:0<9}").get(..9)?.parse().ok()? };
    let of_day = time_of_day(whole, None)?.checked_add(fraction_ns)?;
    let year = i64::from(Offset::UTC.to_datetime(jiff::Timestamp::from_nanosecond(now.into()).ok()?).year());
    let at = |year: i64| midnight(date(year, month, day)?)?.checked_add(of_day);
    // A log may have a day that the year before had not.
    let candidates = [year + 1, year, year - 1].into_iter().filter_map(at);
    candidates.into_iter().find(|at| *at <= now.saturating_add(DAY_NS))
}

/// The time at the start of a journal's line, which has no year: `Nov 26 10:11:12 db1 mysqld[812]: …`.
pub(super) fn of_journal(line: &str, now: i64) -> Option<i64> {
    let mut words = line.split_whitespace();
    let (month, day, time) = (words.next()?, words.next()?, words.next()?);
    (time.matches(':').count() == 2).then(|| without_year(month, day, time, now)).flatten()
}

fn part(found: &Captures<'_>, name: &str) -> Option<i64> {
    found.name(name)?.as_str().parse().ok()
}

fn fraction_ns(found: &Captures<'_>) -> i64 {
    found.name("f").map_or(0, |digits| format!("{:0<9}", digits.as_str()).parse().unwrap_or(0))
}

/// A date of the calendar.
pub(super) fn date(year: i64, month: i64, day: i64) -> Option<Date> {
    Date::new(i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// The first nanosecond of a date.
pub(super) fn midnight(date: Date) -> Option<i64> {
    let at = Offset::UTC.to_timestamp(DateTime::from_parts(date, Time::midnight())).ok()?;
    // Others are digits that look like a date.
    let is_usual = (1990..2200).contains(&date.year());
    i64::try_from(at.as_nanosecond()).ok().filter(|_| is_usual)
}

fn moment(date: Date, found: &Captures<'_>) -> Option<i64> {
    let mut hour = part(found, "h")?;
    if let Some(half) = found.name("p") {
        hour = of_twelve(hour, half.as_str());
    }
    let seconds = (hour * 60 + part(found, "m")?) * 60 + part(found, "s")?;
    midnight(date)?.checked_add(seconds * SECOND_NS + fraction_ns(found))
}

fn of_twelve(hour: i64, half: &str) -> i64 {
    hour % 12 + if half.trim().starts_with(['p', 'P']) { 12 } else { 0 }
}

fn offset_ns(zone: Option<&str>) -> i64 {
    let Some((sign, digits)) = zone.and_then(|zone| zone.split_at_checked(1)) else { return 0 };
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    // PostgreSQL leaves minutes out.
    let Some((hours, minutes)) = digits.split_at_checked(2) else { return 0 };
    let minutes = hours.parse::<i64>().unwrap_or(0) * 60 + minutes.parse::<i64>().unwrap_or(0);
    minutes * 60 * SECOND_NS * if sign == "-" { -1 } else { 1 }
}

/// Nanoseconds since midnight of `10:11:12`, `10:11`, `3:04pm`; `half` is a separate `AM` or `PM`.
pub(super) fn time_of_day(text: &str, half: Option<&str>) -> Option<i64> {
    let text = text.trim_end_matches(',');
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, own) = text.split_at(end);
    let half = half.filter(|half| is_half(half)).or(Some(own).filter(|own| is_half(own)));
    if !own.is_empty() && half.is_none() {
        return None;
    }
    let mut parts = digits.split(':').map(|part| part.parse::<i64>().ok().filter(|_| part.len() <= 2));
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = parts.next().unwrap_or(Some(0))?;
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let hour = half.map_or(hour, |half| of_twelve(hour, half));
    Some(((hour * 60 + minute) * 60 + second) * SECOND_NS)
}

/// Whether a word is the half of a day.
pub(super) fn is_half(word: &str) -> bool {
    word.eq_ignore_ascii_case("AM") || word.eq_ignore_ascii_case("PM")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_of_many_tools() {
        let at = 1_795_687_872 * SECOND_NS;
        for text in [
            "2026-11-26T10:11:12Z",
            "2026-11-26 10:11:12",
            // MySQL leaves a blank for the first digit of an hour.
            "2026-11-26  10:11:12",
            "[2026-11-26 12:11:12+02:00]",
            "2026-11-26T05:11:12-0500",
            "2026-11-26 15:11:12+05",
            "11/26/2026 10:11:12 AM",
            "26/11/2026 10:11:12",
            "26.11.2026 10:11:12",
            "Thu Nov 26 10:11:12 UTC 2026",
            "Thu 26 Nov 2026 10:11:12 AM CET",
            "Thu Nov 26 10:11:12 AM CET 2026",
            "Do 26. Nov 10:11:12 CET 2026",
            "zzz ***Thu Nov 26 10:11:12 EST 2026",
            "TS 1795687872.000 2026-11-26 10:11:12",
        ] {
            assert_eq!(leading(text), (Some(at), ""), "{text}");
        }
        assert_eq!(leading("2026-11-26 10:11:12.5 procs r b"), (Some(at + SECOND_NS / 2), "procs r b"));
        assert_eq!(leading("sda 10:11:12"), (None, "sda 10:11:12"));
        assert_eq!(leading("2026-13-26 10:11:12").0, None);
    }

    #[test]
    fn a_time_with_its_offset() {
        let at = Some(1_795_687_872 * SECOND_NS);
        assert_eq!(with_offset("Thu, 26 Nov 2026 10:11:12 +0000"), at);
        assert_eq!(with_offset("Thu, 26 Nov 2026 11:11:12 +0100"), at);
        assert_eq!(with_offset("Thu, 26 Nov 2026 10:11:12"), None);
    }

    #[test]
    fn times_of_day() {
        let s = |hours: i64, rest: i64| Some((hours * 3600 + rest) * SECOND_NS);
        assert_eq!(time_of_day("10:11:12", None), s(10, 672));
        assert_eq!(time_of_day("03:04:05", Some("PM")), s(15, 245));
        assert_eq!(time_of_day("12:00am", None), s(0, 0));
        assert_eq!(time_of_day("3:04", None), s(3, 240));
        assert_eq!(
            (time_of_day("25:00", None), time_of_day("x", None), time_of_day("1:2:3:4", None)),
            (None, None, None)
        );
    }
}
